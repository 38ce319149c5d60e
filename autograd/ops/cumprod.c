/* SPDX-License-Identifier: MIT */
/* Products along a dimension: prod, and cumprod, y_t = x_1 ... x_t. A line is the contiguous row of the n elements along the dimension. It
 * is multiplied in double, in an order that n alone determines. */
#include <math.h>

#include "common.h"

struct product {
    int dim;
    bool keep; /* of prod: keep the dimension, with size 1 */
    bool all;  /* of prod: over all elements, to a scalar; then dim and keep are not read */
};

static const char *prod_name(const void *attr)
{
    return ((const struct product *)attr)->all ? "prod" : "prod_dim";
}

static wf_status prod_shape(wf_call *c)
{
    const struct product *a = c->attr;
    return wf_reduction_shape(c, a->all, a->dim, a->keep);
}

static wf_status cumprod_shape(wf_call *c)
{
    const struct product *a = c->attr;
    if (wf_same_shape(c) != WF_OK)
        return WF_ERR_ARGUMENT;
    return wf_want_dim(c, 0, a->dim) < 0 ? WF_ERR_SHAPE : WF_OK;
}

/* An array with the op's dimension moved to the end; the array itself for a product of all elements. */
static wf_array lines_of(wf_call *c, const wf_array *a)
{
    const struct product *attr = c->attr;
    return attr->all ? *a : wf_dim_last(*a, wf_want_dim(c, 0, attr->dim));
}

struct work {
    int64_t n;
    const wf_real *x;  /* [rows, n] */
    wf_real *y;        /* prod: [rows]; cumprod: [rows, n] */
    const wf_real *dy; /* as y; NULL in forward */
    wf_real *dx;       /* [rows, n] */
    bool each;         /* of cumprod: y has all partial products */
    bool *no_memory;
};

/* The product of a line: four products of every fourth element, so that they do not wait for each other. */
static double product_of(int64_t n, const wf_real *x)
{
    double p[4] = {1, 1, 1, 1};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++)
            p[k] *= (double)x[i + k];
    for (; i < n; i++)
        p[0] *= (double)x[i];
    return (p[0] * p[1]) * (p[2] * p[3]);
}

static void forward_body(void *ctx, int64_t begin, int64_t end)
{
    const struct work *w = ctx;
    for (int64_t row = begin; row < end; row++) {
        const wf_real *x = w->x + row * w->n;
        if (!w->each)
            w->y[row] = (wf_real)product_of(w->n, x);
        double product = 1;
        for (int64_t i = 0; w->each && i < w->n; i++)
            w->y[row * w->n + i] = (wf_real)(product *= (double)x[i]);
    }
}

static wf_status forward(wf_call *c, bool each)
{
    const wf_array last = lines_of(c, &c->in[0]), x = wf_call_contiguous(c, &last);
    const wf_shape shape = wf_array_shape(&last);
    const int64_t count = wf_array_count(&x), rows = each ? count : wf_array_count(&c->out[0]);
    const wf_array to = each ? lines_of(c, &c->out[0]) : c->out[0];
    const bool apart = !wf_array_is_contiguous(&to); /* the lines are then copied to their places */
    const wf_array y = apart ? wf_call_temp(c, WF_REAL, &shape) : to;
    if (!y.data || (count > 0 && !x.data))
        return WF_ERR_MEMORY;
    struct work w = {.x = x.data, .y = y.data, .each = each};
    w.n = each ? last.dim[last.ndim - 1] : rows > 0 ? count / rows : 0;
    const int64_t lines = each ? (w.n > 0 ? count / w.n : 0) : rows;
    wf_parallel_ranges(lines, WF_MAX(1, 4096 / WF_MAX(w.n, 1)), 1.3 * (double)count + (double)lines, forward_body, &w);
    if (apart && count > 0)
        wf_array_copy(&to, &y);
    return WF_OK;
}

/* The gradient of a line. Let P_k = x_1 ... x_k and S_k = dy_k + x_(k+1) S_(k+1), with dy_k = 0 for k < n in prod. Then dx_k = P_(k-1) S_k,
 * also where elements are 0. As in PyTorch, if a product is infinite or NaN, elements before the first 0 get (dy_k y_k + ...) / x_k
 * instead, and in cumprod elements behind the first 0 get 0. */
static void line_gradient(const struct work *w, int64_t row, double *suffix)
{
    const double y = w->each ? 0 : product_of(w->n, w->x + row * w->n);
    if (fabs(y) > 1e-280 && fabs(y) < 1e280) { /* prod without zeros: no partial product can be 0 or infinite where it matters */
        for (int64_t k = row * w->n; k < (row + 1) * w->n; k++)
            w->dx[k] = (wf_real)((double)w->dy[row] * (y / (double)w->x[k]));
        return;
    }
    const int64_t n = w->n;
    const wf_real *x = w->x + row * n, *dy = w->each ? w->dy + row * n : w->dy + row;
    wf_real *dx = w->dx + row * n;
    int64_t zero = 0;
    double prefix = 1, sum = 0;
    for (; zero < n && x[zero] != 0; zero++)
        prefix *= (double)x[zero];
    const bool divide = !isfinite(prefix) && (w->each || zero == n);
    for (int64_t k = n; k-- > 0;)
        suffix[k] = sum = (w->each ? (double)dy[k] : k == n - 1 ? (double)*dy : 0) + (k == n - 1 ? 0 : (double)x[k + 1] * sum);
    prefix = 1;
    for (int64_t k = 0; k < n; k++) {
        dx[k] = (wf_real)(w->each && k > zero ? 0 : prefix * suffix[k]);
        prefix *= (double)x[k];
        suffix[k] = prefix; /* from here on y_k */
    }
    sum = 0;
    for (int64_t k = zero; divide && k-- > 0;) {
        sum += w->each ? (double)dy[k] * suffix[k] : k == n - 1 ? (double)*dy * suffix[k] : 0;
        dx[k] = (wf_real)(sum / (double)x[k]);
    }
}

static void backward_body(void *ctx, int64_t begin, int64_t end)
{
    const struct work *w = ctx;
    double *suffix = wf_scratch(WF_SCRATCH_OP, (size_t)w->n * sizeof *suffix);
    if (!suffix)
        __atomic_store_n(w->no_memory, true, __ATOMIC_RELAXED);
    for (int64_t row = begin; suffix && row < end; row++)
        line_gradient(w, row, suffix);
}

static wf_status backward(wf_call *c, bool each)
{
    const struct product *a = c->attr;
    const wf_array last = lines_of(c, &c->in[0]), x = wf_call_contiguous(c, &last);
    const wf_array dlast = each ? lines_of(c, &c->dout[0]) : c->dout[0], dy = wf_call_contiguous(c, &dlast);
    const wf_shape shape = wf_array_shape(&last);
    wf_array dx = wf_call_temp(c, WF_REAL, &shape);
    if (!x.data || !dy.data || !dx.data)
        return WF_ERR_MEMORY;
    bool no_memory = false;
    struct work w = {.x = x.data, .dy = dy.data, .dx = dx.data, .each = each, .no_memory = &no_memory};
    const int64_t count = wf_array_count(&x);
    w.n = WF_MAX(1, a->all ? count : last.dim[last.ndim - 1]);
    wf_parallel_ranges(count / w.n, WF_MAX(1, 2048 / w.n), 4 * (double)count, backward_body, &w);
    if (no_memory)
        return wf_call_fail(c, WF_ERR_MEMORY, "no memory for the products of a row");
    const wf_array back = a->all ? dx : wf_dim_back(dx, wf_want_dim(c, 0, a->dim));
    wf_grad_give(c, 0, &back);
    return WF_OK;
}

static wf_status prod_forward(wf_call *c)
{
    return forward(c, false);
}

static wf_status prod_backward(wf_call *c)
{
    return backward(c, false);
}

static wf_status cumprod_forward(wf_call *c)
{
    return forward(c, true);
}

static wf_status cumprod_backward(wf_call *c)
{
    return backward(c, true);
}

/* The products of the elements before each one of x: 1, x_1, x_1 x_2, ... */
static wf_tensor *products_before(wf_tensor *x, int dim)
{
    return wf_cumprod(wf_slice(wf_pad(x, dim, 1, 0, 1), dim, 0, wf_dim(x, dim)), dim);
}

/* dx_k = dy (x_1 ... x_(k-1)) (x_(k+1) ... x_n), which is right where elements are 0. */
static void prod_gradient(const wf_gradient_call *c)
{
    const struct product *a = c->attr;
    const wf_shape shape = wf_shape_of(c->x[0]);
    const int dim = a->all ? 0 : a->dim < 0 ? a->dim + shape.ndim : a->dim;
    wf_tensor *x = a->all ? wf_reshape(c->x[0], -1) : c->x[0], *dy = a->all || a->keep ? c->dy[0] : wf_unsqueeze(c->dy[0], dim);
    wf_tensor *others = wf_mul(products_before(x, dim), wf_flip(products_before(wf_flip(x, dim), dim), dim));
    c->dx[0] = wf_reshape_to(wf_mul(dy, others), &shape);
}

/* dx_k = P_(k-1) S_k as above. The S_k are a recurrence from the last k to the first. */
static void cumprod_gradient(const wf_gradient_call *c)
{
    const int dim = ((const struct product *)c->attr)->dim;
    wf_tensor *x = c->x[0], *next = wf_slice(wf_pad(x, dim, 0, 1, 0), dim, 1, wf_dim(x, dim));
    wf_tensor *sums = wf_flip(wf_scan(wf_flip(next, dim), wf_flip(c->dy[0], dim), NULL, dim), dim);
    c->dx[0] = wf_mul(products_before(x, dim), sums);
}

#define OVER(...) {WF_FILL_POSITIVE}, ATTR(struct product, __VA_ARGS__)
const wf_op wf_op_prod = {
    .name = "prod",
    .name_of = prod_name,
    .attr_size = sizeof(struct product),
    .reads = WF_READS_INPUT(0),
    .shape = prod_shape,
    .forward = prod_forward,
    .backward = prod_backward,
    .gradient = prod_gradient,
    .cases = WF_CASES({"last", {{3, 5}}, OVER(-1)}, {"first", {{5, 3}}, OVER(0)}, {"middle, kept", {{2, 4, 3}}, OVER(1, true)},
                      {"size 1", {{3, 1, 2}}, OVER(1)}, {"vector", {{7}}, OVER(0)}, {"all", {{3, 5}}, OVER(.all = true)},
                      {"scalar", {{-2}}, OVER(.all = true)}, {"empty", {{-1, 3}}, OVER(1)}, {"of nothing", {{3, -1}}, OVER(1)},
                      {"signs", {{3, 5}}, {WF_FILL_NORMAL}, ATTR(struct product, 1)})};
const wf_op wf_op_cumprod = {.name = "cumprod",
                             .attr_size = sizeof(struct product),
                             .reads = WF_READS_INPUT(0),
                             .shape = cumprod_shape,
                             .forward = cumprod_forward,
                             .backward = cumprod_backward,
                             .gradient = cumprod_gradient,
                             .cases = WF_CASES({"last", {{3, 5}}, OVER(-1)}, {"first", {{5, 3}}, OVER(0)}, {"middle", {{2, 4, 3}}, OVER(1)},
                                               {"size 1", {{3, 1, 2}}, OVER(1)}, {"vector", {{7}}, OVER(0)}, {"empty", {{-1, 3}}, OVER(1)},
                                               {"nothing", {{3, -1}}, OVER(1)}, {"odd", {{13, 17}}, OVER(-1)},
                                               {"signs", {{3, 5}}, {WF_FILL_NORMAL}, ATTR(struct product, 1)})};

wf_tensor *wf_prod_dim(wf_tensor *x, int dim, bool keep)
{
    return wf_apply(&wf_op_prod, &(struct product){.dim = dim, .keep = keep}, 1, &x);
}

wf_tensor *wf_prod(wf_tensor *x)
{
    return wf_apply(&wf_op_prod, &(struct product){.all = true}, 1, &x);
}

wf_tensor *wf_cumprod(wf_tensor *x, int dim)
{
    return wf_apply(&wf_op_cumprod, &(struct product){.dim = dim}, 1, &x);
}
