/* SPDX-License-Identifier: MIT */
/* Values of tensors. On an error a test fails with the tape's message. */
#ifndef TESTS_MODELS_TAPE_VALUES_H
#define TESTS_MODELS_TAPE_VALUES_H

#include "new_tape.h"

/* A call on tensor x that must succeed. */
#define ck_on_tape(call, x) ck_assert_msg((call) == WF_OK, "%s: %s", #call, wf_tape_error(wf_tape_of(x))->message)

static inline void read_values(const wf_tensor *x, wf_real *out, int64_t count)
{
    ck_on_tape(wf_read(x, out, count), x);
}

static inline double item_of(const wf_tensor *x)
{
    double value = 0;
    ck_on_tape(wf_item(x, &value), x);
    return value;
}

static inline wf_array view_of(const wf_tensor *x)
{
    wf_array view;
    ck_on_tape(wf_view(x, &view), x);
    return view;
}

/* Runs the backward pass; returns the loss. */
static inline double backward(wf_tensor *loss)
{
    ck_on_tape(wf_backward(loss), loss);
    return item_of(loss);
}

#endif
