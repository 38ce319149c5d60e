/* SPDX-License-Identifier: MIT */
/* Tensors joined into one: along a dimension, or along a new one. */
#include "common.h"

/* concat: y holds the parts one after the other along dim, so each part's gradient is its slice of dy. */
struct concat {
    int dim;
};

static wf_status concat_shape(wf_call *c)
{
    const struct concat *attr = c->attr;
    for (int i = 0; i < c->inputs; i++)
        if (!wf_has(c, i))
            return wf_call_fail(c, WF_ERR_ARGUMENT, "part %d is NULL", i + 1);
    wf_shape shape = wf_array_shape(&c->in[0]);
    int dim = attr->dim;
    if (!wf_find_dim(&dim, shape.ndim))
        return wf_call_fail(c, WF_ERR_SHAPE, "dimension %d does not exist", attr->dim);
    for (int i = 1; i < c->inputs; i++) {
        const wf_array *part = &c->in[i];
        if (part->dtype != c->in[0].dtype)
            return wf_call_fail(c, WF_ERR_ARGUMENT, "part %d has dtype %s, but the first has %s", i + 1, wf_dtype_name(part->dtype),
                                wf_dtype_name(c->in[0].dtype));
        bool fits = part->ndim == shape.ndim;
        for (int d = 0; fits && d < shape.ndim; d++)
            fits = d == dim || part->dim[d] == shape.dim[d];
        if (!fits)
            return wf_call_fail(c, WF_ERR_SHAPE, "the shapes of the parts may differ in dimension %d only", attr->dim);
        if (__builtin_add_overflow(shape.dim[dim], part->dim[dim], &shape.dim[dim]))
            return wf_call_fail(c, WF_ERR_SHAPE, "the result would be too large");
    }
    c->out[0] = wf_call_shape(c->in[0].dtype, &shape);
    return WF_OK;
}

/* The place of part i in the whole. */
static wf_array place(const wf_call *c, const wf_array *whole, int dim, int i, int64_t *start)
{
    wf_array a = wf_array_slice(*whole, dim, *start, c->in[i].dim[dim]);
    *start += c->in[i].dim[dim];
    return a;
}

static wf_status concat_forward(wf_call *c)
{
    int dim = ((const struct concat *)c->attr)->dim;
    wf_find_dim(&dim, c->out[0].ndim);
    int64_t start = 0;
    for (int i = 0; i < c->inputs; i++) {
        wf_array to = place(c, &c->out[0], dim, i, &start);
        if (wf_array_count(&to) > 0)
            wf_array_copy(&to, &c->in[i]);
    }
    return WF_OK;
}

static wf_status concat_backward(wf_call *c)
{
    int dim = ((const struct concat *)c->attr)->dim;
    wf_find_dim(&dim, c->out[0].ndim);
    int64_t start = 0;
    for (int i = 0; i < c->inputs; i++) {
        wf_array part = place(c, &c->dout[0], dim, i, &start);
        if (c->need[i])
            wf_grad_give(c, i, &part);
    }
    return WF_OK;
}

#define ALONG(d) ATTR(struct concat, d)
const wf_op wf_op_concat = {
    .name = "concat",
    .attr_size = sizeof(struct concat),
    .reads = WF_READS_NOTHING,
    .shape = concat_shape,
    .forward = concat_forward,
    .backward = concat_backward,
    .cases = WF_CASES({"rows", {{2, 5}, {3, 5}}, ALONG(0)}, {"columns", {{3, 2}, {3, 1}, {3, 4}}, ALONG(-1)},
                      {"middle", {{2, 3, 5}, {2, 1, 5}}, ALONG(1)}, {"one part", {{3, 5}}, ALONG(0)}, {"vectors", {{1}, {7}}, ALONG(0)},
                      {"an empty part", {{2, -1}, {2, 3}}, ALONG(1)}, {"an empty part behind", {{2, 3}, {2, -1}}, ALONG(1)},
                      {"empty", {{-1, 2}, {-1, 3}}, ALONG(1)},
                      {"eight", {{1, 2}, {2, 2}, {1, 2}, {1, 2}, {3, 2}, {1, 2}, {1, 2}, {1, 2}}, ALONG(-2), .inputs = 8})};

wf_tensor *wf_concat(wf_tensor *const parts[], int n, int dim)
{
    const struct concat attr = {dim};
    if (n <= WF_MAX_INPUTS)
        return wf_apply(&wf_op_concat, &attr, n, parts);
    /* More than an op takes: in groups, about equal. */
    wf_tensor *group[WF_MAX_INPUTS];
    for (int g = 0; g < WF_MAX_INPUTS; g++) {
        int from = (int)((int64_t)n * g / WF_MAX_INPUTS), to = (int)((int64_t)n * (g + 1) / WF_MAX_INPUTS);
        group[g] = to - from == 1 ? parts[from] : wf_concat(parts + from, to - from, dim);
    }
    return wf_apply(&wf_op_concat, &attr, WF_MAX_INPUTS, group);
}

/* Each part gets the new dimension with size 1: a view, so that only the concat has a record. */
wf_tensor *wf_stack(wf_tensor *const parts[], int n, int dim)
{
    enum { SOME = 16 };
    wf_tensor *with_dim[SOME];
    if (n <= 0)
        return wf_concat(parts, n, dim);
    int d = dim < 0 ? dim + wf_ndim(parts[0]) + 1 : dim; /* of a NULL part the concat says so */
    wf_tensor *all = NULL;
    for (int from = 0; from < n; from += SOME) {
        int count = n - from < SOME ? n - from : SOME;
        for (int i = 0; i < count; i++)
            with_dim[i] = parts[from + i] ? wf_unsqueeze(parts[from + i], d) : NULL;
        wf_tensor *group = wf_concat(with_dim, count, d);
        all = all ? wf_concat((wf_tensor *[]){all, group}, 2, d) : group;
    }
    return all;
}
