/* SPDX-License-Identifier: MIT */
/* Comparisons, bools and choices: against PyTorch at edge values, their errors, and what gradients do beside them. */
#include "golden_ops.h"

#define COMPARISON(name)                                                                                                                   \
    CALL(name, wf_##name(x[0], x[1]))                                                                                                      \
    CALL(name##_constant, wf_##name##_constant(x[0], 0.5))                                                                                 \
    CALL(name##_ids_constant, wf_##name##_constant(x[0], 1))
COMPARISON(eq)
COMPARISON(ne)
COMPARISON(lt)
COMPARISON(le)
COMPARISON(gt)
COMPARISON(ge)
CALL(both, wf_and(x[0], x[1]))
CALL(either, wf_or(x[0], x[1]))
CALL(not, wf_not(x[0]))
CALL(where, wf_where(x[0], x[1], x[2]))
CALL(where_safe, wf_where(x[0], wf_sqrt(x[1]), wf_full(wf_tape_of(x[0]), &(wf_shape){0}, 0)))
CALL(masked_fill, wf_masked_fill(x[0], x[1], -INFINITY))
CALL(to_real, wf_to_real(x[0]))

START_TEST(against_pytorch)
{
#define CASES(name)                                                                                                                        \
    {#name, name}, {#name "_outer", name}, {#name "_constant", name##_constant}, {#name "_ids", name},                                     \
        {#name "_ids_constant", name##_ids_constant},                                                                                      \
    {                                                                                                                                      \
#name "_empty", name                                                                                                               \
    }
    static const struct golden_case cases[] = {CASES(eq),
                                               CASES(ne),
                                               CASES(lt),
                                               CASES(le),
                                               CASES(gt),
                                               CASES(ge),
                                               {"eq_bools", eq},
                                               {"and", both},
                                               {"or", either},
                                               {"not", not },
                                               {"where", where},
                                               {"where_outer", where},
                                               {"where_empty", where},
                                               {"where_ids", where},
                                               {"where_safe", where_safe},
                                               {"masked_fill", masked_fill},
                                               {"to_real", to_real},
                                               {"to_real_ids", to_real}};
    golden_run_all("ops_compare", cases, sizeof cases / sizeof *cases);
}
END_TEST

START_TEST(ids_are_compared_exactly)
{
    begin(WF_GRADIENTS);
    /* float does not hold 2^24 + 1 */
    wf_tensor *ids = wf_ids(tape, I32(16777217, 16777216, INT32_MAX, INT32_MIN), 1, 4);
    expect("ids == 2^24", wf_to_real(wf_eq_constant(ids, 16777216)), NUMBERS(0, 1, 0, 0), WF_SHAPE(1, 4));
    expect("ids > 2^24", wf_to_real(wf_gt_constant(ids, 16777216)), NUMBERS(1, 0, 1, 0), WF_SHAPE(1, 4));
    expect("ids < 1.5", wf_to_real(wf_lt_constant(ids, 1.5)), NUMBERS(0, 0, 0, 1), WF_SHAPE(1, 4));
    expect("ids == NaN", wf_to_real(wf_eq_constant(ids, NAN)), NUMBERS(0, 0, 0, 0), WF_SHAPE(1, 4));
    expect("ids <= 1e30", wf_to_real(wf_le_constant(ids, 1e30)), NUMBERS(1, 1, 1, 1), WF_SHAPE(1, 4));
    wf_tensor *x = given(NUMBERS(1, 2), WF_SHAPE(2));
    ck_assert_ptr_eq(wf_to_real(x), x);
}
END_TEST

START_TEST(errors)
{
#define REFUSED(call, code, words)                                                                                                         \
    do {                                                                                                                                   \
        begin(WF_GRADIENTS);                                                                                                               \
        wf_tensor *a = wf_name(normal(1, WF_SHAPE(2, 3)), "left"), *b = normal(2, WF_SHAPE(4)),                                            \
                  *ids = wf_ids(tape, I32(0, 1, 2, 3), 2, 2), *yes = wf_bools(tape, (bool[]){true, false, true}, WF_SHAPE(3));             \
        (void)a, (void)b, (void)ids, (void)yes;                                                                                            \
        expect_error(call, code, words);                                                                                                   \
    } while (0)
    REFUSED(wf_lt(a, b), WF_ERR_SHAPE, "lt(left [2,3], input [4]): the shapes do not broadcast");
    REFUSED(wf_eq(a, ids), WF_ERR_ARGUMENT, "eq(left [2,3], ids [2,2]): operands 1 and 2 have dtypes");
    REFUSED(wf_lt(yes, yes), WF_ERR_ARGUMENT, "lt(bools [3], bools [3]): operand 1 has dtype BOOL");
    REFUSED(wf_eq(a, NULL), WF_ERR_ARGUMENT, "eq(left [2,3], none): operand 2 is NULL: b is required");
    REFUSED(wf_and(a, yes), WF_ERR_ARGUMENT, "and(left [2,3], bools [3]): operand 1 has dtype");
    REFUSED(wf_not(ids), WF_ERR_ARGUMENT, "not(ids [2,2]): operand 1 has dtype I32");
    REFUSED(wf_where(a, a, a), WF_ERR_ARGUMENT, "where(left [2,3], left [2,3], left [2,3]): operand 1 has dtype");
    REFUSED(wf_where(yes, a, ids), WF_ERR_ARGUMENT, "where(bools [3], left [2,3], ids [2,2]): operands 2 and 3 have dtypes");
    REFUSED(wf_where(yes, a, b), WF_ERR_SHAPE, "where(bools [3], left [2,3], input [4]): the shapes do not broadcast");
    REFUSED(wf_mul(a, yes), WF_ERR_ARGUMENT, "mul(left [2,3], bools [3]): operand 2 has dtype BOOL");
    REFUSED(wf_eq_constant(yes, 1), WF_ERR_ARGUMENT, "eq(bools [3]): operand 1 has dtype BOOL");
    begin(WF_GRADIENTS);
    wf_tensor *none = wf_sum(wf_to_real(wf_lt_constant(normal(1, WF_SHAPE(2, 3)), 0)));
    refused(wf_backward(none), WF_ERR_STATE, "wf_backward: 'sum' does not depend on a tensor that needs a gradient");
    REFUSED(wf_where(yes, NULL, a), WF_ERR_ARGUMENT, "where(bools [3], none, left [2,3]): operand 2 is NULL: a is required");
    REFUSED(wf_masked_fill(a, a, 0), WF_ERR_ARGUMENT, "masked_fill(left [2,3], full [], left [2,3]): operand 1 has dtype");
}
END_TEST

/* A chosen sum, in a checkpoint and out of it, with any number of threads: the same bits. */
static wf_tensor *chosen(void *ctx, wf_tensor *x)
{
    wf_tensor *limit = ctx, *small = wf_and(wf_lt(wf_abs(x), limit), wf_not(wf_eq_constant(x, 0)));
    return wf_where(small, wf_square(x), wf_masked_fill(wf_scale(x, 3), small, 0));
}

START_TEST(bits)
{
    enum { ROWS = 200, D = 60 };
    wf_real *first[2] = {NULL};
    for (int run = 0; run < 6; run++) {
        ck_ok(wf_init(error, .threads = run % 3 == 0 ? 1 : run % 3 == 1 ? 2 : 5));
        begin(WF_TRAIN);
        wf_tensor *x = normal(1, WF_SHAPE(ROWS, D)), *limit = wf_full(tape, WF_SHAPE(D), 0.6);
        wf_tensor *y = wf_keep(run < 3 ? chosen(limit, x) : wf_checkpoint(chosen, limit, x));
        ran(wf_backward(wf_sum(y)));
        wf_real *got[] = {value_of(y), gradient_of(x)};
        for (int i = 0; i < 2; i++) {
            if (run == 0)
                first[i] = got[i];
            else
                ck_assert_mem_eq(got[i], first[i], ROWS * D * sizeof *got[i]);
            if (run > 0)
                free(got[i]);
        }
    }
    free(first[0]);
    free(first[1]);
}
END_TEST

WF_TEST_MAIN("comparisons", against_pytorch, ids_are_compared_exactly, errors, bits)
