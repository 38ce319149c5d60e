/* SPDX-License-Identifier: MIT */
/* Functions of one element: abs, and those that have constants, such as the bounds of clamp. An op is two kernels, for value and gradient,
 * and a check of its constants. */
#include <math.h>

#include "common.h"

/* Constants of a function, in the order in which its kernels expect them. */
struct constants {
    double p[2];
};

static wf_status run(const wf_call *c, wf_map_kernel *f, int inputs, const wf_array *const in[], const wf_array *out, double cost)
{
    const struct constants *a = c->attr;
    const wf_real p[2] = {(wf_real)a->p[0], (wf_real)a->p[1]};
    return wf_map(f, p, inputs, in, out, cost);
}

static double constant_of(const wf_gradient_call *c)
{
    return ((const struct constants *)c->attr)->p[0];
}

#define CASE(what, dims, how, ...)                                                                                                         \
    {                                                                                                                                      \
        what, {dims}, {how}, ATTR(struct constants, {__VA_ARGS__})                                                                         \
    }
#define DIMS(...) __VA_ARGS__
/* how: how the test cases fill the operand; more: one more test case; ...: the constants in the other test cases. */
#define ELEMENTWISE(op, how, cost, grad_cost, more, ...)                                                                                   \
    static wf_status op##_forward(wf_call *c)                                                                                              \
    {                                                                                                                                      \
        return run(c, wf_kernel->internal->op, 1, (const wf_array *const[]){&c->in[0]}, &c->out[0], cost);                                 \
    }                                                                                                                                      \
    static wf_status op##_backward(wf_call *c)                                                                                             \
    {                                                                                                                                      \
        wf_array dx = wf_grad_new(c, 0);                                                                                                   \
        wf_status status = run(c, wf_kernel->internal->op##_grad, 2, (const wf_array *const[]){&c->in[0], &c->dout[0]}, &dx, grad_cost);   \
        wf_grad_give(c, 0, &dx);                                                                                                           \
        return status;                                                                                                                     \
    }                                                                                                                                      \
    const wf_op wf_op_##op = {                                                                                                             \
        .name = #op,                                                                                                                       \
        .attr_size = sizeof(struct constants),                                                                                             \
        .reads = WF_READS_INPUT(0),                                                                                                        \
        .shape = op##_shape,                                                                                                               \
        .forward = op##_forward,                                                                                                           \
        .backward = op##_backward,                                                                                                         \
        .gradient = op##_gradient,                                                                                                         \
        .cases = WF_CASES(CASE("matrix", DIMS({3, 5}), how, __VA_ARGS__), CASE("scalar", DIMS({-2}), how, __VA_ARGS__),                    \
                          CASE("one", DIMS({1, 1}), how, __VA_ARGS__), CASE("empty", DIMS({2, -1, 3}), how, __VA_ARGS__),                  \
                          CASE("odd", DIMS({13, 17}), how, __VA_ARGS__), CASE("six dims", DIMS({2, 1, 3, 1, 2, 3}), how, __VA_ARGS__),     \
                          CASE("long", DIMS({1031}), how, __VA_ARGS__), more)};                                                            \
    static wf_tensor *apply_##op(wf_tensor *x, double p0, double p1)                                                                       \
    {                                                                                                                                      \
        return wf_apply(&wf_op_##op, &(struct constants){{p0, p1}}, 1, &x);                                                                \
    }

/* A shape rule that fails unless the first constant, `name` in messages, is greater than `least`. */
static wf_status want_constant(wf_call *c, const char *name, double least)
{
    double p = ((const struct constants *)c->attr)->p[0];
    if (isnan(p))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "%s is NaN", name);
    if (!(p > least))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "%s = %g must be greater than %g", name, p, least);
    return wf_same_shape(c);
}

/* abs: y' = sign(x), 0 at 0. */
#define abs_shape wf_same_shape
static void abs_gradient(const wf_gradient_call *c)
{
    c->dx[0] = wf_mul(c->dy[0], wf_sign(c->x[0]));
}
ELEMENTWISE(abs, WF_FILL_APART, 0.08, 0.12, CASE("positive", DIMS({4}), WF_FILL_POSITIVE, 0), 0)

wf_tensor *wf_abs(wf_tensor *x)
{
    return apply_abs(x, 0, 0);
}

/* clamp: y' = 1 where low <= x <= high, else 0. */
static wf_status clamp_shape(wf_call *c)
{
    const double *p = ((const struct constants *)c->attr)->p;
    if (!(p[0] <= p[1]))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "low = %g must be at most high = %g; -INFINITY or INFINITY for no bound", p[0], p[1]);
    return wf_same_shape(c);
}

static void clamp_gradient(const wf_gradient_call *c)
{
    const double *p = ((const struct constants *)c->attr)->p;
    wf_tensor *inside = wf_and(wf_ge_constant(c->x[0], p[0]), wf_le_constant(c->x[0], p[1]));
    c->dx[0] = wf_where(inside, c->dy[0], wf_full(c->tape, &(wf_shape){0}, 0));
}
ELEMENTWISE(clamp, WF_FILL_APART, 0.1, 0.12, CASE("no bound below", DIMS({4, 5}), WF_FILL_APART, -INFINITY, 0.33), -0.73, 0.44)

wf_tensor *wf_clamp(wf_tensor *x, double low, double high)
{
    return apply_clamp(x, low, high);
}

/* softplus, with b for beta: y = ln(1 + e^(b x)) / b, y' = 1 / (1 + e^(-b x)). */
static wf_status softplus_shape(wf_call *c)
{
    return want_constant(c, "beta", 0);
}

static void softplus_gradient(const wf_gradient_call *c)
{
    c->dx[0] = wf_mul(c->dy[0], wf_sigmoid(wf_scale(c->x[0], constant_of(c))));
}
ELEMENTWISE(softplus, WF_FILL_NORMAL, 0.5, 0.3, CASE("steep", DIMS({4, 5}), WF_FILL_NORMAL, 30), 1)

wf_tensor *wf_softplus(wf_tensor *x, double beta)
{
    return apply_softplus(x, beta, 0);
}

/* leaky_relu: y' = 1 where x > 0, else the slope. */
static wf_status leaky_relu_shape(wf_call *c)
{
    return want_constant(c, "slope", -INFINITY);
}

static void leaky_relu_gradient(const wf_gradient_call *c)
{
    c->dx[0] = wf_where(wf_gt_constant(c->x[0], 0), c->dy[0], wf_scale(c->dy[0], constant_of(c)));
}
ELEMENTWISE(leaky_relu, WF_FILL_NORMAL, 0.1, 0.12, CASE("falling", DIMS({4, 5}), WF_FILL_NORMAL, -2), 0.1)

wf_tensor *wf_leaky_relu(wf_tensor *x, double slope)
{
    return apply_leaky_relu(x, slope, 0);
}

/* elu: y' = 1 where x > 0, else alpha e^x. */
static wf_status elu_shape(wf_call *c)
{
    return want_constant(c, "alpha", -INFINITY);
}

/* The exponential is that of 0 where x is not below 0: e^x of a large x, which the choice leaves out, would give inf * 0 in its own
 * gradient. */
static void elu_gradient(const wf_gradient_call *c)
{
    wf_tensor *x = c->x[0], *below = wf_where(wf_lt_constant(x, 0), x, wf_full(c->tape, &(wf_shape){0}, 0));
    c->dx[0] = wf_where(wf_le_constant(x, 0), wf_mul(c->dy[0], wf_scale(wf_exp(below), constant_of(c))), c->dy[0]);
}
ELEMENTWISE(elu, WF_FILL_NORMAL, 0.3, 0.3, CASE("half", DIMS({4, 5}), WF_FILL_NORMAL, 0.5), 1)

wf_tensor *wf_elu(wf_tensor *x, double alpha)
{
    return apply_elu(x, alpha, 0);
}

/* softcap, with a bound c: y = c tanh(x / c), y' = 1 - (y / c)^2. */
static wf_status softcap_shape(wf_call *c)
{
    const double bound = ((const struct constants *)c->attr)->p[0];
    if (!(bound >= 1e-30 && bound <= 1e30))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the bound %g is not in 1e-30 .. 1e30", bound);
    return wf_same_shape(c);
}

static wf_status softcap_forward(wf_call *c)
{
    return run(c, wf_kernel->internal->softcap, 1, (const wf_array *const[]){&c->in[0]}, &c->out[0], 0.35);
}

static wf_status softcap_backward(wf_call *c)
{
    wf_array dx = wf_grad_new(c, 0);
    wf_status status = run(c, wf_kernel->internal->softcap_grad, 2, (const wf_array *const[]){&c->out[0], &c->dout[0]}, &dx, 0.15);
    wf_grad_give(c, 0, &dx);
    return status;
}

static void softcap_gradient(const wf_gradient_call *c)
{
    c->dx[0] = wf_mul(c->dy[0], wf_constant_minus(1, wf_square(wf_scale(c->y[0], 1 / constant_of(c)))));
}

#define BOUND(b) ATTR(struct constants, {b})
const wf_op wf_op_softcap = {.name = "softcap",
                             .attr_size = sizeof(struct constants),
                             .reads = WF_READS_OUTPUT(0),
                             .shape = softcap_shape,
                             .forward = softcap_forward,
                             .backward = softcap_backward,
                             .gradient = softcap_gradient,
                             .cases = WF_CASES({"matrix", {{3, 5}}, BOUND(1)}, {"scalar", {{-2}}, BOUND(0.5)}, {"one", {{1, 1}}, BOUND(30)},
                                               {"empty", {{2, -1, 3}}, BOUND(1)}, {"odd", {{13, 17}}, BOUND(2)},
                                               {"six dims", {{2, 1, 3, 1, 2, 3}}, BOUND(0.7)}, {"long", {{1031}}, BOUND(1)})};

wf_tensor *wf_softcap(wf_tensor *x, double bound)
{
    return wf_apply(&wf_op_softcap, &(struct constants){{bound}}, 1, &x);
}
