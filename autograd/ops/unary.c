/* SPDX-License-Identifier: MIT */
/* Functions of an element. What a backward needs is declared exactly: where the result serves, the operand is let go. */
#include <weft/op.h>
#include <weft/ops.h>

#include <weft/internal/kernels.h>
#include <weft/internal/ops_all.h>

#include "elementwise.h"
#include "rows.h"

static wf_status same_shape(wf_call *c)
{
    wf_status status = wf_want(c, 0, WF_REAL);
    if (status == WF_OK)
        c->out[0] = wf_call_like(c, &c->in[0]);
    return status;
}

/* dx = f(value, dy), handed over without a copy. */
static wf_status give(wf_call *c, wf_grad_kernel *f, const wf_array *value, double cost)
{
    wf_array dx = wf_grad_new(c, 0);
    if (!dx.data)
        return WF_ERR_MEMORY;
    wf_map_grad(f, value, &c->dout[0], &dx, cost);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

#define UNARY_CASES(how)                                                                                                                   \
    WF_CASES({"matrix", {{3, 5}}, {how}}, {"scalar", {{-2}}, {how}}, {"one", {{1, 1}}, {how}}, {"empty", {{2, -1, 3}}, {how}},             \
             {"odd", {{13, 17}}, {how}}, {"six dims", {{2, 1, 3, 1, 2, 3}}, {how}}, {"long", {{1031}}, {how}})

#define FORWARD(name, cost)                                                                                                                \
    static wf_status name##_forward(wf_call *c)                                                                                            \
    {                                                                                                                                      \
        wf_map_unary(wf_kernel->name, &c->in[0], &c->out[0], cost);                                                                        \
        return WF_OK;                                                                                                                      \
    }
#define BACKWARD(name, kernel, value, cost)                                                                                                \
    static wf_status name##_backward(wf_call *c)                                                                                           \
    {                                                                                                                                      \
        return give(c, kernel, &c->value[0], cost);                                                                                        \
    }
/* The result serves the backward, or the operand does. */
#define OF_RESULT .keeps_inputs_away = true, .reads_outputs = true
#define OF_OPERAND .reads_inputs = 1
#define UNARY(op, how, reads)                                                                                                              \
    const wf_op wf_op_##op = {                                                                                                             \
        .name = #op, reads, .shape = same_shape, .forward = op##_forward, .backward = op##_backward, .cases = UNARY_CASES(how)};           \
    wf_tensor *wf_##op(wf_tensor *x)                                                                                                       \
    {                                                                                                                                      \
        return wf_apply(&wf_op_##op, NULL, 1, &x);                                                                                         \
    }

/* exp: y' = y. */
static void exp_grad(int64_t n, const wf_real *y, const wf_real *dy, wf_real *dx)
{
    wf_kernel->mul(n, y, 1, dy, 1, dx);
}
FORWARD(exp, 0.2)
BACKWARD(exp, exp_grad, out, 0.11)
UNARY(exp, WF_FILL_NORMAL, OF_RESULT)

/* log: y' = 1 / x. */
static void log_grad(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx)
{
    wf_kernel->div(n, dy, 1, x, 1, dx);
}
FORWARD(log, 0.25)
BACKWARD(log, log_grad, in, 0.15)
UNARY(log, WF_FILL_POSITIVE, OF_OPERAND)

/* sqrt: y' = 1 / (2 sqrt(x)) = 1 / (2 y). */
static void sqrt_grad(int64_t n, const wf_real *y, const wf_real *dy, wf_real *dx)
{
    wf_kernel->div(n, dy, 1, y, 1, dx);
    wf_kernel->affine(n, (wf_real)0.5, 0, dx, dx);
}
FORWARD(sqrt, 0.2)
BACKWARD(sqrt, sqrt_grad, out, 0.2)
UNARY(sqrt, WF_FILL_POSITIVE, OF_RESULT)

/* tanh: y' = 1 - y^2. */
FORWARD(tanh, 0.3)
BACKWARD(tanh, wf_kernel->tanh_grad, out, 0.11)
UNARY(tanh, WF_FILL_NORMAL, OF_RESULT)

/* sigmoid: y = 1 / (1 + e^-x), y' = y (1 - y). */
FORWARD(sigmoid, 0.25)
BACKWARD(sigmoid, wf_kernel->sigmoid_grad, out, 0.11)
UNARY(sigmoid, WF_FILL_NORMAL, OF_RESULT)

/* relu: y' = 1 where x > 0, which is where y > 0, else 0. The product that follows reads y anyway. */
FORWARD(relu, 0.08)
BACKWARD(relu, wf_kernel->relu_grad, out, 0.11)
UNARY(relu, WF_FILL_APART, OF_RESULT)

/* gelu: y = x Phi(x), y' = Phi(x) + x phi(x) with phi(x) = e^(-x^2/2) / sqrt(2 pi). */
FORWARD(gelu, 0.3)
BACKWARD(gelu, wf_kernel->gelu_grad, in, 0.5)
UNARY(gelu, WF_FILL_NORMAL, OF_OPERAND)

/* gelu_tanh: y = x/2 (1 + t), t = tanh(u), u = sqrt(2/pi) (x + 0.044715 x^3);
 * y' = (1 + t)/2 + x/2 (1 - t^2) u', u' = sqrt(2/pi) (1 + 0.134145 x^2). */
FORWARD(gelu_tanh, 0.35)
BACKWARD(gelu_tanh, wf_kernel->gelu_tanh_grad, in, 0.5)
UNARY(gelu_tanh, WF_FILL_NORMAL, OF_OPERAND)

/* silu: y = x s(x), s the sigmoid; y' = s (1 + x (1 - s)). */
FORWARD(silu, 0.25)
BACKWARD(silu, wf_kernel->silu_grad, in, 0.4)
UNARY(silu, WF_FILL_NORMAL, OF_OPERAND)
