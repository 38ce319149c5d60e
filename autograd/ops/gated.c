/* SPDX-License-Identifier: MIT */
/* The gated activations swiglu, silu(gate) up, and geglu_tanh, gelu_tanh(gate) up, in one sweep over the elements. Backward reads the
 * operands, so no intermediate tensor is kept. */
#include "common.h"

static wf_status gated_shape(wf_call *c)
{
    if (wf_want_reals(c, 2) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_shape gate = wf_array_shape(&c->in[0]), up = wf_array_shape(&c->in[1]);
    if (!wf_shape_equal(&gate, &up))
        return wf_call_fail(c, WF_ERR_SHAPE, "gate and up must have one shape");
    c->out[0] = wf_call_like(c, &c->in[0]);
    return WF_OK;
}

/* With f for silu or gelu_tanh: y = f(g) u, so dg = dy u f'(g) and du = dy f(g). `slope` computes dg. */
static wf_status gated_backward(wf_call *c, wf_map_kernel *f, wf_map_kernel *slope, double cost)
{
    const wf_array *gate = &c->in[0], *up = &c->in[1], *dy = &c->dout[0];
    for (int i = 0; i < 2; i++) {
        if (!c->need[i])
            continue;
        wf_array d = wf_grad_new(c, i);
        wf_status status = !d.data  ? WF_ERR_MEMORY
                           : i == 0 ? wf_map(slope, NULL, 3, (const wf_array *const[]){gate, up, dy}, &d, 1.5 * cost)
                                    : wf_map(f, NULL, 2, (const wf_array *const[]){gate, dy}, &d, cost);
        if (status != WF_OK)
            return status;
        wf_grad_give(c, i, &d);
    }
    return WF_OK;
}

static void gated_gradient(const wf_gradient_call *c, wf_tensor *(*f)(wf_tensor *), wf_tensor *(*slope)(wf_tensor *))
{
    if (c->need[0])
        c->dx[0] = wf_mul(wf_mul(c->dy[0], c->x[1]), slope(c->x[0]));
    if (c->need[1])
        c->dx[1] = wf_mul(c->dy[0], f(c->x[0]));
}

#define GATED(op, activation, cost)                                                                                                        \
    static wf_status op##_forward(wf_call *c)                                                                                              \
    {                                                                                                                                      \
        return wf_map(wf_kernel->internal->op, NULL, 2, (const wf_array *const[]){&c->in[0], &c->in[1]}, &c->out[0], cost);                \
    }                                                                                                                                      \
    static wf_status op##_backward(wf_call *c)                                                                                             \
    {                                                                                                                                      \
        return gated_backward(c, wf_kernel->internal->op, wf_kernel->internal->op##_slope, cost);                                          \
    }                                                                                                                                      \
    static void op##_gradient(const wf_gradient_call *c)                                                                                   \
    {                                                                                                                                      \
        gated_gradient(c, wf_##activation, activation##_slope);                                                                            \
    }                                                                                                                                      \
    const wf_op wf_op_##op = {.name = #op,                                                                                                 \
                              .operands = "gate up",                                                                                       \
                              .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1),                                                              \
                              .shape = gated_shape,                                                                                        \
                              .forward = op##_forward,                                                                                     \
                              .backward = op##_backward,                                                                                   \
                              .gradient = op##_gradient,                                                                                   \
                              .cases = WF_CASES({"matrix", {{3, 5}, {3, 5}}}, {"scalar", {{-2}, {-2}}}, {"one", {{1, 1}, {1, 1}}},         \
                                                {"empty", {{2, -1, 3}, {2, -1, 3}}}, {"odd", {{13, 17}, {13, 17}}},                        \
                                                {"six dims", {{2, 1, 3, 1, 2, 3}, {2, 1, 3, 1, 2, 3}}}, {"long", {{1031}, {1031}}})};      \
    wf_tensor *wf_##op(wf_tensor *gate, wf_tensor *up)                                                                                     \
    {                                                                                                                                      \
        return wf_apply(&wf_op_##op, NULL, 2, (wf_tensor *[]){gate, up});                                                                  \
    }

GATED(swiglu, silu, 0.3)
GATED(geglu_tanh, gelu_tanh, 0.4)
