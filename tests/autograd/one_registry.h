/* SPDX-License-Identifier: MIT */
/* A test program's tape and registry: begin in each pass, finish at the end of a test. The program defines declare. */
#ifndef TESTS_ONE_REGISTRY_H
#define TESTS_ONE_REGISTRY_H

#include <math.h>

#include <weft/nn.h>

#include "tape_test.h"

static wf_registry *registry;

/* Declares the program's parameters, and sets what else its passes read. */
static void declare(wf_scope root);

static inline void begin(wf_mode mode)
{
    if (!tape) {
        wf_error e = {0};
        tape = new_tape();
        registry = wf_registry_new(&e);
        ck_assert_msg(registry != NULL, "%s", e.message);
        declare(wf_root(registry));
        ck_ok(wf_registry_build(registry, 3, error));
    }
    wf_grads_zero(wf_registry_grads(registry));
    wf_tape_reset(tape, mode, .step = 1, .exact = true, .first_row = 3);
}

static inline void finish(void)
{
    wf_tape_free(tape);
    wf_registry_free(registry);
    tape = NULL;
    registry = NULL;
}

/* Numbers of the shape of x: equal but for rounding, and not all 0. */
static inline void near(const wf_tensor *x, const wf_real *have, const wf_real *want, const char *what)
{
    double most = 0, worst = 0;
    for (int64_t i = 0; i < count_of(x); i++) {
        most = fmax(most, fabs((double)want[i]));
        worst = fmax(worst, fabs((double)have[i] - (double)want[i]));
    }
    ck_assert_msg(most > 1e-6 && worst <= most * (sizeof(wf_real) == 8 ? 1e-13 : 1e-5), "%s: %g of %g", what, worst, most);
}

static inline void normal_numbers(wf_real *x, int64_t count)
{
    wf_rng rng = wf_rng_new(5, 1);
    for (int64_t i = 0; i < count; i++)
        x[i] = (wf_real)wf_rng_normal(&rng);
}

#endif
