/* SPDX-License-Identifier: MIT */
/* LayerNorm and RMSNorm over the last dimension. Rows go in blocks of a fixed number; each block adds up its share of the
 * gradients of gain and bias, and the shares are summed in order. */
#include <string.h>

#include <weft/op.h>
#include <weft/ops.h>

#include <weft/internal/kernels.h>
#include <weft/internal/ops_all.h>
#include <weft/internal/parallel.h>

#include "rows.h"

struct norm_attr {
    double eps;
};

enum { BLOCK_ROWS = 64 };

struct norm {
    bool layer; /* else RMS */
    int64_t rows, d;
    const wf_real *x, *gain, *bias, *dy;
    wf_real *y, *mean, *rstd, eps;
    wf_real *dx;
    bool add;
    wf_real *dgain, *dbias; /* [blocks, d], or NULL */
};

static wf_status norm_shape(wf_call *c)
{
    const struct norm_attr *a = c->attr;
    wf_status status = wf_want(c, 0, WF_REAL);
    if (status != WF_OK)
        return status;
    const wf_array *x = &c->in[0];
    if (x->ndim < 1)
        return wf_call_fail(c, WF_ERR_SHAPE, "the operand needs a dimension");
    int64_t d = x->dim[x->ndim - 1], rows = 1;
    if (!(a->eps >= 0))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "eps is %g, it must not be negative", a->eps);
    status = wf_want_vector(c, 1, "gain", d);
    if (status == WF_OK)
        status = wf_want_vector(c, 2, "bias", d);
    for (int i = 0; i < x->ndim - 1; i++)
        rows *= x->dim[i];
    c->out[0] = wf_call_like(c, x);
    if (c->grad) {
        c->saved[0] = wf_call_shape(WF_REAL, &(wf_shape){1, {rows}});                      /* rstd */
        c->saved[1] = wf_call_shape(WF_REAL, &(wf_shape){1, {c->inputs == 3 ? rows : 0}}); /* mean */
    }
    return status;
}

static void forward_body(void *ctx, int64_t begin, int64_t end)
{
    const struct norm *s = ctx;
    const wf_real *x = s->x + begin * s->d;
    wf_real *y = s->y + begin * s->d, *rstd = s->rstd ? s->rstd + begin : NULL;
    if (s->layer)
        wf_kernel->layer_norm(end - begin, s->d, x, s->gain, s->bias, s->eps, y, s->mean ? s->mean + begin : NULL, rstd);
    else
        wf_kernel->rms_norm(end - begin, s->d, x, s->gain, s->eps, y, rstd);
}

/* A gain or bias as a dense vector in *v, NULL when absent. */
static bool vector(wf_call *c, int i, const wf_real **v)
{
    *v = NULL;
    if (!wf_has(c, i))
        return true;
    wf_array dense = wf_call_dense(c, &c->in[i]);
    *v = dense.data;
    return dense.data != NULL;
}

static wf_status forward(wf_call *c, bool layer)
{
    struct norm s = {.layer = layer, .eps = (wf_real)((const struct norm_attr *)c->attr)->eps, .y = c->out[0].data};
    wf_array x = wf_dense_rows_of(c, &c->in[0]);
    if (!x.data || !vector(c, 1, &s.gain) || !vector(c, 2, &s.bias))
        return WF_ERR_MEMORY;
    s.rows = x.dim[0];
    s.d = x.dim[1];
    s.x = x.data;
    if (c->grad) {
        s.rstd = c->saved[0].data;
        s.mean = layer ? c->saved[1].data : NULL;
    }
    if (s.rows * s.d > 0)
        wf_parallel_ranges(s.rows, BLOCK_ROWS, (layer ? 0.14 : 0.09) * (double)s.rows * (double)s.d, forward_body, &s);
    return WF_OK;
}

static void backward_body(void *ctx, int64_t block)
{
    const struct norm *s = ctx;
    int64_t begin = block * BLOCK_ROWS, rows = s->rows - begin < BLOCK_ROWS ? s->rows - begin : BLOCK_ROWS;
    const wf_real *x = s->x + begin * s->d, *dy = s->dy + begin * s->d;
    wf_real *dx = s->dx ? s->dx + begin * s->d : NULL;
    wf_real *dgain = s->dgain ? s->dgain + block * s->d : NULL, *dbias = s->dbias ? s->dbias + block * s->d : NULL;
    if (dgain)
        memset(dgain, 0, (size_t)s->d * sizeof *dgain);
    if (dbias)
        memset(dbias, 0, (size_t)s->d * sizeof *dbias);
    if (s->layer)
        wf_kernel->layer_norm_grad(rows, s->d, x, s->gain, s->mean + begin, s->rstd + begin, dy, dx, s->add, dgain, dbias);
    else
        wf_kernel->rms_norm_grad(rows, s->d, x, s->gain, s->rstd + begin, dy, dx, s->add, dgain);
}

/* The blocks' shares of the gradient of operand i. */
static wf_status give_shares(wf_call *c, int i, const wf_array *shares)
{
    bool add;
    wf_array g = wf_grad_into(c, i, &add);
    if (!g.data)
        return WF_ERR_MEMORY;
    if (wf_array_is_dense(&g))
        return wf_column_sums(c, shares, add, g.data) ? WF_OK : WF_ERR_MEMORY;
    wf_array sum = wf_grad_new(c, i);
    if (!sum.data || !wf_column_sums(c, shares, false, sum.data))
        return WF_ERR_MEMORY;
    for (int64_t j = 0; j < g.dim[0]; j++) {
        wf_real *to = (wf_real *)g.data + j * g.stride[0];
        *to = (add ? *to : 0) + ((const wf_real *)sum.data)[j];
    }
    return WF_OK;
}

static wf_status backward(wf_call *c, bool layer)
{
    struct norm s = {.layer = layer, .rstd = c->saved[0].data, .mean = layer ? c->saved[1].data : NULL};
    bool need_gain = c->inputs > 1 && c->need[1], need_bias = c->inputs > 2 && c->need[2];
    wf_array x = wf_dense_rows_of(c, &c->in[0]), dy = wf_dense_rows_of(c, &c->dout[0]), dx = {0}, into = {0}, dgain = {0}, dbias = {0};
    if (!x.data || !dy.data || !vector(c, 1, &s.gain))
        return WF_ERR_MEMORY;
    s.rows = x.dim[0];
    s.d = x.dim[1];
    s.x = x.data;
    s.dy = dy.data;
    int64_t blocks = (s.rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    wf_shape shares = {2, {blocks, s.d}};
    if (need_gain) {
        dgain = wf_call_temp(c, WF_REAL, &shares);
        s.dgain = dgain.data;
    }
    if (need_bias) {
        dbias = wf_call_temp(c, WF_REAL, &shares);
        s.dbias = dbias.data;
    }
    if (c->need[0]) { /* straight into its place, unless that is not dense */
        into = wf_grad_into(c, 0, &s.add);
        dx = into;
        if (into.data && !wf_array_is_dense(&into)) {
            dx = wf_grad_new(c, 0);
            if (dx.data && s.add)
                wf_array_copy(&dx, &into);
        }
        s.dx = dx.data;
    }
    if ((need_gain && !s.dgain) || (need_bias && !s.dbias) || (c->need[0] && !s.dx))
        return WF_ERR_MEMORY;
    if (s.d > 0)
        wf_parallel(blocks, 0.15 * (double)s.rows * (double)s.d, backward_body, &s);
    if (dx.data != into.data)
        wf_array_copy(&into, &dx);
    wf_status status = need_gain ? give_shares(c, 1, &dgain) : WF_OK;
    if (need_bias && status == WF_OK)
        status = give_shares(c, 2, &dbias);
    return status;
}

/* layer_norm, a row: m = mean(x), r = 1 / sqrt(mean((x - m)^2) + eps), xhat = (x - m) r, y = xhat gain + bias.
 * dgain = sum of dy xhat and dbias = sum of dy over the rows. With h = dy gain: dm/dx_j = 1/D, dr/dx_j = -r^2 xhat_j / D, so
 * dx = r (h - mean(h) - xhat mean(h xhat)). */
static wf_status layer_forward(wf_call *c)
{
    return forward(c, true);
}

static wf_status layer_backward(wf_call *c)
{
    return backward(c, true);
}

#define EPS(e)                                                                                                                             \
    .attr = &(const struct norm_attr)                                                                                                      \
    {                                                                                                                                      \
        e                                                                                                                                  \
    }
#define ABSENT(g, b) .inputs = 3, .fill = {WF_FILL_NORMAL, g, b}
const wf_op wf_op_layer_norm = {
    .name = "layer_norm",
    .attr_size = sizeof(struct norm_attr),
    .reads_inputs = 3,
    .shape = norm_shape,
    .forward = layer_forward,
    .backward = layer_backward,
    .cases = WF_CASES({"gain and bias", {{2, 3, 8}, {8}, {8}}, EPS(1e-5)},
                      {"gain", {{3, 5}, {5}}, EPS(1e-5), ABSENT(WF_FILL_NORMAL, WF_FILL_ABSENT)},
                      {"bias", {{3, 5}, {5}, {5}}, EPS(1e-5), ABSENT(WF_FILL_ABSENT, WF_FILL_NORMAL)},
                      {"neither", {{3, 5}}, EPS(1e-5), ABSENT(WF_FILL_ABSENT, WF_FILL_ABSENT)}, {"vector", {{7}, {7}, {7}}, EPS(1e-3)},
                      {"one column", {{3, 1}, {1}, {1}}, EPS(1e-2)}, {"no rows", {{-1, 5}, {5}, {5}}, EPS(1e-5)},
                      {"no columns", {{3, -1}, {-1}, {-1}}, EPS(1e-5)}, {"odd", {{13, 17}, {17}, {17}}, EPS(1e-5)},
                      {"several blocks", {{150, 3}, {3}, {3}}, EPS(1e-1)})};

wf_tensor *wf_layer_norm(wf_tensor *x, wf_tensor *gain, wf_tensor *bias, double eps)
{
    return wf_apply(&wf_op_layer_norm, &(struct norm_attr){eps}, 3, (wf_tensor *[]){x, gain, bias});
}

/* rms_norm, a row: r = 1 / sqrt(mean(x^2) + eps), xhat = x r, y = xhat gain. dgain = sum of dy xhat over the rows; with
 * h = dy gain and dr/dx_j = -r^2 xhat_j / D: dx = r (h - xhat mean(h xhat)). */
static wf_status rms_forward(wf_call *c)
{
    return forward(c, false);
}

static wf_status rms_backward(wf_call *c)
{
    return backward(c, false);
}

const wf_op wf_op_rms_norm = {.name = "rms_norm",
                              .attr_size = sizeof(struct norm_attr),
                              .reads_inputs = 3,
                              .shape = norm_shape,
                              .forward = rms_forward,
                              .backward = rms_backward,
                              .cases = WF_CASES({"gain", {{2, 3, 8}, {8}}, EPS(1e-5)},
                                                {"no gain", {{3, 5}}, EPS(1e-5), .inputs = 2, .fill = {WF_FILL_NORMAL, WF_FILL_ABSENT}},
                                                {"vector", {{7}, {7}}, EPS(1e-3)}, {"one column", {{3, 1}, {1}}, EPS(1e-1)},
                                                {"one", {{1, 1}, {1}}, EPS(1e-2)}, {"no rows", {{-1, 5}, {5}}, EPS(1e-5)},
                                                {"no columns", {{3, -1}, {-1}}, EPS(1e-5)}, {"odd", {{13, 17}, {17}}, EPS(1.19e-7)},
                                                {"several blocks", {{150, 3}, {3}}, EPS(1e-1)})};

wf_tensor *wf_rms_norm(wf_tensor *x, wf_tensor *gain, double eps)
{
    return wf_apply(&wf_op_rms_norm, &(struct norm_attr){eps}, 2, (wf_tensor *[]){x, gain});
}
