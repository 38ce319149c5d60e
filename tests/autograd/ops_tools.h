/* SPDX-License-Identifier: MIT */
/* Shared by the tests of ops: inputs with known numbers, comparisons, hashes. */
#ifndef TESTS_OPS_TOOLS_H
#define TESTS_OPS_TOOLS_H

#include <math.h>

#include <weft/op.h>
#include <weft/ops.h>

#include "one_tape.h"

#include "isas.h"

static const double loose = sizeof(wf_real) == 8 ? 1e-12 : 2e-6;

/* Numbers around 0 that follow from `stream` alone. */
static inline wf_tensor *normal(uint64_t stream, const wf_shape *shape)
{
    int64_t n = wf_shape_count(shape);
    wf_real *x = malloc((size_t)(n + 1) * sizeof *x);
    wf_fill_normal(x, n, 0, 1, 77, stream);
    wf_tensor *t = wf_input(tape, x, shape, true);
    free(x);
    return t;
}

static inline wf_tensor *given(const wf_real *x, const wf_shape *shape)
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

static inline void expect_gradient(const char *what, const wf_tensor *t, const wf_real *expected)
{
    wf_real *got = gradient_of(t);
    same_numbers(what, got, expected, count_of(t), loose);
    free(got);
}

/* FNV-1a over bytes; a hash starts at HASH. */
static const uint64_t HASH = 14695981039346656037u;
static inline uint64_t hash_of(uint64_t hash, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    return hash;
}

static inline uint64_t hash_of_value(uint64_t hash, const wf_tensor *t)
{
    wf_real *x = value_of(t);
    hash = hash_of(hash, x, (size_t)count_of(t) * sizeof *x);
    free(x);
    return hash;
}

static inline uint64_t hash_of_gradient(uint64_t hash, const wf_tensor *t)
{
    wf_real *x = gradient_of(t);
    hash = hash_of(hash, x, (size_t)count_of(t) * sizeof *x);
    free(x);
    return hash;
}

static inline double number(const wf_tensor *t)
{
    double x;
    ck_assert_msg(wf_item(t, &x) == WF_OK, "%s", trouble(t));
    return x;
}

#endif
