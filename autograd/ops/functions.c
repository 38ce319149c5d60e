/* SPDX-License-Identifier: MIT */
/* More functions of one element. Like the functions of elementwise.c, each is two kernels, for value and gradient, but has no constants. */
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

/* how: how the test cases fill the operand. */
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
    const wf_op wf_op_##op = {.name = #op,                                                                                                 \
                              .reads = WF_READS_INPUT(0),                                                                                  \
                              .shape = wf_same_shape,                                                                                      \
                              .forward = op##_forward,                                                                                     \
                              .backward = op##_backward,                                                                                   \
                              .cases = FUNCTION_CASES(how)};                                                                               \
    CONSTRUCTOR(op)

/* rsqrt: y = x^(-1/2), y' = -y^3 / 2. */
FUNCTION(rsqrt, WF_FILL_POSITIVE, 0.3, 0.4)
/* sin: y' = cos x; cos: y' = -sin x. */
FUNCTION(sin, WF_FILL_NORMAL, 1, 1.1)
FUNCTION(cos, WF_FILL_NORMAL, 1, 1.1)
/* erf: y' = 2 e^(-x^2) / sqrt(pi). */
FUNCTION(erf, WF_FILL_NORMAL, 0.5, 0.3)
/* log_sigmoid: y = -ln(1 + e^-x), y' = sigmoid(-x). */
FUNCTION(log_sigmoid, WF_FILL_NORMAL, 0.4, 0.3)
/* hard_swish: y = x min(max(x + 3, 0), 6) / 6, y' = 0 up to -3, x / 3 + 1/2 up to 3, then 1. */
FUNCTION(hard_swish, WF_FILL_NORMAL, 0.15, 0.2)
/* mish: y = x tanh(ln(1 + e^x)); the kernel has the formulas. */
FUNCTION(mish, WF_FILL_NORMAL, 0.4, 0.5)

/* --- steps: the gradient is 0 ----------------------------------------------------------------------------------------- */

/* As in PyTorch, the result depends on x, so that a loss without another way to its parameters gives them zeros and no error. */
#define STEP(op)                                                                                                                           \
    FORWARD(op, 0.12)                                                                                                                      \
    const wf_op wf_op_##op = {.name = #op,                                                                                                 \
                              .reads = WF_READS_NOTHING,                                                                                   \
                              .shape = wf_same_shape,                                                                                      \
                              .forward = op##_forward,                                                                                     \
                              .backward = wf_give_zeros,                                                                                   \
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
