/* SPDX-License-Identifier: MIT */
/* For tests: how long a tape recognises stale tensors. */
#ifndef WEFT_INTERNAL_STALE_H
#define WEFT_INTERNAL_STALE_H

#include <weft/tape.h>

/* For how many resets after the end of its pass a tensor is recognised as stale. */
int wf_stale_resets(void);
/* Puts the tape into the state after `resets` resets, as far as stale tensors are recognised, and then resets it once more. So a test need
 * not reset it 2^32 times. */
void wf_stale_skip(wf_tape *tape, uint64_t resets);

#endif
