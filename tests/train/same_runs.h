/* SPDX-License-Identifier: MIT */
/* Runs compared byte by byte. */
#ifndef TESTS_SAME_RUNS_H
#define TESTS_SAME_RUNS_H

#include <weft/internal/files.h>

#include "check_weft.h"

static inline bool same_file(const char *a, const char *b)
{
    return wf_file_same(a, b);
}

static inline void assert_same_runs(const char *a, const char *b)
{
    static const char *const names[] = {"state", "model", "best"};
    for (int i = 0; i < 3; i++) {
        char x[600], y[600];
        snprintf(x, sizeof x, "%s/%s.safetensors", a, names[i]);
        snprintf(y, sizeof y, "%s/%s.safetensors", b, names[i]);
        ck_assert_msg(same_file(x, y), "%s and %s differ", x, y);
    }
}

#endif
