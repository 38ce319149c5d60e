/* SPDX-License-Identifier: MIT */
/* A product function for Weft's own files. weft/compute.h has the public ones. */
#ifndef WEFT_INTERNAL_GEMM_H
#define WEFT_INTERNAL_GEMM_H

#include <weft/compute.h>

/* Computes two independent products: neither may read or write what the other writes. The tasks of both run in one parallel region if each
 * product consists of tasks of Weft's own kernels that need not wait for each other; otherwise the products run one after the other. Bits
 * and errors are those of two calls of wf_gemm. */
wf_status wf_gemm_two(const struct wf_gemm g[2]) WF_CHECKED;

/* Bits: the terms of a step of bf16's arithmetic (core/gemm/bf16.h). */
enum { WF_BF16_K = 32 };

/* Why products of this library can't have this precision; NULL if they can. */
const char *wf_precision_refused(enum wf_precision precision);
/* The same as a status: WF_ERR_ARGUMENT with the message "FROM: REASON" if they can't. */
wf_status wf_precision_check(enum wf_precision precision, const char *from, wf_error *error) WF_CHECKED;
/* The precision in settings and files: "f32" (in the library of doubles too, for WF_PRECISION_REAL) or "bf16". */
const char *wf_precision_name(enum wf_precision precision);

#endif
