/* SPDX-License-Identifier: MIT */
#ifndef WEFT_INTERNAL_GEMM_H
#define WEFT_INTERNAL_GEMM_H

#include <weft/compute.h>

/* Two independent products: neither reads or writes what the other writes. The bits are those of two calls of wf_gemm. They share a
 * parallel region where none of them has parts that wait for others. Errors as there. */
wf_status wf_gemm_two(const struct wf_gemm g[2]) WF_CHECKED;

#endif
