/* SPDX-License-Identifier: MIT */
/* What tests of the tape ask of it: one_tape.h and one_registry.h begin its passes. */
#ifndef TESTS_TAPE_TEST_H
#define TESTS_TAPE_TEST_H

#include "copies.h"
#include "new_tape.h"

static wf_tape *tape;

static inline void ran(wf_status status)
{
    ck_assert_msg(status == WF_OK, "%s", wf_tape_error(tape)->message);
}

/* A status of the tape, whose error is one line with this part. */
static inline void refused(wf_status status, wf_status code, const char *part)
{
    const char *message = wf_tape_error(tape)->message;
    ck_assert_int_eq(status, code);
    ck_assert_msg(strstr(message, part), "'%s' is not in: %s", part, message);
    ck_assert_ptr_null(strchr(message, '\n'));
}

/* A call, of any type, after which the tape has an error of state with this part. */
#define ck_wrong_state(call, part)                                                                                                         \
    do {                                                                                                                                   \
        __typeof__(call) ck_result = (call);                                                                                               \
        (void)ck_result;                                                                                                                   \
        refused(wf_tape_error(tape)->code, WF_ERR_STATE, part);                                                                            \
    } while (0)

#endif
