/* SPDX-License-Identifier: MIT */
/* What the tests of ops share: a tape, inputs with known numbers, comparisons. */
#ifndef TESTS_OPS_TOOLS_H
#define TESTS_OPS_TOOLS_H

#include <math.h>

#include <weft/op.h>
#include <weft/ops.h>

#include "check_weft.h"

static const double loose = sizeof(wf_real) == 8 ? 1e-12 : 2e-6;

static inline wf_tape *tape_in(wf_mode mode)
{
    wf_error error = {0};
    wf_tape *tape = wf_tape_new(&error);
    ck_assert_msg(tape != NULL, "%s", error.message);
    wf_tape_reset(tape, mode, .seed = 11, .step = 5);
    return tape;
}

/* Numbers around 0 that follow from `stream` alone. */
static inline wf_tensor *normal(wf_tape *tape, uint64_t stream, const wf_shape *shape)
{
    int64_t n = wf_shape_count(shape);
    wf_real *x = malloc((size_t)(n + 1) * sizeof *x);
    wf_fill_normal(x, n, 0, 1, 77, stream);
    wf_tensor *t = wf_input(tape, x, shape, true);
    free(x);
    return t;
}

static inline wf_tensor *given(wf_tape *tape, const wf_real *x, const wf_shape *shape)
{
    return wf_input(tape, x, shape, true);
}

/* All elements of a tensor, or of its gradient, in row-major order; the caller frees. */
static inline wf_real *copy_of(const wf_array *a)
{
    wf_shape shape = wf_array_shape(a);
    wf_real *x = malloc((size_t)(wf_shape_count(&shape) + 1) * sizeof *x);
    wf_array to = wf_array_contiguous(x, WF_REAL, &shape);
    wf_array_copy(&to, a);
    return x;
}

static inline const char *trouble(const wf_tensor *t)
{
    return wf_tape_of(t) ? wf_tape_error(wf_tape_of(t))->message : "no tape";
}

static inline wf_real *values(const wf_tensor *t)
{
    wf_array a;
    ck_assert_msg(wf_view(t, &a) == WF_OK, "%s", trouble(t));
    return copy_of(&a);
}

static inline wf_real *gradient(const wf_tensor *t)
{
    wf_array a;
    ck_assert_msg(wf_grad(t, &a) == WF_OK, "%s", trouble(t));
    return copy_of(&a);
}

static inline int64_t size_of(const wf_tensor *t)
{
    wf_shape shape = wf_shape_of(t);
    return wf_shape_count(&shape);
}

static inline void same_numbers(const char *what, const wf_real *got, const wf_real *expected, int64_t n, double bound)
{
    double scale = 1e-30;
    for (int64_t i = 0; i < n; i++)
        scale = fmax(scale, fabs((double)expected[i]));
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(fabs((double)got[i] - (double)expected[i]) <= bound * scale, "%s: element %lld is %.12g, expected %.12g", what,
                      (long long)i, (double)got[i], (double)expected[i]);
}

static inline void expect(const char *what, const wf_tensor *t, const wf_real *expected, const wf_shape *shape)
{
    wf_real *got = values(t);
    wf_shape have = wf_shape_of(t);
    ck_assert_msg(wf_shape_equal(&have, shape), "%s has another shape", what);
    same_numbers(what, got, expected, size_of(t), loose);
    free(got);
}

static inline double number(const wf_tensor *t)
{
    double x;
    ck_assert_msg(wf_item(t, &x) == WF_OK, "%s", trouble(t));
    return x;
}

/* The tape must have an error that holds these words. */
static inline void expect_error(const wf_tensor *t, wf_status code, const char *words)
{
    const wf_error *e = wf_tape_error(wf_tape_of(t));
    ck_assert_msg(wf_is_poison(t), "no poison for: %s", words);
    ck_assert_msg(e->code == code, "code %d, expected %d: %s", e->code, code, e->message);
    ck_assert_msg(strstr(e->message, words) != NULL, "'%s' does not say '%s'", e->message, words);
}

#define NUMBERS(...) ((const wf_real[]){__VA_ARGS__})

#endif
