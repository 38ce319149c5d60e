/* SPDX-License-Identifier: MIT */
/* Collects tensors and metadata, and writes them as a safetensors file. */
#include <inttypes.h>
#include <string.h>

#include <weft/internal/files.h>
#include <weft/internal/grow.h>
#include <weft/internal/json.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/safetensors_from.h>
#include <weft/internal/text.h>
#include <weft/memory.h>
#include <weft/safetensors.h>

#include "array_write.h"
#include "safetensors_file.h"

enum { KEY = 64 };
/* A tensor to be written. Its elements are in the array, or come from `read`. */
struct part {
    wf_array array;
    wf_safetensors_from *read; /* NULL: the elements are in `array` */
    void *ctx;
    char key[KEY] __attribute__((aligned(16)));
};

struct wf_safetensors_writer {
    json_t *header;   /* the header of the file, with "__metadata__" even if that is empty */
    json_t *metadata; /* an object in `header` */
    struct part *part;
    int64_t count; /* tensors */
    int64_t room;  /* tensors for which `part` has memory */
    int64_t bytes; /* size of all tensors so far */
    wf_error failure;
};

wf_safetensors_writer *wf_safetensors_writer_new(void)
{
    wf_safetensors_writer *w = wf_alloc_zero(1, sizeof *w);
    wf_json_init();
    if (w && (w->header = json_pack("{s:{}}", "__metadata__"))) {
        w->metadata = json_object_get(w->header, "__metadata__");
        return w;
    }
    wf_free(w);
    return NULL;
}

void wf_safetensors_discard(wf_safetensors_writer *w)
{
    if (!w)
        return;
    json_decref(w->header);
    wf_free(w->part);
    wf_free(w);
}

void wf_safetensors_put_metadata(wf_safetensors_writer *w, const char *key, const char *value)
{
    char quoted[WF_QUOTE_SIZE];
    if (!w || w->failure.code)
        return;
    if (json_object_get(w->metadata, key))
        wf_error_set(&w->failure, WF_ERR_ARGUMENT, "the metadata key %s is written twice", wf_text_quote(key, quoted));
    else if (wf_json_set_string(w->metadata, key, value, &w->failure) != WF_OK)
        wf_error_prefix(&w->failure, "metadata");
}

/* Returns the entry of a tensor in the header, or NULL if there is no memory. The tensor takes the bytes begin .. end - 1 behind the
 * header. */
static json_t *describe(const wf_array *a, int64_t begin, int64_t end)
{
    wf_json_memory_clear();
    json_t *info =
        json_pack("{s:s,s:[],s:[I,I]}", "dtype", wf_dtype_name(a->dtype), "shape", "data_offsets", (json_int_t)begin, (json_int_t)end);
    for (int d = 0; d < a->ndim; d++)
        json_array_append_new(json_object_get(info, "shape"), json_integer(a->dim[d]));
    if (!wf_json_memory_failed())
        return info;
    json_decref(info);
    return NULL;
}

static void put(wf_safetensors_writer *w, const char *name, const struct part *part)
{
    char quoted[WF_QUOTE_SIZE];
    int64_t bytes, end;
    if (!w || w->failure.code)
        return;
    wf_text_quote(name, quoted);
    if (!wf_array_writable(&part->array, part->read != NULL, &bytes))
        wf_error_set(&w->failure, WF_ERR_ARGUMENT, "the tensor %s cannot be written: its dtype, shape or data are not valid", quoted);
    else if (!strcmp(name, "__metadata__"))
        wf_error_set(&w->failure, WF_ERR_ARGUMENT, "a tensor cannot have the name __metadata__, which the format reserves");
    else if (json_object_get(w->header, name))
        wf_error_set(&w->failure, WF_ERR_ARGUMENT, "the tensor %s is written twice", quoted);
    else if (__builtin_add_overflow(w->bytes, bytes, &end))
        wf_error_set(&w->failure, WF_ERR_ARGUMENT, "the file would be larger than the safetensors format allows");
    else if (!wf_grow(&w->part, &w->room, w->count + 1, sizeof *w->part))
        wf_error_set(&w->failure, WF_ERR_MEMORY, "no memory to write the tensor %s", quoted);
    else if (wf_json_set_new(w->header, name, describe(&part->array, w->bytes, end), &w->failure) == WF_OK) {
        w->part[w->count++] = *part;
        w->bytes = end;
    }
}

void wf_safetensors_put(wf_safetensors_writer *w, const char *name, const wf_array *array)
{
    put(w, name, &(struct part){.array = *array});
}

void wf_safetensors_put_from(wf_safetensors_writer *w, const char *name, const wf_array *array, wf_safetensors_from *read, void *ctx,
                             const void *key, size_t bytes)
{
    struct part part = {.array = *array, .read = read, .ctx = ctx};
    if (w && bytes > KEY)
        wf_error_set(&w->failure, WF_ERR_ARGUMENT, "wf_safetensors_put_from: a key of %zu bytes, and %d are possible", bytes, KEY);
    else if (bytes > 0)
        memcpy(part.key, key, bytes);
    put(w, name, &part);
}

void wf_safetensors_refuse(wf_safetensors_writer *w, wf_status status, const char *message)
{
    if (w)
        wf_error_set(&w->failure, status, "%s", message);
}

static void write_from(wf_file_writer *out, const struct part *part, wf_error *failure)
{
    enum { PIECE = 1 << 20 };
    const int64_t size = (int64_t)wf_dtype_size(part->array.dtype), total = wf_array_count(&part->array);
    char *piece = failure->code ? NULL : wf_alloc(PIECE);
    if (!piece)
        wf_error_set(failure, WF_ERR_MEMORY, "no memory to write a tensor");
    for (int64_t at = 0, n; !failure->code && at < total; at += n) {
        n = WF_MIN(total - at, PIECE / size);
        /* wf_file_commit reports a failure to write. */
        if (part->read(part->ctx, part->key, at, n, piece, failure) == WF_OK && wf_file_append(out, piece, n * size) != WF_OK)
            break;
    }
    wf_free(piece);
}

/* Writes the length of the header, the header with blanks behind it, and the tensors. */
wf_status wf_safetensors_commit(wf_safetensors_writer *w, const char *path, wf_error *error)
{
    if (wf_needs(error, "path", path))
        return WF_ERR_ARGUMENT;
    if (!w)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to write it", path);
    wf_error failure = w->failure; /* `error` may be NULL or hold an older error */
    int64_t bytes = 0;
    if (json_object_size(w->metadata) == 0)
        json_object_del(w->header, "__metadata__");
    char *text = failure.code ? NULL : wf_json_text(w->header, 0, &bytes, &failure);
    uint64_t length = ((uint64_t)bytes + 7) / 8 * 8; /* little-endian, like all machines that meson.build allows */
    if (length > (uint64_t)SAFETENSORS_MAX_HEADER)
        wf_error_set(&failure, WF_ERR_ARGUMENT, "the file would be larger than the safetensors format allows");
    wf_error_prefix(&failure, "%s", path);
    wf_file_writer *out = failure.code ? NULL : wf_file_begin(path, &failure);
    wf_file_append(out, &length, sizeof length);
    wf_file_append(out, text, bytes);
    wf_file_append(out, "       ", (int64_t)length - bytes);
    for (int64_t i = 0; out && i < w->count; i++)
        if (w->part[i].read)
            write_from(out, &w->part[i], &failure);
        else
            wf_array_write(out, &w->part[i].array);
    if (failure.code && out)
        wf_file_abort(out);
    wf_status status = failure.code ? failure.code : wf_file_commit(out, &failure);
    wf_free(text);
    wf_safetensors_discard(w);
    return status == WF_OK ? WF_OK : wf_error_set(error, status, "%s", failure.message);
}
