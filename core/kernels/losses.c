/* SPDX-License-Identifier: MIT */
/* Losses of single elements, and their derivatives. Each is a wf_map_kernel whose ctx points to the constant p of Huber's loss. */
#include "vmath.h"

/* LOSS_2(name, formula) defines a kernel whose formula uses x = in[0] and t = in[1]. The formula of LOSS_3 also uses w = in[2], or w = 1 if
 * in[2] is NULL. */
#define LOSS_OF(name, inputs, ...)                                                                                                         \
    V_INLINE void name##_part(int64_t i, int64_t count, const wf_real *p, const wf_real *const in[], wf_real *y)                           \
    {                                                                                                                                      \
        const vr x = v_get(in[0] + i, count), t = v_get(in[1] + i, count), w = inputs == 3 && in[2] ? v_get(in[2] + i, count) : v_set(1);  \
        (void)x, (void)t, (void)w, (void)p;                                                                                                \
        v_put(y + i, __VA_ARGS__, count);                                                                                                  \
    }                                                                                                                                      \
    void WF_KERNEL(name)(const void *ctx, int64_t n, const wf_real *const in[], wf_real *y)                                                \
    {                                                                                                                                      \
        V_LOOP(n, name##_part, (const wf_real *)ctx, in, y);                                                                               \
    }
#define LOSS_2(name, ...) LOSS_OF(name, 2, __VA_ARGS__)
#define LOSS_3(name, ...) LOSS_OF(name, 3, __VA_ARGS__)

/* Not formatted automatically, because clang-format takes some products for pointer declarations. */
/* clang-format off */
/* --- mse: (x - t)^2 ------------------------------------------------------------------------------------------------- */

LOSS_2(mse, (x - t) * (x - t))
LOSS_2(mse_slope, (x - t) * 2)
LOSS_2(mse_slope_target, (t - x) * 2)

/* --- l1: |x - t|; huber: quadratic up to |x - t| = p, then linear ------------------------------------------------------ */

V_INLINE vr sign_of(vr d)
{
    return v_if_less(v_set(0), d, v_set(1), v_if_less(d, v_set(0), v_set(-1), v_set(0)));
}

V_INLINE vr huber_of(vr d, wf_real delta)
{
    vr a = v_abs(d);
    return v_if_less_equal(a, v_set(delta), a * a * (wf_real)0.5, (a - delta * (wf_real)0.5) * delta);
}

/* d between -delta and delta; a NaN stays, because v_max and v_min return their second operand. */
V_INLINE vr limited(vr d, wf_real delta)
{
    return v_min(v_set(delta), v_max(v_set(-delta), d));
}

LOSS_2(l1, v_abs(x - t))
LOSS_2(l1_slope, sign_of(x - t))
LOSS_2(l1_slope_target, sign_of(t - x))
LOSS_2(huber, huber_of(x - t, *p))
LOSS_2(huber_slope, limited(x - t, *p))
LOSS_2(huber_slope_target, limited(t - x, *p))

/* --- bce: w t softplus(-x) + (1 - t) softplus(x), two terms that never cancel ---------------------------------------- */

/* Returns ln(1 + e^-|x|); softplus(x) is max(x, 0) plus this. */
V_INLINE vr softplus_tail(vr x)
{
    return v_log_1_plus(v_exp_low(-v_abs(x)));
}

V_INLINE vr unless_zero(vr p, vr value)
{
    return v_select((vi)(p == v_set(0)), v_set(0), value);
}

V_INLINE vr bce_of(vr x, vr t, vr w)
{
    vr tail = softplus_tail(x), minus = v_max(v_set(0), -x) + tail, plus = v_max(v_set(0), x) + tail, rest = 1 - t;
    return unless_zero(t, w * t * minus) + unless_zero(rest, rest * plus); /* 0 times an infinite loss counts as 0 */
}

V_INLINE vr bce_slope_target_of(vr x, vr w)
{
    vr tail = softplus_tail(x);
    return v_fma(w, v_max(v_set(0), -x) + tail, -(v_max(v_set(0), x) + tail));
}

LOSS_3(bce, bce_of(x, t, w))
LOSS_3(bce_slope, v_fnma(w * t, v_sigmoid(-x), (1 - t) * v_sigmoid(x)))
LOSS_3(bce_slope_target, bce_slope_target_of(x, w))
LOSS_3(bce_slope_weight, t * (v_max(v_set(0), -x) + softplus_tail(x)))

/* --- kl: t (ln t - x); kl_log: e^t (t - x). Both are 0 if the probability, t or e^t, is 0 ----------------------------- */

LOSS_2(kl, unless_zero(t, t * (v_log(t) - x)))
LOSS_2(kl_slope, -t)
LOSS_2(kl_slope_target, unless_zero(t, v_log(t) - x + 1))
LOSS_2(kl_log, unless_zero(v_exp(t), v_exp(t) * (t - x)))
LOSS_2(kl_log_slope, -v_exp(t))
LOSS_2(kl_log_slope_target, unless_zero(v_exp(t), v_exp(t) * (t - x + 1)))

/* --- kl_normal: (m^2 + e^s - 1 - s) / 2 with the mean m = x and the log variance s = t -------------------------------- */

LOSS_2(kl_normal, v_fma(x, x, v_exp(t) - 1 - t) * (wf_real)0.5)
LOSS_2(kl_normal_slope, x)
LOSS_2(kl_normal_slope_variance, (v_exp(t) - 1) * (wf_real)0.5)

/* clang-format on */
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
