/* SPDX-License-Identifier: MIT */
/* Switches and counters for tests and benchmarks. */
#ifndef WEFT_INTERNAL_TESTING_H
#define WEFT_INTERNAL_TESTING_H

#include <weft/internal/runtime.h>

/* wf_alloc_count: the number of allocations since the start. wf_alloc_live: the number of blocks that are allocated now. */
int64_t wf_alloc_count(void);
int64_t wf_alloc_live(void);
/* Makes one allocation fail, after n successful ones (n = 0: the next). A negative n cancels this. */
void wf_alloc_fail_after(int64_t n);
/* Frees the scratch memory of the calling thread and of the team. Must not be called while a thread computes. */
void wf_scratch_drop(void);

/* Choose the instruction set of the kernels, and the library for matrix products. Must not be called while another thread computes. */
wf_status wf_isa_use(const char *isa, wf_error *error) WF_CHECKED;
wf_status wf_gemm_use(const char *mode, wf_error *error) WF_CHECKED;

#endif
