/* SPDX-License-Identifier: MIT */
/* Broadcasting arithmetic. The engine sums gradients over the dimensions along which an operand was repeated. */
#include <weft/op.h>
#include <weft/ops.h>

#include <weft/internal/kernels.h>
#include <weft/internal/ops_all.h>

#include "elementwise.h"
#include "rows.h"

static wf_status binary_shape(wf_call *c)
{
    wf_status status = wf_want(c, 0, WF_REAL);
    if (status == WF_OK)
        status = wf_want(c, 1, WF_REAL);
    if (status != WF_OK)
        return status;
    wf_shape a = wf_array_shape(&c->in[0]), b = wf_array_shape(&c->in[1]), out;
    if (!wf_shape_broadcast(&a, &b, &out))
        return wf_call_fail(c, WF_ERR_SHAPE, "the shapes do not broadcast (aligned at the last dimension, sizes must be equal or 1)");
    c->out[0] = wf_call_shape(WF_REAL, &out);
    return WF_OK;
}

static wf_array temp_like_out(wf_call *c)
{
    wf_shape shape = wf_array_shape(&c->out[0]);
    return wf_call_temp(c, WF_REAL, &shape);
}

#define BINARY_CASES                                                                                                                       \
    WF_CASES({"one shape", {{2, 3, 5}, {2, 3, 5}}}, {"row", {{4, 5}, {5}}}, {"column", {{4, 5}, {4, 1}}},                                  \
             {"column on the left", {{4, 1}, {4, 5}}}, {"row on the left", {{5}, {3, 4, 5}}}, {"outer", {{4, 1}, {1, 5}}},                 \
             {"both repeat", {{2, 1, 3, 1}, {4, 1, 5}}}, {"scalar", {{3, 7}, {-2}}}, {"scalar on the left", {{-2}, {3, 7}}},               \
             {"scalars", {{-2}, {-2}}}, {"ones", {{1, 1}, {1}}}, {"empty", {{-1, 3}, {1, 3}}}, {"repeated to nothing", {{-1, 3}, {3}}},    \
             {"odd", {{13, 17}, {13, 17}}}, {"long", {{3, 701}, {701}}}, {"six dims", {{2, 1, 2, 1, 2, 3}, {1, 2, 1, 2, 2, 1}}})

/* add: y = a + b, so dy reaches both as it is (it is shared, not copied). */
static wf_status add_forward(wf_call *c)
{
    wf_map_binary(wf_kernel->add, &c->in[0], &c->in[1], &c->out[0], 0.1);
    return WF_OK;
}

static wf_status add_backward(wf_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->need[i])
            wf_grad_give(c, i, &c->dout[0]);
    return WF_OK;
}

const wf_op wf_op_add = {.name = "add",
                         .keeps_inputs_away = true,
                         .shape = binary_shape,
                         .forward = add_forward,
                         .backward = add_backward,
                         .cases = BINARY_CASES};

wf_tensor *wf_add(wf_tensor *a, wf_tensor *b)
{
    return wf_apply(&wf_op_add, NULL, 2, (wf_tensor *[]){a, b});
}

/* sub: y = a - b, so da = dy and db = -dy. */
static wf_status sub_forward(wf_call *c)
{
    wf_map_binary(wf_kernel->sub, &c->in[0], &c->in[1], &c->out[0], 0.1);
    return WF_OK;
}

static wf_status sub_backward(wf_call *c)
{
    if (c->need[0])
        wf_grad_give(c, 0, &c->dout[0]);
    if (c->need[1]) {
        wf_array db = temp_like_out(c);
        if (!db.data)
            return WF_ERR_MEMORY;
        wf_map_affine(-1, 0, &c->dout[0], &db);
        wf_grad_give(c, 1, &db);
    }
    return WF_OK;
}

const wf_op wf_op_sub = {.name = "sub",
                         .keeps_inputs_away = true,
                         .shape = binary_shape,
                         .forward = sub_forward,
                         .backward = sub_backward,
                         .cases = BINARY_CASES};

wf_tensor *wf_subtract(wf_tensor *a, wf_tensor *b)
{
    return wf_apply(&wf_op_sub, NULL, 2, (wf_tensor *[]){a, b});
}

/* mul: y = a b, so da = b dy and db = a dy. */
static wf_status mul_forward(wf_call *c)
{
    wf_map_binary(wf_kernel->mul, &c->in[0], &c->in[1], &c->out[0], 0.1);
    return WF_OK;
}

static wf_status mul_backward(wf_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->need[i]) {
            wf_array g = temp_like_out(c);
            if (!g.data)
                return WF_ERR_MEMORY;
            wf_map_binary(wf_kernel->mul, &c->dout[0], &c->in[1 - i], &g, 0.1);
            wf_grad_give(c, i, &g);
        }
    return WF_OK;
}

const wf_op wf_op_mul = {.name = "mul", .shape = binary_shape, .forward = mul_forward, .backward = mul_backward, .cases = BINARY_CASES};

wf_tensor *wf_mul(wf_tensor *a, wf_tensor *b)
{
    return wf_apply(&wf_op_mul, NULL, 2, (wf_tensor *[]){a, b});
}

/* div: y = a / b, so da = dy / b and db = -a dy / b^2 = -y da: a need not be kept. */
static wf_status div_forward(wf_call *c)
{
    wf_map_binary(wf_kernel->div, &c->in[0], &c->in[1], &c->out[0], 0.15);
    return WF_OK;
}

static void minus_product(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx)
{
    wf_kernel->mul(n, x, 1, dy, 1, dx);
    wf_kernel->affine(n, -1, 0, dx, dx);
}

static wf_status div_backward(wf_call *c)
{
    wf_array da = temp_like_out(c), db = {0};
    if (!da.data)
        return WF_ERR_MEMORY;
    wf_map_binary(wf_kernel->div, &c->dout[0], &c->in[1], &da, 0.15);
    if (c->need[1]) {
        db = temp_like_out(c);
        if (!db.data)
            return WF_ERR_MEMORY;
        wf_map_grad(minus_product, &c->out[0], &da, &db, 0.15);
    }
    if (c->need[0]) /* only now: once given, da may be added to */
        wf_grad_give(c, 0, &da);
    if (c->need[1])
        wf_grad_give(c, 1, &db);
    return WF_OK;
}

#define DIVISOR .fill = {WF_FILL_NORMAL, WF_FILL_POSITIVE}
const wf_op wf_op_div = {.name = "div",
                         .reads_inputs = 1u << 1,
                         .reads_outputs = true,
                         .shape = binary_shape,
                         .forward = div_forward,
                         .backward = div_backward,
                         .cases = WF_CASES({"one shape", {{2, 3, 5}, {2, 3, 5}}, DIVISOR}, {"row", {{4, 5}, {5}}, DIVISOR},
                                           {"column", {{4, 5}, {4, 1}}, DIVISOR}, {"row on the left", {{5}, {3, 4, 5}}, DIVISOR},
                                           {"both repeat", {{2, 1, 3, 1}, {4, 1, 5}}, DIVISOR}, {"scalar", {{3, 7}, {-2}}, DIVISOR},
                                           {"scalar on the left", {{-2}, {3, 7}}, DIVISOR}, {"scalars", {{-2}, {-2}}, DIVISOR},
                                           {"ones", {{1, 1}, {1}}, DIVISOR}, {"empty", {{-1, 3}, {3}}, DIVISOR},
                                           {"odd", {{13, 17}, {13, 17}}, DIVISOR})};

wf_tensor *wf_div(wf_tensor *a, wf_tensor *b)
{
    return wf_apply(&wf_op_div, NULL, 2, (wf_tensor *[]){a, b});
}

/* affine: y = s x + t, so dx = s dy. */
struct affine {
    double scale, shift;
};

static wf_status affine_shape(wf_call *c)
{
    wf_status status = wf_want(c, 0, WF_REAL);
    if (status == WF_OK)
        c->out[0] = wf_call_like(c, &c->in[0]);
    return status;
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
    if (!dx.data)
        return WF_ERR_MEMORY;
    wf_map_affine(a->scale, 0, &c->dout[0], &dx);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

#define AFFINE(s, t)                                                                                                                       \
    .attr = &(const struct affine)                                                                                                         \
    {                                                                                                                                      \
        s, t                                                                                                                               \
    }
const wf_op wf_op_affine = {.name = "affine",
                            .attr_size = sizeof(struct affine),
                            .keeps_inputs_away = true,
                            .shape = affine_shape,
                            .forward = affine_forward,
                            .backward = affine_backward,
                            .cases = WF_CASES({"both", {{2, 3, 5}}, AFFINE(-2.5, 0.75)}, {"shift alone", {{7}}, AFFINE(1, 3)},
                                              {"zero", {{2, 3}}, AFFINE(0, 1)}, {"scalar", {{-2}}, AFFINE(3, -1)},
                                              {"empty", {{2, -1}}, AFFINE(3, -1)}, {"odd", {{13, 17}}, AFFINE(-1, 0)})};

wf_tensor *wf_affine(wf_tensor *x, double scale, double shift)
{
    return wf_apply(&wf_op_affine, &(struct affine){scale, shift}, 1, &x);
}

wf_tensor *wf_scale(wf_tensor *x, double scale)
{
    return wf_affine(x, scale, 0);
}

wf_tensor *wf_neg(wf_tensor *x)
{
    return wf_affine(x, -1, 0);
}
