/* SPDX-License-Identifier: MIT */
/* Shared by the tests of registries and modules. */
#ifndef TESTS_NN_TEST_H
#define TESTS_NN_TEST_H

#include <weft/nn.h>

#include "new_tape.h"
#include "written.h"

static inline wf_registry *new_registry(void)
{
    wf_error error = {0};
    wf_registry *registry = wf_registry_new(&error);
    ck_assert_msg(registry != NULL, "%s", error.message);
    return registry;
}

/* A wrong declaration: the registry holds the error, and wf_registry_build returns it. Frees the registry. */
static inline void declared_wrong(wf_registry *r, const char *words)
{
    ck_fails(wf_registry_build(r, 1, error), WF_ERR_ARGUMENT, words);
    ck_says(wf_registry_error(r)->message, words);
    wf_registry_free(r);
}

static inline void ck_read(const wf_tensor *x, wf_real *out, int64_t count)
{
    ck_assert_msg(wf_read(x, out, count) == WF_OK, "%s", wf_tape_error(wf_tape_of(x))->message);
}

static inline void ck_backward(wf_tensor *loss)
{
    ck_assert_msg(wf_backward(loss) == WF_OK, "%s", wf_tape_error(wf_tape_of(loss))->message);
}

/* The elements of a contiguous gradient. */
static inline const wf_real *gradient_of(const wf_tensor *x)
{
    wf_array g;
    ck_assert_msg(wf_grad(x, &g) == WF_OK, "%s", wf_tape_error(wf_tape_of(x))->message);
    return g.data;
}

/* y is poison, with these words in its tape's message. Then the tape is ready for the next call. */
static inline void ck_poison(const wf_tensor *y, const char *words)
{
    wf_tape *tape = wf_tape_of(y);
    ck_assert(wf_is_poison(y));
    ck_says(wf_tape_error(tape)->message, words);
    wf_tape_reset(tape, WF_INFER);
}

#endif
