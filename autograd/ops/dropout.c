/* SPDX-License-Identifier: MIT */
/* Dropout alone, after ReLU, or before the sum with a residual. All three draw the same mask for the same seed, step, number of the call
 * and rows. */
#include "common.h"

struct dropout_attr {
    double p;
};

/* The shape rule of all three ops: a result of x's shape, unless p is invalid. */
static wf_status shape_of_x(wf_call *c)
{
    const struct dropout_attr *a = c->attr;
    if (!(a->p >= 0 && a->p <= 1))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "p = %g is not in 0 <= p <= 1", a->p);
    c->out[0] = wf_call_like(c, &c->in[0]);
    return WF_OK;
}

static wf_status dropout_shape(wf_call *c)
{
    return wf_want(c, 0, WF_REAL) == WF_OK ? shape_of_x(c) : WF_ERR_ARGUMENT;
}

/* The work on rows. A row stays in the first-level cache between ReLU, dropout and the sum. */
struct dropout {
    const wf_call *c;
    const wf_array *x;        /* [rows, d] */
    const wf_array *residual; /* [rows, d]: added after dropout; NULL: nothing is added */
    bool relu;                /* apply ReLU to x before dropout */
    wf_real *y;
    uint64_t first; /* the index of row 0 in the global batch */
    uint32_t threshold;
    wf_real scale;
};

static void dropout_body(void *ctx, int64_t begin, int64_t end)
{
    const struct dropout *s = ctx;
    int64_t d = s->x->dim[1];
    for (int64_t row = begin; row < end; row++) {
        const wf_real *x = (const wf_real *)s->x->data + row * s->x->stride[0];
        wf_real *y = s->y + row * d;
        if (s->relu) {
            wf_kernel->relu(d, x, y);
            x = y;
        }
        wf_kernel->dropout(d, s->c->seed, s->c->step, s->c->dropout_call, s->first + (uint64_t)row, s->threshold, s->scale, x, y);
        if (s->residual)
            wf_kernel->add(d, (const wf_real *)s->residual->data + row * s->residual->stride[0], 1, y, 1, y);
    }
}

static uint32_t threshold_of(const wf_call *c)
{
    return wf_dropout_threshold(((const struct dropout_attr *)c->attr)->p);
}

/* The factor of kept elements, which leaves the mean unchanged: 1 over the probability that an element is kept, 1 - threshold / 65536. With
 * p = 1 none is kept. */
static wf_real scale_of(const wf_call *c)
{
    const uint32_t threshold = threshold_of(c);
    return (wf_real)(threshold < 65536 ? 65536.0 / (65536.0 - threshold) : 0);
}

/* to = dropout(from), with ReLU before it or the residual added after it. The mask depends on a row's index in the global batch. A row
 * holds the elements along the last dimension, while c->first_row counts items of dimension 0. */
static wf_status drop(wf_call *c, const wf_array *from, const wf_array *residual, bool relu, const wf_array *to)
{
    wf_array x = wf_rows_of(c, from), r = residual ? wf_rows_of(c, residual) : (wf_array){0};
    if (!x.data || (residual && !r.data))
        return WF_ERR_MEMORY;
    int64_t rows = x.dim[0], d = x.dim[1];
    if (rows * d == 0)
        return WF_OK;
    uint64_t per_item = from->ndim > 1 ? (uint64_t)(rows / from->dim[0]) : 1;
    struct dropout s = {.c = c,
                        .x = &x,
                        .residual = residual ? &r : NULL,
                        .relu = relu,
                        .y = to->data,
                        .first = c->first_row * per_item,
                        .threshold = threshold_of(c),
                        .scale = scale_of(c)};
    wf_parallel_ranges(rows, wf_block_rows(d), (double)rows * (10 + (relu || residual ? 0.25 : 0.2) * (double)d), dropout_body, &s);
    return WF_OK;
}

static wf_status dropout_forward(wf_call *c)
{
    return drop(c, &c->in[0], NULL, false, &c->out[0]);
}

/* y = x mask / (1 - p), so dx = dy mask / (1 - p). Backward draws the same mask again. */
static wf_status dropout_backward(wf_call *c)
{
    if (!c->need[0])
        return WF_OK;
    wf_array dx = wf_grad_new(c, 0);
    if (!dx.data)
        return WF_ERR_MEMORY;
    wf_status status = drop(c, &c->dout[0], NULL, false, &dx);
    if (status == WF_OK)
        wf_grad_give(c, 0, &dx);
    return status;
}

#define P(x) .attr = &(const struct dropout_attr){x}, .train = true
const wf_op wf_op_dropout = {.name = "dropout",
                             .attr_size = sizeof(struct dropout_attr),
                             .random = true,
                             .reads = WF_READS_NOTHING,
                             .shape = dropout_shape,
                             .forward = dropout_forward,
                             .backward = dropout_backward,
                             .cases =
                                 WF_CASES({"half", {{3, 5}}, P(0.5)}, {"tenth", {{2, 3, 17}}, P(0.1)}, {"zero", {{3, 5}}, P(0)},
                                          {"all", {{3, 5}}, P(1)}, {"vector", {{33}}, P(0.3)}, {"scalar", {{-2}}, P(0.2)},
                                          {"one column", {{9, 1}}, P(0.5)}, {"empty", {{-1, 4}}, P(0.5)}, {"odd", {{7, 131}}, P(0.9)})};

/* Whether an op on these operands drops nothing, because p is 0 or the tape is not in WF_TRAIN. False if p or an operand is invalid: then
 * the op reports the error. */
static bool keeps_all(int count, wf_tensor *const x[], double p)
{
    const wf_tape *tape = wf_tape_of_operands(count, x);
    return x[0] && p >= 0 && p <= 1 && tape && (p == 0 || wf_tape_mode(tape) != WF_TRAIN);
}

wf_tensor *wf_dropout(wf_tensor *x, double p)
{
    return keeps_all(1, &x, p) ? x : wf_apply(&wf_op_dropout, &(struct dropout_attr){p}, 1, &x);
}

wf_tensor *wf_dropout_shared(wf_tensor *x, double p, const wf_shape *shape)
{
    if (keeps_all(1, &x, p))
        return x;
    char text[96];
    if (wf_first_poison(1, &x))
        return x;
    if (!x || !shape)
        return wf_composed_fail("dropout_shared", 1, &x, WF_ERR_ARGUMENT, "the %s NULL", x ? "shape of the mask is" : "operand is");
    const wf_shape whole = wf_shape_of(x);
    wf_shape both;
    if (!wf_shape_broadcast(&whole, shape, &both) || !wf_shape_equal(&whole, &both))
        return wf_composed_fail("dropout_shared", 1, &x, WF_ERR_SHAPE, "a mask of the shape %s does not broadcast to x",
                                wf_shape_text(shape, text, sizeof text));
    wf_tape *tape = wf_tape_of_operands(1, &x);
    return wf_mul(x, wf_dropout(wf_full(tape, shape, 1), p));
}

/* --- dropout_add: dropout, then the sum with a residual -------------------------------------------------------------- */

static wf_status dropout_add_shape(wf_call *c)
{
    if (wf_want_reals(c, 2) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_shape x = wf_array_shape(&c->in[0]), residual = wf_array_shape(&c->in[1]);
    if (!wf_shape_equal(&x, &residual))
        return wf_call_fail(c, WF_ERR_SHAPE, "x and residual must have one shape");
    return shape_of_x(c);
}

static wf_status dropout_add_forward(wf_call *c)
{
    return drop(c, &c->in[0], &c->in[1], false, &c->out[0]);
}

/* y = residual + dropout(x). The gradient of the residual is dy, shared and not copied; the gradient of x is that of dropout. */
static wf_status dropout_add_backward(wf_call *c)
{
    const wf_status status = dropout_backward(c);
    if (status == WF_OK && c->need[1])
        wf_grad_give(c, 1, &c->dout[0]);
    return status;
}

const wf_op wf_op_dropout_add = {.name = "dropout_add",
                                 .operands = "x residual",
                                 .attr_size = sizeof(struct dropout_attr),
                                 .random = true,
                                 .reads = WF_READS_NOTHING,
                                 .shape = dropout_add_shape,
                                 .forward = dropout_add_forward,
                                 .backward = dropout_add_backward,
                                 .cases = WF_CASES({"half", {{3, 5}, {3, 5}}, P(0.5)}, {"tenth", {{2, 3, 17}, {2, 3, 17}}, P(0.1)},
                                                   {"zero", {{3, 5}, {3, 5}}, P(0)}, {"all", {{3, 5}, {3, 5}}, P(1)},
                                                   {"vector", {{33}, {33}}, P(0.3)}, {"scalar", {{-2}, {-2}}, P(0.2)},
                                                   {"empty", {{-1, 4}, {-1, 4}}, P(0.5)}, {"odd", {{7, 131}, {7, 131}}, P(0.9)})};

wf_tensor *wf_dropout_add(wf_tensor *x, wf_tensor *residual, double p)
{
    const wf_shape from = wf_shape_of(x), to = wf_shape_of(residual);
    if (keeps_all(2, (wf_tensor *[]){x, residual}, p))
        return wf_add(residual, x);
    if (x && residual && wf_shape_equal(&from, &to))
        return wf_apply(&wf_op_dropout_add, &(struct dropout_attr){p}, 2, (wf_tensor *[]){x, residual});
    wf_tensor *y = wf_dropout(x, p), *sum = wf_add(residual, y);
    if (y != x)
        wf_release(y);
    return sum;
}

/* --- relu_dropout: ReLU, then dropout --------------------------------------------------------------------------------- */

static wf_status relu_dropout_forward(wf_call *c)
{
    return drop(c, &c->in[0], NULL, true, &c->out[0]);
}

static void relu_dropout_slope(const void *scale, int64_t n, const wf_real *const in[], wf_real *dx)
{
    wf_kernel->relu_grad(n, in[0], in[1], dx);
    wf_kernel->mul(n, dx, 1, scale, 0, dx);
}

/* y > 0 exactly where x > 0 and the element was kept, and there y = x / (1 - p). So backward reads y alone: it draws no mask, and x is not
 * kept for it. The sign is enough, and rounding keeps it. */
static wf_status relu_dropout_backward(wf_call *c)
{
    const wf_real scale = scale_of(c);
    const wf_array y = wf_reals_of(c, &c->out[0]);
    wf_array dx = wf_grad_new(c, 0);
    if (!y.data)
        return WF_ERR_MEMORY;
    wf_status status = wf_map(relu_dropout_slope, &scale, 2, (const wf_array *const[]){&y, &c->dout[0]}, &dx, 0.13);
    if (status == WF_OK)
        wf_grad_give(c, 0, &dx);
    return status;
}

#define DROPS(x) {WF_FILL_APART}, P(x)
const wf_op wf_op_relu_dropout = {.name = "relu_dropout",
                                  .attr_size = sizeof(struct dropout_attr),
                                  .random = true,
                                  .reads = WF_READS_OUTPUT(0),
                                  .rounds = WF_READS_OUTPUT(0),
                                  .shape = dropout_shape,
                                  .forward = relu_dropout_forward,
                                  .backward = relu_dropout_backward,
                                  .cases = WF_CASES({"half", {{3, 5}}, DROPS(0.5)}, {"tenth", {{2, 3, 17}}, DROPS(0.1)},
                                                    {"zero", {{3, 5}}, DROPS(0)}, {"all", {{3, 5}}, DROPS(1)},
                                                    {"vector", {{33}}, DROPS(0.3)}, {"scalar", {{-2}}, DROPS(0.2)},
                                                    {"empty", {{-1, 4}}, DROPS(0.5)}, {"odd", {{7, 131}}, DROPS(0.9)})};

wf_tensor *wf_relu_dropout(wf_tensor *x, double p)
{
    return keeps_all(1, &x, p) ? wf_relu(x) : wf_apply(&wf_op_relu_dropout, &(struct dropout_attr){p}, 1, &x);
}
