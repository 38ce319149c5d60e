/* SPDX-License-Identifier: MIT */
/* Packed rows: what ops that take them share. */
#include <string.h>

#include "common.h"

wf_status wf_want_packed(wf_call *c, struct wf_packed packed, const char *what, int64_t rows)
{
    wf_error error = {0};
    return wf_packed_check(packed, rows, what, &error) == WF_OK ? WF_OK : wf_call_fail(c, error.code, "%s", error.message);
}

struct wf_packed wf_packed_copy(wf_tape *tape, struct wf_packed packed)
{
    if (!tape || !packed.offsets || packed.count < 0)
        return packed;
    const size_t bytes = ((size_t)packed.count + 1) * sizeof *packed.offsets;
    int32_t *copy = wf_tape_memory(tape, bytes);
    return (struct wf_packed){copy ? memcpy(copy, packed.offsets, bytes) : NULL, packed.count};
}
