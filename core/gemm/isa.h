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

enum { CACHE_LINE = 64, GEMM_PIECES = 3 };

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
    /* What is read after this block, which is fetched into the caches meanwhile; NULL: nothing is known. Rows of A, as this one's, and
     * pieces of memory, in this order: `runs` runs of `lines` cache lines, each `stride` elements after the one before. */
    const wf_real *next_a;
    struct gemm_piece {
        const wf_real *at;
        int64_t lines, stride, runs;
    } next[GEMM_PIECES];
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

/* `runs` runs of so many elements each. Lines are counted from the first element on: where that does not begin one, the last is left out.
 */
static inline struct gemm_piece gemm_piece(const wf_real *at, int64_t elements, int64_t stride, int64_t runs)
{
    const int64_t line = CACHE_LINE / (int64_t)sizeof(wf_real);
    return (struct gemm_piece){at, (elements + line - 1) / line, stride, runs};
}

/* n rows, or columns, of an operand, n_step apart, with k steps of k, k_step apart. Nothing where neither lie end to end. */
static inline struct gemm_piece gemm_piece_of(const wf_real *at, int64_t n, int64_t n_step, int64_t k, int64_t k_step)
{
    return n_step == 1 ? gemm_piece(at, n, k_step, k) : gemm_piece(at, k, n_step, k_step == 1 ? n : 0);
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
enum { LINE = CACHE_LINE / sizeof(wf_real) }; /* in elements */

/* A register tile: rows, vectors, columns. */
#if defined(WF_ISA_AVX512)
enum { TILE_M = 14, FEW_ROWS = 12 };
#define LAST_IS_FREE 1 /* a masked load or store costs what a whole one does */
#else
enum { TILE_M = 6, FEW_ROWS = 8 };
#define LAST_IS_FREE 0
#endif
enum { TILE_V = 2, TILE_N = TILE_V * V_LANES };

/* Rows of A that are read by broadcasts lie at two bases, row 0 and row 7, and four distances from them, of which 3 and 5 rows are kept in
 * registers: 14 separate pointers would not fit. From its base to row r, in units of one row, r1. */
V_INLINE int64_t row_distance(const int r, int64_t r1, int64_t r3, int64_t r5)
{
    const int q = r % 7;
    return q == 0 ? 0 : q == 1 ? r1 : q == 2 ? 2 * r1 : q == 3 ? r3 : q == 4 ? 4 * r1 : q == 5 ? r5 : 2 * r3;
}

void WF_GEMM(block)(const struct gemm_block *b);
void WF_GEMM(pack_n)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
void WF_GEMM(pack_m)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
void WF_GEMM(rows)(const struct wf_gemm *g, const struct gemm_end *end);
void WF_GEMM(lines)(const struct wf_gemm *g, const struct gemm_end *end);
extern const struct gemm_isa WF_GEMM(isa);
#endif

#endif
