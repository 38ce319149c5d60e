/* SPDX-License-Identifier: MIT */
/* Chooses BLIS or Weft's own kernels for each product, and runs the products of a batch in parallel. */
#include <stdatomic.h>
#include <string.h>

#include <weft/compute.h>
#include <weft/internal/gemm.h>
#include <weft/internal/runtime.h>
#include <weft/internal/scratch.h>
#include <weft/runtime.h>

#include "bf16.h"

enum gemm_mode wf_gemm_chosen;

/* BLIS is faster by more than 2 % only with AVX2, and there only for large products whose A is stored by columns (the gradient of a
 * weight). bench/gemm measured this on one Zen 5 core. NT means that B is stored by columns, TN that A is, NN neither; sizes are m x n x k.
 * Each pair of numbers is GFLOP per second of processor time, with Weft's own kernels / with BLIS.
 *
 * Weft's kernels for AVX-512 / BLIS's kernels skx (Weft's are always faster): NT 256x512x2048 191 / 153, 2048x2048x512 223 / 193;
 * NN 1024x1024x1024 226 / 209; TN 2048x512x2048 220 / 203, 1024x1024x1024 218 / 212, 512x128x768 253 / 210.
 *
 * Weft's kernels for AVX2 / BLIS's kernels zen3: NT 768x384x128 131 / 123, 2048x2048x512 125 / 117; NN 64x64x64 128 / 69, 1024x1024x1024
 * 119 / 121; TN 64x64x4096 124 / 96, 512x128x768 118 / 109, but 384x384x1024 112 / 121, 512x512x2048 105 / 118, 1024x1024x1024 112 / 120.
 */
static bool blis_may_be_better(void)
{
    return strcmp(wf_kernel->isa, "avx2") == 0;
}

static bool blis_is_better(const struct wf_gemm *g)
{
    return g->m >= BLIS_MN && g->n >= BLIS_MN && g->k >= BLIS_K && g->a_rs == 1 && g->a_cs > 1 && blis_may_be_better();
}

const char *wf_gemm_blas(void)
{
    return wf_gemm_chosen == GEMM_BLIS || (wf_gemm_chosen == GEMM_AUTO && blis_may_be_better()) ? wf_blas() : NULL;
}

static bool is_nothing(const struct wf_gemm *g)
{
    return g->m <= 0 || g->n <= 0 || g->k <= 0 || g->alpha == 0;
}

/* BLIS is not used with rows_alone, because the bits of a row that BLIS computes may depend on the number of rows. */
static bool for_blis(const struct wf_gemm *g)
{
    return wf_gemm_chosen != GEMM_OWN && !g->rows_alone && (wf_gemm_chosen == GEMM_BLIS || blis_is_better(g)) && wf_blis_can(g);
}

#ifndef WF_DOUBLE
/* Whether a B in bf16 must become floats first: Weft's own kernels read bf16 only as B, and BLIS reads none. */
static bool must_widen(const struct wf_gemm *g)
{
    return g->b_stored == WF_BF16 && (wf_gemm_is_transposed(g) || (g->precision == WF_PRECISION_REAL && for_blis(g)));
}

static bool product(const struct wf_gemm *g, bool serial);

static bool product_widened(const struct wf_gemm *g, bool serial)
{
    struct wf_gemm wide = *g;
    float *b = wf_scratch(WF_SCRATCH_GEMM_B, (size_t)(g->k * g->n) * sizeof *b);
    if (!b)
        return false;
    const uint16_t *from = (const uint16_t *)g->b;
    const bool by_rows = g->b_cs == 1;
    const int64_t runs = by_rows ? g->k : g->n, length = by_rows ? g->n : g->k;
    const int64_t run = by_rows ? g->b_rs : g->b_cs, step = by_rows ? g->b_cs : g->b_rs;
    for (int64_t i = 0; i < runs; i++)
        for (int64_t j = 0; j < (step == 1 ? 1 : length); j++)
            (void)wf_convert(WF_F32, b + i * length + j, WF_BF16, from + i * run + j * step, step == 1 ? length : 1);
    wide.b = b;
    wide.b_rs = by_rows ? length : 1;
    wide.b_cs = by_rows ? 1 : length;
    wide.b_stored = WF_REAL;
    return product(&wide, serial);
}
#endif

static bool product(const struct wf_gemm *g, bool serial)
{
    if (is_nothing(g))
        wf_gemm_no_sum(g);
#ifndef WF_DOUBLE
    else if (must_widen(g))
        return product_widened(g, serial);
#endif
#ifndef WF_DOUBLE
    else if (g->precision == WF_PRECISION_BF16)
        return wf_gemm_bf16(g, serial);
#endif
    else if (for_blis(g))
        wf_blis_gemm(g, serial);
    else
        return wf_gemm_own(g, serial);
    return true;
}

const char *wf_precision_refused(enum wf_precision precision)
{
    if (precision == WF_PRECISION_REAL || (precision == WF_PRECISION_BF16 && sizeof(wf_real) == sizeof(float)))
        return NULL;
    return precision == WF_PRECISION_BF16 ? "bf16 is a precision of libweft, the library of floats; this is libweft-f64"
                                          : "the precision is unknown: give WF_PRECISION_REAL or WF_PRECISION_BF16";
}

wf_status wf_precision_check(enum wf_precision precision, const char *from, wf_error *error)
{
    const char *refused = wf_precision_refused(precision);
    return refused ? wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s", from, refused) : WF_OK;
}

const char *wf_precision_name(enum wf_precision precision)
{
    return precision == WF_PRECISION_BF16 ? "bf16" : "f32";
}

static bool is_refused(const struct wf_gemm *g)
{
    return wf_precision_refused(g->precision) || (g->b_stored == WF_BF16 && WF_REAL != WF_F32);
}

static wf_status status_of(bool done)
{
    return done ? WF_OK : WF_ERR_MEMORY;
}

wf_status wf_gemm(const struct wf_gemm *g)
{
    return is_refused(g) ? WF_ERR_ARGUMENT : status_of(product(g, false));
}

wf_status wf_gemm_two(const struct wf_gemm g[2])
{
    bool own = true;
    for (int i = 0; i < 2; i++) {
        if (is_refused(&g[i]))
            return WF_ERR_ARGUMENT;
        own = own && !is_nothing(&g[i]) && !for_blis(&g[i]) && g[i].precision == WF_PRECISION_REAL && g[i].b_stored != WF_BF16;
    }
    return status_of(own ? wf_gemm_own_two(g) : product(&g[0], false) && product(&g[1], false));
}

struct batched {
    const struct wf_gemm *g;
    const struct wf_gemm_batch *batch;
    int64_t count, group; /* number of products; number of products that a task computes */
    _Atomic bool failed;
};

static bool one_of(const struct batched *w, int64_t index, bool serial)
{
    struct wf_gemm g = *w->g;
    for (int d = 0; d < w->batch->dims; d++) {
        const int64_t i = index % w->batch->size[d];
        index /= w->batch->size[d];
        g.a += i * w->batch->a_step[d];
        g.b = gemm_b_at(&g, i * w->batch->b_step[d]);
        g.c += i * w->batch->c_step[d];
    }
    return product(&g, serial);
}

static void group_of(void *ctx, int64_t block)
{
    struct batched *w = ctx;
    for (int64_t i = block * w->group; i < (block + 1) * w->group && i < w->count; i++)
        if (!one_of(w, i, true))
            atomic_store_explicit(&w->failed, true, memory_order_relaxed);
}

wf_status wf_gemm_batched(const struct wf_gemm *g, const struct wf_gemm_batch *batch)
{
    if (is_refused(g))
        return WF_ERR_ARGUMENT;
    struct batched w = {.g = g, .batch = batch, .count = 1, .group = 1};
    for (int d = 0; d < batch->dims; d++)
        w.count *= batch->size[d];
    if (w.count <= 0 || g->m <= 0 || g->n <= 0)
        return WF_OK;
    /* 100 stands for the overhead of a product, in operations; it bounds the number of products in a group. */
    const double flops = 2. * (double)g->m * (double)g->n * (double)WF_MAX(g->k, 1) + 100;
    if (w.count == 1 || flops >= BATCH_FLOPS) {
        bool done = true;
        for (int64_t i = 0; i < w.count && done; i++)
            done = one_of(&w, i, false);
        return status_of(done);
    }
    w.group = flops < BATCH_TASK_FLOPS ? (int64_t)(BATCH_TASK_FLOPS / flops) : 1;
    const double cost = flops / BATCH_FLOPS_PER_NS * (double)w.count + BATCH_NS * (double)w.count;
    wf_parallel(gemm_ceil_div(w.count, w.group), cost, group_of, &w);
    return status_of(!atomic_load_explicit(&w.failed, memory_order_relaxed));
}
