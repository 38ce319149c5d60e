/* SPDX-License-Identifier: MIT */
/* What the start-up of the library (core/runtime.c) needs of core/gemm. */
#ifndef WEFT_INTERNAL_GEMM_INIT_H
#define WEFT_INTERNAL_GEMM_INIT_H

#include <weft/error.h>

enum wf_gemm_mode { WF_GEMM_AUTO, WF_GEMM_BLIS, WF_GEMM_OWN };

/* Once, from wf_init, after wf_gemm_mode_set, wf_gemm_isa_changed and the start of the threads (which wait idle) and before
 * any product: sets the architecture of BLIS and lets it and its buffers come up. Fails when the environment asks BLIS for
 * what it lacks; it may be called again after that. */
wf_status wf_gemm_init(wf_error *error);

/* "BLIS 0.9.0 (skx)", after wf_gemm_init. The text lives as long as the program. */
const char *wf_gemm_blas_name(void);

/* An enum wf_gemm_mode; WEFT_GEMM as a number. Not while another thread computes. */
void wf_gemm_mode_set(int mode);
int wf_gemm_mode_get(void);

/* The kernels were switched to "avx512", "avx2" or "base". Not while another thread computes. */
void wf_gemm_isa_changed(const char *isa);

#endif
