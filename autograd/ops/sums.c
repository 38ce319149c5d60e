/* SPDX-License-Identifier: MIT */
/* Sums and means over a dimension, or over all elements. */
#include "common.h"

#include <weft/internal/shape.h>

struct sum_attr {
    int dim;
    bool keep; /* keep the dimension, with size 1 */
    bool mean; /* divide the sum by the number of its terms */
    bool all;  /* sum over all elements, to a scalar; then dim and keep are not read */
};

static const char *name_of(const void *attr)
{
    const struct sum_attr *a = attr;
    return a->all ? a->mean ? "mean" : "sum" : a->mean ? "mean_dim" : "sum_dim";
}

static wf_status sum_shape(wf_call *c)
{
    const struct sum_attr *a = c->attr;
    return wf_reduction_shape(c, a->all, a->dim, a->keep);
}

/* Elements are added in the order in which they lie in memory, which depends on the strides. In a sum over a dimension whose bits must not
 * depend on other rows (rows_alone), elements are added in the order of their indices instead, because the number of rows may change the
 * strides. */
static wf_status sum_forward(wf_call *c)
{
    const struct sum_attr *a = c->attr;
    const int64_t terms = wf_reduction_terms(c, a->all, a->dim);
    wf_array y = c->out[0];
    if (!a->all) {
        const wf_shape kept = wf_shape_without(&c->in[0], wf_want_dim(c, 0, a->dim), true);
        y = wf_array_contiguous(y.data, WF_REAL, &kept);
    }
    const double scale = a->mean && terms > 0 ? 1.0 / (double)terms : 1;
    const wf_status status =
        c->rows_alone && !a->all ? wf_array_sum_in_order(&y, &c->in[0], scale) : wf_array_sum(&y, &c->in[0], scale, false);
    return status == WF_OK ? status : wf_call_fail(c, status, "no memory for partial sums");
}

/* y = s sum_i x_i with s = 1 or 1/n, so the gradient of each x_i is s dy. It is given as a view that repeats s dy. */
static wf_status sum_backward(wf_call *c)
{
    const struct sum_attr *a = c->attr;
    const int dim = a->all ? -1 : wf_want_dim(c, 0, a->dim);
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
        wf_map_affine(1.0 / (double)wf_reduction_terms(c, a->all, a->dim), 0, &dy, &scaled);
        dy = scaled;
    }
    wf_array g = dy;
    g.ndim = c->in[0].ndim;
    for (int d = 0, from = 0; d < g.ndim; d++) {
        g.dim[d] = c->in[0].dim[d];
        g.stride[d] = a->all || d == dim ? 0 : dy.stride[from];
        from += d != dim || a->keep;
    }
    wf_grad_give(c, 0, &g);
    return WF_OK;
}

static void sum_gradient(const wf_gradient_call *c)
{
    const struct sum_attr *a = c->attr;
    wf_shape shape = wf_shape_of(c->x[0]);
    wf_tensor *dy = c->dy[0];
    if (!a->all && !a->keep)
        dy = wf_unsqueeze(dy, a->dim); /* a negative dim counts from the end of x, which has as many dimensions as the result then */
    const int64_t terms = a->all ? wf_shape_count(&shape) : wf_dim(c->x[0], a->dim);
    c->dx[0] = wf_expand_to(a->mean && terms > 0 ? wf_scale(dy, 1.0 / (double)terms) : dy, &shape);
}

#define OVER(...) ATTR(struct sum_attr, __VA_ARGS__)
const wf_op wf_op_sum_dim = {
    .name = "sum_dim",
    .name_of = name_of,
    .attr_size = sizeof(struct sum_attr),
    .reads = WF_READS_NOTHING,
    .shape = sum_shape,
    .forward = sum_forward,
    .backward = sum_backward,
    .gradient = sum_gradient,
    .cases = WF_CASES({"last", {{3, 5}}, OVER(-1, false, false)}, {"first", {{5, 3}}, OVER(0, false, false)},
                      {"middle, kept", {{2, 3, 5}}, OVER(1, true, false)}, {"mean of the last, kept", {{4, 7}}, OVER(1, true, true)},
                      {"mean of the first", {{4, 7}}, OVER(0, false, true)}, {"size 1", {{3, 1, 2}}, OVER(1, false, true)},
                      {"vector", {{7}}, OVER(0, false, false)}, {"vector, kept", {{7}}, OVER(0, true, true)},
                      {"over nothing", {{3, -1}}, OVER(1, false, false)}, {"mean of nothing", {{3, -1, 2}}, OVER(1, false, true)},
                      {"empty result", {{-1, 3}}, OVER(1, false, false)}, {"many rows", {{300, 3}}, OVER(0, false, true)},
                      {"planes of many rows", {{2, 150, 2}}, OVER(1, true, false)}, {"long", {{1, 20000}}, OVER(1, false, false)},
                      {"all", {{3, 5}}, OVER(.all = true)}, {"mean of all", {{2, 3, 2}}, OVER(.all = true, .mean = true)},
                      {"all of a scalar", {{-2}}, OVER(.all = true)}, {"all of nothing", {{3, -1}}, OVER(.all = true, .mean = true)},
                      {"all of many", {{150, 130}}, OVER(.all = true)})};

wf_tensor *wf_sum_dim(wf_tensor *x, int dim, bool keep)
{
    return wf_apply(&wf_op_sum_dim, &(struct sum_attr){.dim = dim, .keep = keep}, 1, &x);
}

wf_tensor *wf_mean_dim(wf_tensor *x, int dim, bool keep)
{
    return wf_apply(&wf_op_sum_dim, &(struct sum_attr){.dim = dim, .keep = keep, .mean = true}, 1, &x);
}

wf_tensor *wf_sum(wf_tensor *x)
{
    return wf_apply(&wf_op_sum_dim, &(struct sum_attr){.all = true}, 1, &x);
}

wf_tensor *wf_mean(wf_tensor *x)
{
    return wf_apply(&wf_op_sum_dim, &(struct sum_attr){.all = true, .mean = true}, 1, &x);
}
