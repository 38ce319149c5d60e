/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/grow.h>
#include <weft/internal/string.h>
#include <weft/internal/text.h>
#include <weft/memory.h>
#include <weft/safetensors.h>

#include "array_write.h"
#include "safetensors_file.h"

struct item {
    char *name;
    char *value;    /* of metadata */
    wf_array array; /* of a tensor */
};

struct list {
    struct item *item;
    int64_t count, room;
};

struct wf_safetensors_writer {
    struct list tensors, metadata;
    wf_error failure;
};

wf_safetensors_writer *wf_safetensors_writer_new(void)
{
    return wf_alloc_zero(1, sizeof(wf_safetensors_writer));
}

static void free_list(struct list *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        wf_free(list->item[i].name);
        wf_free(list->item[i].value);
    }
    wf_free(list->item);
}

void wf_safetensors_discard(wf_safetensors_writer *w)
{
    if (!w)
        return;
    free_list(&w->tensors);
    free_list(&w->metadata);
    wf_free(w);
}

static struct item *add(wf_safetensors_writer *w, struct list *list, const char *name)
{
    char quoted[WF_QUOTE_SIZE];
    if (wf_utf8_check(name, (int64_t)strlen(name)) >= 0) {
        wf_error_set(&w->failure, WF_ERR_ARGUMENT, "the name %s is not UTF-8", wf_text_quote(name, quoted));
        return NULL;
    }
    char *copy = wf_grow(&list->item, &list->room, list->count + 1, sizeof *list->item) ? wf_strdup(name) : NULL;
    if (!copy) {
        wf_error_set(&w->failure, WF_ERR_MEMORY, "no memory to write the tensor %s", wf_text_quote(name, quoted));
        return NULL;
    }
    struct item *item = &list->item[list->count++];
    *item = (struct item){.name = copy};
    return item;
}

void wf_safetensors_put_metadata(wf_safetensors_writer *w, const char *key, const char *value)
{
    char quoted[WF_QUOTE_SIZE];
    if (!w || w->failure.code)
        return;
    if (wf_utf8_check(value, (int64_t)strlen(value)) >= 0) {
        wf_error_set(&w->failure, WF_ERR_ARGUMENT, "the metadata of %s is not UTF-8", wf_text_quote(key, quoted));
        return;
    }
    struct item *item = add(w, &w->metadata, key);
    if (item && !(item->value = wf_strdup(value)))
        wf_error_set(&w->failure, WF_ERR_MEMORY, "no memory to write the metadata of %s", wf_text_quote(key, quoted));
}

void wf_safetensors_put(wf_safetensors_writer *w, const char *name, const wf_array *array)
{
    char quoted[WF_QUOTE_SIZE];
    if (!w || w->failure.code)
        return;
    int64_t count = -1, bytes;
    if (array->dtype < WF_DTYPE_COUNT && array->ndim >= 0 && array->ndim <= WF_MAX_DIMS)
        count = wf_array_count(array);
    if (count < 0 || (count > 0 && !array->data) || __builtin_mul_overflow(count, (int64_t)wf_dtype_size(array->dtype), &bytes)) {
        wf_error_set(&w->failure, WF_ERR_ARGUMENT, "the tensor %s cannot be written: its dtype, shape or data are not valid",
                     wf_text_quote(name, quoted));
        return;
    }
    if (!strcmp(name, "__metadata__")) {
        wf_error_set(&w->failure, WF_ERR_ARGUMENT, "a tensor cannot have the name __metadata__, which the format keeps for itself");
        return;
    }
    struct item *item = add(w, &w->tensors, name);
    if (item)
        item->array = *array;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static wf_status check_unique(const struct list *list, const char *path, const char *what, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    const char **names = wf_alloc((size_t)list->count * sizeof *names);
    if (!names)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to write it", path);
    for (int64_t i = 0; i < list->count; i++)
        names[i] = list->item[i].name;
    if (list->count)
        qsort(names, (size_t)list->count, sizeof *names, by_name);
    wf_status status = WF_OK;
    for (int64_t i = 1; i < list->count && status == WF_OK; i++)
        if (!strcmp(names[i - 1], names[i]))
            status = wf_error_set(error, WF_ERR_ARGUMENT, "%s: the %s %s is written twice", path, what, wf_text_quote(names[i], quoted));
    wf_free(names);
    return status;
}

static void put_string(struct wf_string *out, const char *text)
{
    wf_string_json(out, text, (int64_t)strlen(text));
}

/* The header with its length before it. False when the tensors have more bytes than can be counted. */
static bool make_header(const wf_safetensors_writer *w, struct wf_string *out)
{
    const char *separator = "{";
    wf_string_add(out, "\0\0\0\0\0\0\0\0", 8);
    if (w->metadata.count) {
        wf_string_text(out, "{\"__metadata__\":");
        for (int64_t i = 0; i < w->metadata.count; i++) {
            wf_string_text(out, i ? "," : "{");
            put_string(out, w->metadata.item[i].name);
            wf_string_text(out, ":");
            put_string(out, w->metadata.item[i].value);
        }
        wf_string_text(out, "}");
        separator = ",";
    }
    int64_t begin = 0, end;
    for (int64_t i = 0; i < w->tensors.count; i++, begin = end) {
        const wf_array *a = &w->tensors.item[i].array;
        if (__builtin_add_overflow(begin, wf_array_count(a) * (int64_t)wf_dtype_size(a->dtype), &end))
            return false;
        wf_string_text(out, separator);
        separator = ",";
        put_string(out, w->tensors.item[i].name);
        wf_string_text(out, ":{\"dtype\":\"");
        wf_string_text(out, wf_dtype_name(a->dtype));
        wf_string_text(out, "\",\"shape\":[");
        for (int d = 0; d < a->ndim; d++) {
            wf_string_text(out, d ? "," : "");
            wf_string_format(out, "%" PRId64, a->dim[d]);
        }
        wf_string_text(out, "],\"data_offsets\":[");
        wf_string_format(out, "%" PRId64, begin);
        wf_string_text(out, ",");
        wf_string_format(out, "%" PRId64, end);
        wf_string_text(out, "]}");
    }
    wf_string_text(out, *separator == '{' ? "{}" : "}");
    wf_string_add(out, "       ", (8 - out->length % 8) % 8);
    if (!out->failed)
        for (int i = 0; i < 8; i++)
            out->data[i] = (char)((uint64_t)(out->length - 8) >> 8 * i);
    return true;
}

static wf_status write_all(const wf_safetensors_writer *w, const struct wf_string *header, const char *path, wf_error *error)
{
    char *piece = wf_alloc(ARRAY_PIECE);
    if (!piece)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to write it", path);
    wf_error failure = {0}; /* of this call alone: the caller's may hold an older one */
    wf_file_writer *out = wf_file_begin(path, &failure);
    wf_file_append(out, header->data, header->length);
    for (int64_t i = 0; i < w->tensors.count; i++)
        wf_array_write(out, &w->tensors.item[i].array, piece);
    wf_status status = wf_file_commit(out, &failure);
    wf_free(piece);
    return status == WF_OK ? WF_OK : wf_error_set(error, status, "%s", failure.message);
}

static wf_status commit(const wf_safetensors_writer *w, struct wf_string *header, const char *path, wf_error *error)
{
    if (w->failure.code)
        return wf_error_set(error, w->failure.code, "%s: %s", path, w->failure.message);
    wf_status status = check_unique(&w->tensors, path, "tensor", error);
    if (status == WF_OK)
        status = check_unique(&w->metadata, path, "metadata key", error);
    if (status != WF_OK)
        return status;
    bool counted = make_header(w, header);
    if (header->failed)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the header", path);
    if (!counted || header->length - 8 > SAFETENSORS_MAX_HEADER)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: more than a safetensors file can hold", path);
    return write_all(w, header, path, error);
}

wf_status wf_safetensors_commit(wf_safetensors_writer *w, const char *path, wf_error *error)
{
    if (!w)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to write it", path);
    struct wf_string header = {0};
    wf_status status = commit(w, &header, path, error);
    wf_free(header.data);
    wf_safetensors_discard(w);
    return status;
}
