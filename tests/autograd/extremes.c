/* SPDX-License-Identifier: MIT */
/* The greatest and smallest along a dimension and their places, and the k greatest: against PyTorch at ties, NaN and infinities. */
#include "golden_ops.h"

#define CALL(name, ...)                                                                                                                    \
    static wf_tensor *name(wf_tensor *const x[])                                                                                           \
    {                                                                                                                                      \
        return __VA_ARGS__;                                                                                                                \
    }
#define ALONG(d)                                                                                                                           \
    CALL(max_##d, wf_max_dim(x[0], d, false, NULL))                                                                                        \
    CALL(min_##d, wf_min_dim(x[0], d, false, &other))                                                                                      \
    CALL(argmax_##d, wf_argmax(x[0], d, false))                                                                                            \
    CALL(argmin_##d, (wf_min_dim(x[0], d, false, &other), other))
#define TOP(k)                                                                                                                             \
    CALL(top_##k, wf_top_k(x[0], k, -1, NULL))                                                                                             \
    CALL(top_##k##_ids, (wf_top_k(x[0], k, 1, &other), other))                                                                             \
    CALL(top_##k##_columns, wf_top_k(x[0], k, 0, &other))
static wf_tensor *other;
ALONG(0)
ALONG(1)
ALONG(2)
TOP(1)
TOP(3)
TOP(33)

START_TEST(against_pytorch)
{
    static const struct golden_case cases[] = {{"max_rows_0", max_0},
                                               {"argmax_rows_0", argmax_0},
                                               {"min_rows_0", min_0},
                                               {"argmin_rows_0", argmin_0},
                                               {"max_rows_1", max_1},
                                               {"argmax_rows_1", argmax_1},
                                               {"min_rows_1", min_1},
                                               {"argmin_rows_1", argmin_1},
                                               {"max_wide_0", max_0},
                                               {"argmax_wide_0", argmax_0},
                                               {"min_wide_0", min_0},
                                               {"argmin_wide_0", argmin_0},
                                               {"max_wide_1", max_1},
                                               {"argmax_wide_1", argmax_1},
                                               {"min_wide_1", min_1},
                                               {"argmin_wide_1", argmin_1},
                                               {"max_wide_2", max_2},
                                               {"argmax_wide_2", argmax_2},
                                               {"min_wide_2", min_2},
                                               {"argmin_wide_2", argmin_2},
                                               {"max_long_1", max_1},
                                               {"argmax_long_1", argmax_1},
                                               {"min_long_1", min_1},
                                               {"argmin_long_1", argmin_1},
                                               {"max_thin_0", max_0},
                                               {"argmax_thin_0", argmax_0},
                                               {"min_thin_0", min_0},
                                               {"argmin_thin_0", argmin_0},
                                               {"top_1", top_1},
                                               {"top_1_ids", top_1_ids},
                                               {"top_1_columns", top_1_columns},
                                               {"top_3", top_3},
                                               {"top_3_ids", top_3_ids},
                                               {"top_3_columns", top_3_columns},
                                               {"top_33", top_33},
                                               {"top_33_ids", top_33_ids},
                                               {"top_33_columns", top_33_columns}};
    golden_run_all("ops_extremes", cases, sizeof cases / sizeof *cases);
}
END_TEST

START_TEST(shapes_and_ties)
{
    static const char *const isas[] = {"avx512", "avx2", "base"};
    for (int s = 0; s < 3; s++) {
        if (!wf_isa_supported(isas[s]))
            continue;
        ck_ok(wf_init(error));
        ck_ok(wf_isa_use(isas[s], error));
        wf_tape *t = tape_in(WF_GRADIENTS);
        wf_tensor *x = given(t, NUMBERS(1, 3, 3, 2, 3, 1), WF_SHAPE(2, 3)), *ids;
        expect("max", wf_max(x), NUMBERS(3), &(wf_shape){0});
        expect("min", wf_min(x), NUMBERS(1), &(wf_shape){0});
        expect("kept", wf_max_dim(x, -1, true, &ids), NUMBERS(3, 3), WF_SHAPE(2, 1));
        expect("ids", wf_to_real(ids), NUMBERS(1, 1), WF_SHAPE(2, 1));
        expect("argmin", wf_to_real(wf_argmin(x, 0, true)), NUMBERS(0, 0, 1), WF_SHAPE(1, 3));
        expect("of nothing", wf_max_dim(wf_slice(x, 0, 0, 0), 1, true, &ids), NUMBERS(0), WF_SHAPE(0, 1));
        expect("top of ties", wf_top_k(x, 3, 1, &ids), NUMBERS(3, 3, 1, 3, 2, 1), WF_SHAPE(2, 3));
        expect("ids of ties", wf_to_real(ids), NUMBERS(1, 2, 0, 1, 0, 2), WF_SHAPE(2, 3));
        ck_assert(wf_backward(wf_max(x)) == WF_OK);
        wf_real *g = gradient_of(x);
        same_numbers("first of ties", g, NUMBERS(0, 1, 0, 0, 0, 0), 6, 0);
        free(g);
        /* rows of every length, a winner at every place, ties behind it, a NaN behind that */
        static wf_real row[200];
        for (int n = 1; n <= 150; n += n < 70 ? 1 : 13)
            for (int at = 0; at < n; at++) {
                wf_tape_reset(t, WF_INFER);
                for (int i = 0; i < n; i++)
                    row[i] = (wf_real)(i % 7);
                row[at] = 9;
                if (at + 3 < n)
                    row[at + 3] = 9;
                for (int nan = 0; nan < 2; nan++) {
                    int want = nan ? n - 1 - at / 2 : at;
                    if (nan)
                        row[want] = row[n - 1] = (wf_real)NAN;
                    wf_tensor *id = wf_argmax(given(t, row, WF_SHAPE(1, n)), 1, false),
                              *columns = wf_argmax(wf_expand(given(t, row, WF_SHAPE(n, 1)), n, 3), 0, false);
                    for (int k = 0; k < 4; k++) {
                        wf_array view;
                        ck_assert(wf_view(k ? columns : id, &view) == WF_OK);
                        int32_t got = ((const int32_t *)view.data)[k ? k - 1 : 0];
                        ck_assert_msg(got == want, "%s: %d of %d is %d", isas[s], want, n, got);
                    }
                }
            }
        wf_tape_free(t);
    }
}
END_TEST

/* The k greatest of many rows with many ties, by sorting. */
static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return x[0] > y[0] ? -1 : x[0] < y[0] ? 1 : x[1] < y[1] ? -1 : 1;
}

static int nan_first(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return isnan(x[0]) != isnan(y[0]) ? (isnan(x[0]) ? -1 : 1) : isnan(x[0]) ? (x[1] < y[1] ? -1 : 1) : by_value(a, b);
}

/* Rows of a length at which they are searched, and of one at which all of them is sorted. */
static void check_top_k(int rows, int n)
{
    wf_real *x = malloc(sizeof *x * (size_t)(rows * n));
    double(*sorted)[2] = malloc(sizeof *sorted * (size_t)n);
    for (int i = 0; i < rows * n; i++)
        x[i] = (wf_real)((i * 7919 + i / 3) % (i < rows * n / 2 ? 37 : 100003)) - 18;
    for (int i = 0; i < rows * n; i += 53)
        x[i] = i % 4 == 0 ? (wf_real)NAN : i % 4 == 1 ? (wf_real)-INFINITY : i % 4 == 2 ? (wf_real)INFINITY : (wf_real)-0.;
    wf_tape *t = tape_in(WF_INFER);
    for (int64_t k = 1; k <= n; k = k == n ? n + 1 : k < 70 ? k + 23 : k + 431 < n ? k + 431 : n) {
        wf_tensor *ids, *top = wf_top_k(given(t, x, WF_SHAPE(rows, n)), k, 1, &ids);
        wf_real *got = value_of(top), *id = value_of(wf_to_real(ids));
        for (int r = 0; r < rows; r++) {
            for (int i = 0; i < n; i++)
                sorted[i][0] = (double)x[r * n + i], sorted[i][1] = i;
            qsort(sorted, (size_t)n, sizeof *sorted, nan_first);
            for (int i = 0; i < k; i++)
                ck_assert((got[r * k + i] == (wf_real)sorted[i][0] || (isnan(got[r * k + i]) && isnan(sorted[i][0]))) &&
                          id[r * k + i] == (wf_real)sorted[i][1]);
        }
        free(got);
        free(id);
    }
    wf_tape_free(t);
    free(x);
    free(sorted);
}

START_TEST(top_k_sorts)
{
    for (int threads = 1; threads <= 5; threads += 2) {
        ck_ok(wf_init(error, .threads = threads));
        check_top_k(40, 500);
        check_top_k(7, 2100);
    }
}
END_TEST

/* Many rows, which are searched side by side: as each row alone, by sorting; ties, infinities and NaN among them. */
START_TEST(short_rows)
{
    enum { ROWS = 61, LONGEST = 70 };
    static const char *const isas[] = {"avx512", "avx2", "base"};
    static wf_real x[ROWS * LONGEST];
    static double sorted[LONGEST][2];
    wf_rng rng = wf_rng_new(7, 1);
    for (int s = 0; s < 6; s++) {
        if (!wf_isa_supported(isas[s % 3]))
            continue;
        ck_ok(wf_init(error, .threads = s < 3 ? 1 : 5));
        ck_ok(wf_isa_use(isas[s % 3], error));
        wf_tape *t = tape_in(WF_INFER);
        for (int n = 1; n <= LONGEST; n += n < 20 ? 1 : 5) {
            static const wf_real special[] = {(wf_real)NAN, (wf_real)INFINITY, -(wf_real)INFINITY, 0};
            for (int i = 0; i < ROWS * n; i++) {
                const int die = (int)wf_rng_below(&rng, 40);
                x[i] = die < 4 || i / n == 5 ? special[die % 4] : (wf_real)die / 4 - 3;
            }
            wf_tape_reset(t, WF_INFER);
            wf_tensor *in = given(t, x, WF_SHAPE(ROWS, n));
            wf_real *greatest = value_of(wf_max_dim(in, 1, false, NULL)), *at = value_of(wf_to_real(wf_argmax(in, 1, false)));
            wf_real *negated = value_of(wf_min_dim(wf_neg(in), 1, false, NULL));
            for (int k = 1; k <= n && k <= 18; k += k < 10 ? 1 : 7) {
                wf_tensor *ids, *top = wf_top_k(in, k, 1, &ids);
                wf_real *got = value_of(top), *id = value_of(wf_to_real(ids));
                for (int r = 0; r < ROWS; r++) {
                    for (int i = 0; i < n; i++)
                        sorted[i][0] = (double)x[r * n + i], sorted[i][1] = i;
                    qsort(sorted, (size_t)n, sizeof *sorted, nan_first);
                    for (int i = 0; i < k; i++) {
                        const wf_real value = (wf_real)sorted[i][0], g = got[r * k + i];
                        ck_assert_msg((g == value || (isnan(g) && isnan(value))) && id[r * k + i] == (wf_real)sorted[i][1],
                                      "%s: row %d of %d elements, number %d of %d is %g at %g, not %g at %g", isas[s % 3], r, n, i, k,
                                      (double)g, (double)id[r * k + i], (double)value, sorted[i][1]);
                        if (i == 0)
                            ck_assert(at[r] == id[r * k] && memcmp(&greatest[r], &g, sizeof g) == 0 &&
                                      (negated[r] == -value || (isnan(value) && isnan(negated[r]))));
                    }
                }
                free(got);
                free(id);
            }
            free(greatest);
            free(at);
            free(negated);
        }
        wf_tape_free(t);
    }
}
END_TEST

START_TEST(errors)
{
    static const char *const words[] = {"max(left [2,3]): dimension 2 does not exist",
                                        "max(slice [2,0]): dimension 1 has size 0: there is no greatest or smallest element",
                                        "argmin(ids [2,2]): operand 1 has dtype I32",
                                        "top_k(left [2,3]): k = 4 is not in 1 .. 3, the size of dimension 1",
                                        "top_k(left [2,3]): k = 0 is not in 1 .. 2, the size of dimension -2",
                                        "min(none): operand 1 is NULL"};
    wf_tape *t = tape_in(WF_GRADIENTS);
    for (int i = 0; i < (int)(sizeof words / sizeof *words); i++) {
        wf_tape_reset(t, WF_GRADIENTS);
        wf_tensor *a = wf_name(normal(t, 1, WF_SHAPE(2, 3)), "left"), *ids = wf_ids(t, (int32_t[]){0, 1, 2, 3}, 2, 2), *given_ids = NULL;
        wf_tensor *y = i == 0   ? wf_max_dim(a, 2, false, &given_ids)
                       : i == 1 ? wf_max_dim(wf_slice(a, 1, 0, 0), 1, false, NULL)
                       : i == 2 ? wf_argmin(ids, 0, false)
                       : i == 3 ? wf_top_k(a, 4, 1, NULL)
                       : i == 4 ? wf_top_k(a, 0, -2, &given_ids)
                                : wf_min_dim(NULL, 0, false, NULL);
        expect_error(y, i == 0 || i == 1 ? WF_ERR_SHAPE : WF_ERR_ARGUMENT, words[i]);
        ck_assert(!given_ids || wf_is_poison(given_ids));
    }
    wf_tape_free(t);
}
END_TEST

WF_TEST_MAIN("extremes", against_pytorch, shapes_and_ties, top_k_sorts, short_rows, errors)
