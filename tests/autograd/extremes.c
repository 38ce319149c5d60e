/* SPDX-License-Identifier: MIT */
/* The greatest and smallest along a dimension with their places, and the k greatest: ties, NaN and infinities, against PyTorch. */
#include "golden_ops.h"

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
#define OF(set, d)                                                                                                                         \
    {"max_" set "_" #d, max_##d}, {"argmax_" set "_" #d, argmax_##d}, {"min_" set "_" #d, min_##d},                                        \
    {                                                                                                                                      \
        "argmin_" set "_" #d, argmin_##d                                                                                                   \
    }
#define OF_TOP(k)                                                                                                                          \
    {"top_" #k, top_##k}, {"top_" #k "_ids", top_##k##_ids},                                                                               \
    {                                                                                                                                      \
        "top_" #k "_columns", top_##k##_columns                                                                                            \
    }
    static const struct golden_case cases[] = {OF("rows", 0), OF("rows", 1), OF("wide", 0), OF("wide", 1), OF("wide", 2),
                                               OF("long", 1), OF("thin", 0), OF_TOP(1),     OF_TOP(3),     OF_TOP(33)};
    golden_run_all("ops_extremes", cases, sizeof cases / sizeof *cases);
}
END_TEST

START_TEST(shapes_and_ties)
{
    for (int s = 0; s < ISAS; s++) {
        if (!isa_used(s))
            continue;
        begin(WF_GRADIENTS);
        wf_tensor *x = given(NUMBERS(1, 3, 3, 2, 3, 1), WF_SHAPE(2, 3)), *ids;
        expect("max", wf_max(x), NUMBERS(3), &(wf_shape){0});
        expect("min", wf_min(x), NUMBERS(1), &(wf_shape){0});
        expect("kept", wf_max_dim(x, -1, true, &ids), NUMBERS(3, 3), WF_SHAPE(2, 1));
        expect("ids", wf_to_real(ids), NUMBERS(1, 1), WF_SHAPE(2, 1));
        expect("argmin", wf_to_real(wf_argmin(x, 0, true)), NUMBERS(0, 0, 1), WF_SHAPE(1, 3));
        expect("of nothing", wf_max_dim(wf_slice(x, 0, 0, 0), 1, true, &ids), NUMBERS(0), WF_SHAPE(0, 1));
        expect("top of ties", wf_top_k(x, 3, 1, &ids), NUMBERS(3, 3, 1, 3, 2, 1), WF_SHAPE(2, 3));
        expect("ids of ties", wf_to_real(ids), NUMBERS(1, 2, 0, 1, 0, 2), WF_SHAPE(2, 3));
        ran(wf_backward(wf_max(x)));
        expect_gradient("first of ties", x, NUMBERS(0, 1, 0, 0, 0, 0));
        /* rows of every length, a winner at every place, ties behind it, a NaN behind that */
        static wf_real row[200];
        for (int n = 1; n <= 150; n += n < 70 ? 1 : 13)
            for (int at = 0; at < n; at++) {
                begin(WF_INFER);
                for (int i = 0; i < n; i++)
                    row[i] = (wf_real)(i % 7);
                row[at] = 9;
                if (at + 3 < n)
                    row[at + 3] = 9;
                for (int nan = 0; nan < 2; nan++) {
                    int want = nan ? n - 1 - at / 2 : at;
                    if (nan)
                        row[want] = row[n - 1] = (wf_real)NAN;
                    wf_tensor *id = wf_argmax(given(row, WF_SHAPE(1, n)), 1, false),
                              *columns = wf_argmax(wf_expand(given(row, WF_SHAPE(n, 1)), n, 3), 0, false);
                    for (int k = 0; k < 4; k++) {
                        wf_array view;
                        ran(wf_view(k ? columns : id, &view));
                        int32_t got = ((const int32_t *)view.data)[k ? k - 1 : 0];
                        ck_assert_msg(got == want, "%s: %d of %d is %d", wf_isa(), want, n, got);
                    }
                }
            }
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

/* Called with a length at which rows are searched, and with one at which the whole row is sorted. */
static void check_top_k(int rows, int n)
{
    wf_real *x = malloc(sizeof *x * (size_t)(rows * n));
    double(*sorted)[2] = malloc(sizeof *sorted * (size_t)n);
    for (int i = 0; i < rows * n; i++)
        x[i] = (wf_real)((i * 7919 + i / 3) % (i < rows * n / 2 ? 37 : 100003)) - 18;
    for (int i = 0; i < rows * n; i += 53)
        x[i] = i % 4 == 0 ? (wf_real)NAN : i % 4 == 1 ? (wf_real)-INFINITY : i % 4 == 2 ? (wf_real)INFINITY : (wf_real)-0.;
    begin(WF_INFER);
    for (int64_t k = 1; k <= n; k = k == n ? n + 1 : k < 70 ? k + 23 : k + 431 < n ? k + 431 : n) {
        wf_tensor *ids, *top = wf_top_k(given(x, WF_SHAPE(rows, n)), k, 1, &ids);
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

/* Many short rows, which are searched side by side, give what sorting each of them gives, with ties, infinities and NaN. */
START_TEST(short_rows)
{
    enum { ROWS = 61, LONGEST = 70 };
    static wf_real x[ROWS * LONGEST];
    static double sorted[LONGEST][2];
    wf_rng rng = wf_rng_new(7, 1);
    for (int s = 0; s < 6; s++) {
        if (!isa_used(s % 3))
            continue;
        ck_ok(wf_init(error, .threads = s < 3 ? 1 : 5));
        begin(WF_INFER);
        for (int n = 1; n <= LONGEST; n += n < 20 ? 1 : 5) {
            static const wf_real special[] = {(wf_real)NAN, (wf_real)INFINITY, -(wf_real)INFINITY, 0};
            for (int i = 0; i < ROWS * n; i++) {
                const int die = (int)wf_rng_below(&rng, 40);
                x[i] = die < 4 || i / n == 5 ? special[die % 4] : (wf_real)die / 4 - 3;
            }
            begin(WF_INFER);
            wf_tensor *in = given(x, WF_SHAPE(ROWS, n));
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
                                      "%s: row %d of %d elements, number %d of %d is %g at %g, not %g at %g", wf_isa(), r, n, i, k,
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
    }
}
END_TEST

START_TEST(errors)
{
#define REFUSED(call, code, words)                                                                                                         \
    do {                                                                                                                                   \
        begin(WF_GRADIENTS);                                                                                                               \
        wf_tensor *a = wf_name(normal(1, WF_SHAPE(2, 3)), "left"), *ids = wf_ids(tape, I32(0, 1, 2, 3), 2, 2), *given_ids = NULL;          \
        (void)a, (void)ids;                                                                                                                \
        expect_error(call, code, words);                                                                                                   \
        ck_assert(!given_ids || wf_is_poison(given_ids));                                                                                  \
    } while (0)
    REFUSED(wf_max_dim(a, 2, false, &given_ids), WF_ERR_SHAPE, "max(left [2,3]): dimension 2 does not exist");
    REFUSED(wf_max_dim(wf_slice(a, 1, 0, 0), 1, false, NULL), WF_ERR_SHAPE,
            "max(slice [2,0]): dimension 1 has size 0: there is no greatest or smallest element");
    REFUSED(wf_argmin(ids, 0, false), WF_ERR_ARGUMENT, "argmin(ids [2,2]): operand 1 has dtype I32");
    REFUSED(wf_top_k(a, 4, 1, NULL), WF_ERR_ARGUMENT, "top_k(left [2,3]): k = 4 is not in 1 .. 3, the size of dimension 1");
    REFUSED(wf_top_k(a, 0, -2, &given_ids), WF_ERR_ARGUMENT, "top_k(left [2,3]): k = 0 is not in 1 .. 2, the size of dimension -2");
    REFUSED(wf_min_dim(NULL, 0, false, NULL), WF_ERR_ARGUMENT, "min(none): operand 1 is NULL");
}
END_TEST

WF_TEST_MAIN("extremes", against_pytorch, shapes_and_ties, top_k_sorts, short_rows, errors)
