/* SPDX-License-Identifier: MIT */
/* The door to BLIS: blis.c alone includes its header. */
#ifndef WEFT_GEMM_BLAS_H
#define WEFT_GEMM_BLAS_H

#include <weft/error.h>
#include <weft/internal/gemm.h>

/* Sets BLIS's architecture for the instruction set in use and lets it come up. Once, before any other call. */
wf_status wf_blis_start(const char *isa, wf_error *error);
const char *wf_blis_name(void);
/* Whether BLIS can do the product: it ends the process over strides that it does not like. m, n, k > 0. */
bool wf_blis_can(const struct wf_gemm *g);
/* `serial`, or from inside a parallel body: on the calling thread. */
void wf_blis_gemm(const struct wf_gemm *g, bool serial);

#endif
