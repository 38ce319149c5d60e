/* SPDX-License-Identifier: MIT */
/* Initialisation, threads and the processor.
 *
 *   if (wf_init(&error, .threads = 4) != WF_OK) ...
 *
 * Call wf_init first, before other threads start; otherwise the first tape calls it with the defaults. Arrays, tapes, registries and
 * models belong to the program. The library itself has the following state, once per process, which changes while the process runs:
 *
 *   the set-up     instruction set and kernels (wf_kernel), BLIS or own kernels for products, team of threads; wf_init and
 *                  wf_set_threads change it
 *   registered     families (wf_family_register) and optimisers (wf_optimizer_register), under a lock, until the process ends
 *   processes      the connection that wf_dist_world opens, with its rank, world size and wf_dist_watch; with several processes also
 *                  a handler that runs at exit()
 *   bookkeeping    under locks: the list of tapes, the structs of freed parameters, the sizes of scratch memory, serial numbers; for each
 *                  thread: scratch memory, the tape used last, an error that no tape could hold
 *   jansson        json_set_alloc_funcs, called when the first JSON is read or written
 *   environment    the variable BLIS_ARCH_TYPE, which BLIS reads; Weft adds it when the library is loaded (x86-64)
 *   fork()         handlers, after which the locks of the child process are free, and no team has started there
 *
 * A program that calls wf_main (weft/main.h) leaves the whole process to it, signals and streams included. */
#ifndef WEFT_RUNTIME_H
#define WEFT_RUNTIME_H

#include <weft/error.h>

WF_BEGIN_DECLS

struct wf_init_options {
    int threads; /* at most 4 per processor and at most 256; 0: wf_processors() */
};

/* Chooses the instruction set, sets the architecture of BLIS and starts the threads. A second call only sets the number of threads. The
 * environment may determine the choices: WEFT_ISA=avx512, avx2 or base forces an instruction set, and the function refuses one that the
 * processor does not support; WEFT_GEMM=blis lets BLIS compute every matrix product that it is able to compute, and WEFT_GEMM=own lets
 * Weft's own kernels compute all products; WEFT_AMX=0 keeps AMX out of products in bf16 (otherwise the process asks the system for AMX,
 * after which sigaltstack refuses a stack that is too small for its registers). The only part of the environment that the function changes
 * is the text of BLIS_ARCH_TYPE, and only while BLIS reads it. BLIS ends the process if it gets no memory, so this function makes BLIS
 * allocate its buffers at the start, not in the middle of the program's work. */
WF_API wf_status wf_init_with(const struct wf_init_options *options, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_init(error, ...) wf_init_with(&(struct wf_init_options){__VA_ARGS__}, error)
#endif

WF_API int wf_threads(void); /* number of threads that share work, including the calling thread */
/* Sets the number of threads: waits until the team (the library's threads) has finished its present work, then ends the team and starts a
 * new one. WF_ERR_ARGUMENT: `threads` is below 1, above 4 per processor, or above 256. WF_ERR_STATE: the caller is in a body of a
 * wf_parallel that several threads share because its cost is high enough; wf_init fails there too.
 *
 * All threads of the program share one team. A worker that has no work waits in a spin of at most 50 microseconds, then sleeps. Workers
 * block the signals that other processes send. If the system refuses to start a thread, the other threads do its work. A child of fork()
 * starts a team when it needs one; dlclose ends the team. OMP_PROC_BIND and OMP_PLACES also place the workers, but these are not OpenMP's
 * threads. */
WF_API wf_status wf_set_threads(int threads, wf_error *error) WF_CHECKED;
WF_API int wf_processors(void);  /* number of processors that affinity, cgroup and launcher leave to this process */
WF_API const char *wf_isa(void); /* the instruction set in use: "avx512", "avx2" or "base" */
/* The linked BLIS: "BLIS 0.9.0 (skx)". It computes some of the products if wf_isa() is "avx2", and with WEFT_GEMM=blis all that it can
 * compute. */
WF_API const char *wf_blas(void);

WF_END_DECLS

#endif
