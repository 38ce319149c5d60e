/* SPDX-License-Identifier: MIT */
/* Variances, norms and products against PyTorch at edge values: values and gradients. */
#include "golden_ops.h"

CALL(var_0_last, wf_var_dim(x[0], -1, false, 0))
CALL(var_0_dim, wf_var_dim(x[0], 1, false, 0))
CALL(var_0_all, wf_var(x[0], 0))
CALL(var_1_last, wf_var_dim(x[0], -1, false, 1))
CALL(var_1_dim, wf_var_dim(x[0], 1, false, 1))
CALL(var_1_all, wf_var(x[0], 1))
CALL(std_0_last, wf_std_dim(x[0], -1, false, 0))
CALL(std_0_dim, wf_std_dim(x[0], 1, false, 0))
CALL(std_0_all, wf_std(x[0], 0))
CALL(std_1_last, wf_std_dim(x[0], -1, false, 1))
CALL(std_1_dim, wf_std_dim(x[0], 1, false, 1))
CALL(std_1_all, wf_std(x[0], 1))
CALL(norm_one_last, wf_norm_dim(x[0], 1, -1, false))
CALL(norm_one_dim, wf_norm_dim(x[0], 1, 1, false))
CALL(norm_one_all, wf_norm(x[0], 1))
CALL(norm_two_last, wf_norm_dim(x[0], 2, -1, false))
CALL(norm_two_dim, wf_norm_dim(x[0], 2, 1, false))
CALL(norm_two_all, wf_norm(x[0], 2))
CALL(norm_greatest_last, wf_norm_dim(x[0], INFINITY, -1, false))
CALL(norm_greatest_dim, wf_norm_dim(x[0], INFINITY, 1, false))
CALL(norm_greatest_all, wf_norm(x[0], INFINITY))
CALL(norm_half_last, wf_norm_dim(x[0], 0.5, -1, false))
CALL(norm_half_dim, wf_norm_dim(x[0], 0.5, 1, false))
CALL(norm_half_all, wf_norm(x[0], 0.5))
CALL(norm_one_and_a_half_last, wf_norm_dim(x[0], 1.5, -1, false))
CALL(norm_one_and_a_half_dim, wf_norm_dim(x[0], 1.5, 1, false))
CALL(norm_one_and_a_half_all, wf_norm(x[0], 1.5))
CALL(norm_three_last, wf_norm_dim(x[0], 3, -1, false))
CALL(norm_three_dim, wf_norm_dim(x[0], 3, 1, false))
CALL(norm_three_all, wf_norm(x[0], 3))
CALL(prod_last, wf_prod_dim(x[0], -1, false))
CALL(prod_dim, wf_prod_dim(x[0], 1, false))
CALL(prod_all, wf_prod(x[0]))
CALL(cumprod_last, wf_cumprod(x[0], -1))
CALL(cumprod_dim, wf_cumprod(x[0], 1))

START_TEST(against_pytorch)
{
    static const struct golden_case cases[] = {{"var_0_plain", var_0_last},
                                               {"var_0_zeros", var_0_last},
                                               {"var_0_infinite", var_0_last},
                                               {"var_0_both", var_0_last},
                                               {"var_0_nan", var_0_last},
                                               {"var_0_ties", var_0_last},
                                               {"var_0_one", var_0_last},
                                               {"var_0_same", var_0_last},
                                               {"var_0_one_zero", var_0_last},
                                               {"var_0_two_zeros", var_0_last},
                                               {"var_0_infinite_only", var_0_last},
                                               {"var_0_middle", var_0_dim},
                                               {"var_0_empty", var_0_dim},
                                               {"var_0_nothing", var_0_dim},
                                               {"var_0_all", var_0_all},
                                               {"var_0_scalar", var_0_all},
                                               {"var_1_plain", var_1_last},
                                               {"var_1_zeros", var_1_last},
                                               {"var_1_infinite", var_1_last},
                                               {"var_1_both", var_1_last},
                                               {"var_1_nan", var_1_last},
                                               {"var_1_ties", var_1_last},
                                               {"var_1_one", var_1_last},
                                               {"var_1_same", var_1_last},
                                               {"var_1_one_zero", var_1_last},
                                               {"var_1_two_zeros", var_1_last},
                                               {"var_1_infinite_only", var_1_last},
                                               {"var_1_middle", var_1_dim},
                                               {"var_1_empty", var_1_dim},
                                               {"var_1_nothing", var_1_dim},
                                               {"var_1_all", var_1_all},
                                               {"var_1_scalar", var_1_all},
                                               {"std_0_plain", std_0_last},
                                               {"std_0_zeros", std_0_last},
                                               {"std_0_infinite", std_0_last},
                                               {"std_0_both", std_0_last},
                                               {"std_0_nan", std_0_last},
                                               {"std_0_ties", std_0_last},
                                               {"std_0_one", std_0_last},
                                               {"std_0_same", std_0_last},
                                               {"std_0_one_zero", std_0_last},
                                               {"std_0_two_zeros", std_0_last},
                                               {"std_0_infinite_only", std_0_last},
                                               {"std_0_middle", std_0_dim},
                                               {"std_0_empty", std_0_dim},
                                               {"std_0_nothing", std_0_dim},
                                               {"std_0_all", std_0_all},
                                               {"std_0_scalar", std_0_all},
                                               {"std_1_plain", std_1_last},
                                               {"std_1_zeros", std_1_last},
                                               {"std_1_infinite", std_1_last},
                                               {"std_1_both", std_1_last},
                                               {"std_1_nan", std_1_last},
                                               {"std_1_ties", std_1_last},
                                               {"std_1_one", std_1_last},
                                               {"std_1_same", std_1_last},
                                               {"std_1_one_zero", std_1_last},
                                               {"std_1_two_zeros", std_1_last},
                                               {"std_1_infinite_only", std_1_last},
                                               {"std_1_middle", std_1_dim},
                                               {"std_1_empty", std_1_dim},
                                               {"std_1_nothing", std_1_dim},
                                               {"std_1_all", std_1_all},
                                               {"std_1_scalar", std_1_all},
                                               {"norm_one_plain", norm_one_last},
                                               {"norm_one_zeros", norm_one_last},
                                               {"norm_one_infinite", norm_one_last},
                                               {"norm_one_both", norm_one_last},
                                               {"norm_one_nan", norm_one_last},
                                               {"norm_one_ties", norm_one_last},
                                               {"norm_one_one", norm_one_last},
                                               {"norm_one_same", norm_one_last},
                                               {"norm_one_one_zero", norm_one_last},
                                               {"norm_one_two_zeros", norm_one_last},
                                               {"norm_one_infinite_only", norm_one_last},
                                               {"norm_one_large", norm_one_last},
                                               {"norm_one_middle", norm_one_dim},
                                               {"norm_one_empty", norm_one_dim},
                                               {"norm_one_nothing", norm_one_dim},
                                               {"norm_one_all", norm_one_all},
                                               {"norm_one_scalar", norm_one_all},
                                               {"norm_two_plain", norm_two_last},
                                               {"norm_two_zeros", norm_two_last},
                                               {"norm_two_infinite", norm_two_last},
                                               {"norm_two_both", norm_two_last},
                                               {"norm_two_nan", norm_two_last},
                                               {"norm_two_ties", norm_two_last},
                                               {"norm_two_one", norm_two_last},
                                               {"norm_two_same", norm_two_last},
                                               {"norm_two_one_zero", norm_two_last},
                                               {"norm_two_two_zeros", norm_two_last},
                                               {"norm_two_infinite_only", norm_two_last},
                                               {"norm_two_large", norm_two_last},
                                               {"norm_two_middle", norm_two_dim},
                                               {"norm_two_empty", norm_two_dim},
                                               {"norm_two_nothing", norm_two_dim},
                                               {"norm_two_all", norm_two_all},
                                               {"norm_two_scalar", norm_two_all},
                                               {"norm_greatest_plain", norm_greatest_last},
                                               {"norm_greatest_zeros", norm_greatest_last},
                                               {"norm_greatest_infinite", norm_greatest_last},
                                               {"norm_greatest_both", norm_greatest_last},
                                               {"norm_greatest_nan", norm_greatest_last},
                                               {"norm_greatest_ties", norm_greatest_last},
                                               {"norm_greatest_one", norm_greatest_last},
                                               {"norm_greatest_same", norm_greatest_last},
                                               {"norm_greatest_one_zero", norm_greatest_last},
                                               {"norm_greatest_two_zeros", norm_greatest_last},
                                               {"norm_greatest_infinite_only", norm_greatest_last},
                                               {"norm_greatest_large", norm_greatest_last},
                                               {"norm_greatest_middle", norm_greatest_dim},
                                               {"norm_greatest_empty", norm_greatest_dim},
                                               {"norm_greatest_all", norm_greatest_all},
                                               {"norm_greatest_scalar", norm_greatest_all},
                                               {"norm_half_plain", norm_half_last},
                                               {"norm_half_zeros", norm_half_last},
                                               {"norm_half_infinite", norm_half_last},
                                               {"norm_half_both", norm_half_last},
                                               {"norm_half_nan", norm_half_last},
                                               {"norm_half_ties", norm_half_last},
                                               {"norm_half_one", norm_half_last},
                                               {"norm_half_same", norm_half_last},
                                               {"norm_half_one_zero", norm_half_last},
                                               {"norm_half_two_zeros", norm_half_last},
                                               {"norm_half_infinite_only", norm_half_last},
                                               {"norm_half_middle", norm_half_dim},
                                               {"norm_half_empty", norm_half_dim},
                                               {"norm_half_nothing", norm_half_dim},
                                               {"norm_half_all", norm_half_all},
                                               {"norm_half_scalar", norm_half_all},
                                               {"norm_one_and_a_half_plain", norm_one_and_a_half_last},
                                               {"norm_one_and_a_half_zeros", norm_one_and_a_half_last},
                                               {"norm_one_and_a_half_infinite", norm_one_and_a_half_last},
                                               {"norm_one_and_a_half_both", norm_one_and_a_half_last},
                                               {"norm_one_and_a_half_nan", norm_one_and_a_half_last},
                                               {"norm_one_and_a_half_ties", norm_one_and_a_half_last},
                                               {"norm_one_and_a_half_one", norm_one_and_a_half_last},
                                               {"norm_one_and_a_half_same", norm_one_and_a_half_last},
                                               {"norm_one_and_a_half_one_zero", norm_one_and_a_half_last},
                                               {"norm_one_and_a_half_two_zeros", norm_one_and_a_half_last},
                                               {"norm_one_and_a_half_infinite_only", norm_one_and_a_half_last},
                                               {"norm_one_and_a_half_middle", norm_one_and_a_half_dim},
                                               {"norm_one_and_a_half_empty", norm_one_and_a_half_dim},
                                               {"norm_one_and_a_half_nothing", norm_one_and_a_half_dim},
                                               {"norm_one_and_a_half_all", norm_one_and_a_half_all},
                                               {"norm_one_and_a_half_scalar", norm_one_and_a_half_all},
                                               {"norm_three_plain", norm_three_last},
                                               {"norm_three_zeros", norm_three_last},
                                               {"norm_three_infinite", norm_three_last},
                                               {"norm_three_both", norm_three_last},
                                               {"norm_three_nan", norm_three_last},
                                               {"norm_three_ties", norm_three_last},
                                               {"norm_three_one", norm_three_last},
                                               {"norm_three_same", norm_three_last},
                                               {"norm_three_one_zero", norm_three_last},
                                               {"norm_three_two_zeros", norm_three_last},
                                               {"norm_three_infinite_only", norm_three_last},
                                               {"norm_three_middle", norm_three_dim},
                                               {"norm_three_empty", norm_three_dim},
                                               {"norm_three_nothing", norm_three_dim},
                                               {"norm_three_all", norm_three_all},
                                               {"norm_three_scalar", norm_three_all},
                                               {"prod_plain", prod_last},
                                               {"prod_zeros", prod_last},
                                               {"prod_infinite", prod_last},
                                               {"prod_both", prod_last},
                                               {"prod_nan", prod_last},
                                               {"prod_ties", prod_last},
                                               {"prod_one", prod_last},
                                               {"prod_same", prod_last},
                                               {"prod_one_zero", prod_last},
                                               {"prod_two_zeros", prod_last},
                                               {"prod_infinite_only", prod_last},
                                               {"prod_large", prod_last},
                                               {"prod_middle", prod_dim},
                                               {"prod_empty", prod_dim},
                                               {"prod_nothing", prod_dim},
                                               {"prod_all", prod_all},
                                               {"prod_scalar", prod_all},
                                               {"cumprod_plain", cumprod_last},
                                               {"cumprod_zeros", cumprod_last},
                                               {"cumprod_infinite", cumprod_last},
                                               {"cumprod_both", cumprod_last},
                                               {"cumprod_nan", cumprod_last},
                                               {"cumprod_ties", cumprod_last},
                                               {"cumprod_one", cumprod_last},
                                               {"cumprod_same", cumprod_last},
                                               {"cumprod_one_zero", cumprod_last},
                                               {"cumprod_two_zeros", cumprod_last},
                                               {"cumprod_infinite_only", cumprod_last},
                                               {"cumprod_large", cumprod_last},
                                               {"cumprod_middle", cumprod_dim},
                                               {"cumprod_empty", cumprod_dim},
                                               {"cumprod_nothing", cumprod_dim}};
    golden_run_all("ops_moments", cases, sizeof cases / sizeof *cases);
}
END_TEST

START_TEST(errors)
{
#define REFUSED(call, code, words)                                                                                                         \
    do {                                                                                                                                   \
        begin(WF_GRADIENTS);                                                                                                               \
        wf_tensor *a = wf_name(normal(1, WF_SHAPE(2, 3)), "left"), *ids = wf_ids(tape, I32(0, 1), 1, 2);                                   \
        wf_tensor *none = wf_zeros(tape, WF_SHAPE(2, 0));                                                                                  \
        (void)a, (void)ids, (void)none;                                                                                                    \
        expect_error(call, code, words);                                                                                                   \
    } while (0)
    REFUSED(wf_var_dim(a, 2, false, 1), WF_ERR_SHAPE, "var_dim(left [2,3]): dimension 2 does not exist");
    REFUSED(wf_std(a, 2), WF_ERR_ARGUMENT, "std(left [2,3]): the correction is 2, but must be 0 or 1");
    REFUSED(wf_norm(a, 0), WF_ERR_ARGUMENT, "norm(left [2,3]): p = 0 must be greater than 0");
    REFUSED(wf_norm_dim(a, NAN, 1, true), WF_ERR_ARGUMENT, "norm_dim(left [2,3]): p = nan must be greater than 0");
    REFUSED(wf_norm_dim(none, INFINITY, 1, true), WF_ERR_SHAPE, "nothing has no greatest magnitude");
    REFUSED(wf_prod(ids), WF_ERR_ARGUMENT, "prod(ids [1,2]): operand 1 has dtype I32");
    REFUSED(wf_cumprod(a, -3), WF_ERR_SHAPE, "cumprod(left [2,3]): dimension -3 does not exist");
    REFUSED(wf_norm(NULL, 2), WF_ERR_ARGUMENT, "norm");
}
END_TEST

/* Rows alone, and any number of threads; long lines consist of several chunks. */
START_TEST(bits)
{
    enum { ROWS = 20, D = 20000 };
    wf_real *first = NULL;
    for (int run = 0; run < 4; run++) {
        static const int threads[] = {1, 2, 5, 1};
        ck_ok(wf_init(error, .threads = threads[run]));
        begin(WF_INFER);
        wf_tensor *x = normal(1, WF_SHAPE(ROWS, D));
        if (run == 3)
            x = wf_slice(x, 0, 17, 1);
        wf_tensor *part[] = {wf_var_dim(x, 1, true, 1), wf_norm_dim(x, 2, 1, true), wf_norm_dim(x, INFINITY, 1, true),
                             wf_norm_dim(x, 3, 1, true), wf_prod_dim(wf_add_constant(wf_scale(x, 0.01), 1), 1, true)};
        wf_real *got = value_of(wf_concat(part, 5, 1));
        if (!first)
            first = got;
        else
            ck_assert_mem_eq(got, first + (run == 3 ? 17 * 5 : 0), (size_t)(run == 3 ? 1 : ROWS) * 5 * sizeof *got);
        if (got != first)
            free(got);
    }
    free(first);
}
END_TEST

/* The mean is far from 0: the variance keeps its digits. */
START_TEST(far_from_zero)
{
    begin(WF_GRADIENTS);
    const double shift = sizeof(wf_real) == 4 ? 1024 : 1048576;
    wf_tensor *x = wf_add_constant(wf_input(tape, (wf_real[]){-0.5, 0.25, 0.75, -1}, WF_SHAPE(4), true), shift);
    ck_assert_double_le(fabs(number(wf_var(x, 0)) - 0.453125), 1e-7);
}
END_TEST

WF_TEST_MAIN("moments, norms and products", against_pytorch, errors, bits, far_from_zero)
