/* SPDX-License-Identifier: MIT */
/* flip, roll, pad, triangles, repeat, windows, sort and one_hot against PyTorch: values, ids and gradients. */
#include "golden_ops.h"

CALL(flip, wf_flip(x[0], 1))
CALL(roll, wf_roll(x[0], 2, 1))
CALL(roll_back, wf_roll(x[0], -7, 1))
CALL(pad, wf_pad_dims(x[0], (const struct wf_pad_size[]){{-1, 1, 6}, {-2, 0, 2}}, 2, 1))
CALL(pad_one, wf_pad(x[0], 1, 3, 1, -2.5))
CALL(tril, wf_tril(x[0], 0))
CALL(tril_below, wf_tril(x[0], -9))
CALL(triu, wf_triu(x[0], 1))
CALL(repeat_2, wf_repeat(x[0], 2, 1, 3))
CALL(repeat_3, wf_repeat(x[0], 2, 1, 3, 1))
CALL(repeat_never, wf_repeat(x[0], 1, 0, 2))
CALL(unfold_overlapping, wf_unfold(x[0], 1, 3, 1))
CALL(unfold_apart, wf_unfold(x[0], -1, 1, 2))
CALL(unfold_steps, wf_unfold(x[0], 1, 2, 2))
CALL(unfold_whole, wf_unfold(x[0], 2, 4, 9))
CALL(unfold_pairs, wf_unfold(x[0], 1, 2, 1))
CALL(fold_overlapping, wf_fold(x[0], 1, 7, 1))
CALL(fold_longer, wf_fold(x[0], 0, 13, 2))
CALL(fold_edges, wf_fold(x[0], 0, 4, 1))
CALL(one_hot, wf_one_hot(x[0], 5))
CALL(sort_last_0, wf_sort(x[0], -1, false, NULL))
CALL(argsort_last_0, wf_argsort(x[0], -1, false))
CALL(sort_last_1, wf_sort(x[0], -1, true, NULL))
CALL(argsort_last_1, wf_argsort(x[0], -1, true))
CALL(sort_1_0, wf_sort(x[0], 1, false, NULL))
CALL(argsort_1_0, wf_argsort(x[0], 1, false))
CALL(sort_1_1, wf_sort(x[0], 1, true, NULL))
CALL(argsort_1_1, wf_argsort(x[0], 1, true))
CALL(sort_0_0, wf_sort(x[0], 0, false, NULL))
CALL(argsort_0_0, wf_argsort(x[0], 0, false))
CALL(sort_0_1, wf_sort(x[0], 0, true, NULL))
CALL(argsort_0_1, wf_argsort(x[0], 0, true))

START_TEST(against_pytorch)
{
    static const struct golden_case cases[] = {{"flip_x", flip},
                                               {"roll_x", roll},
                                               {"roll_back_x", roll_back},
                                               {"pad_x", pad},
                                               {"tril_x", tril},
                                               {"triu_x", triu},
                                               {"tril_below_x", tril_below},
                                               {"repeat_x", repeat_3},
                                               {"flip_edges", flip},
                                               {"roll_edges", roll},
                                               {"roll_back_edges", roll_back},
                                               {"pad_edges", pad},
                                               {"tril_edges", tril},
                                               {"triu_edges", triu},
                                               {"tril_below_edges", tril_below},
                                               {"repeat_edges", repeat_2},
                                               {"flip_ids", flip},
                                               {"roll_ids", roll},
                                               {"roll_back_ids", roll_back},
                                               {"pad_ids", pad},
                                               {"tril_ids", tril},
                                               {"triu_ids", triu},
                                               {"tril_below_ids", tril_below},
                                               {"repeat_ids", repeat_2},
                                               {"flip_bools", flip},
                                               {"roll_bools", roll},
                                               {"roll_back_bools", roll_back},
                                               {"pad_bools", pad},
                                               {"tril_bools", tril},
                                               {"triu_bools", triu},
                                               {"tril_below_bools", tril_below},
                                               {"repeat_bools", repeat_2},
                                               {"flip_empty", flip},
                                               {"roll_empty", roll},
                                               {"roll_back_empty", roll_back},
                                               {"pad_empty", pad},
                                               {"tril_empty", tril},
                                               {"triu_empty", triu},
                                               {"tril_below_empty", tril_below},
                                               {"repeat_empty", repeat_2},
                                               {"flip_nothing", flip},
                                               {"roll_nothing", roll},
                                               {"roll_back_nothing", roll_back},
                                               {"pad_nothing", pad},
                                               {"tril_nothing", tril},
                                               {"triu_nothing", triu},
                                               {"tril_below_nothing", tril_below},
                                               {"repeat_nothing", repeat_2},
                                               {"repeat_never", repeat_never},
                                               {"pad_one", pad_one},
                                               {"unfold_overlapping", unfold_overlapping},
                                               {"unfold_apart", unfold_apart},
                                               {"unfold_steps", unfold_steps},
                                               {"unfold_whole", unfold_whole},
                                               {"unfold_edges", unfold_pairs},
                                               {"unfold_ids", unfold_pairs},
                                               {"fold_overlapping", fold_overlapping},
                                               {"fold_longer", fold_longer},
                                               {"fold_edges", fold_edges},
                                               {"sort_ties_0", sort_last_0},
                                               {"argsort_ties_0", argsort_last_0},
                                               {"sort_ties_1", sort_last_1},
                                               {"argsort_ties_1", argsort_last_1},
                                               {"sort_long_0", sort_1_0},
                                               {"argsort_long_0", argsort_1_0},
                                               {"sort_long_1", sort_1_1},
                                               {"argsort_long_1", argsort_1_1},
                                               {"sort_columns_0", sort_0_0},
                                               {"argsort_columns_0", argsort_0_0},
                                               {"sort_columns_1", sort_0_1},
                                               {"argsort_columns_1", argsort_0_1},
                                               {"sort_wide_0", sort_1_0},
                                               {"argsort_wide_0", argsort_1_0},
                                               {"sort_wide_1", sort_1_1},
                                               {"argsort_wide_1", argsort_1_1},
                                               {"sort_one_0", sort_1_0},
                                               {"argsort_one_0", argsort_1_0},
                                               {"sort_one_1", sort_1_1},
                                               {"argsort_one_1", argsort_1_1},
                                               {"sort_nothing_0", sort_1_0},
                                               {"argsort_nothing_0", argsort_1_0},
                                               {"sort_nothing_1", sort_1_1},
                                               {"argsort_nothing_1", argsort_1_1},
                                               {"sort_empty_0", sort_1_0},
                                               {"argsort_empty_0", argsort_1_0},
                                               {"sort_empty_1", sort_1_1},
                                               {"argsort_empty_1", argsort_1_1},
                                               {"one_hot", one_hot},
                                               {"one_hot_empty", one_hot}};
    golden_run_all("ops_arrange", cases, sizeof cases / sizeof *cases);
}
END_TEST

/* The ids of wf_sort are those of wf_argsort, and take the values; long rows are sorted by digits, short ones by insertion. */
START_TEST(sorted)
{
    for (int n = 1; n < 90; n += 4)
        for (int descending = 0; descending < 2; descending++) {
            begin(WF_GRADIENTS);
            wf_tensor *x = wf_round(wf_scale(normal((uint64_t)n, WF_SHAPE(5, n)), 3)), *ids;
            wf_tensor *y = wf_sort(x, 1, descending, &ids), *same = wf_gather(x, 1, ids), *alone = wf_argsort(x, 1, descending);
            wf_tensor *wrong = wf_add(wf_sum(wf_to_real(wf_ne(y, same))), wf_sum(wf_to_real(wf_ne(ids, alone))));
            ck_assert(number(wrong) == 0);
            if (n == 1)
                continue;
            wf_tensor *a = wf_slice(y, 1, 0, n - 1), *b = wf_slice(y, 1, 1, n - 1), *i = wf_slice(ids, 1, 0, n - 1),
                      *j = wf_slice(ids, 1, 1, n - 1);
            wf_tensor *order = descending ? wf_gt(a, b) : wf_lt(a, b);
            ck_assert(number(wf_sum(wf_to_real(wf_not(wf_or(order, wf_and(wf_eq(a, b), wf_lt(i, j))))))) == 0);
        }
}
END_TEST

START_TEST(constants)
{
    begin(WF_INFER);
    static const wf_real reals[] = {1, 0.75, 0.5, 0.25}, unit[] = {1, 0, 0, 0, 1, 0};
    expect("arange", wf_arange(tape, 1, 0, -0.25), reals, WF_SHAPE(4));
    expect("eye", wf_eye(tape, 2, 3), unit, WF_SHAPE(2, 3));
    int32_t id[3];
    ran(wf_read_ids(wf_arange_ids(tape, -1, 4, 2), id, 3));
    ck_assert(id[0] == -1 && id[1] == 1 && id[2] == 3);
    ck_assert_int_eq(wf_dim(wf_arange(tape, 0, 1, 0.1), 0), 10);
    ck_assert_int_eq(wf_dim(wf_arange(tape, 0, 1.05, 0.1), 0), 11);
    ck_assert_int_eq(wf_dim(wf_arange(tape, 2, 2, 1), 0), 0);
}
END_TEST

START_TEST(errors)
{
#define REFUSED(call, code, words)                                                                                                         \
    do {                                                                                                                                   \
        begin(WF_GRADIENTS);                                                                                                               \
        wf_tensor *a = wf_name(normal(1, WF_SHAPE(2, 3)), "left"), *ids = wf_ids(tape, I32(0, 7), 1, 2);                                   \
        (void)a, (void)ids;                                                                                                                \
        expect_error(call, code, words);                                                                                                   \
    } while (0)
    REFUSED(wf_flip(a, 2), WF_ERR_SHAPE, "flip(left [2,3]): dimension 2 does not exist");
    REFUSED(wf_roll(a, 1, 2), WF_ERR_SHAPE, "roll(left [2,3]): dimension 2 does not exist");
    REFUSED(wf_roll(NULL, 1, 0), WF_ERR_ARGUMENT, "roll");
    REFUSED(wf_pad(a, 1, -1, 0, 0), WF_ERR_ARGUMENT, "pad(left [2,3]): dimension 1: -1 before and 0 after must not be negative; wf_slice");
    REFUSED(wf_pad_dims(a, (const struct wf_pad_size[]){{1, 1, 1}, {-1, 2, 2}}, 2, 0), WF_ERR_ARGUMENT, "dimension -1 is padded twice");
    REFUSED(wf_pad_dims(a, NULL, 1, 0), WF_ERR_ARGUMENT, "pad(left [2,3]): 1 dimensions are out of range, or the sizes are NULL");
    REFUSED(wf_pad(ids, 1, 0, 1, 0.5), WF_ERR_ARGUMENT, "the value 0.5 is not one of dtype I32");
    REFUSED(wf_pad(a, 0, INT64_MAX, 1, 0), WF_ERR_SHAPE, "too large");
    REFUSED(wf_tril(wf_select(a, 0, 0), 0), WF_ERR_SHAPE, "x must have at least two dimensions");
    REFUSED(wf_repeat(a, 2), WF_ERR_SHAPE, "repeat(left [2,3]): 1 numbers of repetitions for 2 dimensions");
    REFUSED(wf_repeat(a, 2, -1), WF_ERR_ARGUMENT, "repeat(left [2,3]): a number of repetitions in [2,-1] is negative");
    REFUSED(wf_repeat_to(a, NULL), WF_ERR_ARGUMENT, "repeat(left [2,3]): the numbers of repetitions are NULL");
    REFUSED(wf_unfold(a, 1, 4, 1), WF_ERR_SHAPE, "unfold(left [2,3]): a window has 4 elements, but dimension 1 only 3");
    REFUSED(wf_unfold(a, 1, 2, 0), WF_ERR_ARGUMENT, "the size 2 and the step 0 must be at least 1");
    REFUSED(wf_fold(a, 0, 3, 1), WF_ERR_SHAPE, "2 windows of 3 elements, a step of 1 apart, reach beyond the length 3");
    REFUSED(wf_fold(a, 1, 3, 1), WF_ERR_SHAPE, "dimension 1 of the result does not exist");
    REFUSED(wf_one_hot(ids, 7), WF_ERR_ARGUMENT, "7");
    REFUSED(wf_one_hot(a, 7), WF_ERR_ARGUMENT, "one_hot(left [2,3]): operand 1");
    REFUSED(wf_sort(ids, 1, false, NULL), WF_ERR_ARGUMENT, "sort(ids [1,2]): operand 1 has dtype I32");
    REFUSED(wf_argsort(a, -3, false), WF_ERR_SHAPE, "argsort(left [2,3]): dimension -3 does not exist");
    REFUSED(wf_arange(tape, 0, 1, 0), WF_ERR_ARGUMENT, "arange(): start 0, end 1 and step 0 must be finite, and the step not 0");
    REFUSED(wf_arange_ids(tape, 0, 1, -1), WF_ERR_ARGUMENT, "arange_ids(): the step -1 leads away from the end 1");
    REFUSED(wf_eye(tape, -1, 2), WF_ERR_ARGUMENT, "eye(): -1 rows and 2 columns must not be negative");
    REFUSED(wf_multinomial(a, 4, false), WF_ERR_ARGUMENT, "4 draws without replacement need as many weights, but there are 3");
    REFUSED(wf_multinomial(wf_scale(wf_square(a), -1), 1, true), WF_ERR_ARGUMENT, "must be finite and at least 0");
    REFUSED(wf_multinomial(wf_scale(a, 0), 1, true), WF_ERR_ARGUMENT, "row 0 has 0 weights above 0, fewer than the 1 that are needed");
    REFUSED(wf_multinomial(wf_relu(wf_round(wf_div(a, wf_add_constant(wf_abs(a), 1e9)))), 2, false), WF_ERR_ARGUMENT,
            "row 0 has 0 weights");
}
END_TEST

WF_TEST_MAIN("arrangement", against_pytorch, sorted, constants, errors)
