/* SPDX-License-Identifier: MIT */
/* Functions of one element. Each op declares which value its backward reads. If that is the result, the tape need not keep the operand. */
#include <math.h>

#include "common.h"

#define PI 3.14159265358979323846

#define UNARY_CASES(how)                                                                                                                   \
    WF_CASES({"matrix", {{3, 5}}, {how}}, {"scalar", {{-2}}, {how}}, {"one", {{1, 1}}, {how}}, {"empty", {{2, -1, 3}}, {how}},             \
             {"odd", {{13, 17}}, {how}}, {"six dims", {{2, 1, 3, 1, 2, 3}}, {how}}, {"long", {{1031}}, {how}})

/* Defines an op, which applies the kernel with the same name, and defines the op's constructor. `how`: how the test cases fill the operand.
 * op##_slope makes y' of that value as a tensor, for wf_op.gradient. The gradient is dx = grad(value, dy), where `value` is `in` (the
 * operand), `out` (the result) or `sign` (the result, of which the sign is enough), as the formula requires. */
#define READS_in .reads = WF_READS_INPUT(0)
#define READS_out .reads = WF_READS_OUTPUT(0)
#define READS_sign .reads = WF_READS_OUTPUT(0), .rounds = WF_READS_OUTPUT(0)
#define TENSOR_in c->x[0]
#define TENSOR_out c->y[0]
#define TENSOR_sign c->y[0]
#define VALUE_in c->in[0]
#define VALUE_out c->out[0]
#define VALUE_sign wf_reals_of(c, &c->out[0])
#define UNARY(op, how, cost, grad, value, grad_cost)                                                                                       \
    static wf_status op##_forward(wf_call *c)                                                                                              \
    {                                                                                                                                      \
        wf_map_unary(wf_kernel->op, &c->in[0], &c->out[0], cost);                                                                          \
        return WF_OK;                                                                                                                      \
    }                                                                                                                                      \
    static wf_status op##_backward(wf_call *c)                                                                                             \
    {                                                                                                                                      \
        const wf_array from = VALUE_##value;                                                                                               \
        wf_array dx = wf_grad_new(c, 0);                                                                                                   \
        if (!from.data)                                                                                                                    \
            return WF_ERR_MEMORY;                                                                                                          \
        wf_map_grad(grad, &from, &c->dout[0], &dx, grad_cost);                                                                             \
        wf_grad_give(c, 0, &dx);                                                                                                           \
        return WF_OK;                                                                                                                      \
    }                                                                                                                                      \
    static void op##_gradient(const wf_gradient_call *c)                                                                                   \
    {                                                                                                                                      \
        c->dx[0] = wf_mul(c->dy[0], op##_slope(TENSOR_##value));                                                                           \
    }                                                                                                                                      \
    const wf_op wf_op_##op = {.name = #op,                                                                                                 \
                              READS_##value,                                                                                               \
                              .shape = wf_same_shape,                                                                                      \
                              .forward = op##_forward,                                                                                     \
                              .backward = op##_backward,                                                                                   \
                              .gradient = op##_gradient,                                                                                   \
                              .cases = UNARY_CASES(how)};                                                                                  \
    wf_tensor *wf_##op(wf_tensor *x)                                                                                                       \
    {                                                                                                                                      \
        return wf_apply(&wf_op_##op, NULL, 1, &x);                                                                                         \
    }

/* exp: y' = y. */
static void exp_grad(int64_t n, const wf_real *y, const wf_real *dy, wf_real *dx)
{
    wf_kernel->mul(n, y, 1, dy, 1, dx);
}
static wf_tensor *exp_slope(wf_tensor *y)
{
    return y;
}

UNARY(exp, WF_FILL_NORMAL, 0.2, exp_grad, out, 0.11)

/* log: y' = 1 / x. */
static void log_grad(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx)
{
    wf_kernel->div(n, dy, 1, x, 1, dx);
}
static wf_tensor *log_slope(wf_tensor *x)
{
    return wf_constant_over(1, x);
}

UNARY(log, WF_FILL_POSITIVE, 0.25, log_grad, in, 0.15)

/* sqrt: y' = 1 / (2 sqrt(x)) = 1 / (2 y). */
static void sqrt_grad(int64_t n, const wf_real *y, const wf_real *dy, wf_real *dx)
{
    wf_kernel->div(n, dy, 1, y, 1, dx);
    wf_kernel->affine(n, (wf_real)0.5, 0, dx, dx);
}
static wf_tensor *sqrt_slope(wf_tensor *y)
{
    return wf_constant_over(0.5, y);
}

UNARY(sqrt, WF_FILL_POSITIVE, 0.2, sqrt_grad, out, 0.2)

/* tanh: y' = 1 - y^2. */
static wf_tensor *tanh_slope(wf_tensor *y)
{
    return wf_constant_minus(1, wf_square(y));
}

UNARY(tanh, WF_FILL_NORMAL, 0.3, wf_kernel->tanh_grad, out, 0.11)

/* sigmoid: y = 1 / (1 + e^-x), y' = y (1 - y). */
static wf_tensor *sigmoid_slope(wf_tensor *y)
{
    return wf_mul(y, wf_constant_minus(1, y));
}

UNARY(sigmoid, WF_FILL_NORMAL, 0.25, wf_kernel->sigmoid_grad, out, 0.11)

/* relu: y' = 1 where x > 0, which is where y > 0, else 0. Reading y costs no memory, because y is kept anyway for the backward of the
 * matrix product that usually follows. */
static wf_tensor *relu_slope(wf_tensor *y)
{
    return wf_constant_minus(1, wf_to_real(wf_le_constant(y, 0))); /* 1 for NaN */
}

UNARY(relu, WF_FILL_APART, 0.08, wf_kernel->relu_grad, sign, 0.11)

/* gelu: y = x Phi(x), y' = Phi(x) + x phi(x) with phi(x) = e^(-x^2/2) / sqrt(2 pi). */
static wf_tensor *gelu_slope(wf_tensor *x)
{
    x = wf_clamp(x, -WF_SATURATED, WF_SATURATED);
    wf_tensor *Phi = wf_affine(wf_erf(wf_scale(x, sqrt(0.5))), 0.5, 0.5);
    return wf_add(Phi, wf_mul(x, wf_scale(wf_exp(wf_scale(wf_square(x), -0.5)), 1 / sqrt(2 * PI))));
}

UNARY(gelu, WF_FILL_NORMAL, 0.3, wf_kernel->gelu_grad, in, 0.5)

/* gelu_tanh: y = x/2 (1 + t), t = tanh(u), u = sqrt(2/pi) (x + 0.044715 x^3);
 * y' = (1 + t)/2 + x/2 (1 - t^2) u', u' = sqrt(2/pi) (1 + 0.134145 x^2). */
wf_tensor *gelu_tanh_slope(wf_tensor *x)
{
    const double root = sqrt(2 / PI);
    x = wf_clamp(x, -WF_SATURATED, WF_SATURATED);
    wf_tensor *square = wf_square(x), *t = wf_tanh(wf_mul(x, wf_affine(square, 0.044715 * root, root)));
    wf_tensor *inner = wf_mul(wf_scale(x, 0.5), wf_affine(square, 0.134145 * root, root));
    return wf_add(wf_affine(t, 0.5, 0.5), wf_mul(inner, wf_constant_minus(1, wf_square(t))));
}

UNARY(gelu_tanh, WF_FILL_NORMAL, 0.35, wf_kernel->gelu_tanh_grad, in, 0.5)

/* silu: y = x s(x) with the sigmoid s; y' = s (1 + x (1 - s)). */
wf_tensor *silu_slope(wf_tensor *x)
{
    x = wf_clamp(x, -WF_SATURATED, WF_SATURATED);
    wf_tensor *s = wf_sigmoid(x);
    return wf_mul(s, wf_add_constant(wf_mul(x, wf_constant_minus(1, s)), 1));
}

UNARY(silu, WF_FILL_NORMAL, 0.25, wf_kernel->silu_grad, in, 0.4)
