/* SPDX-License-Identifier: MIT */
/* The internal interface of the runtime: start-up, processors and threads. */
#ifndef WEFT_INTERNAL_RUNTIME_H
#define WEFT_INTERNAL_RUNTIME_H

#include <weft/error.h>

/* Calls wf_init with the defaults unless the library is already started. Functions that work without wf_init call it first; a repeated
 * call is cheap. */
wf_status wf_init_default(wf_error *error) WF_CHECKED;

/* Whether this processor, system and build support the instruction set: "avx512", "avx2" or "base". */
bool wf_isa_supported(const char *isa);
/* Which kernels compute matrix products: "blis", "own" for Weft's own, or "auto" for the ones that are faster in the case at hand. */
const char *wf_gemm_mode(void);
/* wf_blas() if BLIS computes some products with the current choice and instruction set, else NULL. (gemm/dispatch.c) */
const char *wf_gemm_blas(void);

/* Whether AMX computes products in bf16's arithmetic; without AMX they have the same bits. (gemm/amx.c) */
bool wf_amx(void);
/* Asks the system for AMX if it is wanted; from wf_init, or while no other thread computes. The processor, the system, or the small
 * alternate signal stack of a thread may forbid it, and then there is none, without a message. (gemm/amx.c) */
void wf_amx_use(bool wanted);
/* A thread configures its tile registers with wf_amx_enter before it uses them (tiles.h), and releases them with wf_amx_leave before it
 * calls anything of others. Only where wf_amx() is true. (gemm/amx.c) */
void wf_amx_enter(void);
void wf_amx_leave(void);

/* Whether packing for bf16's arithmetic rounds with the instruction of AVX512-BF16, which gives the same bits. The second function chooses
 * it if it is wanted and the processor has it; from wf_init, or while no other thread computes. (gemm/bf16.c) */
bool wf_bf16_rounding(void);
void wf_bf16_rounding_use(bool wanted);

/* The number of processors, at least 1, that the affinity mask, the cgroup's quota and the launcher leave to this process.
 * (processors.c) */
int wf_count_processors(void);

/* The quota of this process's cgroup in processors, rounded to the nearest, at least 1; 0 if there is no quota. `root` is the root of
 * the file system: "" normally, a folder in tests. (processors.c) */
int wf_cgroup_processors(const char *root);

/* --- cgroup.c --- */
/* Receives the folder of a control group. */
typedef void wf_cgroup_visit(void *ctx, const char *folder);
/* Calls `visit` with each control group whose limits by this controller, such as "cpu" or "memory", apply to this process: its own group,
 * and those above, up to the mount. `root` is put before all paths, for tests; "": the system's. */
void wf_cgroup_walk(const char *root, const char *controller, wf_cgroup_visit *visit, void *ctx);
/* Reads up to two numbers from the beginning of a file in a group's folder. Returns how many it read, or -1 if there is no such file. */
int wf_cgroup_numbers(const char *folder, const char *file, long long *one, long long *two);

/* The bytes that can be allocated before the system must swap or end processes: what /proc/meminfo says, or what the control group of this
 * process leaves, if that is less; INT64_MAX if neither is known. `root` is as above. (memory_free.c) */
int64_t wf_memory_free(const char *root);

/* The number of threads of a parallel region. (parallel.c) */
int wf_parallel_threads(void);
/* The speed of a core with the instruction set in use: 1 for a peak of 230 GFLOP/s, to which costs refer; 0.5 if its multiply-adds are
 * half as wide or less. The division of work may depend on the speed; results never do. (parallel.c) */
double wf_core_speed(void);
/* Sets the speed. Call it before the threads start, or while no other thread computes. (parallel.c) */
void wf_core_speed_set(double speed);
/* Whether the calling thread is in a body of wf_parallel or in a parallel region of OpenMP. Such a thread shares no work with the team.
 * (parallel.c) */
bool wf_parallel_inside(void);
/* Whether the calling thread is in a body of wf_parallel. (parallel.c) */
bool wf_parallel_running(void);
/* Sets the number of threads and starts the workers, after the running job has ended. (parallel.c) */
void wf_parallel_start(int threads);

#endif
