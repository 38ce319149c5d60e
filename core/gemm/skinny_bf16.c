/* SPDX-License-Identifier: MIT */
/* Skinny products whose B has k contiguous, and whose B is stored as bf16 or whose arithmetic is that of bf16: what skinny_nt.c does for
 * floats. Memory is read once, and nothing is packed.
 *
 * A register holds pairs of bf16 numbers: a column's elements of two steps of k. So one transposition in registers serves twice as many
 * elements as in skinny_nt. An element of B in bf16 becomes a float by a shift or a mask. */
#ifndef WF_DOUBLE
#include <string.h>

#include "../bf16_lanes.h"
#include "../transpose.h"
#include "bf16.h"
#include "skinny_nt.h"

enum {
    PAIRS_K = 2 * V_LANES, /* steps of k in a square of pairs */
    VECTORS = 2,           /* speed: vectors of columns that are computed in turn, so that the chains of one wait while the other loads */
    ROWS = 4,              /* speed: rows that are computed together */
    AHEAD = 1024,          /* speed: bytes of a column to prefetch ahead, */
    SHORT = 4096,          /* speed: unless a column has at most so many; then the next columns are prefetched */
};

/* Each form names the type in which B is stored, and the arithmetic. */
enum form { BF16_IN_FLOAT, BF16_IN_BF16, FLOAT_IN_BF16 };

/* Columns of B, and the rows of A for them. The result d [m, V_LANES] is in memory. */
struct strip {
    int64_t m, n, k; /* n: at most V_LANES columns */
    const float *a;
    int64_t a_rs;
    const void *b;
    int64_t b_cs; /* elements */
    float *d;
};

/* Loads a square: lane j of x[i] becomes pair i of column j. Beyond the end of k and of the columns the square has zeros. */
V_INLINE void load_pairs(const bool floats, bool whole, const void *at, int64_t b_cs, int64_t k, int64_t n, vr x[V_LANES])
{
    if (floats) {
        const float *b = at;
        const v_mask first = V_FIRST((int)WF_MIN(k, V_LANES)), second = V_FIRST((int)WF_MAX(0, WF_MIN(k - V_LANES, V_LANES)));
#pragma GCC unroll 16
        for (int i = 0; i < V_LANES; i++)
            if (whole)
                x[i] = bf16_narrowed(v_load(b + i * b_cs), v_load(b + i * b_cs + V_LANES));
            else
                x[i] = i < n ? bf16_narrowed(v_load_mask(b + i * b_cs, first),
                                             k > V_LANES ? v_load_mask(b + i * b_cs + V_LANES, second) : v_set(0))
                             : v_set(0);
    } else {
        const wf_bf16 *b = at;
        _Alignas(64) wf_bf16 line[PAIRS_K] = {0};
#pragma GCC unroll 16
        for (int i = 0; i < V_LANES; i++) {
            const wf_bf16 *from = b + i * b_cs;
            if (!whole && i < n) {
                for (int64_t p = 0; p < WF_MIN(k, PAIRS_K); p++)
                    line[p] = from[p];
                from = line;
            }
            x[i] = v_set(0);
            if (whole || i < n)
                memcpy(&x[i], from, sizeof x[i]); /* the address may be odd, counted in floats */
        }
    }
    v_transpose(x);
}

/* Adds a square to the sums of `rows` rows. In float: one chain over `steps` steps of k, which continues the sum. In bf16: the chains of
 * the even and the odd k are in `chain`, and begin at 0 if `begins`. `ends`: d = d + (e + o). */
V_INLINE void add_rows(const int rows, const bool bf16, int64_t steps, bool begins, bool ends, const float *a, int64_t a_rs,
                       const vr x[V_LANES], float *d, vr chain[][2])
{
    vr even[ROWS], odd[ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        even[r] = !bf16 ? v_load(d + r * V_LANES) : begins ? v_set(0) : chain[r][0];
        odd[r] = !bf16 || begins ? v_set(0) : chain[r][1];
    }
#pragma GCC unroll 16
    for (int i = 0; i < V_LANES; i++) {
        if (!bf16 && 2 * i >= steps)
            break;
        const vr first = bf16_even(x[i]), second = bf16_odd(x[i]);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            even[r] = v_fma(v_set(a[r * a_rs + 2 * i]), first, even[r]);
            if (bf16)
                odd[r] = v_fma(v_set(a[r * a_rs + 2 * i + 1]), second, odd[r]);
        }
        if (!bf16 && 2 * i + 1 < steps)
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
                even[r] = v_fma(v_set(a[r * a_rs + 2 * i + 1]), second, even[r]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
        if (!bf16) {
            v_store(d + r * V_LANES, even[r]);
        } else if (ends) {
            v_store(d + r * V_LANES, v_load(d + r * V_LANES) + (even[r] + odd[r]));
        } else {
            chain[r][0] = even[r];
            chain[r][1] = odd[r];
        }
}

V_INLINE void add_square(const bool bf16, int64_t m, int64_t steps, bool begins, bool ends, const float *a, int64_t a_rs,
                         const vr x[V_LANES], float *d, vr chain[][2])
{
    int64_t r = 0;
    for (; r + ROWS <= m; r += ROWS)
        add_rows(ROWS, bf16, steps, begins, ends, a + r * a_rs, a_rs, x, d + r * V_LANES, chain + r);
    a += r * a_rs;
    d += r * V_LANES;
    chain += r;
    switch (m - r) {
    case 1:
        add_rows(1, bf16, steps, begins, ends, a, a_rs, x, d, chain);
        break;
    case 2:
        add_rows(2, bf16, steps, begins, ends, a, a_rs, x, d, chain);
        break;
    case 3:
        add_rows(3, bf16, steps, begins, ends, a, a_rs, x, d, chain);
        break;
    }
}

/* Adds the squares of VECTORS strips to the sums of `rows` rows, in float, where each sum is a chain of multiply-adds that wait for each
 * other: the chains of all strips take turns. */
V_INLINE void add_in_turn(const int rows, const float *a, int64_t a_rs, vr x[VECTORS][V_LANES], const struct strip s[VECTORS])
{
    vr sum[ROWS][VECTORS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < VECTORS; v++)
            sum[r][v] = v_load(s[v].d + r * V_LANES);
#pragma GCC unroll 16
    for (int i = 0; i < V_LANES; i++)
#pragma GCC unroll 2
        for (int odd = 0; odd < 2; odd++)
#pragma GCC unroll 2
            for (int v = 0; v < VECTORS; v++) {
                const vr b = odd ? bf16_odd(x[v][i]) : bf16_even(x[v][i]);
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++)
                    sum[r][v] = v_fma(v_set(a[r * a_rs + 2 * i + odd]), b, sum[r][v]);
            }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < VECTORS; v++)
            v_store(s[v].d + r * V_LANES, sum[r][v]);
}

V_INLINE const void *element(const bool floats, const void *b, int64_t offset)
{
    return (const char *)b + offset * (floats ? (int64_t)sizeof(float) : (int64_t)sizeof(wf_bf16));
}

V_INLINE void prefetch(const bool floats, const struct strip *s, int64_t p)
{
    const int64_t bytes = floats ? sizeof(float) : sizeof(wf_bf16), column = s->b_cs * bytes;
    const char *at = (const char *)s->b + p * bytes + (column <= SHORT ? VECTORS * V_LANES * column : AHEAD);
#pragma GCC unroll 16
    for (int i = 0; i < V_LANES; i++)
        for (int64_t line = 0; line < PAIRS_K * bytes; line += CACHE_LINE)
            __builtin_prefetch(at + i * column + line, 0, 2);
}

/* d = the sums over k of `vectors` strips, which follow each other. In bf16's arithmetic A has zeros beyond the end of k, up to a whole
 * step. Not inlined: no arithmetic may move to the other side of a change of MXCSR. */
V_INLINE void multiply(const enum form form, int vectors, const struct strip *s)
{
    const bool bf16 = form != BF16_IN_FLOAT, floats = form == FLOAT_IN_BF16;
    const int64_t end = bf16 ? gemm_ceil_div(s->k, BF16_K) * BF16_K : s->k;
    vr chain[VECTORS][SKINNY_M][2];
    for (int v = 0; v < vectors; v++)
        for (int64_t r = 0; r < s->m; r++)
            v_store(s[v].d + r * V_LANES, v_set(0));
    int64_t p = 0;
    if (!bf16 && s->m <= 2 && vectors == VECTORS && s[VECTORS - 1].n == V_LANES)
        for (; p + PAIRS_K <= end; p += PAIRS_K) {
            vr x[VECTORS][V_LANES];
#pragma GCC unroll 2
            for (int v = 0; v < VECTORS; v++) {
                prefetch(floats, &s[v], p);
                load_pairs(floats, true, element(floats, s[v].b, p), s->b_cs, PAIRS_K, V_LANES, x[v]);
            }
            if (s->m == 1)
                add_in_turn(1, s->a + p, s->a_rs, x, s);
            else
                add_in_turn(2, s->a + p, s->a_rs, x, s);
        }
    for (; p < end; p += PAIRS_K)
        for (int v = 0; v < vectors; v++) {
            const int64_t left = s->k - p;
            const void *b = element(floats, s[v].b, p);
            vr x[V_LANES];
            if (left >= PAIRS_K && s[v].n == V_LANES) {
                prefetch(floats, &s[v], p);
                load_pairs(floats, true, b, s->b_cs, PAIRS_K, V_LANES, x);
            } else {
                load_pairs(floats, false, b, s->b_cs, WF_MAX(left, 0), s[v].n, x);
            }
            const int64_t at = BF16_K > 2 * V_LANES ? p % BF16_K : 0; /* in the step of bf16's arithmetic */
            const bool begins = at == 0, ends = at + PAIRS_K == BF16_K;
            if (bf16 || left >= PAIRS_K)
                add_square(bf16, s->m, PAIRS_K, begins, ends, s->a + p, s->a_rs, x, s[v].d, chain[v]);
            else
                add_square(bf16, s->m, left, begins, ends, s->a + p, s->a_rs, x, s[v].d, chain[v]);
        }
}

V_NOINLINE void bf16_in_float(int vectors, const struct strip *s)
{
    multiply(BF16_IN_FLOAT, vectors, s);
}

#if defined V_HAS_FMA
V_NOINLINE void bf16_in_bf16(int vectors, const struct strip *s)
{
    multiply(BF16_IN_BF16, vectors, s);
}

V_NOINLINE void float_in_bf16(int vectors, const struct strip *s)
{
    multiply(FLOAT_IN_BF16, vectors, s);
}
#endif

/* The strips of columns j .. j + VECTORS * V_LANES - 1; returns how many there are. */
V_INLINE int strips_at(const struct wf_gemm *g, int64_t j, int64_t p, int64_t k, float *d, struct strip s[VECTORS])
{
    int count = 0;
    for (; count < VECTORS && j < g->n; count++, j += V_LANES)
        s[count] = (struct strip){.m = g->m,
                                  .n = WF_MIN(g->n - j, V_LANES),
                                  .k = k,
                                  .a = g->a + p,
                                  .a_rs = g->a_rs,
                                  .b = gemm_b_at(g, j * g->b_cs + p),
                                  .b_cs = g->b_cs,
                                  .d = d + count * SKINNY_M * V_LANES};
    return count;
}

/* The cache blocks of k are those of skinny_nt, and so are the bits. */
static void in_float(const struct wf_gemm *g, const struct gemm_epilogue *e)
{
    const int64_t block = gemm_kc(g->k);
    _Alignas(64) float d[VECTORS * SKINNY_M * V_LANES];
    for (int64_t j = 0; j < g->n; j += VECTORS * V_LANES)
        for (int64_t p = 0; p < g->k; p += block) {
            struct strip s[VECTORS];
            const int count = strips_at(g, j, p, WF_MIN(g->k - p, block), d, s);
            const bool last = g->k - p <= block;
            bf16_in_float(count, s);
            for (int v = 0; v < count; v++) {
                const int64_t column = j + v * V_LANES;
                const vr bias_n = last && e->bias_n ? load_c(e->bias_n + column, 1, s[v].n) : v_set(0);
                for (int64_t r = 0; r < g->m; r++)
                    store_sums(g->c + r * g->c_rs + column * g->c_cs, g->c_cs, s[v].n, e->alpha, v_load(s[v].d + r * V_LANES),
                               p == 0 ? e->beta : 1, last && e->bias_m ? v_set(e->bias_m[r]) : bias_n);
            }
        }
}

#if defined V_HAS_FMA
static void in_bf16(const struct wf_gemm *g, const struct gemm_epilogue *e)
{
    const bool floats = g->b_stored != WF_BF16;
    const struct bf16_block block = {.m = g->m, .n = g->n, .c = g->c, .c_rs = g->c_rs, .c_cs = g->c_cs, .epilogue = *e};
    _Alignas(64) float d[VECTORS * SKINNY_M * V_LANES];
    for (int64_t j = 0; j < g->n; j += VECTORS * V_LANES) {
        struct strip s[VECTORS];
        const int count = strips_at(g, j, 0, g->k, d, s);
        const unsigned mode = bf16_mode(BF16_FLUSH);
        (floats ? float_in_bf16 : bf16_in_bf16)(count, s);
        bf16_mode(mode);
        for (int v = 0; v < count; v++)
            WF_GEMM(bf16).store(&block, g->m, s[v].n, 0, j + v * V_LANES, s[v].d, V_LANES);
    }
}

/* Rows of A, rounded, with zeros up to a whole step. */
static void round_rows(const struct wf_gemm *g, float *out)
{
    const int64_t k = gemm_ceil_div(g->k, BF16_K) * BF16_K;
    for (int64_t r = 0; r < g->m; r++, out += k)
        for (int64_t p = 0; p < k; p += V_LANES) {
            vr x = v_set(0);
            if (g->a_cs == 1 && g->k - p > 0)
                x = v_load_mask(g->a + r * g->a_rs + p, V_FIRST((int)WF_MIN(g->k - p, V_LANES)));
            else
                V_EACH(l) x[l] = p + l < g->k ? g->a[r * g->a_rs + (p + l) * g->a_cs] : 0;
            v_store(out + p, bf16_floats(x));
        }
}

void WF_GEMM(skinny_bf16)(const struct wf_gemm *given, const struct gemm_epilogue *e, float *rounded)
{
    if (given->precision != WF_PRECISION_BF16) {
        in_float(given, e);
        return;
    }
    struct wf_gemm g = *given;
    round_rows(given, rounded);
    g.a = rounded;
    g.a_rs = gemm_ceil_div(g.k, BF16_K) * BF16_K;
    in_bf16(&g, e);
}
#else
void WF_GEMM(skinny_bf16)(const struct wf_gemm *g, const struct gemm_epilogue *e, float *rounded)
{
    (void)rounded;
    in_float(g, e);
}
#endif
#endif
