/* SPDX-License-Identifier: MIT */
/* Arithmetic with broadcasting. A gradient may have the shape of the result: wf_grad_give sums it over the dimensions along which the
 * operand was repeated. */
#include "common.h"

static wf_array temp_like_out(wf_call *c)
{
    wf_shape shape = wf_array_shape(&c->out[0]);
    return wf_call_temp(c, WF_REAL, &shape);
}

#define BINARY_CASES(right)                                                                                                                \
    WF_CASES({"one shape", {{2, 3, 5}, {2, 3, 5}}, {0, right}}, {"row", {{4, 5}, {5}}, {0, right}},                                        \
             {"column", {{4, 5}, {4, 1}}, {0, right}}, {"column on the left", {{4, 1}, {4, 5}}, {0, right}},                               \
             {"row on the left", {{5}, {3, 4, 5}}, {0, right}}, {"outer", {{4, 1}, {1, 5}}, {0, right}},                                   \
             {"both repeat", {{2, 1, 3, 1}, {4, 1, 5}}, {0, right}}, {"scalar", {{3, 7}, {-2}}, {0, right}},                               \
             {"scalar on the left", {{-2}, {3, 7}}, {0, right}}, {"scalars", {{-2}, {-2}}, {0, right}},                                    \
             {"ones", {{1, 1}, {1}}, {0, right}}, {"empty", {{-1, 3}, {1, 3}}, {0, right}},                                                \
             {"repeated to nothing", {{-1, 3}, {3}}, {0, right}}, {"odd", {{13, 17}, {13, 17}}, {0, right}},                               \
             {"long", {{3, 701}, {701}}, {0, right}}, {"six dims", {{2, 1, 2, 1, 2, 3}, {1, 2, 1, 2, 2, 1}}, {0, right}})

/* Defines an op, which applies the kernel with the same name to two operands, and defines the op's constructor. `right`: how the test cases
 * fill operand 1. */
#define BINARY(kernels, op, constructor, cost, right, ...)                                                                                 \
    static wf_status op##_forward(wf_call *c)                                                                                              \
    {                                                                                                                                      \
        wf_map_binary((kernels)->op, &c->in[0], &c->in[1], &c->out[0], cost);                                                              \
        return WF_OK;                                                                                                                      \
    }                                                                                                                                      \
    const wf_op wf_op_##op = {.name = #op,                                                                                                 \
                              .operands = "a b",                                                                                           \
                              .shape = wf_broadcast_shape,                                                                                 \
                              .forward = op##_forward,                                                                                     \
                              .backward = op##_backward,                                                                                   \
                              .gradient = op##_gradient,                                                                                   \
                              .cases = BINARY_CASES(right),                                                                                \
                              __VA_ARGS__};                                                                                                \
    wf_tensor *constructor(wf_tensor *a, wf_tensor *b)                                                                                     \
    {                                                                                                                                      \
        return wf_apply(&wf_op_##op, NULL, 2, (wf_tensor *[]){a, b});                                                                      \
    }

/* add: y = a + b, so da = db = dy. dy is shared, not copied. */
static wf_status add_backward(wf_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->need[i])
            wf_grad_give(c, i, &c->dout[0]);
    return WF_OK;
}

static void add_gradient(const wf_gradient_call *c)
{
    c->dx[0] = c->dx[1] = c->dy[0];
}
BINARY(wf_kernel, add, wf_add, 0.1, WF_FILL_NORMAL, .reads = WF_READS_NOTHING)

/* sub: y = a - b, so da = dy and db = -dy. */
static wf_status sub_backward(wf_call *c)
{
    if (c->need[0])
        wf_grad_give(c, 0, &c->dout[0]);
    if (c->need[1]) {
        wf_array db = temp_like_out(c);
        wf_map_affine(-1, 0, &c->dout[0], &db);
        wf_grad_give(c, 1, &db);
    }
    return WF_OK;
}

static void sub_gradient(const wf_gradient_call *c)
{
    c->dx[0] = c->dy[0];
    if (c->need[1])
        c->dx[1] = wf_neg(c->dy[0]);
}
BINARY(wf_kernel, sub, wf_subtract, 0.1, WF_FILL_NORMAL, .reads = WF_READS_NOTHING)

/* mul: y = a b, so da = b dy and db = a dy. */
static wf_status mul_backward(wf_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->need[i]) {
            wf_array g = temp_like_out(c);
            wf_map_binary(wf_kernel->mul, &c->dout[0], &c->in[1 - i], &g, 0.1);
            wf_grad_give(c, i, &g);
        }
    return WF_OK;
}

static void mul_gradient(const wf_gradient_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->need[i])
            c->dx[i] = wf_mul(c->dy[0], c->x[1 - i]);
}
BINARY(wf_kernel, mul, wf_mul, 0.1, WF_FILL_NORMAL, .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1))

/* div: y = a / b, so da = dy / b and db = -a dy / b^2 = -y da. Backward reads y and b, but not a. */
static void minus_product(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx)
{
    wf_kernel->mul(n, x, 1, dy, 1, dx);
    wf_kernel->affine(n, -1, 0, dx, dx);
}

static wf_status div_backward(wf_call *c)
{
    wf_array da = temp_like_out(c), db = {0};
    wf_map_binary(wf_kernel->div, &c->dout[0], &c->in[1], &da, 0.15);
    if (c->need[1] && da.data) {
        db = temp_like_out(c);
        wf_map_grad(minus_product, &c->out[0], &da, &db, 0.15);
    }
    if (c->need[0]) /* da is given after db is computed from it, because later contributions may be added to da */
        wf_grad_give(c, 0, &da);
    if (c->need[1])
        wf_grad_give(c, 1, &db);
    return WF_OK;
}

static void div_gradient(const wf_gradient_call *c)
{
    c->dx[0] = wf_div(c->dy[0], c->x[1]);
    if (c->need[1])
        c->dx[1] = wf_neg(wf_mul(c->y[0], c->dx[0]));
}
BINARY(wf_kernel, div, wf_div, 0.15, WF_FILL_POSITIVE, .reads = WF_READS_INPUT(1) | WF_READS_OUTPUT(0))

/* maximum, minimum: dy goes to the operand whose value was taken, half to each if they are equal, and all of it to both if one is NaN. */
static wf_status extreme_backward(wf_call *c, wf_map_kernel *grad)
{
    wf_status status = WF_OK;
    for (int i = 0; i < 2 && status == WF_OK; i++)
        if (c->need[i]) {
            wf_array g = temp_like_out(c);
            status = wf_map(grad, NULL, 3, (const wf_array *const[]){&c->in[i], &c->in[1 - i], &c->dout[0]}, &g, 0.15);
            wf_grad_give(c, i, &g);
        }
    return status;
}

/* dy times 1, 1/2 or 0, and 1 for both if one is NaN: `wins` compares the other operand with this one. */
static void extreme_gradient(const wf_gradient_call *c, wf_tensor *(*wins)(wf_tensor *, wf_tensor *))
{
    for (int i = 0; i < 2; i++)
        if (c->need[i]) {
            wf_tensor *lost = wf_to_real(wins(c->x[1 - i], c->x[i])), *tied = wf_to_real(wf_eq(c->x[0], c->x[1]));
            c->dx[i] = wf_mul(c->dy[0], wf_constant_minus(1, wf_add(lost, wf_scale(tied, 0.5))));
        }
}

static void maximum_gradient(const wf_gradient_call *c)
{
    extreme_gradient(c, wf_gt);
}

static void minimum_gradient(const wf_gradient_call *c)
{
    extreme_gradient(c, wf_lt);
}

static wf_status maximum_backward(wf_call *c)
{
    return extreme_backward(c, wf_kernel->internal->maximum_grad);
}
BINARY(wf_kernel->internal, maximum, wf_maximum, 0.1, WF_FILL_APART, .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1))

static wf_status minimum_backward(wf_call *c)
{
    return extreme_backward(c, wf_kernel->internal->minimum_grad);
}
BINARY(wf_kernel->internal, minimum, wf_minimum, 0.1, WF_FILL_APART, .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1))

/* affine: y = s x + t, so dx = s dy. */
struct affine {
    double scale, shift;
    const char *name; /* the name of the constructor that was called */
};

static const char *affine_name(const void *attr)
{
    const struct affine *a = attr;
    return a->name;
}

static wf_status affine_forward(wf_call *c)
{
    const struct affine *a = c->attr;
    wf_map_affine(a->scale, a->shift, &c->in[0], &c->out[0]);
    return WF_OK;
}

static wf_status affine_backward(wf_call *c)
{
    const struct affine *a = c->attr;
    if (a->scale == 1) {
        wf_grad_give(c, 0, &c->dout[0]);
        return WF_OK;
    }
    wf_array dx = wf_grad_new(c, 0);
    wf_map_affine(a->scale, 0, &c->dout[0], &dx);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

static void affine_gradient(const wf_gradient_call *c)
{
    c->dx[0] = wf_scale(c->dy[0], ((const struct affine *)c->attr)->scale);
}

#define AFFINE(s, t) ATTR(struct affine, s, t, "affine")
const wf_op wf_op_affine = {.name = "affine",
                            .name_of = affine_name,
                            .attr_size = sizeof(struct affine),
                            .reads = WF_READS_NOTHING,
                            .shape = wf_same_shape,
                            .forward = affine_forward,
                            .backward = affine_backward,
                            .gradient = affine_gradient,
                            .cases = WF_CASES({"both", {{2, 3, 5}}, AFFINE(-2.5, 0.75)}, {"shift alone", {{7}}, AFFINE(1, 3)},
                                              {"zero", {{2, 3}}, AFFINE(0, 1)}, {"scalar", {{-2}}, AFFINE(3, -1)},
                                              {"empty", {{2, -1}}, AFFINE(3, -1)}, {"odd", {{13, 17}}, AFFINE(-1, 0)})};

static wf_tensor *affine(wf_tensor *x, double scale, double shift, const char *name)
{
    return wf_apply(&wf_op_affine, &(struct affine){scale, shift, name}, 1, &x);
}

wf_tensor *wf_affine(wf_tensor *x, double scale, double shift)
{
    return affine(x, scale, shift, "affine");
}

wf_tensor *wf_scale(wf_tensor *x, double scale)
{
    return affine(x, scale, 0, "scale");
}

wf_tensor *wf_neg(wf_tensor *x)
{
    return affine(x, -1, 0, "neg");
}

wf_tensor *wf_add_constant(wf_tensor *x, double c)
{
    return affine(x, 1, c, "add_constant");
}

wf_tensor *wf_constant_minus(double c, wf_tensor *x)
{
    return affine(x, -1, c, "constant_minus");
}

/* div_constant: y = x / c, so dx = dy / c. Multiplication by 1 / c would round twice. */
struct constant {
    double value;
};

static void divide_by(const wf_call *c, const wf_array *x, const wf_array *y)
{
    wf_real value = (wf_real)((const struct constant *)c->attr)->value;
    wf_array scalar = wf_array_contiguous(&value, WF_REAL, &(wf_shape){0});
    wf_map_binary(wf_kernel->div, x, &scalar, y, 0.15);
}

static wf_status div_constant_forward(wf_call *c)
{
    divide_by(c, &c->in[0], &c->out[0]);
    return WF_OK;
}

static wf_status div_constant_backward(wf_call *c)
{
    wf_array dx = wf_grad_new(c, 0);
    divide_by(c, &c->dout[0], &dx);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

static void div_constant_gradient(const wf_gradient_call *c)
{
    c->dx[0] = wf_div_constant(c->dy[0], ((const struct constant *)c->attr)->value);
}

#define CONSTANT(x) ATTR(struct constant, x)
const wf_op wf_op_div_constant = {.name = "div_constant",
                                  .attr_size = sizeof(struct constant),
                                  .reads = WF_READS_NOTHING,
                                  .shape = wf_same_shape,
                                  .forward = div_constant_forward,
                                  .backward = div_constant_backward,
                                  .gradient = div_constant_gradient,
                                  .cases = WF_CASES({"three", {{2, 3, 5}}, CONSTANT(3)}, {"scalar", {{-2}}, CONSTANT(-0.1)},
                                                    {"empty", {{2, -1}}, CONSTANT(3)}, {"odd", {{13, 17}}, CONSTANT(7)})};

wf_tensor *wf_div_constant(wf_tensor *x, double c)
{
    return wf_apply(&wf_op_div_constant, &(struct constant){c}, 1, &x);
}

/* constant_over: y = c / x, so dx = -c dy / x^2 = -y dy / x. */
static wf_status constant_over_forward(wf_call *c)
{
    wf_real value = (wf_real)((const struct constant *)c->attr)->value;
    wf_array scalar = wf_array_contiguous(&value, WF_REAL, &(wf_shape){0});
    wf_map_binary(wf_kernel->div, &scalar, &c->in[0], &c->out[0], 0.15);
    return WF_OK;
}

static wf_status constant_over_backward(wf_call *c)
{
    wf_array dx = wf_grad_new(c, 0);
    wf_map_binary(wf_kernel->div, &c->out[0], &c->in[0], &dx, 0.15);
    wf_map_grad(minus_product, &dx, &c->dout[0], &dx, 0.15);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

static void constant_over_gradient(const wf_gradient_call *c)
{
    c->dx[0] = wf_neg(wf_mul(c->dy[0], wf_div(c->y[0], c->x[0])));
}

const wf_op wf_op_constant_over = {
    .name = "constant_over",
    .attr_size = sizeof(struct constant),
    .reads = WF_READS_INPUT(0) | WF_READS_OUTPUT(0),
    .shape = wf_same_shape,
    .forward = constant_over_forward,
    .backward = constant_over_backward,
    .gradient = constant_over_gradient,
    .cases = WF_CASES({"three", {{2, 3, 5}}, {WF_FILL_POSITIVE}, CONSTANT(3)}, {"scalar", {{-2}}, {WF_FILL_POSITIVE}, CONSTANT(-0.1)},
                      {"zero", {{3}}, {WF_FILL_POSITIVE}, CONSTANT(0)}, {"empty", {{2, -1}}, {WF_FILL_POSITIVE}, CONSTANT(3)},
                      {"odd", {{13, 17}}, {WF_FILL_POSITIVE}, CONSTANT(7)})};

wf_tensor *wf_constant_over(double c, wf_tensor *x)
{
    return wf_apply(&wf_op_constant_over, &(struct constant){c}, 1, &x);
}
