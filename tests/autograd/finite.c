/* SPDX-License-Identifier: MIT */
/* wf_tape_check_finite names the input or the parameter that is bad, and no mask. */
#include <weft/ops.h>

#include "one_registry.h"

static wf_tensor *weight;
static void declare(wf_scope root)
{
    weight = wf_parameter(root, "w", WF_SHAPE(2, 4));
}

static wf_real numbers[12];
static void fill(void)
{
    normal_numbers(numbers, 12);
}

static wf_tensor *named_input(const char *name)
{
    wf_tensor *x = wf_input(tape, numbers, WF_SHAPE(3, 4), true);
    return name ? wf_name(x, name) : x;
}

/* The whole message. */
static void says(const wf_tensor *y, const char *text)
{
    expect_error(y, WF_ERR_NUMERIC, text);
    ck_assert_str_eq(wf_tape_error(tape)->message, text);
}

START_TEST(a_bad_input_is_named)
{
    for (int mode = WF_INFER; mode <= WF_GRADIENTS; mode++) {
        begin((wf_mode)mode);
        wf_tape_check_finite(tape, true);
        fill();
        numbers[9] = NAN;
        says(wf_linear(named_input("x"), weight, NULL), "the input x [3,4] has nan at [2,1], and linear(x [3,4], w [2,4]) reads it");
        begin((wf_mode)mode);
        says(wf_linear(named_input(NULL), weight, NULL), "an input [3,4] has nan at [2,1], and linear(input [3,4], w [2,4]) reads it");
        numbers[9] = -NAN;
        begin((wf_mode)mode); /* through views of it, after an op that does not see it */
        wf_tensor *x = named_input("x"), *part = wf_transpose(wf_slice(x, 0, 1, 2), 0, 1);
        ck_assert(!wf_is_poison(wf_exp(wf_slice(x, 0, 0, 2))));
        says(wf_exp(part), "the input x [3,4] has nan at [2,1], and exp(transpose [4,2]) reads it");
        numbers[9] = INFINITY;
        begin((wf_mode)mode);
        says(wf_mul(named_input("x"), wf_full(tape, &(wf_shape){0}, 0)),
             "the input x [3,4] has inf at [2,1], and mul(x [3,4], full []) reads it");
        begin((wf_mode)mode); /* strided memory of the caller's */
        wf_array array = wf_array_transpose(wf_array_contiguous(numbers, WF_REAL, WF_SHAPE(3, 4)), 0, 1);
        says(wf_square(wf_name(wf_borrow(tape, &array), "lent")), "the input lent [4,3] has inf at [1,2], and square(lent [4,3]) reads it");
    }
}
END_TEST

START_TEST(a_bad_parameter_is_named)
{
    begin(WF_TRAIN);
    fill();
    wf_array value = wf_parameter_info(weight)->value;
    ((wf_real *)value.data)[5] = NAN;
    for (int mode = WF_INFER; mode <= WF_GRADIENTS; mode++) {
        begin((wf_mode)mode);
        wf_tape_check_finite(tape, true);
        says(wf_linear(named_input("x"), weight, NULL), "the parameter w [2,4] has nan at [1,1], and linear(x [3,4], w [2,4]) reads it");
    }
}
END_TEST

START_TEST(what_no_result_shows_is_no_error)
{
    begin(WF_TRAIN);
    wf_tape_check_finite(tape, true);
    fill();
    numbers[2] = NAN;
    wf_tensor *x = named_input("x");
    ck_assert(!wf_is_poison(wf_sum(wf_where(wf_eq(x, x), x, wf_zeros(tape, WF_SHAPE(3, 4))))));
    ck_assert(!wf_is_poison(wf_minimum(wf_full(tape, WF_SHAPE(3), INFINITY), wf_zeros(tape, WF_SHAPE(3)))));
}
END_TEST

START_TEST(masks_are_no_error)
{
    const wf_real mask[4] = {0, -INFINITY, 0, -INFINITY};
    const bool hides[4] = {true, false, true, false};
    for (int way = 0; way < 4; way++) {
        begin(WF_TRAIN);
        wf_tape_check_finite(tape, true);
        fill();
        wf_tensor *x = named_input("x"), *minus = wf_name(wf_input(tape, mask, WF_SHAPE(4), false), "mask"), *y;
        if (way == 0)
            y = wf_softmax(wf_add(wf_scale(x, 2), minus));
        else if (way == 1)
            y = wf_softmax(wf_masked_fill(x, wf_bools(tape, hides, WF_SHAPE(4)), -INFINITY));
        else if (way == 2)
            y = wf_softmax(wf_add(wf_scale(wf_add(x, wf_expand(minus, 3, 4)), 0.5), minus)); /* through several ops */
        else {
            wf_tensor *q = wf_reshape(wf_slice(x, 0, 0, 2), 1, 4, 2);
            y = wf_attention(q, q, q, .heads = 1, .bias = wf_expand(minus, 4, 4));
        }
        ck_assert_msg(wf_backward(wf_sum(wf_square(y))) == WF_OK, "%d: %s", way, wf_tape_error(tape)->message);
    }
    begin(WF_TRAIN); /* a result that is bad beside a mask: the mask is not blamed */
    wf_tensor *minus = wf_name(wf_input(tape, mask, WF_SHAPE(4), false), "mask");
    says(wf_mul(minus, wf_zeros(tape, WF_SHAPE(4))),
         "mul(mask [4], zeros [4]): result [4] has the value nan at [1]; the input mask [4] has -inf at [1]");
    begin(WF_TRAIN); /* -inf where no operand has it */
    says(wf_log(wf_zeros(tape, WF_SHAPE(4))), "log(zeros [4]): result [4] has the value -inf at [0]");
    begin(WF_TRAIN); /* the index of a result is written as that of an input */
    fill();
    numbers[6] = 0;
    for (int i = 0; i < 12; i++)
        numbers[i] = (wf_real)fabs((double)numbers[i]);
    says(wf_log(named_input("x")), "log(x [3,4]): result [3,4] has the value -inf at [1,2]");
}
END_TEST

static void backward_says(const wf_status status, const char *text)
{
    ck_assert_int_eq(status, WF_ERR_NUMERIC);
    ck_assert_str_eq(wf_tape_error(tape)->message, text);
}

/* Gradients of inner tensors, of inputs, of parameters, of views, in checkpoints; and bad ones that were there before. */
static wf_tensor *root_of_square(void *ctx, wf_tensor *x)
{
    (void)ctx;
    return wf_sqrt(wf_name(wf_square(x), "inside"));
}

START_TEST(a_bad_gradient_is_named)
{
    wf_tensor *x, *g;
    wf_grads *grads;
    begin(WF_GRADIENTS);
    wf_array value = wf_parameter_info(weight)->value;
    grads = wf_parameter_info(weight)->grads;
    for (int i = 0; i < 12; i++)
        numbers[i] = 1;
    numbers[9] = 0;
    for (int i = 0; i < 8; i++)
        ((wf_real *)value.data)[i] = i == 6 ? 0 : 1;
    wf_tape_check_finite(tape, true);
    backward_says(wf_backward(wf_sum(wf_scale(wf_sqrt(named_input("x")), 2))),
                  "the backward of sqrt(x [3,4]) gave a gradient that is not finite for its operand x [3,4]: inf at [2,1]");
    begin(WF_GRADIENTS); /* without the check of gradients its NaN would be found only in x */
    x = wf_name(wf_square(named_input("x")), "squares");
    backward_says(wf_backward(wf_sum(wf_sqrt(x))),
                  "the backward of sqrt(squares [3,4]) gave a gradient that is not finite for its operand squares [3,4]: inf at [2,1]");
    begin(WF_GRADIENTS); /* the element is that of the tensor behind a view */
    x = wf_name(wf_square(named_input("x")), "squares");
    backward_says(wf_backward(wf_sum(wf_sqrt(wf_transpose(wf_slice(x, 0, 1, 2), 0, 1)))),
                  "the backward of sqrt(transpose [4,2]) gave a gradient that is not finite for its operand squares [3,4]: inf at [2,1]");
    begin(WF_GRADIENTS);
    wf_grads_zero(grads);
    backward_says(wf_backward(wf_sum(wf_sqrt(weight))),
                  "the backward of sqrt(w [2,4]) gave a gradient that is not finite for its operand w [2,4]: inf at [1,2]");
    begin(WF_GRADIENTS);
    backward_says(wf_backward(wf_sum(wf_checkpoint(root_of_square, NULL, named_input("x")))),
                  "the backward of sqrt(inside [3,4]) gave a gradient that is not finite for its operand inside [3,4]: inf at [2,1]");
    begin(WF_GRADIENTS);
    x = named_input("x");
    backward_says(wf_gradients(wf_sum(wf_sqrt(x)), 1, &x, &g),
                  "the backward of sqrt(x [3,4]) gave a gradient that is not finite for its operand x [3,4]: inf at [2,1]");
    begin(WF_GRADIENTS); /* what the caller gave */
    x = named_input("x");
    wf_real given[12] = {[7] = -INFINITY};
    g = wf_input(tape, given, WF_SHAPE(3, 4), false);
    backward_says(wf_backward(wf_scale(x, 2), .gradient = g), "the .gradient that a backward was given has -inf at [1,3]");
    begin(WF_GRADIENTS); /* an earlier backward ran without the check: no op of this one is blamed */
    wf_grads_zero(grads);
    wf_tape_check_finite(tape, false);
    ran(wf_backward(wf_sum(wf_sqrt(weight))));
    wf_tape_check_finite(tape, true);
    backward_says(wf_backward(wf_sum(wf_square(weight))),
                  "an earlier backward left inf at [1,2] in the gradient of w [2,4], to which that of square(w [2,4]) adds");
    wf_grads_zero(grads);
    begin(WF_GRADIENTS); /* finite gradients are no error */
    ran(wf_backward(wf_sum(wf_square(wf_linear(named_input("x"), weight, NULL)))));
}
END_TEST

START_TEST(questions_that_have_no_answer_say_why)
{
    wf_error e = {0};
    wf_array g;
    begin(WF_TRAIN);
    fill();
    wf_tensor *x = named_input("x"), *constant = wf_zeros(tape, WF_SHAPE(3, 4)),
              *apart = wf_name(wf_input(tape, numbers, WF_SHAPE(4), true), "apart");
    wf_tensor *h = wf_name(wf_linear(x, weight, NULL), "h"), *loss = wf_sum(wf_square(h));
#define SAYS(tensor, text)                                                                                                                 \
    do {                                                                                                                                   \
        ck_assert_int_eq(wf_grad(tensor, &g), WF_ERR_STATE);                                                                               \
        ck_assert_int_eq(wf_tape_error(tape)->code, WF_OK);                                                                                \
        ck_assert_str_eq(wf_tape_error(tape)->message, text);                                                                              \
        ck_assert_int_eq(wf_tape_status(tape, &e), WF_ERR_STATE);                                                                          \
        ck_assert_str_eq(e.message, text);                                                                                                 \
        e = (wf_error){0};                                                                                                                 \
    } while (0)
    SAYS(x, "wf_grad: 'x' has no gradient yet: call wf_backward first");
    SAYS(constant, "wf_grad: 'zeros' needs no gradient: give needs_grad where wf_input makes it");
    SAYS(wf_exp(constant), "wf_grad: 'exp' needs no gradient: it depends on no parameter that is trained, and on no input with needs_grad");
    SAYS(weight, "wf_grad: 'w' has no gradient: no wf_backward since wf_grads_zero was called on what depends on it");
    ran(wf_backward(loss));
    SAYS(h, "wf_grad: 'h' is an inner tensor, whose gradient is not kept: call wf_retain_grad on it before other ops use it, or take "
            "wf_gradients");
    SAYS(apart, "wf_grad: 'apart' has no gradient: no wf_backward was called on what depends on it");
    ran(wf_grad(x, &g));
    ran(wf_grad(weight, &g));
    ck_assert(!wf_is_poison(wf_exp(x))); /* the tape goes on */
    begin(WF_TRAIN);
    SAYS(x, "wf_grad: 'input' is of an earlier pass: ask before wf_tape_reset");
}
END_TEST

START_TEST(a_penalty_on_a_gradient)
{
    begin(WF_TRAIN);
    fill();
    normal_numbers(wf_parameter_info(weight)->value.data, 8);
    wf_tensor *x = named_input("x"), *y = wf_tanh(wf_linear(x, weight, NULL)), *g;
    ran(wf_gradients(wf_sum(y), 1, &x, &g, .retain = true));
    refused(wf_backward(wf_sum(wf_square(g))), WF_ERR_STATE, "depends on the gradient 'x': give its wf_gradients .create_graph = true");
    /* The advice followed: f(x) = sum tanh(W x), penalty |df/dx|^2 by differences along g / |g|, whose gradient is that of the closed
     * form. */
    begin(WF_TRAIN);
    x = named_input("x");
    y = wf_tanh(wf_linear(x, weight, NULL));
    ran(wf_gradients(wf_sum(y), 1, &x, &g));
    const double h = sizeof(wf_real) == 8 ? 1e-4 : 1e-2;
    wf_tensor *v = wf_l2_normalize(wf_reshape(wf_detach(g), 12), 1e-12);
    v = wf_reshape(v, 3, 4);
    wf_tensor *plus = wf_sum(wf_tanh(wf_linear(wf_add(x, wf_scale(v, h)), weight, NULL)));
    wf_tensor *less = wf_sum(wf_tanh(wf_linear(wf_add(x, wf_scale(v, -h)), weight, NULL)));
    wf_tensor *norm = wf_scale(wf_subtract(plus, less), 1 / (2 * h));
    double have, want = 0;
    wf_real of[12];
    wf_array dw;
    ran(wf_read(g, of, 12));
    for (int i = 0; i < 12; i++)
        want += (double)of[i] * (double)of[i];
    ran(wf_item(wf_square(norm), &have));
    ck_assert_double_eq_tol(have, want, 1e-3 * want);
    ran(wf_backward(wf_square(norm)));
    ran(wf_grad(weight, &dw));
    double most = 0;
    for (int i = 0; i < 8; i++)
        most = fmax(most, fabs((double)((wf_real *)dw.data)[i]));
    ck_assert(most > 0.01); /* it trains the weight */
}
END_TEST

WF_TEST_MAIN("finite", a_bad_input_is_named, a_bad_parameter_is_named, what_no_result_shows_is_no_error, masks_are_no_error,
             a_bad_gradient_is_named, questions_that_have_no_answer_say_why, a_penalty_on_a_gradient)
