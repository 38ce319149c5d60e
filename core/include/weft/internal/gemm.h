/* SPDX-License-Identifier: MIT */
#ifndef WEFT_INTERNAL_GEMM_H
#define WEFT_INTERNAL_GEMM_H

#include <weft/compute.h>

/* Two products with nothing between them: neither reads or writes what the other writes. The bits are those of two calls of wf_gemm; small
 * ones share a parallel region. Errors as there. */
wf_status wf_gemm_two(const struct wf_gemm g[2]) WF_CHECKED;

#endif
