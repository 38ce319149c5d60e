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
