/* SPDX-License-Identifier: MIT */
/* Opens safetensors files and reads their tensors, with conversion between types of floats. */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include <weft/internal/files.h>
#include <weft/internal/foreign.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/reason.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include "safetensors_file.h"

enum { PIECE = 1 << 20 }; /* bytes that are read at once for a conversion */

static wf_status read_bytes(const wf_safetensors *file, int64_t offset, char *dst, int64_t bytes, wf_error *error)
{
    int64_t got = bytes;
    if (file->map.data) /* also if the file is mapped, because a read reports that it was truncated */
        got = wf_map_read(file->map.fd, offset, dst, bytes);
    else if (bytes)
        memcpy(dst, file->memory + offset, (size_t)bytes);
    if (got < 0)
        return wf_error_set(error, WF_ERR_IO, "%s: cannot be read at byte %" PRId64 ": %s", file->path, offset, wf_reason(errno));
    if (got < bytes)
        return wf_error_set(error, WF_ERR_IO, "%s: ends at byte %" PRId64 ", it was truncated after it was opened", file->path,
                            offset + got);
    return WF_OK;
}

static wf_status open_header(wf_safetensors *file, wf_error *error)
{
    uint64_t length = 0; /* little-endian, like all machines that meson.build allows */
    wf_status status = file->bytes < 8 ? WF_OK : read_bytes(file, 0, (char *)&length, 8, error);
    wf_error failure = {0};
    char *text = NULL;
    if (status != WF_OK)
        return status;
    if (file->bytes == 0)
        wf_error_set(&failure, WF_ERR_FORMAT, "not a safetensors file: 0 bytes: if it was copied or downloaded, do so again");
    else if (file->bytes < 8)
        wf_error_set(&failure, WF_ERR_FORMAT, "not a safetensors file: %" PRId64 " bytes, at least 10 are needed", file->bytes);
    else if (length > (uint64_t)SAFETENSORS_MAX_HEADER)
        wf_error_set(&failure, WF_ERR_FORMAT, "not a safetensors file: a header of %" PRIu64 " bytes, at most %" PRId64 " are allowed",
                     length, SAFETENSORS_MAX_HEADER);
    else if ((int64_t)length > file->bytes - 8)
        wf_error_set(&failure, WF_ERR_FORMAT,
                     "the header takes %" PRIu64 " bytes from byte 8 on, but the file ends at byte %" PRId64
                     ": is it truncated? Copy or download it again",
                     length, file->bytes);
    else if (length < 2)
        wf_error_set(&failure, WF_ERR_FORMAT, "not a safetensors file: a header of %" PRIu64 " bytes", length);
    else if (!(text = wf_alloc((size_t)length + 1)))
        wf_error_set(&failure, WF_ERR_MEMORY, "no memory for a header of %" PRIu64 " bytes", length);
    if (text) {
        text[length] = 0;
        file->start = 8 + (int64_t)length;
        status = read_bytes(file, 8, text, (int64_t)length, error);
        if (status == WF_OK)
            wf_safetensors_header(file, text, &failure);
    }
    wf_free(text);
    char head[WF_FOREIGN_HEAD];
    int64_t known = WF_MIN(file->bytes, WF_FOREIGN_HEAD);
    const char *foreign = failure.code == WF_ERR_FORMAT && read_bytes(file, 0, head, known, NULL) == WF_OK ? wf_foreign(head, known) : NULL;
    if (foreign)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: %s", file->path, foreign);
    return failure.code ? wf_error_set(error, failure.code, "%s: %s", file->path, failure.message) : status;
}

static wf_safetensors *new_file(const char *path, wf_error *error)
{
    wf_safetensors *file = wf_alloc_zero(1, sizeof *file);
    if (file && (file->path = wf_strdup(path))) {
        file->holders = 1;
        return file;
    }
    wf_free(file);
    wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to open it", path);
    return NULL;
}

const char *wf_safetensors_path(const wf_safetensors *file)
{
    return file->path;
}

wf_safetensors *wf_safetensors_open_with(const char *path, const struct wf_safetensors_options *options, wf_error *error)
{
    if (wf_needs(error, "path", path))
        return NULL;
    wf_safetensors *file = new_file(path, error);
    bool pages = options && options->map;
    if (file && safetensors_is_index(path)) {
        if (safetensors_open_index(file, options, error) == WF_OK)
            return file;
        wf_safetensors_close(file);
        return NULL;
    }
    if (file && wf_map_open(path, pages ? WF_MAP_PRIVATE : WF_MAP_NONE, &file->map, error) == WF_OK) {
        file->memory = pages ? file->map.data : NULL;
        file->bytes = file->map.bytes;
        if (open_header(file, error) == WF_OK)
            return file;
    }
    wf_safetensors_close(file);
    return NULL;
}

wf_safetensors *wf_safetensors_view(const void *data, int64_t bytes, const char *label, wf_error *error)
{
    if (wf_needs(error, "data, label", wf_some(data, bytes), label))
        return NULL;
    wf_safetensors *file = new_file(label, error);
    if (file) {
        file->memory = data;
        file->bytes = bytes;
        if (open_header(file, error) == WF_OK)
            return file;
    }
    wf_safetensors_close(file);
    return NULL;
}

void wf_safetensors_close(wf_safetensors *file)
{
    if (!file || atomic_fetch_sub(&file->holders, 1) > 1)
        return;
    for (int i = 0; i < file->shards; i++)
        wf_safetensors_close(file->shard[i]);
    wf_free(file->shard);
    wf_free(file->shard_of);
    wf_map_close(&file->map);
    json_decref(file->header);
    wf_free(file->entry);
    wf_free(file->by_name);
    wf_free(file->path);
    wf_free(file);
}

bool wf_safetensors_take_memory(const wf_safetensors *file)
{
    wf_safetensors *f = (wf_safetensors *)file;
    if ((f->shards > 0 ? f->shard[0] : f)->map.guard == 0 || atomic_exchange(&f->memory_taken, true))
        return false;
    atomic_fetch_add(&f->holders, 1);
    return true;
}

void wf_safetensors_return_memory(const wf_safetensors *file)
{
    wf_safetensors *f = (wf_safetensors *)file;
    f->memory_taken = false;
    wf_safetensors_close(f);
}

const char *wf_safetensors_harm(const wf_safetensors *file, const char **path)
{
    const char *harm = wf_map_harm(&file->map);
    *path = file->path;
    for (int i = 0; i < file->shards && !harm; i++)
        harm = wf_safetensors_harm(file->shard[i], path);
    return harm;
}

int64_t wf_safetensors_count(const wf_safetensors *file)
{
    if (!file)
        return 0;
    return file->count;
}

const struct wf_safetensors_entry *wf_safetensors_at(const wf_safetensors *file, int64_t index)
{
    if (!file)
        return NULL;
    return index >= 0 && index < file->count ? &file->entry[index] : NULL;
}

/* The file that has the bytes of an entry: a shard, if `file` is an index. */
static const wf_safetensors *holder(const wf_safetensors *file, const struct wf_safetensors_entry *entry)
{
    return file->shards > 0 ? file->shard[file->shard_of[entry - file->entry]] : file;
}

static wf_status check_bools(const wf_safetensors *file, const struct wf_safetensors_entry *entry, const unsigned char *data,
                             wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    for (int64_t i = 0; i < entry->bytes; i++)
        if (data[i] > 1)
            return wf_error_set(error, WF_ERR_FORMAT, "%s: tensor %s: the BOOL at byte %" PRId64 " is %d, not 0 or 1", file->path,
                                wf_text_quote(entry->name, quoted), entry->offset + i, data[i]);
    return WF_OK;
}

static bool is_convertible(wf_dtype dtype)
{
    return dtype == WF_F16 || dtype == WF_BF16 || dtype == WF_F32 || dtype == WF_F64;
}

static wf_status read_converted(const wf_safetensors *file, const struct wf_safetensors_entry *entry, wf_dtype dtype, char *dst,
                                wf_error *error)
{
    int64_t from = (int64_t)wf_dtype_size(entry->dtype), to = (int64_t)wf_dtype_size(dtype);
    char *piece = wf_alloc(PIECE);
    if (!piece)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to read it", file->path);
    wf_status status = WF_OK;
    for (int64_t done = 0, n; done < entry->count && status == WF_OK; done += n) {
        n = WF_MIN(entry->count - done, PIECE / from);
        status = read_bytes(file, entry->offset + done * from, piece, n * from, error);
        if (status == WF_OK)
            wf_convert(dtype, dst + done * to, entry->dtype, piece, n);
    }
    wf_free(piece);
    return status;
}

/* Reads elements at .. at + count - 1 of an entry into dst, as numbers of type `dtype`. */
static wf_status read_elements(const wf_safetensors *file, const struct wf_safetensors_entry *whole, wf_dtype dtype, int64_t at, void *dst,
                               int64_t count, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    file = holder(file, whole);
    const int64_t size = (int64_t)wf_dtype_size(whole->dtype);
    struct wf_safetensors_entry part = *whole, *entry = &part;
    part.offset += at * size;
    part.count = count;
    part.bytes = count * size;
    if (dtype == entry->dtype) {
        wf_status status = read_bytes(file, entry->offset, dst, entry->bytes, error);
        return status == WF_OK && dtype == WF_BOOL ? check_bools(file, entry, dst, error) : status;
    }
    if (!is_convertible(dtype) || !is_convertible(entry->dtype))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: tensor %s has dtype %s, which cannot be converted to %s", file->path,
                            wf_text_quote(entry->name, quoted), wf_dtype_name(entry->dtype), wf_dtype_name(dtype));
    return read_converted(file, entry, dtype, dst, error);
}

static const struct wf_safetensors_entry *find_entry(const wf_safetensors *file, const char *name, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    const struct wf_safetensors_entry *entry = wf_safetensors_find(file, name);
    if (!entry)
        wf_error_set(error, WF_ERR_FORMAT, "%s: does not contain the tensor %s", file->path, wf_text_quote(name, quoted));
    return entry;
}

wf_status wf_safetensors_read(const wf_safetensors *file, const char *name, wf_dtype dtype, void *dst, int64_t count, wf_error *error)
{
    if (wf_needs(error, "file, name, dst", file, name, wf_some(dst, count)))
        return WF_ERR_ARGUMENT;
    char quoted[WF_QUOTE_SIZE], shape[160];
    const struct wf_safetensors_entry *entry = find_entry(file, name, error);
    if (!entry)
        return WF_ERR_FORMAT;
    if (count != entry->count)
        return wf_error_set(error, WF_ERR_SHAPE, "%s: tensor %s has the shape %s, %" PRId64 " elements, but %" PRId64 " are required",
                            file->path, wf_text_quote(name, quoted), wf_shape_text(&entry->shape, shape, sizeof shape), entry->count,
                            count);
    return read_elements(file, entry, dtype, 0, dst, count, error);
}

wf_status wf_safetensors_read_range(const wf_safetensors *file, const char *name, wf_dtype dtype, int64_t at, void *dst, int64_t count,
                                    wf_error *error)
{
    if (wf_needs(error, "file, name, dst", file, name, wf_some(dst, count)))
        return WF_ERR_ARGUMENT;
    char quoted[WF_QUOTE_SIZE];
    const struct wf_safetensors_entry *entry = find_entry(file, name, error);
    if (!entry)
        return WF_ERR_FORMAT;
    if (at < 0 || count < 0 || at > entry->count - count)
        return wf_error_set(error, WF_ERR_SHAPE,
                            "%s: tensor %s has %" PRId64 " elements, but %" PRId64 " from element %" PRId64 " on are required", file->path,
                            wf_text_quote(name, quoted), entry->count, count, at);
    return read_elements(file, entry, dtype, at, dst, count, error);
}

const void *wf_safetensors_data(const wf_safetensors *file, const struct wf_safetensors_entry *entry)
{
    if (!file || !entry)
        return NULL;
    file = holder(file, entry);
    if (!file->memory)
        return NULL;
    const char *data = file->memory + entry->offset;
    return (uintptr_t)data % wf_dtype_size(entry->dtype) == 0 ? data : NULL;
}

const char *wf_safetensors_metadata(const wf_safetensors *file, const char *key)
{
    if (!file || !key)
        return NULL;
    return json_string_value(json_object_get(file->metadata, key));
}

bool wf_safetensors_metadata_at(const wf_safetensors *file, int64_t index, const char **key, const char **value)
{
    if (!file)
        return false;
    const char *name;
    json_t *text;
    json_object_foreach(file->metadata, name, text)
    {
        if (index-- == 0) {
            *key = name;
            *value = json_string_value(text);
            return true;
        }
    }
    return false;
}
