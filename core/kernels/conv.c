/* SPDX-License-Identifier: MIT */
/* A row of a depthwise convolution. */
#include "../simd.h"

enum { TOGETHER = 4 }; /* vectors that are computed at once, because a chain of multiply-adds waits for itself */

V_INLINE void taps_at(const int vectors, int64_t j, int64_t taps, const wf_real *const x[], const wf_real *w, wf_real bias, bool add,
                      wf_real *y)
{
    vr sum[TOGETHER];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        sum[v] = v_set(bias);
    for (int64_t t = 0; t < taps; t++) {
        const vr weight = v_set(w[t]);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sum[v] = v_fma(weight, v_load(x[t] + j + v * V_LANES), sum[v]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        v_store(y + j + v * V_LANES, add ? v_load(y + j + v * V_LANES) + sum[v] : sum[v]);
}

void WF_KERNEL(conv_taps)(int64_t n, int64_t taps, const wf_real *const x[], const wf_real *w, wf_real bias, bool add, wf_real *y)
{
    int64_t j = 0;
    for (; j + TOGETHER * V_LANES <= n; j += TOGETHER * V_LANES)
        taps_at(TOGETHER, j, taps, x, w, bias, add, y);
    for (; j + V_LANES <= n; j += V_LANES)
        taps_at(1, j, taps, x, w, bias, add, y);
    if (j == n)
        return;
    const v_mask m = V_FIRST((int)(n - j));
    vr sum = v_set(bias);
    for (int64_t t = 0; t < taps; t++)
        sum = v_fma(v_set(w[t]), v_load_mask(x[t] + j, m), sum);
    v_store_mask(y + j, m, add ? v_load_mask(y + j, m) + sum : sum);
}
