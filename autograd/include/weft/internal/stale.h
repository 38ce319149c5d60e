/* SPDX-License-Identifier: MIT */
/* For tests: how long stale tensors are recognised. */
#ifndef WEFT_INTERNAL_STALE_H
#define WEFT_INTERNAL_STALE_H

#include <weft/tape.h>

/* The number of resets over which a tensor of an earlier pass is recognised as stale. */
int wf_stale_resets(void);
/* Makes the tape count so many resets more. */
void wf_stale_skip(wf_tape *tape, uint64_t resets);

#endif
