/* SPDX-License-Identifier: MIT */
/* Sums and means over a dimension. */
#include "common.h"

struct sum_attr {
    int dim;
    bool keep, mean;
};

static int dim_of(wf_call *c)
{
    return wf_want_dim(c, 0, ((const struct sum_attr *)c->attr)->dim);
}

static wf_status sum_shape(wf_call *c)
{
    const struct sum_attr *a = c->attr;
    return wf_reduced_shape(c, a->dim, a->keep);
}

static wf_status sum_forward(wf_call *c)
{
    const struct sum_attr *a = c->attr;
    int dim = dim_of(c);
    wf_shape shape = {3, {1, c->in[0].dim[dim], 1}};
    for (int d = 0; d < c->in[0].ndim; d++)
        if (d != dim)
            shape.dim[d < dim ? 0 : 2] *= c->in[0].dim[d];
    wf_array in = wf_call_contiguous(c, &c->in[0]); /* the order of additions follows strides: it must not depend on the view */
    if (!in.data)
        return WF_ERR_MEMORY;
    wf_array x = wf_array_contiguous(in.data, WF_REAL, &shape);
    shape.dim[1] = 1;
    wf_array y = wf_array_contiguous(c->out[0].data, WF_REAL, &shape);
    return wf_sum_into(c, &y, &x, a->mean && x.dim[1] > 0 ? 1.0 / (double)x.dim[1] : 1, false);
}

/* y = s sum_i x_i with s = 1 or 1/n: every x_i gets s dy. The gradient is given as a view that repeats it. */
static wf_status sum_backward(wf_call *c)
{
    const struct sum_attr *a = c->attr;
    int dim = dim_of(c);
    wf_array dy = c->dout[0];
    if (wf_array_count(&c->in[0]) == 0) {
        wf_array none = wf_grad_new(c, 0);
        wf_grad_give(c, 0, &none);
        return none.data ? WF_OK : WF_ERR_MEMORY;
    }
    if (a->mean) {
        wf_shape shape = wf_array_shape(&dy);
        wf_array scaled = wf_call_temp(c, WF_REAL, &shape);
        if (!scaled.data)
            return WF_ERR_MEMORY;
        wf_map_affine(1.0 / (double)c->in[0].dim[dim], 0, &dy, &scaled);
        dy = scaled;
    }
    wf_array g = dy;
    g.ndim = c->in[0].ndim;
    for (int d = 0, from = 0; d < g.ndim; d++) {
        g.dim[d] = c->in[0].dim[d];
        g.stride[d] = d == dim ? 0 : dy.stride[from];
        from += d != dim || a->keep;
    }
    wf_grad_give(c, 0, &g);
    return WF_OK;
}

#define OVER(...) ATTR(struct sum_attr, __VA_ARGS__)
const wf_op wf_op_sum_dim = {
    .name = "sum_dim",
    .attr_size = sizeof(struct sum_attr),
    .reads = WF_READS_NOTHING,
    .shape = sum_shape,
    .forward = sum_forward,
    .backward = sum_backward,
    .cases = WF_CASES({"last", {{3, 5}}, OVER(-1, false, false)}, {"first", {{5, 3}}, OVER(0, false, false)},
                      {"middle, kept", {{2, 3, 5}}, OVER(1, true, false)}, {"mean of the last, kept", {{4, 7}}, OVER(1, true, true)},
                      {"mean of the first", {{4, 7}}, OVER(0, false, true)}, {"size 1", {{3, 1, 2}}, OVER(1, false, true)},
                      {"vector", {{7}}, OVER(0, false, false)}, {"vector, kept", {{7}}, OVER(0, true, true)},
                      {"over nothing", {{3, -1}}, OVER(1, false, false)}, {"mean of nothing", {{3, -1, 2}}, OVER(1, false, true)},
                      {"empty result", {{-1, 3}}, OVER(1, false, false)}, {"many rows", {{300, 3}}, OVER(0, false, true)},
                      {"planes of many rows", {{2, 150, 2}}, OVER(1, true, false)}, {"long", {{1, 20000}}, OVER(1, false, false)})};

wf_tensor *wf_sum_dim(wf_tensor *x, int dim, bool keep)
{
    return wf_apply(&wf_op_sum_dim, &(struct sum_attr){dim, keep, false}, 1, &x);
}

wf_tensor *wf_mean_dim(wf_tensor *x, int dim, bool keep)
{
    return wf_apply(&wf_op_sum_dim, &(struct sum_attr){dim, keep, true}, 1, &x);
}

wf_tensor *wf_sum(wf_tensor *x)
{
    return wf_sum_dim(wf_reshape(x, -1), 0, false);
}

wf_tensor *wf_mean(wf_tensor *x)
{
    return wf_mean_dim(wf_reshape(x, -1), 0, false);
}
