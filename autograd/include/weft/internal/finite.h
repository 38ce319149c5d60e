/* SPDX-License-Identifier: MIT */
/* Lets a training tell, after an error of wf_tape_check_finite, whether its data are the cause. */
#ifndef WEFT_INTERNAL_FINITE_H
#define WEFT_INTERNAL_FINITE_H

#include <weft/tape.h>

/* Whether the tape's error is that wf_tape_check_finite found a NaN or an infinity in an input, that is, in the caller's data. */
bool wf_tape_bad_input(const wf_tape *tape);

#endif
