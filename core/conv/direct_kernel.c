/* SPDX-License-Identifier: MIT */
/* The kernels of a convolution that reads its patches from a padded copy of x: the copy, and the register tile. */
#include "../simd.h"
#include "patches.h"

/* Zeros from i to `end`, and up to a vector more. One vector is the rule; a compiler makes a call of memset of the loop. */
V_INLINE void zeros(int64_t i, int64_t end, wf_real *out)
{
    if (i >= end)
        return;
    v_store(out + i, v_set(0));
    for (i += V_LANES; i < end; i += V_LANES)
        v_store(out + i, v_set(0));
}

/* One part of a row: `count` elements, of which lo .. hi - 1 are those at x + i * step, and the others 0. Writes up to a vector more. */
V_INLINE void pad_row(const wf_real *x, int64_t step, int64_t lo, int64_t hi, int64_t count, wf_real *out)
{
    int64_t i = lo;
    zeros(0, lo, out);
    if (step == 1) {
#pragma GCC unroll 1
        for (; i + V_LANES <= hi; i += V_LANES)
            v_store(out + i, v_load(x + i));
        if (i < hi)
            v_store(out + i, v_load_mask(x + i, V_FIRST((int)(hi - i))));
        i += i < hi ? V_LANES : 0;
    } else if (step == 2) {
#pragma GCC unroll 1
        for (; i + V_LANES < hi; i += V_LANES)
            v_store(out + i, v_even(v_load(x + 2 * i), v_load(x + 2 * i + V_LANES)));
        if (i < hi) { /* the last element of the pairs may lie beyond the end of x */
            const int64_t left = 2 * (hi - i) - 1;
            const vr low = v_load_at_most(x + 2 * i, left),
                     high = left > V_LANES ? v_load_n(x + 2 * i + V_LANES, left - V_LANES, 0) : v_set(0);
            v_store(out + i, v_even(low, high));
            i += V_LANES;
        }
    } else {
        for (; i < hi; i++)
            out[i] = x[i * step];
    }
    zeros(i, count, out);
}

/* `known`: the step, or 0 if it is not a constant of the call. */
V_INLINE void pad_rows(const int known, const struct conv_band *g, wf_real *out)
{
    const int64_t step = known ? known : g->step, part = g->part;
    /* In part s the first element inside of the picture is the least k with col + s + k step >= 0, and behind the last is the least k with
     * col + s + k step >= width. The divisions are made once for all rows. */
    const int64_t left = (-g->col - 1) / step, left_rest = (-g->col - 1) % step;
    const int64_t right = (g->width - 1 - g->col) / step, right_rest = (g->width - 1 - g->col) % step;
    for (int64_t c = 0; c < g->channels; c++) {
        wf_real *to = out + c * g->plane;
        for (int64_t row = g->row; row < g->row + g->rows; row++, to += step * part) {
            if (row < 0 || row >= g->height) {
                zeros(0, step * part, to);
                continue;
            }
            const wf_real *x = g->x + c * g->channel_step + row * g->width + g->col;
#pragma GCC unroll 2
            for (int64_t s = 0; s < step; s++) {
                const int64_t lo = WF_MIN(WF_MAX(left + (s <= left_rest), 0), part), hi = WF_MIN(right + (s <= right_rest), part);
                pad_row(x + s, step, lo, WF_MAX(lo, hi), part, to + s * part);
            }
        }
    }
}

void WF_GEMM(conv_pad)(const struct conv_band *g, wf_real *out)
{
    if (g->step == 1)
        pad_rows(1, g, out);
    else if (g->step == 2)
        pad_rows(2, g, out);
    else
        pad_rows(0, g, out);
}

/* ---- The register tile. In the inline functions m is a constant of each call. */

/* Stores a vector of each of the m filters. */
V_INLINE void store(const int m, const bool whole, const bool add, int tail, const wf_real *bias, wf_real *c, int64_t c_step, const int v,
                    vr sum[MR][NR_VECTORS])
{
    const v_mask mask = V_FIRST(tail);
#pragma GCC unroll 14
    for (int i = 0; i < m; i++, c += c_step) {
        vr addend = v_set(bias[i]);
        if (add)
            addend = (whole ? v_load(c) : v_load_mask(c, mask)) + addend;
        if (whole)
            v_store(c, sum[i][v] + addend);
        else
            v_store_mask(c, mask, sum[i][v] + addend);
    }
}

V_INLINE void store_any(const int m, const struct conv_tiles *t, const wf_real *bias, int64_t row, const int v, vr sum[MR][NR_VECTORS])
{
    wf_real *c = t->c[v] + row * t->c_step;
    const int tail = (int)t->tail[v];
    if (tail == V_LANES && t->add)
        store(m, true, true, tail, bias, c, t->c_step, v, sum);
    else if (tail == V_LANES)
        store(m, true, false, tail, bias, c, t->c_step, v, sum);
    else if (t->add)
        store(m, false, true, tail, bias, c, t->c_step, v, sum);
    else
        store(m, false, false, tail, bias, c, t->c_step, v, sum);
}

V_INLINE void tile(const int m, const struct conv_tiles *t, const wf_real *a, int64_t row)
{
    vr sum[MR][NR_VECTORS];
#pragma GCC unroll 14
    for (int i = 0; i < m; i++)
        sum[i][0] = sum[i][1] = v_set(0);
    const int64_t *offset = t->offset, *const end = offset + t->k;
    const wf_real *b0 = t->b[0], *b1 = t->b[1];
#pragma GCC unroll 1
    for (; offset < end; offset++, a += MR) {
        const vr x0 = v_load(b0 + *offset), x1 = v_load(b1 + *offset);
#pragma GCC unroll 14
        for (int i = 0; i < m; i++) {
            const vr y = v_set(a[i]);
            sum[i][0] = v_fma(y, x0, sum[i][0]);
            sum[i][1] = v_fma(y, x1, sum[i][1]);
        }
    }
    static const wf_real none[MR];
    const wf_real *bias = t->bias ? t->bias + row : none;
    store_any(m, t, bias, row, 0, sum);
    if (t->tail[1] > 0)
        store_any(m, t, bias, row, 1, sum);
}

/* The sums of m filters and one pair of vectors. */
V_INLINE void sums(const int m, const struct conv_sums *s, int64_t f, int64_t pair)
{
    vr sum[MR][NR_VECTORS];
#pragma GCC unroll 14
    for (int i = 0; i < m; i++)
        sum[i][0] = sum[i][1] = v_set(0);
    const int64_t r1 = s->dy_step * (int64_t)sizeof(wf_real), x_step = s->x_step, first = s->offset[2 * pair],
                  apart = s->offset[2 * pair + 1] - first;
    int64_t r3 = 3 * r1, r5 = 5 * r1;
    __asm__("" : "+r"(r3), "+r"(r5)); /* as in micro_kernel.c */
    for (int64_t l = 0; l < s->lines; l++) {
        const char *a = (const char *)(s->dy + f * s->dy_step + s->dy_line[l]), *a7 = a + 7 * r1;
        const wf_real *x = s->x + first + s->x_line[l];
#pragma GCC unroll 1
        for (int64_t j = s->cols; j > 0; j--) {
            const vr x0 = v_load(x), x1 = v_load(x + apart);
#pragma GCC unroll 14
            for (int i = 0; i < m; i++) {
                const vr y = v_set(*(const wf_real *)((i < A7 ? a : a7) + a_row_offset(i, r1, r3, r5)));
                sum[i][0] = v_fma(y, x0, sum[i][0]);
                sum[i][1] = v_fma(y, x1, sum[i][1]);
            }
            x += x_step;
            a += sizeof(wf_real);
            a7 += sizeof(wf_real);
        }
    }
    wf_real *c = s->c + (pair * s->filters + f) * NR;
#pragma GCC unroll 14
    for (int i = 0; i < m; i++, c += NR) {
        v_store(c, s->add ? v_load(c) + sum[i][0] : sum[i][0]);
        v_store(c + V_LANES, s->add ? v_load(c + V_LANES) + sum[i][1] : sum[i][1]);
    }
}

#define TILE(m)                                                                                                                            \
    V_NOINLINE void tile_##m(const struct conv_tiles *t, const wf_real *a, int64_t row)                                                    \
    {                                                                                                                                      \
        tile(m, t, a, row);                                                                                                                \
    }                                                                                                                                      \
    V_NOINLINE void sums_##m(const struct conv_sums *s, int64_t f, int64_t pair)                                                           \
    {                                                                                                                                      \
        sums(m, s, f, pair);                                                                                                               \
    }
#define TILE_NAME(m) tile_##m,
#define SUMS_NAME(m) sums_##m,
#define EACH_6(what) what(1) what(2) what(3) what(4) what(5) what(6)
#if defined WF_ISA_AVX512
#define EACH(what) EACH_6(what) what(7) what(8) what(9) what(10) what(11) what(12) what(13) what(14)
#else
#define EACH(what) EACH_6(what)
#endif
EACH(TILE)
static void (*const tile_of[MR])(const struct conv_tiles *, const wf_real *, int64_t) = {EACH(TILE_NAME)};
static void (*const sums_of[MR])(const struct conv_sums *, int64_t, int64_t) = {EACH(SUMS_NAME)};

void WF_GEMM(conv_tiles)(const struct conv_tiles *t)
{
    const int64_t tiles = gemm_ceil_div(t->m, MR);
    for (int64_t i = t->from; i < t->to; i++) {
        const int64_t row = gemm_cut(t->m, tiles, i);
        tile_of[gemm_cut(t->m, tiles, i + 1) - row - 1](t, t->a + i * t->k * MR, row);
    }
}

void WF_GEMM(conv_sums)(const struct conv_sums *s)
{
    const int64_t tiles = gemm_ceil_div(s->filters, MR);
    for (int64_t i = 0, f = 0; i < tiles; i++) {
        const int64_t next = gemm_cut(s->filters, tiles, i + 1);
        for (int64_t p = 0; p < s->pairs; p++)
            sums_of[next - f - 1](s, f, p);
        f = next;
    }
}
