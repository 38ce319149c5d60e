/* SPDX-License-Identifier: MIT */
/* Copies of what a tensor holds. */
#ifndef TESTS_COPIES_H
#define TESTS_COPIES_H

#include <weft/tape.h>

#include "check_weft.h"

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

static inline wf_real *value_of(const wf_tensor *t)
{
    wf_array a;
    ck_assert_msg(wf_view(t, &a) == WF_OK, "%s", trouble(t));
    return copy_of(&a);
}

static inline wf_real *gradient_of(const wf_tensor *t)
{
    wf_array a;
    ck_assert_msg(wf_grad(t, &a) == WF_OK, "%s", trouble(t));
    return copy_of(&a);
}

static inline int64_t count_of(const wf_tensor *t)
{
    wf_shape shape = wf_shape_of(t);
    return wf_shape_count(&shape);
}

#endif
