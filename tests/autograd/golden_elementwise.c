/* SPDX-License-Identifier: MIT */
/* Element-wise ops against PyTorch at edge values: values and gradients. */
#include "golden_ops.h"

CALL(absolute, wf_abs(x[0]))
CALL(square, wf_square(x[0]))
CALL(clamp, wf_clamp(x[0], -1, 1.5))
CALL(clamp_low, wf_clamp(x[0], 0.5, INFINITY))
CALL(clamp_high, wf_clamp(x[0], -INFINITY, -0.5))
CALL(clamp_one, wf_clamp(x[0], 1, 1))
CALL(softplus, wf_softplus(x[0], 1))
CALL(softplus_steep, wf_softplus(x[0], 4))
CALL(leaky_relu, wf_leaky_relu(x[0], 0.25))
CALL(elu, wf_elu(x[0], 0.75))
CALL(pow_zero, wf_pow_constant(x[0], 0))
CALL(pow_one, wf_pow_constant(x[0], 1))
CALL(pow_two, wf_pow_constant(x[0], 2))
CALL(pow_three, wf_pow_constant(x[0], 3))
CALL(pow_five, wf_pow_constant(x[0], 5))
CALL(pow_half, wf_pow_constant(x[0], 0.5))
CALL(pow_minus_half, wf_pow_constant(x[0], -0.5))
CALL(pow_minus_one, wf_pow_constant(x[0], -1))
CALL(pow_minus_two, wf_pow_constant(x[0], -2))
CALL(pow_minus_three, wf_pow_constant(x[0], -3))
CALL(pow_other, wf_pow_constant(x[0], 2.25))
CALL(add_constant, wf_add_constant(x[0], 2.5))
CALL(constant_minus, wf_constant_minus(2.5, x[0]))
CALL(div_constant, wf_div_constant(x[0], 3))
CALL(constant_over, wf_constant_over(3, x[0]))
CALL(maximum, wf_maximum(x[0], x[1]))
CALL(minimum, wf_minimum(x[0], x[1]))
CALL(logaddexp, wf_logaddexp(x[0], x[1]))
CALL(power, wf_pow(x[0], x[1]))

START_TEST(against_pytorch)
{
    static const struct golden_case cases[] = {{"abs", absolute},
                                               {"square", square},
                                               {"clamp", clamp},
                                               {"clamp_low", clamp_low},
                                               {"clamp_high", clamp_high},
                                               {"clamp_one", clamp_one},
                                               {"softplus", softplus},
                                               {"softplus_steep", softplus_steep},
                                               {"leaky_relu", leaky_relu},
                                               {"elu", elu},
                                               {"pow_zero", pow_zero},
                                               {"pow_one", pow_one},
                                               {"pow_two", pow_two},
                                               {"pow_three", pow_three},
                                               {"pow_five", pow_five},
                                               {"pow_half", pow_half},
                                               {"pow_minus_half", pow_minus_half},
                                               {"pow_minus_one", pow_minus_one},
                                               {"pow_minus_two", pow_minus_two},
                                               {"pow_minus_three", pow_minus_three},
                                               {"pow_other", pow_other},
                                               {"add_constant", add_constant},
                                               {"constant_minus", constant_minus},
                                               {"div_constant", div_constant},
                                               {"constant_over", constant_over},
                                               {"maximum", maximum},
                                               {"minimum", minimum},
                                               {"maximum_outer", maximum},
                                               {"minimum_empty", minimum},
                                               {"logaddexp", logaddexp, 1},
                                               {"logaddexp_alike", logaddexp},
                                               {"logaddexp_outer", logaddexp, 1},
                                               {"logaddexp_empty", logaddexp},
                                               {"pow", power},
                                               {"pow_outer", power},
                                               {"pow_empty", power}};
    golden_run_all("ops_elementwise", cases, sizeof cases / sizeof *cases);
}
END_TEST

/* In PyTorch the gradients of equal infinities are NaN. */
START_TEST(logaddexp_of_equal_infinities)
{
    begin(WF_GRADIENTS);
    wf_tensor *a = given(NUMBERS(-(wf_real)INFINITY, (wf_real)INFINITY, 3), WF_SHAPE(3)), *b = wf_scale(a, 1), *da;
    ran(wf_gradients(wf_sum(wf_logaddexp(a, b)), 1, &b, &da, .create_graph = true));
    expect("create_graph", da, NUMBERS(0, 0.5, 0.5), WF_SHAPE(3));
    ran(wf_backward(wf_sum(wf_logaddexp(a, b))));
    expect_gradient("a", a, NUMBERS(0, 1, 1));
}
END_TEST

START_TEST(errors)
{
#define REFUSED(call, code, words)                                                                                                         \
    do {                                                                                                                                   \
        begin(WF_GRADIENTS);                                                                                                               \
        wf_tensor *a = wf_name(normal(1, WF_SHAPE(2, 3)), "left"), *b = normal(2, WF_SHAPE(4)), *ids = wf_ids(tape, I32(0, 1), 1, 2);      \
        (void)a, (void)b, (void)ids;                                                                                                       \
        expect_error(call, code, words);                                                                                                   \
    } while (0)
    REFUSED(wf_clamp(a, 2, 1), WF_ERR_ARGUMENT, "clamp(left [2,3]): low = 2 must be at most high = 1");
    REFUSED(wf_clamp(a, NAN, 1), WF_ERR_ARGUMENT, "clamp(left [2,3]): low = nan must be at most high");
    REFUSED(wf_softplus(a, 0), WF_ERR_ARGUMENT, "softplus(left [2,3]): beta = 0 must be greater than 0");
    REFUSED(wf_softplus(a, NAN), WF_ERR_ARGUMENT, "softplus(left [2,3]): beta is NaN");
    REFUSED(wf_pow_constant(a, NAN), WF_ERR_ARGUMENT, "pow_constant(left [2,3]): the exponent is NaN");
    REFUSED(wf_maximum(a, b), WF_ERR_SHAPE, "maximum(left [2,3], input [4]): the shapes do not broadcast");
    REFUSED(wf_pow(a, NULL), WF_ERR_ARGUMENT, "pow(left [2,3], none): operand 2 is NULL");
    REFUSED(wf_abs(ids), WF_ERR_ARGUMENT, "abs(ids [1,2]): operand 1 has dtype I32");
    REFUSED(wf_leaky_relu(a, NAN), WF_ERR_ARGUMENT, "leaky_relu(left [2,3]): slope is NaN");
}
END_TEST

/* Rows alone, and any number of threads. */
START_TEST(bits)
{
    enum { ROWS = 300, D = 70 };
    wf_real *first = NULL;
    for (int run = 0; run < 4; run++) {
        static const int threads[] = {1, 2, 5, 1};
        ck_ok(wf_init(error, .threads = threads[run]));
        begin(WF_INFER);
        wf_tensor *x = normal(1, WF_SHAPE(ROWS, D)), *row = wf_slice(normal(2, WF_SHAPE(ROWS, D)), 0, 0, 1);
        if (run == 3)
            x = wf_slice(x, 0, 17, 1);
        wf_tensor *y = wf_softplus(wf_maximum(wf_square(x), row), 2);
        y = wf_pow(y, wf_clamp(wf_abs(row), 0.25, INFINITY));
        y = wf_elu(wf_leaky_relu(wf_pow_constant(y, 1.25), 0.1), 2);
        wf_real *got = value_of(y);
        if (!first)
            first = got;
        else
            ck_assert_mem_eq(got, first + (run == 3 ? 17 * D : 0), (size_t)(run == 3 ? 1 : ROWS) * D * sizeof *got);
        if (got != first)
            free(got);
    }
    free(first);
}
END_TEST

WF_TEST_MAIN("element-wise ops", against_pytorch, logaddexp_of_equal_infinities, errors, bits)
