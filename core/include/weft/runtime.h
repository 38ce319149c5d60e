/* SPDX-License-Identifier: MIT */
/* Initialisation, threads and the processor. Call wf_init first, before other threads start; otherwise the first tape calls it
 * with the defaults.
 *
 * Global state that a program changes after that: the number of threads (here), the registered families (weft/family.h) and optimisers
 * (weft/optimizers.h), and the connection to the other processes (weft/dist.h). The library's own: the team of threads, the list of live
 * tapes, and scratch memory, one set a thread. Everything else belongs to the tape, the registry or the model that you hold. */
#ifndef WEFT_RUNTIME_H
#define WEFT_RUNTIME_H

#include <weft/error.h>

WF_BEGIN_DECLS

struct wf_init_options {
    int threads; /* 0: as many as the affinity mask and the cgroup allow; at most 4 times the processors, at most 256 */
};

/* Chooses the instruction set (WEFT_ISA=avx512, avx2 or base forces one; an unsupported one is refused), sets
 * the architecture of BLIS, reads WEFT_GEMM=blis|own and starts the threads. A further call only sets the threads. The environment is
 * only read; BLIS_ARCH_TYPE, which BLIS reads, was added to it when the library was loaded.
 * BLIS ends the process when it gets no memory; it is warmed up here. */
WF_API wf_status wf_init_with(const struct wf_init_options *options, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_init(error, ...) wf_init_with(&(struct wf_init_options){__VA_ARGS__}, error)
#endif

WF_API int wf_threads(void); /* that work is divided among, the calling thread one of them */
/* The library has one team of threads, for whichever thread of the program calls it: between jobs they sleep, after at most 50 microseconds
 * of waiting in a spin. Signals that others send stay with the program's own threads. A child of fork() starts a team when it needs one;
 * dlclose ends it. Where the system refuses a thread, the others do its work. OMP_PROC_BIND and OMP_PLACES place the threads; a program's
 * own OpenMP has its own.
 *
 * Waits for the job that runs. WF_ERR_ARGUMENT: outside 1 .. 4 times the processors, or above 256; WF_ERR_STATE: called, as wf_init too,
 * from a body of a wf_parallel that was divided. */
WF_API wf_status wf_set_threads(int threads, wf_error *error) WF_CHECKED;
WF_API int wf_processors(void);   /* number that affinity and cgroup allow */
WF_API const char *wf_isa(void);  /* "avx512", "avx2" or "base": in use */
WF_API const char *wf_blas(void); /* "BLIS 0.9.0 (skx)": what is linked; with AVX-512 all products are Weft's own unless WEFT_GEMM=blis */

WF_END_DECLS

#endif
