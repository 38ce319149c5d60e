/* SPDX-License-Identifier: MIT */
/* Elements in another arrangement: flip, roll, pad, repeat, and triangles of matrices. x holds reals, ids or bools; only reals have
 * gradients. */
#include <math.h>
#include <string.h>

#include "common.h"

/* Fails unless operand 0 holds reals, ids or bools. */
static wf_status want_values(wf_call *c)
{
    if (wf_want_there(c, 0) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_dtype dtype = c->in[0].dtype;
    if (dtype != WF_REAL && dtype != WF_I32 && dtype != WF_BOOL)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the operand has dtype %s, but %s, I32 or BOOL is required", wf_dtype_name(dtype),
                            wf_dtype_name(WF_REAL));
    return WF_OK;
}

static wf_status same_shape(wf_call *c)
{
    const wf_status status = want_values(c);
    const wf_shape shape = wf_array_shape(&c->in[0]);
    if (status == WF_OK)
        c->out[0] = wf_call_shape(c->in[0].dtype, &shape);
    return status;
}

/* --- flip ------------------------------------------------------------------------------------------------------------- */

static wf_status flip_shape(wf_call *c)
{
    const wf_status status = same_shape(c);
    return status == WF_OK && wf_along(c) < 0 ? WF_ERR_SHAPE : status;
}

/* `a` in reverse order along dimension d. */
static wf_array reversed(wf_array a, int d)
{
    if (a.dim[d] > 0)
        a.data = (char *)a.data + (a.dim[d] - 1) * a.stride[d] * (int64_t)wf_dtype_size(a.dtype);
    a.stride[d] = -a.stride[d];
    return a;
}

static wf_status flip_forward(wf_call *c)
{
    const wf_array to = reversed(c->out[0], wf_along(c));
    if (wf_array_count(&to) > 0)
        wf_array_copy(&to, &c->in[0]);
    return WF_OK;
}

static wf_status flip_backward(wf_call *c)
{
    wf_array dx = wf_grad_new(c, 0);
    if (!dx.data)
        return WF_ERR_MEMORY;
    const wf_array to = reversed(dx, wf_along(c));
    wf_array_copy(&to, &c->dout[0]);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

static void flip_gradient(const wf_gradient_call *c)
{
    c->dx[0] = wf_flip(c->dy[0], ((const struct along *)c->attr)->dim);
}

#define ALONG(d) ATTR(struct along, d)
const wf_op wf_op_flip = {.name = "flip",
                          .attr_size = sizeof(struct along),
                          .reads = WF_READS_NOTHING,
                          .shape = flip_shape,
                          .forward = flip_forward,
                          .backward = flip_backward,
                          .gradient = flip_gradient,
                          .cases = WF_CASES({"last", {{3, 5}}, ALONG(-1)}, {"first", {{5, 3}}, ALONG(0)}, {"middle", {{2, 4, 3}}, ALONG(1)},
                                            {"size 1", {{3, 1}}, ALONG(1)}, {"vector", {{7}}, ALONG(0)}, {"empty", {{-1, 3}}, ALONG(1)},
                                            {"nothing", {{3, -1}}, ALONG(1)}, {"odd", {{13, 17}}, ALONG(-1)})};

wf_tensor *wf_flip(wf_tensor *x, int dim)
{
    return wf_apply(&wf_op_flip, &(struct along){dim}, 1, &x);
}

/* --- roll ------------------------------------------------------------------------------------------------------------- */

struct roll {
    struct along along;
    int64_t shift;
};

/* to = from, moved by `shift` places: each of two parts is a copy. */
static void roll_into(wf_call *c, const wf_array *from, int64_t shift, const wf_array *to)
{
    const int d = wf_along(c);
    const int64_t n = to->dim[d];
    if (wf_array_count(to) == 0)
        return;
    shift = (shift % n + n) % n;
    const wf_array high = wf_array_slice(*to, d, shift, n - shift), low = wf_array_slice(*to, d, 0, shift);
    const wf_array first = wf_array_slice(*from, d, 0, n - shift), last = wf_array_slice(*from, d, n - shift, shift);
    wf_array_copy(&high, &first);
    if (shift > 0)
        wf_array_copy(&low, &last);
}

static wf_status roll_forward(wf_call *c)
{
    roll_into(c, &c->in[0], ((const struct roll *)c->attr)->shift, &c->out[0]);
    return WF_OK;
}

static wf_status roll_backward(wf_call *c)
{
    const int64_t n = c->in[0].dim[wf_along(c)];
    wf_array dx = wf_grad_new(c, 0);
    if (!dx.data)
        return WF_ERR_MEMORY;
    if (n > 0)
        roll_into(c, &c->dout[0], -(((const struct roll *)c->attr)->shift % n), &dx);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

static void roll_gradient(const wf_gradient_call *c)
{
    const struct roll *a = c->attr;
    const int64_t n = wf_dim(c->x[0], a->along.dim);
    c->dx[0] = wf_roll(c->dy[0], n > 0 ? -(a->shift % n) : 0, a->along.dim);
}

#define BY(d, by) ATTR(struct roll, {d}, by)
const wf_op wf_op_roll = {.name = "roll",
                          .attr_size = sizeof(struct roll),
                          .reads = WF_READS_NOTHING,
                          .shape = flip_shape,
                          .forward = roll_forward,
                          .backward = roll_backward,
                          .gradient = roll_gradient,
                          .cases = WF_CASES({"last", {{3, 5}}, BY(-1, 2)}, {"first, back", {{5, 3}}, BY(0, -1)},
                                            {"middle, further than its size", {{2, 4, 3}}, BY(1, 11)}, {"not at all", {{3, 4}}, BY(1, 8)},
                                            {"vector", {{7}}, BY(0, 3)}, {"empty", {{-1, 3}}, BY(1, 1)}, {"nothing", {{3, -1}}, BY(1, 1)})};

wf_tensor *wf_roll(wf_tensor *x, int64_t shift, int dim)
{
    return wf_apply(&wf_op_roll, &(struct roll){{dim}, shift}, 1, &x);
}

/* --- pad -------------------------------------------------------------------------------------------------------------- */

struct pad {
    int64_t before[WF_MAX_DIMS], after[WF_MAX_DIMS];
    int count; /* of the dimensions in `dim` */
    int dim[WF_MAX_DIMS];
    double value;
};

/* before and after of each dimension of the operand. */
static wf_status pad_sizes(wf_call *c, int64_t before[WF_MAX_DIMS], int64_t after[WF_MAX_DIMS])
{
    const struct pad *a = c->attr;
    memset(before, 0, WF_MAX_DIMS * sizeof *before);
    memset(after, 0, WF_MAX_DIMS * sizeof *after);
    unsigned seen = 0;
    for (int i = 0; i < a->count; i++) {
        const int d = wf_want_dim(c, 0, a->dim[i]);
        if (d < 0)
            return WF_ERR_SHAPE;
        if (seen & 1u << d)
            return wf_call_fail(c, WF_ERR_ARGUMENT, "dimension %d is padded twice", a->dim[i]);
        if (a->before[i] < 0 || a->after[i] < 0)
            return wf_call_fail(c, WF_ERR_ARGUMENT,
                                "dimension %d: %lld before and %lld after must not be negative; wf_slice removes elements", a->dim[i],
                                (long long)a->before[i], (long long)a->after[i]);
        seen |= 1u << d;
        before[d] = a->before[i];
        after[d] = a->after[i];
    }
    return WF_OK;
}

static wf_status pad_shape(wf_call *c)
{
    const struct pad *a = c->attr;
    int64_t before[WF_MAX_DIMS], after[WF_MAX_DIMS];
    if (want_values(c) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_dtype dtype = c->in[0].dtype;
    if ((dtype == WF_I32 && !(a->value >= INT32_MIN && a->value <= INT32_MAX && a->value == floor(a->value))) ||
        (dtype == WF_BOOL && a->value != 0 && a->value != 1))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the value %g is not one of dtype %s", a->value, wf_dtype_name(dtype));
    const wf_status status = pad_sizes(c, before, after);
    if (status != WF_OK)
        return status;
    wf_shape shape = wf_array_shape(&c->in[0]);
    for (int d = 0; d < shape.ndim; d++)
        if (__builtin_add_overflow(shape.dim[d], before[d], &shape.dim[d]) || __builtin_add_overflow(shape.dim[d], after[d], &shape.dim[d]))
            return wf_call_fail(c, WF_ERR_SHAPE, "the result would be too large");
    c->out[0] = wf_call_shape(dtype, &shape);
    return WF_OK;
}

/* The elements of `whole`, which has the result's shape, that are those of x. */
static wf_array inner_of(wf_call *c, wf_array whole)
{
    int64_t before[WF_MAX_DIMS], after[WF_MAX_DIMS];
    if (pad_sizes(c, before, after) == WF_OK)
        for (int d = 0; d < whole.ndim; d++)
            whole = wf_array_slice(whole, d, before[d], c->in[0].dim[d]);
    return whole;
}

static wf_status pad_forward(wf_call *c)
{
    const double value = ((const struct pad *)c->attr)->value;
    const wf_array *y = &c->out[0], inner = inner_of(c, *y);
    wf_real real = (wf_real)value;
    int32_t id = y->dtype == WF_I32 ? (int32_t)value : 0;
    uint8_t truth = value != 0;
    const wf_shape shape = wf_array_shape(y);
    const wf_array one = wf_array_contiguous(y->dtype == WF_REAL  ? (void *)&real
                                             : y->dtype == WF_I32 ? (void *)&id
                                                                  : (void *)&truth,
                                             y->dtype, &(wf_shape){0}),
                   all = wf_array_expand(&one, &shape);
    if (wf_array_count(&inner) < wf_array_count(y))
        wf_array_copy(y, &all);
    if (wf_array_count(&inner) > 0)
        wf_array_copy(&inner, &c->in[0]);
    return WF_OK;
}

static wf_status pad_backward(wf_call *c)
{
    const wf_array inner = inner_of(c, c->dout[0]);
    wf_grad_give(c, 0, &inner);
    return WF_OK;
}

static void pad_gradient(const wf_gradient_call *c)
{
    const struct pad *a = c->attr;
    c->dx[0] = c->dy[0];
    for (int i = 0; i < a->count; i++)
        c->dx[0] = wf_slice(c->dx[0], a->dim[i], a->before[i], wf_dim(c->x[0], a->dim[i]));
}

#define PAD(n, ...) ATTR(struct pad, .count = n, __VA_ARGS__)
const wf_op wf_op_pad = {
    .name = "pad",
    .attr_size = sizeof(struct pad),
    .reads = WF_READS_NOTHING,
    .shape = pad_shape,
    .forward = pad_forward,
    .backward = pad_backward,
    .gradient = pad_gradient,
    .cases = WF_CASES({"before", {{3, 5}}, PAD(1, .dim = {1}, .before = {2})}, {"after", {{3, 5}}, PAD(1, .dim = {-2}, .after = {1})},
                      {"two dims", {{2, 3, 4}}, PAD(2, .dim = {2, 0}, .before = {1, 2}, .after = {3, 0}, .value = 0.5)},
                      {"wider than x", {{2, 2}}, PAD(1, .dim = {0}, .before = {7}, .after = {9})}, {"not at all", {{3, 4}}, PAD(0)},
                      {"scalar", {{-2}}, PAD(0)}, {"nothing", {{3, -1}}, PAD(1, .dim = {1}, .before = {2}, .after = {1}, .value = 3)},
                      {"empty", {{-1, 3}}, PAD(1, .dim = {1}, .before = {2})})};

wf_tensor *wf_pad_dims(wf_tensor *x, const struct wf_pad_size sizes[], int n, double value)
{
    struct pad a = {.count = n, .value = value};
    if (n < 0 || n > WF_MAX_DIMS || (n > 0 && !sizes))
        return wf_composed_fail("pad", 1, &x, WF_ERR_ARGUMENT, "%d dimensions are out of range, or the sizes are NULL", n);
    for (int i = 0; i < n; i++) {
        a.dim[i] = sizes[i].dim;
        a.before[i] = sizes[i].before;
        a.after[i] = sizes[i].after;
    }
    return wf_apply(&wf_op_pad, &a, 1, &x);
}

wf_tensor *wf_pad(wf_tensor *x, int dim, int64_t before, int64_t after, double value)
{
    return wf_pad_dims(x, &(struct wf_pad_size){dim, before, after}, 1, value);
}

/* --- tril, triu ------------------------------------------------------------------------------------------------------- */

struct triangle {
    int64_t diagonal;
};

static wf_status triangle_shape(wf_call *c)
{
    if (same_shape(c) != WF_OK)
        return WF_ERR_ARGUMENT;
    return c->in[0].ndim < 2 ? wf_call_fail(c, WF_ERR_SHAPE, "x must have at least two dimensions, [..., n, m]") : WF_OK;
}

struct clear {
    char *data;
    int64_t n, m, size, diagonal;
    bool upper; /* keep j - i >= diagonal; otherwise keep j - i <= diagonal */
};

static void clear_body(void *ctx, int64_t begin, int64_t end)
{
    const struct clear *k = ctx;
    for (int64_t row = begin; row < end; row++) {
        const int64_t edge = row % k->n + k->diagonal + (k->upper ? 0 : 1), at = WF_MIN(WF_MAX(edge, 0), k->m);
        char *line = k->data + row * k->m * k->size;
        if (k->upper)
            memset(line, 0, (size_t)(at * k->size));
        else
            memset(line + at * k->size, 0, (size_t)((k->m - at) * k->size));
    }
}

static wf_status triangle_of(const wf_call *c, const wf_array *from, const wf_array *to, bool upper)
{
    if (!to->data)
        return WF_ERR_MEMORY;
    const int64_t n = to->dim[to->ndim - 2], m = to->dim[to->ndim - 1], count = wf_array_count(to);
    int64_t diagonal = ((const struct triangle *)c->attr)->diagonal;
    if (count == 0)
        return WF_OK;
    wf_array_copy(to, from);
    diagonal = WF_MAX(WF_MIN(diagonal, m), -n); /* a diagonal further out changes nothing more, and cannot overflow */
    struct clear k = {to->data, n, m, (int64_t)wf_dtype_size(to->dtype), diagonal, upper};
    wf_parallel_ranges(count / m, WF_MAX(1, 8192 / m), 0.1 * (double)count, clear_body, &k);
    return WF_OK;
}

#define DIAGONAL(d) ATTR(struct triangle, d)
#define TRIANGLE(op, upper)                                                                                                                \
    static wf_status op##_forward(wf_call *c)                                                                                              \
    {                                                                                                                                      \
        return triangle_of(c, &c->in[0], &c->out[0], upper);                                                                               \
    }                                                                                                                                      \
    static wf_status op##_backward(wf_call *c)                                                                                             \
    {                                                                                                                                      \
        wf_array dx = wf_grad_new(c, 0);                                                                                                   \
        const wf_status status = triangle_of(c, &c->dout[0], &dx, upper);                                                                  \
        wf_grad_give(c, 0, &dx);                                                                                                           \
        return status;                                                                                                                     \
    }                                                                                                                                      \
    static void op##_gradient(const wf_gradient_call *c)                                                                                   \
    {                                                                                                                                      \
        c->dx[0] = wf_##op(c->dy[0], ((const struct triangle *)c->attr)->diagonal);                                                        \
    }                                                                                                                                      \
    const wf_op wf_op_##op = {.name = #op,                                                                                                 \
                              .attr_size = sizeof(struct triangle),                                                                        \
                              .reads = WF_READS_NOTHING,                                                                                   \
                              .shape = triangle_shape,                                                                                     \
                              .forward = op##_forward,                                                                                     \
                              .backward = op##_backward,                                                                                   \
                              .gradient = op##_gradient,                                                                                   \
                              .cases = WF_CASES({"square", {{4, 4}}, DIAGONAL(0)}, {"above", {{3, 5}}, DIAGONAL(2)},                       \
                                                {"below", {{5, 3}}, DIAGONAL(-1)}, {"batch", {{2, 3, 4}}, DIAGONAL(1)},                    \
                                                {"empty", {{-1, 3}}, DIAGONAL(0)}, {"one", {{1, 1}}, DIAGONAL(0)})};                       \
    wf_tensor *wf_##op(wf_tensor *x, int64_t diagonal)                                                                                     \
    {                                                                                                                                      \
        return wf_apply(&wf_op_##op, &(struct triangle){diagonal}, 1, &x);                                                                 \
    }

TRIANGLE(tril, false)
TRIANGLE(triu, true)

/* --- repeat ----------------------------------------------------------------------------------------------------------- */

/* x with its dimension d repeated `times` times: a view in which a dimension before d repeats x, then a copy of it. */
static wf_tensor *repeat_dim(wf_tensor *x, int d, int64_t times)
{
    const wf_shape shape = wf_shape_of(x);
    wf_shape flat = {4, {1, 1, shape.dim[d], 1}}, all = shape;
    for (int k = 0; k < shape.ndim; k++)
        if (k != d)
            flat.dim[k < d ? 0 : 3] *= shape.dim[k];
    if (__builtin_mul_overflow(all.dim[d], times, &all.dim[d]))
        return wf_composed_fail("repeat", 1, &x, WF_ERR_SHAPE, "the result would be too large");
    x = wf_reshape_to(x, &flat);
    flat.dim[1] = times;
    return wf_reshape_to(wf_expand_to(x, &flat), &all);
}

wf_tensor *wf_repeat_to(wf_tensor *x, const wf_shape *times)
{
    char text[96];
    if (wf_first_poison(1, &x))
        return x;
    if (!x || !times)
        return wf_composed_fail("repeat", 1, &x, WF_ERR_ARGUMENT, "the %s NULL", x ? "numbers of repetitions are" : "operand is");
    if (times->ndim < wf_ndim(x) || times->ndim > WF_MAX_DIMS)
        return wf_composed_fail("repeat", 1, &x, WF_ERR_SHAPE,
                                "%d numbers of repetitions for %d dimensions: each needs one, and %d are possible", times->ndim, wf_ndim(x),
                                WF_MAX_DIMS);
    for (int d = 0; d < times->ndim; d++)
        if (times->dim[d] < 0)
            return wf_composed_fail("repeat", 1, &x, WF_ERR_ARGUMENT, "a number of repetitions in %s is negative",
                                    wf_shape_text(times, text, sizeof text));
    while (wf_ndim(x) < times->ndim && !wf_is_poison(x))
        x = wf_unsqueeze(x, 0);
    for (int d = times->ndim - 1; d >= 0 && !wf_is_poison(x); d--) /* the last first: later copies then move whole rows */
        if (times->dim[d] == 0)
            x = wf_slice(x, d, 0, 0);
        else if (times->dim[d] != 1)
            x = repeat_dim(x, d, times->dim[d]);
    return x;
}
