/* SPDX-License-Identifier: MIT */
/* Sums over strided arrays, for adding gradients up. Blocks are cut by shape, and each element of the result is added up
 * in one order, so the bits do not depend on threads. */
#include <weft/compute.h>
#include <weft/internal/kernels.h>

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
    if (dst->ndim == 0 || (wf_array_is_contiguous(dst) && wf_array_is_contiguous(src))) {
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
