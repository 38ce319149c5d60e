/* SPDX-License-Identifier: MIT */
/* The micro-kernels: a tile of up to TILE_M x TILE_N elements of C in registers, rank-1 updates along k. A is read by
 * broadcasts, packed or in place through its strides; B by whole vectors, packed or in place where its rows are contiguous. */
#include "../simd.h"
#include "isa.h"

#ifndef GEMM_STREAM
#define GEMM_STREAM 512
#endif

enum {
    FAR_K = 48,   /* products of fewer steps are small, and find near where sums go; */
    FAR_A = 8192, /* a block of fewer elements of A finds those near */
};

struct tile {
    int64_t k;
    const wf_real *a;
    int64_t a_rs, a_cs;
    const wf_real *b;
    int64_t b_step;
    int tail; /* valid lanes of the last vector */
    /* What is read later: at each step of k a line of it is fetched, then the address goes on by fetch_step bytes, and each time after
     * fetch_lines of them by fetch_jump more. */
    const char *fetch;
    int64_t fetch_step, fetch_lines, fetch_jump;
    wf_real *c;
    int64_t c_rs;
    const wf_real *bias_n, *bias_m;
    const struct gemm_end *end;
};

/* c = alpha sum + beta c + bias. `read`: beta is perhaps not 0; `down`: the bias is one number a row. */
V_INLINE void finish(const int rows, const int vectors, const bool read, const bool down, const struct tile *t, vr sum[TILE_M][TILE_V])
{
    const struct gemm_end *e = t->end;
    const vr alpha = v_set(e->alpha), beta = v_set(e->beta);
    const v_mask last = V_FIRST(t->tail);
    const bool with = !down || e->beta != 0;
    wf_real *c = t->c;
    vr bias[TILE_V];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++)
        bias[v] = down || !t->bias_n ? v_set(0)
                  : v == vectors - 1 ? v_load_mask(t->bias_n + v * V_LANES, last)
                                     : v_load(t->bias_n + v * V_LANES);
    if (LAST_IS_FREE || t->tail < V_LANES) {
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++, c += t->c_rs)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) {
                vr rest = down ? v_set(t->bias_m[i]) : bias[v];
                if (read && with)
                    rest = v_fma(beta, v == vectors - 1 ? v_load_mask(c + v * V_LANES, last) : v_load(c + v * V_LANES), rest);
                rest = v_fma(alpha, sum[i][v], rest);
                if (v == vectors - 1)
                    v_store_mask(c + v * V_LANES, last, rest);
                else
                    v_store(c + v * V_LANES, rest);
            }
        return;
    }
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++, c += t->c_rs)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            vr rest = down ? v_set(t->bias_m[i]) : bias[v];
            if (read && with)
                rest = v_fma(beta, v_load(c + v * V_LANES), rest);
            v_store(c + v * V_LANES, v_fma(alpha, sum[i][v], rest));
        }
}

/* Where a tile reads next. */
struct place {
    const char *a, *a7, *b, *fetch;
};

/* `unit`: a_rs is 1, known to the compiler; otherwise rows are at their row_distance. `masked`: the last vector of B is not all there. */
V_INLINE void steps(const int rows, const int vectors, const bool unit, const bool masked, int64_t k, const struct tile *t, struct place *w,
                    vr sum[TILE_M][TILE_V])
{
    const v_mask last = V_FIRST(t->tail);
    const int64_t size = sizeof(wf_real), r1 = t->a_rs * size, a_cs = t->a_cs * size, b_step = t->b_step * size, fetch_step = t->fetch_step;
    int64_t r3 = 3 * r1, r5 = 5 * r1;
    __asm__("" : "+r"(r3), "+r"(r5)); /* or they are computed again in the loop */
    const char *a = w->a, *a7 = w->a7, *b = w->b, *fetch = w->fetch;
#pragma GCC unroll 1 /* unrolled, GCC runs out of registers */
    for (int64_t p = k; p > 0; p--) {
        vr x[TILE_V];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            const wf_real *from = (const wf_real *)b + v * V_LANES;
            x[v] = masked && v == vectors - 1 ? v_load_mask(from, last) : v_load(from);
        }
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++) {
            const char *base = i < 7 ? a : a7;
            const vr y = v_set(unit ? ((const wf_real *)a)[i] : *(const wf_real *)(base + row_distance(i, r1, r3, r5)));
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                sum[i][v] = v_fma(y, x[v], sum[i][v]);
        }
        __builtin_prefetch(fetch);
        fetch += fetch_step;
        a += a_cs;
        a7 += a_cs;
        b += b_step;
    }
    *w = (struct place){a, a7, b, fetch};
}

V_INLINE void multiply(const int rows, const int vectors, const bool unit, const bool masked, const struct tile *t)
{
    vr sum[TILE_M][TILE_V];
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sum[i][v] = v_set(0);
    struct place w = {(const char *)t->a, (const char *)(t->a + 7 * t->a_rs), (const char *)t->b, t->fetch};
    __asm__("" : "+r"(w.a7));
    if (t->k >= FAR_K) { /* where sums go is far away mostly: after the multiplications it is here */
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                __builtin_prefetch(t->c + i * t->c_rs + v * V_LANES, 1);
    }
    if (t->fetch_jump == 0) { /* a loop of its own: small tiles feel the other's start */
        steps(rows, vectors, unit, masked, t->k, t, &w, sum);
    } else {
        for (int64_t left = t->k; left > 0; left -= t->fetch_lines, w.fetch += t->fetch_jump)
            steps(rows, vectors, unit, masked, left < t->fetch_lines ? left : t->fetch_lines, t, &w, sum);
    }
    if (t->bias_m)
        finish(rows, vectors, true, true, t, sum);
    else if (t->end->beta != 0)
        finish(rows, vectors, true, false, t, sum);
    else
        finish(rows, vectors, false, false, t, sum);
}

/* A function for each number of rows, of vectors, and way to read A and B. */
#define TILE(rows, vectors, unit, masked)                                                                                                  \
    static void tile_##rows##_##vectors##_##unit##_##masked(const struct tile *t)                                                          \
    {                                                                                                                                      \
        multiply(rows, vectors, unit, masked, t);                                                                                          \
    }
#define TILES(rows)                                                                                                                        \
    TILE(rows, 1, 0, 0)                                                                                                                    \
    TILE(rows, 1, 0, 1)                                                                                                                    \
    TILE(rows, 1, 1, 0) TILE(rows, 1, 1, 1) TILE(rows, 2, 0, 0) TILE(rows, 2, 0, 1) TILE(rows, 2, 1, 0) TILE(rows, 2, 1, 1)
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)
#if defined WF_ISA_AVX512
TILES(7)
TILES(8)
TILES(9)
TILES(10)
TILES(11)
TILES(12)
TILES(13)
TILES(14)
#define ALL(vectors, unit, masked)                                                                                                         \
    {                                                                                                                                      \
        tile_1_##vectors##_##unit##_##masked, tile_2_##vectors##_##unit##_##masked, tile_3_##vectors##_##unit##_##masked,                  \
            tile_4_##vectors##_##unit##_##masked, tile_5_##vectors##_##unit##_##masked, tile_6_##vectors##_##unit##_##masked,              \
            tile_7_##vectors##_##unit##_##masked, tile_8_##vectors##_##unit##_##masked, tile_9_##vectors##_##unit##_##masked,              \
            tile_10_##vectors##_##unit##_##masked, tile_11_##vectors##_##unit##_##masked, tile_12_##vectors##_##unit##_##masked,           \
            tile_13_##vectors##_##unit##_##masked, tile_14_##vectors##_##unit##_##masked                                                   \
    }
#else
#define ALL(vectors, unit, masked)                                                                                                         \
    {                                                                                                                                      \
        tile_1_##vectors##_##unit##_##masked, tile_2_##vectors##_##unit##_##masked, tile_3_##vectors##_##unit##_##masked,                  \
            tile_4_##vectors##_##unit##_##masked, tile_5_##vectors##_##unit##_##masked, tile_6_##vectors##_##unit##_##masked               \
    }
#endif

typedef void tile_function(const struct tile *);
/* [A has unit row stride][B masked][vectors - 1][rows - 1] */
static tile_function *const tiles[2][2][TILE_V][TILE_M] = {
    {{ALL(1, 0, 0), ALL(2, 0, 0)}, {ALL(1, 0, 1), ALL(2, 0, 1)}},
    {{ALL(1, 1, 0), ALL(2, 1, 0)}, {ALL(1, 1, 1), ALL(2, 1, 1)}},
};

/* C with strides that no store fits: the tile goes through a contiguous copy. */
static void through_copy(tile_function *f, struct tile *t, int64_t rows, int64_t columns, int64_t c_cs)
{
    wf_real copy[TILE_M * TILE_N] __attribute__((aligned(64))), *const c = t->c;
    const int64_t c_rs = t->c_rs;
    if (t->end->beta != 0)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++)
                copy[i * TILE_N + j] = c[i * c_rs + j * c_cs];
    t->c = copy;
    t->c_rs = TILE_N;
    f(t);
    t->c_rs = c_rs;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            c[i * c_rs + j * c_cs] = copy[i * TILE_N + j];
}

/* Where the pieces that a block fetches have come to. */
struct fetched {
    int piece;
    int64_t runs;
};

/* What a tile fetches while it multiplies, a line at each step of k: `rows` of A, which come next, or a part of what is read after the
 * block. The first tile of a row brings rows that are read in place from far away, the last has them in the first-level cache; a tile alone
 * in its row fetches what is packed next, which is further away. It may be that nothing is left: then nothing is fetched. */
V_INLINE void fetch(const struct gemm_block *g, struct tile *t, const wf_real *rows, struct fetched *f)
{
    t->fetch_step = CACHE_LINE;
    t->fetch_jump = 0;
    while (f->piece < GEMM_PIECES && (f->runs >= g->next[f->piece].runs || g->next[f->piece].lines <= 0))
        *f = (struct fetched){f->piece + 1, 0};
    if (rows && (f->piece == GEMM_PIECES || g->n > TILE_N)) {
        t->fetch = (const char *)rows;
        if (g->a_panel)
            return;
        if (g->a_rs == 1) {
            t->fetch_step = g->a_cs * (int64_t)sizeof(wf_real);
            return;
        }
        if (g->a_cs == 1) {
            if (g->a_rs == t->k)
                return;
            t->fetch_lines = (t->k + LINE - 1) / LINE;
            t->fetch_jump = g->a_rs * (int64_t)sizeof(wf_real) - t->fetch_lines * CACHE_LINE;
            return;
        }
    }
    if (f->piece == GEMM_PIECES) {
        t->fetch = (const char *)g->a;
        t->fetch_step = 0;
        return;
    }
    const struct gemm_piece *p = &g->next[f->piece];
    t->fetch_lines = p->lines < t->k ? p->lines : t->k;
    const int64_t runs = t->k / t->fetch_lines, run = f->runs + runs <= p->runs ? f->runs : p->runs > runs ? p->runs - runs : 0;
    t->fetch = (const char *)(p->at + run * p->stride);
    t->fetch_jump = p->stride * (int64_t)sizeof(wf_real) - t->fetch_lines * CACHE_LINE;
    f->runs += runs;
}

/* Rows outside, columns inside: a tile's rows of A stay in the first-level cache while panels of B stream past, as many as the
 * second-level cache holds. */
void WF_GEMM(block)(const struct gemm_block *g)
{
    enum { COLUMNS = GEMM_STREAM / TILE_N * TILE_N };
    const int64_t down = (g->m + TILE_M - 1) / TILE_M;
    struct tile t = {.k = g->k, .a_rs = g->a_rs, .a_cs = g->a_cs, .b_step = g->b_step, .c_rs = g->c_rs, .end = &g->end};
    t.fetch = (const char *)g->a;
    const bool far = g->m * g->k >= FAR_A, fetches = far || g->next[0].runs > 0 || g->next[1].runs > 0 || g->next[2].runs > 0;
    struct fetched fetched = {0, 0};
    for (int64_t j0 = 0; j0 < g->n; j0 += COLUMNS) {
        const int64_t j1 = g->n - j0 < COLUMNS ? g->n : j0 + COLUMNS;
        for (int64_t i = 0, row = 0; i < down; i++) {
            const int64_t next = gemm_cut(g->m, down, i + 1), rows = next - row;
            t.a = g->a_panel ? g->a + i * g->a_panel : g->a + row * g->a_rs;
            t.bias_m = g->end.bias_m ? g->end.bias_m + row : NULL;
            for (int64_t j = j0; j < j1; j += TILE_N) {
                const int64_t columns = g->n - j < TILE_N ? g->n - j : TILE_N;
                const int vectors = columns > V_LANES ? 2 : 1;
                t.tail = (int)(columns - (vectors - 1) * V_LANES);
                t.b = g->b + j / TILE_N * g->b_panel;
                t.bias_n = g->end.bias_n ? g->end.bias_n + j : NULL;
                t.c = g->c + row * g->c_rs + j * g->c_cs;
                const wf_real *rows_next = next < g->m ? (g->a_panel ? t.a + g->a_panel : t.a + rows * g->a_rs) : g->next_a;
                const bool edge = j + TILE_N >= j1 || (j == j0 && j1 - j0 > 2 * TILE_N && !g->a_panel);
                if (fetches)
                    fetch(g, &t, far && edge ? rows_next : NULL, &fetched);
                tile_function *f = tiles[g->a_rs == 1][!g->b_padded && t.tail < V_LANES][vectors - 1][rows - 1];
                if (g->c_cs == 1 || columns == 1)
                    f(&t);
                else
                    through_copy(f, &t, rows, columns, g->c_cs);
            }
            row = next;
        }
    }
}

const struct gemm_isa WF_GEMM(isa) = {
    .mr = TILE_M,
    .nr = TILE_N,
    .lanes = V_LANES,
    .few = FEW_ROWS,
    .block = WF_GEMM(block),
    .pack_n = WF_GEMM(pack_n),
    .pack_m = WF_GEMM(pack_m),
    .rows = WF_GEMM(rows),
    .lines = WF_GEMM(lines),
};
