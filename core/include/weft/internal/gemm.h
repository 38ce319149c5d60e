/* SPDX-License-Identifier: MIT */
#ifndef WEFT_INTERNAL_GEMM_H
#define WEFT_INTERNAL_GEMM_H

#include <weft/compute.h>

/* Two independent products: neither reads or writes what the other writes. They share a parallel region unless one of them has parts that
 * wait for others. Bits and errors are those of two calls of wf_gemm. */
wf_status wf_gemm_two(const struct wf_gemm g[2]) WF_CHECKED;

#endif
