/* SPDX-License-Identifier: MIT */
/* The internal slots of wf_scratch. The slots for ops are in weft/compute.h. */
#ifndef WEFT_INTERNAL_SCRATCH_H
#define WEFT_INTERNAL_SCRATCH_H

#include <weft/compute.h>

enum {
    WF_SCRATCH_PACK_A = WF_SCRATCH_PUBLIC_SLOTS, /* packed A of a product's task; sums of a depthwise convolution's task */
    WF_SCRATCH_PACK_B,                           /* packed B that the tasks of a product share; partial products of split-K */
    WF_SCRATCH_GEMM,     /* packed B of one task; sums of a product in bf16 between chunks of k; lanes of such sums */
    WF_SCRATCH_GEMM_B,   /* a B in bf16, as floats */
    WF_SCRATCH_CONV,     /* results of a convolution's task that are not contiguous in memory; a padded picture */
    WF_SCRATCH_CONV_W,   /* weights of a convolution in another order, and places of its taps, which all tasks read */
    WF_SCRATCH_SUM,      /* partial sums of wf_array_sum */
    WF_SCRATCH_ELEMENTS, /* copied elements of a view */
    WF_SCRATCH_TEST,
    WF_SCRATCH_SLOTS
};

/* Gives the calling thread blocks as large as any thread of a wf_parallel has asked for so far, and touches their pages, so that the
 * thread does not allocate later. The contents of its slots are lost. If there is no memory, only a later wf_scratch reports it. Threads
 * call it at the start of a pass or of a parallel region. */
void wf_scratch_get_ready(void);
/* A number that grows when a thread of a parallel region asks for a larger block than any thread before. */
unsigned wf_scratch_version(void);
/* wf_scratch_forget resets the sizes that threads asked for; wf_scratch_free frees the scratch memory of the calling thread. Only
 * wf_scratch_drop calls them. */
void wf_scratch_forget(void);
void wf_scratch_free(void);

#endif
