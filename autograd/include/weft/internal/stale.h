/* SPDX-License-Identifier: MIT */
/* For tests: how long stale tensors are recognised. */
#ifndef WEFT_INTERNAL_STALE_H
#define WEFT_INTERNAL_STALE_H

#include <weft/tape.h>

/* Resets after which a tensor of an earlier pass is still told from others. */
int wf_stale_resets(void);
/* As if the tape had been reset so often already. */
void wf_stale_skip(wf_tape *tape, uint64_t resets);

#endif
