/* SPDX-License-Identifier: MIT */
/* Sums over strided arrays, for adding gradients up. Blocks are cut by shape, and each element of the result is added up
 * in one order, so the bits do not depend on threads. */
#include <string.h>

#include <weft/compute.h>
#include <weft/internal/kernels.h>

#include "engine.h"

enum { FLAT_BLOCK = 16384, REDUCE_ROWS = 64 };

struct flat {
    wf_real *dst;
    const wf_real *src;
};

static void add_flat(void *ctx, int64_t begin, int64_t end)
{
    const struct flat *f = ctx;
    wf_kernel->axpy(end - begin, 1, f->src + begin, f->dst + begin);
}

/* dst += src along the last dimension, for one choice of the others. */
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

/* Element offsets of row r (the index over all dims but the last) in both arrays. */
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

void strided_add(const wf_array *dst, const wf_array *src)
{
    int64_t count = wf_array_count(dst);
    if (count == 0)
        return;
    if (dst->ndim == 0 || (wf_array_is_dense(dst) && wf_array_is_dense(src))) {
        struct flat f = {dst->data, src->data};
        if (count <= FLAT_BLOCK) {
            add_flat(&f, 0, count);
            return;
        }
        wf_parallel_ranges(count, FLAT_BLOCK, 0.15 * count, add_flat, &f);
        return;
    }
    struct rows w = {dst, src, dst->dim[dst->ndim - 1]};
    int64_t grain = 1 + FLAT_BLOCK / (w.n + 1);
    wf_parallel_ranges(count / w.n, grain, 0.4 * count, add_rows, &w);
}

/* --- sums over broadcast dimensions -------------------------------------------------------------------------------- */

/* [rows, d] dense -> [d]: partial sums of REDUCE_ROWS rows each, then the partials in order. */
struct columns {
    const wf_real *src;
    wf_real *partial;
    int64_t rows, d;
};

static void sum_block(void *ctx, int64_t block)
{
    const struct columns *w = ctx;
    int64_t first = block * REDUCE_ROWS, rows = w->rows - first < REDUCE_ROWS ? w->rows - first : REDUCE_ROWS;
    wf_kernel->sum_rows(rows, w->d, w->src + first * w->d, w->d, false, w->partial + block * w->d);
}

static bool reduce_columns(const wf_array *dst, const wf_array *src, int64_t d)
{
    int64_t rows = wf_array_count(src) / d, blocks = (rows + REDUCE_ROWS - 1) / REDUCE_ROWS;
    wf_real *partial = wf_scratch(WF_SCRATCH_OP, (size_t)(blocks * d) * sizeof *partial);
    if (!partial)
        return false;
    struct columns w = {src->data, partial, rows, d};
    wf_parallel(blocks, 0.1 * rows * d, sum_block, &w);
    wf_kernel->sum_rows(blocks, d, partial, d, false, dst->data);
    return true;
}

/* Any pattern: dst seen with src's shape and strides of 0 where it is broadcast; rows that meet the same place are added
 * one after the other. */
static void reduce_any(const wf_array *dst, const wf_array *src)
{
    wf_shape shape = wf_array_shape(src);
    wf_array seen = wf_array_expand(dst, &shape);
    int last = src->ndim - 1;
    struct rows w = {&seen, src, src->dim[last]};
    int64_t rows = wf_array_count(src) / w.n;
    for (int64_t r = 0; r < rows; r++) {
        int64_t to, from;
        row_offsets(&w, r, &to, &from);
        wf_real *d = (wf_real *)dst->data + to;
        const wf_real *s = (const wf_real *)src->data + from;
        if (seen.stride[last] != 0) {
            add_row(d, seen.stride[last], s, src->stride[last], w.n);
        } else if (src->stride[last] == 1) {
            *d += (wf_real)wf_kernel->sum(w.n, s);
        } else {
            double sum = 0;
            for (int64_t i = 0; i < w.n; i++)
                sum += s[i * src->stride[last]];
            *d += (wf_real)sum;
        }
    }
}

bool strided_reduce(const wf_array *dst, const wf_array *src)
{
    int64_t d = wf_array_count(dst), count = wf_array_count(src);
    if (count > 0 && d > 0 && wf_array_is_dense(src)) {
        /* Are dst's dims, without leading ones, src's last dims? */
        int k = dst->ndim, first = 0;
        while (first < k && dst->dim[first] == 1)
            first++;
        bool trailing = k - first <= src->ndim;
        for (int i = 0; trailing && i < k - first; i++)
            trailing = dst->dim[k - 1 - i] == src->dim[src->ndim - 1 - i];
        if (trailing) /* also without memory: the sums of reduce_any have other bits */
            return reduce_columns(dst, src, d);
    }
    memset(dst->data, 0, (size_t)d * sizeof(wf_real));
    if (count > 0)
        reduce_any(dst, src);
    return true;
}
