/* SPDX-License-Identifier: MIT */
#include <locale.h>
#include <math.h>

#include <weft/internal/safetensors_from.h>

#include "io_test.h"

/* 0 .. 5 in every dtype (bools: odd or not); the 8-bit floats by their bits, E4M3 and E5M2. */
static void counted(wf_dtype dtype, void *out)
{
    static const uint8_t e4m3[] = {0x00, 0x38, 0x40, 0x44, 0x48, 0x4a}, e5m2[] = {0x00, 0x3c, 0x40, 0x42, 0x44, 0x45};
    static const double reals[] = {0, 1, 2, 3, 4, 5};
    static const int64_t integers[] = {0, 1, 2, 3, 4, 5}, odd[] = {0, 1, 0, 1, 0, 1};
    if (dtype == WF_F8_E4M3 || dtype == WF_F8_E5M2)
        memcpy(out, dtype == WF_F8_E4M3 ? e4m3 : e5m2, 6);
    else if (dtype <= WF_BF16)
        ck_assert(wf_convert(dtype, out, WF_F64, reals, 6));
    else
        ck_assert(wf_convert(dtype, out, WF_I64, dtype == WF_BOOL ? odd : integers, 6));
}

START_TEST(reads_every_dtype)
{
    wf_safetensors *file = open_tensors(golden("dtypes.safetensors"));
    ck_assert_int_eq(wf_safetensors_count(file), WF_DTYPE_COUNT);
    ck_assert_ptr_null(wf_safetensors_at(file, WF_DTYPE_COUNT));
    ck_assert_ptr_null(wf_safetensors_at(file, -1));
    ck_assert_str_eq(wf_safetensors_metadata(file, "format"), "pt");
    ck_assert_ptr_null(wf_safetensors_metadata(file, "other"));
    for (int d = 0; d < WF_DTYPE_COUNT; d++) {
        char name[16];
        unsigned char want[48], got[49];
        snprintf(name, sizeof name, "t.%s", wf_dtype_name((wf_dtype)d));
        const struct wf_safetensors_entry *entry = wf_safetensors_find(file, name);
        ck_assert_msg(entry != NULL, "%s", name);
        ck_assert_int_eq(entry->dtype, d);
        ck_assert(wf_shape_equal(&entry->shape, &(wf_shape){2, {2, 3}}));
        ck_assert_int_eq(entry->count, 6);
        ck_assert_int_eq(entry->bytes, 6 * (int64_t)wf_dtype_size((wf_dtype)d));
        counted((wf_dtype)d, want);
        got[entry->bytes] = 0x5a;
        ck_ok(wf_safetensors_read(file, name, (wf_dtype)d, got, 6, error));
        ck_assert_msg(!memcmp(got, want, (size_t)entry->bytes), "%s", name);
        ck_assert_int_eq(got[entry->bytes], 0x5a);
    }
    wf_safetensors_close(file);
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

/* The same calls as in Python give the same bytes, in Python's order: wide dtypes first, then by name. */
START_TEST(writes_what_python_writes)
{
    static const wf_dtype order[] = {WF_U64, WF_I64, WF_F64,     WF_F32,     WF_U32, WF_I32, WF_BF16, WF_F16,
                                     WF_U16, WF_I16, WF_F8_E4M3, WF_F8_E5M2, WF_I8,  WF_U8,  WF_BOOL};
    unsigned char data[WF_DTYPE_COUNT][48];
    wf_safetensors *python = open_tensors(golden("dtypes.safetensors"));
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_safetensors_put_metadata(w, "format", "pt");
    for (int i = 0; i < WF_DTYPE_COUNT; i++) {
        const struct wf_safetensors_entry *entry = wf_safetensors_at(python, i); /* its order, whatever that is among equal widths */
        wf_dtype d = entry->dtype;
        ck_assert_int_eq(wf_dtype_size(d), wf_dtype_size(order[i]));
        counted(d, data[i]);
        wf_array a = contiguous(data[i], d, 2, 2, 3, 0);
        wf_safetensors_put(w, entry->name, &a);
    }
    wf_safetensors_close(python);
    ck_ok(wf_safetensors_commit(w, in_folder("x"), error));
    assert_same_files(in_folder("x"), golden("dtypes.safetensors"));
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(converts_floats)
{
    wf_safetensors *file = open_tensors(golden("floats.safetensors"));
    static const struct {
        const char *name, *wide;
        int64_t count;
    } cases[] = {{"f16", "f16.f64", 12}, {"bf16", "bf16.f64", 12}, {"f32", "f32.f64", 8}};
    for (int c = 0; c < 3; c++) {
        double want[12], got[12];
        float single[12];
        ck_ok(wf_safetensors_read(file, cases[c].wide, WF_F64, want, cases[c].count, error));
        ck_ok(wf_safetensors_read(file, cases[c].name, WF_F64, got, cases[c].count, error));
        ck_ok(wf_safetensors_read(file, cases[c].name, WF_F32, single, cases[c].count, error));
        for (int i = 0; i < cases[c].count; i++)
            ck_assert_msg(!memcmp(&got[i], &want[i], 8) && single[i] == (float)want[i] && !signbit(single[i]) == !signbit(want[i]),
                          "%s[%d]: %g, %g instead of %g", cases[c].name, i, got[i], (double)single[i], want[i]);
        wf_dtype own = wf_safetensors_find(file, cases[c].name)->dtype;
        uint8_t bits[48], back[48]; /* narrowing what was widened gives the bits again */
        ck_ok(wf_safetensors_read(file, cases[c].name, own, bits, cases[c].count, error));
        ck_ok(wf_safetensors_read(file, cases[c].wide, own, back, cases[c].count, error));
        ck_assert(!memcmp(bits, back, (size_t)cases[c].count * wf_dtype_size(own)));
    }
    float nan[2];
    ck_ok(wf_safetensors_read(file, "nan.f16", WF_F32, &nan[0], 1, error));
    ck_ok(wf_safetensors_read(file, "nan.bf16", WF_F32, &nan[1], 1, error));
    ck_assert(isnan(nan[0]) && isnan(nan[1]));
    wf_safetensors_close(file);
}
END_TEST

START_TEST(reads_names_and_shapes)
{
    wf_safetensors *file = open_tensors(golden("names.safetensors"));
    float x[64];
    ck_assert_int_eq(wf_safetensors_find(file, "scalar")->shape.ndim, 0);
    ck_ok(wf_safetensors_read(file, "scalar", WF_F32, x, 1, error));
    ck_assert(x[0] == 2.5f);
    ck_assert(wf_shape_equal(&wf_safetensors_find(file, "empty")->shape, &(wf_shape){2, {0, 4}}));
    ck_ok(wf_safetensors_read(file, "empty", WF_F32, NULL, 0, error));
    ck_assert_int_eq(wf_safetensors_find(file, "six")->shape.ndim, 6);
    ck_ok(wf_safetensors_read(file, "six", WF_F32, x, 64, error));
    ck_assert(x[0] == 0 && x[63] == 63);
    ck_ok(wf_safetensors_read(file, "gr\xc3\xbc\xc3\x9f.\xe4\xb8\x96\xe7\x95\x8c.\xf0\x9f\x98\x80", WF_F32, x, 1, error));
    ck_ok(wf_safetensors_read(file, "quote\"back\\slash\ttab\x01", WF_F32, x, 1, error));
    ck_assert(x[0] == 2);
    ck_assert_str_eq(wf_safetensors_metadata(file, "note"), "line one\nline two, \"quoted\", \xc3\xa9\xf0\x9f\x98\x80");
    ck_assert_str_eq(wf_safetensors_metadata(file, "empty"), "");
    const char *key, *value;
    int count = 0;
    for (; wf_safetensors_metadata_at(file, count, &key, &value); count++)
        ck_assert_str_eq(wf_safetensors_metadata(file, key), value);
    ck_assert_int_eq(count, 3);
    wf_safetensors_close(file);
}
END_TEST

START_TEST(reads_odd_headers)
{
    for (int map = 0; map < 2; map++) {
        wf_safetensors *file = ck_makes(wf_safetensors_open(golden("odd.safetensors"), error, .map = map));
        float b[2];
        uint8_t a;
        ck_ok(wf_safetensors_read(file, "b", WF_F32, b, 2, error));
        ck_ok(wf_safetensors_read(file, "a", WF_U8, &a, 1, error));
        ck_assert(a == 7 && b[0] == 1.5f && b[1] == -2.0f);
        ck_assert_str_eq(wf_safetensors_metadata(file, "k"), "\xf0\x9f\x98\x80");
        ck_assert_ptr_null(wf_safetensors_data(file, wf_safetensors_find(file, "b"))); /* not aligned, or not mapped */
        const uint8_t *there = wf_safetensors_data(file, wf_safetensors_find(file, "a"));
        ck_assert(map ? there && *there == 7 : !there);
        wf_safetensors_close(file);
    }
}
END_TEST

START_TEST(maps_on_request)
{
    wf_safetensors *file = ck_makes(wf_safetensors_open(golden("dtypes.safetensors"), error, .map = true));
    for (int64_t i = 0; i < wf_safetensors_count(file); i++) {
        const struct wf_safetensors_entry *entry = wf_safetensors_at(file, i);
        unsigned char want[48];
        counted(entry->dtype, want);
        const void *data = wf_safetensors_data(file, entry);
        ck_assert_ptr_nonnull(data);
        ck_assert(!memcmp(data, want, (size_t)entry->bytes));
    }
    /* An open file stays as it was when it is replaced. */
    wf_safetensors_close(file);
    for (int map = 0; map < 2; map++) {
        float one = 1, two = 2, got;
        wf_array a = contiguous(&one, WF_F32, 0, 0, 0, 0), b = contiguous(&two, WF_F32, 0, 0, 0, 0);
        save_tensor("x", &a);
        file = ck_makes(wf_safetensors_open(in_folder("x"), error, .map = map));
        save_tensor("x", &b);
        ck_ok(wf_safetensors_read(file, "x", WF_F32, &got, 1, error));
        ck_assert(got == 1);
        wf_safetensors_close(file);
    }
}
END_TEST

/* Any strides: the file holds what a contiguous copy holds. Large enough that pieces end in the middle of rows. */
START_TEST(writes_views)
{
    enum { N = 37, M = 61, K = 29 };
    wf_real *data = malloc(sizeof *data * N * M * K), *copy = malloc(sizeof *data * N * M * K), *got = malloc(sizeof *data * N * M * K);
    for (int i = 0; i < N * M * K; i++)
        data[i] = (wf_real)i * (wf_real)0.25;
    wf_array whole = contiguous(data, WF_REAL, 3, N, M, K), vector = wf_array_contiguous(data, WF_REAL, &(wf_shape){1, {K}});
    wf_array backwards = whole;
    backwards.data = data + N * M * K - 1;
    for (int d = 0; d < 3; d++)
        backwards.stride[d] = -backwards.stride[d];
    const wf_array views[] = {whole,
                              wf_array_transpose(whole, 0, 2),
                              wf_array_transpose(whole, 1, 2),
                              wf_array_slice(whole, 1, 7, 30),
                              wf_array_slice(wf_array_transpose(whole, 0, 1), 2, 3, 1),
                              wf_array_slice(whole, 2, 0, 0),
                              wf_array_expand(&vector, &(wf_shape){3, {5, 7, K}}),
                              backwards};
    enum { VIEWS = sizeof views / sizeof *views };
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    char name[16];
    for (int v = 0; v < VIEWS; v++) {
        snprintf(name, sizeof name, "v%d", v);
        wf_safetensors_put(w, name, &views[v]);
    }
    ck_ok(wf_safetensors_commit(w, in_folder("x"), error));
    wf_safetensors *file = open_tensors(in_folder("x"));
    for (int v = 0; v < VIEWS; v++) {
        snprintf(name, sizeof name, "v%d", v);
        wf_shape shape = wf_array_shape(&views[v]);
        int64_t count = wf_array_count(&views[v]), at = 0;
        for (int64_t i = 0; i < shape.dim[0]; i++)
            for (int64_t j = 0; j < shape.dim[1]; j++)
                for (int64_t k = 0; k < shape.dim[2]; k++)
                    copy[at++] = ((wf_real *)views[v].data)[i * views[v].stride[0] + j * views[v].stride[1] + k * views[v].stride[2]];
        ck_assert(wf_shape_equal(&wf_safetensors_find(file, name)->shape, &shape));
        ck_ok(wf_safetensors_read(file, name, WF_REAL, got, count, error));
        ck_assert_msg(!memcmp(got, copy, (size_t)count * sizeof *got), "%s", name);
    }
    wf_safetensors_close(file);
    free(data);
    free(copy);
    free(got);
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

/* Larger than the pieces in which they are converted; as a whole, and ranges of them. */
START_TEST(large_tensors)
{
    enum { N = 700001 };
    double *data = malloc(N * sizeof *data), *got = malloc(N * sizeof *got);
    float *single = malloc(N * sizeof *single);
    uint8_t mask[4] = {1, 0, 1, 1}, bits[2];
    for (int i = 0; i < N; i++)
        data[i] = i / 3.0;
    wf_array a = contiguous(data, WF_F64, 1, N, 0, 0), b = contiguous(mask, WF_BOOL, 1, 4, 0, 0);
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_safetensors_put(w, "x", &a);
    wf_safetensors_put(w, "mask", &b);
    ck_ok(wf_safetensors_commit(w, in_folder("x"), error));
    wf_safetensors *file = open_tensors(in_folder("x"));
    ck_ok(wf_safetensors_read(file, "x", WF_F64, got, N, error));
    ck_ok(wf_safetensors_read(file, "x", WF_F32, single, N, error));
    for (int i = 0; i < N; i++)
        ck_assert(got[i] == data[i] && single[i] == (float)data[i]);
    static const int64_t at[] = {0, 1, 299999, N - 4};
    for (int i = 0; i < 4; i++) {
        ck_ok(wf_safetensors_read_range(file, "x", WF_F64, at[i], got, 4, error));
        ck_ok(wf_safetensors_read_range(file, "x", WF_F32, at[i], single, 4, error));
        for (int k = 0; k < 4; k++)
            ck_assert(got[k] == data[at[i] + k] && single[k] == (float)data[at[i] + k]);
    }
    ck_ok(wf_safetensors_read_range(file, "mask", WF_BOOL, 1, bits, 2, error));
    ck_assert(bits[0] == 0 && bits[1] == 1);
    ck_ok(wf_safetensors_read_range(file, "x", WF_F64, N, NULL, 0, error));
    static const int64_t wrong[][2] = {{-1, 1}, {N - 3, 4}, {0, -1}, {0, N + 1}, {N + 1, 0}, {INT64_MAX, 2}};
    for (int i = 0; i < 6; i++)
        ck_fails(wf_safetensors_read_range(file, "x", WF_F64, wrong[i][0], got, wrong[i][1], error), WF_ERR_SHAPE,
                 "tensor \"x\" has 700001 elements, but");
    ck_fails(wf_safetensors_read_range(file, "y", WF_F64, 0, got, 1, error), WF_ERR_FORMAT, "\"y\"");
    wf_safetensors_close(file);
    free(data);
    free(got);
    free(single);
}
END_TEST

/* A ramp from the number in its key on; fails where the number is negative. */
static wf_status ramp(void *ctx, const void *key, int64_t at, int64_t count, void *out, wf_error *why)
{
    int64_t first;
    memcpy(&first, key, sizeof first);
    ++*(int *)ctx;
    if (first < 0 && at > 0)
        return wf_error_set(why, WF_ERR_STATE, "nothing comes from %lld on", (long long)at);
    for (int64_t i = 0; i < count; i++)
        ((float *)out)[i] = (float)(first + at + i);
    return WF_OK;
}

START_TEST(tensors_come_piece_by_piece)
{
    enum { N = 600001 }; /* more than a piece */
    float *data = malloc(N * sizeof *data);
    int calls = 0;
    const int64_t keys[] = {7, 100};
    for (int i = 0; i < N; i++)
        data[i] = (float)(7 + i);
    wf_array a = contiguous(data, WF_F32, 1, N, 0, 0), none = a, small = contiguous(NULL, WF_F32, 2, 3, 5, 0);
    none.data = NULL;
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_safetensors_put(w, "x", &a);
    wf_safetensors_put_from(w, "y", &none, ramp, &calls, &keys[0], sizeof keys[0]);
    wf_safetensors_put_from(w, "z", &small, ramp, &calls, &keys[1], sizeof keys[1]);
    ck_assert_int_eq(calls, 0);
    ck_ok(wf_safetensors_commit(w, in_folder("x"), error));
    ck_assert_int_gt(calls, 2);
    wf_safetensors *file = open_tensors(in_folder("x"));
    float *got = malloc(N * sizeof *got), few[15];
    ck_ok(wf_safetensors_read(file, "y", WF_F32, got, N, error));
    ck_assert(memcmp(got, data, N * sizeof *got) == 0);
    ck_ok(wf_safetensors_read(file, "z", WF_F32, few, 15, error));
    ck_assert(few[0] == 100 && few[14] == 114);
    wf_safetensors_close(file);
    /* A failure in the middle leaves what was there. */
    const int64_t fails = -1;
    w = wf_safetensors_writer_new();
    wf_safetensors_put_from(w, "y", &none, ramp, &calls, &fails, sizeof fails);
    ck_fails(wf_safetensors_commit(w, in_folder("x"), error), WF_ERR_STATE, "nothing comes from");
    file = open_tensors(in_folder("x"));
    ck_assert_int_eq(wf_safetensors_count(file), 3);
    wf_safetensors_close(file);
    char long_key[65] = "";
    w = wf_safetensors_writer_new();
    wf_safetensors_put_from(w, "y", &none, ramp, &calls, long_key, sizeof long_key);
    ck_fails(wf_safetensors_commit(w, in_folder("x"), error), WF_ERR_ARGUMENT, "");
    free(got);
    free(data);
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(same_calls_same_bytes)
{
    float x[3] = {1, 2, 3};
    uint8_t mask[3] = {1, 0, 1};
    wf_array a = contiguous(x, WF_F32, 1, 3, 0, 0), b = contiguous(mask, WF_BOOL, 1, 3, 0, 0);
    static const char header[] =
        "{\"__metadata__\":{\"z\":\"1\",\"a\":\"\\\"\\u001f\"},\"z\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[3,15]}}";
    int64_t length = (int64_t)sizeof header - 1, padded = (length + 7) / 8 * 8;
    char want[400] = {(char)padded};
    memset(want + 8, ' ', (size_t)padded);
    memcpy(want + 8, header, (size_t)length);
    memcpy(want + 8 + padded, mask, 3);
    memcpy(want + 11 + padded, x, 12);
    use_comma_locale();
    for (int i = 0; i < 2; i++) {
        wf_safetensors_writer *w = wf_safetensors_writer_new();
        wf_safetensors_put(w, "z", &b);
        wf_safetensors_put_metadata(w, "z", "1");
        wf_safetensors_put(w, "a", &a);
        wf_safetensors_put_metadata(w, "a", "\"\x1f");
        ck_ok(wf_safetensors_commit(w, in_folder("x"), error));
        ck_assert_int_lt(padded, 256);
        want[0] = (char)(unsigned char)padded;
        assert_file_is(in_folder("x"), want, 8 + padded + 15);
    }
    /* Nothing at all is a file too. */
    ck_ok(wf_safetensors_commit(wf_safetensors_writer_new(), in_folder("x"), error));
    assert_file_is(in_folder("x"), "\x08\0\0\0\0\0\0\0{}      ", 16);
    wf_safetensors *file = open_tensors(in_folder("x"));
    ck_assert_int_eq(wf_safetensors_count(file), 0);
    ck_assert_ptr_null(wf_safetensors_find(file, ""));
    wf_safetensors_close(file);
}
END_TEST

WF_TEST_MAIN("safetensors", reads_every_dtype, writes_what_python_writes, converts_floats, reads_names_and_shapes, reads_odd_headers,
             maps_on_request, writes_views, large_tensors, tensors_come_piece_by_piece, same_calls_same_bytes)
