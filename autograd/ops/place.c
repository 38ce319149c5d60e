/* SPDX-License-Identifier: MIT */
/* place: puts x into zeros, at the elements that a view shows. It is the transpose of taking a view, and builds the gradient of a view for
 * wf_gradients with .create_graph; its own gradient is the view of dy. */
#include <string.h>

#include "common.h"

struct place_attr {
    wf_shape shape; /* of the result */
    wf_array view;  /* its dims and strides say where the elements of x lie in the result; its data are not read */
    int64_t offset; /* of the first element, in elements */
};

static wf_array view_in(const struct place_attr *p, const wf_array *whole)
{
    wf_array view = p->view;
    view.data = (wf_real *)whole->data + p->offset;
    view.dtype = WF_REAL;
    return view;
}

static wf_status place_shape(wf_call *c)
{
    const struct place_attr *p = c->attr;
    if (wf_want_reals(c, 1) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_shape shape = wf_array_shape(&c->in[0]), view = wf_array_shape(&p->view);
    c->out[0] = wf_call_shape(WF_REAL, &p->shape);
    return wf_shape_equal(&shape, &view) ? WF_OK : wf_call_fail(c, WF_ERR_SHAPE, "the operand does not have the shape of its place");
}

static wf_status place_forward(wf_call *c)
{
    memset(c->out[0].data, 0, (size_t)wf_array_count(&c->out[0]) * sizeof(wf_real));
    wf_array view = view_in(c->attr, &c->out[0]);
    if (wf_array_count(&view) > 0)
        wf_array_copy(&view, &c->in[0]);
    return WF_OK;
}

static wf_status place_backward(wf_call *c)
{
    const wf_array dy = wf_call_contiguous(c, &c->dout[0]);
    if (!dy.data)
        return WF_ERR_MEMORY;
    const wf_array dx = view_in(c->attr, &dy);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

static void place_gradient(const wf_gradient_call *c)
{
    const struct place_attr *p = c->attr;
    wf_tensor *dy = wf_contiguous(wf_reshape_to(c->dy[0], &p->shape)); /* reshape copies what no view can be made of */
    wf_array whole;
    if (wf_is_poison(dy) || wf_view(dy, &whole) != WF_OK)
        return;
    const wf_array view = view_in(p, &whole);
    c->dx[0] = wf_apply_view("place", dy, &view);
}

#define AT(at, ...) ATTR(struct place_attr, .offset = at, __VA_ARGS__)
const wf_op wf_op_place = {
    .name = "place",
    .operands = "x",
    .attr_size = sizeof(struct place_attr),
    .reads = WF_READS_NOTHING,
    .shape = place_shape,
    .forward = place_forward,
    .backward = place_backward,
    .gradient = place_gradient,
    .cases = WF_CASES({"a column", {{3}}, AT(1, .shape = {2, {3, 4}}, .view = {.ndim = 1, .dim = {3}, .stride = {4}})},
                      {"transposed", {{4, 3}}, AT(0, .shape = {2, {3, 4}}, .view = {.ndim = 2, .dim = {4, 3}, .stride = {1, 4}})},
                      {"a row", {{1, 4}}, AT(8, .shape = {2, {3, 4}}, .view = {.ndim = 2, .dim = {1, 4}, .stride = {4, 1}})},
                      {"a scalar", {{-2}}, AT(5, .shape = {1, {7}}, .view = {.ndim = 0})},
                      {"nothing", {{-1}}, AT(0, .shape = {1, {3}}, .view = {.ndim = 1, .dim = {0}, .stride = {1}})})};

wf_tensor *wf_place(wf_tensor *x, const wf_shape *shape, const wf_array *view, int64_t offset)
{
    const struct place_attr attr = {*shape, *view, offset};
    return wf_apply(&wf_op_place, &attr, 1, &x);
}
