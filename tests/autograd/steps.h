/* SPDX-License-Identifier: MIT */
/* Ops whose gradient is 0 everywhere: a factor of it, or its sign, makes no difference. */
#ifndef TESTS_STEPS_H
#define TESTS_STEPS_H

#include <string.h>

#include <weft/op.h>

static inline bool is_step(const wf_op *op)
{
    return strcmp(op->name, "sign") == 0 || strcmp(op->name, "floor") == 0 || strcmp(op->name, "round") == 0;
}

#endif
