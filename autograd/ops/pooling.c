/* SPDX-License-Identifier: MIT */
/* Pooling and resizing of sequences [B,C,T] and pictures [B,C,H,W]: each plane of one picture and one channel on its own. */
#include <math.h>

#include "planes.h"
#include "sort.h"

/* The shape rule's part that the ops share: the planes of x, whose last one or two dimensions are axes. */
static int axes_of(wf_call *c)
{
    if (wf_want(c, 0, WF_REAL) != WF_OK)
        return -1;
    if (c->in[0].ndim == 3 || c->in[0].ndim == 4)
        return c->in[0].ndim - 2;
    wf_call_fail(c, WF_ERR_SHAPE, "x must be [B,C,T] or [B,C,H,W]");
    return -1;
}

/* --- max_pool and avg_pool ------------------------------------------------------------------------------------------- */

struct pool_attr {
    struct wf_pool_axis axis[2]; /* the last is that of the columns */
    bool each;                   /* the axes are the options' `axes`; otherwise axis[0] is for all */
    bool max, adaptive, invalid;
    bool skip_padding; /* avg_pool divides by the number of elements inside of x */
    int64_t target[2]; /* adaptive: rows and columns of the result */
};

/* The transpose of an average: which one, and the sizes of its operand, which are those of the transpose's result. */
struct pool_back_attr {
    struct pool_attr of;
    int64_t size[2];
};

static const char *pool_name(const void *attr)
{
    const struct pool_attr *a = attr;
    return a->adaptive ? "adaptive_avg_pool" : a->max ? "max_pool" : "avg_pool";
}

/* The axis with number d of `axes`, or for a sequence's missing rows an axis of one element. */
static struct wf_pool_axis axis_of(const struct pool_attr *a, int axes, int at)
{
    if (at < 2 - axes)
        return (struct wf_pool_axis){1, 1, 0, 0};
    struct wf_pool_axis axis = a->axis[a->each ? at - (2 - axes) : 0];
    axis.stride = axis.stride == 0 ? axis.size : axis.stride;
    return axis;
}

static wf_status pool_shape(wf_call *c)
{
    const struct pool_attr *a = c->attr;
    const int axes = axes_of(c);
    if (axes < 0)
        return WF_ERR_ARGUMENT;
    if (a->invalid)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "give .axes, or the size with .stride and .padding, not both");
    if (a->adaptive && planes_want_rows(c, a->target[0]) != WF_OK)
        return WF_ERR_ARGUMENT;
    wf_shape shape = wf_array_shape(&c->in[0]);
    for (int d = 0; d < axes; d++) {
        const int64_t n = shape.dim[d + 2];
        const struct wf_pool_axis axis = axis_of(a, axes, d + 2 - axes);
        if (a->adaptive) {
            shape.dim[d + 2] = a->target[d + 2 - axes];
            if (shape.dim[d + 2] < 1 || n < 1)
                return wf_call_fail(c, WF_ERR_SHAPE, "axis %d: %lld elements cannot become %lld", d, (long long)n,
                                    (long long)shape.dim[d + 2]);
            continue;
        }
        const int64_t most = (int64_t)1 << 40;
        if (axis.size > most || axis.stride > most)
            return wf_call_fail(c, WF_ERR_ARGUMENT, "axis %d: a window of %lld with stride %lld: at most %lld are possible", d,
                                (long long)axis.size, (long long)axis.stride, (long long)most);
        if (axis.size < 1 || axis.stride < 1 || axis.before < 0 || axis.after < 0)
            return wf_call_fail(c, WF_ERR_ARGUMENT, "axis %d: a window of %lld with stride %lld and padding %lld and %lld", d,
                                (long long)axis.size, (long long)axis.stride, (long long)axis.before, (long long)axis.after);
        if (axis.before >= axis.size || axis.after >= axis.size)
            return wf_call_fail(c, WF_ERR_ARGUMENT, "axis %d: the padding must be less than the window of %lld", d, (long long)axis.size);
        if (n + axis.before + axis.after < axis.size || n < 1)
            return wf_call_fail(c, WF_ERR_SHAPE, "axis %d: the window of %lld is larger than the %lld elements of x with its padding", d,
                                (long long)axis.size, (long long)(n + axis.before + axis.after));
        shape.dim[d + 2] = (n + axis.before + axis.after - axis.size) / axis.stride + 1;
    }
    c->out[0] = wf_call_shape(WF_REAL, &shape);
    if (a->max)
        *(c->outputs > 1 ? &c->out[1] : &c->saved[0]) = wf_call_shape(WF_I32, &shape);
    else if (c->outputs > 1)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "a mean has no ids");
    const struct planes p = planes_of(c);
    return p.height * p.width < INT32_MAX ? WF_OK : wf_call_fail(c, WF_ERR_SHAPE, "a plane has too many elements");
}

/* The elements begin .. end - 1 of an axis that output i reads, and how many elements its window has with the padding. */
struct window {
    int64_t begin, end, size;
};

struct pool {
    const struct pool_attr *a;
    int axes;
    struct planes p;
    const wf_real *x, *dy;
    wf_real *y, *dx;
    int32_t *at; /* max_pool: the index of each maximum in its plane; NULL: nobody wants it */
};

static struct window window_of(const struct pool *k, int at, int64_t i)
{
    const int64_t n = at == 0 ? k->p.height : k->p.width;
    if (k->a->adaptive && at >= 2 - k->axes) {
        const int64_t out = at == 0 ? k->p.rows : k->p.cols, begin = i * n / out, end = ((i + 1) * n + out - 1) / out;
        return (struct window){begin, end, end - begin};
    }
    const struct wf_pool_axis axis = axis_of(k->a, k->axes, at);
    const int64_t begin = i * axis.stride - axis.before, end = begin + axis.size;
    return (struct window){WF_MAX(begin, 0), WF_MIN(end, n), WF_MIN(end, n + axis.after) - begin};
}

/* The factor of a window's sum in its mean. */
static wf_real share_of(const struct pool *k, const struct window *r, const struct window *q)
{
    const int64_t inside = (r->end - r->begin) * (q->end - q->begin);
    const double whole = (double)r->size * (double)q->size; /* which has no bounds in 64 bits */
    return (wf_real)(1 / (k->a->skip_padding ? (double)inside : whole));
}

static void maximum(const struct pool *k, const wf_real *x, const struct window *r, const struct window *q, wf_real *y, int32_t *at)
{
    const int64_t width = k->p.width;
    int64_t best = r->begin * width + q->begin;
    wf_real most = x[best];
    for (int64_t i = r->begin; i < r->end; i++)
        for (int64_t j = q->begin; j < q->end; j++)
            if (x[i * width + j] > most || isnan(x[i * width + j])) {
                best = i * width + j;
                most = x[best];
            }
    *y = most;
    if (at)
        *at = (int32_t)best;
}

static void pool_planes(void *ctx, int64_t begin, int64_t end)
{
    const struct pool *k = ctx;
    const int64_t picture = k->p.rows * k->p.cols;
    for (int64_t plane = begin; plane < end; plane++) {
        const wf_real *x = k->x + plane * k->p.height * k->p.width;
        int64_t o = plane * picture;
        for (int64_t i = 0; i < k->p.rows; i++) {
            const struct window r = window_of(k, 0, i);
            for (int64_t j = 0; j < k->p.cols; j++, o++) {
                const struct window q = window_of(k, 1, j);
                if (k->a->max) {
                    maximum(k, x, &r, &q, &k->y[o], k->at ? &k->at[o] : NULL);
                    continue;
                }
                wf_real sum = 0;
                for (int64_t s = r.begin; s < r.end; s++)
                    for (int64_t t = q.begin; t < q.end; t++)
                        sum += x[s * k->p.width + t];
                k->y[o] = sum * share_of(k, &r, &q);
            }
        }
    }
}

static void pool_planes_back(void *ctx, int64_t begin, int64_t end)
{
    const struct pool *k = ctx;
    for (int64_t plane = begin; plane < end; plane++) {
        wf_real *dx = k->dx + plane * k->p.height * k->p.width;
        int64_t o = plane * k->p.rows * k->p.cols;
        for (int64_t i = 0; i < k->p.rows; i++) {
            const struct window r = window_of(k, 0, i);
            for (int64_t j = 0; j < k->p.cols; j++, o++) {
                if (k->a->max) {
                    dx[k->at[o]] += k->dy[o];
                    continue;
                }
                const struct window q = window_of(k, 1, j);
                const wf_real part = k->dy[o] * share_of(k, &r, &q);
                for (int64_t s = r.begin; s < r.end; s++)
                    for (int64_t t = q.begin; t < q.end; t++)
                        dx[s * k->p.width + t] += part;
            }
        }
    }
}

static wf_status pool_forward(wf_call *c)
{
    const wf_array x = wf_call_contiguous(c, &c->in[0]);
    if (!x.data)
        return WF_ERR_MEMORY;
    struct pool k = {.a = c->attr, .axes = c->in[0].ndim - 2, .p = planes_of(c), .x = x.data, .y = c->out[0].data};
    k.at = !k.a->max ? NULL : c->outputs > 1 ? c->out[1].data : c->grad ? c->saved[0].data : NULL;
    planes_run(&k.p, 1, pool_planes, &k);
    return WF_OK;
}

static wf_status pool_backward(wf_call *c)
{
    const wf_array dy = wf_call_contiguous(c, &c->dout[0]);
    struct contiguous_grad dx;
    if (!dy.data || !wf_contiguous_grad_to_add(c, 0, &dx))
        return WF_ERR_MEMORY;
    struct pool k = {.a = c->attr, .axes = c->in[0].ndim - 2, .p = planes_of(c), .dy = dy.data, .dx = dx.contiguous.data};
    k.at = !k.a->max ? NULL : c->outputs > 1 ? c->out[1].data : c->saved[0].data;
    planes_run(&k.p, 1, pool_planes_back, &k);
    wf_contiguous_grad_done(&dx);
    return WF_OK;
}

/* The maxima go back to the places in their planes where they were found. */
static void max_gradient(const wf_gradient_call *c)
{
    const wf_shape shape = wf_shape_of(c->x[0]), flat = wf_shape_of(c->dy[0]);
    wf_shape planes = {3, {shape.dim[0], shape.dim[1], 1}}, windows = planes;
    for (int d = 2; d < shape.ndim; d++) {
        planes.dim[2] *= shape.dim[d];
        windows.dim[2] *= flat.dim[d];
    }
    wf_tensor *at = wf_reshape_to(ids_of_taken(c, &wf_op_pool), &windows);
    wf_tensor *dx = wf_scatter_add(wf_zeros(c->tape, &planes), 2, at, wf_reshape_to(c->dy[0], &windows));
    c->dx[0] = wf_reshape_to(dx, &shape);
}

static void pool_gradient(const wf_gradient_call *c)
{
    const struct pool_attr *a = c->attr;
    const struct pool_back_attr back = {*a, {wf_dim(c->x[0], -2), wf_dim(c->x[0], -1)}};
    if (a->max)
        max_gradient(c);
    else
        c->dx[0] = wf_apply(&wf_op_pool_back, &back, 1, c->dy);
}

/* --- the transpose of an average as an op ------------------------------------------------------------------------------ */

static wf_status back_shape(wf_call *c)
{
    const struct pool_back_attr *a = c->attr;
    if (axes_of(c) < 0)
        return WF_ERR_ARGUMENT;
    c->out[0] = planes_back(c, a->size);
    return WF_OK;
}

static struct pool back_of(const wf_call *c)
{
    return (struct pool){.a = &((const struct pool_back_attr *)c->attr)->of, .axes = c->in[0].ndim - 2, .p = planes_swapped(c)};
}

static wf_status back_forward(wf_call *c)
{
    const wf_array dy = wf_call_contiguous(c, &c->in[0]);
    if (!dy.data)
        return WF_ERR_MEMORY;
    struct pool k = back_of(c);
    k.dy = dy.data;
    k.dx = c->out[0].data;
    wf_kernel->fill(wf_array_count(&c->out[0]), 0, k.dx);
    planes_run(&k.p, 1, pool_planes_back, &k);
    return WF_OK;
}

static wf_status back_backward(wf_call *c)
{
    const wf_array x = wf_call_contiguous(c, &c->dout[0]);
    wf_array dx = wf_grad_new(c, 0);
    if (!x.data || !dx.data)
        return WF_ERR_MEMORY;
    struct pool k = back_of(c);
    k.x = x.data;
    k.y = dx.data;
    planes_run(&k.p, 1, pool_planes, &k);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

static void back_gradient(const wf_gradient_call *c)
{
    c->dx[0] = wf_apply(&wf_op_pool, &((const struct pool_back_attr *)c->attr)->of, 1, c->dy);
}

#define FROM(height, width, ...) ATTR(struct pool_back_attr, .of = {__VA_ARGS__}, .size = {height, width})
const wf_op wf_op_pool_back = {
    .name = "pool_back",
    .operands = "dy",
    .attr_size = sizeof(struct pool_back_attr),
    .reads = WF_READS_NOTHING,
    .shape = back_shape,
    .forward = back_forward,
    .backward = back_backward,
    .gradient = back_gradient,
    .cases = WF_CASES({"mean", {{1, 3, 3, 2}}, FROM(6, 8, .axis = {{2, 2, 0, 0}, {4, 4, 0, 0}}, .each = true)},
                      {"mean, overlapping", {{1, 2, 4, 6}}, FROM(7, 6, .axis = {{3, 2, 1, 1}, {3, 1, 0, 2}}, .each = true)},
                      {"mean inside", {{1, 2, 3, 3}}, FROM(5, 6, .axis = {{3, 2, 1, 1}}, .skip_padding = true)},
                      {"sequence", {{2, 3, 5}}, FROM(3, 10, .axis = {{3, 2, 1, 0}}, .each = true)},
                      {"adaptive", {{2, 1, 3, 2}}, FROM(7, 5, .adaptive = true, .target = {3, 2})},
                      {"no channels", {{2, -1, 2}}, FROM(1, 4, .axis = {{2, 2, 0, 0}})})};

/* --- descriptor and constructors --------------------------------------------------------------------------------------- */

#define MAX(...) .fill = {WF_FILL_APART}, ATTR(struct pool_attr, .axis = {__VA_ARGS__}, .each = true, .max = true)
#define AVG(...) ATTR(struct pool_attr, .axis = {__VA_ARGS__}, .each = true)
#define ADAPTIVE(...) ATTR(struct pool_attr, .adaptive = true, .target = {__VA_ARGS__})
const wf_op wf_op_pool = {
    .name = "pool",
    .operands = "x",
    .name_of = pool_name,
    .attr_size = sizeof(struct pool_attr),
    .outputs = 2, /* the second one: the index of each maximum in its plane */
    .reads = WF_READS_OUTPUT(1),
    .shape = pool_shape,
    .forward = pool_forward,
    .backward = pool_backward,
    .gradient = pool_gradient,
    .cases = WF_CASES(
        {"max", {{2, 3, 6, 8}}, MAX({2, 2, 0, 0}, {2, 2, 0, 0})}, {"max, overlapping", {{1, 2, 7, 6}}, MAX({3, 2, 1, 1}, {3, 1, 1, 0})},
        {"max of a sequence", {{2, 3, 9}}, MAX({4, 3, 2, 1})}, {"max of one element", {{2, 3, 4}}, MAX({1, 1, 0, 0})},
        {"mean", {{2, 3, 6, 8}}, AVG({2, 2, 0, 0}, {4, 4, 0, 0})}, {"mean, overlapping", {{1, 2, 7, 6}}, AVG({3, 2, 1, 1}, {3, 1, 0, 2})},
        {"mean of a sequence", {{2, 3, 10}}, AVG({3, 2, 1, 0})},
        {"mean inside", {{1, 2, 5, 6}}, ATTR(struct pool_attr, .axis = {{3, 2, 1, 1}}, .skip_padding = true)},
        {"adaptive", {{2, 3, 7, 5}}, ADAPTIVE(3, 2)}, {"adaptive to more", {{1, 2, 3, 4}}, ADAPTIVE(5, 4)},
        {"adaptive sequence", {{2, 3, 7}}, ADAPTIVE(1, 3)}, {"no pictures", {{-1, 3, 4, 4}}, MAX({2, 2, 0, 0}, {2, 2, 0, 0})},
        {"no channels", {{2, -1, 4}}, AVG({2, 2, 0, 0})})};

static wf_tensor *pool(wf_tensor *x, bool max, int64_t size, const struct wf_pool_options *options)
{
    const struct wf_pool_options o = options ? *options : (struct wf_pool_options){0};
    struct pool_attr a = {.max = max, .skip_padding = o.skip_padding, .each = o.axes != NULL};
    a.axis[0] = (struct wf_pool_axis){size, o.stride, o.padding, o.padding};
    a.invalid = o.axes && (size != 0 || o.stride != 0 || o.padding != 0);
    for (int d = 0; o.axes && d < 2 && d < wf_ndim(x) - 2; d++)
        a.axis[d] = o.axes[d];
    return max ? apply_with_ids(&wf_op_pool, &a, x, NULL) : wf_apply(&wf_op_pool, &a, 1, &x);
}

wf_tensor *wf_max_pool_with(wf_tensor *x, int64_t size, const struct wf_pool_options *options)
{
    return pool(x, true, size, options);
}

wf_tensor *wf_avg_pool_with(wf_tensor *x, int64_t size, const struct wf_pool_options *options)
{
    return pool(x, false, size, options);
}

wf_tensor *wf_adaptive_avg_pool(wf_tensor *x, int64_t rows, int64_t cols)
{
    const struct pool_attr a = {.adaptive = true, .target = {rows, cols}};
    return wf_apply(&wf_op_pool, &a, 1, &x);
}
