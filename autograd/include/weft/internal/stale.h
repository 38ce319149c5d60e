/* SPDX-License-Identifier: MIT */
/* For tests: how long stale tensors are recognised in this build. */
#ifndef WEFT_INTERNAL_STALE_H
#define WEFT_INTERNAL_STALE_H

/* Resets after which a tensor of an earlier pass is still told from others: 1 in release builds. */
int wf_stale_resets(void);

#endif
