/* SPDX-License-Identifier: MIT */
/* l2_normalize, which scales rows to length 1, and the cosine similarity of rows. */
#include <math.h>

#include "common.h"

struct normalize_attr {
    double eps;
};

struct rows {
    int64_t d;
    const wf_real *x, *y, *dy;
    wf_real *length, *out, eps;
};

static wf_status normalize_shape(wf_call *c)
{
    const struct normalize_attr *a = c->attr;
    if (wf_same_shape(c) != WF_OK)
        return WF_ERR_ARGUMENT;
    wf_shape rows = wf_array_shape(&c->in[0]);
    if (rows.ndim < 1)
        return wf_call_fail(c, WF_ERR_SHAPE, "the operand is a scalar; at least one dimension is required");
    if (!(a->eps >= 0))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "eps = %g must not be negative", a->eps);
    rows.ndim--;
    c->saved[0] = wf_call_shape(WF_REAL, &rows); /* the lengths of the rows */
    return WF_OK;
}

static void forward_body(void *ctx, int64_t begin, int64_t end)
{
    const struct rows *r = ctx;
    wf_kernel->internal->l2_normalize(end - begin, r->d, r->x + begin * r->d, r->eps, r->out + begin * r->d,
                                      r->length ? r->length + begin : NULL);
}

static void backward_body(void *ctx, int64_t begin, int64_t end)
{
    const struct rows *r = ctx;
    wf_kernel->internal->l2_normalize_grad(end - begin, r->d, r->y + begin * r->d, r->length + begin, r->eps, r->dy + begin * r->d,
                                           r->out + begin * r->d);
}

static wf_status normalize_forward(wf_call *c)
{
    wf_array x = wf_contiguous_rows_of(c, &c->in[0]);
    if (!x.data)
        return WF_ERR_MEMORY;
    struct rows r = {.d = x.dim[1],
                     .x = x.data,
                     .out = c->out[0].data,
                     .length = c->saved[0].data,
                     .eps = (wf_real)((const struct normalize_attr *)c->attr)->eps};
    if (r.d > 0)
        wf_parallel_ranges(x.dim[0], wf_block_rows(r.d), 0.1 * (double)x.dim[0] * (double)r.d, forward_body, &r);
    return WF_OK;
}

/* y = x / m with m = max(|x|, eps). If |x| >= eps, dm/dx = x / |x| = y, so dx = (dy - y sum(y dy)) / m. Otherwise m is a constant, and
 * dx = dy / m. */
static wf_status normalize_backward(wf_call *c)
{
    wf_array dy = wf_contiguous_rows_of(c, &c->dout[0]), dx = wf_grad_new(c, 0);
    if (!dy.data || !dx.data)
        return WF_ERR_MEMORY;
    struct rows r = {.d = dy.dim[1],
                     .y = c->out[0].data,
                     .dy = dy.data,
                     .out = dx.data,
                     .length = c->saved[0].data,
                     .eps = (wf_real)((const struct normalize_attr *)c->attr)->eps};
    if (r.d > 0)
        wf_parallel_ranges(dy.dim[0], wf_block_rows(r.d), 0.12 * (double)dy.dim[0] * (double)r.d, backward_body, &r);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

/* Reads x too, because the lengths are no tensor. The length is that of x / most times most, whose squares do not overflow; as a function
 * of x it does not depend on `most`, so that this is a constant. */
static void normalize_gradient(const wf_gradient_call *c)
{
    const double eps = ((const struct normalize_attr *)c->attr)->eps;
    wf_tensor *x = c->x[0], *y = c->y[0], *dy = c->dy[0];
    if (wf_dim(x, -1) == 0) {
        c->dx[0] = dy;
        return;
    }
    wf_tensor *one = wf_full(c->tape, &(wf_shape){0}, 1), *most = wf_detach(wf_norm_dim(x, INFINITY, -1, true));
    most = wf_where(wf_gt_constant(most, 0), most, one);
    wf_tensor *square = wf_sum_dim(wf_square(wf_div(x, most)), -1, true), *some = wf_gt_constant(square, 0);
    wf_tensor *norm = wf_mul(most, wf_sqrt(wf_where(some, square, one))), *scaled = wf_and(some, wf_ge_constant(norm, eps));
    wf_tensor *length = wf_where(scaled, norm, wf_full(c->tape, &(wf_shape){0}, eps));
    wf_tensor *along = wf_mul(wf_sum_dim(wf_mul(y, dy), -1, true), wf_to_real(scaled));
    c->dx[0] = wf_div(wf_subtract(dy, wf_mul(y, along)), length);
}

#define EPS(e) ATTR(struct normalize_attr, e)
const wf_op wf_op_l2_normalize = {.name = "l2_normalize",
                                  .attr_size = sizeof(struct normalize_attr),
                                  .reads = WF_READS_OUTPUT(0),
                                  .shape = normalize_shape,
                                  .forward = normalize_forward,
                                  .backward = normalize_backward,
                                  .gradient = normalize_gradient,
                                  .cases = WF_CASES({"rows", {{3, 5}}, EPS(1e-12)}, {"three dims", {{2, 3, 4}}, EPS(1e-12)},
                                                    {"vector", {{7}}, EPS(1e-12)}, {"shorter than eps", {{4, 3}}, EPS(100)},
                                                    {"no rows", {{-1, 5}}, EPS(1e-12)}, {"no columns", {{3, -1}}, EPS(1e-12)},
                                                    {"odd", {{13, 17}}, EPS(1e-12)}, {"long", {{2, 1100}}, EPS(0)})};

wf_tensor *wf_l2_normalize(wf_tensor *x, double eps)
{
    return wf_apply(&wf_op_l2_normalize, &(struct normalize_attr){eps}, 1, &x);
}

wf_tensor *wf_cosine_similarity(wf_tensor *a, wf_tensor *b, double eps)
{
    wf_tensor *x = wf_l2_normalize(a, eps), *y = wf_l2_normalize(b, eps), *product = wf_mul(x, y);
    wf_release(x);
    wf_release(y);
    wf_tensor *cosine = wf_sum_dim(product, -1, false);
    wf_release(product);
    return cosine;
}
