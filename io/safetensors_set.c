/* SPDX-License-Identifier: MIT */
/* Writes tensors to one safetensors file, or to several with an index. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <weft/file.h>
#include <weft/internal/json.h>
#include <weft/internal/safetensors_set.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

enum { FILE_NAME = 64, WIDEST = 8 /* bytes of an element */ };

/* Sets file[i] to the number of the file of tensor i, and returns the number of files. A tensor that is larger than a shard gets a file of
 * its own, and does not end the file that is being filled. */
static int divide(const struct wf_safetensors_set *set, int *file)
{
    int files = 0, open = -1;
    int64_t filled = 0;
    for (int64_t i = 0; i < set->count; i++) {
        const wf_array *a = &set->tensor[i].array;
        const int64_t bytes = wf_array_count(a) * (int64_t)wf_dtype_size(a->dtype);
        if (set->shard > 0 && bytes > set->shard) {
            file[i] = files++;
            continue;
        }
        if (open < 0 || (set->shard > 0 && filled > set->shard - bytes)) {
            open = files++;
            filled = 0;
        }
        file[i] = open;
        filled += bytes;
    }
    return files;
}

static const char *name_of(int file, int files, char name[FILE_NAME])
{
    if (files == 1)
        snprintf(name, FILE_NAME, "model.safetensors");
    else
        snprintf(name, FILE_NAME, "model-%05d-of-%05d.safetensors", file + 1, files);
    return name;
}

/* The reader of a single file. Its key is a pointer to the tensor. */
static wf_status read_tensor(void *ctx, const void *key, int64_t at, int64_t count, void *out, wf_error *error)
{
    const struct wf_safetensors_set *set = ctx;
    const struct wf_set_tensor *tensor;
    memcpy(&tensor, key, sizeof tensor);
    return set->read(set->ctx, tensor, at, count, out, error);
}

static wf_status write_file(const char *folder, const struct wf_safetensors_set *set, const int *file, int which, int files,
                            wf_error *error)
{
    char name[FILE_NAME];
    char *path = wf_format("%s/%s", folder, name_of(which, files, name));
    if (!path)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the name of a file", folder);
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    if (set->describe)
        set->describe(set->ctx, w);
    for (size_t width = WIDEST; width > 0; width /= 2)
        for (int64_t i = 0; i < set->count; i++) {
            const struct wf_set_tensor *tensor = &set->tensor[i];
            if (file[i] == which && wf_dtype_size(tensor->array.dtype) == width)
                wf_safetensors_put_from(w, tensor->name, &tensor->array, read_tensor, (void *)set, &tensor, sizeof tensor);
        }
    const wf_status status = wf_safetensors_commit(w, path, error);
    wf_free(path);
    return status;
}

static wf_status write_index(const char *folder, const struct wf_safetensors_set *set, const int *file, int files, int64_t bytes,
                             wf_error *error)
{
    char name[FILE_NAME];
    wf_json_init();
    json_t *index = json_object(), *metadata = json_object(), *map = json_object();
    wf_status status = wf_json_set_new(index, "metadata", metadata, error), added = wf_json_set_new(index, "weight_map", map, error);
    status = status == WF_OK ? added : status;
    if (status == WF_OK)
        status = wf_json_set_int(metadata, "total_size", bytes, error);
    for (int64_t i = 0; status == WF_OK && i < set->count; i++)
        status = wf_json_set_string(map, set->tensor[i].name, name_of(file[i], files, name), error);
    char *path = wf_format("%s/model.safetensors.index.json", folder);
    if (status == WF_OK && !path)
        status = wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the name of a file", folder);
    if (status == WF_OK)
        status = wf_json_save(path, index, 2, error);
    wf_free(path);
    json_decref(index);
    return status;
}

wf_status wf_safetensors_save_set(const char *folder, const struct wf_safetensors_set *set, struct wf_set_size *size, wf_error *error)
{
    int *file = wf_alloc((size_t)(set->count + 1) * sizeof *file);
    if (!file)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the files of %" PRId64 " tensors", folder, set->count);
    const int files = divide(set, file);
    struct wf_set_size all = {.files = files};
    for (int64_t i = 0; i < set->count; i++)
        all.bytes += wf_array_count(&set->tensor[i].array) * (int64_t)wf_dtype_size(set->tensor[i].array.dtype);
    wf_status status = WF_OK;
    for (int i = 0; status == WF_OK && i < files; i++)
        status = write_file(folder, set, file, i, files, error);
    if (status == WF_OK && files > 1)
        status = write_index(folder, set, file, files, all.bytes, error);
    wf_free(file);
    if (size)
        *size = all;
    return status;
}

bool wf_bytes_parse(const char *text, int64_t *bytes)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"KB", 1e3},
                 {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},    {"B", 1},        {"", 1}};
    char number[32];
    double value;
    const size_t digits = strspn(text, "0123456789.");
    const char *unit = text + digits + strspn(text + digits, " ");
    if (digits == 0 || digits >= sizeof number)
        return false;
    snprintf(number, sizeof number, "%.*s", (int)digits, text);
    if (!wf_text_to_double(number, &value))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcasecmp(units[i].name, unit) == 0) {
            value *= units[i].factor;
            *bytes = value >= 1 && value <= 0x1p62 ? (int64_t)value : 0;
            return *bytes > 0;
        }
    return false;
}
