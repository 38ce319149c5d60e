/* SPDX-License-Identifier: MIT */
/* logsumexp and log-softmax down the columns of a matrix. The columns of one register are processed together, and their sums are carried in
 * double. Infinities are treated as in softmax.c. */
#include "vmath.h"

/* For `count` columns at x: *m is the greatest value, or 0 if no value is above -inf; *nan says which columns hold a NaN. Returns the
 * logarithm of the sum of e^(x - m), or `none` if the sum is 0. */
V_INLINE vr column_log_sum(int64_t n, int64_t stride, int64_t count, const wf_real *x, wf_real none, vr *m, vi *nan)
{
    vr top = v_set(-V_INF);
    vi bad = {0};
    for (int64_t i = 0; i < n; i++) {
        vr v = v_get(x + i * stride, count);
        bad |= v != v;
        top = v_max(v, top);
    }
    top = v_if_less_equal(top, v_set(-V_INF), v_set(0), top);
    vd total[V_HALVES] = {{0}};
    for (int64_t i = 0; i < n; i++) {
        v_add_widened(total, v_exp_low(v_get(x + i * stride, count) - top));
    }
    vr sum = v_narrow(total);
    *m = top;
    *nan = bad;
    return v_if_less_equal(sum, v_set(0), v_set(none), v_log(sum));
}

V_INLINE void logsumexp_part(int64_t j, int64_t count, int64_t n, int64_t stride, const wf_real *x, wf_real *y)
{
    vr m;
    vi nan;
    vr log_sum = column_log_sum(n, stride, count, x + j, -V_INF, &m, &nan), sum = m + log_sum;
    v_put(y + j, v_select((vi)(m == v_set(V_INF)) & ~nan, m, sum), count);
}

void WF_KERNEL(logsumexp_columns)(int64_t n, int64_t d, int64_t stride, const wf_real *x, wf_real *y)
{
    V_LOOP(d, logsumexp_part, n, stride, x, y);
}

V_INLINE void logsumexp_grad_part(int64_t j, int64_t count, int64_t n, int64_t stride, const wf_real *x, const wf_real *y,
                                  const wf_real *dy, wf_real *dx)
{
    vr sum = v_get(y + j, count), g = v_get(dy + j, count);
    sum = v_if_less_equal(sum, v_set(-V_INF), v_set(0), sum);
    for (int64_t i = 0; i < n; i++)
        v_put(dx + i * stride + j, v_exp_low(v_get(x + i * stride + j, count) - sum) * g, count);
}

void WF_KERNEL(logsumexp_grad_columns)(int64_t n, int64_t d, int64_t stride, const wf_real *x, const wf_real *y, const wf_real *dy,
                                       wf_real *dx)
{
    V_LOOP(d, logsumexp_grad_part, n, stride, x, y, dy, dx);
}

V_INLINE void log_softmax_part(int64_t j, int64_t count, int64_t n, int64_t stride, const wf_real *x, wf_real *y)
{
    vr m;
    vi nan;
    vr log_sum = column_log_sum(n, stride, count, x + j, 0, &m, &nan);
    for (int64_t i = 0; i < n; i++)
        v_put(y + i * stride + j, v_get(x + i * stride + j, count) - m - log_sum, count);
}

void WF_KERNEL(log_softmax_columns)(int64_t n, int64_t d, int64_t stride, const wf_real *x, wf_real *y)
{
    V_LOOP(d, log_softmax_part, n, stride, x, y);
}

V_INLINE void log_softmax_grad_part(int64_t j, int64_t count, int64_t n, int64_t stride, const wf_real *y, const wf_real *dy, wf_real *dx)
{
    vd total[V_HALVES] = {{0}};
    vi some = {0}; /* columns with a value other than -inf */
    for (int64_t i = 0; i < n; i++) {
        vr g = v_get(dy + i * stride + j, count);
        some |= ~(vi)(v_get(y + i * stride + j, count) == v_set(-V_INF));
        v_add_widened(total, g);
    }
    vr sum = v_narrow(total);
    for (int64_t i = 0; i < n; i++) {
        vr g = v_fnma(v_exp_low(v_get(y + i * stride + j, count)), sum, v_get(dy + i * stride + j, count));
        v_put(dx + i * stride + j, v_select(some, g, v_set(0)), count);
    }
}

void WF_KERNEL(log_softmax_grad_columns)(int64_t n, int64_t d, int64_t stride, const wf_real *y, const wf_real *dy, wf_real *dx)
{
    V_LOOP(d, log_softmax_grad_part, n, stride, y, dy, dx);
}
