/* SPDX-License-Identifier: MIT */
/* The instructions of AMX's tile registers, 0 to 7. They are written in assembler: no file needs a flag for them, and the compiler has no
 * part in what tile registers hold. A thread uses them between wf_amx_enter and wf_amx_leave; each tile then has 16 rows of 64 bytes. */
#ifndef WEFT_TILES_H
#define WEFT_TILES_H

#if defined __x86_64__ && !defined WF_DOUBLE
#include <stdint.h>

#define TILE_ZERO(tile) __asm__ volatile("tilezero %tmm" #tile)
/* `stride`: bytes from a row to the next. */
#define TILE_LOAD(tile, from, stride) __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(from), "r"((int64_t)(stride)) : "memory")
#define TILE_STORE(tile, to, stride) __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(to), "r"((int64_t)(stride)) : "memory")
/* c += a b: one step of bf16's arithmetic (gemm/bf16.h) for 16 rows and 16 columns. Row i of a has the step's k in order; row i of b has,
 * for each column, the step's k 2 i and 2 i + 1. */
#define TILE_MULTIPLY(c, a, b) __asm__ volatile("tdpbf16ps %tmm" #b ", %tmm" #a ", %tmm" #c)

enum { TILE_ROW = 64 /* bytes */ };
#endif

#endif
