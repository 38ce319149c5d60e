/* SPDX-License-Identifier: MIT */
/* Few elements of C, long sums: k in slices, partial results added in their order. */
#include <weft/internal/scratch.h>

#include "phases.h"
#include "product.h"

enum { SLICE = 512, MOST_SLICES = 16, SLICED = 5000 }; /* sliced k: its length, and for C up to this size */

struct sliced {
    const struct product *p;
    int64_t slices, adds;
    wf_real *partial;
};

static bool slice_item(void *ctx, int64_t item)
{
    const struct sliced *w = ctx;
    const struct wf_gemm *g = &w->p->g;
    const int64_t blocks = gemm_up(g->k, w->p->k_block), k0 = gemm_cut(blocks, w->slices, item) * w->p->k_block;
    const int64_t k1 = gemm_least(gemm_cut(blocks, w->slices, item + 1) * w->p->k_block, g->k);
    struct product slice = {.g = *g, .k_block = w->p->k_block, .more = g->k - k1};
    slice.g.alpha = 1;
    slice.g.beta = 0;
    slice.g.k = k1 - k0;
    slice.g.a += k0 * g->a_cs;
    slice.g.b += k0 * g->b_rs;
    slice.g.c = w->partial + item * g->m * g->n;
    slice.g.c_rs = g->n;
    slice.g.c_cs = 1;
    return wf_gemm_part(&slice, &(struct part){0, g->m, 0, g->n, 0, slice.g.k});
}

static bool add_item(void *ctx, int64_t item)
{
    const struct sliced *w = ctx;
    const struct wf_gemm *g = &w->p->g;
    const int64_t from = gemm_cut(g->m, w->adds, item), to = gemm_cut(g->m, w->adds, item + 1), all = g->m * g->n;
    wf_real *sum = w->partial;
    for (int64_t s = 1; s < w->slices; s++)
        for (int64_t e = from * g->n; e < to * g->n; e++)
            sum[e] += w->partial[s * all + e];
    for (int64_t i = from; i < to; i++) {
        wf_real *c = g->c + i * g->c_rs;
        for (int64_t j = 0; j < g->n; j++, c += g->c_cs) {
            wf_real value = g->alpha * sum[i * g->n + j];
            if (g->beta != 0)
                value += g->beta * *c;
            *c = value + (w->p->bias_n ? w->p->bias_n[j] : w->p->bias_m ? w->p->bias_m[i] : 0);
        }
    }
    return true;
}

bool wf_gemm_slices_pay(const struct wf_gemm *g)
{
    return !g->rows_alone && g->k >= 2 * SLICE && g->m <= SLICED && g->n <= SLICED && g->m * g->n <= SLICED;
}

bool wf_gemm_in_slices(const struct product *p, double cost, bool serial)
{
    const struct wf_gemm *g = &p->g;
    struct sliced w = {.p = p, .slices = gemm_least(g->k / SLICE, MOST_SLICES), .adds = gemm_least(g->m, 8)};
    w.partial = wf_scratch(WF_SCRATCH_PACK_B, (size_t)(w.slices * g->m * g->n) * sizeof(wf_real));
    if (!w.partial)
        return false;
    struct phases phases = {.count = 2, .items = {w.slices, w.adds}, .run = {slice_item, add_item}, .ctx = {&w, &w}};
    return wf_gemm_phases(&phases, cost, serial);
}
