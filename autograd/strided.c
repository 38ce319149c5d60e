/* SPDX-License-Identifier: MIT */
/* Adds one strided array to another, for sums of gradients. The work is divided by shapes alone, and each element of the result is added up
 * in a fixed order, so the bits do not depend on the number of threads. */
#include <weft/compute.h>
#include <weft/internal/kernels.h>
#include <weft/internal/scratch.h>

#include "engine.h"

enum { FLAT_BLOCK = 16384 };

struct flat {
    wf_real *dst;
    const wf_real *src;
};

static void add_flat(void *ctx, int64_t begin, int64_t end)
{
    const struct flat *f = ctx;
    wf_kernel->axpy(end - begin, 1, f->src + begin, f->dst + begin);
}

/* dst += src for `n` elements of one row. */
static void add_row(wf_real *dst, int64_t dst_step, const wf_real *src, int64_t src_step, int64_t n)
{
    if (dst_step == 1 && src_step == 1) {
        wf_kernel->axpy(n, 1, src, dst);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        dst[i * dst_step] += src[i * src_step];
}

struct rows {
    const wf_array *dst, *src;
    int64_t n;
};

/* The offsets of row r in both arrays, in elements. Rows are numbered over all dimensions but the last. */
static void row_offsets(const struct rows *w, int64_t r, int64_t *dst, int64_t *src)
{
    *dst = *src = 0;
    for (int d = w->dst->ndim - 2; d >= 0; d--) {
        int64_t i = r % w->dst->dim[d];
        r /= w->dst->dim[d];
        *dst += i * w->dst->stride[d];
        *src += i * w->src->stride[d];
    }
}

static void add_rows(void *ctx, int64_t begin, int64_t end)
{
    const struct rows *w = ctx;
    int last = w->dst->ndim - 1;
    for (int64_t r = begin; r < end; r++) {
        int64_t to, from;
        row_offsets(w, r, &to, &from);
        add_row((wf_real *)w->dst->data + to, w->dst->stride[last], (const wf_real *)w->src->data + from, w->src->stride[last], w->n);
    }
}

/* --- arrays that are contiguous along different dimensions: tiles of src are transposed into a copy, then added ---------------- */

enum { TILE_ROWS = 32, TILE_COLUMNS = 512 };

/* Both arrays with dimensions swapped so that dst is contiguous along the last one. `row` is the dimension along which src is contiguous;
 * if there is no such dimension, `row` is the last but one. */
struct tiles {
    wf_array dst, src;
    int row;
    int64_t rows;    /* the number of tiles along dimension `row` */
    int64_t columns; /* the number of tiles along the last dimension */
};

static void swap_dims(struct tiles *t, int a, int b)
{
    t->dst = wf_array_transpose(t->dst, a, b);
    t->src = wf_array_transpose(t->src, a, b);
}

/* Sets all members but dst and src, and swaps dimensions. Returns false if tiles do not help: dst is contiguous along no dimension, or src
 * is contiguous along the same one, or there is only one dimension. */
static bool arrange(struct tiles *t)
{
    const int last = t->dst.ndim - 1;
    int inner = -1;
    for (int d = 0; d <= last; d++)
        if (t->dst.dim[d] > 1 && t->dst.stride[d] == 1)
            inner = d;
    if (inner < 0 || t->src.stride[inner] == 1 || last < 1)
        return false;
    swap_dims(t, inner, last);
    t->row = last - 1;
    for (int d = 0; d < last; d++)
        if (t->src.dim[d] > 1 && t->src.stride[d] == 1)
            t->row = d;
    t->rows = (t->dst.dim[t->row] - 1) / TILE_ROWS + 1;
    t->columns = (t->dst.dim[last] - 1) / TILE_COLUMNS + 1;
    return true;
}

static int64_t rest_of(int64_t all, int64_t tile, int64_t size)
{
    return WF_MIN(all - tile * size, size);
}

/* Tile number i of the array, as a matrix. */
static wf_array tile_of(const struct tiles *t, wf_array a, int64_t i)
{
    const int last = a.ndim - 1;
    const int64_t column = i % t->columns, row = i / t->columns % t->rows;
    int64_t index = i / t->columns / t->rows;
    a = wf_array_slice(a, last, column * TILE_COLUMNS, rest_of(a.dim[last], column, TILE_COLUMNS));
    a = wf_array_slice(a, t->row, row * TILE_ROWS, rest_of(a.dim[t->row], row, TILE_ROWS));
    for (int d = last - 1; d >= 0; d--)
        if (d != t->row) {
            const int64_t n = a.dim[d];
            a = wf_array_slice(a, d, index % n, 1);
            index /= n;
        }
    return (wf_array){a.data, a.dtype, 2, {a.dim[t->row], a.dim[last]}, {a.stride[t->row], a.stride[last]}};
}

static void add_tile(void *ctx, int64_t i)
{
    struct tiles *t = ctx;
    const wf_array dst = tile_of(t, t->dst, i), src = tile_of(t, t->src, i);
    wf_real *copy = wf_scratch(WF_SCRATCH_ELEMENTS, (size_t)(TILE_ROWS * TILE_COLUMNS) * sizeof *copy);
    for (int64_t r = 0; !copy && r < dst.dim[0]; r++)
        add_row((wf_real *)dst.data + r * dst.stride[0], dst.stride[1], (const wf_real *)src.data + r * src.stride[0], src.stride[1],
                dst.dim[1]);
    if (!copy)
        return;
    const wf_array square = wf_array_contiguous(copy, WF_REAL, &(wf_shape){2, {dst.dim[0], dst.dim[1]}});
    wf_array_copy(&square, &src);
    for (int64_t r = 0; r < dst.dim[0]; r++)
        wf_kernel->axpy(dst.dim[1], 1, copy + r * dst.dim[1], (wf_real *)dst.data + r * dst.stride[0]);
}

void strided_add(const wf_array *dst, const wf_array *src)
{
    int64_t count = wf_array_count(dst);
    if (count == 0)
        return;
    if (dst->ndim == 0 || (wf_array_is_contiguous(dst) && wf_array_is_contiguous(src))) {
        struct flat f = {dst->data, src->data};
        if (count <= FLAT_BLOCK) {
            add_flat(&f, 0, count);
            return;
        }
        wf_parallel_ranges(count, FLAT_BLOCK, 0.15 * count, add_flat, &f);
        return;
    }
    struct tiles t = {.dst = *dst, .src = *src};
    if (arrange(&t)) {
        const int64_t tiles = count / t.dst.dim[t.row] / t.dst.dim[dst->ndim - 1] * t.rows * t.columns;
        wf_parallel(tiles, 0.4 * (double)count, add_tile, &t);
        return;
    }
    struct rows w = {dst, src, dst->dim[dst->ndim - 1]};
    int64_t grain = 1 + FLAT_BLOCK / (w.n + 1);
    wf_parallel_ranges(count / w.n, grain, 0.4 * count, add_rows, &w);
}
