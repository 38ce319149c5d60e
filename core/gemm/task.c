/* SPDX-License-Identifier: MIT */
/* Computes one task on the calling thread: packs A and B or reads them in place, and calls the macro-kernel for each cache block. */
#include <weft/internal/scratch.h>

#include "private.h"

struct gemm_cache_block wf_gemm_cache_block(const struct product *p, const struct gemm_task *task, int64_t k0, int64_t k1)
{
    const struct wf_gemm *g = &p->g;
    const bool last = k1 == g->k;
    return (struct gemm_cache_block){
        .m = task->m1 - task->m0,
        .n = task->n1 - task->n0,
        .k = k1 - k0,
        .a = g->a + task->m0 * g->a_rs + k0 * g->a_cs,
        .a_rs = g->a_rs,
        .a_cs = g->a_cs,
        .c = g->c + task->m0 * g->c_rs + task->n0 * g->c_cs,
        .c_rs = g->c_rs,
        .c_cs = g->c_cs,
        .epilogue = {g->alpha, k0 == 0 ? g->beta : 1, last && p->bias_n ? p->bias_n + task->n0 : NULL,
                     last && p->bias_m ? p->bias_m + task->m0 : NULL},
    };
}

void wf_gemm_pack_a(struct gemm_cache_block *b, wf_real *packed)
{
    const int mr = gemm_isa()->mr;
    const int64_t tiles = gemm_ceil_div(b->m, mr);
    /* If columns of A are contiguous, a cache line holds elements of several tiles. So PACK_K steps of k are packed for all tiles before
     * the next steps, while these lines are in the cache. */
    const int64_t steps = b->a_rs == 1 ? PACK_K : b->k;
    for (int64_t k0 = 0; k0 < b->k; k0 += steps)
        for (int64_t i = 0; i < tiles; i++) {
            const struct gemm_range rows = gemm_share(b->m, 1, tiles, i);
            gemm_isa()->pack_a_panel(rows.end - rows.begin, WF_MIN(steps, b->k - k0), b->a + rows.begin * b->a_rs + k0 * b->a_cs, b->a_rs,
                                     b->a_cs, packed + (i * b->k + k0) * mr);
        }
    b->a = packed;
    b->a_rs = 1;
    b->a_cs = mr;
    b->a_panel = b->k * mr;
}

/* Whether reading A in place costs less than packing it. The micro-kernel broadcasts single elements of A, so an A with contiguous rows
 * is as fast in place as packed. If columns of A are contiguous (the gradient of a weight), each step of k lies on another cache line,
 * and many of these lines compete for the same places in the first-level cache. Packing reads them once, in memory order. */
bool wf_gemm_a_in_place(const struct wf_gemm *g, int64_t columns)
{
    /* A is read once for each panel of B, so with one or two panels (with one if columns of A are contiguous) packing would cost more than
     * it saves. */
    if (g->m < PACK_M_MIN || columns <= (g->a_rs == 1 ? 1 : 2) * gemm_isa()->nr)
        return true;
    if (g->a_cs == 1) /* rows at a distance of whole pages compete for the same places in the first-level cache */
        return g->a_rs * (int64_t)sizeof(wf_real) % ALIAS_BYTES != 0 || columns < ALIAS_PANELS * gemm_isa()->nr;
    return false;
}

/* The micro-kernel reads whole vectors of B, so rows of B must be contiguous. Then B is read in place if there are few rows of C, which
 * read each element of B only once, or if rows of B are short, so that successive steps of k lie close together in memory. */
bool wf_gemm_b_in_place(const struct wf_gemm *g, int64_t rows)
{
    return g->b_cs == 1 && g->b_stored != WF_BF16 && (rows < PACK_M_MIN || g->n * (int64_t)sizeof(wf_real) <= IN_PLACE_BYTES);
}

wf_real *wf_gemm_packed_a(int64_t rows, int64_t k)
{
    const int mr = gemm_isa()->mr;
    return wf_scratch(WF_SCRATCH_PACK_A, (size_t)(gemm_ceil_div(rows, mr) * mr * k) * sizeof(wf_real));
}

void wf_gemm_pack_b(const struct wf_gemm *g, int64_t n, int64_t k, int64_t offset, wf_real *panels)
{
    const int nr = gemm_isa()->nr;
    const int64_t steps = g->b_cs == 1 ? PACK_K : k;
    for (int64_t p = 0; p < k; p += steps)
        for (int64_t j = 0; j < n; j += nr) {
            const wf_real *b = gemm_b_at(g, offset + j * g->b_cs + p * g->b_rs);
            wf_real *panel = panels + j * k + p * nr;
#ifndef WF_DOUBLE
            if (g->b_stored == WF_BF16) {
                gemm_isa()->pack_b_panel_bf16(WF_MIN(nr, n - j), WF_MIN(steps, k - p), (const uint16_t *)b, g->b_cs, g->b_rs, panel);
                continue;
            }
#endif
            gemm_isa()->pack_b_panel(WF_MIN(nr, n - j), WF_MIN(steps, k - p), b, g->b_cs, g->b_rs, panel);
        }
}

bool wf_gemm_task(const struct product *p, const struct gemm_task *task)
{
    const struct wf_gemm *g = &p->g;
    const struct gemm_isa *isa = gemm_isa();
    const int nr = isa->nr;
    const int64_t m = task->m1 - task->m0, n = task->n1 - task->n0, kb = WF_MIN(p->kc, g->k);
    const bool a_in_place = wf_gemm_a_in_place(g, n), b_in_place = wf_gemm_b_in_place(g, m), far = g->n * g->k >= FAR_B;
    wf_real on_stack[STACK_B] __attribute__((aligned(64)));
    wf_real *packed_a = NULL, *packed_b = on_stack;
    /* The number of columns of B that are packed at a time: all if they fit the stack; otherwise up to PACK_N if rows of B are
     * contiguous; otherwise one panel. */
    const int64_t padded_n = gemm_ceil_div(n, nr) * nr, pack_n = kb * padded_n <= STACK_B ? padded_n
                                                                 : g->b_cs == 1           ? WF_MIN(padded_n, PACK_N)
                                                                                          : nr;
    if (!a_in_place && !(packed_a = wf_gemm_packed_a(m, kb)))
        return false;
    if (!b_in_place && pack_n * kb > STACK_B && !(packed_b = wf_scratch(WF_SCRATCH_GEMM, (size_t)(pack_n * kb) * sizeof(wf_real))))
        return false;
    for (int64_t k0 = task->k0; k0 < task->k1; k0 += kb) {
        const int64_t next_k = WF_MIN(kb, g->k + p->k_after - WF_MIN(k0 + kb, task->k1)); /* steps of k in the next cache block */
        struct gemm_cache_block b = wf_gemm_cache_block(p, task, k0, WF_MIN(k0 + kb, task->k1));
        const int64_t from = k0 * g->b_rs + task->n0 * g->b_cs;
        if (!a_in_place)
            wf_gemm_pack_a(&b, packed_a);
        if (b_in_place) {
            if (far)
                b.prefetch[0] = gemm_prefetch_b(g, from + b.k * g->b_rs, n, next_k);
            if (!a_in_place)
                b.prefetch[1] = gemm_prefetch_of(g->a + task->m0 * g->a_rs + (k0 + b.k) * g->a_cs, m, g->a_rs, next_k, g->a_cs);
            b.b = gemm_b_at(g, from);
            b.b_step = g->b_rs;
            b.b_panel = nr;
            isa->macro_kernel(&b);
            continue;
        }
        b.b = packed_b;
        b.b_step = nr;
        b.b_panel = b.k * nr;
        b.b_padded = true;
        for (int64_t j = 0; j < n; j += pack_n) {
            b.n = WF_MIN(pack_n, n - j);
            const int64_t left = n - j - pack_n;
            if (far && left > 0)
                b.prefetch[0] = gemm_prefetch_b(g, from + (j + pack_n) * g->b_cs, WF_MIN(pack_n, left), b.k);
            else if (far && next_k > 0)
                b.prefetch[0] = gemm_prefetch_b(g, from + b.k * g->b_rs, WF_MIN(pack_n, n), next_k);
            else if (far) /* prefetch B of the task to the right, which this thread may take next */
                b.prefetch[0] = gemm_prefetch_b(g, task->n1 * g->b_cs, WF_MIN(pack_n, g->n - task->n1), kb);
            wf_gemm_pack_b(g, b.n, b.k, from + j * g->b_cs, packed_b);
            isa->macro_kernel(&b);
            b.c += pack_n * b.c_cs;
            if (b.epilogue.bias_n)
                b.epilogue.bias_n += pack_n;
        }
    }
    return true;
}
