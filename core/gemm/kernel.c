/* SPDX-License-Identifier: MIT */
/* The micro-kernels: a tile of up to TILE_M x TILE_N elements of C in registers, rank-1 updates along k. A is read by
 * broadcasts, packed or in place through its strides; B by whole vectors, packed or in place where its rows are contiguous. */
#include "../simd.h"
#include "isa.h"

#ifndef GEMM_STREAM
#define GEMM_STREAM 512
#endif

enum { FAR_K = 48 };

struct tile {
    int64_t k;
    const wf_real *a;
    int64_t a_rs, a_cs;
    const wf_real *b;
    int64_t b_step;
    int tail;           /* valid lanes of the last vector */
    const char *fetch;  /* what a later tile reads: a line of it is fetched at each step of k, */
    int64_t fetch_step; /* so many bytes on */
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

/* `unit`: a_rs is 1, known to the compiler. Otherwise rows are addressed from two bases with few registers: 14 separate
 * pointers would not fit. `masked`: the last vector of B is not all there. */
V_INLINE void multiply(const int rows, const int vectors, const bool unit, const bool masked, const struct tile *t)
{
    vr sum[TILE_M][TILE_V];
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sum[i][v] = v_set(0);
    const v_mask last = V_FIRST(t->tail);
    const int64_t r1 = t->a_rs * (int64_t)sizeof(wf_real), a_cs = t->a_cs, b_step = t->b_step;
    int64_t r3 = 3 * r1, r5 = 5 * r1;
    __asm__("" : "+r"(r3), "+r"(r5)); /* or they are computed again in the loop */
    const wf_real *a = t->a, *b = t->b;
    const char *a7 = (const char *)a + 7 * r1, *fetch = t->fetch;
    const int64_t fetch_step = t->fetch_step;
    __asm__("" : "+r"(a7));
    if (t->k >= FAR_K) { /* where they go is far away mostly: after the multiplications it is here. Small products find it near */
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                __builtin_prefetch(t->c + i * t->c_rs + v * V_LANES, 1);
    }
#pragma GCC unroll 1 /* unrolled, GCC runs out of registers */
    for (int64_t p = t->k; p > 0; p--) {
        vr x[TILE_V];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            x[v] = masked && v == vectors - 1 ? v_load_mask(b + v * V_LANES, last) : v_load(b + v * V_LANES);
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++) {
            const char *base = i < 7 ? (const char *)a : a7;
            const int q = i % 7;
            const int64_t offset = q == 0 ? 0 : q == 1 ? r1 : q == 2 ? 2 * r1 : q == 3 ? r3 : q == 4 ? 4 * r1 : q == 5 ? r5 : 2 * r3;
            const vr y = v_set(unit ? a[i] : *(const wf_real *)(base + offset));
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                sum[i][v] = v_fma(y, x[v], sum[i][v]);
        }
        __builtin_prefetch(fetch);
        fetch += fetch_step;
        a += a_cs;
        a7 += a_cs * (int64_t)sizeof(wf_real);
        b += b_step;
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

/* What a tile fetches while it multiplies, a line at each step of k: rows of A that come next, which are far away where they are read in
 * place, or else what the next block reads of B. Packed rows come with the last column, which leaves them in the first-level cache;
 * rows that lie end to end with the first, rows apart one with each. It may be that nothing is there: then nothing is fetched. */
V_INLINE bool fetch_rows(const struct gemm_block *g, struct tile *t, const wf_real *rows, int64_t column, bool last)
{
    if (!rows)
        return false;
    t->fetch = (const char *)rows;
    if (g->a_panel || g->a_rs == 1) {
        t->fetch_step = g->a_panel ? CACHE_LINE : g->a_cs * (int64_t)sizeof(wf_real);
        return last;
    }
    if (g->a_cs != 1)
        return false;
    if (g->a_rs == g->k) {
        t->fetch_step = CACHE_LINE;
        return column == 0;
    }
    t->fetch += column * g->a_rs * (int64_t)sizeof(wf_real);
    t->fetch_step = sizeof(wf_real);
    return column < TILE_M;
}

/* Rows outside, columns inside: a tile's rows of A stay in the first-level cache while panels of B stream past, as many as the
 * second-level cache holds. */
void WF_GEMM(block)(const struct gemm_block *g)
{
    enum { COLUMNS = GEMM_STREAM / TILE_N * TILE_N };
    const int64_t down = (g->m + TILE_M - 1) / TILE_M;
    struct tile t = {.k = g->k, .a_rs = g->a_rs, .a_cs = g->a_cs, .b_step = g->b_step, .c_rs = g->c_rs, .end = &g->end};
    struct gemm_span then = g->next[0];
    int span = 0;
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
                if (!fetch_rows(g, &t, rows_next, (j - j0) / TILE_N, j + TILE_N >= j1)) {
                    if (then.size <= 0 && span == 0)
                        then = g->next[++span];
                    const bool more = then.size > 0;
                    t.fetch = (const char *)(more ? then.at : g->a);
                    t.fetch_step = more ? CACHE_LINE : 0;
                    if (more) {
                        then.at += g->k * LINE;
                        then.size -= g->k * LINE;
                    }
                }
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
