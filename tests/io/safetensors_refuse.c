/* SPDX-License-Identifier: MIT */
/* Wrong calls and a full disk: the message, and the old file stays. */
#include "io_test.h"

static void commit_fails(wf_safetensors_writer *w, wf_status code, const char *words)
{
    ck_fails(wf_safetensors_commit(w, in_folder("x"), error), code, words);
    assert_text_is(in_folder("x"), "old");
    ck_assert_int_eq(count_names(folder_of_test), 1);
    ck_assert_int_eq(wf_alloc_live(), 0);
}

START_TEST(wrong_puts_are_refused)
{
    static const struct {
        const char *words, *tensor[3], *key[2], *value;
    } cases[] = {{"/x: the tensor \"t\" is written twice", {"t", "u", "t"}},
                 {"which the format reserves", {"__metadata__"}},
                 {"/x: the JSON key \"\\xff\" is not UTF-8", {"\xff"}},
                 {"/x: the metadata key \"k\" is written twice", {NULL}, {"k", "k"}, ""},
                 {"/x: metadata: the JSON key \"\\xff\" is not UTF-8", {NULL}, {"\xff"}, ""},
                 {"metadata: the value of the JSON key \"k\" is not UTF-8: \"\\xff\"", {NULL}, {"k"}, "\xff"}};
    float x[4] = {0};
    const wf_array a = contiguous(x, WF_F32, 1, 4, 0, 0);
    wf_safetensors_writer *w;
    write_text(in_folder("x"), "old");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        w = wf_safetensors_writer_new();
        for (int k = 0; k < 3 && cases[i].tensor[k]; k++)
            wf_safetensors_put(w, cases[i].tensor[k], &a);
        for (int k = 0; k < 2 && cases[i].key[k]; k++)
            wf_safetensors_put_metadata(w, cases[i].key[k], cases[i].value);
        commit_fails(w, WF_ERR_ARGUMENT, cases[i].words);
    }
    wf_array wrong[] = {a, a, a, a, a, a}, large = a;
    wrong[0].ndim = 7;
    wrong[1].dim[0] = -1;
    wrong[2].ndim = 2, wrong[2].dim[0] = wrong[2].dim[1] = -2;
    wrong[3].data = NULL;
    wrong[4].dim[0] = INT64_MAX / 2;
    wrong[5].dtype = WF_DTYPE_COUNT;
    for (int i = 0; i < 6; i++) {
        w = wf_safetensors_writer_new();
        wf_safetensors_put(w, "t", &wrong[i]);
        wf_safetensors_put(w, "\xff", &a); /* the first mistake counts */
        commit_fails(w, WF_ERR_ARGUMENT, "\"t\" cannot be written");
    }
    large.dim[0] = INT64_MAX / 8, large.stride[0] = 0;
    w = wf_safetensors_writer_new();
    wf_safetensors_put(w, "t", &large);
    wf_safetensors_put(w, "u", &large);
    wf_safetensors_put(w, "v", &large);
    commit_fails(w, WF_ERR_ARGUMENT, "the file would be larger than the safetensors format allows");
    wf_safetensors_put(NULL, "t", &a);
    wf_safetensors_put_metadata(NULL, "k", "v");
    commit_fails(NULL, WF_ERR_MEMORY, "no memory");
    w = wf_safetensors_writer_new();
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
    wf_array a = contiguous(x, WF_F32, 2, 20, 20, 0), t = wf_array_transpose(a, 0, 1);
    write_text(in_folder("x"), "old");
    for (int room = 0; room < 3300; room += 131) {
        wf_safetensors_writer *w = wf_safetensors_writer_new();
        wf_safetensors_put(w, "a", &a);
        wf_safetensors_put(w, "t", &t);
        ck_fails(with_file_size(room, wf_safetensors_commit(w, in_folder("x"), error)), WF_ERR_IO, "cannot be written at byte");
        assert_text_is(in_folder("x"), "old");
        ck_assert_int_eq(count_names(folder_of_test), 1);
    }
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(wrong_reads_are_refused)
{
    wf_safetensors *file = open_tensors(golden("dtypes.safetensors"));
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
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_fails(wf_safetensors_read(file, cases[i].name, cases[i].dtype, x, cases[i].count, error), cases[i].code, cases[i].text);
    wf_safetensors_close(file);
    /* A byte that C's bool may not hold. */
    uint8_t mask[3] = {0, 1, 2};
    wf_array a = contiguous(mask, WF_BOOL, 1, 3, 0, 0);
    save_tensor("mask", &a);
    file = open_tensors(in_folder("x"));
    int64_t place = wf_safetensors_find(file, "mask")->offset + 2;
    char text[80];
    snprintf(text, sizeof text, "the BOOL at byte %lld is 2", (long long)place);
    ck_fails(wf_safetensors_read(file, "mask", WF_BOOL, bits, 3, error), WF_ERR_FORMAT, text);
    /* Cut after it was opened. */
    ck_assert_int_eq(truncate(in_folder("x"), place), 0);
    ck_fails(wf_safetensors_read(file, "mask", WF_BOOL, bits, 3, error), WF_ERR_IO, "it was truncated after it was opened");
    wf_safetensors_close(file);
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

WF_TEST_MAIN("safetensors_refuse", wrong_puts_are_refused, a_full_disk_leaves_the_old_file, wrong_reads_are_refused)
