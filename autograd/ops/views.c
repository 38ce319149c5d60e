/* SPDX-License-Identifier: MIT */
/* Views of a tensor; and contiguous, which makes a copy. A view has no record: its gradient is a view of its base's gradient, so reshape,
 * transpose, slice and split need no backward. expand repeats elements, so it is an op with a backward. */
#include <stdarg.h>
#include <stdio.h>

#include <weft/internal/shape.h>

#include "common.h"

/* Fails with a message such as "transpose(x [2,3]): ..." on x's tape. */
static wf_tensor *view_fail(const char *op, wf_tensor *x, const char *format, ...) WF_PRINTF(3, 4);
static wf_tensor *view_fail(const char *op, wf_tensor *x, const char *format, ...)
{
    char text[256], shape[96];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    wf_shape s = wf_shape_of(x);
    return wf_tape_fail(wf_tape_of(x), x ? WF_ERR_SHAPE : WF_ERR_ARGUMENT, "%s(%s %s): %s", op, wf_name_of(x),
                        wf_shape_text(&s, shape, sizeof shape), text);
}

static wf_tensor *no_dim(const char *op, wf_tensor *x, int dim)
{
    char have[64];
    return view_fail(op, x, "dimension %d does not exist: %s", dim, wf_dims_text(wf_ndim(x), have, sizeof have));
}

/* x itself; or a copy, if x is the result of an op with .view (such as expand) and needs a gradient, because wf_apply_view refuses such a
 * result: its gradient does not lie in the gradient of its base. */
static wf_tensor *with_places(wf_tensor *x)
{
    return wf_gradient_is_apart(x) ? wf_apply(&wf_op_contiguous, NULL, 1, &x) : x;
}

/* Sets *a to the array of *x. False on an error: then *x becomes the poison that the op returns. */
static bool open_view(const char *op, wf_tensor **x, wf_array *a)
{
    if (!wf_is_poison(*x) && wf_view(*x, a) == WF_OK)
        return true;
    if (!*x || !wf_is_poison(*x))
        *x = view_fail(
            op, *x, *x ? "the tensor has no value: a parameter needs wf_registry_build or wf_registry_load first" : "the operand is NULL");
    return false;
}

wf_tensor *wf_reshape_to(wf_tensor *x, const wf_shape *shape)
{
    wf_array a, view;
    x = with_places(x);
    if (!open_view("reshape", &x, &a))
        return x;
    if (!shape)
        return view_fail("reshape", x, "the shape is NULL");
    wf_shape want = *shape;
    char text[96];
    if (want.ndim < 0 || want.ndim > WF_MAX_DIMS)
        return view_fail("reshape", x, "%d dimensions is out of range, 0 to %d", want.ndim, WF_MAX_DIMS);
    int free_dim = -1;
    for (int d = 0; d < want.ndim; d++) {
        if (want.dim[d] >= 0)
            continue;
        if (want.dim[d] != -1 || free_dim >= 0)
            return view_fail("reshape", x, "%s has more than one -1, or a negative size other than -1",
                             wf_shape_text(shape, text, sizeof text));
        free_dim = d;
        want.dim[d] = 1;
    }
    int64_t count = wf_array_count(&a), given = wf_shape_count(&want);
    if (free_dim >= 0 && given > 0 && count % given == 0) {
        want.dim[free_dim] = count / given;
        given = count;
    } else if (free_dim >= 0) {
        given = -1;
    }
    size_t bytes;
    if (given != count || !wf_shape_bytes(a.dtype, &want, &bytes))
        return view_fail("reshape", x, "%lld elements cannot be reshaped to %s", (long long)count, wf_shape_text(shape, text, sizeof text));
    if (count == 0) {
        view = wf_array_contiguous(a.data, a.dtype, &want);
        return wf_apply_view("reshape", x, &view);
    }
    if (wf_array_reshape(&a, &want, &view))
        return wf_apply_view("reshape", x, &view);
    x = wf_contiguous(x);
    if (!open_view("reshape", &x, &a))
        return x;
    view = wf_array_contiguous(a.data, a.dtype, &want);
    return wf_apply_view("reshape", x, &view);
}

wf_tensor *wf_transpose(wf_tensor *x, int dim0, int dim1)
{
    wf_array a;
    x = with_places(x);
    if (!open_view("transpose", &x, &a))
        return x;
    int i = dim0, j = dim1;
    if (!wf_find_dim(&i, a.ndim) || !wf_find_dim(&j, a.ndim))
        return view_fail("transpose", x, "dimensions %d and %d do not both exist", dim0, dim1);
    a = wf_array_transpose(a, i, j);
    return wf_apply_view("transpose", x, &a);
}

wf_tensor *wf_permute_to(wf_tensor *x, const wf_shape *order)
{
    wf_array a, view;
    x = with_places(x);
    if (!open_view("permute", &x, &a))
        return x;
    if (!order)
        return view_fail("permute", x, "the order is NULL");
    char text[96];
    unsigned seen = 0;
    view = a;
    for (int d = 0; order->ndim == a.ndim && d < a.ndim; d++) {
        int from = order->dim[d] >= -a.ndim && order->dim[d] < a.ndim ? (int)order->dim[d] : a.ndim;
        if (!wf_find_dim(&from, a.ndim))
            break;
        seen |= 1u << from;
        view.dim[d] = a.dim[from];
        view.stride[d] = a.stride[from];
    }
    if (order->ndim != a.ndim || seen != (1u << a.ndim) - 1)
        return view_fail("permute", x, "the order %s does not name each of the %d dimensions once", wf_shape_text(order, text, sizeof text),
                         a.ndim);
    return wf_apply_view("permute", x, &view);
}

wf_tensor *wf_select(wf_tensor *x, int dim, int64_t index)
{
    wf_array a;
    x = with_places(x);
    if (!open_view("select", &x, &a))
        return x;
    int d = dim;
    if (!wf_find_dim(&d, a.ndim))
        return no_dim("select", x, dim);
    int64_t at = index < 0 ? index + a.dim[d] : index;
    if (at < 0 || at >= a.dim[d])
        return view_fail("select", x, "index %lld is outside dimension %d, which has size %lld", (long long)index, dim,
                         (long long)a.dim[d]);
    if (wf_array_count(&a) > 0)
        a = wf_array_slice(a, d, at, 1);
    wf_drop_dim(&a, d);
    return wf_apply_view("select", x, &a);
}

wf_tensor *wf_unsqueeze(wf_tensor *x, int dim)
{
    wf_array a;
    x = with_places(x);
    if (!open_view("unsqueeze", &x, &a))
        return x;
    int d = dim;
    if (a.ndim == WF_MAX_DIMS || !wf_find_dim(&d, a.ndim + 1))
        return view_fail("unsqueeze", x, "no dimension can be put at %d: -%d to %d are places, and %d dimensions are the most", dim,
                         a.ndim + 1, a.ndim, WF_MAX_DIMS);
    for (int k = a.ndim++; k > d; k--) {
        a.dim[k] = a.dim[k - 1];
        a.stride[k] = a.stride[k - 1];
    }
    a.dim[d] = 1;
    a.stride[d] = d + 1 < a.ndim ? a.stride[d + 1] * a.dim[d + 1] : 1;
    return wf_apply_view("unsqueeze", x, &a);
}

wf_tensor *wf_squeeze(wf_tensor *x, int dim)
{
    wf_array a;
    x = with_places(x);
    if (!open_view("squeeze", &x, &a))
        return x;
    int d = dim;
    if (!wf_find_dim(&d, a.ndim))
        return no_dim("squeeze", x, dim);
    if (a.dim[d] != 1)
        return view_fail("squeeze", x, "dimension %d has size %lld, not 1", dim, (long long)a.dim[d]);
    wf_drop_dim(&a, d);
    return wf_apply_view("squeeze", x, &a);
}

wf_tensor *wf_flatten(wf_tensor *x, int first, int last)
{
    wf_array a;
    if (!open_view("flatten", &x, &a))
        return x;
    if (a.ndim == 0 && (first == 0 || first == -1) && (last == 0 || last == -1))
        return wf_reshape_to(x, &(wf_shape){1, {1}});
    int from = first, to = last;
    if (!wf_find_dim(&from, a.ndim) || !wf_find_dim(&to, a.ndim) || from > to)
        return view_fail("flatten", x, "dimensions %d to %d are not a range of the tensor's", first, last);
    wf_shape shape = {.ndim = a.ndim - (to - from)};
    for (int d = 0, at = 0; d < a.ndim; d++)
        if (d > from && d <= to)
            shape.dim[at - 1] *= a.dim[d];
        else
            shape.dim[at++] = a.dim[d];
    return wf_reshape_to(x, &shape);
}

static wf_tensor *slice(const char *op, wf_tensor *x, int dim, int64_t start, int64_t length)
{
    wf_array a;
    x = with_places(x);
    if (!open_view(op, &x, &a))
        return x;
    int d = dim;
    if (!wf_find_dim(&d, a.ndim))
        return no_dim(op, x, dim);
    int64_t from = start < 0 ? start + a.dim[d] : start;
    if (from < 0 || length < 0 || from > a.dim[d] || length > a.dim[d] - from)
        return view_fail(op, x, "length %lld from start %lld is outside dimension %d, which has size %lld", (long long)length,
                         (long long)start, dim, (long long)a.dim[d]);
    if (wf_array_count(&a) > 0 && length > 0)
        a = wf_array_slice(a, d, from, length);
    a.dim[d] = length;
    return wf_apply_view(op, x, &a);
}

wf_tensor *wf_slice(wf_tensor *x, int dim, int64_t start, int64_t length)
{
    return slice("slice", x, dim, start, length);
}

void wf_split(wf_tensor *x, int dim, int n, wf_tensor *parts[])
{
    x = with_places(x);
    int d = dim, ndim = wf_ndim(x);
    wf_tensor *bad = NULL;
    if (wf_is_poison(x))
        bad = x ? x : view_fail("split", x, "the operand is NULL");
    else if (!wf_find_dim(&d, ndim))
        bad = no_dim("split", x, dim);
    else if (n < 1 || wf_dim(x, d) % n != 0)
        bad = view_fail("split", x, "dimension %d of size %lld cannot be divided into %d equal parts", dim, (long long)wf_dim(x, d), n);
    int64_t length = bad ? 0 : wf_dim(x, d) / n;
    for (int i = 0; i < n; i++)
        parts[i] = bad ? bad : slice("split", x, d, i * length, length);
}

/* contiguous: y = x in another order in memory, dx = dy. */
static wf_status contiguous_shape(wf_call *c)
{
    if (!wf_has(c, 0))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the operand is NULL");
    wf_shape shape = wf_array_shape(&c->in[0]);
    c->out[0] = wf_call_shape(c->in[0].dtype, &shape);
    return WF_OK;
}

static wf_status contiguous_forward(wf_call *c)
{
    wf_array_copy(&c->out[0], &c->in[0]);
    return WF_OK;
}

static wf_status contiguous_backward(wf_call *c)
{
    wf_grad_give(c, 0, &c->dout[0]);
    return WF_OK;
}

static void same_gradient(const wf_gradient_call *c)
{
    c->dx[0] = c->dy[0];
}

const wf_op wf_op_contiguous = {.name = "contiguous",
                                .reads = WF_READS_NOTHING,
                                .shape = contiguous_shape,
                                .forward = contiguous_forward,
                                .backward = contiguous_backward,
                                .gradient = same_gradient,
                                .cases = WF_CASES({"matrix", {{3, 5}}}, {"scalar", {{-2}}}, {"empty", {{-1, 2}}}, {"ones", {{1, 1, 1}}},
                                                  {"odd", {{7, 1, 13}}}, {"six dims", {{2, 1, 3, 1, 2, 3}}})};

wf_tensor *wf_contiguous(wf_tensor *x)
{
    wf_array a;
    if (!open_view("contiguous", &x, &a))
        return x;
    return wf_array_is_contiguous(&a) ? x : wf_apply(&wf_op_contiguous, NULL, 1, &x);
}

/* expand: y repeats x along some dimensions, so dx is the sum of dy over these dimensions, which wf_grad_give computes. */
static wf_status expand_shape(wf_call *c)
{
    if (!wf_has(c, 0))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the operand is NULL");
    wf_shape have = wf_array_shape(&c->in[0]), want = *(const wf_shape *)c->attr, both;
    if (want.ndim < 0 || want.ndim > WF_MAX_DIMS)
        return wf_call_fail(c, WF_ERR_SHAPE, "%d dimensions is out of range, 0 to %d", want.ndim, WF_MAX_DIMS);
    for (int d = 0; d < want.ndim; d++) {
        int from = d - (want.ndim - have.ndim);
        if (want.dim[d] == -1 && from >= 0)
            want.dim[d] = have.dim[from];
    }
    size_t bytes;
    char text[160];
    if (!wf_shape_bytes(c->in[0].dtype, &want, &bytes) || !wf_shape_broadcast(&have, &want, &both) || !wf_shape_equal(&both, &want))
        return wf_call_fail(c, WF_ERR_SHAPE, "the operand does not broadcast to %s", wf_shape_text(c->attr, text, sizeof text));
    c->out[0] = wf_array_expand(&c->in[0], &want);
    return WF_OK;
}

static wf_status expand_backward(wf_call *c)
{
    wf_grad_give(c, 0, &c->dout[0]);
    return WF_OK;
}

#define TO(n, ...) ATTR(wf_shape, n, {__VA_ARGS__})
const wf_op wf_op_expand = {
    .name = "expand",
    .attr_size = sizeof(wf_shape),
    .reads = WF_READS_NOTHING,
    .view = true,
    .shape = expand_shape,
    .backward = expand_backward,
    .gradient = same_gradient, /* wf_gradients sums it */
    .cases = WF_CASES({"rows", {{3}}, TO(2, 4, 3)}, {"columns", {{3, 1}}, TO(2, 3, 5)}, {"scalar", {{-2}}, TO(2, 2, 3)},
                      {"vector of one", {{1}}, TO(1, 7)}, {"middle", {{2, 1, 3}}, TO(3, 2, 4, 3)},
                      {"kept sizes", {{2, 1, 3}}, TO(4, 2, -1, 4, -1)}, {"several", {{2, 1, 3, 1}}, TO(5, 2, 2, 3, 3, 2)},
                      {"of size 1", {{3}}, TO(3, 1, 1, 3)}, {"the same", {{2, 3}}, TO(2, 2, 3)}, {"to nothing", {{1, 3}}, TO(2, 0, 3)},
                      {"of nothing", {{-1, 1}}, TO(2, 0, 3)}, {"many rows", {{5}}, TO(2, 290, 5)}, {"long rows", {{2, 1}}, TO(2, 2, 700)})};

wf_tensor *wf_expand_to(wf_tensor *x, const wf_shape *shape)
{
    wf_shape have = wf_shape_of(x);
    return x && shape && wf_shape_equal(&have, shape) ? x : wf_apply(&wf_op_expand, shape, 1, &x);
}
