/* SPDX-License-Identifier: MIT */
/* Switches and counters for tests and benchmarks. */
#ifndef WEFT_INTERNAL_TESTING_H
#define WEFT_INTERNAL_TESTING_H

#include <weft/internal/runtime.h>

/* Calls that allocated since the start, and blocks that live now. */
int64_t wf_alloc_count(void);
int64_t wf_alloc_live(void);
/* The n-th allocation from now fails (0: the next one), once; a negative n lets all succeed. */
void wf_alloc_fail_after(int64_t n);
/* Frees the scratch memory of the calling thread and its team. Not while a thread computes. */
void wf_scratch_drop(void);

/* Switch the kernels' instruction set and the side of the matrix products; not while another thread computes. */
wf_status wf_isa_use(const char *isa, wf_error *error) WF_CHECKED;
wf_status wf_gemm_use(const char *mode, wf_error *error) WF_CHECKED;

#endif
