/* SPDX-License-Identifier: MIT */
/* The gradients of a convolution. */
#include <string.h>

#include <weft/internal/scratch.h>
#include <weft/runtime.h>

#include "product.h"

/* ---- The gradient of x. The elements of x whose row and column have the same remainders by the strides read the same taps of the kernel,
 * so they are the output of one convolution of dy with stride 1 (Dumoulin and Visin 2016). Each pair of remainders is a phase. */

void conv_find_taps(const struct wf_conv *s, int dim, int64_t remainder, struct conv_phase_taps *out)
{
    out->count = 0;
    for (int64_t t = 0; t < s->kernel[dim]; t++) {
        const int64_t from = remainder + s->before[dim] - t * s->dilation[dim];
        if (from % s->stride[dim] == 0) {
            out->tap[out->count] = t;
            out->at[out->count++] = from / s->stride[dim];
        }
    }
}

/* Copies the weights of the phase's taps, transposed: out[channel][filter of the group][taps]. */
static void gather_weights(const struct wf_conv *s, const wf_real *weight, const struct conv_phase_taps t[2], wf_real *out)
{
    const int64_t filters = s->filters / s->groups, channels = s->channels / s->groups, kernel = s->kernel[0] * s->kernel[1];
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t f = 0; f < filters; f++) {
            const wf_real *from = weight + ((c / channels * filters + f) * channels + c % channels) * kernel;
            for (int64_t i = 0; i < t[0].count; i++)
                for (int64_t j = 0; j < t[1].count; j++)
                    *out++ = from[t[0].tap[i] * s->kernel[1] + t[1].tap[j]];
        }
}

bool wf_conv_data(const struct wf_conv *s, const wf_real *dy, const wf_real *weight, const wf_real *bias, wf_real *dx, bool add)
{
    const int64_t kernel = s->kernel[0] * s->kernel[1], filters = s->filters / s->groups, channels = s->channels / s->groups;
    if (channels == 1 && s->filters > 0)
        return conv_depthwise_data(s, dy, weight, bias, dx, add);
    const int64_t indices = 2 * (s->kernel[0] + s->kernel[1]);
    char *memory = wf_scratch(WF_SCRATCH_CONV_W, (size_t)kernel * sizeof(struct conv_tap) + (size_t)indices * sizeof(int64_t) +
                                                     (size_t)(s->channels * filters * kernel) * sizeof(wf_real));
    if (!memory)
        return false;
    struct conv_tap *tap = (void *)memory;
    int64_t *index = (int64_t *)(tap + kernel);
    struct conv_phase_taps t[2] = {{0, index, index + s->kernel[0]},
                                   {0, index + 2 * s->kernel[0], index + 2 * s->kernel[0] + s->kernel[1]}};
    wf_real *weights = (wf_real *)(index + indices);
    for (int64_t r = 0; r < WF_MIN(s->stride[0], s->height); r++)
        for (int64_t q = 0; q < WF_MIN(s->stride[1], s->width); q++) {
            conv_find_taps(s, 0, r, &t[0]);
            conv_find_taps(s, 1, q, &t[1]);
            const int64_t taps = t[0].count * t[1].count;
            for (int64_t i = 0; i < taps; i++)
                tap[i] = (struct conv_tap){t[0].at[i / t[1].count], t[1].at[i % t[1].count]};
            const struct conv_product w = {
                .p = {.x = dy,
                      .batch_step = s->filters * s->rows * s->cols,
                      .channel_step = s->rows * s->cols,
                      .channels = filters,
                      .height = s->rows,
                      .width = s->cols,
                      .tap = tap,
                      .taps = taps,
                      .batch = s->batch,
                      .rows = gemm_ceil_div(s->height - r, s->stride[0]),
                      .cols = gemm_ceil_div(s->width - q, s->stride[1]),
                      .row_step = 1,
                      .col_step = 1},
                .groups = s->groups,
                .m = channels,
                .k = filters * taps,
                .a = weights,
                .bias = bias,
                .add = add,
                .out = {dx + r * s->width + q, s->channels * s->height * s->width, s->height * s->width, s->stride[0] * s->width,
                        s->stride[1]},
            };
            gather_weights(s, weight, t, weights);
            if (!conv_product_run(&w))
                return false;
        }
    return true;
}

/* ---- The gradient of the weight: the matrix of patches times the transpose of dy, a sum over all patches in blocks of CONV_BLOCK. */
struct weight_work {
    const struct wf_conv *s;
    struct conv_patches p; /* of the first group */
    const wf_real *dy;
    wf_real *dweight;
    bool add;
    int64_t k, filters; /* rows of the matrix; filters of a group */
    int64_t down, across;
};

/* Packs dy of the filters f0 .. f0 + n - 1 and the patches n0 .. n0 + k - 1 as panels of B, whose steps are the patches. */
static void pack_dy(const struct weight_work *w, int64_t f0, int64_t n, int64_t n0, int64_t k, wf_real *packed)
{
    const int nr = gemm_isa()->nr;
    const int64_t picture = w->s->rows * w->s->cols;
    for (int64_t at = 0, steps; at < k; at += steps) {
        const int64_t b = (n0 + at) / picture, i = (n0 + at) % picture;
        steps = WF_MIN(picture - i, k - at);
        for (int64_t j = 0; j < n; j += nr)
            gemm_isa()->pack_b_panel(WF_MIN(nr, n - j), steps, w->dy + (b * w->s->filters + f0 + j) * picture + i, picture, 1,
                                     packed + j * k + at * nr);
    }
}

static bool weight_task(void *ctx, int64_t index)
{
    const struct weight_work *w = ctx;
    const struct gemm_isa *isa = gemm_isa();
    const int nr = isa->nr;
    const int64_t group = index / (w->down * w->across), rest = index % (w->down * w->across);
    const struct gemm_range rows = gemm_share(w->k, isa->mr, w->down, rest % w->down);
    const struct gemm_range columns = gemm_share(w->filters, nr, w->across, rest / w->down);
    const int64_t m = rows.end - rows.begin, n = columns.end - columns.begin, wide = gemm_ceil_div(n, nr) * nr;
    const int64_t f0 = group * w->filters + columns.begin, patches = w->s->batch * w->s->rows * w->s->cols;
    enum { STEP = CONV_BLOCK + CACHE_LINE / sizeof(wf_real) }; /* so that rows do not compete for the same places in the cache */
    wf_real *a = wf_scratch(WF_SCRATCH_PACK_A, (size_t)(m * STEP) * sizeof *a);
    wf_real *b = wf_scratch(WF_SCRATCH_GEMM, (size_t)(wide * CONV_BLOCK) * sizeof *b);
    wf_real *c = wf_scratch(WF_SCRATCH_CONV, (size_t)(m * wide) * sizeof *c);
    if (!a || !b || !c)
        return false;
    struct conv_patches p = w->p;
    p.x += group * p.channels * p.channel_step;
    for (int64_t n0 = 0; n0 < patches; n0 += CONV_BLOCK) {
        const int64_t k = WF_MIN(CONV_BLOCK, patches - n0);
        wf_kernel->internal->conv_pack_rows(&p, n0, k, rows.begin, m, STEP, a);
        pack_dy(w, f0, n, n0, k, b);
        isa->macro_kernel(&(struct gemm_cache_block){.m = m,
                                                     .n = n,
                                                     .k = k,
                                                     .a = a,
                                                     .a_rs = STEP,
                                                     .a_cs = 1,
                                                     .b = b,
                                                     .b_step = nr,
                                                     .b_panel = nr * k,
                                                     .b_padded = true,
                                                     .c = c,
                                                     .c_rs = wide,
                                                     .c_cs = 1,
                                                     .epilogue = {1, n0 > 0, NULL, NULL}});
    }
    for (int64_t j = 0; j < n; j++) {
        wf_real *to = w->dweight + (f0 + j) * w->k + rows.begin;
        for (int64_t i = 0; i < m; i++)
            to[i] = (w->add ? to[i] : 0) + (patches > 0 ? c[i * wide + j] : 0);
    }
    return true;
}

bool wf_conv_weight(const struct wf_conv *s, const wf_real *x, const wf_real *dy, wf_real *dweight, bool add)
{
    const int64_t taps = s->kernel[0] * s->kernel[1], channels = s->channels / s->groups;
    if (channels == 1)
        return conv_depthwise_weight(s, x, dy, dweight, add);
    struct conv_tap *tap = wf_scratch(WF_SCRATCH_CONV_W, (size_t)taps * sizeof *tap);
    if (!tap)
        return false;
    struct weight_work w = {
        .s = s,
        .p = conv_patches_of(s, x, tap),
        .dy = dy,
        .dweight = dweight,
        .add = add,
        .k = channels * taps,
        .filters = s->filters / s->groups,
    };
    if (w.filters == 0 || w.k == 0)
        return true;
    if (conv_direct_weight_pays(s, &w.p))
        return conv_direct_weight(s, &w.p, dy, dweight, add);
    const int64_t wanted = gemm_ceil_div(2 * (int64_t)wf_threads(), s->groups);
    /* a task's rows of patches fill half of a second-level cache at most */
    w.across = gemm_ceil_div(w.filters, 128);
    w.down = WF_MAX(gemm_ceil_div(w.k, 256), WF_MIN(gemm_ceil_div(wanted, w.across), gemm_ceil_div(w.k, gemm_isa()->mr)));
    const double flops = 2. * (double)(s->batch * s->rows * s->cols) * (double)w.k * (double)s->filters;
    const struct stages stages = {.count = 1, .stage = {{s->groups * w.down * w.across, weight_task, &w}}};
    return wf_gemm_stages(&stages, flops / FLOPS_PER_NS, false);
}
