/* SPDX-License-Identifier: MIT */
/* LayerNorm and RMSNorm over the last dimension. Work is cut into blocks of BLOCK_ROWS rows. Each block computes partial gradients of
 * weight and bias, and these are added in the order of the blocks, so that the bits do not depend on the number of threads. */
#include <string.h>

#include "common.h"

struct norm_attr {
    double eps;
    bool from_one; /* 1 + operand 1 takes the place of the weight */
};

enum { BLOCK_ROWS = 64 };
enum { RSTD, MEAN }; /* arrays saved for backward: for each row the r and the m of the derivations below */

/* LayerNorm has three operands, RMSNorm two. */
static bool is_layer(const wf_call *c)
{
    return c->inputs == 3;
}

struct norm {
    bool layer;
    int64_t rows, d;
    const wf_real *x, *weight, *bias, *dy;
    wf_real *y, *mean, *rstd, eps;
    wf_real *dx;
    bool add;
    wf_real *dweight, *dbias; /* partial gradients [blocks, d], or NULL */
};

static wf_status norm_shape(wf_call *c)
{
    const struct norm_attr *a = c->attr;
    if (wf_same_shape(c) != WF_OK)
        return WF_ERR_ARGUMENT;
    wf_shape rows = wf_array_shape(&c->in[0]);
    if (rows.ndim < 1)
        return wf_call_fail(c, WF_ERR_SHAPE, "the operand is a scalar; at least one dimension is required");
    int64_t d = rows.dim[--rows.ndim];
    if (!(a->eps >= 0))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "eps = %g must not be negative", a->eps);
    if (a->from_one && !wf_has(c, 1))
        return wf_want_there(c, 1);
    c->saved[RSTD] = wf_call_shape(WF_REAL, &rows);
    if (is_layer(c))
        c->saved[MEAN] = wf_call_shape(WF_REAL, &rows);
    wf_status status = wf_want_vector(c, 1, "weight", d);
    return status == WF_OK ? wf_want_vector(c, 2, "bias", d) : status;
}

/* The weight as contiguous elements. False, with the error set, if there is no memory. */
static bool weight_of(wf_call *c, const wf_real **weight)
{
    const bool there = wf_vector_of(c, 1, weight);
    if (!there || !((const struct norm_attr *)c->attr)->from_one)
        return there;
    const int64_t d = c->in[1].dim[0];
    wf_real *sum = wf_call_temp(c, WF_REAL, &(wf_shape){1, {d}}).data;
    if (sum)
        wf_kernel->affine(d, 1, 1, *weight, sum);
    *weight = sum;
    return sum != NULL;
}

static void forward_body(void *ctx, int64_t begin, int64_t end)
{
    const struct norm *s = ctx;
    const wf_real *x = s->x + begin * s->d;
    wf_real *y = s->y + begin * s->d, *rstd = s->rstd ? s->rstd + begin : NULL;
    if (s->layer)
        wf_kernel->layer_norm(end - begin, s->d, x, s->weight, s->bias, s->eps, y, s->mean ? s->mean + begin : NULL, rstd);
    else
        wf_kernel->rms_norm(end - begin, s->d, x, s->weight, s->eps, y, rstd);
}

static wf_status norm_forward(wf_call *c)
{
    struct norm s = {.layer = is_layer(c), .eps = (wf_real)((const struct norm_attr *)c->attr)->eps, .y = c->out[0].data};
    wf_array x = wf_contiguous_rows_of(c, &c->in[0]);
    if (!x.data || !weight_of(c, &s.weight) || !wf_vector_of(c, 2, &s.bias))
        return WF_ERR_MEMORY;
    s.rows = x.dim[0];
    s.d = x.dim[1];
    s.x = x.data;
    s.rstd = c->saved[RSTD].data;
    s.mean = c->saved[MEAN].data;
    if (s.rows * s.d > 0)
        wf_parallel_ranges(s.rows, BLOCK_ROWS, (s.layer ? 0.14 : 0.09) * (double)s.rows * (double)s.d, forward_body, &s);
    return WF_OK;
}

static void backward_body(void *ctx, int64_t block)
{
    const struct norm *s = ctx;
    int64_t begin = block * BLOCK_ROWS, rows = WF_MIN(s->rows - begin, BLOCK_ROWS);
    const wf_real *x = s->x + begin * s->d, *dy = s->dy + begin * s->d;
    wf_real *dx = s->dx ? s->dx + begin * s->d : NULL;
    wf_real *dweight = s->dweight ? s->dweight + block * s->d : NULL, *dbias = s->dbias ? s->dbias + block * s->d : NULL;
    if (dweight)
        memset(dweight, 0, (size_t)s->d * sizeof *dweight);
    if (dbias)
        memset(dbias, 0, (size_t)s->d * sizeof *dbias);
    if (s->layer)
        wf_kernel->layer_norm_grad(rows, s->d, x, s->weight, s->mean + begin, s->rstd + begin, dy, dx, s->add, dweight, dbias);
    else
        wf_kernel->rms_norm_grad(rows, s->d, x, s->weight, s->rstd + begin, dy, dx, s->add, dweight);
}

/* If operand i needs a gradient: makes an array for the partial gradients of all blocks. False without memory. */
static bool shares_of(wf_call *c, int i, const wf_shape *shape, wf_array *shares, wf_real **data)
{
    if (c->need[i])
        *shares = wf_call_temp(c, WF_REAL, shape);
    *data = shares->data;
    return *data || !c->need[i];
}

static wf_status norm_backward(wf_call *c)
{
    struct norm s = {.layer = is_layer(c), .rstd = c->saved[RSTD].data, .mean = c->saved[MEAN].data};
    wf_array x = wf_contiguous_rows_of(c, &c->in[0]), dy = wf_contiguous_rows_of(c, &c->dout[0]), dweight = {0}, dbias = {0};
    if (!x.data || !dy.data || !weight_of(c, &s.weight))
        return WF_ERR_MEMORY;
    s.rows = x.dim[0];
    s.d = x.dim[1];
    s.x = x.data;
    s.dy = dy.data;
    int64_t blocks = (s.rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    wf_shape shape = {2, {blocks, s.d}};
    struct contiguous_grad dx = {0};
    if (!shares_of(c, 1, &shape, &dweight, &s.dweight) || !shares_of(c, 2, &shape, &dbias, &s.dbias) ||
        (c->need[0] && !wf_contiguous_grad(c, 0, &dx)))
        return WF_ERR_MEMORY;
    s.dx = dx.contiguous.data;
    s.add = dx.add;
    if (s.d > 0)
        wf_parallel(blocks, 0.15 * (double)s.rows * (double)s.d, backward_body, &s);
    wf_contiguous_grad_done(&dx);
    wf_status status = c->need[1] ? wf_give_column_sums(c, 1, &dweight, 1) : WF_OK;
    return status == WF_OK && c->need[2] ? wf_give_column_sums(c, 2, &dbias, 1) : status;
}

/* layer_norm, for one row: m = mean(x), r = 1 / sqrt(mean((x - m)^2) + eps), xhat = (x - m) r, y = xhat weight + bias.
 * dweight and dbias are the sums of dy xhat and of dy over the rows. With h = dy weight, dm/dx_j = 1/D and dr/dx_j = -r^2 xhat_j / D, so
 * dx = r (h - mean(h) - xhat mean(h xhat)). */
#define EPS(e) ATTR(struct norm_attr, e)
#define ABSENT(g, b) .inputs = 3, .fill = {WF_FILL_NORMAL, g, b}
/* With n = (x - m) r and g = weight dy: dx = r (g - mean(g) - n mean(g n)), and for RMSNorm, whose m is 0, without mean(g). */
static void norm_gradient(const wf_gradient_call *c)
{
    const struct norm_attr *a = c->attr;
    const bool layer = c->inputs == 3;
    wf_tensor *dy = c->dy[0], *weight = c->x[1], *g = dy, *x = c->x[0];
    if (layer)
        x = wf_subtract(x, wf_mean_dim(x, -1, true));
    wf_tensor *r = wf_constant_over(1, wf_sqrt(wf_add_constant(wf_mean_dim(wf_mul(x, x), -1, true), a->eps))), *n = wf_mul(x, r);
    if (weight)
        g = wf_mul(dy, a->from_one ? wf_add_constant(weight, 1) : weight);
    if (c->need[0]) {
        wf_tensor *rest = wf_subtract(g, wf_mul(n, wf_mean_dim(wf_mul(g, n), -1, true)));
        c->dx[0] = wf_mul(r, layer ? wf_subtract(rest, wf_mean_dim(g, -1, true)) : rest);
    }
    if (c->inputs > 1 && c->need[1])
        c->dx[1] = wf_mul(dy, n);
    if (layer && c->need[2])
        c->dx[2] = dy;
}

const wf_op wf_op_layer_norm = {
    .name = "layer_norm",
    .operands = "x weight bias",
    .attr_size = sizeof(struct norm_attr),
    .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1),
    .shape = norm_shape,
    .forward = norm_forward,
    .backward = norm_backward,
    .gradient = norm_gradient,
    .cases = WF_CASES({"weight and bias", {{2, 3, 8}, {8}, {8}}, EPS(1e-5)},
                      {"weight", {{3, 5}, {5}}, EPS(1e-5), ABSENT(WF_FILL_NORMAL, WF_FILL_ABSENT)},
                      {"bias", {{3, 5}, {5}, {5}}, EPS(1e-5), ABSENT(WF_FILL_ABSENT, WF_FILL_NORMAL)},
                      {"neither", {{3, 5}}, EPS(1e-5), ABSENT(WF_FILL_ABSENT, WF_FILL_ABSENT)}, {"vector", {{7}, {7}, {7}}, EPS(1e-3)},
                      {"one column", {{3, 1}, {1}, {1}}, EPS(1e-2)}, {"no rows", {{-1, 5}, {5}, {5}}, EPS(1e-5)},
                      {"no columns", {{3, -1}, {-1}, {-1}}, EPS(1e-5)}, {"odd", {{13, 17}, {17}, {17}}, EPS(1e-5)},
                      {"several blocks", {{150, 3}, {3}, {3}}, EPS(1e-1)})};

wf_tensor *wf_layer_norm(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, double eps)
{
    return wf_apply(&wf_op_layer_norm, &(struct norm_attr){.eps = eps}, 3, (wf_tensor *[]){x, weight, bias});
}

/* rms_norm, for one row: r = 1 / sqrt(mean(x^2) + eps), xhat = x r, y = xhat weight. dweight is the sum of dy xhat over the rows. With
 * h = dy weight and dr/dx_j = -r^2 xhat_j / D, dx = r (h - xhat mean(h xhat)). With .from_one, 1 + weight takes the place of the weight. */
const wf_op wf_op_rms_norm = {
    .name = "rms_norm",
    .operands = "x weight",
    .attr_size = sizeof(struct norm_attr),
    .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1),
    .shape = norm_shape,
    .forward = norm_forward,
    .backward = norm_backward,
    .gradient = norm_gradient,
    .cases = WF_CASES(
        {"weight", {{2, 3, 8}, {8}}, EPS(1e-5)}, {"no weight", {{3, 5}}, EPS(1e-5), .inputs = 2, .fill = {WF_FILL_NORMAL, WF_FILL_ABSENT}},
        {"vector", {{7}, {7}}, EPS(1e-3)}, {"one column", {{3, 1}, {1}}, EPS(1e-1)}, {"one", {{1, 1}, {1}}, EPS(1e-2)},
        {"no rows", {{-1, 5}, {5}}, EPS(1e-5)}, {"no columns", {{3, -1}, {-1}}, EPS(1e-5)}, {"odd", {{13, 17}, {17}}, EPS(1.19e-7)},
        {"several blocks", {{150, 3}, {3}}, EPS(1e-1)}, {"from one", {{2, 3, 8}, {8}}, ATTR(struct norm_attr, 1e-5, true)},
        {"from one, no columns", {{3, -1}, {-1}}, ATTR(struct norm_attr, 1e-5, true)},
        {"from one, several blocks", {{150, 3}, {3}}, ATTR(struct norm_attr, 1e-1, true)})};

wf_tensor *wf_rms_norm(wf_tensor *x, wf_tensor *weight, double eps)
{
    return wf_apply(&wf_op_rms_norm, &(struct norm_attr){.eps = eps}, 2, (wf_tensor *[]){x, weight});
}

wf_tensor *wf_rms_norm_from_one(wf_tensor *x, wf_tensor *weight, double eps)
{
    return wf_apply(&wf_op_rms_norm, &(struct norm_attr){.eps = eps, .from_one = true}, 2, (wf_tensor *[]){x, weight});
}
