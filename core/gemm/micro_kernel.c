/* SPDX-License-Identifier: MIT */
/* The micro-kernels and the macro-kernel. A micro-kernel computes a register tile of C, up to MR x NR elements, by rank-1 updates along
 * k. The macro-kernel loops over the tiles of a cache block. A may be packed, or is read in place with any strides, because single
 * elements are broadcast. B is read by whole vectors; it may be packed, or is read in place if its rows are contiguous. */
#include "../simd.h"
#include "private.h"

V_INLINE wf_real fma_1(wf_real a, wf_real b, wf_real c)
{
    return v_fma(v_set(a), v_set(b), v_set(c))[0];
}

/* The reference micro-kernel, for a cache block that is one register tile. The tuned micro-kernels below give the same bits, as
 * tests/core/gemm.c checks. */
static void reference(const struct gemm_cache_block *g)
{
    const struct gemm_epilogue *e = &g->epilogue;
    wf_real ab[MR][NR] = {{0}};        /* initialise the accumulator */
    for (int64_t p = 0; p < g->k; p++) /* k rank-1 updates */
        for (int64_t i = 0; i < g->m; i++)
            for (int64_t j = 0; j < g->n; j++)
                ab[i][j] = fma_1(g->a[i * g->a_rs + p * g->a_cs], g->b[p * g->b_step + j], ab[i][j]);
    for (int64_t i = 0; i < g->m; i++) /* scale by alpha, add beta C and the bias */
        for (int64_t j = 0; j < g->n; j++) {
            wf_real *c = g->c + i * g->c_rs + j * g->c_cs, addend = e->bias_n ? e->bias_n[j] : e->bias_m ? e->bias_m[i] : 0;
            if (e->beta != 0)
                addend = fma_1(e->beta, *c, addend);
            *c = fma_1(e->alpha, ab[i][j], addend);
        }
}

/* ---- The tuned micro-kernels. In the inline functions, `m` (rows of the tile), `vectors` (vectors in a row) and the flags are constants
 * of each call, so the compiler unrolls the loops over the tile and keeps the sums in registers. */
struct tile {
    int64_t k;
    const wf_real *a;
    int64_t a_rs, a_cs;
    const wf_real *b;
    int64_t b_step;
    int tail; /* number of valid lanes in the last vector */
    /* At each step of k the micro-kernel prefetches the cache line at `prefetch`. The address then advances by prefetch_step bytes, and
     * after every prefetch_lines lines by prefetch_jump bytes more. */
    const char *prefetch;
    int64_t prefetch_step, prefetch_lines, prefetch_jump;
    wf_real *c;
    int64_t c_rs;
    const wf_real *bias_n, *bias_m;
    const struct gemm_epilogue *epilogue;
};

/* The epilogue: c = alpha sum + beta c + bias. `read` is false if the caller knows that beta is 0, and then C is not read. `bias_by_row`:
 * the bias has one number for each row. In this case the caller sets `read` without knowing beta, so beta is compared with 0 here. */
V_INLINE void store_tile(const int m, const int vectors, const bool read, const bool bias_by_row, const struct tile *t,
                         vr sum[MR][NR_VECTORS])
{
    const struct gemm_epilogue *e = t->epilogue;
    const vr alpha = v_set(e->alpha), beta = v_set(e->beta);
    const v_mask last = V_FIRST(t->tail);
    const bool with = !bias_by_row || e->beta != 0;
    wf_real *c = t->c;
    vr bias[NR_VECTORS];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++)
        bias[v] = bias_by_row || !t->bias_n ? v_set(0)
                  : v == vectors - 1        ? v_load_mask(t->bias_n + v * V_LANES, last)
                                            : v_load(t->bias_n + v * V_LANES);
    if (MASKS_ARE_FREE || t->tail < V_LANES) {
#pragma GCC unroll 14
        for (int i = 0; i < m; i++, c += t->c_rs)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) {
                vr addend = bias_by_row ? v_set(t->bias_m[i]) : bias[v];
                if (read && with)
                    addend = v_fma(beta, v == vectors - 1 ? v_load_mask(c + v * V_LANES, last) : v_load(c + v * V_LANES), addend);
                addend = v_fma(alpha, sum[i][v], addend);
                if (v == vectors - 1)
                    v_store_mask(c + v * V_LANES, last, addend);
                else
                    v_store(c + v * V_LANES, addend);
            }
        return;
    }
#pragma GCC unroll 14
    for (int i = 0; i < m; i++, c += t->c_rs)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            vr addend = bias_by_row ? v_set(t->bias_m[i]) : bias[v];
            if (read && with)
                addend = v_fma(beta, v_load(c + v * V_LANES), addend);
            v_store(c + v * V_LANES, v_fma(alpha, sum[i][v], addend));
        }
}

/* The addresses that a tile reads or prefetches next; a7 is that of row A7 of A. */
struct position {
    const char *a, *a7, *b, *prefetch;
};

/* k rank-1 updates. `unit` tells the compiler that a_rs is 1; otherwise the rows of A are read at the offsets that a_row_offset() gives.
 * `masked`: the last vector of B is read with a mask. */
V_INLINE void rank_1_updates(const int m, const int vectors, const bool unit, const bool masked, int64_t k, const struct tile *t,
                             struct position *w, vr sum[MR][NR_VECTORS])
{
    const v_mask last = V_FIRST(t->tail);
    const int64_t size = sizeof(wf_real), r1 = t->a_rs * size, a_cs = t->a_cs * size, b_step = t->b_step * size,
                  prefetch_step = t->prefetch_step;
    int64_t r3 = 3 * r1, r5 = 5 * r1;
    __asm__("" : "+r"(r3), "+r"(r5)); /* keeps r3 and r5 in registers; otherwise GCC would compute them again in the loop */
    const char *a = w->a, *a7 = w->a7, *b = w->b, *prefetch = w->prefetch;
#pragma GCC unroll 1 /* GCC runs out of registers if it unrolls */
    for (int64_t p = k; p > 0; p--) {
        vr x[NR_VECTORS];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            const wf_real *from = (const wf_real *)b + v * V_LANES;
            x[v] = masked && v == vectors - 1 ? v_load_mask(from, last) : v_load(from);
        }
#pragma GCC unroll 14
        for (int i = 0; i < m; i++) {
            const char *base = i < A7 ? a : a7;
            const vr y = v_set(unit ? ((const wf_real *)a)[i] : *(const wf_real *)(base + a_row_offset(i, r1, r3, r5)));
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                sum[i][v] = v_fma(y, x[v], sum[i][v]);
        }
        __builtin_prefetch(prefetch);
        prefetch += prefetch_step;
        a += a_cs;
        a7 += a_cs;
        b += b_step;
    }
    *w = (struct position){a, a7, b, prefetch};
}

V_INLINE void micro_kernel(const int m, const int vectors, const bool unit, const bool masked, const struct tile *t)
{
    vr sum[MR][NR_VECTORS];
#pragma GCC unroll 14
    for (int i = 0; i < m; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sum[i][v] = v_set(0);
    struct position w = {(const char *)t->a, (const char *)(t->a + A7 * t->a_rs), (const char *)t->b, t->prefetch};
    __asm__("" : "+r"(w.a7));
    if (t->k >= FAR_K) { /* C is mostly not cached; prefetched now, it arrives during the multiplications */
#pragma GCC unroll 14
        for (int i = 0; i < m; i++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                __builtin_prefetch(t->c + i * t->c_rs + v * V_LANES, 1);
    }
    if (t->prefetch_jump == 0) { /* without a jump one call is enough; the start of the loop below would slow down small tiles */
        rank_1_updates(m, vectors, unit, masked, t->k, t, &w, sum);
    } else {
        for (int64_t left = t->k; left > 0; left -= t->prefetch_lines, w.prefetch += t->prefetch_jump)
            rank_1_updates(m, vectors, unit, masked, WF_MIN(left, t->prefetch_lines), t, &w, sum);
    }
    if (t->bias_m)
        store_tile(m, vectors, true, true, t, sum);
    else if (t->epilogue->beta != 0)
        store_tile(m, vectors, true, false, t, sum);
    else
        store_tile(m, vectors, false, false, t, sum);
}

/* One function for each m, each number of vectors, and each way to read A and B. */
#define MICRO_KERNEL(m, vectors, unit, masked)                                                                                             \
    static void micro_kernel_##m##_##vectors##_##unit##_##masked(const struct tile *t)                                                     \
    {                                                                                                                                      \
        micro_kernel(m, vectors, unit, masked, t);                                                                                         \
    }
#define NAME(m, vectors, unit, masked) micro_kernel_##m##_##vectors##_##unit##_##masked,
#define UP_TO_6(what, ...)                                                                                                                 \
    what(1, __VA_ARGS__) what(2, __VA_ARGS__) what(3, __VA_ARGS__) what(4, __VA_ARGS__) what(5, __VA_ARGS__) what(6, __VA_ARGS__)
#if defined WF_ISA_AVX512
#define EACH_M(what, ...)                                                                                                                  \
    UP_TO_6(what, __VA_ARGS__)                                                                                                             \
    what(7, __VA_ARGS__) what(8, __VA_ARGS__) what(9, __VA_ARGS__) what(10, __VA_ARGS__) what(11, __VA_ARGS__) what(12, __VA_ARGS__)       \
        what(13, __VA_ARGS__) what(14, __VA_ARGS__)
#else
#define EACH_M UP_TO_6
#endif
EACH_M(MICRO_KERNEL, 1, 0, 0)
EACH_M(MICRO_KERNEL, 1, 0, 1)
EACH_M(MICRO_KERNEL, 1, 1, 0)
EACH_M(MICRO_KERNEL, 1, 1, 1)
EACH_M(MICRO_KERNEL, 2, 0, 0)
EACH_M(MICRO_KERNEL, 2, 0, 1)
EACH_M(MICRO_KERNEL, 2, 1, 0)
EACH_M(MICRO_KERNEL, 2, 1, 1)

typedef void micro_kernel_function(const struct tile *);
/* Indices: [a_rs is 1][the last vector of B is read with a mask][vectors - 1][m - 1]. */
static micro_kernel_function *const micro_kernels[2][2][NR_VECTORS][MR] = {
    {{{EACH_M(NAME, 1, 0, 0)}, {EACH_M(NAME, 2, 0, 0)}}, {{EACH_M(NAME, 1, 0, 1)}, {EACH_M(NAME, 2, 0, 1)}}},
    {{{EACH_M(NAME, 1, 1, 0)}, {EACH_M(NAME, 2, 1, 0)}}, {{EACH_M(NAME, 1, 1, 1)}, {EACH_M(NAME, 2, 1, 1)}}},
};

/* Computes a tile in a contiguous copy of C, for a C whose rows are not contiguous: vector stores cannot write such rows. */
static void store_through_copy(micro_kernel_function *f, struct tile *t, int64_t m, int64_t n, int64_t c_cs)
{
    wf_real copy[MR * NR] __attribute__((aligned(64))), *const c = t->c;
    const int64_t c_rs = t->c_rs;
    if (t->epilogue->beta != 0)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                copy[i * NR + j] = c[i * c_rs + j * c_cs];
    t->c = copy;
    t->c_rs = NR;
    f(t);
    t->c_rs = c_rs;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * c_rs + j * c_cs] = copy[i * NR + j];
}

/* The progress of prefetching during a cache block: the index in gemm_cache_block.prefetch of the current area, and how many of the runs of
 * this area are prefetched. */
struct prefetched {
    int area;
    int64_t runs;
};

/* Chooses what a tile prefetches, one cache line at each step of k: either the next rows of A, or an area that is read after the cache
 * block. The next rows of A are prefetched by the last tile of a row of tiles, into the first-level cache. If A is read in place, the first
 * tile of a long row of tiles does so too, because these rows come from memory. If a row has only one tile, this tile prefetches the areas
 * first and then rows of A, because the areas are further from the processor. If nothing remains to be prefetched, the tile prefetches an
 * address that it reads anyway. */
V_INLINE void prefetch(const struct gemm_cache_block *g, struct tile *t, const wf_real *next_rows, struct prefetched *f)
{
    t->prefetch_step = CACHE_LINE;
    t->prefetch_jump = 0;
    while (f->area < PREFETCHES && (f->runs >= g->prefetch[f->area].runs || g->prefetch[f->area].lines <= 0))
        *f = (struct prefetched){f->area + 1, 0};
    if (next_rows && (f->area == PREFETCHES || g->n > NR)) {
        t->prefetch = (const char *)next_rows;
        if (g->a_panel)
            return;
        if (g->a_rs == 1) {
            t->prefetch_step = g->a_cs * (int64_t)sizeof(wf_real);
            return;
        }
        if (g->a_cs == 1) {
            if (g->a_rs == t->k)
                return;
            t->prefetch_lines = gemm_ceil_div(t->k, LINE);
            t->prefetch_jump = g->a_rs * (int64_t)sizeof(wf_real) - t->prefetch_lines * CACHE_LINE;
            return;
        }
    }
    if (f->area == PREFETCHES) {
        t->prefetch = (const char *)g->a;
        t->prefetch_step = 0;
        return;
    }
    const struct gemm_prefetch *p = &g->prefetch[f->area];
    /* In its k steps the tile prefetches `runs` runs. If fewer are left in the area, it begins with runs that are prefetched already, so
     * that it does not go past the end. Of a run longer than k lines only the first k lines are prefetched. */
    t->prefetch_lines = WF_MIN(p->lines, t->k);
    const int64_t runs = t->k / t->prefetch_lines, run = WF_MIN(f->runs, WF_MAX(p->runs - runs, 0));
    t->prefetch = (const char *)(p->at + run * p->stride);
    t->prefetch_jump = p->stride * (int64_t)sizeof(wf_real) - t->prefetch_lines * CACHE_LINE;
    f->runs += runs;
}

/* The macro-kernel. Its outer loop goes over rows of tiles, its inner loop over columns of tiles. So the rows of A of a row of
 * tiles stay in the first-level cache, while up to STREAM_N columns of B are read one after the other from the second-level cache. */
void WF_GEMM(macro_kernel)(const struct gemm_cache_block *g)
{
    enum { STREAM = STREAM_N / NR * NR };
    const int64_t tiles_m = gemm_ceil_div(g->m, MR);
    struct tile t = {.k = g->k, .a_rs = g->a_rs, .a_cs = g->a_cs, .b_step = g->b_step, .c_rs = g->c_rs, .epilogue = &g->epilogue};
    t.prefetch = (const char *)g->a;
    const bool far = g->m * g->k >= FAR_A,
               prefetches = far || g->prefetch[0].runs > 0 || g->prefetch[1].runs > 0 || g->prefetch[2].runs > 0;
    struct prefetched prefetched = {0, 0};
    for (int64_t j0 = 0; j0 < g->n; j0 += STREAM) {
        const int64_t j1 = WF_MIN(g->n, j0 + STREAM);
        for (int64_t i = 0, row = 0; i < tiles_m; i++) {
            const int64_t next = gemm_cut(g->m, tiles_m, i + 1), m = next - row;
            t.a = g->a_panel ? g->a + i * g->a_panel : g->a + row * g->a_rs;
            t.bias_m = g->epilogue.bias_m ? g->epilogue.bias_m + row : NULL;
            for (int64_t j = j0; j < j1; j += NR) {
                const int64_t n = WF_MIN(g->n - j, NR);
                const int vectors = n > V_LANES ? 2 : 1;
                t.tail = (int)(n - (vectors - 1) * V_LANES);
                t.b = g->b + j / NR * g->b_panel;
                t.bias_n = g->epilogue.bias_n ? g->epilogue.bias_n + j : NULL;
                t.c = g->c + row * g->c_rs + j * g->c_cs;
                const wf_real *next_rows = next < g->m ? (g->a_panel ? t.a + g->a_panel : t.a + m * g->a_rs) : g->next_a;
                const bool edge = j + NR >= j1 || (j == j0 && j1 - j0 > 2 * NR && !g->a_panel);
                if (prefetches)
                    prefetch(g, &t, far && edge ? next_rows : NULL, &prefetched);
                micro_kernel_function *f = micro_kernels[g->a_rs == 1][!g->b_padded && t.tail < V_LANES][vectors - 1][m - 1];
                if (g->c_cs == 1 || n == 1)
                    f(&t);
                else
                    store_through_copy(f, &t, m, n, g->c_cs);
            }
            row = next;
        }
    }
}

const struct gemm_isa WF_GEMM(isa) = {
    .mr = MR,
    .nr = NR,
    .lanes = V_LANES,
    .skinny_m = SKINNY_M,
    .reference = reference,
    .macro_kernel = WF_GEMM(macro_kernel),
    .pack_b_panel = WF_GEMM(pack_b_panel),
    .pack_b_vector = WF_GEMM(pack_b_vector),
    .pack_a_panel = WF_GEMM(pack_a_panel),
    .skinny_nt = WF_GEMM(skinny_nt),
    .skinny_nn = WF_GEMM(skinny_nn),
    .conv_pad = WF_GEMM(conv_pad),
    .conv_tiles = WF_GEMM(conv_tiles),
    .conv_sums = WF_GEMM(conv_sums),
#ifndef WF_DOUBLE
    .pack_b_panel_bf16 = WF_GEMM(pack_b_panel_bf16),
    .skinny_bf16 = WF_GEMM(skinny_bf16),
#if defined V_HAS_FMA
    .has_skinny_bf16 = true,
#endif
#endif
};
