/* SPDX-License-Identifier: MIT */
#ifndef TESTS_NEW_TAPE_H
#define TESTS_NEW_TAPE_H

#include <weft/tape.h>

#include "check_weft.h"

static inline wf_tape *new_tape(void)
{
    wf_error error = {0};
    wf_tape *made = wf_tape_new(&error);
    ck_assert_msg(made != NULL, "%s", error.message);
    return made;
}

#endif
