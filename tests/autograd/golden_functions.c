/* SPDX-License-Identifier: MIT */
/* The functions of functions.c against PyTorch at edge values: values and gradients. */
#include "golden_ops.h"

CALL(f_rsqrt, wf_rsqrt(x[0]))
CALL(f_sin, wf_sin(x[0]))
CALL(f_cos, wf_cos(x[0]))
CALL(f_erf, wf_erf(x[0]))
CALL(f_sign, wf_sign(x[0]))
CALL(f_floor, wf_floor(x[0]))
CALL(f_round, wf_round(x[0]))
CALL(f_log_sigmoid, wf_log_sigmoid(x[0]))
CALL(f_hard_swish, wf_hard_swish(x[0]))
CALL(f_mish, wf_mish(x[0]))
CALL(f_isnan, wf_isnan(x[0]))
CALL(f_isfinite, wf_isfinite(x[0]))

START_TEST(against_pytorch)
{
    static const struct golden_case cases[] = {{"rsqrt", f_rsqrt},
                                               {"rsqrt_empty", f_rsqrt},
                                               {"rsqrt_many", f_rsqrt},
                                               {"sin", f_sin},
                                               {"sin_empty", f_sin},
                                               {"sin_many", f_sin},
                                               {"cos", f_cos},
                                               {"cos_empty", f_cos},
                                               {"cos_many", f_cos},
                                               {"erf", f_erf},
                                               {"erf_empty", f_erf},
                                               {"erf_many", f_erf},
                                               {"sign", f_sign},
                                               {"sign_empty", f_sign},
                                               {"sign_many", f_sign},
                                               {"floor", f_floor},
                                               {"floor_empty", f_floor},
                                               {"floor_many", f_floor},
                                               {"round", f_round},
                                               {"round_empty", f_round},
                                               {"round_many", f_round},
                                               {"log_sigmoid", f_log_sigmoid},
                                               {"log_sigmoid_empty", f_log_sigmoid},
                                               {"log_sigmoid_many", f_log_sigmoid},
                                               {"hard_swish", f_hard_swish},
                                               {"hard_swish_empty", f_hard_swish},
                                               {"hard_swish_many", f_hard_swish},
                                               {"mish", f_mish},
                                               {"mish_empty", f_mish},
                                               {"mish_many", f_mish},
                                               {"isnan", f_isnan},
                                               {"isnan_empty", f_isnan},
                                               {"isfinite", f_isfinite},
                                               {"isfinite_empty", f_isfinite},
                                               {"mish_infinite", f_mish}};
    golden_run_all("ops_functions", cases, sizeof cases / sizeof *cases);
}
END_TEST

START_TEST(errors)
{
    begin(WF_GRADIENTS);
    wf_tensor *ids = wf_ids(tape, I32(0, 1), 1, 2);
    expect_error(wf_erf(ids), WF_ERR_ARGUMENT, "erf(ids [1,2]): operand 1 has dtype I32");
    begin(WF_GRADIENTS);
    expect_error(wf_isnan(NULL), WF_ERR_ARGUMENT, "isnan");
    begin(WF_GRADIENTS);
    ids = wf_ids(tape, I32(0, 1), 1, 2);
    expect_error(wf_isfinite(ids), WF_ERR_ARGUMENT, "isfinite(ids [1,2]): operand 1 has dtype I32");
}
END_TEST

/* A step gives zeros, and no error that there is no gradient. */
START_TEST(steps)
{
    begin(WF_GRADIENTS);
    wf_tensor *x = normal(1, WF_SHAPE(3, 4));
    ran(wf_backward(wf_sum(wf_add(wf_floor(x), wf_add(wf_round(x), wf_sign(x))))));
    wf_real *g = gradient_of(x);
    for (int i = 0; i < 12; i++)
        ck_assert(g[i] == 0);
    free(g);
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
        wf_tensor *x = normal(1, WF_SHAPE(ROWS, D));
        if (run == 3)
            x = wf_slice(x, 0, 17, 1);
        wf_tensor *y = wf_mish(wf_add(wf_sin(wf_scale(x, 3)), wf_cos(wf_erf(x))));
        y = wf_hard_swish(wf_subtract(y, wf_scale(wf_round(wf_scale(y, 4)), 0.25)));
        wf_real *got = value_of(wf_log_sigmoid(y));
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

WF_TEST_MAIN("functions of an element", against_pytorch, errors, steps, bits)
