/* SPDX-License-Identifier: MIT */
/* Split-K, for products with few elements of C and a long k, which would otherwise have too few tasks. The first stage computes partial
 * products over ranges of k. The second stage adds them in order, and applies alpha, beta and bias. */
#include <weft/internal/scratch.h>

#include "private.h"

struct split_k {
    const struct product *p;
    int64_t partials, reductions; /* number of partial products; number of tasks that add them */
    wf_real *sums;                /* the partial products: [partials, m, n] */
};

static bool multiply_task(void *ctx, int64_t index)
{
    const struct split_k *w = ctx;
    const struct wf_gemm *g = &w->p->g;
    const struct gemm_range k = gemm_share(g->k, w->p->kc, w->partials, index);
    struct product partial = {.g = *g, .kc = w->p->kc, .k_after = g->k - k.end};
    partial.g.alpha = 1;
    partial.g.beta = 0;
    partial.g.k = k.end - k.begin;
    partial.g.a += k.begin * g->a_cs;
    partial.g.b = gemm_b_at(g, k.begin * g->b_rs);
    partial.g.c = w->sums + index * g->m * g->n;
    partial.g.c_rs = g->n;
    partial.g.c_cs = 1;
    return wf_gemm_task(&partial, &(struct gemm_task){0, g->m, 0, g->n, 0, partial.g.k});
}

static bool reduce_task(void *ctx, int64_t index)
{
    const struct split_k *w = ctx;
    const struct wf_gemm *g = &w->p->g;
    const struct gemm_range rows = gemm_share(g->m, 1, w->reductions, index);
    const int64_t all = g->m * g->n;
    wf_real *sum = w->sums;
    for (int64_t s = 1; s < w->partials; s++)
        for (int64_t e = rows.begin * g->n; e < rows.end * g->n; e++)
            sum[e] += w->sums[s * all + e];
    for (int64_t i = rows.begin; i < rows.end; i++) {
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

bool wf_gemm_split_k_pays(const struct wf_gemm *g)
{
    return !g->rows_alone && g->k >= 2 * SPLIT_K_MIN && g->m <= SPLIT_K_C && g->n <= SPLIT_K_C && g->m * g->n <= SPLIT_K_C;
}

bool wf_gemm_split_k(const struct product *p, double cost, bool serial)
{
    const struct wf_gemm *g = &p->g;
    struct split_k w = {.p = p, .partials = WF_MIN(g->k / SPLIT_K_MIN, SPLIT_K_MAX), .reductions = WF_MIN(g->m, REDUCE_TASKS)};
    w.sums = wf_scratch(WF_SCRATCH_PACK_B, (size_t)(w.partials * g->m * g->n) * sizeof(wf_real));
    if (!w.sums)
        return false;
    const struct stages stages = {.count = 2, .stage = {{w.partials, multiply_task, &w}, {w.reductions, reduce_task, &w}}};
    return wf_gemm_stages(&stages, cost, serial);
}
