/* SPDX-License-Identifier: MIT */
/* Every allocation of every call may fail: the call then says so, leaks nothing and leaves the files as they were. */
#include "io_test.h"
#include <weft/internal/json.h>
#include <weft/internal/jsonl.h>

static wf_status run_load(wf_error *error)
{
    char *text = wf_file_load(golden("dtypes.safetensors"), 100000, NULL, error);
    wf_free(text);
    return text ? WF_OK : error->code;
}

static wf_status run_load_pipe(wf_error *error) /* of a length that is not known beforehand */
{
    int ends[2];
    char path[64], data[20000] = {0};
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], data, sizeof data), sizeof data);
    close(ends[1]);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    char *text = wf_file_load(path, 100000, NULL, error);
    close(ends[0]);
    wf_free(text);
    return text ? WF_OK : error->code;
}

static wf_status run_save(wf_error *error)
{
    return wf_file_save(in_folder("x"), "new", 3, error);
}

static wf_status run_folder(wf_error *error)
{
    struct wf_names names;
    wf_status status = wf_folder_make(in_folder("a/b"), error);
    if (status == WF_OK && (status = wf_folder_list(folder_of_test, "", &names, error)) == WF_OK)
        wf_names_free(&names);
    return status == WF_OK ? wf_file_sweep(folder_of_test, NULL, error) : status;
}

static wf_status run_lock(wf_error *error)
{
    wf_lock *lock = wf_lock_take(in_folder("lock"), error);
    wf_lock_release(lock);
    return lock ? WF_OK : error->code;
}

static wf_status run_open(wf_error *error)
{
    wf_safetensors *file = wf_safetensors_open(golden("names.safetensors"), error);
    if (!file)
        return error->code;
    double x[64];
    wf_status status = wf_safetensors_read(file, "six", WF_F64, x, 64, error);
    wf_safetensors_close(file);
    return status;
}

static wf_status run_map(wf_error *error)
{
    wf_safetensors *file = wf_safetensors_open(golden("dtypes.safetensors"), error, .map = true);
    wf_safetensors_close(file);
    return file ? WF_OK : error->code;
}

static wf_status run_write(wf_error *error)
{
    wf_real data[6] = {1, 2, 3, 4, 5, 6};
    wf_array a = wf_array_contiguous(data, WF_REAL, &(wf_shape){2, {2, 3}}), t = wf_array_transpose(a, 0, 1);
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    char name[64];
    for (int i = 0; i < 70; i++) { /* more than the list holds at first */
        snprintf(name, sizeof name, "tensor.%d.weight", i);
        wf_safetensors_put(w, name, i % 2 ? &a : &t);
        wf_safetensors_put_metadata(w, name, "value");
    }
    return wf_safetensors_commit(w, in_folder("x"), error);
}

static wf_status run_json(wf_error *error)
{
    static const char text[] = "{\"a\": [1, 2.5, \"text\", {\"b\": null}], \"c\": \"a longer text with \\u00e9scapes\"}";
    wf_json_init();
    json_t *value = wf_json_parse(text, sizeof text - 1, "text", error);
    if (!value)
        return error->code;
    bool saved = wf_json_set_double(value, "d", 0.5, error) == WF_OK && wf_json_set_int(value, "i", 5, error) == WF_OK &&
                 wf_json_set_string(value, "s", "text", error) == WF_OK && wf_json_set_new(value, "o", json_object(), error) == WF_OK &&
                 wf_json_save(in_folder("x"), value, 2, error) == WF_OK;
    json_decref(value);
    return saved ? WF_OK : error->code;
}

static wf_status run_json_load(wf_error *error)
{
    json_t *value = wf_json_load(in_folder("in.json"), 1000, error);
    json_decref(value);
    return value ? WF_OK : error->code;
}

static json_t *line;

static wf_status run_append(wf_error *error)
{
    wf_jsonl *file = wf_jsonl_open(in_folder("m.jsonl"), INT64_MAX, error);
    if (!file)
        return error->code;
    wf_status status = wf_jsonl_append(file, line, error);
    wf_jsonl_close(file);
    return status;
}

static wf_status run_drop(wf_error *error)
{
    wf_jsonl *file = wf_jsonl_open(in_folder("m.jsonl"), 10, error);
    wf_jsonl_close(file);
    return file ? WF_OK : error->code;
}

/* At least `least` places where it can fail; the file x holds "old" until it succeeds. */
static void sweep(wf_status (*run)(wf_error *error), int least)
{
    write_text(in_folder("x"), "old");
    int failures = sweep_allocations(run);
    ck_assert_msg(failures >= least, "only %d allocations", failures);
    wf_error bad = {0};
    wf_alloc_fail_after(failures - 1); /* the last one again: nothing is written */
    write_text(in_folder("x"), "old");
    ck_assert_int_eq(run(&bad), WF_ERR_MEMORY);
    wf_alloc_fail_after(-1);
    assert_text_is(in_folder("x"), "old");
    int names = count_names(folder_of_test), removed;
    ck_ok(wf_file_sweep(folder_of_test, &removed, error));
    ck_assert_msg(removed == 0 && count_names(folder_of_test) == names, "a temporary file was left");
}

START_TEST(files)
{
    sweep(run_load, 1);
    sweep(run_load_pipe, 3);
    sweep(run_save, 4);
    sweep(run_folder, 3);
    sweep(run_lock, 1);
}
END_TEST

START_TEST(safetensors)
{
    sweep(run_open, 20);
    sweep(run_map, 20);
    sweep(run_write, 200);
}
END_TEST

START_TEST(json)
{
    sweep(run_json, 30);
    write_text(in_folder("in.json"), "{\"a\": [1, 2.5, \"text\", {\"b\": null}], \"c\": \"a longer text with \\u00e9scapes\"}");
    sweep(run_json_load, 20);
    line = ck_makes(wf_json_parse("{\"step\":1}", 10, "line", error));
    sweep(run_append, 3);
    json_decref(line);
    static const char text[] = "{\"step\":1}\n{\"step\":11}\n";
    write_text(in_folder("m.jsonl"), text);
    ck_assert_int_ge(sweep_allocations(run_drop), 8);
    assert_text_is(in_folder("m.jsonl"), "{\"step\":1}\n");
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

WF_TEST_MAIN("memory", files, safetensors, json)
