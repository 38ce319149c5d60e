/* SPDX-License-Identifier: MIT */
/* What the tests of ops share: a tape, inputs with known numbers, comparisons. */
#ifndef TESTS_OPS_TOOLS_H
#define TESTS_OPS_TOOLS_H

#include <math.h>

#include <weft/op.h>
#include <weft/ops.h>

#include "copies.h"
#include "new_tape.h"

static const double loose = sizeof(wf_real) == 8 ? 1e-12 : 2e-6;

static inline wf_tape *tape_in(wf_mode mode)
{
    wf_tape *tape = new_tape();
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
    wf_real *got = value_of(t);
    wf_shape have = wf_shape_of(t);
    ck_assert_msg(wf_shape_equal(&have, shape), "%s has another shape", what);
    same_numbers(what, got, expected, count_of(t), loose);
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
