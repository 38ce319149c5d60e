/* SPDX-License-Identifier: MIT */
/* Initialisation, threads and the processor.
 *
 *   if (wf_init(&error, .threads = 4) != WF_OK) ...
 *
 * Call wf_init first, before other threads start; otherwise the first tape calls it with the defaults. Arrays, tapes, registries and models
 * belong to the program. These things are the library's, one of each in a process, and change while it runs:
 *
 *   the set-up     instruction set and kernels (wf_kernel), library of products, team of threads; wf_init, wf_set_threads
 *   registered     families (wf_family_register) and optimisers (wf_optimizer_register): under a lock, for the life of the process
 *   processes      rank, world size, connection and wf_dist_watch of wf_dist_world; an exit handler on several processes
 *   bookkeeping    under locks: the list of tapes, the structs of freed parameters, the sizes of scratch memory, serial numbers; for each
 *                  thread: scratch memory, the tape used last, an error that no tape could take
 *   jansson        json_set_alloc_funcs, at the first JSON that is read or written
 *   environment    BLIS_ARCH_TYPE, which BLIS reads and which is added when the library is loaded (x86-64)
 *   fork()         handlers that leave locks free and the team unstarted in the child
 *
 * wf_main (weft/main.h) acts for the whole process. */
#ifndef WEFT_RUNTIME_H
#define WEFT_RUNTIME_H

#include <weft/error.h>

WF_BEGIN_DECLS

struct wf_init_options {
    int threads; /* 0: as many as the affinity mask and the cgroup allow; at most 4 times the processors, at most 256 */
};

/* Chooses the instruction set (WEFT_ISA=avx512, avx2 or base forces one; an unsupported one is refused), sets
 * the architecture of BLIS, reads WEFT_GEMM=blis|own and starts the threads. A further call only sets the threads. Of the environment
 * only the text of BLIS_ARCH_TYPE changes, while BLIS reads it.
 * BLIS ends the process when it gets no memory; it is warmed up here. */
WF_API wf_status wf_init_with(const struct wf_init_options *options, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_init(error, ...) wf_init_with(&(struct wf_init_options){__VA_ARGS__}, error)
#endif

WF_API int wf_threads(void); /* that work is divided among, the calling thread one of them */
/* Waits for the job that runs, then ends the team and starts one of this size. WF_ERR_ARGUMENT: outside 1 .. 4 times the processors, or
 * above 256; WF_ERR_STATE: called (or wf_init) from a body of a wf_parallel that was divided.
 *
 * All threads of the program share the team. Its workers wait for a job in a spin of at most 50 microseconds, then asleep. They take no
 * signals that other processes send. If the system refuses a thread, the others do its work. A child of fork() starts a team when it needs
 * one; dlclose ends the team. OMP_PROC_BIND and OMP_PLACES place the workers; OpenMP's own threads are others. */
WF_API wf_status wf_set_threads(int threads, wf_error *error) WF_CHECKED;
WF_API int wf_processors(void);   /* number that affinity and cgroup allow */
WF_API const char *wf_isa(void);  /* "avx512", "avx2" or "base": in use */
WF_API const char *wf_blas(void); /* "BLIS 0.9.0 (skx)": what is linked; with AVX-512 all products are Weft's own unless WEFT_GEMM=blis */

WF_END_DECLS

#endif
