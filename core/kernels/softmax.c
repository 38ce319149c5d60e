/* SPDX-License-Identifier: MIT */
/* Softmax, log-softmax, logsumexp and cross-entropy of rows. A row can be as long as a vocabulary, and a long sum in float would lose
 * accuracy. So after every BLOCK registers, the sum in wf_real is added to a total in double. */
#include "vmath.h"

#define BLOCK 64

/* Returns the greatest value of a row and, unless `sum` is NULL, stores the sum of the row. Lanes beyond the row count as -inf. The maximum
 * may ignore a NaN; the sum of the exponentials, which is computed next, becomes a NaN then. */
V_INLINE wf_real row_max(int64_t d, const wf_real *x, double *sum)
{
    vr m[4] = {v_set(-V_INF), v_set(-V_INF), v_set(-V_INF), v_set(-V_INF)};
    vd total = {0};
    for (int64_t begin = 0; begin < d; begin += BLOCK * V_N) {
        int64_t end = WF_MIN(begin + BLOCK * V_N, d), j = begin;
        vr s[4] = {{0}, {0}, {0}, {0}};
        for (; j + 4 * V_N <= end; j += 4 * V_N)
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) {
                vr value = v_load(x + j + k * V_N);
                m[k] = v_max(value, m[k]);
                if (sum)
                    s[k] += value;
            }
        for (; j + V_N <= end; j += V_N) {
            m[0] = v_max(v_load(x + j), m[0]);
            if (sum)
                s[0] += v_load(x + j);
        }
        if (j < end) {
            m[1] = v_max(v_load_n(x + j, end - j, -V_INF), m[1]);
            if (sum)
                s[1] += v_load_n(x + j, end - j, 0);
        }
        if (sum)
            total = v_add_halves(total, (s[0] + s[1]) + (s[2] + s[3]));
    }
    if (sum)
        *sum = v_sum_d(total);
    return v_greatest(v_max(v_max(m[0], m[1]), v_max(m[2], m[3])))[0];
}

/* Returns the sum of e^(x - m) over a row, where m >= every x. Stores the terms in y unless y is NULL. */
V_INLINE double row_exp(int64_t d, const wf_real *x, wf_real m, wf_real *y)
{
    vr top = v_set(m);
    vd total = {0};
    for (int64_t begin = 0; begin < d; begin += BLOCK * V_N) {
        int64_t end = WF_MIN(begin + BLOCK * V_N, d), j = begin;
        vr sum = {0};
        for (; j + V_N <= end; j += V_N) {
            vr e = v_exp_low(v_load(x + j) - top);
            sum += e;
            if (y)
                v_store(y + j, e);
        }
        if (j < end) {
            vr e = v_exp_low(v_load_n(x + j, end - j, -V_INF) - top);
            sum += e;
            if (y)
                v_store_n(y + j, e, end - j);
        }
        total = v_add_halves(total, sum);
    }
    return v_sum_d(total);
}

V_INLINE void scale_part(int64_t j, int64_t count, vr s, vr t, wf_real *y)
{
    v_put(y + j, v_fma(v_get(y + j, count), s, t), count);
}

void WF_KERNEL(softmax)(int64_t rows, int64_t d, const wf_real *x, wf_real *y)
{
    for (int64_t i = 0; i < rows; i++, x += d, y += d) {
        wf_real m = row_max(d, x, NULL);
        if (m == -V_INF)
            m = 0; /* all x are -inf or NaN: with m = 0, e^(x - m) is 0 or NaN */
        double sum = row_exp(d, x, m, y);
        vr scale = v_set(sum == 0 ? 0 : (wf_real)(1 / sum));
        V_LOOP(d, scale_part, scale, v_set(0), y);
    }
}

V_INLINE void dot_part(int64_t j, int64_t count, vr *sum, const wf_real *x, const wf_real *y)
{
    *sum = v_fma(v_get(x + j, count), v_get(y + j, count), *sum);
}

V_INLINE void softmax_grad_part(int64_t j, int64_t count, vr dot, const wf_real *y, const wf_real *dy, wf_real *dx)
{
    v_put(dx + j, v_get(y + j, count) * (v_get(dy + j, count) - dot), count);
}

/* dx = y (dy - sum(dy y)) */
void WF_KERNEL(softmax_grad)(int64_t rows, int64_t d, const wf_real *y, const wf_real *dy, wf_real *dx)
{
    for (int64_t i = 0; i < rows; i++, y += d, dy += d, dx += d) {
        vd total = {0};
        for (int64_t begin = 0; begin < d; begin += BLOCK * V_N) {
            int64_t length = WF_MIN(BLOCK * V_N, d - begin);
            vr sum = {0};
            V_LOOP(length, dot_part, &sum, y + begin, dy + begin);
            total = v_add_halves(total, sum);
        }
        vr dot = v_set((wf_real)v_sum_d(total));
        V_LOOP(d, softmax_grad_part, dot, y, dy, dx);
    }
}

void WF_KERNEL(cross_entropy)(int64_t rows, int64_t v, const wf_real *logits, const int32_t *target, int32_t ignore, wf_real smoothing,
                              wf_real scale, double *loss, double *smoothed, wf_real *dlogits)
{
    for (int64_t i = 0; i < rows; i++, logits += v) {
        wf_real *d = dlogits ? dlogits + i * v : NULL;
        if (target[i] == ignore) {
            loss[i] = 0;
            if (smoothed)
                smoothed[i] = 0;
            if (d)
                WF_KERNEL(fill)(v, 0, d);
            continue;
        }
        double picked = (double)logits[target[i]]; /* read before d is written, because d may alias logits */
        bool smooth = smoothed && smoothing != 0;
        double all = 0;
        wf_real m = smooth ? row_max(v, logits, &all) : row_max(v, logits, NULL);
        if (m == -V_INF)
            m = 0;
        double sum = row_exp(v, logits, m, d);
        double log_sum = (double)m + __builtin_log(sum);
        loss[i] = log_sum - picked;
        if (smoothed)
            smoothed[i] = smooth ? (1 - (double)smoothing) * loss[i] + (double)smoothing * (log_sum - all / (double)v) : loss[i];
        if (d) {
            vr s = v_set((wf_real)((double)scale / sum)), t = v_set((wf_real)(-(double)scale * (double)smoothing / (double)v));
            V_LOOP(v, scale_part, s, t, d);
            d[target[i]] -= scale * (1 - smoothing);
        }
    }
}

/* Returns the greatest value m of a row, or 0 if no value is above -inf. Stores the logarithm of the sum of e^(x - m) in *log_sum, so that
 * logsumexp = m + *log_sum. */
V_INLINE wf_real row_log_sum(int64_t d, const wf_real *x, double *log_sum)
{
    wf_real m = row_max(d, x, NULL);
    if (m == -V_INF)
        m = 0;
    *log_sum = __builtin_log(row_exp(d, x, m, NULL));
    return m;
}

void WF_KERNEL(logsumexp)(int64_t rows, int64_t d, const wf_real *x, wf_real *y)
{
    for (int64_t i = 0; i < rows; i++, x += d) {
        double log_sum;
        wf_real m = row_log_sum(d, x, &log_sum);
        y[i] = (wf_real)((double)m + log_sum);
        if (m != V_INF)
            continue;
        y[i] = m; /* inf - inf made log_sum a NaN; the result is inf unless the row holds a NaN */
        for (int64_t j = 0; j < d; j++)
            if (x[j] != x[j])
                y[i] = x[j];
    }
}

V_INLINE void logsumexp_grad_part(int64_t j, int64_t count, vr y, vr dy, const wf_real *x, wf_real *dx)
{
    v_put(dx + j, v_exp_low(v_get(x + j, count) - y) * dy, count);
}

void WF_KERNEL(logsumexp_grad)(int64_t rows, int64_t d, const wf_real *x, const wf_real *y, const wf_real *dy, wf_real *dx)
{
    for (int64_t i = 0; i < rows; i++, x += d, dx += d)
        V_LOOP(d, logsumexp_grad_part, v_set(y[i] == -V_INF ? 0 : y[i]), v_set(dy[i]), x, dx);
}

V_INLINE void log_softmax_part(int64_t j, int64_t count, vr m, vr log_sum, const wf_real *x, wf_real *y)
{
    v_put(y + j, v_get(x + j, count) - m - log_sum, count);
}

void WF_KERNEL(log_softmax)(int64_t rows, int64_t d, const wf_real *x, wf_real *y)
{
    for (int64_t i = 0; i < rows; i++, x += d, y += d) {
        double log_sum;
        wf_real m = row_log_sum(d, x, &log_sum);
        V_LOOP(d, log_softmax_part, v_set(m), v_set(log_sum == -__builtin_inf() ? 0 : (wf_real)log_sum), x, y);
    }
}

V_INLINE void sum_part(int64_t j, int64_t count, vr *sum, const wf_real *x)
{
    *sum += v_get(x + j, count);
}

V_INLINE void log_softmax_grad_part(int64_t j, int64_t count, vr sum, const wf_real *y, const wf_real *dy, wf_real *dx)
{
    v_put(dx + j, v_fnma(v_exp_low(v_get(y + j, count)), sum, v_get(dy + j, count)), count);
}

void WF_KERNEL(log_softmax_grad)(int64_t rows, int64_t d, const wf_real *y, const wf_real *dy, wf_real *dx)
{
    for (int64_t i = 0; i < rows; i++, y += d, dy += d, dx += d) {
        if (d > 0 && y[0] == -V_INF && row_max(d, y, NULL) == -V_INF) {
            WF_KERNEL(fill)(d, 0, dx);
            continue;
        }
        vd total = {0};
        for (int64_t begin = 0; begin < d; begin += BLOCK * V_N) {
            int64_t length = WF_MIN(BLOCK * V_N, d - begin);
            vr sum = {0};
            V_LOOP(length, sum_part, &sum, dy + begin);
            total = v_add_halves(total, sum);
        }
        V_LOOP(d, log_softmax_grad_part, v_set((wf_real)v_sum_d(total)), y, dy, dx);
    }
}
