/* SPDX-License-Identifier: MIT */
/* Slots of wf_scratch that are not for ops (weft/compute.h): packed rows and columns of products, some panels of a product, partial sums,
 * elements of a view that is added up, tests. */
#ifndef WEFT_INTERNAL_SCRATCH_H
#define WEFT_INTERNAL_SCRATCH_H

#include <weft/compute.h>

enum {
    WF_SCRATCH_PACK_A = WF_SCRATCH_PUBLIC_SLOTS,
    WF_SCRATCH_PACK_B,
    WF_SCRATCH_GEMM,
    WF_SCRATCH_SUM,
    WF_SCRATCH_ELEMENTS,
    WF_SCRATCH_TEST,
    WF_SCRATCH_SLOTS
};

/* Gives the calling thread what any thread of a wf_parallel has asked for until now, with its pages, so that it does not allocate later.
 * The contents of its slots are lost. If memory is missing, wf_scratch says so later. For the start of a pass. */
void wf_scratch_get_ready(void);
/* Raised when a thread of a region has asked for more than any before. */
unsigned wf_scratch_version(void);
/* For wf_scratch_drop: forgets the sizes asked for, and frees the scratch of the calling thread. */
void wf_scratch_forget(void);
void wf_scratch_free(void);

#endif
