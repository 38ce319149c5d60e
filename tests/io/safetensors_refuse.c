/* SPDX-License-Identifier: MIT */
/* Calls that are wrong, and a disk that is full: the message, and the old file. */
#include "io_test.h"

static wf_array contiguous(void *data, wf_dtype dtype, int ndim, int64_t d0, int64_t d1)
{
    return wf_array_contiguous(data, dtype, &(wf_shape){ndim, {d0, d1}});
}

#define COMMIT_FAILS(code, text, ...)                                                                                                      \
    do {                                                                                                                                   \
        wf_safetensors_writer *w = wf_safetensors_writer_new();                                                                            \
        __VA_ARGS__;                                                                                                                       \
        wf_error bad = {0};                                                                                                                \
        ck_assert_int_eq(wf_safetensors_commit(w, in_folder("x"), &bad), code);                                                            \
        assert_message(&bad, code, text);                                                                                                  \
        assert_text_is(in_folder("x"), "old");                                                                                             \
        ck_assert_int_eq(count_names(folder_of_test), 1);                                                                                  \
        ck_assert_int_eq(wf_alloc_live(), 0);                                                                                              \
    } while (0)

START_TEST(wrong_puts_are_refused)
{
    float x[4] = {0};
    wf_array a = contiguous(x, WF_F32, 1, 4, 0), b = a;
    write_text(in_folder("x"), "old");
    COMMIT_FAILS(WF_ERR_ARGUMENT, "/x: the tensor \"t\" is written twice", wf_safetensors_put(w, "t", &a); wf_safetensors_put(w, "u", &a);
                 wf_safetensors_put(w, "t", &a));
    COMMIT_FAILS(WF_ERR_ARGUMENT, "/x: the metadata key \"k\" is written twice", wf_safetensors_put_metadata(w, "k", "");
                 wf_safetensors_put_metadata(w, "k", ""));
    COMMIT_FAILS(WF_ERR_ARGUMENT, "which the format reserves", wf_safetensors_put(w, "__metadata__", &a));
    COMMIT_FAILS(WF_ERR_ARGUMENT, "/x: the JSON key \"\\xff\" is not UTF-8", wf_safetensors_put(w, "\xff", &a));
    COMMIT_FAILS(WF_ERR_ARGUMENT, "/x: metadata: the JSON key \"\\xff\" is not UTF-8", wf_safetensors_put_metadata(w, "\xff", ""));
    COMMIT_FAILS(WF_ERR_ARGUMENT, "metadata: the value of the JSON key \"k\" is not UTF-8: \"\\xff\"",
                 wf_safetensors_put_metadata(w, "k", "\xff"));
    b.ndim = 7;
    COMMIT_FAILS(WF_ERR_ARGUMENT, "\"t\" cannot be written", wf_safetensors_put(w, "t", &b));
    b = a, b.dim[0] = -1;
    COMMIT_FAILS(WF_ERR_ARGUMENT, "\"t\" cannot be written", wf_safetensors_put(w, "t", &b));
    b = a, b.ndim = 2, b.dim[0] = b.dim[1] = -2;
    COMMIT_FAILS(WF_ERR_ARGUMENT, "\"t\" cannot be written", wf_safetensors_put(w, "t", &b));
    b = a, b.data = NULL;
    COMMIT_FAILS(WF_ERR_ARGUMENT, "\"t\" cannot be written", wf_safetensors_put(w, "t", &b); wf_safetensors_put(w, "\xff", &a));
    b = a, b.dim[0] = INT64_MAX / 2;
    COMMIT_FAILS(WF_ERR_ARGUMENT, "\"t\" cannot be written", wf_safetensors_put(w, "t", &b));
    b = a, b.dtype = WF_DTYPE_COUNT;
    COMMIT_FAILS(WF_ERR_ARGUMENT, "\"t\" cannot be written", wf_safetensors_put(w, "t", &b));
    b = a, b.dim[0] = INT64_MAX / 8, b.stride[0] = 0;
    COMMIT_FAILS(WF_ERR_ARGUMENT, "the file would be larger than the safetensors format allows", wf_safetensors_put(w, "t", &b);
                 wf_safetensors_put(w, "u", &b); wf_safetensors_put(w, "v", &b));
    COMMIT_FAILS(WF_ERR_MEMORY, "no memory", wf_safetensors_discard(w); w = NULL; wf_safetensors_put(w, "t", &a);
                 wf_safetensors_put_metadata(w, "k", "v"));
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_safetensors_put(w, "t", &a);
    wf_safetensors_put_metadata(w, "k", "v");
    wf_safetensors_discard(w);
    wf_safetensors_discard(NULL);
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(a_full_disk_leaves_the_old_file)
{
    float x[400] = {0};
    wf_array a = contiguous(x, WF_F32, 2, 20, 20), t = wf_array_transpose(a, 0, 1);
    write_text(in_folder("x"), "old");
    for (int room = 0; room < 3300; room += 131) {
        wf_error bad = {0};
        wf_safetensors_writer *w = wf_safetensors_writer_new();
        wf_safetensors_put(w, "a", &a);
        wf_safetensors_put(w, "t", &t);
        limit_file_size((rlim_t)room);
        wf_status status = wf_safetensors_commit(w, in_folder("x"), &bad);
        limit_file_size(RLIM_INFINITY);
        ck_assert_int_eq(status, WF_ERR_IO);
        assert_message(&bad, WF_ERR_IO, "cannot be written at byte");
        assert_text_is(in_folder("x"), "old");
        ck_assert_int_eq(count_names(folder_of_test), 1);
    }
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(wrong_reads_are_refused)
{
    wf_error first = {0};
    wf_safetensors *file = wf_safetensors_open(golden("dtypes.safetensors"), &first);
    ck_assert_msg(file != NULL, "%s", first.message);
    float x[6];
    uint8_t bits[6];
    static const struct {
        const char *name;
        wf_dtype dtype;
        int64_t count;
        wf_status code;
        const char *text;
    } cases[] = {{"none", WF_F32, 6, WF_ERR_FORMAT, "dtypes.safetensors: does not contain the tensor \"none\""},
                 {"", WF_F32, 6, WF_ERR_FORMAT, "does not contain the tensor \"\""},
                 {"t.F32", WF_F32, 5, WF_ERR_SHAPE, "tensor \"t.F32\" has the shape [2,3], 6 elements, but 5 are required"},
                 {"t.F32", WF_F32, -1, WF_ERR_SHAPE, "but -1 are required"},
                 {"t.I32", WF_F32, 6, WF_ERR_FORMAT, "tensor \"t.I32\" has dtype I32, which cannot be converted to F32"},
                 {"t.I64", WF_I32, 6, WF_ERR_FORMAT, "has dtype I64, which cannot be converted to I32"},
                 {"t.F32", WF_I32, 6, WF_ERR_FORMAT, "has dtype F32, which cannot be converted to I32"},
                 {"t.F8_E4M3", WF_F32, 6, WF_ERR_FORMAT, "has dtype F8_E4M3, which cannot be converted to F32"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wf_error bad = {0};
        ck_assert_int_eq(wf_safetensors_read(file, cases[i].name, cases[i].dtype, x, cases[i].count, &bad), cases[i].code);
        assert_message(&bad, cases[i].code, cases[i].text);
    }
    wf_safetensors_close(file);
    /* A byte that C's bool may not hold. */
    uint8_t mask[3] = {0, 1, 2};
    wf_array a = contiguous(mask, WF_BOOL, 1, 3, 0);
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_safetensors_put(w, "mask", &a);
    ck_ok(wf_safetensors_commit(w, in_folder("x"), error));
    wf_error bad = {0};
    file = wf_safetensors_open(in_folder("x"), &bad);
    int64_t place = wf_safetensors_find(file, "mask")->offset + 2;
    ck_assert_int_eq(wf_safetensors_read(file, "mask", WF_BOOL, bits, 3, &bad), WF_ERR_FORMAT);
    char text[80];
    snprintf(text, sizeof text, "the BOOL at byte %lld is 2", (long long)place);
    assert_message(&bad, WF_ERR_FORMAT, text);
    /* Cut after it was opened. */
    wf_error_clear(&bad);
    ck_assert_int_eq(truncate(in_folder("x"), place), 0);
    ck_assert_int_eq(wf_safetensors_read(file, "mask", WF_BOOL, bits, 3, &bad), WF_ERR_IO);
    assert_message(&bad, WF_ERR_IO, "it was truncated after it was opened");
    wf_safetensors_close(file);
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

WF_TEST_MAIN("safetensors_refuse", wrong_puts_are_refused, a_full_disk_leaves_the_old_file, wrong_reads_are_refused)
