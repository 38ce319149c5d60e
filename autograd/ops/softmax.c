/* SPDX-License-Identifier: MIT */
/* softmax over the last dimension. */
#include "common.h"

static wf_status softmax_shape(wf_call *c)
{
    wf_status status = wf_same_shape(c);
    return status == WF_OK && c->in[0].ndim < 1
               ? wf_call_fail(c, WF_ERR_SHAPE, "the operand is a scalar; at least one dimension is required")
               : status;
}

struct softmax {
    int64_t d;
    const wf_real *x;  /* forward: the operand; backward: the result */
    const wf_real *dy; /* backward: the gradient of the result; forward: NULL */
    wf_real *y;
};

static void rows_body(void *ctx, int64_t begin, int64_t end)
{
    const struct softmax *s = ctx;
    int64_t from = begin * s->d;
    if (s->dy)
        wf_kernel->softmax_grad(end - begin, s->d, s->x + from, s->dy + from, s->y + from);
    else
        wf_kernel->softmax(end - begin, s->d, s->x + from, s->y + from);
}

static wf_status softmax_forward(wf_call *c)
{
    wf_array x = wf_contiguous_rows_of(c, &c->in[0]);
    if (!x.data)
        return WF_ERR_MEMORY;
    int64_t rows = x.dim[0], d = x.dim[1];
    struct softmax s = {d, x.data, NULL, c->out[0].data};
    if (d > 0)
        wf_parallel_ranges(rows, wf_block_rows(d), 0.23 * (double)rows * (double)d, rows_body, &s);
    return WF_OK;
}

/* y_i = e^x_i / sum_k e^x_k, so dy_i/dx_j = y_i (delta_ij - y_j) and dx_j = y_j (dy_j - sum_i dy_i y_i). */
static wf_status softmax_backward(wf_call *c)
{
    wf_array dy = wf_contiguous_rows_of(c, &c->dout[0]), dx = wf_grad_new(c, 0);
    if (!dy.data || !dx.data)
        return WF_ERR_MEMORY;
    int64_t rows = dy.dim[0], d = dy.dim[1];
    struct softmax s = {d, c->out[0].data, dy.data, dx.data};
    if (d > 0)
        wf_parallel_ranges(rows, wf_block_rows(d), 0.12 * (double)rows * (double)d, rows_body, &s);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

static void softmax_gradient(const wf_gradient_call *c)
{
    wf_tensor *y = c->y[0], *dy = c->dy[0];
    c->dx[0] = wf_mul(y, wf_subtract(dy, wf_sum_dim(wf_mul(dy, y), -1, true)));
}

const wf_op wf_op_softmax = {.name = "softmax",
                             .reads = WF_READS_OUTPUT(0),
                             .shape = softmax_shape,
                             .forward = softmax_forward,
                             .backward = softmax_backward,
                             .gradient = softmax_gradient,
                             .cases = WF_CASES({"rows", {{3, 5}}}, {"three dims", {{2, 3, 4}}}, {"vector", {{7}}}, {"one column", {{4, 1}}},
                                               {"one", {{1, 1}}}, {"no rows", {{-1, 5}}}, {"no columns", {{3, -1}}}, {"odd", {{13, 17}}},
                                               {"long", {{2, 70}}})};

wf_tensor *wf_softmax(wf_tensor *x)
{
    return wf_apply(&wf_op_softmax, NULL, 1, &x);
}
