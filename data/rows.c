/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include <weft/compute.h>
#include <weft/epochs.h>
#include <weft/internal/needs.h>
#include <weft/internal/shape.h>

struct copying {
    wf_array row; /* row 0 */
    int64_t step; /* bytes from row to row */
    size_t bytes; /* of a row, copied */
    bool contiguous;
    const int64_t *rows;
    char *out;
};

static void copy_rows(void *ctx, int64_t begin, int64_t end)
{
    const struct copying *c = ctx;
    const wf_shape shape = wf_array_shape(&c->row);
    for (int64_t i = begin; i < end; i++) {
        char *to = c->out + (size_t)i * c->bytes;
        wf_array from = c->row;
        from.data = (char *)from.data + c->rows[i] * c->step;
        if (c->contiguous) {
            memcpy(to, from.data, c->bytes);
        } else {
            const wf_array target = wf_array_contiguous(to, from.dtype, &shape);
            wf_array_copy(&target, &from);
        }
    }
}

wf_status wf_rows_copy(const wf_array *array, const int64_t *rows, int64_t count, void *out, wf_error *error)
{
    enum { BLOCK = 64 << 10 };
    if (wf_needs(error, "array, rows, out", array, wf_some(rows, count), wf_some(out, count)))
        return WF_ERR_ARGUMENT;
    if (count < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_rows_copy: %" PRId64 " rows: the number must not be negative", count);
    const wf_shape shape = wf_array_shape(array);
    size_t bytes;
    if (array->ndim < 1 || !wf_shape_bytes(array->dtype, &shape, &bytes))
        return wf_error_set(error, WF_ERR_SHAPE, "wf_rows_copy: the array has no rows: it must have a dtype and 1 to %d dimensions",
                            WF_MAX_DIMS);
    for (int64_t i = 0; i < count; i++)
        if (rows[i] < 0 || rows[i] >= array->dim[0])
            return wf_error_set(error, WF_ERR_ARGUMENT, "wf_rows_copy: rows[%" PRId64 "] is %" PRId64 ", not one of the %" PRId64 " rows",
                                i, rows[i], array->dim[0]);
    const int64_t size = (int64_t)wf_dtype_size(array->dtype);
    struct copying c = {.row = *array, .step = array->stride[0] * size, .rows = rows, .out = out};
    c.row.ndim--;
    for (int d = 0; d < c.row.ndim; d++) {
        c.row.dim[d] = array->dim[d + 1];
        c.row.stride[d] = array->stride[d + 1];
    }
    c.contiguous = wf_array_is_contiguous(&c.row);
    c.bytes = (size_t)(wf_array_count(&c.row) * size);
    if (c.bytes == 0 || count == 0)
        return WF_OK;
    if (!array->data)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_rows_copy: the array has no data");
    /* Rows that lie apart in memory: 0.2 ns a byte. */
    wf_parallel_ranges(count, BLOCK / (int64_t)c.bytes + 1, 0.2 * (double)count * (double)c.bytes, copy_rows, &c);
    return WF_OK;
}
