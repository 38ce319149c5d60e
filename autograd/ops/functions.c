/* SPDX-License-Identifier: MIT */
/* More functions of one element. Like the functions of elementwise.c, each is two kernels, for value and gradient, but has no constants. */
#include <math.h>

#include "common.h"

#define FUNCTION_CASES(how)                                                                                                                \
    WF_CASES({"matrix", {{3, 5}}, {how}}, {"scalar", {{-2}}, {how}}, {"one", {{1, 1}}, {how}}, {"empty", {{2, -1, 3}}, {how}},             \
             {"odd", {{13, 17}}, {how}}, {"six dims", {{2, 1, 3, 1, 2, 3}}, {how}}, {"long", {{1031}}, {how}})

#define FORWARD(op, cost)                                                                                                                  \
    static wf_status op##_forward(wf_call *c)                                                                                              \
    {                                                                                                                                      \
        return wf_map(wf_kernel->internal->op, NULL, 1, (const wf_array *const[]){&c->in[0]}, &c->out[0], cost);                           \
    }
#define CONSTRUCTOR(op)                                                                                                                    \
    wf_tensor *wf_##op(wf_tensor *x)                                                                                                       \
    {                                                                                                                                      \
        return wf_apply(&wf_op_##op, NULL, 1, &x);                                                                                         \
    }

/* how: how the test cases fill the operand. op##_slope makes y' of x as a tensor, for wf_op.gradient. */
#define FUNCTION(op, how, cost, grad_cost)                                                                                                 \
    FORWARD(op, cost)                                                                                                                      \
    static wf_status op##_backward(wf_call *c)                                                                                             \
    {                                                                                                                                      \
        wf_array dx = wf_grad_new(c, 0);                                                                                                   \
        wf_status status =                                                                                                                 \
            wf_map(wf_kernel->internal->op##_grad, NULL, 2, (const wf_array *const[]){&c->in[0], &c->dout[0]}, &dx, grad_cost);            \
        wf_grad_give(c, 0, &dx);                                                                                                           \
        return status;                                                                                                                     \
    }                                                                                                                                      \
    static void op##_gradient(const wf_gradient_call *c)                                                                                   \
    {                                                                                                                                      \
        c->dx[0] = wf_mul(c->dy[0], op##_slope(c->x[0]));                                                                                  \
    }                                                                                                                                      \
    const wf_op wf_op_##op = {.name = #op,                                                                                                 \
                              .reads = WF_READS_INPUT(0),                                                                                  \
                              .shape = wf_same_shape,                                                                                      \
                              .forward = op##_forward,                                                                                     \
                              .backward = op##_backward,                                                                                   \
                              .gradient = op##_gradient,                                                                                   \
                              .cases = FUNCTION_CASES(how)};                                                                               \
    CONSTRUCTOR(op)

/* rsqrt: y = x^(-1/2), y' = -y^3 / 2. */
static wf_tensor *rsqrt_slope(wf_tensor *x)
{
    wf_tensor *y = wf_rsqrt(x);
    return wf_scale(wf_mul(wf_square(y), y), -0.5);
}
FUNCTION(rsqrt, WF_FILL_POSITIVE, 0.3, 0.4)
/* sin: y' = cos x. */
static wf_tensor *sin_slope(wf_tensor *x)
{
    return wf_cos(x);
}
FUNCTION(sin, WF_FILL_NORMAL, 1, 1.1)
/* cos: y' = -sin x. */
static wf_tensor *cos_slope(wf_tensor *x)
{
    return wf_neg(wf_sin(x));
}
FUNCTION(cos, WF_FILL_NORMAL, 1, 1.1)
/* erf: y' = 2 e^(-x^2) / sqrt(pi). */
static wf_tensor *erf_slope(wf_tensor *x)
{
    return wf_scale(wf_exp(wf_neg(wf_square(x))), 2 / sqrt(acos(-1)));
}
FUNCTION(erf, WF_FILL_NORMAL, 0.5, 0.3)
/* log_sigmoid: y = -ln(1 + e^-x), y' = sigmoid(-x). */
static wf_tensor *log_sigmoid_slope(wf_tensor *x)
{
    return wf_sigmoid(wf_neg(x));
}
FUNCTION(log_sigmoid, WF_FILL_NORMAL, 0.4, 0.3)
/* hard_swish: y = x min(max(x + 3, 0), 6) / 6, y' = 0 up to -3, x / 3 + 1/2 up to 3, then 1. */
static wf_tensor *hard_swish_slope(wf_tensor *x)
{
    wf_tensor *one = wf_full(wf_tape_of(x), &(wf_shape){0}, 1), *middle = wf_add_constant(wf_div_constant(x, 3), 0.5);
    return wf_where(wf_ge_constant(x, 3), one, wf_masked_fill(middle, wf_le_constant(x, -3), 0));
}
FUNCTION(hard_swish, WF_FILL_NORMAL, 0.15, 0.2)
/* mish: y = x t with t = tanh(ln(1 + e^x)), y' = t + x (1 - t^2) sigmoid(x). */
static wf_tensor *mish_slope(wf_tensor *x)
{
    x = wf_clamp(x, -WF_SATURATED, WF_SATURATED);
    wf_tensor *t = wf_tanh(wf_softplus(x, 1));
    return wf_add(t, wf_mul(wf_mul(x, wf_sigmoid(x)), wf_constant_minus(1, wf_square(t))));
}
FUNCTION(mish, WF_FILL_NORMAL, 0.4, 0.5)

/* --- steps: the gradient is 0 ----------------------------------------------------------------------------------------- */

/* As in PyTorch, the result depends on x, so that a loss without another way to its parameters gives them zeros and no error. */
static void zero_gradient(const wf_gradient_call *c)
{
    (void)c; /* NULL in c->dx stands for zeros */
}

#define STEP(op)                                                                                                                           \
    FORWARD(op, 0.12)                                                                                                                      \
    const wf_op wf_op_##op = {.name = #op,                                                                                                 \
                              .reads = WF_READS_NOTHING,                                                                                   \
                              .shape = wf_same_shape,                                                                                      \
                              .forward = op##_forward,                                                                                     \
                              .backward = wf_give_zeros,                                                                                   \
                              .gradient = zero_gradient,                                                                                   \
                              .cases = FUNCTION_CASES(WF_FILL_NORMAL)};                                                                    \
    CONSTRUCTOR(op)

STEP(sign)
STEP(floor)
STEP(round)

/* --- isnan, isfinite: bools ------------------------------------------------------------------------------------------- */

static wf_status test_shape(wf_call *c)
{
    const wf_status status = wf_same_shape(c);
    const wf_shape shape = wf_array_shape(&c->in[0]);
    if (status == WF_OK)
        c->out[0] = wf_call_shape(WF_BOOL, &shape);
    return status;
}

static wf_status isnan_forward(wf_call *c)
{
    return wf_map_any(wf_kernel->internal->compare_ne, NULL, 2, (const wf_array *const[]){&c->in[0], &c->in[0]}, &c->out[0], 0.1);
}

static wf_status isfinite_forward(wf_call *c)
{
    return wf_map_any(wf_kernel->internal->is_finite, NULL, 1, (const wf_array *const[]){&c->in[0]}, &c->out[0], 0.1);
}

#define TEST(op)                                                                                                                           \
    const wf_op wf_op_##op = {                                                                                                             \
        .name = #op, .constant = true, .shape = test_shape, .forward = op##_forward, .cases = FUNCTION_CASES(WF_FILL_NORMAL)};             \
    CONSTRUCTOR(op)

TEST(isnan)
TEST(isfinite)
