/* SPDX-License-Identifier: MIT */
/* Cumulative sums and linear recurrences along a dimension, either down the columns of a matrix or along its rows. The columns of one
 * register are processed together. Along rows, several rows are interleaved: each element of a row waits for the one before it, and in the
 * meantime the processor works on the other rows. Cumulative sums are carried in double. */
#include "../simd.h"

enum { TOGETHER = 4 }; /* rows that are interleaved to hide the latency of an addition */

/* --- cumulative sums ------------------------------------------------------------------------------------------------ */

V_INLINE void cumsum_some(int count, int64_t d, const wf_real *x, bool reverse, wf_real *y)
{
    double sum[TOGETHER] = {0};
    for (int64_t k = 0; k < d; k++) {
        int64_t j = reverse ? d - 1 - k : k;
        for (int r = 0; r < count; r++) {
            sum[r] += (double)x[r * d + j];
            y[r * d + j] = (wf_real)sum[r];
        }
    }
}

void WF_KERNEL(cumsum)(int64_t rows, int64_t d, const wf_real *x, bool reverse, wf_real *y)
{
    int64_t i = 0;
    for (; i + TOGETHER <= rows; i += TOGETHER)
        cumsum_some(TOGETHER, d, x + i * d, reverse, y + i * d);
    for (; i < rows; i++)
        cumsum_some(1, d, x + i * d, reverse, y + i * d);
}

V_INLINE void cumsum_part(int64_t j, int64_t count, int64_t n, int64_t stride, const wf_real *x, bool reverse, wf_real *y)
{
    vd sum[V_HALVES] = {{0}};
    for (int64_t k = 0; k < n; k++) {
        int64_t i = (reverse ? n - 1 - k : k) * stride + j;
        v_add_widened(sum, v_get(x + i, count));
        v_put(y + i, v_narrow(sum), count);
    }
}

void WF_KERNEL(cumsum_columns)(int64_t n, int64_t d, int64_t stride, const wf_real *x, bool reverse, wf_real *y)
{
    V_LOOP(d, cumsum_part, n, stride, x, reverse, y);
}

/* --- linear recurrences: h_t = a_t h_(t-1) + b_t -------------------------------------------------------------------- */

V_INLINE void scan_some(int count, int64_t d, const wf_real *a, const wf_real *b, const wf_real *initial, wf_real *h)
{
    wf_real state[TOGETHER] = {0};
    for (int r = 0; initial && r < count; r++)
        state[r] = initial[r];
    for (int64_t t = 0; t < d; t++)
        for (int r = 0; r < count; r++)
            h[r * d + t] = state[r] = a[r * d + t] * state[r] + b[r * d + t];
}

void WF_KERNEL(scan)(int64_t rows, int64_t d, const wf_real *a, const wf_real *b, const wf_real *initial, wf_real *h)
{
    int64_t i = 0;
    for (; i + TOGETHER <= rows; i += TOGETHER)
        scan_some(TOGETHER, d, a + i * d, b + i * d, initial ? initial + i : NULL, h + i * d);
    for (; i < rows; i++)
        scan_some(1, d, a + i * d, b + i * d, initial ? initial + i : NULL, h + i * d);
}

V_INLINE void scan_part(int64_t j, int64_t count, int64_t n, int64_t stride, const wf_real *a, const wf_real *b, const wf_real *initial,
                        wf_real *h)
{
    vr state = initial ? v_get(initial + j, count) : v_set(0);
    for (int64_t t = 0, i = j; t < n; t++, i += stride) {
        state = v_fma(v_get(a + i, count), state, v_get(b + i, count));
        v_put(h + i, state, count);
    }
}

void WF_KERNEL(scan_columns)(int64_t n, int64_t d, int64_t stride, const wf_real *a, const wf_real *b, const wf_real *initial, wf_real *h)
{
    V_LOOP(d, scan_part, n, stride, a, b, initial, h);
}

/* With g_t = dh_t + a_(t+1) g_(t+1): db_t = g_t, da_t = g_t h_(t-1), and the gradient of the initial state is a_1 g_1. */
V_INLINE void scan_grad_some(int count, int64_t d, const wf_real *a, const wf_real *h, const wf_real *initial, const wf_real *dh,
                             wf_real *da, wf_real *db, wf_real *dinitial)
{
    wf_real g[TOGETHER] = {0};
    for (int64_t t = d - 1; t >= 0; t--)
        for (int r = 0; r < count; r++) {
            int64_t i = r * d + t;
            g[r] += dh[i];
            if (db)
                db[i] = g[r];
            if (da)
                da[i] = g[r] * (t > 0 ? h[i - 1] : initial ? initial[r] : 0);
            g[r] *= a[i];
        }
    for (int r = 0; dinitial && r < count; r++)
        dinitial[r] = g[r];
}

void WF_KERNEL(scan_grad)(int64_t rows, int64_t d, const wf_real *a, const wf_real *h, const wf_real *initial, const wf_real *dh,
                          wf_real *da, wf_real *db, wf_real *dinitial)
{
    for (int64_t i = 0, n; i < rows; i += n) {
        const wf_real *first = initial ? initial + i : NULL;
        wf_real *ga = da ? da + i * d : NULL, *gb = db ? db + i * d : NULL, *gi = dinitial ? dinitial + i : NULL;
        n = i + TOGETHER <= rows ? TOGETHER : 1;
        if (n == TOGETHER)
            scan_grad_some(TOGETHER, d, a + i * d, h + i * d, first, dh + i * d, ga, gb, gi);
        else
            scan_grad_some(1, d, a + i * d, h + i * d, first, dh + i * d, ga, gb, gi);
    }
}

V_INLINE void scan_grad_part(int64_t j, int64_t count, int64_t n, int64_t stride, const wf_real *a, const wf_real *h,
                             const wf_real *initial, const wf_real *dh, wf_real *da, wf_real *db, wf_real *dinitial)
{
    vr g = v_set(0);
    for (int64_t t = n - 1, i = (n - 1) * stride + j; t >= 0; t--, i -= stride) {
        g += v_get(dh + i, count);
        if (db)
            v_put(db + i, g, count);
        if (da)
            v_put(da + i, g * (t > 0 ? v_get(h + i - stride, count) : initial ? v_get(initial + j, count) : v_set(0)), count);
        g *= v_get(a + i, count);
    }
    if (dinitial)
        v_put(dinitial + j, g, count);
}

void WF_KERNEL(scan_grad_columns)(int64_t n, int64_t d, int64_t stride, const wf_real *a, const wf_real *h, const wf_real *initial,
                                  const wf_real *dh, wf_real *da, wf_real *db, wf_real *dinitial)
{
    V_LOOP(d, scan_grad_part, n, stride, a, h, initial, dh, da, db, dinitial);
}
