/* SPDX-License-Identifier: MIT */
/* Calls of public functions in which one pointer that must be given is NULL: the message names function and argument, and functions without
 * an error do nothing. GIVEN stands for any other pointer, which they do not look at. */
#ifndef TESTS_NULL_TEST_H
#define TESTS_NULL_TEST_H

#include <math.h>

#include <weft/weft.h>

#include "check_weft.h"

static _Alignas(64) char given[1 << 16];
#define GIVEN ((void *)given)

/* clang-format off */
#define SAYS(done, says) \
    do { \
        wf_error error = {0}; \
        ck_assert_msg(done, "not refused: %s", says); \
        ck_assert_msg(error.code == WF_ERR_ARGUMENT && strcmp(error.message, says) == 0, "not '%s', but '%s'", says, error.message); \
    } while (0)
#define STATUS(call, says) SAYS((call) == WF_ERR_ARGUMENT, says)
#define POINTER(call, says) SAYS((call) == NULL, says)
/* clang-format on */

#endif
