/* SPDX-License-Identifier: MIT */
/* Parses and checks the header of a safetensors file. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include "safetensors_file.h"

/* Levels of nesting: the object of the header, the object of a tensor, its shape. */
enum { DEPTH = 3 };

static wf_status read_dtype(const json_t *info, struct wf_safetensors_entry *entry, wf_error *error)
{
    const json_t *value = json_object_get(info, "dtype");
    char quoted[WF_QUOTE_SIZE];
    if (!json_is_string(value))
        return wf_error_set(error, WF_ERR_FORMAT, "\"dtype\" is missing or not a string");
    for (int i = 0; i < WF_DTYPE_COUNT; i++)
        if (!strcmp(json_string_value(value), wf_dtype_name((wf_dtype)i))) {
            entry->dtype = (wf_dtype)i;
            return WF_OK;
        }
    return wf_error_set(error, WF_ERR_FORMAT, "unknown dtype %s", wf_text_quote(json_string_value(value), quoted));
}

static wf_status read_shape(const json_t *info, struct wf_safetensors_entry *entry, wf_error *error)
{
    const json_t *shape = json_object_get(info, "shape");
    if (!json_is_array(shape))
        return wf_error_set(error, WF_ERR_FORMAT, "\"shape\" is missing or not an array");
    if (json_array_size(shape) > WF_MAX_DIMS)
        return wf_error_set(error, WF_ERR_FORMAT, "%zu dimensions, at most %d are supported", json_array_size(shape), WF_MAX_DIMS);
    entry->shape.ndim = (int)json_array_size(shape);
    for (int i = 0; i < entry->shape.ndim; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return wf_error_set(error, WF_ERR_FORMAT, "\"shape\" must contain non-negative integers only");
        entry->shape.dim[i] = json_integer_value(dim);
    }
    entry->count = wf_shape_count(&entry->shape);
    if (entry->count < 0 || __builtin_mul_overflow(entry->count, (int64_t)wf_dtype_size(entry->dtype), &entry->bytes))
        return wf_error_set(error, WF_ERR_FORMAT, "the shape has too many elements");
    return WF_OK;
}

static wf_status read_range(const wf_safetensors *file, const json_t *info, struct wf_safetensors_entry *entry, wf_error *error)
{
    const json_t *range = json_object_get(info, "data_offsets");
    const json_t *from = json_array_get(range, 0), *to = json_array_get(range, 1); /* NULL if `range` is not an array */
    if (!json_is_integer(from) || !json_is_integer(to) || json_array_size(range) != 2)
        return wf_error_set(error, WF_ERR_FORMAT, "\"data_offsets\" is missing or not two integers");
    int64_t begin = json_integer_value(from), end = json_integer_value(to), room = file->bytes - file->start;
    char shape[160];
    if (begin < 0 || end < begin)
        return wf_error_set(error, WF_ERR_FORMAT, "the byte range %" PRId64 " to %" PRId64 " is negative or reversed", begin, end);
    if (end - begin != entry->bytes)
        return wf_error_set(error, WF_ERR_FORMAT, "the byte range has %" PRId64 " bytes, but %s %s takes %" PRId64, end - begin,
                            wf_dtype_name(entry->dtype), wf_shape_text(&entry->shape, shape, sizeof shape), entry->bytes);
    if (end > room)
        return wf_error_set(error, WF_ERR_FORMAT,
                            "ends %" PRId64 " bytes after the end of the file (byte %" PRId64
                            "): is it truncated? Copy or download it again",
                            end - room, file->bytes);
    entry->offset = file->start + begin;
    return WF_OK;
}

static wf_status read_metadata(wf_safetensors *file, json_t *metadata, wf_error *error)
{
    if (!json_is_object(metadata))
        return wf_error_set(error, WF_ERR_FORMAT, "__metadata__ is not an object");
    const char *key;
    json_t *value;
    char quoted[WF_QUOTE_SIZE];
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return wf_error_set(error, WF_ERR_FORMAT, "__metadata__: %s is not a string", wf_text_quote(key, quoted));
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
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for %" PRId64 " tensors", room);
    const char *key;
    json_t *value;
    char quoted[WF_QUOTE_SIZE];
    json_object_foreach(file->header, key, value)
    {
        struct wf_safetensors_entry *entry = &file->entry[file->count];
        bool is_metadata = !strcmp(key, "__metadata__");
        entry->name = key;
        if (is_metadata)
            read_metadata(file, value, error);
        else if (!json_is_object(value))
            wf_error_set(error, WF_ERR_FORMAT, "its description is not a JSON object");
        else if (read_dtype(value, entry, error) == WF_OK && read_shape(value, entry, error) == WF_OK &&
                 read_range(file, value, entry, error) == WF_OK)
            file->by_name[file->count++] = entry;
        if (error->code && !is_metadata)
            wf_error_prefix(error, "tensor %s", wf_text_quote(key, quoted));
        if (error->code)
            return error->code;
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

const struct wf_safetensors_entry *wf_safetensors_find(const wf_safetensors *file, const char *name)
{
    if (!file || !name)
        return NULL;
    const struct wf_safetensors_entry *wanted = &(struct wf_safetensors_entry){.name = name}, **found;
    found = bsearch(&wanted, file->by_name, (size_t)file->count, sizeof *file->by_name, by_name);
    return found ? *found : NULL;
}

void safetensors_sort(wf_safetensors *file)
{
    qsort(file->by_name, (size_t)file->count, sizeof *file->by_name, by_name);
}

/* Checks that every byte behind the header belongs to exactly one tensor. For this check by_name is sorted by offset, and afterwards by
 * name. */
static wf_status check_cover(wf_safetensors *file, wf_error *error)
{
    char quoted[2][WF_QUOTE_SIZE];
    int64_t end = file->start;
    qsort(file->by_name, (size_t)file->count, sizeof *file->by_name, by_place);
    for (int64_t i = 0; i < file->count; i++) {
        const struct wf_safetensors_entry *entry = file->by_name[i];
        wf_text_quote(entry->name, quoted[0]);
        if (entry->offset < end)
            return wf_error_set(error, WF_ERR_FORMAT, "the tensors %s and %s overlap at byte %" PRId64,
                                wf_text_quote(file->by_name[i - 1]->name, quoted[1]), quoted[0], entry->offset);
        if (entry->offset > end)
            return wf_error_set(error, WF_ERR_FORMAT, "%" PRId64 " bytes before tensor %s, from byte %" PRId64 " on, belong to no tensor",
                                entry->offset - end, quoted[0], end);
        end = entry->offset + entry->bytes;
    }
    if (end < file->bytes)
        return wf_error_set(error, WF_ERR_FORMAT, "%" PRId64 " bytes after the last tensor, from byte %" PRId64 " on, belong to no tensor",
                            file->bytes - end, end);
    safetensors_sort(file);
    return WF_OK;
}

wf_status wf_safetensors_header(wf_safetensors *file, const char *text, wf_error *error)
{
    int64_t bytes = file->start - 8;
    if (text[0] != '{')
        return wf_error_set(error, WF_ERR_FORMAT, "not a safetensors file: the header at byte 8 does not begin with {");
    int64_t bad = wf_utf8_check(text, bytes);
    if (bad >= 0)
        return wf_error_set(error, WF_ERR_FORMAT, "the header is not UTF-8 at byte %" PRId64, 8 + bad);
    json_error_t failure;
    file->header = wf_json_decode(text, bytes, DEPTH, &failure);
    if (!file->header && wf_json_memory_failed())
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a header of %" PRId64 " bytes", bytes);
    if (!file->header)
        return wf_error_set(error, WF_ERR_FORMAT, "invalid header near byte %d: %s", 8 + failure.position, failure.text);
    wf_status status = read_entries(file, error);
    return status == WF_OK ? check_cover(file, error) : status;
}
