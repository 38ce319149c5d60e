/* SPDX-License-Identifier: MIT */
/* Sums and means over a dimension. Blocks are cut by the shape and added up in order. */
#include <string.h>

#include "common.h"

struct sum_attr {
    int dim;
    bool keep, mean;
};

static int dim_of(const wf_call *c)
{
    const struct sum_attr *a = c->attr;
    return a->dim < 0 ? a->dim + c->in[0].ndim : a->dim;
}

static wf_status sum_shape(wf_call *c)
{
    if (wf_want(c, 0, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    const struct sum_attr *a = c->attr;
    int dim = dim_of(c);
    if (dim < 0 || dim >= c->in[0].ndim)
        return wf_call_fail(c, WF_ERR_SHAPE, "dimension %d does not exist", a->dim);
    wf_shape shape = {.ndim = c->in[0].ndim - !a->keep};
    for (int d = 0, to = 0; d < c->in[0].ndim; d++)
        if (d != dim || a->keep)
            shape.dim[to++] = d == dim ? 1 : c->in[0].dim[d];
    c->out[0] = wf_call_shape(WF_REAL, &shape);
    return WF_OK;
}

/* Rows of n elements side by side: in pieces, whose sums are doubles. */
struct row_sums {
    const wf_real *x;
    double *partial;
    wf_real *y;
    int64_t n, pieces;
    double scale;
};

enum { PIECE = 16384 };

static void row_sums_body(void *ctx, int64_t begin, int64_t end)
{
    const struct row_sums *s = ctx;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t row = unit / s->pieces, from = unit % s->pieces * PIECE;
        double sum = wf_kernel->sum(s->n - from < PIECE ? s->n - from : PIECE, s->x + row * s->n + from);
        if (s->partial)
            s->partial[unit] = sum;
        else
            s->y[row] = (wf_real)(sum * s->scale);
    }
}

static wf_status sum_rows(wf_call *c, const wf_real *x, int64_t rows, int64_t n, double scale)
{
    struct row_sums s = {x, NULL, c->out[0].data, n, (n + PIECE - 1) / PIECE, scale};
    if (s.pieces > 1) {
        s.partial = wf_call_temp(c, WF_F64, &(wf_shape){2, {rows, s.pieces}}).data;
        if (!s.partial)
            return WF_ERR_MEMORY;
    }
    wf_parallel_ranges(rows * s.pieces, n < PIECE ? PIECE / n : 1, 0.05 * (double)rows * (double)n, row_sums_body, &s);
    for (int64_t row = 0; s.partial && row < rows; row++) {
        double sum = 0;
        for (int64_t i = 0; i < s.pieces; i++)
            sum += s.partial[row * s.pieces + i];
        s.y[row] = (wf_real)(sum * scale);
    }
    return WF_OK;
}

static wf_status sum_forward(wf_call *c)
{
    const struct sum_attr *a = c->attr;
    int dim = dim_of(c);
    int64_t n = c->in[0].dim[dim], outer = 1, inner = 1;
    for (int d = 0; d < dim; d++)
        outer *= c->in[0].dim[d];
    for (int d = dim + 1; d < c->in[0].ndim; d++)
        inner *= c->in[0].dim[d];
    wf_real *y = c->out[0].data;
    if (outer * inner == 0)
        return WF_OK;
    if (n == 0) {
        memset(y, 0, (size_t)(outer * inner) * sizeof *y);
        return WF_OK;
    }
    double scale = a->mean ? 1.0 / (double)n : 1;
    wf_array x = wf_call_dense(c, &c->in[0]);
    if (!x.data)
        return WF_ERR_MEMORY;
    if (inner == 1)
        return sum_rows(c, x.data, outer, n, scale);
    if (!wf_plane_sums(c, x.data, outer, n, inner, inner, false, y))
        return WF_ERR_MEMORY;
    if (a->mean)
        wf_map_affine(scale, 0, &c->out[0], &c->out[0]);
    return WF_OK;
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
