/* SPDX-License-Identifier: MIT */
/* A test program's tape: one_tape.h and one_registry.h begin its passes, and finish is called after each test. To be included before
 * check_weft.h. */
#ifndef TESTS_TAPE_TEST_H
#define TESTS_TAPE_TEST_H

static inline void finish(void);
#define WF_TEST_TEARDOWN finish

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
    ck_assert_int_eq(status, code);
    ck_says(wf_tape_error(tape)->message, part);
}

/* Poison, and the same error of its tape. */
static inline void expect_error(const wf_tensor *t, wf_status code, const char *part)
{
    const wf_error *e = wf_tape_error(wf_tape_of(t));
    ck_assert_msg(wf_is_poison(t), "no poison for: %s", part);
    ck_assert_msg(e->code == code, "code %d, expected %d: %s", e->code, code, e->message);
    ck_says(e->message, part);
}

/* A call, of any type, after which the tape has an error of state with this part. */
#define ck_wrong_state(call, part)                                                                                                         \
    do {                                                                                                                                   \
        __typeof__(call) ck_result = (call);                                                                                               \
        (void)ck_result;                                                                                                                   \
        refused(wf_tape_error(tape)->code, WF_ERR_STATE, part);                                                                            \
    } while (0)

#endif
