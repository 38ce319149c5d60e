/* SPDX-License-Identifier: MIT */
/* The entrance of core/gemm: which kernels for which product. */
#include <string.h>

#include <weft/internal/gemm_init.h>
#include <weft/internal/parallel.h>

#include "blas.h"
#include "own.h"
#include "table.h"

const struct gemm_isa *wf_gemm_isa = &wf_gemm_isa_base;
static const struct gemm_choice *choice;
static int mode;

void wf_gemm_mode_set(int to)
{
    mode = to;
}

int wf_gemm_mode_get(void)
{
    return mode;
}

void wf_gemm_isa_changed(const char *isa)
{
    static const struct gemm_isa *const isas[] = {
#if defined __x86_64__ && !defined WF_NO_AVX512
        &wf_gemm_isa_avx512,
#endif
#if defined __x86_64__ && !defined WF_NO_AVX2
        &wf_gemm_isa_avx2,
#endif
        &wf_gemm_isa_base,
    };
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        if (strcmp(isas[i]->name, isa) == 0)
            wf_gemm_isa = isas[i];
    for (size_t i = 0; i < sizeof gemm_choices / sizeof *gemm_choices; i++)
        if (strcmp(gemm_choices[i].isa, isa) == 0)
            choice = &gemm_choices[i];
}

wf_status wf_gemm_init(wf_error *error)
{
    return wf_blis_start(wf_gemm_isa->name, error);
}

const char *wf_gemm_blas_name(void)
{
    return wf_blis_name();
}

static bool blis_is_better(const struct wf_gemm *g)
{
    return choice && choice->m > 0 && g->m >= choice->m && g->n >= choice->n && g->k >= choice->k && g->a_rs == 1 && g->a_cs > 1;
}

/* BLIS never under the row rule: it promises nothing about the bits of a row in batches of different sizes. */
static void product(const struct wf_gemm *g, bool serial)
{
    if (g->m <= 0 || g->n <= 0)
        return;
    if (g->k <= 0 || g->alpha == 0)
        wf_gemm_no_sum(g);
    else if (mode != WF_GEMM_OWN && !g->rows_alone && (mode == WF_GEMM_BLIS || blis_is_better(g)) && wf_blis_can(g))
        wf_blis_gemm(g, serial);
    else
        wf_gemm_own(g, serial);
}

void wf_gemm(const struct wf_gemm *g)
{
    product(g, false);
}

void wf_gemm_serial(const struct wf_gemm *g)
{
    product(g, true);
}

struct batched {
    const struct wf_gemm *g;
    const struct wf_gemm_batch *batch;
    int64_t count, group;
};

static void one_of(const struct batched *w, int64_t index, bool serial)
{
    struct wf_gemm g = *w->g;
    for (int d = 0; d < w->batch->dims; d++) {
        const int64_t i = index % w->batch->size[d];
        index /= w->batch->size[d];
        g.a += i * w->batch->a_step[d];
        g.b += i * w->batch->b_step[d];
        g.c += i * w->batch->c_step[d];
    }
    product(&g, serial);
}

static void group_of(void *ctx, int64_t block)
{
    const struct batched *w = ctx;
    for (int64_t i = block * w->group; i < (block + 1) * w->group && i < w->count; i++)
        one_of(w, i, true);
}

void wf_gemm_batched(const struct wf_gemm *g, const struct wf_gemm_batch *batch)
{
    struct batched w = {g, batch, 1, 1};
    for (int d = 0; d < batch->dims; d++)
        w.count *= batch->size[d];
    if (w.count <= 0 || g->m <= 0 || g->n <= 0)
        return;
    const double flops = 2. * (double)g->m * (double)g->n * (double)(g->k > 0 ? g->k : 1) + 100, alone = 2e7, item = 1e6;
    if (w.count == 1 || flops >= alone) {
        for (int64_t i = 0; i < w.count; i++)
            one_of(&w, i, false);
        return;
    }
    w.group = flops < item ? (int64_t)(item / flops) : 1;
    const double cost = flops / 60 * (double)w.count + 20 * (double)w.count;
    wf_parallel((w.count + w.group - 1) / w.group, cost, group_of, &w);
}
