/* SPDX-License-Identifier: MIT */
/* conv and conv_transpose: convolution over sequences and pictures. */
#include <weft/internal/conv.h>

#include "common.h"

enum { X, WEIGHT, BIAS };

struct conv_attr {
    bool transposed, invalid; /* invalid: the options give `axes` and one of the numbers for all axes */
    int64_t groups;
    int64_t output_padding;
    struct wf_conv_axis axis[2];
    bool each; /* the axes are those of the options' `axes`; otherwise axis[0] is for all */
};

static const char *name_of(const void *attr)
{
    return ((const struct conv_attr *)attr)->transposed ? "conv_transpose" : "conv";
}

static struct wf_conv_axis axis_of(const struct conv_attr *a, int d)
{
    return a->axis[a->each ? d : 0];
}

/* The geometry of the convolution, or of the one whose transpose this is. A sequence is a picture of one row. */
static struct wf_conv geometry(const wf_call *c)
{
    const struct conv_attr *a = c->attr;
    const wf_array *big = a->transposed ? &c->out[0] : &c->in[X], *small = a->transposed ? &c->in[X] : &c->out[0];
    const int dims = c->in[X].ndim - 2;
    struct wf_conv s = {.batch = big->dim[0],
                        .groups = a->groups,
                        .channels = big->dim[1],
                        .height = dims == 2 ? big->dim[2] : 1,
                        .width = big->dim[dims + 1],
                        .filters = small->dim[1],
                        .rows = dims == 2 ? small->dim[2] : 1,
                        .cols = small->dim[dims + 1],
                        .kernel = {1, 1},
                        .stride = {1, 1},
                        .dilation = {1, 1}};
    for (int d = 0; d < dims; d++) {
        const struct wf_conv_axis axis = axis_of(a, d);
        const int at = d + 2 - dims;
        s.kernel[at] = c->in[WEIGHT].dim[d + 2];
        s.stride[at] = axis.stride;
        s.before[at] = axis.before;
        s.dilation[at] = axis.dilation;
    }
    return s;
}

static wf_status check_axes(wf_call *c, int dims)
{
    const struct conv_attr *a = c->attr;
    const int64_t most = (int64_t)1 << 40;
    if (a->invalid)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "give .axes, or .stride, .padding, .dilation and .output_padding, not both");
    for (int d = 0; d < dims; d++) {
        const struct wf_conv_axis axis = axis_of(a, d);
        if (axis.stride < 1 || axis.dilation < 1 || axis.stride > most || axis.dilation > most)
            return wf_call_fail(c, WF_ERR_ARGUMENT, "axis %d: the stride is %lld and the dilation %lld: both must be at least 1", d,
                                (long long)axis.stride, (long long)axis.dilation);
        if (axis.before < 0 || (axis.after < 0 && !a->transposed) || axis.before > most || axis.after > most || axis.after < -most)
            return wf_call_fail(c, WF_ERR_ARGUMENT, "axis %d: the padding is %lld and %lld: neither may be negative", d,
                                (long long)axis.before, (long long)axis.after);
        if (a->output_padding < 0 || WF_MAX(a->output_padding, -axis.after) >= WF_MAX(axis.stride, axis.dilation))
            return wf_call_fail(c, WF_ERR_ARGUMENT, "axis %d: the output padding must be at least 0, and below the stride or the dilation",
                                d);
    }
    return WF_OK;
}

static wf_status conv_shape(wf_call *c)
{
    const struct conv_attr *a = c->attr;
    const wf_array *x = &c->in[X], *w = &c->in[WEIGHT];
    if (wf_want_reals(c, 2) != WF_OK)
        return WF_ERR_ARGUMENT;
    const int dims = x->ndim - 2;
    if ((dims != 1 && dims != 2) || w->ndim != x->ndim)
        return wf_call_fail(c, WF_ERR_SHAPE, "x must be [B,C,T] and the weight [%s,K], or x [B,C,H,W] and the weight [%s,Kh,Kw]",
                            a->transposed ? "C,F/groups" : "F,C/groups", a->transposed ? "C,F/groups" : "F,C/groups");
    if (check_axes(c, dims) != WF_OK)
        return WF_ERR_ARGUMENT;
    const int64_t channels = x->dim[1], given = a->transposed ? w->dim[0] : w->dim[1];
    if (a->groups < 1 || channels % a->groups != 0 || (!a->transposed && w->dim[0] % a->groups != 0))
        return wf_call_fail(c, WF_ERR_SHAPE, "%lld groups do not divide the %lld channels%s", (long long)a->groups, (long long)channels,
                            a->transposed ? "" : " and the filters");
    if (given != (a->transposed ? channels : channels / a->groups))
        return wf_call_fail(c, WF_ERR_SHAPE, "x has %lld channels in %lld groups, but the weight is for %lld%s", (long long)channels,
                            (long long)a->groups, (long long)given, a->transposed ? "" : " in each group");
    const int64_t filters = a->transposed ? w->dim[1] * a->groups : w->dim[0];
    wf_shape shape = {.ndim = x->ndim, .dim = {x->dim[0], filters}};
    for (int d = 0; d < dims; d++) {
        const struct wf_conv_axis axis = axis_of(a, d);
        const int64_t n = x->dim[d + 2], k = w->dim[d + 2];
        if (k < 1)
            return wf_call_fail(c, WF_ERR_SHAPE, "the weight has no elements along axis %d", d);
        if ((double)axis.dilation * (double)k + (a->transposed ? (double)axis.stride * (double)n : 0) > 1e15)
            return wf_call_fail(c, WF_ERR_SHAPE, "axis %d: with a stride of %lld and a dilation of %lld there are more elements than 1e15",
                                d, (long long)axis.stride, (long long)axis.dilation);
        const int64_t reach = axis.dilation * (k - 1) + 1, padding = axis.before + axis.after;
        if (!a->transposed && n + padding < reach)
            return wf_call_fail(c, WF_ERR_SHAPE, "axis %d: the kernel reaches over %lld elements, more than the %lld of x with its padding",
                                d, (long long)reach, (long long)(n + padding));
        shape.dim[d + 2] = a->transposed ? (n - 1) * axis.stride + reach - padding : (n + padding - reach) / axis.stride + 1;
        if (shape.dim[d + 2] < (n > 0 || !a->transposed))
            return wf_call_fail(c, WF_ERR_SHAPE, "axis %d: the result would have %lld elements", d, (long long)shape.dim[d + 2]);
    }
    c->out[0] = wf_call_shape(WF_REAL, &shape);
    return wf_want_vector(c, BIAS, "the bias", filters);
}

static wf_status done(wf_call *c, bool ran)
{
    return ran ? WF_OK : wf_call_fail(c, WF_ERR_MEMORY, "no memory to pack its operands");
}

static wf_status conv_forward(wf_call *c)
{
    const struct conv_attr *a = c->attr;
    const struct wf_conv s = geometry(c);
    const wf_array x = wf_call_contiguous(c, &c->in[X]), w = wf_call_contiguous(c, &c->in[WEIGHT]);
    const wf_real *bias;
    if (!x.data || !w.data || !wf_vector_of(c, BIAS, &bias))
        return WF_ERR_MEMORY;
    return done(c, (a->transposed ? wf_conv_data : wf_conv_forward)(&s, x.data, w.data, bias, c->out[0].data, false));
}

/* The gradient of the bias: the sums of dy over all but the filters. */
static wf_status give_bias(wf_call *c)
{
    bool add;
    wf_array db = wf_grad_into(c, BIAS, &add);
    if (!db.data)
        return WF_ERR_MEMORY;
    wf_array kept = {.data = db.data, .dtype = WF_REAL, .ndim = c->dout[0].ndim};
    for (int d = 0; d < kept.ndim; d++)
        kept.dim[d] = 1;
    kept.dim[1] = db.dim[0];
    kept.stride[1] = db.stride[0];
    return wf_sum_into(c, &kept, &c->dout[0], 1, add);
}

static wf_status conv_backward(wf_call *c)
{
    const struct conv_attr *a = c->attr;
    const struct wf_conv s = geometry(c);
    const wf_array dy = wf_call_contiguous(c, &c->dout[0]);
    wf_status status = dy.data ? WF_OK : WF_ERR_MEMORY;
    if (status == WF_OK && c->need[X]) {
        const wf_array w = wf_call_contiguous(c, &c->in[WEIGHT]);
        struct contiguous_grad g;
        if (!w.data || !wf_contiguous_grad(c, X, &g))
            return WF_ERR_MEMORY;
        status = done(c, (a->transposed ? wf_conv_forward : wf_conv_data)(&s, dy.data, w.data, NULL, g.contiguous.data, g.add));
        wf_contiguous_grad_done(&g);
    }
    if (status == WF_OK && c->need[WEIGHT]) {
        const wf_array x = wf_call_contiguous(c, &c->in[X]);
        struct contiguous_grad g;
        if (!x.data || !wf_contiguous_grad(c, WEIGHT, &g))
            return WF_ERR_MEMORY;
        status = done(c, a->transposed ? wf_conv_weight(&s, dy.data, x.data, g.contiguous.data, g.add)
                                       : wf_conv_weight(&s, x.data, dy.data, g.contiguous.data, g.add));
        wf_contiguous_grad_done(&g);
    }
    return status == WF_OK && c->inputs > BIAS && c->need[BIAS] ? give_bias(c) : status;
}

/* --- its gradient, as convolutions ------------------------------------------------------------------------------------ */

/* x with `count` elements along axis d: its first ones, or all of them and zeros behind, which go to *after. */
static wf_tensor *reaching(wf_tensor *x, int d, int64_t count, int64_t *after)
{
    const int64_t have = wf_dim(x, d + 2);
    *after = WF_MAX(count - have, 0);
    return count < have ? wf_slice(x, d + 2, 0, count) : x;
}

/* [B, G*C, ...] as [C, G*B, ...]: batch and channels exchanged in each of the G groups. */
static wf_tensor *exchanged(wf_tensor *x, int64_t groups)
{
    const wf_shape s = wf_shape_of(x);
    wf_shape parts = {.ndim = s.ndim + 1, .dim = {s.dim[0], groups, s.dim[1] / groups}}, order = {.ndim = s.ndim + 1, .dim = {2, 1, 0}},
             joined = {.ndim = s.ndim, .dim = {s.dim[1] / groups, groups * s.dim[0]}};
    for (int d = 2; d < s.ndim; d++) {
        parts.dim[d + 1] = joined.dim[d] = s.dim[d];
        order.dim[d + 1] = d + 1;
    }
    return wf_reshape_to(wf_permute_to(wf_reshape_to(x, &parts), &order), &joined);
}

/* dw[f,c,r] = sum over b and i of dy[b,f,i] x[b,c, i stride + r dilation - before]: a convolution of x with dy as its kernel, in which the
 * stride and the dilation change places, and so do batch and channels. */
static wf_tensor *weight_gradient(const struct conv_attr *a, wf_tensor *x, wf_tensor *dy, const wf_tensor *weight)
{
    struct wf_conv_axis axes[2] = {{0}};
    for (int d = 0; d < wf_ndim(x) - 2; d++) {
        const struct wf_conv_axis axis = axis_of(a, d);
        const int64_t reach = (wf_dim(weight, d + 2) - 1) * axis.dilation + (wf_dim(dy, d + 2) - 1) * axis.stride + 1;
        axes[d] = (struct wf_conv_axis){axis.dilation, axis.before, 0, axis.stride};
        if (reach <= axis.before || wf_dim(dy, d + 2) == 0)
            return NULL; /* all windows lie in the padding, or there are none */
        x = reaching(x, d, reach - axis.before, &axes[d].after);
    }
    wf_tensor *dw = wf_conv(exchanged(x, a->groups), wf_transpose(dy, 0, 1), NULL, .groups = a->groups, .axes = axes);
    return wf_transpose(dw, 0, 1);
}

/* dx of a convolution is the transposed one of dy, and the other way round. */
static wf_tensor *data_gradient(const struct conv_attr *a, const wf_tensor *x, wf_tensor *dy, wf_tensor *weight)
{
    struct wf_conv_axis axes[2] = {{0}};
    for (int d = 0; d < wf_ndim(x) - 2; d++) {
        const int64_t reach = (wf_dim(weight, d + 2) - 1) * axis_of(a, d).dilation + 1;
        axes[d] = axis_of(a, d);
        const int64_t last = (wf_dim(x, d + 2) - 1) * axes[d].stride + reach - axes[d].before;
        if (wf_dim(x, d + 2) == 0 || (a->transposed && last <= 0))
            return NULL;
        if (a->transposed)
            dy = reaching(dy, d, last, &axes[d].after);
        else
            axes[d].after = (wf_dim(dy, d + 2) - 1) * axes[d].stride + reach - axes[d].before - wf_dim(x, d + 2);
    }
    return a->transposed ? wf_conv(dy, weight, NULL, .groups = a->groups, .axes = axes)
                         : wf_conv_transpose(dy, weight, NULL, .groups = a->groups, .axes = axes);
}

static void conv_gradient(const wf_gradient_call *c)
{
    const struct conv_attr *a = c->attr;
    wf_tensor *x = c->x[X], *w = c->x[WEIGHT], *dy = c->dy[0];
    if (c->need[X])
        c->dx[X] = data_gradient(a, x, dy, w);
    if (c->need[WEIGHT])
        c->dx[WEIGHT] = a->transposed ? weight_gradient(a, dy, x, w) : weight_gradient(a, x, dy, w);
    if (c->inputs > BIAS && c->need[BIAS])
        c->dx[BIAS] = wf_sum_dim(wf_sum_dim(wf_flatten(dy, 2, -1), -1, false), 0, false);
}

#define GROUPS(n, ...) ATTR(struct conv_attr, .groups = n, .axis = {__VA_ARGS__}, .each = true)
#define CONV(...) GROUPS(1, __VA_ARGS__)
#define TRANSPOSE(n, ...) ATTR(struct conv_attr, .transposed = true, .groups = n, .axis = {__VA_ARGS__}, .each = true)
#define ONE                                                                                                                                \
    {                                                                                                                                      \
        1, 0, 0, 1                                                                                                                         \
    }
#define NO_BIAS .inputs = 3, .fill = {WF_FILL_NORMAL, WF_FILL_NORMAL, WF_FILL_ABSENT}
const wf_op wf_op_conv = {
    .name = "conv",
    .operands = "x weight bias",
    .name_of = name_of,
    .attr_size = sizeof(struct conv_attr),
    .reads = WF_READS_INPUT(X) | WF_READS_INPUT(WEIGHT),
    .shape = conv_shape,
    .forward = conv_forward,
    .backward = conv_backward,
    .gradient = conv_gradient,
    .cases = WF_CASES(
        {"3 x 3", {{2, 3, 6, 5}, {4, 3, 3, 3}, {4}}, CONV({1, 1, 1, 1}, {1, 1, 1, 1})},
        {"one tap", {{2, 5, 3, 4}, {3, 5, 1, 1}, {3}}, CONV(ONE, ONE)},
        {"stride", {{2, 3, 7, 8}, {2, 3, 3, 2}, {2}}, CONV({2, 1, 1, 1}, {3, 0, 1, 1})},
        {"stride beyond the kernel", {{1, 2, 8, 7}, {3, 2, 1, 2}, {3}}, CONV({3, 0, 0, 1}, {4, 0, 0, 1})},
        {"dilation", {{1, 2, 9, 8}, {3, 2, 3, 2}, {3}}, CONV({1, 2, 2, 2}, {2, 3, 1, 3})},
        {"windows in the padding", {{2, 1, 1}, {1, 1, 1}, {1}}, CONV({8, 3, 0, 1})},
        {"even kernel, uneven padding", {{1, 2, 5, 6}, {3, 2, 2, 4}, {3}}, CONV({1, 0, 1, 1}, {1, 1, 2, 1})},
        {"wide padding", {{1, 2, 2, 1}, {2, 2, 3, 3}, {2}}, CONV({1, 4, 5, 1}, {2, 3, 4, 1})},
        {"groups", {{2, 6, 5, 4}, {4, 3, 2, 3}, {4}}, GROUPS(2, {1, 1, 0, 1}, {1, 1, 1, 1})},
        {"depthwise", {{2, 3, 6, 7}, {6, 1, 3, 3}, {6}}, GROUPS(3, {1, 1, 1, 1}, {1, 1, 1, 1})},
        {"depthwise, stride and dilation", {{2, 3, 9, 8}, {3, 1, 3, 2}, {3}}, GROUPS(3, {2, 1, 1, 2}, {3, 2, 0, 1})},
        {"depthwise, wide rows, stride", {{2, 2, 5, 35}, {4, 1, 3, 3}, {4}}, GROUPS(2, {2, 1, 1, 1}, {2, 1, 1, 1})},
        {"depthwise, padding wider than x", {{1, 2, 2, 3}, {2, 1, 5, 7}, {2}}, GROUPS(2, {3, 4, 6, 1}, {2, 7, 5, 2})},
        {"no bias", {{2, 3, 5, 5}, {2, 3, 3, 3}}, CONV(ONE, ONE), NO_BIAS}, {"sequence", {{2, 3, 11}, {4, 3, 3}, {4}}, CONV({2, 1, 1, 1})},
        {"causal, depthwise", {{2, 5, 9}, {5, 1, 4}, {5}}, GROUPS(5, {1, 3, 0, 1})}, {"one step", {{2, 3, 1}, {4, 3, 1}, {4}}, CONV(ONE)},
        {"many channels", {{1, 19, 9, 4}, {9, 19, 3, 3}, {9}}, CONV({1, 1, 1, 1}, {1, 1, 1, 1})},
        {"many patches", {{3, 2, 11, 13}, {3, 2, 2, 2}, {3}}, CONV(ONE, ONE)},
        {"wide rows", {{2, 2, 3, 19}, {7, 2, 3, 3}, {7}}, CONV({1, 1, 1, 1}, {1, 1, 1, 1})},
        {"wide rows, dilation, uneven padding", {{1, 3, 5, 17}, {3, 3, 2, 3}, {3}}, CONV({1, 2, 0, 2}, {1, 1, 4, 3})},
        {"wide rows, stride", {{2, 3, 7, 31}, {3, 3, 3, 3}, {3}}, CONV({2, 1, 1, 1}, {2, 1, 1, 1})},
        {"wide rows, groups", {{1, 4, 3, 16}, {6, 2, 3, 3}, {6}}, GROUPS(2, {1, 1, 1, 1}, {1, 1, 1, 1})},
        {"many channels of wide rows", {{2, 30, 2, 12}, {7, 30, 3, 3}, {7}}, CONV({1, 1, 1, 1}, {1, 1, 1, 1})},
        {"long sequence", {{1, 13, 300}, {5, 13, 3}, {5}}, CONV({1, 2, 0, 1})},
        {"no pictures", {{-1, 3, 5, 5}, {2, 3, 3, 3}, {2}}, CONV(ONE, ONE)},
        {"transposed, no rows", {{1, 32, -1, 8}, {32, 32, 1, 1}}, TRANSPOSE(1, ONE, ONE), NO_BIAS},
        {"transposed, no rows, stride", {{1, 16, -1, 8}, {16, 20, 1, 2}}, TRANSPOSE(1, {3, 0, -2, 1}, ONE), NO_BIAS},
        {"no channels", {{2, -1, 5, 5}, {2, -1, 3, 3}, {2}}, CONV(ONE, ONE)},
        {"transposed", {{2, 3, 4, 3}, {3, 2, 3, 3}, {2}}, TRANSPOSE(1, {1, 1, 1, 1}, {1, 0, 0, 1})},
        {"transposed, stride", {{2, 3, 3, 4}, {3, 2, 4, 3}, {2}}, TRANSPOSE(1, {2, 1, 1, 1}, {3, 1, 0, 1})},
        {"transposed, stride beyond the kernel", {{1, 2, 3, 2}, {2, 3, 2, 1}, {3}}, TRANSPOSE(1, {3, 0, -2, 1}, {2, 0, -1, 1})},
        {"transposed, groups and dilation", {{1, 4, 3, 4}, {4, 3, 2, 3}, {6}}, TRANSPOSE(2, {1, 1, 0, 2}, {2, 0, 2, 2})},
        {"transposed, depthwise", {{2, 3, 4, 5}, {3, 1, 3, 2}, {3}}, TRANSPOSE(3, {2, 1, 1, 1}, {2, 0, 0, 1})},
        {"transposed, depthwise, no columns", {{2, 3, -1}, {3, 1, 3}, {3}}, TRANSPOSE(3, {1, 0, 0, 1})},
        {"transposed, wide rows", {{1, 3, 3, 16}, {3, 2, 4, 4}, {2}}, TRANSPOSE(1, {2, 1, 1, 1}, {2, 1, 1, 1})},
        {"transposed sequence", {{2, 3, 5}, {3, 2, 4}, {2}}, TRANSPOSE(1, {2, 1, 1, 1})})};

static struct conv_attr attr_of(bool transposed, int64_t stride, int64_t padding, int64_t dilation, int64_t groups, int64_t output_padding,
                                const struct wf_conv_axis *axes, const wf_tensor *x)
{
    struct conv_attr a = {.transposed = transposed, .groups = groups == 0 ? 1 : groups, .output_padding = output_padding};
    a.axis[0] = (struct wf_conv_axis){stride == 0 ? 1 : stride, padding, padding - output_padding, dilation == 0 ? 1 : dilation};
    if (!axes)
        return a;
    a.invalid = stride != 0 || padding != 0 || dilation != 0 || output_padding != 0;
    a.each = true;
    for (int d = 0; d < 2 && d < wf_ndim(x) - 2; d++) {
        a.axis[d] = axes[d];
        a.axis[d].stride += axes[d].stride == 0;
        a.axis[d].dilation += axes[d].dilation == 0;
    }
    return a;
}

wf_tensor *wf_conv_with(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, const struct wf_conv_options *options)
{
    const struct wf_conv_options o = options ? *options : (struct wf_conv_options){0};
    const struct conv_attr a = attr_of(false, o.stride, o.padding, o.dilation, o.groups, 0, o.axes, x);
    return wf_apply(&wf_op_conv, &a, 3, (wf_tensor *[]){x, weight, bias});
}

wf_tensor *wf_conv_transpose_with(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, const struct wf_conv_transpose_options *options)
{
    const struct wf_conv_transpose_options o = options ? *options : (struct wf_conv_transpose_options){0};
    const struct conv_attr a = attr_of(true, o.stride, o.padding, o.dilation, o.groups, o.output_padding, o.axes, x);
    return wf_apply(&wf_op_conv, &a, 3, (wf_tensor *[]){x, weight, bias});
}
