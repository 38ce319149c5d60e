/* SPDX-License-Identifier: MIT */
/* unfold, the windows along a dimension as a view, and fold, the sum of windows at their places. Each is the other's gradient. */
#include "common.h"

struct windows {
    int dim;
    int64_t size;   /* of unfold: elements of a window */
    int64_t length; /* of fold: the size of the dimension in the result */
    int64_t step;   /* from the begin of a window to the next */
};

/* The windows of `a` along dimension d as a view: dimension d counts the windows, and the new last one the elements of a window. */
static wf_array windows_of(wf_array a, int d, int64_t size, int64_t step)
{
    a.dim[a.ndim] = size;
    a.stride[a.ndim++] = a.stride[d];
    a.dim[d] = (a.dim[d] - size) / step + 1;
    a.stride[d] *= step;
    return a;
}

/* The sum of windows [outer, windows, inner, size] at their places in `to` [outer, length, inner]. A line is what belongs to one index of
 * outer and inner. */
struct sum {
    int64_t windows, inner, size, length, step;
    const wf_real *from;
    wf_real *to;
};

static void sum_body(void *ctx, int64_t begin, int64_t end)
{
    const struct sum *s = ctx;
    for (int64_t line = begin; line < end; line++) {
        const int64_t outer = line / s->inner, i = line % s->inner, inner = s->inner;
        const wf_real *from = s->from + (outer * s->windows * inner + i) * s->size;
        wf_real *to = s->to + outer * s->length * inner + i;
        for (int64_t k = 0; k < s->length; k++)
            to[k * inner] = 0;
        for (int64_t w = 0; w < s->windows; w++, from += inner * s->size, to += s->step * inner)
            for (int64_t j = 0; j < s->size; j++)
                to[j * inner] += from[j];
    }
}

static wf_status sum_windows(wf_call *c, const wf_array *windows, int d, int64_t step, const wf_array *to)
{
    const wf_array from = wf_call_contiguous(c, windows);
    struct sum s = {windows->dim[d], 1, windows->dim[windows->ndim - 1], to->dim[d], step, from.data, to->data};
    int64_t outer = 1;
    if (!to->data || (!from.data && wf_array_count(windows) > 0))
        return WF_ERR_MEMORY;
    for (int k = 0; k < to->ndim; k++)
        if (k != d)
            *(k < d ? &outer : &s.inner) *= to->dim[k];
    const int64_t lines = outer * s.inner, each = s.length + s.windows * s.size;
    wf_parallel_ranges(lines, WF_MAX(1, 8192 / WF_MAX(each, 1)), 0.5 * (double)lines * (double)each, sum_body, &s);
    return WF_OK;
}

/* --- unfold ----------------------------------------------------------------------------------------------------------- */

static wf_status unfold_shape(wf_call *c)
{
    const struct windows *a = c->attr;
    const int d = wf_want_there(c, 0) == WF_OK ? wf_along(c) : -1;
    if (d < 0)
        return WF_ERR_SHAPE;
    if (c->in[0].ndim == WF_MAX_DIMS)
        return wf_call_fail(c, WF_ERR_SHAPE, "the result would have %d dimensions; %d are possible", WF_MAX_DIMS + 1, WF_MAX_DIMS);
    if (a->size < 1 || a->step < 1)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the size %lld and the step %lld must be at least 1", (long long)a->size,
                            (long long)a->step);
    if (a->size > c->in[0].dim[d])
        return wf_call_fail(c, WF_ERR_SHAPE, "a window has %lld elements, but dimension %d only %lld", (long long)a->size, a->dim,
                            (long long)c->in[0].dim[d]);
    c->out[0] = windows_of(c->in[0], d, a->size, a->step);
    return WF_OK;
}

static wf_status unfold_backward(wf_call *c)
{
    const struct windows *a = c->attr;
    wf_array dx = wf_grad_new(c, 0);
    const wf_status status = sum_windows(c, &c->dout[0], wf_along(c), a->step, &dx);
    wf_grad_give(c, 0, &dx);
    return status;
}

static void unfold_gradient(const wf_gradient_call *c)
{
    const struct windows *a = c->attr;
    c->dx[0] = wf_fold(c->dy[0], a->dim < 0 ? a->dim + wf_ndim(c->x[0]) : a->dim, wf_dim(c->x[0], a->dim), a->step);
}

#define WINDOWS(...) ATTR(struct windows, __VA_ARGS__)
const wf_op wf_op_unfold = {
    .name = "unfold",
    .attr_size = sizeof(struct windows),
    .view = true,
    .reads = WF_READS_NOTHING,
    .shape = unfold_shape,
    .backward = unfold_backward,
    .gradient = unfold_gradient,
    .cases = WF_CASES({"overlapping", {{3, 7}}, WINDOWS(-1, .size = 3, .step = 1)}, {"apart", {{7, 3}}, WINDOWS(0, .size = 2, .step = 3)},
                      {"side by side", {{2, 6, 3}}, WINDOWS(1, .size = 2, .step = 2)}, {"vector", {{9}}, WINDOWS(0, .size = 4, .step = 2)},
                      {"one window", {{2, 4}}, WINDOWS(1, .size = 4, .step = 5)}, {"empty", {{-1, 5}}, WINDOWS(1, .size = 2, .step = 1)})};

wf_tensor *wf_unfold(wf_tensor *x, int dim, int64_t size, int64_t step)
{
    return wf_apply(&wf_op_unfold, &(struct windows){.dim = dim, .size = size, .step = step}, 1, &x);
}

/* --- fold ------------------------------------------------------------------------------------------------------------- */

/* The dimension of the windows, counted from the front: `dim` is one of the result, which lacks the last dimension of x. */
static int fold_dim(const wf_call *c)
{
    int d = ((const struct windows *)c->attr)->dim;
    return c->in[0].ndim > 1 && wf_find_dim(&d, c->in[0].ndim - 1) ? d : -1;
}

static wf_status fold_shape(wf_call *c)
{
    const struct windows *a = c->attr;
    if (wf_want(c, 0, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *x = &c->in[0];
    const int d = fold_dim(c);
    if (d < 0)
        return wf_call_fail(c, WF_ERR_SHAPE, "x must be [..., windows, ..., size], and dimension %d of the result does not exist", a->dim);
    const int64_t windows = x->dim[d], size = x->dim[x->ndim - 1];
    if (a->step < 1 || a->length < 0)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the step %lld must be at least 1, and the length %lld not negative", (long long)a->step,
                            (long long)a->length);
    if (windows > 0 && (size > a->length || windows - 1 > (a->length - size) / a->step))
        return wf_call_fail(c, WF_ERR_SHAPE, "%lld windows of %lld elements, a step of %lld apart, reach beyond the length %lld",
                            (long long)windows, (long long)size, (long long)a->step, (long long)a->length);
    wf_shape shape = wf_array_shape(x);
    shape.ndim--;
    shape.dim[d] = a->length;
    c->out[0] = wf_call_shape(WF_REAL, &shape);
    return WF_OK;
}

static wf_status fold_forward(wf_call *c)
{
    const struct windows *a = c->attr;
    return sum_windows(c, &c->in[0], fold_dim(c), a->step, &c->out[0]);
}

/* The gradient of a window is that of its place: the windows of dy. */
static wf_status fold_backward(wf_call *c)
{
    const struct windows *a = c->attr;
    const int d = fold_dim(c);
    wf_array dx = wf_grad_new(c, 0), dy = windows_of(c->dout[0], d, dx.dim[dx.ndim - 1], a->step);
    if (!dx.data)
        return WF_ERR_MEMORY;
    dy.dim[d] = dx.dim[d]; /* the last elements of the length may lie in no window */
    wf_array_copy(&dx, &dy);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

static void fold_gradient(const wf_gradient_call *c)
{
    const struct windows *a = c->attr;
    const wf_shape shape = wf_shape_of(c->x[0]);
    const int d = a->dim < 0 ? a->dim + shape.ndim - 1 : a->dim;
    if (wf_shape_count(&shape) > 0) /* without windows, their size may exceed the length */
        c->dx[0] = wf_slice(wf_unfold(c->dy[0], d, shape.dim[shape.ndim - 1], a->step), d, 0, shape.dim[d]);
}

const wf_op wf_op_fold = {.name = "fold",
                          .attr_size = sizeof(struct windows),
                          .reads = WF_READS_NOTHING,
                          .shape = fold_shape,
                          .forward = fold_forward,
                          .backward = fold_backward,
                          .gradient = fold_gradient,
                          .cases = WF_CASES({"overlapping", {{3, 5, 3}}, WINDOWS(-1, .length = 7, .step = 1)},
                                            {"apart", {{2, 3, 2}}, WINDOWS(0, .length = 7, .step = 3)},
                                            {"side by side", {{2, 3, 3, 2}}, WINDOWS(1, .length = 6, .step = 2)},
                                            {"vector, longer", {{3, 4}}, WINDOWS(0, .length = 11, .step = 2)},
                                            {"no windows", {{2, -1, 3}}, WINDOWS(1, .length = 5, .step = 1)},
                                            {"empty", {{-1, 4, 2}}, WINDOWS(1, .length = 5, .step = 1)})};

wf_tensor *wf_fold(wf_tensor *x, int dim, int64_t length, int64_t step)
{
    return wf_apply(&wf_op_fold, &(struct windows){.dim = dim, .length = length, .step = step}, 1, &x);
}
