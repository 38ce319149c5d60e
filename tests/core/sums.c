/* SPDX-License-Identifier: MIT */
/* wf_array_sum: every pattern of kept and summed dimensions, against sums in double; rounding, bits, memory. */
#include "arrays.h"

#include <float.h>
#include <math.h>

#include <weft/compute.h>
#include <weft/internal/shape.h>

static const double epsilon = sizeof(wf_real) == 4 ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
static const int team[] = {1, 2, 5};

enum { MANY = 1000000, PLACES = 250000 };
static wf_real *numbers, result[PLACES], first[PLACES];
#ifdef WF_DOUBLE
static long double sum[PLACES], size[PLACES];
#else
static double sum[PLACES], size[PLACES];
#endif

/* `order`: which dimension of the array in memory is dimension d; `step`: elements from one to the next in memory; 0: all are one. */
static const struct pattern {
    const char *what;
    int ndim;
    int64_t from[4], to[4];
    int order[4], step;
} patterns[] = {
    {"leading, wide", 2, {1000, 1000}, {1, 1000}, {0, 1}, 1},
    {"leading, narrow", 2, {250000, 4}, {1, 4}, {0, 1}, 1},
    {"leading two", 3, {1000, 100, 10}, {1, 1, 10}, {0, 1, 2}, 1},
    {"trailing", 2, {1000, 1000}, {1000, 1}, {0, 1}, 1},
    {"trailing, long", 2, {4, 250000}, {4, 1}, {0, 1}, 1},
    {"trailing, short", 2, {250000, 4}, {250000, 1}, {0, 1}, 1},
    {"trailing, a pair", 2, {100003, 2}, {100003, 1}, {0, 1}, 1},
    {"trailing, of odd length", 3, {41, 27, 15}, {41, 27, 1}, {0, 1, 2}, 1},
    {"trailing, two registers", 2, {1003, 31}, {1003, 1}, {0, 1}, 1},
    {"trailing, short, of few rows", 2, {3, 20}, {3, 1}, {0, 1}, 1},
    {"all", 2, {1000, 1000}, {1, 1}, {0, 1}, 1},
    {"middle", 3, {10, 10000, 10}, {10, 1, 10}, {0, 1, 2}, 1},
    {"mixed", 4, {100, 10, 100, 10}, {1, 10, 1, 10}, {0, 1, 2, 3}, 1},
    {"mixed, ends summed", 4, {10, 100, 100, 10}, {10, 1, 100, 1}, {0, 1, 2, 3}, 1},
    {"outer ends", 3, {100, 100, 100}, {1, 100, 1}, {0, 1, 2}, 1},
    {"leading of a transposed array", 2, {1000, 1000}, {1, 1000}, {1, 0}, 1},
    {"trailing of a transposed array", 2, {1000, 1000}, {1000, 1}, {1, 0}, 1},
    {"kept dimensions exchanged", 3, {100, 100, 100}, {1, 100, 100}, {0, 2, 1}, 1},
    {"mixed, with gaps", 4, {50, 10, 100, 10}, {1, 10, 1, 10}, {0, 1, 2, 3}, 2},
    {"with gaps", 2, {1000, 500}, {1, 500}, {0, 1}, 2},
    {"with gaps, trailing", 2, {1000, 500}, {1000, 1}, {0, 1}, 2},
    {"one number everywhere", 2, {1000, 1000}, {1, 1000}, {0, 1}, 0},
    {"nothing summed", 2, {500, 400}, {500, 400}, {1, 0}, 1},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

static void start(int threads)
{
    ck_ok(wf_init(error, .threads = threads));
    if (numbers)
        return;
    numbers = wf_alloc(MANY * sizeof *numbers);
    ck_assert_ptr_nonnull(numbers);
    wf_fill_uniform(numbers, MANY, 0, 1, 3, 4);
}

static wf_array source(const struct pattern *p)
{
    wf_shape shape = {p->ndim, {0}};
    int64_t stride[4], step = p->step;
    for (int d = 0; d < p->ndim; d++)
        shape.dim[d] = p->from[d];
    wf_array a = wf_array_contiguous(numbers, WF_REAL, &shape);
    for (int k = p->ndim - 1; k >= 0; k--) /* k: place in memory, the innermost last */
        for (int d = 0; d < p->ndim; d++)
            if (p->order[d] == k) {
                stride[d] = step;
                step *= p->from[d];
            }
    memcpy(a.stride, stride, (size_t)p->ndim * sizeof *stride);
    return a;
}

static wf_array target(const struct pattern *p)
{
    wf_shape shape = {p->ndim, {0}};
    for (int d = 0; d < p->ndim; d++)
        shape.dim[d] = p->to[d];
    return wf_array_contiguous(result, WF_REAL, &shape);
}

/* Element by element, into sum and size. */
static void by_the_book(const wf_array *src, const wf_array *dst)
{
    int64_t index[4] = {0}, from = 0, to = 0, n = wf_array_count(src);
    memset(sum, 0, sizeof sum);
    memset(size, 0, sizeof size);
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)((const wf_real *)src->data)[from];
        sum[to] += x;
        size[to] += fabs(x);
        for (int d = src->ndim - 1; d >= 0; d--) {
            const int64_t step = dst->dim[d] == 1 ? 0 : dst->stride[d];
            from += src->stride[d];
            to += step;
            if (++index[d] < src->dim[d])
                break;
            from -= src->dim[d] * src->stride[d];
            to -= src->dim[d] * step;
            index[d] = 0;
        }
    }
}

/* A million numbers of one sign: running sums in float were off by up to a hundred. In double nothing wider holds the partial sums. */
START_TEST(every_pattern_is_exact_and_has_one_result)
{
    for (int i = 0; i < PATTERNS; i++) {
        const struct pattern *p = &patterns[i];
        start(1);
        wf_array src = source(p), dst = target(p);
        const int64_t places = wf_array_count(&dst);
        by_the_book(&src, &dst);
        double worst = 0;
        for (int t = 0; t < 3; t++) {
            start(team[t]);
            memset(result, 0xff, (size_t)places * sizeof *result); /* NaN: it is written, not added to */
            ck_assert_int_eq(wf_array_sum(&dst, &src, 1, false), WF_OK);
            for (int64_t k = 0; k < places; k++) {
                const double error = fabs((double)(result[k] - sum[k])) / (double)size[k] / epsilon;
                worst = error > worst ? error : worst;
                if (!(error <= (sizeof(wf_real) == 4 ? 2 : 10)))
                    ck_abort_msg("%s: element %lld off by %.1f rounding errors", p->what, (long long)k, error);
            }
            if (t == 0)
                memcpy(first, result, (size_t)places * sizeof *result);
            ck_assert_msg(memcmp(first, result, (size_t)places * sizeof *result) == 0, "%s: other bits with %d threads", p->what, team[t]);
        }
        if (getenv("VERBOSE"))
            printf("%-32s %.2f rounding errors\n", p->what, worst);
    }
}
END_TEST

START_TEST(scaled_and_added)
{
    start(2);
    for (int i = 0; i < PATTERNS; i++) {
        const struct pattern *p = &patterns[i];
        wf_array src = source(p), dst = target(p);
        const int64_t places = wf_array_count(&dst);
        by_the_book(&src, &dst);
        for (int64_t k = 0; k < places; k++)
            result[k] = (wf_real)k;
        ck_assert_int_eq(wf_array_sum(&dst, &src, -0.25, true), WF_OK);
        for (int64_t k = 0; k < places; k++) {
            const double want = (double)k - 0.25 * (double)sum[k];
            ck_assert_msg(fabs((double)result[k] - want) <= 4 * epsilon * ((double)k + (double)size[k]), "%s: element %lld is %g, not %g",
                          p->what, (long long)k, (double)result[k], want);
        }
    }
}
END_TEST

/* If an allocation fails, the sum fails and leaves dst as it was, or has the usual bits. */
START_TEST(without_memory)
{
    start(1);
    for (int i = 0; i < PATTERNS; i++) {
        const struct pattern *p = &patterns[i];
        wf_array src = source(p), dst = target(p);
        const int64_t places = wf_array_count(&dst);
        const size_t bytes = (size_t)places * sizeof *result;
        wf_scratch_drop();
        const int64_t before = wf_alloc_count();
        ck_assert_int_eq(wf_array_sum(&dst, &src, 1, false), WF_OK);
        const int64_t allocations = wf_alloc_count() - before;
        memcpy(first, result, bytes);
        for (int64_t fail = 0; fail <= allocations; fail++) {
            wf_scratch_drop();
            memset(result, 0, bytes);
            wf_alloc_fail_after(fail);
            const wf_status status = wf_array_sum(&dst, &src, 1, false);
            wf_alloc_fail_after(-1);
            ck_assert_int_eq(status, fail < allocations ? WF_ERR_MEMORY : WF_OK);
            for (int64_t k = 0; status != WF_OK && k < places; k++)
                ck_assert_msg(result[k] == 0, "%s: dst was changed", p->what);
            ck_assert_msg(status != WF_OK || memcmp(first, result, bytes) == 0, "%s: other bits", p->what);
        }
    }
}
END_TEST

/* With any strides and any number of threads the sum has the bits of a copy's sum, or fails for want of memory. */
START_TEST(in_logical_order)
{
    wf_real *copy = malloc(sizeof *copy * MANY);
    start(1);
    for (int i = 0; i < PATTERNS; i++) {
        const struct pattern *p = &patterns[i];
        const wf_array src = source(p), dst = target(p);
        const wf_shape shape = wf_array_shape(&src);
        const wf_array row_major = wf_array_contiguous(copy, WF_REAL, &shape);
        const size_t bytes = (size_t)wf_array_count(&dst) * sizeof *result;
        start(1);
        wf_array_copy(&row_major, &src);
        ck_assert_int_eq(wf_array_sum(&dst, &row_major, 0.7, false), WF_OK);
        memcpy(first, result, bytes);
        for (int k = 0; k < (int)(sizeof team / sizeof *team); k++) {
            start(team[k]);
            memset(result, 0, bytes);
            ck_assert_int_eq(wf_array_sum_in_order(&dst, &src, 0.7), WF_OK);
            ck_assert_msg(memcmp(first, result, bytes) == 0, "%s: other bits", p->what);
        }
        start(1);
        wf_scratch_drop();
        wf_alloc_fail_after(0);
        const wf_status status = wf_array_sum_in_order(&dst, &src, 0.7);
        wf_alloc_fail_after(-1);
        ck_assert(status == WF_ERR_MEMORY || memcmp(first, result, bytes) == 0);
    }
    free(copy);
}
END_TEST

START_TEST(edges)
{
    wf_real y[12];
    start(1);
    wf_array x = REALS(numbers, 3, 4), row = REALS(y, 4);
    wf_array none = REALS(numbers, 0, 4), wide = REALS(y, 3);
    wf_array deep = REALS(y, 1, 1, 1, 4), ids = wf_array_contiguous(y, WF_I32, WF_SHAPE(4));
    wf_array scalar = wf_array_contiguous(y, WF_REAL, &(wf_shape){0}), one = wf_array_contiguous(numbers, WF_REAL, &(wf_shape){0});
    for (int k = 0; k < 4; k++)
        y[k] = 7;
    ck_assert_int_eq(wf_array_sum(&row, &none, 1, true), WF_OK);
    ck_assert(y[0] == 7 && y[3] == 7);
    ck_assert_int_eq(wf_array_sum(&row, &none, 1, false), WF_OK); /* the sum of nothing */
    ck_assert(y[0] == 0 && y[3] == 0);
    ck_assert_int_eq(wf_array_sum(&deep, &x, 1, false), WF_OK);
    ck_assert(fabs((double)(y[1] - (numbers[1] + numbers[5] + numbers[9]))) <= 1e-6);
    ck_assert_int_eq(wf_array_sum(&scalar, &one, 1, false), WF_OK);
    ck_assert(y[0] == numbers[0]);
    ck_assert_int_eq(wf_array_sum(&wide, &x, 1, false), WF_ERR_SHAPE);
    ck_assert_int_eq(wf_array_sum(&x, &row, 1, false), WF_ERR_SHAPE);
    ck_assert_int_eq(wf_array_sum(&ids, &x, 1, false), WF_ERR_ARGUMENT);
}
END_TEST

WF_TEST_MAIN("sums", every_pattern_is_exact_and_has_one_result, in_logical_order, scaled_and_added, without_memory, edges)
