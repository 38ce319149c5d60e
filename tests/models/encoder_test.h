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

/* A tensor's elements, side by side; freed with wf_free. */
static inline wf_real *elements_of(wf_tape *tape, const wf_tensor *x)
{
    wf_shape shape = wf_shape_of(x);
    int64_t n = wf_shape_count(&shape);
    wf_real *out = wf_alloc((size_t)(n + 1) * sizeof *out);
    ck_assert_ptr_nonnull(out);
    ck_assert_msg(wf_read(x, out, n) == WF_OK, "%s", wf_tape_error(tape)->message);
    return out;
}

/* x is poison, the message is one line that says so; the tape is fit for the next try. */
static inline void poisoned(wf_tape *tape, const wf_tensor *x, wf_status code, const char *says)
{
    ck_assert(wf_is_poison(x));
    ck_assert_msg(strstr(wf_tape_error(tape)->message, says), "\"%s\" lacks \"%s\"", wf_tape_error(tape)->message, says);
    ck_assert_int_eq(wf_tape_error(tape)->code, code);
    ck_assert(!strchr(wf_tape_error(tape)->message, '\n'));
    wf_tape_reset(tape, WF_INFER);
}

#endif
