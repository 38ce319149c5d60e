/* SPDX-License-Identifier: MIT */
/* For tests: how long a tape recognises stale tensors. */
#ifndef WEFT_INTERNAL_STALE_H
#define WEFT_INTERNAL_STALE_H

#include <weft/tape.h>

/* For how many resets after its pass a tensor is recognised as stale. */
int wf_stale_resets(void);
/* Sets the tape's number of resets to `resets`, and then resets it. */
void wf_stale_skip(wf_tape *tape, uint64_t resets);

#endif
