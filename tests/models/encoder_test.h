/* SPDX-License-Identifier: MIT */
/* Small encoders, for the tests of encoders. */
#ifndef TESTS_ENCODER_TEST_H
#define TESTS_ENCODER_TEST_H

#include <math.h>

#include "models_test.h"
#include <weft/encoder.h>

static inline struct wf_config small_encoder_config(double dropout)
{
    struct wf_config c = small_config("encoder-attention", 40, 29);
    set_key(&c, "dropout", dropout);
    return c;
}

/* A tensor's elements in an array; freed with wf_free. */
static inline wf_real *elements_of(const wf_tensor *x)
{
    wf_shape shape = wf_shape_of(x);
    int64_t n = wf_shape_count(&shape);
    wf_real *out = wf_alloc((size_t)(n + 1) * sizeof *out);
    ck_assert_ptr_nonnull(out);
    read_values(x, out, n);
    return out;
}

#endif
