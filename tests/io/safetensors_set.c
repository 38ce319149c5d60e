/* SPDX-License-Identifier: MIT */
/* A set of tensors written to one file or to several with an index, as huggingface_hub does, and folders that are moved and removed. */
#include <weft/internal/json.h>
#include <weft/internal/safetensors_set.h>
#include <weft/internal/testing.h>

#include "io_test.h"

enum { TENSORS = 6 };
static const struct {
    const char *name;
    wf_dtype dtype;
    int64_t count;
} made[TENSORS] = {{"a", WF_F32, 3}, {"b", WF_BF16, 3}, {"c", WF_F32, 100}, {"d", WF_BF16, 1}, {"e", WF_F32, 5}, {"f", WF_F32, 0}};
static struct wf_set_tensor tensors[TENSORS];

static void make_tensors(void)
{
    for (int i = 0; i < TENSORS; i++)
        tensors[i] = (struct wf_set_tensor){made[i].name, wf_array_contiguous(NULL, made[i].dtype, &(wf_shape){1, {made[i].count}})};
}

/* The elements of tensor i are 100 i, 100 i + 1, ... */
static wf_status read_tensor(void *ctx, const void *key, int64_t at, int64_t count, void *out, wf_error *error)
{
    const struct wf_set_tensor *tensor = key;
    const int64_t which = tensor - tensors;
    if (ctx && *(int64_t *)ctx == which)
        return wf_error_set(error, WF_ERR_IO, "tensor %s is not there", tensor->name);
    for (int64_t i = 0; i < count; i++) {
        const float value = (float)(100 * which + at + i);
        wf_convert(tensor->array.dtype, (char *)out + i * (int64_t)wf_dtype_size(tensor->array.dtype), WF_F32, &value, 1);
    }
    return WF_OK;
}

static void describe(void *ctx, wf_safetensors_writer *w)
{
    (void)ctx;
    wf_safetensors_put_metadata(w, "format", "pt");
}

static struct wf_safetensors_set set_of(int64_t shard)
{
    make_tensors();
    return (struct wf_safetensors_set){.tensor = tensors, .count = TENSORS, .read = read_tensor, .describe = describe, .shard = shard};
}

static void ck_content(const char *path)
{
    wf_safetensors *file = ck_makes(wf_safetensors_open(path, error));
    ck_assert_int_eq(wf_safetensors_count(file), TENSORS);
    ck_assert_str_eq(wf_safetensors_metadata(file, "format"), "pt");
    for (int i = 0; i < TENSORS; i++) {
        const struct wf_safetensors_entry *e = wf_safetensors_find(file, made[i].name);
        float value[100] = {0};
        ck_assert(e && e->dtype == made[i].dtype && e->count == made[i].count);
        ck_assert_int_eq(e->offset % (int64_t)wf_dtype_size(e->dtype), 0);
        ck_ok(wf_safetensors_read(file, e->name, WF_F32, value, e->count, error));
        for (int64_t k = 0; k < e->count; k++) {
            const float expected = (float)(100 * i + k);
            ck_assert_msg(fabsf(value[k] - expected) <= (made[i].dtype == WF_F32 ? 0 : 1), "%s[%d]: %g", e->name, (int)k, (double)value[k]);
        }
    }
    wf_safetensors_close(file);
}

START_TEST(one_file)
{
    struct wf_set_size size;
    const struct wf_safetensors_set whole = set_of(0), fits = set_of(440);
    ck_ok(wf_safetensors_save_set(in_folder(""), &whole, &size, error));
    ck_assert(size.files == 1 && size.bytes == 12 + 6 + 400 + 2 + 20);
    ck_content(in_folder("model.safetensors"));
    ck_ok(wf_safetensors_save_set(in_folder(""), &fits, &size, error)); /* exactly the maximum */
    ck_assert_int_eq(size.files, 1);
    ck_assert(!wf_file_exists(in_folder("model.safetensors.index.json")));
}
END_TEST

START_TEST(shards)
{
    struct wf_set_size size;
    wf_error problem = {0};
    const struct wf_safetensors_set set = set_of(20);
    ck_ok(wf_safetensors_save_set(in_folder(""), &set, &size, error));
    /* a and b; c is larger than a shard; d joins a and b, which have 18 bytes; e would exceed; f is empty */
    static const char *const file[TENSORS] = {"1", "1", "2", "1", "3", "3"};
    ck_assert(size.files == 3 && size.bytes == 440);
    ck_content(in_folder("model.safetensors.index.json"));
    json_t *index = wf_json_load(in_folder("model.safetensors.index.json"), 1 << 20, &problem);
    ck_assert_ptr_nonnull(index);
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(index, "metadata"), "total_size")), 440);
    for (int i = 0; i < TENSORS; i++) {
        char name[64];
        snprintf(name, sizeof name, "model-0000%s-of-00003.safetensors", file[i]);
        ck_assert_str_eq(json_string_value(json_object_get(json_object_get(index, "weight_map"), made[i].name)), name);
    }
    json_decref(index);
}
END_TEST

START_TEST(failures)
{
    int64_t missing = 4;
    struct wf_safetensors_set set = set_of(20);
    set.ctx = &missing;
    ck_fails(wf_safetensors_save_set(in_folder(""), &set, NULL, error), WF_ERR_IO, "tensor e is not there");
    ck_assert(!wf_file_exists(in_folder("model-00003-of-00003.safetensors")) && !wf_file_exists(in_folder("model.safetensors.index.json")));
    set.ctx = NULL;
    ck_fails(wf_safetensors_save_set(in_folder("none"), &set, NULL, error), WF_ERR_IO, "none/model-00001-of-00003.safetensors");
    for (int n = 0;; n++) {
        wf_error problem = {0};
        wf_alloc_fail_after(n);
        const wf_status status = wf_safetensors_save_set(in_folder(""), &set, NULL, &problem);
        wf_alloc_fail_after(-1);
        ck_assert_int_eq(wf_alloc_live(), 0);
        if (status == WF_OK) {
            ck_assert_int_gt(n, 10);
            break;
        }
        ck_assert_int_eq(status, WF_ERR_MEMORY);
    }
}
END_TEST

START_TEST(sizes)
{
    static const struct {
        const char *text;
        int64_t bytes; /* 0: no size */
    } rows[] = {{"5GB", 5000000000},
                {"500MB", 500000000},
                {"1GiB", 1 << 30},
                {"2KiB", 2048},
                {"1.5kb", 1500},
                {"20 MB", 20000000},
                {"4096", 4096},
                {"7B", 7},
                {"3TB", 3000000000000},
                {"1TiB", INT64_C(1) << 40},
                {"", 0},
                {"GB", 0},
                {"0", 0},
                {"-1", 0},
                {"0.2", 0},
                {"1e9", 0},
                {"5 GBs", 0},
                {"5G", 0},
                {"1..5GB", 0},
                {"99999999999999TB", 0},
                {"0000000000000000000000000000000000000001", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t bytes = -1;
        const bool read = wf_bytes_parse(rows[i].text, &bytes);
        ck_assert_msg(read == (rows[i].bytes > 0) && (!read || bytes == rows[i].bytes), "%s: %lld", rows[i].text, (long long)bytes);
    }
}
END_TEST

START_TEST(folders)
{
    ck_ok(wf_folder_make(in_folder("a/inner"), error));
    write_text(in_folder("a/file"), "text");
    write_text(in_folder("a/inner/file"), "text");
    ck_assert(!wf_folder_empty(in_folder("a")) && !wf_folder_empty(in_folder("none")) && !wf_folder_empty(in_folder("a/file")));
    ck_ok(wf_folder_make(in_folder("b"), error));
    ck_assert(wf_folder_empty(in_folder("b")));
    ck_ok(wf_folder_rename(in_folder("a"), in_folder("b"), error)); /* an empty folder is replaced */
    ck_assert(wf_file_exists(in_folder("b/inner/file")) && !wf_folder_exists(in_folder("a")));
    ck_ok(wf_folder_make(in_folder("c"), error));
    ck_fails(wf_folder_rename(in_folder("c"), in_folder("b"), error), WF_ERR_IO, "cannot be renamed to");
    ck_ok(wf_folder_remove(in_folder("b"), error));
    ck_assert(!wf_folder_exists(in_folder("b")));
    ck_ok(wf_folder_remove(in_folder("b"), error)); /* missing */
    ck_ok(wf_folder_make(in_folder("deep/1/2"), error));
    write_text(in_folder("deep/1/2/file"), "text");
    ck_fails(wf_folder_remove(in_folder("deep"), error), WF_ERR_IO, "deep: cannot be removed: ");
    ck_assert(wf_file_exists(in_folder("deep/1/2/file")));
    /* a link is removed, not what it leads to */
    ck_ok(wf_folder_make(in_folder("links"), error));
    ck_assert_int_eq(symlink(in_folder("deep"), in_folder("links/link")), 0);
    ck_ok(wf_folder_remove(in_folder("links"), error));
    ck_assert(wf_file_exists(in_folder("deep/1/2/file")));
}
END_TEST

WF_TEST_MAIN("io/safetensors_set", one_file, shards, failures, sizes, folders)
