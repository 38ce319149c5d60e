/* SPDX-License-Identifier: MIT */
/* Batch normalisation (Ioffe and Szegedy 2015) of the elements of one channel, or of a part of them. Sums are in double. */
#include "../simd.h"

/* Adds d and d e to the sums of one chain, where d and e are the numbers of one register in double. */
#define SUMS_LOOP(n, PART, ...)                                                                                                            \
    vd first[2 * V_HALVES] = {{0}}, second[2 * V_HALVES] = {{0}};                                                                          \
    int64_t i = 0;                                                                                                                         \
    for (; i + 2 * V_N <= (n); i += 2 * V_N)                                                                                               \
        for (int k = 0; k < 2; k++)                                                                                                        \
            PART(i + k * V_N, V_N, first + k * V_HALVES, second + k * V_HALVES, __VA_ARGS__);                                              \
    for (; i < (n); i += V_N)                                                                                                              \
        PART(i, WF_MIN((n)-i, V_N), first, second, __VA_ARGS__);                                                                           \
    for (int k = 1; k < 2 * V_HALVES; k++) {                                                                                               \
        first[0] += first[k];                                                                                                              \
        second[0] += second[k];                                                                                                            \
    }                                                                                                                                      \
    sum[0] += v_sum_d(first[0]);                                                                                                           \
    sum[1] += v_sum_d(second[0])

/* Beyond the elements x counts as `from`, and its difference is 0. */
V_INLINE void moments_part(int64_t i, int64_t count, vd *first, vd *second, const wf_real *x, wf_real from)
{
    const vr v = count == V_N ? v_load(x + i) : v_load_n(x + i, count, from), f = v_set(from);
    for (int half = 0; half < V_HALVES; half++) {
        const vd d = v_widen(v, half) - v_widen(f, half);
        first[half] += d;
        second[half] += d * d;
    }
}

void WF_KERNEL(channel_moments)(int64_t n, const wf_real *x, wf_real from, double sum[2])
{
    SUMS_LOOP(n, moments_part, x, from);
}

V_INLINE void products_part(int64_t i, int64_t count, vd *first, vd *second, const wf_real *x, wf_real mean, const wf_real *dy)
{
    const vr v = count == V_N ? v_load(x + i) : v_load_n(x + i, count, mean), m = v_set(mean);
    const vr g = count == V_N ? v_load(dy + i) : v_load_n(dy + i, count, 0);
    for (int half = 0; half < V_HALVES; half++) {
        const vd d = v_widen(g, half);
        first[half] += d;
        second[half] += d * (v_widen(v, half) - v_widen(m, half));
    }
}

void WF_KERNEL(channel_products)(int64_t n, const wf_real *x, wf_real mean, const wf_real *dy, double sum[2])
{
    SUMS_LOOP(n, products_part, x, mean, dy);
}

V_INLINE void normalize_part(int64_t i, int64_t count, const wf_real *x, vr mean, vr scale, vr shift, wf_real *y)
{
    v_put(y + i, v_fma(v_get(x + i, count) - mean, scale, shift), count);
}

void WF_KERNEL(channel_normalize)(int64_t n, const wf_real *x, wf_real mean, wf_real scale, wf_real shift, wf_real *y)
{
    V_LOOP(n, normalize_part, x, v_set(mean), v_set(scale), v_set(shift), y);
}

V_INLINE void grad_part(int64_t i, int64_t count, const wf_real *x, vr mean, const wf_real *dy, const vr *factor, wf_real *dx, bool add)
{
    vr g = v_fma(v_get(x + i, count) - mean, factor[1], factor[2]);
    if (dy)
        g = v_fma(v_get(dy + i, count), factor[0], g);
    v_put(dx + i, add ? v_get(dx + i, count) + g : g, count);
}

void WF_KERNEL(channel_grad)(int64_t n, const wf_real *x, wf_real mean, const wf_real *dy, const wf_real factor[3], wf_real *dx, bool add)
{
    const vr f[3] = {v_set(factor[0]), v_set(factor[1]), v_set(factor[2])};
    V_LOOP(n, grad_part, x, v_set(mean), dy, f, dx, add);
}

/* --- columns of rows [rows, d], `stride` elements apart --------------------------------------------------------------- */

/* Adds up two kinds of terms along each of V_N columns. PART(row, count, first, second, ...) adds those of one row. */
#define COLUMNS_LOOP(rows, d, PART, ...)                                                                                                   \
    for (int64_t j = 0; j < (d); j += V_N) {                                                                                               \
        const int64_t count = WF_MIN((d)-j, V_N);                                                                                          \
        vd first[V_HALVES] = {{0}}, second[V_HALVES] = {{0}};                                                                              \
        if (count == V_N)                                                                                                                  \
            for (int64_t i = 0; i < (rows); i++)                                                                                           \
                PART(i *stride + j, j, V_N, first, second, __VA_ARGS__);                                                                   \
        else                                                                                                                               \
            for (int64_t i = 0; i < (rows); i++)                                                                                           \
                PART(i *stride + j, j, count, first, second, __VA_ARGS__);                                                                 \
        for (int64_t k = 0; k < count; k++) {                                                                                              \
            sum[2 * (j + k)] = first[k / V_ND][k % V_ND];                                                                                  \
            sum[2 * (j + k) + 1] = second[k / V_ND][k % V_ND];                                                                             \
        }                                                                                                                                  \
    }

V_INLINE void column_moments_part(int64_t at, int64_t j, int64_t count, vd *first, vd *second, const wf_real *x, const wf_real *from)
{
    const vr v = v_get(x + at, count), f = v_get(from + j, count);
    for (int half = 0; half < V_HALVES; half++) {
        const vd d = v_widen(v, half) - v_widen(f, half);
        first[half] += d;
        second[half] += d * d;
    }
}

void WF_KERNEL(column_moments)(int64_t rows, int64_t d, int64_t stride, const wf_real *x, const wf_real *from, double *sum)
{
    COLUMNS_LOOP(rows, d, column_moments_part, x, from);
}

V_INLINE void column_products_part(int64_t at, int64_t j, int64_t count, vd *first, vd *second, const wf_real *x, const wf_real *mean,
                                   const wf_real *dy)
{
    const vr v = v_get(x + at, count), m = v_get(mean + j, count), g = v_get(dy + at, count);
    for (int half = 0; half < V_HALVES; half++) {
        const vd d = v_widen(g, half);
        first[half] += d;
        second[half] += d * (v_widen(v, half) - v_widen(m, half));
    }
}

void WF_KERNEL(column_products)(int64_t rows, int64_t d, int64_t stride, const wf_real *x, const wf_real *mean, const wf_real *dy,
                                double *sum)
{
    COLUMNS_LOOP(rows, d, column_products_part, x, mean, dy);
}

V_INLINE void row_normalize_part(int64_t j, int64_t count, const wf_real *x, const wf_real *mean, const wf_real *scale,
                                 const wf_real *shift, wf_real *y)
{
    normalize_part(j, count, x, v_get(mean + j, count), v_get(scale + j, count), v_get(shift + j, count), y);
}

void WF_KERNEL(row_normalize)(int64_t d, const wf_real *x, const wf_real *mean, const wf_real *scale, const wf_real *shift, wf_real *y)
{
    V_LOOP(d, row_normalize_part, x, mean, scale, shift, y);
}

V_INLINE void row_grad_part(int64_t j, int64_t count, const wf_real *x, const wf_real *mean, const wf_real *dy,
                            const wf_real *const *factor, wf_real *dx, bool add)
{
    const vr f[3] = {v_get(factor[0] + j, count), v_get(factor[1] + j, count), v_get(factor[2] + j, count)};
    grad_part(j, count, x, v_get(mean + j, count), dy, f, dx, add);
}

void WF_KERNEL(row_grad)(int64_t d, const wf_real *x, const wf_real *mean, const wf_real *dy, const wf_real *const factor[3], wf_real *dx,
                         bool add)
{
    V_LOOP(d, row_grad_part, x, mean, dy, factor, dx, add);
}
