/* SPDX-License-Identifier: MIT */
/* The one way to use threads. Work is cut into blocks that depend on the shapes alone, never on the number of threads,
 * and every block's result is the same whoever computes it: that is what makes the bits equal on 1 and on 64 threads. */
#ifndef WEFT_INTERNAL_PARALLEL_H
#define WEFT_INTERNAL_PARALLEL_H

#include <weft/base.h>

/* Calls body(ctx, block) for block = 0 .. blocks-1, each once, in any order, on any thread. `cost` is about the number of
 * nanoseconds that all blocks take together on one core: below the cutoff of a parallel region (a few microseconds) the
 * caller runs them all. Never nested: inside a body it runs the blocks itself. */
void wf_parallel(int64_t blocks, double cost, void (*body)(void *ctx, int64_t block), void *ctx);

/* The same for ranges: cuts 0 .. n-1 into pieces of `grain` (a function of shapes only). */
void wf_parallel_ranges(int64_t n, int64_t grain, double cost, void (*body)(void *ctx, int64_t begin, int64_t end), void *ctx);

/* Scratch memory of the calling thread: at least `bytes`, 64-byte aligned, kept for the thread's life, contents
 * undefined. Slots (0 .. WF_SCRATCH_SLOTS-1) are independent, so that nested users do not collide: who uses which is
 * listed here. NULL without memory. */
enum wf_scratch_slot { WF_SCRATCH_PACK_A, WF_SCRATCH_PACK_B, WF_SCRATCH_GEMM, WF_SCRATCH_KERNEL, WF_SCRATCH_OP, WF_SCRATCH_SLOTS };
void *wf_scratch(enum wf_scratch_slot slot, size_t bytes);

#endif
