/* SPDX-License-Identifier: MIT */
#ifndef WEFT_INTERNAL_FINITE_H
#define WEFT_INTERNAL_FINITE_H

#include <weft/tape.h>

/* Whether the tape's error is that wf_tape_check_finite found a NaN or an infinity in an input, that is, in the caller's data. */
bool wf_tape_bad_input(const wf_tape *tape);

#endif
