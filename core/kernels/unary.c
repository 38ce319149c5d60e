/* SPDX-License-Identifier: MIT */
/* Functions of one element, y[i] = f(x[i]), and their gradients, dx[i] = dy[i] f'(x[i]). At -inf, silu and gelu_tanh are NaN as in PyTorch,
 * because their formulas give inf / inf; gelu and all gradients return their limits there. swiglu and geglu_tanh give the same
 * bits as silu or gelu_tanh and a product. */
#include "vmath.h"

/* UNARY(name, formula) defines a kernel whose formula uses x. The formula of UNARY_GRAD also uses dy. In the gradients of tanh and sigmoid,
 * x is the function's result. */
#define UNARY(name, ...)                                                                                                                   \
    V_INLINE void name##_part(int64_t i, int64_t count, const wf_real *from, wf_real *y)                                                   \
    {                                                                                                                                      \
        const vr x = v_get(from + i, count);                                                                                               \
        v_put(y + i, __VA_ARGS__, count);                                                                                                  \
    }                                                                                                                                      \
    void WF_KERNEL(name)(int64_t n, const wf_real *x, wf_real *y)                                                                          \
    {                                                                                                                                      \
        V_LOOP(n, name##_part, x, y);                                                                                                      \
    }
#define UNARY_GRAD(name, ...)                                                                                                              \
    V_INLINE void name##_part(int64_t i, int64_t count, const wf_real *from, const wf_real *with, wf_real *dx)                             \
    {                                                                                                                                      \
        const vr x = v_get(from + i, count), dy = v_get(with + i, count);                                                                  \
        v_put(dx + i, __VA_ARGS__, count);                                                                                                 \
    }                                                                                                                                      \
    void WF_KERNEL(name)(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx)                                                      \
    {                                                                                                                                      \
        V_LOOP(n, name##_part, x, dy, dx);                                                                                                 \
    }

V_INLINE vr gelu_of(vr x)
{
    /* x Phi(x) = max(0, x) - |x| Phi(-|x|) */
    vr t = v_min(v_set(V_PHI_MAX), v_abs(x)), bell;
    return v_fnma(t, v_phi_minus(t, &bell), v_max(v_set(0), x));
}

V_INLINE vr silu_of(vr x)
{
    return x / (v_exp(-x) + 1);
}

/* 0.5 x (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3) */
#define GELU_TANH_1 ((wf_real)1.59576912160573071176)   /* 2 sqrt(2 / pi) */
#define GELU_TANH_3 ((wf_real)0.0713548162726002487763) /* 2 sqrt(2 / pi) 0.044715 */

V_INLINE vr gelu_tanh_minus_2u(vr x)
{
    return x * v_fmak(x * x, v_set(-GELU_TANH_3), -GELU_TANH_1);
}

V_INLINE vr gelu_tanh_of(vr x)
{
    return x / (v_exp(gelu_tanh_minus_2u(x)) + 1);
}

/* Not formatted automatically, because clang-format takes some products for pointer declarations. */
/* clang-format off */
UNARY(exp, v_exp(x))
UNARY(log, v_log(x))
UNARY(sqrt, v_sqrt(x))
UNARY(tanh, v_tanh(x))
UNARY(sigmoid, v_sigmoid(x))
UNARY(relu, v_max(v_set(0), x)) /* a NaN stays: for a NaN, v_max returns its second operand */
UNARY(gelu, gelu_of(x))
UNARY(gelu_tanh, gelu_tanh_of(x))
UNARY(silu, silu_of(x))
UNARY_GRAD(tanh_grad, dy * v_fnma(x, x, v_set(1)))
UNARY_GRAD(sigmoid_grad, dy * (x * (1 - x)))
UNARY_GRAD(relu_grad, v_if_less_equal(x, v_set(0), v_set(0), dy))
/* clang-format on */

/* dy times the derivative Phi(x) + x phi(x) */
V_INLINE vr gelu_grad_of(vr x, vr dy)
{
    x = v_max(v_set(-V_PHI_MAX), v_min(v_set(V_PHI_MAX), x)); /* clamped, because inf * 0 would be a NaN */
    vr bell;
    vr tail = v_phi_minus(v_abs(x), &bell);
    vr phi = v_if_less(x, v_set(0), tail, 1 - tail);
    return dy * v_fma(x * (wf_real)0.398942280401432677940, bell, phi);
}

/* Returns the derivative of x s, which is s + x s (1 - s) slope, for s = 1 / (1 + e^minus_z) and slope = dz/dx. 1 - s is computed as
 * e^minus_z s, which is accurate even if s is near 1. The callers clamp x, and minus_z is limited to V_EXP_SAFE, so that nothing overflows.
 * Beyond these limits the second term is then at most 1e-34 instead of 0. */
V_INLINE vr logistic_slope(vr x, vr minus_z, vr slope)
{
    vr e = v_exp(v_min(v_set(V_EXP_SAFE), minus_z));
    vr s = v_set(1) / (e + 1);
    return v_fma(x * slope, e * s * s, s);
}

V_INLINE vr gelu_tanh_grad_of(vr x, vr dy)
{
    x = v_max(v_set(-40), v_min(v_set(40), x));
    return dy * logistic_slope(x, gelu_tanh_minus_2u(x), v_fmak(x * x, v_set(3 * GELU_TANH_3), GELU_TANH_1));
}

V_INLINE vr silu_grad_of(vr x, vr dy)
{
    x = v_max(v_set(-V_EXP_MAX), v_min(v_set(V_EXP_MAX), x));
    return dy * logistic_slope(x, -x, v_set(1));
}

UNARY_GRAD(gelu_grad, gelu_grad_of(x, dy))
UNARY_GRAD(gelu_tanh_grad, gelu_tanh_grad_of(x, dy))
UNARY_GRAD(silu_grad, silu_grad_of(x, dy))

/* A gated activation, f(gate) up, and its gradient of the gate, f'(gate) up dy. */
#define GATED(name, f)                                                                                                                     \
    V_INLINE void name##_part(int64_t i, int64_t count, const wf_real *gate, const wf_real *up, wf_real *y)                                \
    {                                                                                                                                      \
        v_put(y + i, f##_of(v_get(gate + i, count)) * v_get(up + i, count), count);                                                        \
    }                                                                                                                                      \
    void WF_KERNEL(name)(const void *ctx, int64_t n, const wf_real *const in[], wf_real *y)                                                \
    {                                                                                                                                      \
        (void)ctx;                                                                                                                         \
        const wf_real *gate = in[0], *up = in[1];                                                                                          \
        V_LOOP(n, name##_part, gate, up, y);                                                                                               \
    }                                                                                                                                      \
    V_INLINE void name##_slope_part(int64_t i, int64_t count, const wf_real *gate, const wf_real *up, const wf_real *dy, wf_real *dgate)   \
    {                                                                                                                                      \
        v_put(dgate + i, f##_grad_of(v_get(gate + i, count), v_get(dy + i, count) * v_get(up + i, count)), count);                         \
    }                                                                                                                                      \
    void WF_KERNEL(name##_slope)(const void *ctx, int64_t n, const wf_real *const in[], wf_real *dgate)                                    \
    {                                                                                                                                      \
        (void)ctx;                                                                                                                         \
        const wf_real *gate = in[0], *up = in[1], *dy = in[2];                                                                             \
        V_LOOP(n, name##_slope_part, gate, up, dy, dgate);                                                                                 \
    }

GATED(swiglu, silu)
GATED(geglu_tanh, gelu_tanh)
