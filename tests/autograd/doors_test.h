/* SPDX-License-Identifier: MIT */
/* Calls that the tape refuses, one after the other. */
#ifndef TESTS_DOORS_TEST_H
#define TESTS_DOORS_TEST_H

#include "one_tape.h"

/* The tape's error; the tape is good for another pass after it. */
static inline void refused_once(wf_status code, const char *part)
{
    refused(wf_tape_error(tape)->code, code, part);
    wf_tape_reset(tape, wf_tape_mode(tape));
    ck_assert_int_eq(wf_tape_error(tape)->code, WF_OK);
}

#define ck_refused(tensor, code, part)                                                                                                     \
    do {                                                                                                                                   \
        ck_assert(wf_is_poison(tensor));                                                                                                   \
        refused_once(code, part);                                                                                                          \
    } while (0)

#endif
