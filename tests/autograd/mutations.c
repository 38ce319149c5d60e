/* SPDX-License-Identifier: MIT */
/* The gradient check itself. Ops whose backward is wrong on purpose, each in one of the ways that ops go wrong, must fail it; the same ops
 * made right must pass. */
#include <weft/gradcheck.h>
#include <weft/ops.h>

#include "cases.h"
#include "check_weft.h"
#include "copy_op.h"

#include <math.h>

/* Contiguous copies of both operands, b broadcast to a's shape. */
static bool two(wf_call *c, wf_array *a, wf_array *b)
{
    wf_shape shape = wf_array_shape(&c->in[0]);
    wf_array seen = wf_array_expand(&c->in[1], &shape);
    *a = wf_call_contiguous(c, &c->in[0]);
    *b = wf_call_contiguous(c, &seen);
    return a->data && b->data;
}

enum fault { NONE, SIGN, FACTOR, NO_BROADCAST_SUM, IN_PLACE, FORGETS_ACCUMULATE, SWAPPED, ONE_INPUT_ONLY, LAST_ELEMENT, NAN_IN_VIEWS };
static enum fault fault;

static wf_status product_forward(wf_call *c)
{
    wf_array a, b;
    if (!two(c, &a, &b))
        return WF_ERR_MEMORY;
    wf_real *y = c->out[0].data;
    for (int64_t i = 0; i < wf_array_count(&c->out[0]); i++)
        y[i] = ((wf_real *)a.data)[i] * ((wf_real *)b.data)[i];
    if (fault == NAN_IN_VIEWS && a.data != c->in[0].data)
        y[0] = NAN;
    return WF_OK;
}

/* y = a b:  da = dy b,  db = dy a, summed over the broadcast dimensions of b. */
static wf_status product_backward(wf_call *c)
{
    wf_array a, b, dy = wf_call_contiguous(c, &c->dout[0]);
    if (!two(c, &a, &b) || !dy.data)
        return WF_ERR_MEMORY;
    const wf_real *x = a.data, *w = b.data, *g = dy.data;
    int64_t n = wf_array_count(&a), m = wf_array_count(&c->in[1]);
    if (fault == SWAPPED) {
        const wf_real *t = x;
        x = w;
        w = t;
    }
    if (c->need[0]) {
        bool add = false;
        wf_array da = fault == FORGETS_ACCUMULATE ? wf_grad_into(c, 0, &add) : fault == IN_PLACE ? c->dout[0] : wf_grad_new(c, 0);
        wf_shape shape = wf_array_shape(&a);
        wf_array mine = fault == FORGETS_ACCUMULATE ? wf_call_temp(c, WF_REAL, &shape) : da;
        wf_real scale = fault == SIGN ? -1 : fault == FACTOR ? (wf_real)1.0001 : 1;
        if (fault == IN_PLACE && !wf_array_is_contiguous(&da))
            da = mine = wf_grad_new(c, 0);
        /* db is made from what is left in dy: in the in-place fault that is the neighbour's loss, not ours */
        wf_array keep = wf_call_temp(c, WF_REAL, &shape);
        wf_array_copy(&keep, &dy);
        g = keep.data;
        for (int64_t i = 0; i < n; i++)
            ((wf_real *)mine.data)[i] = scale * g[i] * w[i];
        if (fault == LAST_ELEMENT && n > 0)
            ((wf_real *)mine.data)[n - 1] = 0;
        if (fault == FORGETS_ACCUMULATE)
            wf_array_copy(&da, &mine);
        else
            wf_grad_give(c, 0, &mine);
    }
    if (c->need[1]) {
        wf_array full = wf_grad_new(c, 0);
        for (int64_t i = 0; i < n; i++)
            ((wf_real *)full.data)[i] = fault == ONE_INPUT_ONLY ? 0 : g[i] * x[i];
        if (fault == NO_BROADCAST_SUM) {
            wf_array db = wf_grad_new(c, 1);
            for (int64_t i = 0; i < m; i++)
                ((wf_real *)db.data)[i] = ((wf_real *)full.data)[i];
            wf_grad_give(c, 1, &db);
        } else {
            wf_grad_give(c, 1, &full);
        }
    }
    return WF_OK;
}

static const struct wf_case product_cases[] = {{.in = {{2, 3, 4}, {2, 3, 4}}}, {.in = {{5, 70}, {70}}}};

static wf_op product_op(void)
{
    return (wf_op){
        .name = "product", .shape = like_first, .forward = product_forward, .backward = product_backward, .cases = {product_cases, 2}};
}

static wf_status check_with(enum fault f, wf_error *error)
{
    fault = f;
    wf_op op = product_op();
    return wf_check_op(&op, NULL, error);
}

START_TEST(right_passes)
{
    ck_ok(check_with(NONE, error));
}
END_TEST

START_TEST(wrong_fails)
{
    static const struct {
        enum fault fault;
        const char *what;
    } wrong[] = {{SIGN, "sign"},
                 {FACTOR, "factor"},
                 {NO_BROADCAST_SUM, "broadcast sum"},
                 {IN_PLACE, "in-place write"},
                 {FORGETS_ACCUMULATE, "accumulation"},
                 {SWAPPED, "order of operands"},
                 {ONE_INPUT_ONLY, "second gradient"},
                 {LAST_ELEMENT, "tail"},
                 {NAN_IN_VIEWS, "first element for strided operands"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        wf_error error = {0};
        ck_assert_msg(check_with(wrong[i].fault, &error) != WF_OK, "the check passed a backward with a wrong %s", wrong[i].what);
        ck_says(error.message, "product");
        ck_assert_int_ne(error.code, WF_ERR_MEMORY);
    }
}
END_TEST

START_TEST(op_without_cases)
{
    wf_op op = product_op();
    op.cases.count = 0;
    ck_fails(wf_check_op(&op, NULL, error), WF_ERR_ARGUMENT, "no cases");
}
END_TEST

/* Only .constant says that an op has no gradient. */
START_TEST(op_without_backward)
{
    wf_op op = product_op();
    fault = NONE;
    op.backward = NULL;
    ck_fails(wf_check_op(&op, NULL, error), WF_ERR_ARGUMENT, "product has no backward");
    ck_fails(wf_check_case(&op, &product_cases[0], NULL, error), WF_ERR_ARGUMENT, "product has no backward");
    op.constant = true;
    ck_ok(wf_check_op(&op, NULL, error));
    op.backward = product_backward;
    ck_fails(wf_check_op(&op, NULL, error), WF_ERR_ARGUMENT, "product has a backward, but its descriptor says .constant");
}
END_TEST

/* y = x * w with a backward for x alone; w is a constant, which the shape rule refuses or, wrongly, forgets to refuse. */
static bool forgets, gives;

static wf_status weighted_shape(wf_call *c)
{
    if (c->need[1] && !forgets && !gives)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "there is no gradient for w");
    return like_first(c);
}

static wf_status weighted_backward(wf_call *c)
{
    const bool w = c->need[1];
    c->need[1] = w && gives;
    wf_status status = product_backward(c);
    c->need[1] = w;
    return status;
}

START_TEST(constant_operand)
{
    static const struct wf_case right = {"weights", .in = {{2, 3, 4}, {2, 3, 4}}, .constant = {false, true}},
                                row = {"a row", .in = {{5, 7}, {7}}, .constant = {false, true}},
                                none = {"none", .in = {{2, 3}, {2, 3}}, .constant = {true, true}},
                                real = {"asks for both", .in = {{2, 3}, {2, 3}}};
    wf_op op = product_op();
    op.name = "weighted";
    op.shape = weighted_shape;
    op.backward = weighted_backward;
    fault = NONE;
    ck_ok(wf_check_case(&op, &right, NULL, error));
    ck_ok(wf_check_case(&op, &row, NULL, error));
    ck_fails(wf_check_case(&op, &real, NULL, error), WF_ERR_ARGUMENT, "there is no gradient for w");
    gives = true; /* a right gradient that the case does not ask for */
    ck_ok(wf_check_case(&op, &right, NULL, error));
    gives = false, forgets = true;
    ck_fails(wf_check_case(&op, &right, NULL, error), WF_ERR_NUMERIC,
             "weighted, case -1 weights: input 1 is .constant, but the op takes one");
    forgets = false;
    ck_fails(wf_check_case(&op, &none, NULL, error), WF_ERR_ARGUMENT, "all real inputs are .constant");
    static const enum fault faults[] = {SIGN, FACTOR, LAST_ELEMENT, FORGETS_ACCUMULATE, IN_PLACE, NAN_IN_VIEWS};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) { /* the other operand is checked as ever */
        fault = faults[i];
        ck_assert_int_ne(wf_check_case(&op, &right, NULL, NULL), WF_OK);
    }
}
END_TEST

/* Each op of the library with one gradient negated must fail too: the cases of every op reach every input. */
static wf_op negated;
static int negated_input;
static const wf_op *original;

static wf_status negated_backward(wf_call *c)
{
    /* Negates the gradient of this input alone: the real backward runs with -dy and this need only. */
    bool need[WF_MAX_INPUTS];
    memcpy(need, c->need, sizeof need);
    if (need[negated_input]) {
        wf_array keep[WF_MAX_OUTPUTS];
        memcpy(keep, c->dout, sizeof keep);
        memset(c->need, 0, sizeof c->need);
        c->need[negated_input] = true;
        for (int j = 0; j < c->outputs; j++) {
            if (!keep[j].data)
                continue;
            wf_shape shape = wf_array_shape(&keep[j]);
            c->dout[j] = wf_call_temp(c, WF_REAL, &shape);
            wf_array_copy(&c->dout[j], &keep[j]);
            for (int64_t i = 0; i < wf_shape_count(&shape); i++)
                ((wf_real *)c->dout[j].data)[i] *= -1;
        }
        wf_status status = original->backward(c);
        memcpy(c->dout, keep, sizeof keep);
        memcpy(c->need, need, sizeof need);
        c->need[negated_input] = false;
        if (status != WF_OK)
            return status;
        bool any = false;
        for (int i = 0; i < c->inputs; i++)
            any |= c->need[i];
        if (any)
            status = original->backward(c);
        memcpy(c->need, need, sizeof need);
        return status;
    }
    return original->backward(c);
}

START_TEST(every_gradient_of_every_op_is_checked)
{
    for (int o = 0; o < wf_op_count(); o++) {
        original = wf_op_at(o);
        for (negated_input = 0; negated_input < WF_MAX_INPUTS; negated_input++) {
            if (!operand_has_gradient(original, negated_input))
                continue;
            negated = *original;
            negated.backward = negated_backward;
            wf_error error = {0};
            ck_assert_msg(wf_check_op(&negated, NULL, &error) != WF_OK, "%s passes with the gradient of input %d negated", original->name,
                          negated_input);
        }
    }
}
END_TEST

/* in[1], ids, chooses rows of x; y = x^2, or with a factor that is a constant by mistake. */
static wf_tensor *square(void *ctx, wf_tape *tape, wf_tensor *const in[])
{
    (void)tape;
    return wf_embedding(wf_mul(in[0], ctx ? wf_detach(in[0]) : in[0]), in[1]);
}

START_TEST(functions)
{
    static const enum wf_fill fill[] = {WF_FILL_NORMAL, WF_FILL_IDS};
    const wf_shape shapes[] = {{2, {1, 4}}, {1, {3}}};
    ck_ok(wf_check_function(square, NULL, 2, shapes, fill, NULL, error));
    ck_fails(wf_check_function(square, error, 2, shapes, fill, NULL, error), WF_ERR_NUMERIC, "gradient of input 0 along direction 0");

    const wf_shape bad[] = {{2, {(int64_t)1 << 31, (int64_t)1 << 31}}, {2, {3, -1}}, {3, {(int64_t)1 << 40, (int64_t)1 << 40, 2}}};
    for (int i = 0; i < 3; i++) {
        ck_fails(wf_check_function(square, NULL, 1, &bad[i], NULL, NULL, error), WF_ERR_SHAPE, "of input 0 is invalid");
    }
}
END_TEST

WF_TEST_MAIN("mutations", right_passes, wrong_fails, op_without_cases, op_without_backward, constant_operand,
             every_gradient_of_every_op_is_checked, functions)
