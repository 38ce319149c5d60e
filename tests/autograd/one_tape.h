/* SPDX-License-Identifier: MIT */
/* A test program's tape: begin in each pass, finish at the end of a test. */
#ifndef TESTS_ONE_TAPE_H
#define TESTS_ONE_TAPE_H

#include "tape_test.h"

static inline wf_tape *begin(wf_mode mode)
{
    if (!tape)
        tape = new_tape();
    wf_tape_reset(tape, mode);
    return tape;
}

static inline void finish(void)
{
    wf_tape_free(tape);
    tape = NULL;
}

#endif
