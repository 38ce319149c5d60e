/* SPDX-License-Identifier: MIT */
/* The product of a matrix with the matrix of patches, which computes a convolution and the gradient of its input. */
#include <string.h>

#include <weft/internal/scratch.h>
#include <weft/runtime.h>

#include "product.h"

/* The columns of one task. If the patches of a picture are many, they are divided into shares, so that the results of a task are rows of
 * one picture; otherwise a task has the patches of several pictures. */
static int64_t task_columns(int64_t n)
{
    const int nr = gemm_isa()->nr;
    const int64_t most = WF_MAX(nr, CONV_COLUMNS / nr * nr);
    const int64_t even = gemm_ceil_div(gemm_ceil_div(n, (int64_t)CONV_TASKS * wf_threads()), nr) * nr;
    return WF_MIN(most, even);
}

static struct gemm_range columns_of(const struct conv_product *w, int64_t index)
{
    const int nr = gemm_isa()->nr;
    const int64_t picture = w->p.rows * w->p.cols;
    if (w->shares == 0)
        return gemm_share(w->p.batch * picture, nr, w->across, index);
    struct gemm_range r = gemm_share(picture, nr, w->shares, index % w->shares);
    const int64_t from = index / w->shares * picture;
    return (struct gemm_range){from + r.begin, from + r.end};
}

/* Copies or adds the results of columns n0 .. n0 + n - 1 of filter f to their places. */
static void put(const struct conv_product *w, int64_t f, int64_t n0, int64_t n, const wf_real *from)
{
    const struct conv_out *o = &w->out;
    for (int64_t at = 0, length; at < n; at += length) {
        const int64_t line = (n0 + at) / w->p.cols, j = (n0 + at) % w->p.cols;
        wf_real *to = o->y + line / w->p.rows * o->batch_step + f * o->filter_step + line % w->p.rows * o->row_step + j * o->col_step;
        length = WF_MIN(w->p.cols - j, n - at);
        if (!w->add && o->col_step == 1) {
            memcpy(to, from + at, (size_t)length * sizeof *to);
            continue;
        }
        for (int64_t i = 0; i < length; i++) {
            wf_real *y = to + i * o->col_step;
            *y = w->add ? *y + from[at + i] : from[at + i];
        }
    }
}

static bool product_task(void *ctx, int64_t index)
{
    const struct conv_product *w = ctx;
    const struct gemm_isa *isa = gemm_isa();
    const int nr = isa->nr;
    const int64_t group = index / (w->across * w->down), rest = index % (w->across * w->down);
    const struct gemm_range columns = columns_of(w, rest % w->across), rows = gemm_share(w->m, isa->mr, w->down, rest / w->across);
    const int64_t n = columns.end - columns.begin, m = rows.end - rows.begin, kc = gemm_kc(w->k), picture = w->p.rows * w->p.cols;
    const int64_t panels = gemm_ceil_div(n, nr), b = columns.begin / picture;
    /* Which columns a task has depends on the number of threads, so with several blocks along k both ways must add in the same order. */
    const bool in_place =
        w->out.col_step == 1 && w->out.row_step == w->p.cols && (columns.end - 1) / picture == b && !(w->add && w->k > kc);
    wf_real *packed = wf_scratch(WF_SCRATCH_GEMM, (size_t)(panels * nr * kc) * sizeof(wf_real));
    wf_real *copy = in_place ? NULL : wf_scratch(WF_SCRATCH_CONV, (size_t)(m * panels * nr) * sizeof(wf_real));
    const bool aliased = w->k * (int64_t)sizeof(wf_real) % ALIAS_BYTES == 0 && m >= PACK_M_MIN && panels >= ALIAS_PANELS;
    wf_real *packed_a = aliased ? wf_gemm_packed_a(m, kc) : NULL;
    if (!packed || (!in_place && !copy) || (aliased && !packed_a))
        return false;
    struct conv_patches p = w->p;
    p.x += group * p.channels * p.channel_step;
    const int64_t filter = group * w->m + rows.begin;
    wf_real *c = in_place ? w->out.y + b * w->out.batch_step + filter * w->out.filter_step + columns.begin % picture : copy;
    for (int64_t k0 = 0; k0 < w->k; k0 += kc) {
        const int64_t k = WF_MIN(kc, w->k - k0);
        for (int64_t j = 0; j < panels; j++)
            wf_kernel->internal->conv_pack_panel(&p, columns.begin + j * nr, WF_MIN(nr, n - j * nr), k0, k, packed + j * nr * k);
        struct gemm_cache_block block = {
            .m = m,
            .n = n,
            .k = k,
            .a = w->a + filter * w->k + k0,
            .a_rs = w->k,
            .a_cs = 1,
            .b = packed,
            .b_step = nr,
            .b_panel = nr * k,
            .b_padded = true,
            .c = c,
            .c_rs = in_place ? w->out.filter_step : panels * nr,
            .c_cs = 1,
            .epilogue = {1, k0 > 0 || (in_place && w->add), NULL, k0 + k == w->k && w->bias ? w->bias + filter : NULL},
        };
        if (aliased)
            wf_gemm_pack_a(&block, packed_a);
        isa->macro_kernel(&block);
    }
    for (int64_t i = 0; i < m && !in_place; i++)
        put(w, filter + i, columns.begin, n, copy + i * panels * nr);
    return true;
}

/* The product of no rows of patches, as where no tap of the kernel reaches. */
static void fill(const struct conv_product *w)
{
    for (int64_t b = 0; b < w->p.batch; b++)
        for (int64_t f = 0; f < w->groups * w->m; f++)
            for (int64_t i = 0; i < w->p.rows; i++)
                for (int64_t j = 0; j < w->p.cols; j++) {
                    wf_real *y = w->out.y + b * w->out.batch_step + f * w->out.filter_step + i * w->out.row_step + j * w->out.col_step;
                    const wf_real bias = w->bias ? w->bias[f] : 0;
                    *y = w->add ? *y + bias : bias;
                }
}

bool conv_product_run(const struct conv_product *given)
{
    struct conv_product w = *given;
    const int64_t picture = w.p.rows * w.p.cols, n = w.p.batch * picture;
    if (n == 0 || w.m == 0 || w.k == 0) {
        fill(&w);
        return true;
    }
    if (conv_direct_pays(&w))
        return conv_direct_run(&w);
    const int64_t wide = task_columns(n);
    w.shares = picture >= wide ? gemm_ceil_div(picture, wide) : 0;
    w.across = w.shares > 0 ? w.p.batch * w.shares : gemm_ceil_div(n, wide);
    /* few columns, many filters: the filters are divided, too, and each task packs the patches again */
    const int64_t wanted = (int64_t)CONV_TASKS * wf_threads(), tiles = gemm_ceil_div(w.m, gemm_isa()->mr);
    w.down = WF_MIN(WF_MAX(1, tiles / TASK_TILES), gemm_ceil_div(wanted, w.across * w.groups));
    const double flops = 2. * (double)n * (double)w.m * (double)w.k * (double)w.groups;
    const struct stages stages = {.count = 1, .stage = {{w.groups * w.across * w.down, product_task, &w}}};
    return wf_gemm_stages(&stages, flops / FLOPS_PER_NS, false);
}

struct conv_patches conv_patches_of(const struct wf_conv *s, const wf_real *x, struct conv_tap *tap)
{
    const int64_t taps = s->kernel[0] * s->kernel[1];
    for (int64_t t = 0; t < taps; t++)
        tap[t] = (struct conv_tap){t / s->kernel[1] * s->dilation[0] - s->before[0], t % s->kernel[1] * s->dilation[1] - s->before[1]};
    return (struct conv_patches){.x = x,
                                 .batch_step = s->channels * s->height * s->width,
                                 .channel_step = s->height * s->width,
                                 .channels = s->channels / s->groups,
                                 .height = s->height,
                                 .width = s->width,
                                 .tap = tap,
                                 .taps = taps,
                                 .batch = s->batch,
                                 .rows = s->rows,
                                 .cols = s->cols,
                                 .row_step = s->stride[0],
                                 .col_step = s->stride[1]};
}

bool wf_conv_forward(const struct wf_conv *s, const wf_real *x, const wf_real *weight, const wf_real *bias, wf_real *y, bool add)
{
    const int64_t taps = s->kernel[0] * s->kernel[1], channels = s->channels / s->groups;
    if (channels == 1)
        return conv_depthwise_forward(s, x, weight, bias, y, add);
    struct conv_tap *tap = wf_scratch(WF_SCRATCH_CONV_W, (size_t)taps * sizeof *tap);
    if (!tap)
        return false;
    const struct conv_product w = {
        .p = conv_patches_of(s, x, tap),
        .groups = s->groups,
        .m = s->filters / s->groups,
        .k = channels * taps,
        .a = weight,
        .bias = bias,
        .add = add,
        .out = {y, s->filters * s->rows * s->cols, s->rows * s->cols, s->cols, 1},
    };
    return conv_product_run(&w);
}
