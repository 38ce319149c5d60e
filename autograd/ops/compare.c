/* SPDX-License-Identifier: MIT */
/* Comparisons, whose results are bools, and ops on bools: and, or, not, where and masked_fill. to_real turns bools and ids into reals. */
#include <weft/internal/shape.h>

#include "common.h"

static wf_status broadcast_into(wf_call *c, wf_dtype dtype, const wf_array *const in[], int n)
{
    wf_shape out = wf_array_shape(in[0]);
    for (int i = 1; i < n; i++) {
        wf_shape a = out, b = wf_array_shape(in[i]);
        if (!wf_shape_broadcast(&a, &b, &out))
            return wf_call_fail(c, WF_ERR_SHAPE, "the shapes do not broadcast: aligned at the last dimension, sizes must be equal or 1");
    }
    c->out[0] = wf_call_shape(dtype, &out);
    return WF_OK;
}

/* Fails unless operands i .. j, at most two, are given and have the same dtype. */
static wf_status want_same_dtype(wf_call *c, int i, int j)
{
    for (int k = i; k <= j; k++)
        if (wf_want_there(c, k) != WF_OK)
            return WF_ERR_ARGUMENT;
    if (c->in[i].dtype != c->in[j].dtype)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "operands %d and %d have dtypes %s and %s, but one dtype is required", i + 1, j + 1,
                            wf_dtype_name(c->in[i].dtype), wf_dtype_name(c->in[j].dtype));
    return WF_OK;
}

/* --- comparisons ------------------------------------------------------------------------------------------------------ */

/* The right side of a comparison with a constant. A comparison of two tensors ignores it. */
struct number {
    double value;
};

static wf_status compare_shape(wf_call *c, bool bools)
{
    if (want_same_dtype(c, 0, c->inputs - 1) != WF_OK)
        return WF_ERR_ARGUMENT;
    wf_dtype dtype = c->in[0].dtype;
    if (dtype != WF_REAL && dtype != WF_I32 && !(dtype == WF_BOOL && bools && c->inputs == 2))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "operand 1 has dtype %s, but %s or I32 is required", wf_dtype_name(dtype),
                            wf_dtype_name(WF_REAL));
    return broadcast_into(c, WF_BOOL, (const wf_array *const[]){&c->in[0], &c->in[c->inputs - 1]}, 2);
}

/* y = a op b, with the kernel for the dtype of the operands: `reals`, `ids` or `bools`. `ids_number` compares ids with a constant. */
static wf_status compare(wf_call *c, wf_map_any_kernel *reals, wf_map_any_kernel *ids, wf_map_any_kernel *ids_number,
                         wf_map_any_kernel *bools)
{
    const struct number *number = c->attr;
    const wf_dtype dtype = c->in[0].dtype;
    wf_real value = (wf_real)number->value;
    wf_array scalar = wf_array_contiguous(&value, WF_REAL, &(wf_shape){0});
    if (c->inputs == 1 && dtype == WF_I32)
        return wf_map_any(ids_number, number, 1, (const wf_array *const[]){&c->in[0]}, &c->out[0], 0.3);
    wf_map_any_kernel *f = dtype == WF_REAL ? reals : dtype == WF_I32 ? ids : bools;
    return wf_map_any(f, NULL, 2, (const wf_array *const[]){&c->in[0], c->inputs == 1 ? &scalar : &c->in[1]}, &c->out[0], 0.1);
}

#define LOOP(type, b_type, from, op, b)                                                                                                    \
    const type *a = in[0];                                                                                                                 \
    const b_type *right = from;                                                                                                            \
    uint8_t *to = y;                                                                                                                       \
    for (int64_t i = 0; i < n; i++)                                                                                                        \
        to[i] = a[i] op b;
#define APART                                                                                                                              \
    {                                                                                                                                      \
        WF_FILL_APART, WF_FILL_APART                                                                                                       \
    }
#define IDS                                                                                                                                \
    {                                                                                                                                      \
        WF_FILL_IDS, WF_FILL_IDS                                                                                                           \
    }
#define BOOLS                                                                                                                              \
    {                                                                                                                                      \
        WF_FILL_BOOLS, WF_FILL_BOOLS                                                                                                       \
    }
#define NUMBER(x) ATTR(struct number, x)
/* takes_bools: whether the comparison accepts bools; ...: one more test case. */
#define COMPARISON(id, op, takes_bools, ...)                                                                                               \
    static void id##_ids(const void *ctx, int64_t n, const void *const in[], void *y)                                                      \
    {                                                                                                                                      \
        (void)ctx;                                                                                                                         \
        LOOP(int32_t, int32_t, in[1], op, right[i])                                                                                        \
    }                                                                                                                                      \
    static void id##_ids_number(const void *ctx, int64_t n, const void *const in[], void *y)                                               \
    {                                                                                                                                      \
        LOOP(int32_t, double, ctx, op, *right)                                                                                             \
    }                                                                                                                                      \
    static void id##_bools(const void *ctx, int64_t n, const void *const in[], void *y)                                                    \
    {                                                                                                                                      \
        (void)ctx;                                                                                                                         \
        LOOP(uint8_t, uint8_t, in[1], op, right[i])                                                                                        \
    }                                                                                                                                      \
    static wf_status id##_shape(wf_call *c)                                                                                                \
    {                                                                                                                                      \
        return compare_shape(c, takes_bools);                                                                                              \
    }                                                                                                                                      \
    static wf_status id##_forward(wf_call *c)                                                                                              \
    {                                                                                                                                      \
        return compare(c, wf_kernel->internal->compare_##id, id##_ids, id##_ids_number, id##_bools);                                       \
    }                                                                                                                                      \
    const wf_op wf_op_##id = {                                                                                                             \
        .name = #id,                                                                                                                       \
        .operands = "a b",                                                                                                                 \
        .constant = true,                                                                                                                  \
        .attr_size = sizeof(struct number),                                                                                                \
        .shape = id##_shape,                                                                                                               \
        .forward = id##_forward,                                                                                                           \
        .cases = WF_CASES({"one shape", {{3, 5}, {3, 5}}, APART, NUMBER(0)}, {"row", {{4, 5}, {5}}, APART, NUMBER(0)},                     \
                          {"outer", {{4, 1}, {1, 5}}, APART, NUMBER(0)}, {"scalars", {{-2}, {-2}}, APART, NUMBER(0)},                      \
                          {"empty", {{-1, 3}, {3}}, APART, NUMBER(0)}, {"long", {{3, 701}, {701}}, APART, NUMBER(0)},                      \
                          {"with a number", {{13, 17}}, APART, NUMBER(0.5)}, {"ids", {{4, 5}, {4, 5}}, IDS, {3, 3}, NUMBER(0)},            \
                          {"ids with a number", {{4, 5}}, IDS, {3}, NUMBER(1)}, __VA_ARGS__)};                                             \
    wf_tensor *wf_##id(wf_tensor *a, wf_tensor *b)                                                                                         \
    {                                                                                                                                      \
        return wf_apply(&wf_op_##id, &(struct number){0}, 2, (wf_tensor *[]){a, b});                                                       \
    }                                                                                                                                      \
    wf_tensor *wf_##id##_constant(wf_tensor *x, double c)                                                                                  \
    {                                                                                                                                      \
        return wf_apply(&wf_op_##id, &(struct number){c}, 1, &x);                                                                          \
    }

COMPARISON(eq, ==, true, {"bools", {{4, 5}, {5}}, BOOLS, NUMBER(0)})
COMPARISON(ne, !=, true, {"bools", {{4, 5}, {5}}, BOOLS, NUMBER(0)})
COMPARISON(lt, <, false, {"ids and a row", {{4, 5}, {5}}, IDS, {3, 3}, NUMBER(0)})
COMPARISON(le, <=, false, {"ids and a row", {{4, 5}, {5}}, IDS, {3, 3}, NUMBER(0)})
COMPARISON(gt, >, false, {"ids and a row", {{4, 5}, {5}}, IDS, {3, 3}, NUMBER(0)})
COMPARISON(ge, >=, false, {"ids and a row", {{4, 5}, {5}}, IDS, {3, 3}, NUMBER(0)})

/* --- and, or, not ----------------------------------------------------------------------------------------------------- */

/* Memory of the caller may hold bools as bytes other than 0 and 1, so these loops compare with 0. */
static void both(const void *ctx, int64_t n, const void *const in[], void *y)
{
    (void)ctx;
    const uint8_t *a = in[0], *b = in[1];
    uint8_t *to = y;
    for (int64_t i = 0; i < n; i++)
        to[i] = (a[i] != 0) & (b[i] != 0);
}

static void either(const void *ctx, int64_t n, const void *const in[], void *y)
{
    (void)ctx;
    const uint8_t *a = in[0], *b = in[1];
    uint8_t *to = y;
    for (int64_t i = 0; i < n; i++)
        to[i] = (a[i] | b[i]) != 0;
}

static void neither(const void *ctx, int64_t n, const void *const in[], void *y)
{
    (void)ctx;
    const uint8_t *a = in[0];
    uint8_t *to = y;
    for (int64_t i = 0; i < n; i++)
        to[i] = a[i] == 0;
}

static wf_status logic_shape(wf_call *c)
{
    for (int i = 0; i < c->inputs; i++)
        if (wf_want(c, i, WF_BOOL) != WF_OK)
            return WF_ERR_ARGUMENT;
    return broadcast_into(c, WF_BOOL, (const wf_array *const[]){&c->in[0], &c->in[c->inputs - 1]}, 2);
}

static wf_status and_forward(wf_call *c)
{
    return wf_map_any(both, NULL, 2, (const wf_array *const[]){&c->in[0], &c->in[1]}, &c->out[0], 0.1);
}

static wf_status or_forward(wf_call *c)
{
    return wf_map_any(either, NULL, 2, (const wf_array *const[]){&c->in[0], &c->in[1]}, &c->out[0], 0.1);
}

static wf_status not_forward(wf_call *c)
{
    return wf_map_any(neither, NULL, 1, (const wf_array *const[]){&c->in[0]}, &c->out[0], 0.1);
}

#define LOGIC_CASES                                                                                                                        \
    WF_CASES({"one shape", {{3, 5}, {3, 5}}, BOOLS}, {"row", {{4, 5}, {5}}, BOOLS}, {"outer", {{4, 1}, {1, 5}}, BOOLS},                    \
             {"scalars", {{-2}, {-2}}, BOOLS}, {"empty", {{-1, 3}, {3}}, BOOLS}, {"long", {{3, 701}, {701}}, BOOLS})
const wf_op wf_op_and = {
    .name = "and", .operands = "a b", .constant = true, .shape = logic_shape, .forward = and_forward, .cases = LOGIC_CASES};
const wf_op wf_op_or = {
    .name = "or", .operands = "a b", .constant = true, .shape = logic_shape, .forward = or_forward, .cases = LOGIC_CASES};
const wf_op wf_op_not = {
    .name = "not",
    .constant = true,
    .shape = logic_shape,
    .forward = not_forward,
    .cases = WF_CASES({"matrix", {{3, 5}}, BOOLS}, {"scalar", {{-2}}, BOOLS}, {"empty", {{-1, 3}}, BOOLS}, {"long", {{1031}}, BOOLS})};

wf_tensor *wf_and(wf_tensor *a, wf_tensor *b)
{
    return wf_apply(&wf_op_and, NULL, 2, (wf_tensor *[]){a, b});
}

wf_tensor *wf_or(wf_tensor *a, wf_tensor *b)
{
    return wf_apply(&wf_op_or, NULL, 2, (wf_tensor *[]){a, b});
}

wf_tensor *wf_not(wf_tensor *a)
{
    return wf_apply(&wf_op_not, NULL, 1, &a);
}

/* --- choices ---------------------------------------------------------------------------------------------------------- */

static wf_status choose(const wf_array *condition, const wf_array *a, const wf_array *b, const wf_array *out)
{
    size_t size = wf_dtype_size(out->dtype);
    wf_map_any_kernel *f = size == 8   ? wf_kernel->internal->select_8
                           : size == 4 ? wf_kernel->internal->select_4
                                       : wf_kernel->internal->select_1;
    return wf_map_any(f, NULL, 3, (const wf_array *const[]){condition, a, b}, out, 0.15);
}

static wf_status where_shape(wf_call *c)
{
    if (wf_want(c, 0, WF_BOOL) != WF_OK || want_same_dtype(c, 1, 2) != WF_OK)
        return WF_ERR_ARGUMENT;
    wf_dtype dtype = c->in[1].dtype;
    if (dtype != WF_REAL && dtype != WF_I32 && dtype != WF_BOOL)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "operand 2 has dtype %s, but %s, I32 or BOOL is required", wf_dtype_name(dtype),
                            wf_dtype_name(WF_REAL));
    return broadcast_into(c, dtype, (const wf_array *const[]){&c->in[0], &c->in[1], &c->in[2]}, 3);
}

static wf_status where_forward(wf_call *c)
{
    return choose(&c->in[0], &c->in[1], &c->in[2], &c->out[0]);
}

/* y = a where the condition is true, else b. So da is dy where the condition is true and 0 elsewhere, and db is the other way round. The
 * zeros are selected, because a product with 0 would keep a NaN. */
static wf_status where_backward(wf_call *c)
{
    const wf_real zero = 0;
    const wf_array none = wf_array_contiguous((void *)&zero, WF_REAL, &(wf_shape){0}), *dy = &c->dout[0];
    wf_shape shape = wf_array_shape(&c->out[0]);
    for (int i = 1; i <= 2; i++) {
        if (!c->need[i])
            continue;
        wf_array g = wf_call_temp(c, WF_REAL, &shape);
        if (choose(&c->in[0], i == 1 ? dy : &none, i == 1 ? &none : dy, &g) != WF_OK)
            return WF_ERR_MEMORY;
        wf_grad_give(c, i, &g);
    }
    return WF_OK;
}

#define CHOICE                                                                                                                             \
    {                                                                                                                                      \
        WF_FILL_BOOLS                                                                                                                      \
    }
static void where_gradient(const wf_gradient_call *c)
{
    wf_tensor *zero = wf_full(c->tape, &(wf_shape){0}, 0);
    if (c->need[1])
        c->dx[1] = wf_where(c->x[0], c->dy[0], zero);
    if (c->need[2])
        c->dx[2] = wf_where(c->x[0], zero, c->dy[0]);
}

const wf_op wf_op_where = {.name = "where",
                           .operands = "condition a b",
                           .reads = WF_READS_INPUT(0),
                           .shape = where_shape,
                           .forward = where_forward,
                           .backward = where_backward,
                           .gradient = where_gradient,
                           .cases =
                               WF_CASES({"one shape", {{3, 5}, {3, 5}, {3, 5}}, CHOICE}, {"rows chosen", {{4, 1}, {4, 5}, {4, 5}}, CHOICE},
                                        {"a row and a number", {{4, 5}, {5}, {-2}}, CHOICE}, {"a condition", {{-2}, {3}, {3}}, CHOICE},
                                        {"outer", {{2, 1, 1}, {3, 1}, {5}}, CHOICE}, {"scalars", {{-2}, {-2}, {-2}}, CHOICE},
                                        {"empty", {{-1, 3}, {3}, {1, 3}}, CHOICE}, {"long", {{3, 701}, {701}, {3, 701}}, CHOICE},
                                        {"six dims", {{2, 1, 2, 1, 2, 3}, {1, 2, 1, 2, 2, 1}, {3}}, CHOICE})};

wf_tensor *wf_where(wf_tensor *condition, wf_tensor *a, wf_tensor *b)
{
    return wf_apply(&wf_op_where, NULL, 3, (wf_tensor *[]){condition, a, b});
}

/* The op `where` under the name that the caller wrote, for messages. */
static const wf_op masked_fill = {.name = "masked_fill",
                                  .operands = "mask value x",
                                  .reads = WF_READS_INPUT(0),
                                  .shape = where_shape,
                                  .forward = where_forward,
                                  .backward = where_backward,
                                  .gradient = where_gradient};

wf_tensor *wf_masked_fill(wf_tensor *x, wf_tensor *mask, double value)
{
    wf_tape *tape = wf_tape_of_operands(2, (wf_tensor *[]){x, mask});
    return wf_apply(&masked_fill, NULL, 3, (wf_tensor *[]){mask, tape ? wf_full(tape, &(wf_shape){0}, value) : x, x});
}

/* --- numbers ---------------------------------------------------------------------------------------------------------- */

static void bools_to_real(const void *ctx, int64_t n, const void *const in[], void *y)
{
    (void)ctx;
    const uint8_t *a = in[0];
    wf_real *to = y;
    for (int64_t i = 0; i < n; i++)
        to[i] = a[i] != 0;
}

static void ids_to_real(const void *ctx, int64_t n, const void *const in[], void *y)
{
    (void)ctx;
    const int32_t *a = in[0];
    wf_real *to = y;
    for (int64_t i = 0; i < n; i++)
        to[i] = (wf_real)a[i];
}

static wf_status to_real_shape(wf_call *c)
{
    if (!wf_has(c, 0))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the operand is NULL");
    if (c->in[0].dtype != WF_BOOL && c->in[0].dtype != WF_I32)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the operand has dtype %s, but BOOL or I32 is required", wf_dtype_name(c->in[0].dtype));
    c->out[0] = wf_call_like(c, &c->in[0]);
    return WF_OK;
}

static wf_status to_real_forward(wf_call *c)
{
    return wf_map_any(c->in[0].dtype == WF_BOOL ? bools_to_real : ids_to_real, NULL, 1, (const wf_array *const[]){&c->in[0]}, &c->out[0],
                      0.1);
}

const wf_op wf_op_to_real = {.name = "to_real",
                             .constant = true,
                             .shape = to_real_shape,
                             .forward = to_real_forward,
                             .cases = WF_CASES({"bools", {{3, 5}}, BOOLS}, {"ids", {{3, 5}}, IDS, {9}}, {"scalar", {{-2}}, BOOLS},
                                               {"empty", {{-1, 3}}, IDS, {9}}, {"long", {{1031}}, IDS, {99}})};

wf_tensor *wf_to_real(wf_tensor *x)
{
    return x && wf_dtype_of(x) == WF_REAL ? x : wf_apply(&wf_op_to_real, NULL, 1, &x);
}
