/* SPDX-License-Identifier: MIT */
/* The private header of products in bf16's arithmetic: rounding, panels, kernels.
 *
 * The arithmetic. Elements of A and B are rounded to bf16, to nearest even; a denormal becomes a zero of its sign. k is padded with zeros
 * to whole steps of BF16_K. The sum d of an element of C begins at +0. A step computes e, a chain of fused multiply-adds from +0 over the
 * step's even k, and o, the same over its odd k, and then d = d + (e + o). Each operation rounds to float and gives a zero of the result's
 * sign for a denormal (DAZ and FTZ of MXCSR). At the end c = alpha d + (beta c + bias), where each product and each sum is rounded once,
 * denormals are kept, and a factor of 1 and an addend that is absent are left out.
 *
 * An AMX tile product computes exactly one step, and the kernels for AVX-512, AVX2 and plain C compute the same bits (a NaN may have
 * another payload). So a product has the same bits on every processor, for every blocking and on any number of threads. */
#ifndef WEFT_GEMM_BF16_H
#define WEFT_GEMM_BF16_H

#include <weft/internal/gemm.h>

#include "private.h"

#ifndef WF_DOUBLE
/* Two bytes: the high half of a float. */
typedef uint16_t wf_bf16;

enum {
    BF16_K = WF_BF16_K,
    BF16_LINES = 16,                 /* rows of A or columns of B in a panel */
    BF16_TILE = BF16_LINES * BF16_K, /* elements of a tile: a step of a panel */
    BF16_MR = 2 * BF16_LINES,        /* rows and columns of C that a micro-kernel for AMX keeps in tile registers */
    BF16_EMULATED_STEPS = 4,         /* speed: steps of a cache block of the kernels without AMX */
    BF16_EMULATED_K = BF16_EMULATED_STEPS * BF16_K,
};

/* Panels are arrays of tiles, one tile a step. A tile of A holds, for each row, BF16_K elements in order of k. A tile of B holds, for each
 * pair of k, the pair's two elements of each column. Rows, columns and k past the end are zeros. */

/* Part of a product whose operands are packed, or A in place: m x n elements of C over all k, or over a chunk of it. */
struct bf16_block {
    int64_t m, n, steps;
    const wf_bf16 *a, *b; /* panels, steps * BF16_TILE elements apart */
    /* Instead of `a`, not for AMX: rows of A as they are, rows_rs elements apart, with k contiguous elements. NULL: none. */
    const float *rows;
    int64_t rows_rs, k;
    float *c;
    int64_t c_rs, c_cs;
    struct gemm_epilogue epilogue;
    /* The sums d over the k before this part, which go on; NULL: there are none, the sums begin at +0. Rows are before_rs apart; tiles are
     * whole. */
    const float *before;
    int64_t before_rs;
    bool far; /* speed: nothing reads C soon, so its stores may pass the caches */
};

/* Rounds and packs `steps` steps of `lines` rows or columns, up to the panel's BF16_LINES. Element (i, p) is at s[i * is + p * ps], for p <
 * k: s points to the first of these steps, and k is the number of elements from there to the end of k. */
typedef void bf16_pack(int64_t lines, int64_t k, const float *s, int64_t is, int64_t ps, int64_t steps, wf_bf16 *tiles);

/* The same for a B that is stored as bf16. */
typedef void bf16_pack_stored(int64_t lines, int64_t k, const wf_bf16 *s, int64_t is, int64_t ps, int64_t steps, wf_bf16 *tiles);

/* The kernels of an instruction set. */
struct bf16_isa {
    bf16_pack *pack_a, *pack_b;
    bf16_pack_stored *pack_b_stored;
    /* Rounds n elements to bf16, and makes floats of n elements in bf16 (weft/internal/bf16.h). */
    void (*keep)(int64_t n, const float *from, wf_bf16 *to);
    void (*widen)(int64_t n, const wf_bf16 *from, float *to);
    /* The epilogue for m x n sums, which belong to the elements of C from row `row` and column `column` of the block on. */
    void (*store)(const struct bf16_block *b, int64_t m, int64_t n, int64_t row, int64_t column, const float *sum, int64_t sum_rs);
    /* Stores m rows of BF16_MR sums, which are the elements of C as they are, past the caches. Rows of c begin at multiples of a cache
     * line. NULL: this instruction set does not do so. */
    void (*store_far)(int64_t m, const float *sum, float *c, int64_t c_rs);
    /* Floats of scratch that `block` needs, and the block itself, without AMX. */
    int64_t (*scratch)(const struct bf16_block *b);
    void (*block)(const struct bf16_block *b, float *scratch);
};

#ifdef WF_ISA
bf16_pack WF_GEMM(bf16_pack_a), WF_GEMM(bf16_pack_b);
bf16_pack_stored WF_GEMM(bf16_pack_b_stored);
void WF_GEMM(bf16_keep)(int64_t n, const float *from, wf_bf16 *to);
void WF_GEMM(bf16_widen)(int64_t n, const wf_bf16 *from, float *to);
extern const struct bf16_isa WF_GEMM(bf16);
#endif

static inline const struct bf16_isa *bf16_isa(void)
{
    return wf_kernel->internal->bf16;
}

/* amx.c. The block, between wf_amx_enter and wf_amx_leave. */
void wf_amx_block(const struct bf16_block *b);

/* bf16.c. The product in bf16's arithmetic. m, n, k > 0. False without memory. */
bool wf_gemm_bf16(const struct wf_gemm *g, bool serial) WF_CHECKED;
#endif

#endif
