/* SPDX-License-Identifier: MIT */
/* The kernels of depthwise convolutions. */
#include "../simd.h"
#include "../transpose.h"
#include "patches.h"

enum {
    ROWS = 4, /* rows of outputs that are computed at once, because a chain of multiply-adds waits for itself */
    WIDE = 8, /* vectors of a row that is alone; of several rows, two vectors */
    TAPS = 9  /* taps whose sums lie in registers */
};

/* The outputs of `rows` rows and `vectors` vectors; `left` columns begin at j. */
V_INLINE void tile(const int rows, const int vectors, const struct conv_outputs *t, int64_t i, int64_t j, const wf_real *weight,
                   wf_real bias, bool add, wf_real *y, int64_t y_step)
{
    vr sum[ROWS][WIDE];
    const int64_t step = t->x_step, taps = t->taps, left = t->cols - j - (vectors - 1) * V_LANES;
    const wf_real *x = t->x + i * step + j;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[r][v] = v_set(bias);
#pragma GCC unroll 1
    for (int64_t k = 0; k < taps; k++) {
        const wf_real *from = x + t->at[k];
        const vr w = v_set(weight[k]);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                sum[r][v] = v_fma(w, v_load(from + r * step + v * V_LANES), sum[r][v]);
    }
    y += i * y_step + j;
    const v_mask mask = V_FIRST((int)WF_MIN(left, V_LANES));
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++, y += y_step)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            wf_real *to = y + v * V_LANES;
            if (v + 1 < vectors || left >= V_LANES)
                v_store(to, add ? v_load(to) + sum[r][v] : sum[r][v]);
            else
                v_store_mask(to, mask, add ? v_load_mask(to, mask) + sum[r][v] : sum[r][v]);
        }
}

/* `rows` rows of outputs, two vectors at a time. */
V_INLINE void strip(const int rows, const struct conv_outputs *t, int64_t i, const wf_real *weight, wf_real bias, bool add, wf_real *y,
                    int64_t y_step)
{
    int64_t j = 0;
    for (; j + V_LANES < t->cols; j += 2 * V_LANES)
        tile(rows, 2, t, i, j, weight, bias, add, y, y_step);
    if (j < t->cols)
        tile(rows, 1, t, i, j, weight, bias, add, y, y_step);
}

void WF_KERNEL(conv_taps)(const struct conv_outputs *t, const wf_real *weight, wf_real bias, bool add, wf_real *y, int64_t y_step)
{
    int64_t i = 0, j = 0;
    for (; i + ROWS <= t->rows; i += ROWS)
        strip(ROWS, t, i, weight, bias, add, y, y_step);
    if (i + 3 == t->rows)
        strip(3, t, i, weight, bias, add, y, y_step);
    else if (i + 2 == t->rows)
        strip(2, t, i, weight, bias, add, y, y_step);
    if (i + 1 != t->rows)
        return;
    for (; j + (WIDE - 1) * V_LANES < t->cols; j += WIDE * V_LANES)
        tile(1, WIDE, t, i, j, weight, bias, add, y, y_step);
    for (; j < t->cols; j += V_LANES)
        tile(1, 1, t, i, j, weight, bias, add, y, y_step);
}

/* The sums of `taps` taps. Few taps have two sums each, because a chain of multiply-adds waits for itself. */
V_INLINE void sums(const int taps, const struct conv_outputs *t, const int64_t *at, const wf_real *dy, int64_t dy_step, wf_real *lanes)
{
    const int chains = taps <= TAPS / 2 ? 2 : 1;
    vr sum[2][TAPS];
    const wf_real *x[TAPS];
#pragma GCC unroll 9
    for (int k = 0; k < taps; k++) {
        sum[0][k] = v_load(lanes + k * V_LANES);
        sum[1][k] = v_set(0);
        x[k] = t->x + at[k];
    }
    const int64_t cols = t->cols, whole = cols - cols % (chains * V_LANES);
    for (int64_t i = 0; i < t->rows; i++, dy += dy_step) {
        int64_t j = 0, from = i * t->x_step;
#pragma GCC unroll 1
        for (; j < whole; j += chains * V_LANES, from += chains * V_LANES) {
#pragma GCC unroll 2
            for (int c = 0; c < chains; c++) {
                const vr d = v_load(dy + j + c * V_LANES);
#pragma GCC unroll 9
                for (int k = 0; k < taps; k++)
                    sum[c][k] = v_fma(d, v_load(x[k] + from + c * V_LANES), sum[c][k]);
            }
        }
        for (; j < cols; j += V_LANES, from += V_LANES) {
            /* what lies behind the columns must not be multiplied: 0 times infinity is NaN */
            const v_mask mask = V_FIRST((int)WF_MIN(cols - j, V_LANES));
            const vr d = v_load_mask(dy + j, mask);
#pragma GCC unroll 9
            for (int k = 0; k < taps; k++)
                sum[0][k] = v_fma(d, v_load_mask(x[k] + from, mask), sum[0][k]);
        }
    }
#pragma GCC unroll 9
    for (int k = 0; k < taps; k++)
        v_store(lanes + k * V_LANES, chains == 2 ? sum[0][k] + sum[1][k] : sum[0][k]);
}

#define SUMS(taps)                                                                                                                         \
    V_NOINLINE void sums_##taps(const struct conv_outputs *t, const int64_t *at, const wf_real *dy, int64_t dy_step, wf_real *lanes)       \
    {                                                                                                                                      \
        sums(taps, t, at, dy, dy_step, lanes);                                                                                             \
    }
#define SUMS_NAME(taps) sums_##taps,
#define EACH(what) what(1) what(2) what(3) what(4) what(5) what(6) what(7) what(8) what(9)
EACH(SUMS)
static void (*const sums_of[TAPS])(const struct conv_outputs *, const int64_t *, const wf_real *, int64_t, wf_real *) = {EACH(SUMS_NAME)};

void WF_KERNEL(conv_tap_sums)(const struct conv_outputs *t, const wf_real *dy, int64_t dy_step, wf_real *lanes)
{
    const int64_t calls = gemm_ceil_div(t->taps, TAPS);
    for (int64_t i = 0; i < calls; i++) {
        const int64_t k = gemm_cut(t->taps, calls, i);
        sums_of[gemm_cut(t->taps, calls, i + 1) - k - 1](t, t->at + k, dy, dy_step, lanes + k * V_LANES);
    }
}

V_INLINE void put(wf_real *y, vr x, int64_t n, bool add)
{
    v_store_at_most(y, add ? v_load_at_most(y, n) + x : x, n);
}

/* One row of two parts. */
V_INLINE void join_two(int64_t n, const wf_real *a, const wf_real *b, bool add, wf_real *y)
{
    for (int64_t j = 0; j < n; j += 2 * V_LANES, a += V_LANES, b += V_LANES) {
        const vr even = v_load(a), odd = v_load(b);
        put(y + j, v_zip_low(even, odd), n - j, add);
        if (n - j > V_LANES)
            put(y + j + V_LANES, v_zip_high(even, odd), n - j - V_LANES, add);
    }
}

void WF_KERNEL(conv_join)(int64_t rows, int64_t n, int64_t step, int64_t part, const wf_real *x, bool add, wf_real *y)
{
    for (int64_t i = 0; i < rows; i++, x += step * part, y += n) {
        if (step == 2) {
            join_two(n, x, x + part, add, y);
            continue;
        }
        for (int64_t s = 0; s < step; s++)
            for (int64_t j = s, k = s * part; j < n; j += step, k++)
                y[j] = add ? y[j] + x[k] : x[k];
    }
}

/* ---- Vectors whose lanes are channels: depthwise_lanes.c. `count` of lane_outputs and `taps` of lane_sums are constants of each call. */
enum { SIDE = 8 /* outputs of a row that are computed at once */ };

V_INLINE void lane_outputs(const int count, const struct conv_lanes *t, const wf_real *x, const wf_real *weight, vr bias, wf_real *y)
{
    vr sum[SIDE];
    const int64_t step = t->col_step, taps = t->taps;
#pragma GCC unroll 8
    for (int c = 0; c < count; c++)
        sum[c] = bias;
#pragma GCC unroll 1
    for (int64_t k = 0; k < taps; k++) {
        const wf_real *from = x + t->at[k];
        const vr w = v_load(weight + k * V_LANES);
#pragma GCC unroll 8
        for (int c = 0; c < count; c++)
            sum[c] = v_fma(w, v_load(from + c * step), sum[c]);
    }
#pragma GCC unroll 8
    for (int c = 0; c < count; c++)
        v_store(y + c * V_LANES, sum[c]);
}

V_INLINE void lane_sums(const int taps, const struct conv_lanes *t, const int64_t *at, const wf_real *dy, wf_real *sums)
{
    vr sum[TAPS];
#pragma GCC unroll 9
    for (int k = 0; k < taps; k++)
        sum[k] = v_load(sums + k * V_LANES);
    for (int64_t i = 0; i < t->rows; i++) {
        const wf_real *x = t->x + i * t->row_step;
#pragma GCC unroll 1
        for (int64_t j = t->cols; j > 0; j--, x += t->col_step, dy += V_LANES) {
            const vr d = v_load(dy);
#pragma GCC unroll 9
            for (int k = 0; k < taps; k++)
                sum[k] = v_fma(d, v_load(x + at[k]), sum[k]);
        }
    }
#pragma GCC unroll 9
    for (int k = 0; k < taps; k++)
        v_store(sums + k * V_LANES, sum[k]);
}

#define LANE_SUMS(n)                                                                                                                       \
    V_NOINLINE void lane_sums_##n(const struct conv_lanes *t, const int64_t *at, const wf_real *dy, wf_real *sums)                         \
    {                                                                                                                                      \
        lane_sums(n, t, at, dy, sums);                                                                                                     \
    }
#define LANE_OUTPUTS(n)                                                                                                                    \
    V_NOINLINE void lane_outputs_##n(const struct conv_lanes *t, const wf_real *x, const wf_real *weight, vr bias, wf_real *y)             \
    {                                                                                                                                      \
        lane_outputs(n, t, x, weight, bias, y);                                                                                            \
    }
#define LANE_SUMS_NAME(n) lane_sums_##n,
#define LANE_OUTPUTS_NAME(n) lane_outputs_##n,
#define EACH_8(what) what(1) what(2) what(3) what(4) what(5) what(6) what(7) what(8)
EACH(LANE_SUMS)
EACH_8(LANE_OUTPUTS)
static void (*const lane_sums_of[TAPS])(const struct conv_lanes *, const int64_t *, const wf_real *, wf_real *) = {EACH(LANE_SUMS_NAME)};
static void (*const lane_outputs_of[SIDE])(const struct conv_lanes *, const wf_real *, const wf_real *, vr,
                                           wf_real *) = {EACH_8(LANE_OUTPUTS_NAME)};

void WF_KERNEL(conv_lane_taps)(const struct conv_lanes *t, const wf_real *weight, const wf_real *bias, wf_real *y)
{
    const vr first = v_load(bias);
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0, n; j < t->cols; j += n, y += n * V_LANES) {
            n = WF_MIN(t->cols - j, SIDE);
            lane_outputs_of[n - 1](t, t->x + i * t->row_step + j * t->col_step, weight, first, y);
        }
}

void WF_KERNEL(conv_lane_sums)(const struct conv_lanes *t, const wf_real *dy, wf_real *sums)
{
    const int64_t calls = gemm_ceil_div(t->taps, TAPS);
    for (int64_t i = 0; i < calls; i++) {
        const int64_t k = gemm_cut(t->taps, calls, i);
        lane_sums_of[gemm_cut(t->taps, calls, i + 1) - k - 1](t, t->at + k, dy, sums + k * V_LANES);
    }
}

void WF_KERNEL(conv_lane_unpack)(int64_t positions, int64_t channels, const wf_real *x, bool add, wf_real *y, int64_t y_step)
{
    for (int64_t p = 0; p < positions; p += V_LANES, x += V_LANES * V_LANES) {
        const int64_t n = positions - p;
        if (n == 1) { /* as of 7 x 7 positions */
            for (int64_t i = 0; i < channels; i++)
                y[i * y_step + p] = add ? y[i * y_step + p] + x[i] : x[i];
            return;
        }
        vr r[V_LANES];
#pragma GCC unroll 16
        for (int i = 0; i < V_LANES; i++)
            r[i] = v_load(x + i * V_LANES);
        v_transpose(r);
#pragma GCC unroll 16
        for (int i = 0; i < V_LANES; i++)
            if (i < channels)
                put(y + i * y_step + p, r[i], n, add);
    }
}
