/* SPDX-License-Identifier: MIT */
/* wf_tape_needs: refuses NULL arguments of functions that return a tensor. */
#ifndef WEFT_INTERNAL_TAPE_NEEDS_H
#define WEFT_INTERNAL_TAPE_NEEDS_H

#include <weft/internal/needs.h>
#include <weft/tape.h>

/* Like wf_needs. If an argument is NULL, the result is poison, with the error on the tape; otherwise the result is NULL. */
#define wf_tape_needs(tape, names, ...)                                                                                                    \
    __extension__({                                                                                                                        \
        wf_error why = {0};                                                                                                                \
        wf_needs(&why, names, __VA_ARGS__) == WF_OK ? NULL : wf_tape_fail(tape, why.code, "%s", why.message);                              \
    })

#endif
