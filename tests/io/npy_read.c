/* SPDX-License-Identifier: MIT */
/* Arrays that numpy.save wrote (tests/golden/make_npy.py and make_events.py), and files that are none. */
#include "../fuzz/npy.h"
#include "io_test.h"

static double element(const wf_array *a, int64_t at)
{
    const void *d = (const char *)a->data + at * (int64_t)wf_dtype_size(a->dtype);
    double number;
    ck_assert(wf_convert(WF_F64, &number, a->dtype, d, 1));
    return number;
}

START_TEST(what_numpy_wrote)
{
    static const struct {
        const char *name;
        wf_dtype dtype;
    } files[] = {{"f4.npy", WF_F32},      {"read_i1.npy", WF_I8},  {"read_u1.npy", WF_U8},  {"read_i2.npy", WF_I16},
                 {"read_u2.npy", WF_U16}, {"read_u4.npy", WF_U32}, {"read_i8.npy", WF_I64}, {"read_u8.npy", WF_U64},
                 {"read_f2.npy", WF_F16}, {"read_v2.npy", WF_F32}, {"read_v3.npy", WF_F32}, {"read_fortran.npy", WF_F64},
                 {"b1.npy", WF_BOOL}};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        wf_npy *file = ck_makes(wf_npy_load(golden(files[f].name), error));
        const wf_array *a = wf_npy_array(file);
        ck_assert(a->dtype == files[f].dtype && a->ndim == 3 && a->dim[0] == 2 && a->dim[1] == 3 && a->dim[2] == 4);
        for (int64_t i = 0; i < 2; i++)
            for (int64_t j = 0; j < 3; j++)
                for (int64_t k = 0; k < 4; k++) {
                    double n = (double)(12 * i + 4 * j + k), got = element(a, i * a->stride[0] + j * a->stride[1] + k * a->stride[2]);
                    ck_assert_msg(got == (a->dtype == WF_BOOL ? (int)n % 3 == 0 : n), "%s: %g at %g", files[f].name, got, n);
                }
        wf_npy_close(file);
    }
    wf_npy *scalar = ck_makes(wf_npy_load(golden("scalar.npy"), error)), *empty = ck_makes(wf_npy_load(golden("empty.npy"), error));
    ck_assert(wf_npy_array(scalar)->ndim == 0 && element(wf_npy_array(scalar), 0) == 2.5);
    ck_assert(wf_npy_array(empty)->dim[0] == 0 && wf_npy_array(empty)->dim[1] == 12345);
    wf_npy_close(scalar);
    wf_npy_close(empty);
    wf_npy_close(NULL);
    ck_assert_ptr_null(wf_npy_array(NULL));
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(what_is_refused)
{
    static const char *const files[][2] = {
        {"read_object.npy", "arrays of Python objects are pickles"}, {"read_big.npy", "its numbers are big-endian"},
        {"read_records.npy", "arrays of records are not read"},      {"read_complex.npy", "the type \"<c8\" is not read"},
        {"read_text.npy", "the type \"<U2\" is not read"},           {"read_dims.npy", "more than 6 dimensions"},
        {"dtypes.safetensors", "is not an array of NumPy"},          {"missing.npy", "cannot be opened"}};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        const wf_status status = f + 1 < sizeof files / sizeof *files ? WF_ERR_FORMAT : WF_ERR_IO;
        ck_fails_null(wf_npy_load(golden(files[f][0]), error), status, files[f][0]);
        ck_fails_null(wf_npy_load(golden(files[f][0]), error), status, files[f][1]);
    }
}
END_TEST

/* A header before 16 bytes of data; says NULL: it is read. */
static void refused(const char *header, const char *says)
{
    _Alignas(64) char file[256] = "\x93NUMPY\1\0\x76";
    wf_error bad = {0};
    memset(file + 10, ' ', 117);
    memcpy(file + 10, header, strlen(header));
    file[127] = '\n';
    wf_npy *npy = wf_npy_view(file, 128 + 16, "mine", &bad);
    if (!says)
        ck_assert_msg(npy != NULL, "%s: %s", header, bad.message);
    else
        assert_message(&bad, WF_ERR_FORMAT, says);
    wf_npy_close(npy);
}

START_TEST(headers)
{
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", NULL);
    refused("{\"shape\": (2, 2), \"descr\": \"<f4\", \"fortran_order\": True}", NULL);
    refused("{'descr': '<f8', 'fortran_order': False, 'shape': (2L,), }", NULL);
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }",
            "takes 20 bytes from byte 128 on, and the file has 16: is it truncated?");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "does it hold several arrays?");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-4,), }", "a size of the shape is expected");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "too many elements");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "too large");
    refused("{'descr': '<f4', 'fortran_order': 0, 'shape': (4,), }", "neither True nor False");
    refused("{'descr': '<f4', 'fortran_order': False, }", "it lacks descr, fortran_order or shape");
    refused("{'descr': '<f4', 'descr': '<f4', 'shape': (4,), }", "each once");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), 'more': 1}", "each once");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), } x", "more follows");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4,", "");
    refused("['descr']", "does not begin with {");
    refused("", "does not begin with {");
}
END_TEST

/* Every truncation, and every byte of the head replaced: refused or read, without a fault. */
START_TEST(damage)
{
    static const char *const names[] = {"f4.npy", "read_v2.npy", "b1.npy", "read_fortran.npy"};
    for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
        int64_t bytes;
        char *data = load_file(golden(names[f]), &bytes);
        ck_assert(read_array(data, (size_t)bytes));
        for (int64_t n = 0; n < bytes; n++)
            ck_assert_msg(!read_array(data, (size_t)n), "%s: read with %d bytes", names[f], (int)n);
        for (int64_t at = 0; at < 128; at++)
            for (int value = 0; value < 256; value += at < 16 ? 1 : 7) {
                char was = data[at];
                data[at] = (char)value;
                read_array(data, (size_t)bytes);
                data[at] = was;
            }
        wf_free(data);
    }
}
END_TEST

static wf_status open_one(wf_error *error)
{
    wf_npy *file = wf_npy_load(golden("f4.npy"), error);
    wf_npy_close(file);
    return file ? WF_OK : error->code;
}

START_TEST(memory_may_be_short)
{
    ck_assert_int_ge(sweep_allocations(open_one), 1);
}
END_TEST

WF_TEST_MAIN("npy_read", what_numpy_wrote, what_is_refused, headers, damage, memory_may_be_short)
