/* SPDX-License-Identifier: MIT */
/* What core/gemm has once per instruction set, as a table of functions. kernel.c, pack.c, rows.c and lines.c are compiled for each.
 *
 * The order of additions: k is cut into blocks (wf_gemm_k_block, a function of k alone); within a block every element of C is
 * one chain of multiply-adds in ascending k, started from 0; the blocks are added to C in ascending order. Every kernel,
 * tile and tail keeps it, so the bits of an element depend on its row of A, its column of B and k, and on nothing else. */
#ifndef WEFT_GEMM_ISA_H
#define WEFT_GEMM_ISA_H

#include <weft/internal/kernels.h>

/* What happens to a finished sum: c = alpha sum + beta c + bias. A bias along a row of C (bias_n) or down its columns. */
struct gemm_end {
    wf_real alpha, beta; /* beta 0: c is not read */
    const wf_real *bias_n, *bias_m;
};

/* One k-block of a part of C. A in place: a_panel 0, element (i, p) at a[i * a_rs + p * a_cs]; packed: panels of `mr` rows,
 * a_panel apart, a_rs 1, a_cs mr. B: panels of `nr` columns b_panel apart, element (p, j) of one at b[p * b_step + j]; in
 * place b_panel is nr, and the columns past n are never read (b_padded false); packed panels are filled up with zeros. */
struct gemm_block {
    int64_t m, n, k;
    const wf_real *a;
    int64_t a_rs, a_cs, a_panel;
    const wf_real *b;
    int64_t b_step, b_panel;
    bool b_padded;
    wf_real *c;
    int64_t c_rs, c_cs;
    struct gemm_end end;
    /* What the block after this one reads, which is fetched into the caches meanwhile; NULL: nothing is known. Its rows of A, as this
     * one's, and elements that lie end to end. */
    const wf_real *next_a;
    struct gemm_span {
        const wf_real *at;
        int64_t size;
    } next[2];
};

struct gemm_isa {
    int mr, nr, lanes; /* rows and columns of a register tile, elements of a vector */
    int few;
    void (*block)(const struct gemm_block *b);
    /* out[p * width + i] = s[i * is + p * ps] for i < w, p < k; 0 for w <= i < width. width is nr, or mr (without zeros). */
    void (*pack_n)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
    void (*pack_m)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
    /* Up to `few` rows over all k-blocks, without packing. `rows`: B's k is contiguous (b_rs 1), and A's (a_cs 1) where rows are several.
     * `lines`: B's rows are (b_cs 1), and C's (c_cs 1). `end` alone says what becomes of sums. */
    void (*rows)(const struct wf_gemm *g, const struct gemm_end *end);
    void (*lines)(const struct wf_gemm *g, const struct gemm_end *end);
};

static inline const struct gemm_isa *gemm_isa(void)
{
    return wf_kernel->internal->gemm;
}

/* The rows of tile i of t that share m rows evenly start here. */
static inline int64_t gemm_cut(int64_t m, int64_t t, int64_t i)
{
    int64_t q = m / t, r = m % t;
    return i * q + (i < r ? i : r);
}

/* Elements of a k-block: the last may be shorter. */
enum { GEMM_K = 256, GEMM_K_GRAIN = 16 };
static inline int64_t gemm_k_block(int64_t k)
{
    if (k <= GEMM_K)
        return k;
    int64_t blocks = (k + GEMM_K - 1) / GEMM_K, block = (k + blocks - 1) / blocks;
    return (block + GEMM_K_GRAIN - 1) / GEMM_K_GRAIN * GEMM_K_GRAIN;
}

#ifdef WF_ISA
enum { CACHE_LINE = 64, LINE = CACHE_LINE / sizeof(wf_real) }; /* in bytes, and in elements */

/* A register tile: rows, vectors, columns. */
#if defined(WF_ISA_AVX512)
enum { TILE_M = 14, FEW_ROWS = 12 };
#define LAST_IS_FREE 1 /* a masked load or store costs what a whole one does */
#else
enum { TILE_M = 6, FEW_ROWS = 8 };
#define LAST_IS_FREE 0
#endif
enum { TILE_V = 2, TILE_N = TILE_V * V_LANES };

void WF_GEMM(block)(const struct gemm_block *b);
void WF_GEMM(pack_n)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
void WF_GEMM(pack_m)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
void WF_GEMM(rows)(const struct wf_gemm *g, const struct gemm_end *end);
void WF_GEMM(lines)(const struct wf_gemm *g, const struct gemm_end *end);
extern const struct gemm_isa WF_GEMM(isa);
#endif

#endif
