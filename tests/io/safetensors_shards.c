/* SPDX-License-Identifier: MIT */
/* Tensors in several files with an index, as the libraries of Hugging Face write large models. */
#include <weft/internal/testing.h>

#include "io_test.h"

static const char index_name[] = "model.safetensors.index.json";

static void write_shard(const char *path, const char *format, const char *a, float first, const char *b)
{
    static const float numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_array x = wf_array_contiguous((void *)&numbers[(int)first], WF_F32, &(wf_shape){1, {2}}),
             y = wf_array_contiguous((void *)&numbers[(int)first + 2], WF_F32, &(wf_shape){1, {2}});
    wf_safetensors_put_metadata(w, "format", format);
    wf_safetensors_put(w, a, &x);
    if (b)
        wf_safetensors_put(w, b, &y);
    ck_ok(wf_safetensors_commit(w, path, error));
}

static void write_all(void)
{
    in_folder("");
    ck_assert_int_eq(chdir(folder_of_test), 0);
    write_shard("one.safetensors", "pt", "w.b", 0, "w.d");
    write_shard("two.safetensors", "other", "w.a", 4, "w.c");
    write_text(index_name, "{\"metadata\": {\"total_size\": 32}, \"weight_map\": {\"w.a\": \"two.safetensors\", \"w.b\": "
                           "\"one.safetensors\", \"w.c\": \"two.safetensors\", \"w.d\": \"one.safetensors\"}}");
}

START_TEST(all_tensors_of_all_files)
{
    static const struct {
        const char *name;
        float first;
    } expected[] = {{"w.a", 4}, {"w.b", 0}, {"w.c", 6}, {"w.d", 2}};
    for (int map = 0; map < 2; map++) {
        write_all();
        wf_safetensors *file = ck_makes(wf_safetensors_open(index_name, error, .map = map));
        ck_assert_int_eq(wf_safetensors_count(file), 4);
        ck_assert_ptr_null(wf_safetensors_find(file, "w"));
        ck_assert_str_eq(wf_safetensors_metadata(file, "format"), "other"); /* of the first file that the index names */
        for (int i = 0; i < 4; i++) {
            const struct wf_safetensors_entry *entry = wf_safetensors_find(file, expected[i].name);
            double one;
            float two[2];
            ck_assert_ptr_nonnull(entry);
            ck_ok(wf_safetensors_read(file, expected[i].name, WF_F32, two, 2, error));
            ck_assert(two[0] == expected[i].first && two[1] == expected[i].first + 1);
            ck_ok(wf_safetensors_read_range(file, expected[i].name, WF_F64, 1, &one, 1, error));
            ck_assert_double_eq(one, expected[i].first + 1);
            const float *data = wf_safetensors_data(file, entry);
            ck_assert(map ? data && data[0] == expected[i].first : !data);
        }
        wf_safetensors_close(file);
        ck_assert_int_eq(wf_alloc_live(), 0);
    }
}
END_TEST

START_TEST(broken_downloads)
{
    static const struct {
        const char *index, *message;
    } bad[] = {
        {"{\"weight_map\": {\"w.a\": \"three.safetensors\"}}",
         "three.safetensors is missing, but model.safetensors.index.json says that tensors are in it: is the download complete?"},
        {"{\"weight_map\": {\"w.b\": \"one.safetensors\"}}",
         "one.safetensors has the tensor \"w.d\", which model.safetensors.index.json does not list"},
        {"{\"weight_map\": {\"w.b\": \"one.safetensors\", \"w.d\": \"two.safetensors\"}}", "says that it is in \"two.safetensors\""},
        {"{\"weight_map\": {\"w.b\": \"one.safetensors\", \"w.d\": \"one.safetensors\", \"w.e\": \"one.safetensors\"}}",
         "says that the tensor \"w.e\" is in \"one.safetensors\", which does not have it"},
        {"{\"weight_map\": {\"w.a\": \"../two.safetensors\"}}", "which is not the name of a file beside it"},
        {"{\"weight_map\": {\"w.a\": \"\"}}", "which is not the name of a file beside it"},
        {"{\"weight_map\": {\"w.a\": \"model.safetensors.index.json\"}}", "which is not the name of a file beside it"},
        {"{\"weight_map\": {\"w.a\": 3}}", "the file of tensor \"w.a\" is not a string"},
        {"{\"weight_map\": []}", "it has no \"weight_map\""},
        {"[]", "it has no \"weight_map\""},
        {"{\"weight_map\": {\"w.a\": \"a\", \"w.a\": \"b\"}}", "model.safetensors.index.json:1:"},
        {"<html>", "model.safetensors.index.json"},
        {"{\"weight_map\": {\"w.a\": \"page.safetensors\"}}", "page.safetensors"},
        {"{\"weight_map\": {\"w.b\": \"cut.safetensors\", \"w.d\": \"cut.safetensors\"}}", "cut.safetensors: "},
    };
    write_all();
    write_text("page.safetensors", "<!DOCTYPE html><html><head><title>Not found</title></head></html>");
    int64_t bytes;
    char *whole = load_file("one.safetensors", &bytes);
    write_file("cut.safetensors", whole, (size_t)bytes - 5);
    wf_free(whole);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wf_error error = {0};
        write_text(index_name, bad[i].index);
        ck_assert_msg(!wf_safetensors_open(index_name, &error), "%s", bad[i].index);
        ck_says(error.message, bad[i].message);
        ck_assert_int_eq(wf_alloc_live(), 0);
    }
}
END_TEST

START_TEST(no_memory)
{
    write_all();
    int64_t failures = 0;
    for (;; failures++) {
        wf_error error = {0};
        wf_alloc_fail_after(failures);
        wf_safetensors *file = wf_safetensors_open(index_name, &error);
        wf_alloc_fail_after(-1);
        const bool opened = file != NULL;
        wf_safetensors_close(file);
        ck_assert_int_eq(wf_alloc_live(), 0);
        if (opened)
            break;
        ck_assert_int_eq(error.code, WF_ERR_MEMORY);
    }
    ck_assert_int_gt(failures, 10);
}
END_TEST

WF_TEST_MAIN("io/safetensors_shards", all_tensors_of_all_files, broken_downloads, no_memory)
