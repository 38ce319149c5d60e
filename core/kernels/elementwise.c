/* SPDX-License-Identifier: MIT */
/* Functions of one element and constants (clamp, softplus, ...), and the maximum and minimum of two elements. Where a function has no
 * derivative, its gradient is the one that PyTorch chose. */
#include "vmath.h"

/* MAP_1(name, formula) defines a kernel. The formula uses x = in[0] and the constants p; in MAP_2 it also uses dy = in[1]. */
#define MAP_1(name, ...)                                                                                                                   \
    V_INLINE void name##_part(int64_t i, int64_t count, const wf_real *p, const wf_real *from, wf_real *y)                                 \
    {                                                                                                                                      \
        const vr x = v_get(from + i, count);                                                                                               \
        (void)p;                                                                                                                           \
        v_put(y + i, __VA_ARGS__, count);                                                                                                  \
    }                                                                                                                                      \
    void WF_KERNEL(name)(const void *ctx, int64_t n, const wf_real *const in[], wf_real *y)                                                \
    {                                                                                                                                      \
        const wf_real *x = in[0];                                                                                                          \
        V_LOOP(n, name##_part, ctx, x, y);                                                                                                 \
    }
#define MAP_2(name, ...)                                                                                                                   \
    V_INLINE void name##_part(int64_t i, int64_t count, const wf_real *p, const wf_real *from, const wf_real *with, wf_real *y)            \
    {                                                                                                                                      \
        const vr x = v_get(from + i, count), dy = v_get(with + i, count);                                                                  \
        (void)p;                                                                                                                           \
        v_put(y + i, __VA_ARGS__, count);                                                                                                  \
    }                                                                                                                                      \
    void WF_KERNEL(name)(const void *ctx, int64_t n, const wf_real *const in[], wf_real *y)                                                \
    {                                                                                                                                      \
        const wf_real *x = in[0], *dy = in[1];                                                                                             \
        V_LOOP(n, name##_part, ctx, x, dy, y);                                                                                             \
    }

/* x if x > 0, else alpha (e^x - 1), without cancellation near 0. x is clamped at -2 V_TANH_MAX, below which e^x - 1 rounds to -1. */
V_INLINE vr elu_of(wf_real alpha, vr x)
{
    vr n, r = v_exp_reduced(v_max(v_set(-2 * (wf_real)V_TANH_MAX), v_min(v_set(0), x)), &n), power = v_power_of_2(n);
    return v_if_less(v_set(0), x, x, v_fma(r, power, power - 1) * alpha);
}

/* Not formatted automatically, because clang-format takes some products for pointer declarations. */
/* clang-format off */
MAP_1(abs, v_abs(x))
/* dy sign(x), where the sign of 0 and of a NaN is 0. */
MAP_2(abs_grad, v_if_less(v_set(0), v_abs(x), (vr)((vi)dy ^ ((vi)x & v_seti(V_SIGN))), v_set(0)))
MAP_1(clamp, v_min(v_set(p[1]), v_max(v_set(p[0]), x))) /* a NaN stays: for a NaN, v_max and v_min return their second operand */
MAP_2(clamp_grad, v_if_less_equal(v_set(p[0]), x, v_if_less_equal(x, v_set(p[1]), dy, v_set(0)), v_set(0)))
MAP_1(softplus, v_softplus(x * p[0]) / p[0])
MAP_2(softplus_grad, dy * v_sigmoid(x * p[0]))
MAP_1(leaky_relu, v_if_less(v_set(0), x, x, x * p[0]))
MAP_2(leaky_relu_grad, v_if_less(v_set(0), x, dy, dy * p[0]))
MAP_1(elu, elu_of(p[0], x))
MAP_2(elu_grad, v_if_less_equal(x, v_set(0), dy * (v_exp_low(v_min(v_set(0), x)) * p[0]), dy))
MAP_1(softcap, v_tanh(x / p[0]) * p[0])
MAP_2(softcap_grad, dy * v_fnma(x / p[0], x / p[0], v_set(1))) /* x: the result of softcap */
/* clang-format on */

/* --- two operands ---------------------------------------------------------------------------------------------------- */

/* x + y is a NaN if x or y is a NaN. v_max and v_min alone would return their second operand. */
V_INLINE vr maximum_of(vr x, vr y)
{
    return v_select((x != x) | (y != y), x + y, v_max(x, y));
}

V_INLINE vr minimum_of(vr x, vr y)
{
    return v_select((x != x) | (y != y), x + y, v_min(x, y));
}

#define EXTREME(name, loses)                                                                                                               \
    V_INLINE void name##_both(int64_t i, int64_t count, const wf_real *a, const wf_real *b, wf_real *c)                                    \
    {                                                                                                                                      \
        v_put(c + i, name##_of(v_get(a + i, count), v_get(b + i, count)), count);                                                          \
    }                                                                                                                                      \
    V_INLINE void name##_one(int64_t i, int64_t count, const wf_real *a, vr one, wf_real *c)                                               \
    {                                                                                                                                      \
        v_put(c + i, name##_of(v_get(a + i, count), one), count);                                                                          \
    }                                                                                                                                      \
    void WF_KERNEL(name)(int64_t n, const wf_real *a, int sa, const wf_real *b, int sb, wf_real *c)                                        \
    {                                                                                                                                      \
        if (sa && sb)                                                                                                                      \
            V_LOOP(n, name##_both, a, b, c);                                                                                               \
        else if (n > 0 && sa)                                                                                                              \
            V_LOOP(n, name##_one, a, v_set(*b), c);                                                                                        \
        else if (n > 0 && sb)                                                                                                              \
            V_LOOP(n, name##_one, b, v_set(*a), c);                                                                                        \
        else if (n > 0)                                                                                                                    \
            WF_KERNEL(fill)(n, name##_of(v_set(*a), v_set(*b))[0], c);                                                                     \
    }                                                                                                                                      \
    V_INLINE void name##_grad_part(int64_t i, int64_t count, const wf_real *a, const wf_real *b, const wf_real *dy, wf_real *da)           \
    {                                                                                                                                      \
        vr x = v_get(a + i, count), y = v_get(b + i, count), g = v_get(dy + i, count);                                                     \
        vr won = v_select(x == y, g * (wf_real)0.5, g);                                                                                    \
        v_put(da + i, v_select(x loses y, v_set(0), won), count);                                                                          \
    }                                                                                                                                      \
    void WF_KERNEL(name##_grad)(const void *ctx, int64_t n, const wf_real *const in[], wf_real *da)                                        \
    {                                                                                                                                      \
        (void)ctx;                                                                                                                         \
        const wf_real *a = in[0], *b = in[1], *dy = in[2];                                                                                 \
        V_LOOP(n, name##_grad_part, a, b, dy, da);                                                                                         \
    }

EXTREME(maximum, <)
EXTREME(minimum, >)
