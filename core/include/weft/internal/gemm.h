/* SPDX-License-Identifier: MIT */
#ifndef WEFT_INTERNAL_GEMM_H
#define WEFT_INTERNAL_GEMM_H

#include <weft/compute.h>

/* Computes two independent products: neither may read or write what the other writes. They share one parallel region unless one of them
 * has tasks that wait for other tasks. Bits and errors are those of two calls of wf_gemm. */
wf_status wf_gemm_two(const struct wf_gemm g[2]) WF_CHECKED;

#endif
