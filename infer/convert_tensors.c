/* SPDX-License-Identifier: MIT */
/* Lists the tensors of a conversion, and reads their elements from the old file: stacked, divided, transposed and rounded. */
#include "convert_tensors.h"

#include <string.h>

#include <weft/internal/files.h>
#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

static bool is_float(wf_dtype dtype)
{
    return dtype == WF_F16 || dtype == WF_BF16 || dtype == WF_F32 || dtype == WF_F64;
}

/* A dtype that holds the values of both. */
static wf_dtype common(wf_dtype a, wf_dtype b)
{
    return a == b ? a : a == WF_F64 || b == WF_F64 ? WF_F64 : WF_F32;
}

static wf_status no_memory(wf_error *error)
{
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for a list of tensors");
}

/* --- lists --------------------------------------------------------------------------------------------------------- */

static wf_status add_source(struct tensors *t, const struct source *s, const char *name, wf_error *error)
{
    if (!wf_grow(&t->source, &t->source_room, t->sources + 1, sizeof *t->source))
        return no_memory(error);
    struct source *to = &t->source[t->sources];
    *to = *s;
    to->name = wf_strdup(name);
    if (!to->name)
        return no_memory(error);
    t->sources++;
    return wf_name_table_add(&t->by_name, to->name, t->sources - 1) ? WF_OK : no_memory(error);
}

static wf_status take_source(void *ctx, const char *name, const wf_shape *shape, const struct wf_sources *sources, wf_error *error)
{
    struct tensors *t = ctx;
    struct source s = {.shape = *shape,
                       .count = sources->count,
                       .transposed = sources->transposed && shape->ndim == 2,
                       .part = sources->part,
                       .parts = sources->parts};
    int64_t elements = 0;
    for (int i = 0; i < s.count; i++) {
        s.entry[i] = wf_safetensors_find(t->file, sources->name[i]);
        const wf_dtype dtype = s.entry[i]->dtype;
        s.dtype = i == 0 ? dtype : common(dtype, s.dtype);
        if (!is_float(dtype))
            return wf_error_set(error, WF_ERR_FORMAT, "%s: tensor %s has dtype %s, not one of floats", wf_safetensors_path(t->file),
                                sources->name[i], wf_dtype_name(dtype));
        elements += s.entry[i]->count / s.parts;
    }
    if (elements != wf_shape_count(shape)) /* by a rule that this file does not know */
        return wf_error_set(error, WF_ERR_SHAPE, "%s: tensor %s is not converted: %s does not have the same elements",
                            wf_safetensors_path(t->file), sources->name[0], name);
    return add_source(t, &s, name, error);
}

wf_status tensors_from(struct tensors *t, const wf_model *model, wf_error *error)
{
    return wf_model_sources(model, t->file, take_source, t, error);
}

static wf_status add_tensor(struct tensors *t, const struct joined *joined, const char *name, wf_dtype dtype, const wf_shape *shape,
                            wf_error *error)
{
    if (!wf_grow(&t->joined, &t->joined_room, t->count + 1, sizeof *t->joined) ||
        !wf_grow(&t->tensor, &t->tensor_room, t->count + 1, sizeof *t->tensor))
        return no_memory(error);
    char *copy = wf_strdup(name);
    if (!copy)
        return no_memory(error);
    if (t->options->cast && is_float(dtype))
        dtype = t->options->dtype;
    t->joined[t->count] = *joined;
    t->tensor[t->count] = (struct wf_set_tensor){copy, wf_array_contiguous(NULL, dtype, shape)};
    t->count++;
    return WF_OK;
}

/* The number of the new tensor with this name, which is likely among the last ones; -1 if it is not there yet. */
static int64_t find_new(const struct tensors *t, const char *name)
{
    int64_t i = t->count - 1;
    while (i >= 0 && strcmp(t->tensor[i].name, name) != 0)
        i--;
    return i;
}

/* Adds a parameter to the tensor that it shares with others. */
static wf_status join(struct tensors *t, const struct wf_target *target, const struct part *part, wf_dtype dtype, wf_error *error)
{
    int64_t at = find_new(t, target->name);
    if (target->parts > WF_SOURCES || target->shape.ndim == 0 || target->transposed)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %d parts of a tensor are not joined", target->name, target->parts);
    if (at < 0) {
        struct joined joined = {.count = target->parts};
        wf_shape whole = target->shape;
        whole.dim[0] *= target->parts;
        for (int i = 0; i < target->parts; i++)
            joined.part[i] = (struct part){.source = -1, .elements = part->elements};
        at = t->count;
        if (add_tensor(t, &joined, target->name, dtype, &whole, error) != WF_OK)
            return error->code;
    }
    t->joined[at].part[target->part] = *part;
    if (!t->options->cast)
        t->tensor[at].array.dtype = common(t->tensor[at].array.dtype, dtype);
    return WF_OK;
}

static wf_status take_target(void *ctx, const struct wf_target *target, wf_error *error)
{
    struct tensors *t = ctx;
    const struct part part = {.source = wf_name_table_find(&t->by_name, target->parameter, strlen(target->parameter)),
                              .row = target->row,
                              .rows = target->rows,
                              .elements = wf_shape_count(&target->shape),
                              .transposed = target->transposed};
    const struct source *s = &t->source[WF_MAX(part.source, 0)]; /* zeros get the dtype of the first parameter, the embedding */
    if (part.source >= 0 && target->row == 0 && s->part == 0)    /* several parts are of one tensor */
        t->used += s->count;
    if (target->parts > 1)
        return join(t, target, &part, s->dtype, error);
    return add_tensor(t, &(struct joined){1, {part}}, target->name, s->dtype, &target->shape, error);
}

wf_status tensors_to(struct tensors *t, const wf_model *model, bool foreign, wf_error *error)
{
    return wf_model_targets(model, foreign, take_target, t, error);
}

wf_status tensors_as_they_are(struct tensors *t, wf_error *error)
{
    wf_status status = WF_OK;
    wf_name_table_free(&t->by_name);
    for (int64_t i = 0; i < t->sources; i++)
        wf_free(t->source[i].name);
    t->sources = 0;
    t->used = wf_safetensors_count(t->file);
    for (int64_t i = 0; status == WF_OK && i < t->used; i++) {
        const struct wf_safetensors_entry *e = wf_safetensors_at(t->file, i);
        const struct source s = {.shape = e->shape, .count = 1, .parts = 1, .dtype = e->dtype, .entry = {e}};
        const struct joined whole = {1, {{.source = i, .rows = e->shape.ndim > 0 ? e->shape.dim[0] : 1, .elements = e->count}}};
        status = add_source(t, &s, e->name, error);
        if (status == WF_OK)
            status = add_tensor(t, &whole, e->name, e->dtype, &e->shape, error);
    }
    return status;
}

void tensors_free(struct tensors *t)
{
    for (int64_t i = 0; i < t->sources; i++)
        wf_free(t->source[i].name);
    for (int64_t i = 0; i < t->count; i++)
        wf_free((char *)t->tensor[i].name);
    wf_name_table_free(&t->by_name);
    wf_free(t->source);
    wf_free(t->joined);
    wf_free(t->tensor);
    wf_free(t->buffer);
    *t = (struct tensors){0};
}

/* --- elements ------------------------------------------------------------------------------------------------------ */

/* Reads elements of a parameter whose tensors, or part of a tensor, are stacked as they are. */
static wf_status read_stacked(const struct tensors *t, const struct source *s, wf_dtype dtype, int64_t at, int64_t count, char *out,
                              wf_error *error)
{
    wf_status status = WF_OK;
    for (int i = 0; status == WF_OK && i < s->count && count > 0; i++) {
        const struct wf_safetensors_entry *e = s->entry[i];
        const int64_t share = e->count / s->parts;
        if (at >= share) {
            at -= share;
            continue;
        }
        const int64_t n = WF_MIN(count, share - at);
        status = wf_safetensors_read_range(t->file, e->name, dtype, s->part * share + at, out, n, error);
        out += n * (int64_t)wf_dtype_size(dtype);
        count -= n;
        at = 0;
    }
    return status;
}

/* Writes the transpose of a matrix [rows, columns] to `out`. */
static void transpose(const void *matrix, wf_dtype dtype, int64_t rows, int64_t columns, void *out)
{
    const wf_shape from = {2, {rows, columns}}, to = {2, {columns, rows}};
    const wf_array turned = wf_array_transpose(wf_array_contiguous((void *)matrix, dtype, &from), 0, 1);
    const wf_array result = wf_array_contiguous(out, dtype, &to);
    wf_array_copy(&result, &turned);
}

/* Reads a whole parameter [rows, columns] whose tensors are transposes [columns, rows i]. */
static wf_status read_transposes(const struct tensors *t, const struct source *s, wf_dtype dtype, char *out, wf_error *error)
{
    const int64_t columns = s->shape.dim[1];
    wf_status status = WF_OK;
    for (int i = 0; status == WF_OK && i < s->count; i++) {
        const struct wf_safetensors_entry *e = s->entry[i];
        char *matrix = wf_alloc((size_t)e->count * wf_dtype_size(dtype) + 1);
        if (!matrix)
            return no_memory(error);
        status = wf_safetensors_read(t->file, e->name, dtype, matrix, e->count, error);
        if (status == WF_OK)
            transpose(matrix, dtype, columns, e->count / columns, out);
        out += e->count * (int64_t)wf_dtype_size(dtype);
        wf_free(matrix);
    }
    return status;
}

/* Makes the elements of a part that is transposed, or whose parameter is, ready in memory. */
static wf_status make_ready(struct tensors *t, const struct part *part, wf_dtype dtype, wf_error *error)
{
    const struct source *s = &t->source[part->source];
    const int64_t columns = s->shape.dim[1], rows = s->transposed ? s->shape.dim[0] : part->rows, size = (int64_t)wf_dtype_size(dtype);
    wf_free(t->buffer);
    t->buffer = wf_alloc((size_t)(rows * columns * size) + 1);
    if (!t->buffer)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory to transpose %s", s->name);
    wf_status status = s->transposed ? read_transposes(t, s, dtype, t->buffer, error)
                                     : read_stacked(t, s, dtype, part->row * columns, rows * columns, t->buffer, error);
    t->ready = (const char *)t->buffer + (s->transposed ? part->row * columns * size : 0);
    if (status != WF_OK || !part->transposed)
        return status;
    void *turned = wf_alloc((size_t)(part->rows * columns * size) + 1);
    if (!turned)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory to transpose %s", s->name);
    transpose(t->ready, dtype, part->rows, columns, turned);
    wf_free(t->buffer);
    t->ready = t->buffer = turned;
    return WF_OK;
}

/* Whether one of the numbers of 16 bits is infinite. */
static bool has_infinity(wf_dtype dtype, const void *data, int64_t count)
{
    const uint16_t *number = data, infinity = dtype == WF_F16 ? 0x7c00 : 0x7f80;
    bool any = false;
    for (int64_t i = 0; i < count; i++)
        any |= (number[i] & 0x7fff) == infinity;
    return any;
}

static wf_status read_part(struct tensors *t, const struct wf_set_tensor *tensor, const struct part *part, int64_t at, int64_t count,
                           char *out, wf_error *error)
{
    const wf_dtype dtype = tensor->array.dtype;
    const int64_t size = (int64_t)wf_dtype_size(dtype);
    wf_status status = WF_OK;
    if (part->source < 0) {
        memset(out, 0, (size_t)(count * size));
        return WF_OK;
    }
    const struct source *s = &t->source[part->source];
    if (part->transposed || s->transposed) {
        status = at == 0 ? make_ready(t, part, dtype, error) : WF_OK;
        if (status == WF_OK)
            memcpy(out, t->ready + at * size, (size_t)(count * size));
    } else {
        const int64_t row = part->row > 0 ? wf_shape_count(&s->shape) / s->shape.dim[0] : 0;
        status = read_stacked(t, s, dtype, part->row * row + at, count, out, error);
    }
    if (status == WF_OK && s->dtype != dtype && size == 2 && has_infinity(dtype, out, count))
        return wf_error_set(error, WF_ERR_NUMERIC, "%s: tensor %s has a value that %s cannot hold: choose another --dtype",
                            wf_safetensors_path(t->file), tensor->name, wf_dtype_name(dtype));
    return status;
}

wf_status tensors_read(void *ctx, const void *key, int64_t at, int64_t count, void *out, wf_error *error)
{
    struct tensors *t = ctx;
    const struct wf_set_tensor *tensor = key;
    const struct joined *joined = &t->joined[tensor - t->tensor];
    char *to = out;
    wf_status status = WF_OK;
    if (t->options->cancelled && t->options->cancelled(t->options->ctx))
        return wf_error_set(error, WF_ERR_CANCELLED, "interrupted: nothing was written");
    for (int i = 0; status == WF_OK && i < joined->count && count > 0; i++) {
        const struct part *part = &joined->part[i];
        const int64_t n = WF_MIN(count, part->elements - at);
        if (n <= 0) {
            at -= part->elements;
            continue;
        }
        status = read_part(t, tensor, part, at, n, to, error);
        to += n * (int64_t)wf_dtype_size(tensor->array.dtype);
        count -= n;
        at = 0;
    }
    return status;
}
