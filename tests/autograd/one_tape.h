/* SPDX-License-Identifier: MIT */
/* A test program's tape without parameters: begin in each pass. */
#ifndef TESTS_ONE_TAPE_H
#define TESTS_ONE_TAPE_H

#include "tape_test.h"

#define NUMBERS(...) ((const wf_real[]){__VA_ARGS__})
#define I32(...) ((const int32_t[]){__VA_ARGS__})

static inline wf_tape *begin(wf_mode mode)
{
    if (!tape)
        tape = new_tape();
    wf_tape_reset(tape, mode, .seed = 11, .step = 5, .exact = true);
    return tape;
}

/* A pass in bf16, in the library of floats. */
static inline void begin_bf16(wf_mode mode)
{
    begin(mode);
    wf_tape_reset(tape, mode, .seed = 11, .step = 5, .exact = true, .precision = WF_PRECISION_BF16);
}

static inline void finish(void)
{
    wf_tape_free(tape);
    tape = NULL;
}

#endif
