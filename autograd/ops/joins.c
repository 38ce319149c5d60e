/* SPDX-License-Identifier: MIT */
/* Joins tensors along a dimension that they have (concat), or along a new dimension (stack). */
#include "common.h"

/* The result holds the parts one after the other along `dim`, so the gradient of a part is its slice of dy. In a stack each part has one
 * index of `dim`. */
struct join {
    int dim;
    bool stack;
};

/* Sets *dim to the dimension of the result, counted from the front. */
static wf_status find_dim(wf_call *c, int *dim)
{
    const struct join *attr = c->attr;
    const int ndim = wf_call_in(c, 0)->ndim + attr->stack;
    *dim = attr->dim;
    if (wf_find_dim(dim, ndim))
        return WF_OK;
    char have[64];
    if (attr->stack)
        return wf_call_fail(c, WF_ERR_SHAPE, "dimension %d does not exist: the result has %d, which count from 0 or from -%d", attr->dim,
                            ndim, ndim);
    return wf_call_fail(c, WF_ERR_SHAPE, "dimension %d does not exist: %s%s", attr->dim, wf_dims_text(ndim, have, sizeof have),
                        ndim == 0 ? "; wf_stack joins scalars" : "");
}

static wf_status join_shape(wf_call *c)
{
    const bool stack = ((const struct join *)c->attr)->stack;
    int dim;
    if (c->inputs == 0)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "there are no parts to join");
    for (int i = 0; i < c->inputs; i++)
        if (!wf_call_in(c, i))
            return wf_call_fail(c, WF_ERR_ARGUMENT, "part %d is NULL", i + 1);
    if (find_dim(c, &dim) != WF_OK)
        return WF_ERR_SHAPE;
    const wf_array *first = wf_call_in(c, 0);
    int64_t length = 0;
    for (int i = 0; i < c->inputs; i++) {
        const wf_array *part = wf_call_in(c, i);
        if (part->dtype != first->dtype)
            return wf_call_fail(c, WF_ERR_ARGUMENT, "part %d has dtype %s, but the first has %s", i + 1, wf_dtype_name(part->dtype),
                                wf_dtype_name(first->dtype));
        bool fits = part->ndim == first->ndim;
        for (int d = 0; fits && d < part->ndim; d++)
            fits = (d == dim && !stack) || part->dim[d] == first->dim[d];
        if (!fits && stack)
            return wf_call_fail(c, WF_ERR_SHAPE, "part %d has another shape than the first", i + 1);
        if (!fits)
            return wf_call_fail(c, WF_ERR_SHAPE, "the shapes of the parts may differ in dimension %d only: see part %d",
                                ((const struct join *)c->attr)->dim, i + 1);
        if (__builtin_add_overflow(length, stack ? 1 : part->dim[dim], &length))
            return wf_call_fail(c, WF_ERR_SHAPE, "the result would be too large");
    }
    wf_shape shape = {.ndim = first->ndim + stack};
    if (shape.ndim > WF_MAX_DIMS)
        return wf_call_fail(c, WF_ERR_SHAPE, "the result would have %d dimensions; %d are possible", shape.ndim, WF_MAX_DIMS);
    for (int d = 0; d < shape.ndim; d++)
        shape.dim[d] = d == dim ? length : first->dim[stack && d > dim ? d - 1 : d];
    c->out[0] = wf_call_shape(first->dtype, &shape);
    return WF_OK;
}

/* The view of `whole` for operand i, which begins at index `start` of `dim`. The view has the operand's shape. */
static wf_array place(const wf_call *c, const wf_array *whole, int dim, int i, int64_t start)
{
    const bool stack = ((const struct join *)c->attr)->stack;
    wf_array a = wf_array_slice(*whole, dim, start, stack ? 1 : wf_call_in(c, i)->dim[dim]);
    if (stack)
        wf_drop_dim(&a, dim);
    return a;
}

static int64_t length_of(const wf_call *c, int dim, int i)
{
    return ((const struct join *)c->attr)->stack ? 1 : wf_call_in(c, i)->dim[dim];
}

/* The context of copy_part. If there are many parts, the threads copy different parts at the same time, each part on one thread. */
struct copies {
    const wf_call *c;
    int dim;
    const int64_t *start; /* [parts]: the index along `dim` at which a part begins */
};

static void copy_part(void *ctx, int64_t i)
{
    const struct copies *k = ctx;
    const wf_array to = place(k->c, &k->c->out[0], k->dim, (int)i, k->start[i]);
    if (wf_array_count(&to) > 0)
        wf_array_copy(&to, wf_call_in(k->c, (int)i));
}

static wf_status join_forward(wf_call *c)
{
    enum { MANY = 16 }; /* fewer parts are copied one after the other, each by all threads */
    struct copies k = {.c = c};
    if (find_dim(c, &k.dim) != WF_OK)
        return WF_ERR_SHAPE;
    wf_array starts = wf_call_temp(c, WF_I32, &(wf_shape){1, {2 * (int64_t)c->inputs}}); /* 2 ids take the memory of one 64-bit start */
    int64_t *start = starts.data;
    if (!start)
        return WF_ERR_MEMORY;
    k.start = start;
    for (int i = 0; i < c->inputs; i++)
        start[i] = i == 0 ? 0 : start[i - 1] + length_of(c, k.dim, i - 1);
    if (c->inputs >= MANY)
        wf_parallel(c->inputs, 0.2 * (double)wf_array_count(&c->out[0]) + 50.0 * c->inputs, copy_part, &k);
    for (int i = 0; c->inputs < MANY && i < c->inputs; i++)
        copy_part(&k, i);
    return WF_OK;
}

static wf_status join_backward(wf_call *c)
{
    int dim;
    if (find_dim(c, &dim) != WF_OK)
        return WF_ERR_SHAPE;
    int64_t start = 0;
    for (int i = 0; i < c->inputs; i++) {
        const wf_array part = place(c, &c->dout[0], dim, i, start);
        if (wf_call_needs(c, i))
            wf_grad_give(c, i, &part);
        start += length_of(c, dim, i);
    }
    return WF_OK;
}

static void join_gradient(const wf_gradient_call *c)
{
    const struct join *a = c->attr;
    int64_t start = 0;
    for (int i = 0; i < c->inputs; i++) {
        const int64_t length = a->stack ? 1 : wf_dim(c->x[i], a->dim);
        if (c->need[i])
            c->dx[i] = a->stack ? wf_select(c->dy[0], a->dim, start) : wf_slice(c->dy[0], a->dim, start, length);
        start += length;
    }
}

#define ALONG(d) ATTR(struct join, d, false)
const wf_op wf_op_concat = {
    .name = "concat",
    .attr_size = sizeof(struct join),
    .reads = WF_READS_NOTHING,
    .many = true,
    .shape = join_shape,
    .forward = join_forward,
    .backward = join_backward,
    .gradient = join_gradient,
    .cases = WF_CASES({"rows", {{2, 5}, {3, 5}}, ALONG(0)}, {"columns", {{3, 2}, {3, 1}, {3, 4}}, ALONG(-1)},
                      {"middle", {{2, 3, 5}, {2, 1, 5}}, ALONG(1)}, {"one part", {{3, 5}}, ALONG(0)}, {"vectors", {{1}, {7}}, ALONG(0)},
                      {"an empty part", {{2, -1}, {2, 3}}, ALONG(1)}, {"an empty part behind", {{2, 3}, {2, -1}}, ALONG(1)},
                      {"empty", {{-1, 2}, {-1, 3}}, ALONG(1)},
                      {"eight", {{1, 2}, {2, 2}, {1, 2}, {1, 2}, {3, 2}, {1, 2}, {1, 2}, {1, 2}}, ALONG(-2), .inputs = 8})};

#define AT(d) ATTR(struct join, d, true)
const wf_op wf_op_stack = {.name = "stack",
                           .attr_size = sizeof(struct join),
                           .reads = WF_READS_NOTHING,
                           .many = true,
                           .shape = join_shape,
                           .forward = join_forward,
                           .backward = join_backward,
                           .gradient = join_gradient,
                           .cases = WF_CASES({"rows", {{2, 5}, {2, 5}, {2, 5}}, AT(0)}, {"between", {{3, 2}, {3, 2}}, AT(1)},
                                             {"behind", {{2, 3}, {2, 3}}, AT(-1)}, {"one part", {{3, 5}}, AT(-3)},
                                             {"scalars", {{-2}, {-2}, {-2}}, AT(0)}, {"empty", {{2, -1}, {2, -1}}, AT(1)})};

wf_tensor *wf_concat(wf_tensor *const parts[], int n, int dim)
{
    return wf_apply(&wf_op_concat, &(struct join){dim, false}, n, parts);
}

wf_tensor *wf_stack(wf_tensor *const parts[], int n, int dim)
{
    return wf_apply(&wf_op_stack, &(struct join){dim, true}, n, parts);
}
