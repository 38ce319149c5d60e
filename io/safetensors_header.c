/* SPDX-License-Identifier: MIT */
/* The header of a safetensors file: what it says, and whether that can be true. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/text.h>
#include <weft/memory.h>

#include "json_decode.h"
#include "safetensors_file.h"

/* The header's object, a tensor's object, its shape: no deeper. */
enum { DEPTH = 3 };

#define WRONG(file, entry, what) wrong_tensor(file, (entry)->name, what, error)

static wf_status wrong_tensor(const wf_safetensors *file, const char *name, const char *what, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    return wf_error_set(error, WF_ERR_FORMAT, "%s: tensor %s: %s", file->path, wf_text_quote(name, quoted), what);
}

static wf_status read_dtype(const wf_safetensors *file, const json_t *info, struct wf_safetensors_entry *entry, wf_error *error)
{
    const json_t *value = json_object_get(info, "dtype");
    if (!json_is_string(value))
        return WRONG(file, entry, "\"dtype\" is missing or not a string");
    for (int i = 0; i < WF_DTYPE_COUNT; i++)
        if (!strcmp(json_string_value(value), wf_dtype_name((wf_dtype)i))) {
            entry->dtype = (wf_dtype)i;
            return WF_OK;
        }
    char quoted[2][WF_QUOTE_SIZE];
    return wf_error_set(error, WF_ERR_FORMAT, "%s: tensor %s: dtype %s is not known", file->path, wf_text_quote(entry->name, quoted[0]),
                        wf_text_quote(json_string_value(value), quoted[1]));
}

static wf_status read_shape(const wf_safetensors *file, const json_t *info, struct wf_safetensors_entry *entry, wf_error *error)
{
    const json_t *shape = json_object_get(info, "shape");
    char quoted[WF_QUOTE_SIZE];
    if (!json_is_array(shape))
        return WRONG(file, entry, "\"shape\" is missing or not an array");
    if (json_array_size(shape) > WF_MAX_DIMS)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: tensor %s: %zu dimensions, at most %d are supported", file->path,
                            wf_text_quote(entry->name, quoted), json_array_size(shape), WF_MAX_DIMS);
    entry->shape.ndim = (int)json_array_size(shape);
    for (int i = 0; i < entry->shape.ndim; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return WRONG(file, entry, "\"shape\" holds something other than integers from 0");
        entry->shape.dim[i] = json_integer_value(dim);
    }
    entry->count = wf_shape_count(&entry->shape);
    if (entry->count < 0 || __builtin_mul_overflow(entry->count, (int64_t)wf_dtype_size(entry->dtype), &entry->bytes))
        return WRONG(file, entry, "the shape has more elements than can be counted");
    return WF_OK;
}

static wf_status read_range(const wf_safetensors *file, const json_t *info, struct wf_safetensors_entry *entry, wf_error *error)
{
    const json_t *range = json_object_get(info, "data_offsets");
    const json_t *from = json_array_get(range, 0), *to = json_array_get(range, 1); /* NULL when range is no array */
    if (!json_is_integer(from) || !json_is_integer(to) || json_array_size(range) != 2)
        return WRONG(file, entry, "\"data_offsets\" is missing or not two integers");
    int64_t begin = json_integer_value(from), end = json_integer_value(to);
    char quoted[WF_QUOTE_SIZE], shape[160];
    if (begin < 0 || end < begin)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: tensor %s: the byte range %" PRId64 " to %" PRId64 " runs backwards", file->path,
                            wf_text_quote(entry->name, quoted), begin, end);
    if (end - begin != entry->bytes)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: tensor %s: %" PRId64 " bytes given, but %s %s takes %" PRId64, file->path,
                            wf_text_quote(entry->name, quoted), end - begin, wf_dtype_name(entry->dtype),
                            wf_shape_text(&entry->shape, shape, sizeof shape), entry->bytes);
    if (end > file->bytes - file->start)
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s: tensor %s ends %" PRId64 " bytes behind the file's end (byte %" PRId64 "): is it truncated?", file->path,
                            wf_text_quote(entry->name, quoted), end - (file->bytes - file->start), file->bytes);
    entry->offset = file->start + begin;
    return WF_OK;
}

static wf_status read_metadata(wf_safetensors *file, json_t *metadata, wf_error *error)
{
    if (!json_is_object(metadata))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: __metadata__ is not an object", file->path);
    const char *key;
    json_t *value;
    char quoted[WF_QUOTE_SIZE];
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return wf_error_set(error, WF_ERR_FORMAT, "%s: __metadata__: %s is not a string", file->path, wf_text_quote(key, quoted));
    }
    file->metadata = metadata;
    return WF_OK;
}

static wf_status read_entries(wf_safetensors *file, wf_error *error)
{
    int64_t room = (int64_t)json_object_size(file->header);
    file->entry = wf_alloc_zero((size_t)room + 1, sizeof *file->entry);
    file->by_name = wf_alloc_zero((size_t)room + 1, sizeof *file->by_name);
    if (!file->entry || !file->by_name)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for %" PRId64 " tensors", file->path, room);
    const char *key;
    json_t *value;
    json_object_foreach(file->header, key, value)
    {
        wf_status status;
        if (!strcmp(key, "__metadata__")) {
            if ((status = read_metadata(file, value, error)) != WF_OK)
                return status;
            continue;
        }
        struct wf_safetensors_entry *entry = &file->entry[file->count];
        entry->name = key;
        if (!json_is_object(value))
            return WRONG(file, entry, "is not described by an object");
        if ((status = read_dtype(file, value, entry, error)) != WF_OK || (status = read_shape(file, value, entry, error)) != WF_OK ||
            (status = read_range(file, value, entry, error)) != WF_OK)
            return status;
        file->by_name[file->count++] = entry;
    }
    return WF_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct wf_safetensors_entry *x = *(const struct wf_safetensors_entry *const *)a,
                                      *y = *(const struct wf_safetensors_entry *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static int by_name(const void *a, const void *b)
{
    const struct wf_safetensors_entry *x = *(const struct wf_safetensors_entry *const *)a,
                                      *y = *(const struct wf_safetensors_entry *const *)b;
    return strcmp(x->name, y->name);
}

/* Every byte behind the header belongs to one tensor. by_name serves to sort by place first. */
static wf_status check_cover(wf_safetensors *file, wf_error *error)
{
    char quoted[2][WF_QUOTE_SIZE];
    int64_t end = file->start;
    if (file->count)
        qsort(file->by_name, (size_t)file->count, sizeof *file->by_name, by_place);
    for (int64_t i = 0; i < file->count; i++) {
        const struct wf_safetensors_entry *entry = file->by_name[i];
        if (entry->offset < end)
            return wf_error_set(error, WF_ERR_FORMAT, "%s: the tensors %s and %s overlap at byte %" PRId64, file->path,
                                wf_text_quote(file->by_name[i - 1]->name, quoted[0]), wf_text_quote(entry->name, quoted[1]), entry->offset);
        if (entry->offset > end)
            return wf_error_set(error, WF_ERR_FORMAT,
                                "%s: %" PRId64 " bytes from byte %" PRId64 " on, before tensor %s, belong to no tensor", file->path,
                                entry->offset - end, end, wf_text_quote(entry->name, quoted[0]));
        end = entry->offset + entry->bytes;
    }
    if (end < file->bytes)
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s: %" PRId64 " bytes behind the last tensor, from byte %" PRId64 " on, belong to no tensor", file->path,
                            file->bytes - end, end);
    if (file->count)
        qsort(file->by_name, (size_t)file->count, sizeof *file->by_name, by_name);
    return WF_OK;
}

wf_status wf_safetensors_header(wf_safetensors *file, const char *text, wf_error *error)
{
    int64_t bytes = file->start - 8;
    if (text[0] != '{')
        return wf_error_set(error, WF_ERR_FORMAT, "%s: not a safetensors file: the header at byte 8 does not begin with {", file->path);
    int64_t bad = wf_utf8_check(text, bytes);
    if (bad >= 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the header is not UTF-8 at byte %" PRId64, file->path, 8 + bad);
    struct json_failure failure;
    file->header = wf_json_decode(text, bytes, DEPTH, &failure);
    if (!file->header && failure.no_memory)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for a header of %" PRId64 " bytes", file->path, bytes);
    if (!file->header)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the header is wrong near byte %" PRId64 ": %s", file->path, 8 + failure.offset,
                            failure.reason);
    wf_status status = read_entries(file, error);
    return status == WF_OK ? check_cover(file, error) : status;
}
