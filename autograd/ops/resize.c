/* SPDX-License-Identifier: MIT */
/* resize: sequences [B,C,T] and pictures [B,C,H,W] in another size, by the nearest element or linear interpolation. */
#include "planes.h"

struct resize_attr {
    int64_t target[2]; /* of the last two dimensions; a sequence has the second only */
    enum wf_resize how;
};

/* The transpose of a resize: which one, and the sizes of its operand, which are those of the transpose's result. */
struct resize_back_attr {
    struct resize_attr of;
    int64_t size[2];
};

/* Output i of an axis is low_share * x[low] + (1 - low_share) * x[high]. */
struct place {
    int32_t low, high;
    wf_real low_share;
};

static struct place place_of(enum wf_resize how, int64_t n, int64_t out, int64_t i)
{
    if (how == WF_RESIZE_NEAREST) {
        const int32_t at = (int32_t)WF_MIN(i * n / out, n - 1);
        return (struct place){at, at, 1};
    }
    const double at = how == WF_RESIZE_LINEAR_CORNERS ? out > 1 ? (double)i * (double)(n - 1) / (double)(out - 1) : 0
                                                      : WF_MAX(((double)i + 0.5) * (double)n / (double)out - 0.5, 0);
    const int64_t low = WF_MIN((int64_t)at, n - 1);
    return (struct place){(int32_t)low, (int32_t)WF_MIN(low + 1, n - 1), (wf_real)(1 - (at - (double)low))};
}

static wf_status resize_shape(wf_call *c)
{
    const struct resize_attr *a = c->attr;
    if (wf_want(c, 0, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    wf_shape shape = wf_array_shape(&c->in[0]);
    if (shape.ndim != 3 && shape.ndim != 4)
        return wf_call_fail(c, WF_ERR_SHAPE, "x must be [B,C,T] or [B,C,H,W]");
    if ((unsigned)a->how > WF_RESIZE_LINEAR_CORNERS)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the kind of interpolation is unknown");
    if (planes_want_rows(c, a->target[0]) != WF_OK)
        return WF_ERR_ARGUMENT;
    for (int d = 2; d < shape.ndim; d++) {
        const int64_t n = shape.dim[d], out = a->target[d - shape.ndim + 2];
        if (out < 1 || n < 1 || out > INT32_MAX || n > INT32_MAX)
            return wf_call_fail(c, WF_ERR_SHAPE, "axis %d: %lld elements cannot become %lld", d - 2, (long long)n, (long long)out);
        shape.dim[d] = out;
    }
    c->out[0] = wf_call_shape(WF_REAL, &shape);
    return WF_OK;
}

struct resize {
    struct planes p;
    const struct place *row, *col; /* [rows], [cols] */
    const wf_real *x, *dy;
    wf_real *y, *dx;
};

static void forward_planes(void *ctx, int64_t begin, int64_t end)
{
    const struct resize *k = ctx;
    for (int64_t plane = begin; plane < end; plane++) {
        const wf_real *x = k->x + plane * k->p.height * k->p.width;
        wf_real *y = k->y + plane * k->p.rows * k->p.cols;
        for (int64_t i = 0; i < k->p.rows; i++) {
            const wf_real *low = x + k->row[i].low * k->p.width, *high = x + k->row[i].high * k->p.width, share = k->row[i].low_share;
            for (int64_t j = 0; j < k->p.cols; j++, y++) {
                const struct place c = k->col[j];
                if (c.low_share == 1 && share == 1) { /* what has no share must not count, if it is infinite */
                    *y = low[c.low];
                    continue;
                }
                const wf_real top = c.low_share == 1 ? low[c.low] : c.low_share * low[c.low] + (1 - c.low_share) * low[c.high];
                const wf_real below = c.low_share == 1 ? high[c.low] : c.low_share * high[c.low] + (1 - c.low_share) * high[c.high];
                *y = share == 1 ? top : share * top + (1 - share) * below;
            }
        }
    }
}

static void backward_planes(void *ctx, int64_t begin, int64_t end)
{
    const struct resize *k = ctx;
    for (int64_t plane = begin; plane < end; plane++) {
        wf_real *dx = k->dx + plane * k->p.height * k->p.width;
        const wf_real *dy = k->dy + plane * k->p.rows * k->p.cols;
        for (int64_t i = 0; i < k->p.rows; i++) {
            wf_real *low = dx + k->row[i].low * k->p.width, *high = dx + k->row[i].high * k->p.width;
            const wf_real share = k->row[i].low_share;
            for (int64_t j = 0; j < k->p.cols; j++, dy++) {
                const struct place c = k->col[j];
                low[c.low] += share * c.low_share * *dy;
                low[c.high] += share * (1 - c.low_share) * *dy;
                high[c.low] += (1 - share) * c.low_share * *dy;
                high[c.high] += (1 - share) * (1 - c.low_share) * *dy;
            }
        }
    }
}

/* False without memory. */
static bool prepare(wf_call *c, const struct resize_attr *a, struct planes p, struct resize *k)
{
    *k = (struct resize){.p = p};
    const wf_array memory = wf_call_temp(c, WF_U8, &(wf_shape){1, {(k->p.rows + k->p.cols) * (int64_t)sizeof(struct place)}});
    struct place *place = memory.data;
    if (!place)
        return false;
    k->row = place;
    k->col = place + k->p.rows;
    for (int64_t i = 0; i < k->p.rows; i++)
        *place++ = place_of(a->how, k->p.height, k->p.rows, i);
    for (int64_t j = 0; j < k->p.cols; j++)
        *place++ = place_of(a->how, k->p.width, k->p.cols, j);
    return true;
}

static wf_status resize_forward(wf_call *c)
{
    struct resize k;
    const wf_array x = wf_call_contiguous(c, &c->in[0]);
    if (!x.data || !prepare(c, c->attr, planes_of(c), &k))
        return WF_ERR_MEMORY;
    k.x = x.data;
    k.y = c->out[0].data;
    planes_run(&k.p, 1, forward_planes, &k);
    return WF_OK;
}

static wf_status resize_backward(wf_call *c)
{
    struct resize k;
    struct contiguous_grad dx;
    const wf_array dy = wf_call_contiguous(c, &c->dout[0]);
    if (!dy.data || !prepare(c, c->attr, planes_of(c), &k) || !wf_contiguous_grad_to_add(c, 0, &dx))
        return WF_ERR_MEMORY;
    k.dy = dy.data;
    k.dx = dx.contiguous.data;
    planes_run(&k.p, 1, backward_planes, &k);
    wf_contiguous_grad_done(&dx);
    return WF_OK;
}

static void resize_gradient(const wf_gradient_call *c)
{
    const struct resize_back_attr a = {*(const struct resize_attr *)c->attr, {wf_dim(c->x[0], -2), wf_dim(c->x[0], -1)}};
    c->dx[0] = wf_apply(&wf_op_resize_back, &a, 1, c->dy);
}

/* --- the transpose: the gradient of a resize as an op ------------------------------------------------------------------ */

static wf_status back_shape(wf_call *c)
{
    const struct resize_back_attr *a = c->attr;
    if (wf_want(c, 0, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    c->out[0] = planes_back(c, a->size);
    return WF_OK;
}

static wf_status back_forward(wf_call *c)
{
    const struct resize_back_attr *a = c->attr;
    const wf_array dy = wf_call_contiguous(c, &c->in[0]);
    struct resize k;
    if (!dy.data || !prepare(c, &a->of, planes_swapped(c), &k))
        return WF_ERR_MEMORY;
    k.dy = dy.data;
    k.dx = c->out[0].data;
    wf_kernel->fill(wf_array_count(&c->out[0]), 0, k.dx);
    planes_run(&k.p, 1, backward_planes, &k);
    return WF_OK;
}

static wf_status back_backward(wf_call *c)
{
    const struct resize_back_attr *a = c->attr;
    const wf_array x = wf_call_contiguous(c, &c->dout[0]);
    wf_array dx = wf_grad_new(c, 0);
    struct resize k;
    if (!x.data || !dx.data || !prepare(c, &a->of, planes_swapped(c), &k))
        return WF_ERR_MEMORY;
    k.x = x.data;
    k.y = dx.data;
    planes_run(&k.p, 1, forward_planes, &k);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

static void back_gradient(const wf_gradient_call *c)
{
    c->dx[0] = wf_apply(&wf_op_resize, &((const struct resize_back_attr *)c->attr)->of, 1, c->dy);
}

#define FROM(height, width, ...) ATTR(struct resize_back_attr, .of = {__VA_ARGS__}, .size = {height, width})
const wf_op wf_op_resize_back = {.name = "resize_back",
                                 .operands = "dy",
                                 .attr_size = sizeof(struct resize_back_attr),
                                 .reads = WF_READS_NOTHING,
                                 .shape = back_shape,
                                 .forward = back_forward,
                                 .backward = back_backward,
                                 .gradient = back_gradient,
                                 .cases = WF_CASES({"nearest", {{2, 1, 6, 8}}, FROM(3, 4, {6, 8}, WF_RESIZE_NEAREST)},
                                                   {"linear", {{1, 2, 3, 4}}, FROM(7, 3, {3, 4}, WF_RESIZE_LINEAR)},
                                                   {"corners", {{1, 2, 7, 5}}, FROM(4, 3, {7, 5}, WF_RESIZE_LINEAR_CORNERS)},
                                                   {"sequence", {{2, 3, 9}}, FROM(3, 5, {0, 9}, WF_RESIZE_LINEAR)},
                                                   {"no pictures", {{-1, 2, 2, 2}}, FROM(3, 3, {2, 2}, WF_RESIZE_NEAREST)})};

/* --- resize ------------------------------------------------------------------------------------------------------------- */

#define TO(rows, cols, kind) ATTR(struct resize_attr, .target = {rows, cols}, .how = kind)
const wf_op wf_op_resize = {
    .name = "resize",
    .operands = "x",
    .attr_size = sizeof(struct resize_attr),
    .reads = WF_READS_NOTHING,
    .shape = resize_shape,
    .forward = resize_forward,
    .backward = resize_backward,
    .gradient = resize_gradient,
    .cases = WF_CASES(
        {"nearest", {{2, 3, 3, 4}}, TO(6, 8, WF_RESIZE_NEAREST)}, {"nearest, uneven", {{1, 2, 5, 3}}, TO(7, 2, WF_RESIZE_NEAREST)},
        {"linear", {{2, 2, 3, 4}}, TO(6, 8, WF_RESIZE_LINEAR)}, {"linear to less", {{1, 2, 7, 5}}, TO(3, 4, WF_RESIZE_LINEAR)},
        {"corners", {{1, 2, 4, 3}}, TO(7, 5, WF_RESIZE_LINEAR_CORNERS)},
        {"corners to one", {{1, 2, 4, 3}}, TO(1, 1, WF_RESIZE_LINEAR_CORNERS)}, {"sequence", {{2, 3, 5}}, TO(0, 9, WF_RESIZE_LINEAR)},
        {"one element", {{2, 1, 1, 1}}, TO(3, 2, WF_RESIZE_LINEAR)}, {"no pictures", {{-1, 2, 3, 3}}, TO(2, 2, WF_RESIZE_NEAREST)})};

wf_tensor *wf_resize(wf_tensor *x, int64_t rows, int64_t cols, enum wf_resize how)
{
    return wf_apply(&wf_op_resize, &(struct resize_attr){{rows, cols}, how}, 1, &x);
}
