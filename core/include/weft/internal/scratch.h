/* SPDX-License-Identifier: MIT */
/* Slots of wf_scratch that are not for ops (weft/compute.h): packed rows and columns of products, some panels of a product, partial sums,
 * tests. */
#ifndef WEFT_INTERNAL_SCRATCH_H
#define WEFT_INTERNAL_SCRATCH_H

#include <weft/compute.h>

enum { WF_SCRATCH_PACK_A = WF_SCRATCH_PUBLIC_SLOTS, WF_SCRATCH_PACK_B, WF_SCRATCH_GEMM, WF_SCRATCH_SUM, WF_SCRATCH_TEST, WF_SCRATCH_SLOTS };

#endif
