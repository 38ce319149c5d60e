/* SPDX-License-Identifier: MIT */
/* Who computes a product: BLIS or our own kernels. */
#ifndef WEFT_GEMM_PARTS_H
#define WEFT_GEMM_PARTS_H

#include <weft/compute.h>
#include <weft/error.h>

#include "isa.h"

/* WEFT_GEMM. (dispatch.c; set by runtime.c while no other thread computes) */
enum gemm_mode { GEMM_AUTO, GEMM_BLIS, GEMM_OWN };
extern enum gemm_mode wf_gemm_chosen;

/* blis.c, which alone includes BLIS's header. */
/* Once, from wf_init, after the start of the threads (which wait idle) and before any product: sets BLIS's architecture for the
 * instruction set in use and lets it and its buffers come up. Fails when the environment asks BLIS for what it lacks; it may be called
 * again after that. */
wf_status wf_blis_start(const char *isa, wf_error *error);
/* Whether BLIS can do the product: it ends the process over strides that it does not like. m, n, k > 0. */
bool wf_blis_can(const struct wf_gemm *g);
/* `serial`, or from inside a parallel body: on the calling thread. */
void wf_blis_gemm(const struct wf_gemm *g, bool serial);

/* own.c. From wf_init, before any product: blocks for the caches of this processor, which change no sum. */
void wf_gemm_own_start(void);
/* The product with our own kernels; `serial`: without a parallel region, the same bits. m, n, k > 0. False without memory. */
bool wf_gemm_own(const struct wf_gemm *g, bool serial) WF_CHECKED;
/* Two products, in one region where none of them has parts that wait for others. The second neither reads nor writes what the first writes,
 * nor the other way round. The bits are those of wf_gemm_own. */
bool wf_gemm_own_two(const struct wf_gemm g[2]) WF_CHECKED;
/* C = beta C + bias. */
void wf_gemm_no_sum(const struct wf_gemm *g);

#endif
