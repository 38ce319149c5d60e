/* SPDX-License-Identifier: MIT */
/* logsumexp and log_softmax over a dimension: along rows if the dimension is the last, otherwise down columns. Even a single column, which
 * is contiguous like a row, takes the code for columns: the code for rows rounds differently, and the bits of a column must not depend on
 * whether there are others beside it. */
#include <math.h>

#include "common.h"

struct over {
    int dim;
    bool keep;
};

enum { COLUMNS = 64 };

struct passes {
    int64_t planes, n, d; /* the operand as [planes, n, d]; n is the op's dimension */
    int64_t pieces;       /* blocks of COLUMNS columns in a plane */
    const wf_real *x, *y, *dy;
    wf_real *out;
    bool last; /* the dimension is the last: work along rows */
    bool sum;  /* logsumexp, whose y has no dimension n; false: log_softmax */
    double cost;
};

static void row_body(void *ctx, int64_t begin, int64_t end)
{
    const struct passes *p = ctx;
    const int64_t rows = end - begin, at = begin * p->n;
    if (p->sum && p->dy)
        wf_kernel->internal->logsumexp_grad(rows, p->n, p->x + at, p->y + begin, p->dy + begin, p->out + at);
    else if (p->sum)
        wf_kernel->internal->logsumexp(rows, p->n, p->x + at, p->out + begin);
    else if (p->dy)
        wf_kernel->internal->log_softmax_grad(rows, p->n, p->y + at, p->dy + at, p->out + at);
    else
        wf_kernel->internal->log_softmax(rows, p->n, p->x + at, p->out + at);
}

static void column_body(void *ctx, int64_t block)
{
    const struct passes *p = ctx;
    const int64_t plane = block / p->pieces, first = block % p->pieces * COLUMNS, d = WF_MIN(p->d - first, COLUMNS),
                  at = plane * p->n * p->d + first, row = plane * p->d + first;
    if (p->sum && p->dy)
        wf_kernel->internal->logsumexp_grad_columns(p->n, d, p->d, p->x + at, p->y + row, p->dy + row, p->out + at);
    else if (p->sum)
        wf_kernel->internal->logsumexp_columns(p->n, d, p->d, p->x + at, p->out + row);
    else if (p->dy)
        wf_kernel->internal->log_softmax_grad_columns(p->n, d, p->d, p->y + at, p->dy + at, p->out + at);
    else
        wf_kernel->internal->log_softmax_columns(p->n, d, p->d, p->x + at, p->out + at);
}

static void run(struct passes *p)
{
    const double cost = p->cost * (double)p->planes * (double)p->n * (double)p->d;
    p->pieces = (p->d + COLUMNS - 1) / COLUMNS;
    if (p->last)
        wf_parallel_ranges(p->planes, wf_block_rows(p->n), cost, row_body, p);
    else
        wf_parallel(p->planes * p->pieces, cost, column_body, p);
}

/* Sets in the result the sizes [planes, n, d] of operand 0, and the members `last` and `sum`. */
static struct passes sizes_of(wf_call *c, bool sum)
{
    int dim = wf_want_dim(c, 0, ((const struct over *)c->attr)->dim);
    struct passes p = {.planes = 1, .n = c->in[0].dim[dim], .d = 1, .last = dim == c->in[0].ndim - 1, .sum = sum};
    for (int d = 0; d < c->in[0].ndim; d++)
        if (d != dim)
            *(d < dim ? &p.planes : &p.d) *= c->in[0].dim[d];
    return p;
}

static wf_status forward(wf_call *c, bool sum, double cost)
{
    struct passes p = sizes_of(c, sum);
    wf_array x = wf_call_contiguous(c, &c->in[0]);
    if (!x.data)
        return WF_ERR_MEMORY;
    p.x = x.data;
    p.out = c->out[0].data;
    p.cost = cost;
    run(&p);
    return WF_OK;
}

static wf_status backward(wf_call *c, bool sum)
{
    struct passes p = sizes_of(c, sum);
    wf_array x = {0}, dy = wf_call_contiguous(c, &c->dout[0]), dx = wf_grad_new(c, 0);
    if (sum)
        x = wf_call_contiguous(c, &c->in[0]);
    if ((sum && !x.data) || !dy.data || !dx.data)
        return WF_ERR_MEMORY;
    p.x = x.data;
    p.y = c->out[0].data;
    p.dy = dy.data;
    p.out = dx.data;
    p.cost = 0.2;
    run(&p);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

/* --- logsumexp ------------------------------------------------------------------------------------------------------ */

static wf_status sum_shape(wf_call *c)
{
    const struct over *a = c->attr;
    return wf_reduced_shape(c, a->dim, a->keep);
}

static wf_status sum_forward(wf_call *c)
{
    return forward(c, true, 0.2);
}

/* y = log sum_k e^x_k, so dx_k = e^(x_k - y) dy, or 0 if all x_k are -inf. */
static wf_status sum_backward(wf_call *c)
{
    return backward(c, true);
}

/* Where y is -inf, all x are: e^(x - 0) is the 0 that is wanted, and e^(x - y) would be NaN. */
static void sum_gradient(const wf_gradient_call *c)
{
    const struct over *a = c->attr;
    wf_tensor *y = c->y[0], *dy = c->dy[0];
    wf_tensor *safe = wf_masked_fill(y, wf_eq_constant(y, -(double)INFINITY), 0);
    if (!a->keep) {
        safe = wf_unsqueeze(safe, a->dim);
        dy = wf_unsqueeze(dy, a->dim);
    }
    c->dx[0] = wf_mul(dy, wf_exp(wf_subtract(c->x[0], safe)));
}

#define OVER(...) ATTR(struct over, __VA_ARGS__)
const wf_op wf_op_logsumexp = {.name = "logsumexp",
                               .attr_size = sizeof(struct over),
                               .reads = WF_READS_INPUT(0) | WF_READS_OUTPUT(0),
                               .shape = sum_shape,
                               .forward = sum_forward,
                               .backward = sum_backward,
                               .gradient = sum_gradient,
                               .cases = WF_CASES({"last", {{3, 5}}, OVER(-1, false)}, {"first", {{5, 3}}, OVER(0, false)},
                                                 {"middle, kept", {{2, 5, 3}}, OVER(1, true)}, {"vector", {{7}}, OVER(0, false)},
                                                 {"size 1", {{3, 1, 2}}, OVER(1, false)}, {"one", {{1, 1}}, OVER(1, true)},
                                                 {"no rows", {{-1, 5}}, OVER(1, false)}, {"odd", {{13, 17}}, OVER(-1, false)},
                                                 {"long", {{2, 1100}}, OVER(1, false)}, {"wide columns", {{3, 2, 150}}, OVER(1, false)},
                                                 {"tall columns", {{150, 3}}, OVER(0, true)})};

wf_tensor *wf_logsumexp(wf_tensor *x, int dim, bool keep)
{
    return wf_apply(&wf_op_logsumexp, &(struct over){dim, keep}, 1, &x);
}

/* --- log_softmax ---------------------------------------------------------------------------------------------------- */

static wf_status softmax_shape(wf_call *c)
{
    if (wf_same_shape(c) != WF_OK)
        return WF_ERR_ARGUMENT;
    return wf_want_dim(c, 0, ((const struct over *)c->attr)->dim) < 0 ? WF_ERR_SHAPE : WF_OK;
}

static wf_status softmax_forward(wf_call *c)
{
    return forward(c, false, 0.25);
}

/* y_j = x_j - log sum_k e^x_k, so dx_j = dy_j - e^y_j sum_k dy_k, or 0 if all x_k are -inf. */
static wf_status softmax_backward(wf_call *c)
{
    return backward(c, false);
}

/* In a row with all x -inf, all y are -inf, and dx is 0. */
static void softmax_gradient(const wf_gradient_call *c)
{
    const int dim = ((const struct over *)c->attr)->dim;
    wf_tensor *p = wf_exp(c->y[0]), *dy = c->dy[0];
    wf_tensor *alive = wf_to_real(wf_ne_constant(wf_sum_dim(p, dim, true), 0));
    c->dx[0] = wf_subtract(wf_mul(dy, alive), wf_mul(p, wf_sum_dim(dy, dim, true)));
}

const wf_op wf_op_log_softmax = {
    .name = "log_softmax",
    .attr_size = sizeof(struct over),
    .reads = WF_READS_OUTPUT(0),
    .shape = softmax_shape,
    .forward = softmax_forward,
    .backward = softmax_backward,
    .gradient = softmax_gradient,
    .cases = WF_CASES({"last", {{3, 5}}, OVER(-1)}, {"first", {{5, 3}}, OVER(0)}, {"middle", {{2, 5, 3}}, OVER(1)},
                      {"vector", {{7}}, OVER(0)}, {"one column", {{4, 1}}, OVER(1)}, {"one", {{1, 1}}, OVER(0)},
                      {"no rows", {{-1, 5}}, OVER(1)}, {"no columns", {{3, -1}}, OVER(1)}, {"odd", {{13, 17}}, OVER(-1)},
                      {"long", {{2, 1100}}, OVER(1)}, {"wide columns", {{3, 2, 150}}, OVER(1)}, {"tall columns", {{150, 3}}, OVER(0)})};

wf_tensor *wf_log_softmax(wf_tensor *x, int dim)
{
    return wf_apply(&wf_op_log_softmax, &(struct over){dim, false}, 1, &x);
}
