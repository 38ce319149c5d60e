/* SPDX-License-Identifier: MIT */
#ifndef WEFT_GEMM_OWN_H
#define WEFT_GEMM_OWN_H

#include <weft/internal/gemm.h>

#include "isa.h"

extern const struct gemm_isa *wf_gemm_isa; /* in use */

/* The product with our own kernels; `serial`: without a parallel region, the same bits. m, n, k > 0. */
void wf_gemm_own(const struct wf_gemm *g, bool serial);
/* C = beta C + bias. */
void wf_gemm_no_sum(const struct wf_gemm *g);

#endif
