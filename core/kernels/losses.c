/* SPDX-License-Identifier: MIT */
/* Losses of elements and their derivatives. Each is a wf_map_kernel without a ctx. */
#include <weft/internal/minmax.h>

#include "vmath.h"

#define LOSS(name, inputs)                                                                                                                 \
    V_INLINE void name##_part(int64_t i, int64_t count, const wf_real *const in[], wf_real *y)                                             \
    {                                                                                                                                      \
        vr v[3] = {v_get(in[0] + i, count), v_get(in[1] + i, count), v_set(1)};                                                            \
        if (inputs == 3 && in[2])                                                                                                          \
            v[2] = v_get(in[2] + i, count);                                                                                                \
        v_put(y + i, name##_of(v[0], v[1], v[2]), count);                                                                                  \
    }                                                                                                                                      \
    void WF_KERNEL(name)(const void *ctx, int64_t n, const wf_real *const in[], wf_real *y)                                                \
    {                                                                                                                                      \
        (void)ctx;                                                                                                                         \
        V_LOOP(n, name##_part, in, y);                                                                                                     \
    }

/* --- (x - t)^2 ------------------------------------------------------------------------------------------------------ */

V_INLINE vr mse_of(vr x, vr t, vr one)
{
    (void)one;
    return (x - t) * (x - t);
}
LOSS(mse, 2)

V_INLINE vr mse_slope_of(vr x, vr t, vr one)
{
    (void)one;
    return (x - t) * 2;
}
LOSS(mse_slope, 2)

V_INLINE vr mse_slope_target_of(vr x, vr t, vr one)
{
    (void)one;
    return (t - x) * 2;
}
LOSS(mse_slope_target, 2)

/* --- w t softplus(-x) + (1 - t) softplus(x): no terms that cancel, whatever x is ------------------------------------- */

/* softplus(x) = max(x, 0) + ln(1 + e^-|x|). *minus: softplus(-x). */
V_INLINE vr softplus(vr x, vr *minus)
{
    vr low = v_log_1_plus(v_exp_low(-v_abs(x)));
    *minus = v_max(v_set(0), -x) + low;
    return v_max(v_set(0), x) + low;
}

V_INLINE vr unless_zero(vr p, vr value)
{
    return v_select((vi)(p == v_set(0)), v_set(0), value);
}

V_INLINE vr bce_of(vr x, vr t, vr w)
{
    vr minus, plus = softplus(x, &minus), rest = 1 - t;
    return unless_zero(t, w * t * minus) + unless_zero(rest, rest * plus); /* 0 inf is 0 */
}
LOSS(bce, 3)

V_INLINE vr bce_slope_of(vr x, vr t, vr w)
{
    return v_fnma(w * t, v_sigmoid(-x), (1 - t) * v_sigmoid(x));
}
LOSS(bce_slope, 3)

V_INLINE vr bce_slope_target_of(vr x, vr t, vr w)
{
    (void)t;
    vr minus, plus = softplus(x, &minus);
    return v_fma(w, minus, -plus);
}
LOSS(bce_slope_target, 3)

V_INLINE vr bce_slope_weight_of(vr x, vr t, vr w)
{
    (void)w;
    vr minus;
    softplus(x, &minus);
    return t * minus;
}
LOSS(bce_slope_weight, 3)

/* --- p (ln p - x), and e^t (t - x); 0 where the probability is 0 ---------------------------------------------------- */

V_INLINE vr kl_of(vr x, vr p, vr one)
{
    (void)one;
    return unless_zero(p, p * (v_log(p) - x));
}
LOSS(kl, 2)

V_INLINE vr kl_slope_of(vr x, vr p, vr one)
{
    (void)x, (void)one;
    return -p;
}
LOSS(kl_slope, 2)

V_INLINE vr kl_slope_target_of(vr x, vr p, vr one)
{
    return unless_zero(p, v_log(p) - x + one);
}
LOSS(kl_slope_target, 2)

V_INLINE vr kl_log_of(vr x, vr t, vr one)
{
    (void)one;
    vr p = v_exp(t);
    return unless_zero(p, p * (t - x));
}
LOSS(kl_log, 2)

V_INLINE vr kl_log_slope_of(vr x, vr t, vr one)
{
    (void)x, (void)one;
    return -v_exp(t);
}
LOSS(kl_log_slope, 2)

V_INLINE vr kl_log_slope_target_of(vr x, vr t, vr one)
{
    vr p = v_exp(t);
    return unless_zero(p, p * (t - x + one));
}
LOSS(kl_log_slope_target, 2)

/* --- (m^2 + e^s - 1 - s) / 2 ------------------------------------------------------------------------------------------ */

V_INLINE vr kl_normal_of(vr m, vr s, vr one)
{
    return v_fma(m, m, v_exp(s) - one - s) * (wf_real)0.5;
}
LOSS(kl_normal, 2)

V_INLINE vr kl_normal_slope_of(vr m, vr s, vr one)
{
    (void)s, (void)one;
    return m;
}
LOSS(kl_normal_slope, 2)

V_INLINE vr kl_normal_slope_variance_of(vr m, vr s, vr one)
{
    (void)m;
    return (v_exp(s) - one) * (wf_real)0.5;
}
LOSS(kl_normal_slope_variance, 2)

int64_t WF_KERNEL(find_outside_unit)(int64_t n, const wf_real *x)
{
    for (int64_t i = 0; i < n; i += V_N) {
        int64_t count = WF_MIN(n - i, V_N);
        vr v = v_load_at_most(x + i, count);
        if (v_any((vi)(v < v_set(0)) | (vi)(v > v_set(1))))
            for (int64_t j = i; j < i + count; j++)
                if (x[j] < 0 || x[j] > 1)
                    return j;
    }
    return -1;
}
