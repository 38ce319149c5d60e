/* SPDX-License-Identifier: MIT */
/* Arguments that must not be NULL, of functions that return a tensor. */
#ifndef WEFT_INTERNAL_TAPE_NEEDS_H
#define WEFT_INTERNAL_TAPE_NEEDS_H

#include <weft/internal/needs.h>
#include <weft/tape.h>

/* As wf_needs: poison, with the tape's error; NULL where all are given. */
#define wf_tape_needs(tape, names, ...)                                                                                                    \
    __extension__({                                                                                                                        \
        wf_error why = {0};                                                                                                                \
        wf_needs(&why, names, __VA_ARGS__) == WF_OK ? NULL : wf_tape_fail(tape, why.code, "%s", why.message);                              \
    })

#endif
