/* SPDX-License-Identifier: MIT */
/* Powers: x^2, x^p with a constant p, and a^b of two tensors. */
#include <math.h>

#include "common.h"

/* --- x^2 -------------------------------------------------------------------------------------------------------------- */

static wf_status square_forward(wf_call *c)
{
    wf_map_binary(wf_kernel->mul, &c->in[0], &c->in[0], &c->out[0], 0.1);
    return WF_OK;
}

/* y' = 2 x */
static void square_grad(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx)
{
    wf_kernel->mul(n, x, 1, dy, 1, dx);
    wf_kernel->add(n, dx, 1, dx, 1, dx);
}

static wf_status square_backward(wf_call *c)
{
    wf_array dx = wf_grad_new(c, 0);
    wf_map_grad(square_grad, &c->in[0], &c->dout[0], &dx, 0.12);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

static void square_gradient(const wf_gradient_call *c)
{
    c->dx[0] = wf_scale(wf_mul(c->dy[0], c->x[0]), 2);
}

const wf_op wf_op_square = {.name = "square",
                            .reads = WF_READS_INPUT(0),
                            .shape = wf_same_shape,
                            .forward = square_forward,
                            .backward = square_backward,
                            .gradient = square_gradient,
                            .cases = WF_CASES({"matrix", {{3, 5}}}, {"scalar", {{-2}}}, {"one", {{1, 1}}}, {"empty", {{2, -1, 3}}},
                                              {"odd", {{13, 17}}}, {"six dims", {{2, 1, 3, 1, 2, 3}}}, {"long", {{1031}}})};

wf_tensor *wf_square(wf_tensor *x)
{
    return wf_apply(&wf_op_square, NULL, 1, &x);
}

/* --- x^p -------------------------------------------------------------------------------------------------------------- */

struct exponent {
    double p;
};

static wf_status constant_shape(wf_call *c)
{
    if (isnan(((const struct exponent *)c->attr)->p))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the exponent is NaN");
    return wf_same_shape(c);
}

static double cost_of(double p)
{
    return p == rint(2 * p) / 2 && fabs(p) <= 3 ? 0.15 : 1.2;
}

static wf_status constant_forward(wf_call *c)
{
    const double p = ((const struct exponent *)c->attr)->p;
    return wf_map(wf_kernel->internal->pow_constant, &(wf_real){(wf_real)p}, 1, (const wf_array *const[]){&c->in[0]}, &c->out[0],
                  cost_of(p));
}

/* y' = p x^(p-1), or 0 if p = 0 */
static wf_status constant_backward(wf_call *c)
{
    const double p = ((const struct exponent *)c->attr)->p;
    wf_array dx = wf_grad_new(c, 0);
    wf_status status = wf_map(wf_kernel->internal->pow_constant_grad, &(wf_real){(wf_real)p}, 2,
                              (const wf_array *const[]){&c->in[0], &c->dout[0]}, &dx, cost_of(p - 1));
    wf_grad_give(c, 0, &dx);
    return status;
}

static void constant_gradient(const wf_gradient_call *c)
{
    const double p = ((const struct exponent *)c->attr)->p;
    if (p != 0)
        c->dx[0] = wf_mul(c->dy[0], wf_scale(wf_pow_constant(c->x[0], p - 1), p));
}

#define P(x) ATTR(struct exponent, x)
const wf_op wf_op_pow_constant = {
    .name = "pow_constant",
    .attr_size = sizeof(struct exponent),
    .reads = WF_READS_INPUT(0),
    .shape = constant_shape,
    .forward = constant_forward,
    .backward = constant_backward,
    .gradient = constant_gradient,
    .cases = WF_CASES({"square", {{3, 5}}, {0}, P(2)}, {"cube", {{3, 5}}, {0}, P(3)}, {"fourth", {{3, 5}}, {0}, P(4)},
                      {"first", {{3, 5}}, {0}, P(1)}, {"none", {{3, 5}}, {0}, P(0)}, {"root", {{3, 5}}, {WF_FILL_POSITIVE}, P(0.5)},
                      {"inverse root", {{13, 17}}, {WF_FILL_POSITIVE}, P(-0.5)}, {"inverse", {{3, 5}}, {WF_FILL_POSITIVE}, P(-1)},
                      {"inverse square", {{3, 5}}, {WF_FILL_POSITIVE}, P(-2)}, {"one and a half", {{7}}, {WF_FILL_POSITIVE}, P(1.5)},
                      {"any", {{13, 17}}, {WF_FILL_POSITIVE}, P(2.2)}, {"odd", {{13, 17}}, {WF_FILL_APART}, P(5)},
                      {"scalar", {{-2}}, {WF_FILL_POSITIVE}, P(-3.3)}, {"empty", {{2, -1}}, {0}, P(2.2)})};

wf_tensor *wf_pow_constant(wf_tensor *x, double c)
{
    return wf_apply(&wf_op_pow_constant, &(struct exponent){c}, 1, &x);
}

/* --- a^b -------------------------------------------------------------------------------------------------------------- */

static wf_status pow_forward(wf_call *c)
{
    wf_map_binary(wf_kernel->internal->pow, &c->in[0], &c->in[1], &c->out[0], 1.2);
    return WF_OK;
}

/* da = b a^(b-1) dy, or 0 where b = 0. db = y ln(a) dy, or 0 where a = 0 and b >= 0. */
static wf_status pow_backward(wf_call *c)
{
    wf_shape shape = wf_array_shape(&c->out[0]);
    wf_status status = WF_OK;
    if (c->need[0]) {
        wf_array da = wf_call_temp(c, WF_REAL, &shape);
        status =
            wf_map(wf_kernel->internal->pow_base_grad, NULL, 3, (const wf_array *const[]){&c->in[0], &c->in[1], &c->dout[0]}, &da, 1.3);
        wf_grad_give(c, 0, &da);
    }
    if (c->need[1] && status == WF_OK) {
        wf_array db = wf_call_temp(c, WF_REAL, &shape);
        status = wf_map(wf_kernel->internal->pow_exponent_grad, NULL, 4,
                        (const wf_array *const[]){&c->in[0], &c->in[1], &c->out[0], &c->dout[0]}, &db, 0.4);
        wf_grad_give(c, 1, &db);
    }
    return status;
}

static void pow_gradient(const wf_gradient_call *c)
{
    wf_tensor *a = c->x[0], *b = c->x[1], *zero = wf_full(c->tape, &(wf_shape){0}, 0);
    if (c->need[0])
        c->dx[0] = wf_where(wf_eq_constant(b, 0), zero, wf_mul(c->dy[0], wf_mul(b, wf_pow(a, wf_add_constant(b, -1)))));
    if (c->need[1]) {
        wf_tensor *none = wf_and(wf_eq_constant(a, 0), wf_ge_constant(b, 0));
        c->dx[1] = wf_where(none, zero, wf_mul(c->dy[0], wf_mul(c->y[0], wf_masked_fill(wf_log(a), none, 0))));
    }
}

#define FILL                                                                                                                               \
    {                                                                                                                                      \
        WF_FILL_POSITIVE, WF_FILL_NORMAL                                                                                                   \
    }
const wf_op wf_op_pow = {
    .name = "pow",
    .operands = "a b",
    .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1) | WF_READS_OUTPUT(0),
    .shape = wf_broadcast_shape,
    .forward = pow_forward,
    .backward = pow_backward,
    .gradient = pow_gradient,
    .cases = WF_CASES({"one shape", {{3, 5}, {3, 5}}, FILL}, {"row", {{4, 5}, {5}}, FILL}, {"column", {{4, 5}, {4, 1}}, FILL},
                      {"outer", {{4, 1}, {1, 5}}, FILL}, {"one exponent", {{13, 17}, {-2}}, FILL}, {"one base", {{-2}, {13, 17}}, FILL},
                      {"scalars", {{-2}, {-2}}, FILL}, {"empty", {{-1, 3}, {3}}, FILL}, {"long", {{3, 701}, {701}}, FILL},
                      {"six dims", {{2, 1, 2, 1, 2, 3}, {1, 2, 1, 2, 2, 1}}, FILL})};

wf_tensor *wf_pow(wf_tensor *a, wf_tensor *b)
{
    return wf_apply(&wf_op_pow, NULL, 2, (wf_tensor *[]){a, b});
}
