/* SPDX-License-Identifier: MIT */
/* Initialisation, threads and the processor. Call wf_init first, before other threads start; otherwise the first tape calls it
 * with the defaults. Afterwards the number of threads is the library's only mutable global state. */
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
 * BLIS and libgomp end the process when they get no memory; they are warmed up here. */
WF_API wf_status wf_init_with(const struct wf_init_options *options, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_init(error, ...) wf_init_with(&(struct wf_init_options){__VA_ARGS__}, error)
#endif

WF_API int wf_threads(void); /* number in use */
/* WF_ERR_ARGUMENT: outside 1 .. 4 times the processors, or above 256. */
WF_API wf_status wf_set_threads(int threads, wf_error *error) WF_CHECKED;
/* Runs body(ctx) on the calling thread and holds the library's other threads ready for it until it returns: an op that divides its work
 * then costs 0.1 microseconds more than the work instead of 0.5, which counts in small models. wf_backward does so by itself, and wf_fit,
 * wf_train and the generation for each step. For a loop of your own:
 *
 *   static void step(void *ctx)
 *   {
 *       struct run *r = ctx;
 *       wf_tape_reset(r->tape, WF_TRAIN, .step = r->step++);
 *       wf_tensor *loss = digits_loss(r);
 *       if (wf_backward(loss) == WF_OK)
 *           r->status = wf_optimizer_step(&r->adam, &r->error);
 *   }
 *   ...
 *   wf_hold_threads(step, &run);
 *
 * The bits are the same. Threads that find nothing to do for half a millisecond sleep, at once with OMP_WAIT_POLICY=passive. Within another
 * hold, a body of wf_parallel or a region of OpenMP, with one thread or with more threads than processors it only calls body. A region of
 * OpenMP that body opens by itself runs on one thread: divide work with wf_parallel (weft/compute.h). body returns normally: no longjmp, no
 * end of its thread. */
WF_API void wf_hold_threads(void (*body)(void *ctx), void *ctx);
WF_API int wf_processors(void);   /* number that affinity and cgroup allow */
WF_API const char *wf_isa(void);  /* "avx512", "avx2" or "base": in use */
WF_API const char *wf_blas(void); /* "BLIS 0.9.0 (skx)" */

WF_END_DECLS

#endif
