/* SPDX-License-Identifier: MIT */
/* The start-up, for other rooms and files of core. */
#ifndef WEFT_INTERNAL_RUNTIME_H
#define WEFT_INTERNAL_RUNTIME_H

#include <weft/error.h>

/* wf_init with the defaults unless the library is up already: for entry points that work without wf_init. Cheap. */
wf_status wf_init_default(wf_error *error) WF_CHECKED;

/* Whether this processor, system and build support "avx512", "avx2" or "base". */
bool wf_isa_supported(const char *isa);
/* "auto", "blis" or "own": who computes matrix products. */
const char *wf_gemm_mode(void);
/* wf_blas() if BLIS computes some of the products with the current mode and instruction set, else NULL. (gemm/dispatch.c) */
const char *wf_gemm_blas(void);

/* Processors that the affinity mask and the cgroup's quota leave to this process, at least 1. (processors.c) */
int wf_count_processors(void);

/* The quota of a cgroup in processors, rounded to the nearest, at least 1; 0 when there is none. `root` is the file
 * system's root ("" in earnest, a folder in tests). (processors.c) */
int wf_cgroup_processors(const char *root);

/* Threads of a parallel region. (parallel.c) */
int wf_parallel_threads(void);
/* The speed of multiply-adds of a core with the instruction set in use: 1 for a peak of 230 GFLOP/s, for which costs are given; 0.5 if they
 * are half as wide or less. The division of work may depend on it, results never. (parallel.c) */
double wf_core_speed(void);
/* Sets it; before the threads are started or while no other thread computes. (parallel.c) */
void wf_core_speed_set(double speed);
/* Whether the calling thread runs blocks of a wf_parallel, or is within a region of OpenMP of the caller's: then it divides nothing.
 * (parallel.c) */
bool wf_parallel_inside(void);
/* Whether the calling thread is within a body of wf_parallel. (parallel.c) */
bool wf_parallel_running(void);
/* Sets them and starts the workers, after the job that runs on them. (parallel.c) */
void wf_parallel_start(int threads);

#endif
