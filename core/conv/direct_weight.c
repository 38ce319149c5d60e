/* SPDX-License-Identifier: MIT */
/* The gradient of the weight without a matrix of patches: dweight[f][c][t] is the sum over all outputs n of dy[f][n] and the element of x
 * that tap t reads for n. A task has up to two vectors of channels of x. It copies them by bands, padded with zeros, so that the channels
 * of a position lie side by side: then each tap reads whole vectors of this copy, and single elements of dy in place. A register tile has
 * two vectors: those of two vectors of channels at one tap, or of one at two taps. The bands follow from the shape alone, and fix the order
 * of additions. */
#include <string.h>

#include <weft/internal/scratch.h>
#include <weft/runtime.h>

#include "product.h"

struct direct_weight {
    const struct wf_conv *s;
    const struct conv_patches *p;
    const wf_real *dy;
    wf_real *dweight;
    bool add;
    int64_t wide;                /* channels of a task */
    int64_t top, left, reach[2]; /* as in direct.c */
    int64_t bands[2], size[2];   /* bands of a picture along rows and columns; the most outputs of a band along each */
    int64_t pictures;            /* of a band */
    int64_t rows, cols;          /* of the copy of one picture */
    int64_t blocks, across;      /* tasks of a group: along channels, and along filters */
};

static int64_t wide_of(const struct conv_patches *p)
{
    return p->channels <= gemm_isa()->lanes ? gemm_isa()->lanes : gemm_isa()->nr;
}

static struct direct_weight plan(const struct wf_conv *s, const struct conv_patches *p)
{
    struct direct_weight w = {.s = s, .p = p, .wide = wide_of(p)};
    w.reach[0] = conv_reach(p, 0, &w.top);
    w.reach[1] = conv_reach(p, 1, &w.left);
    w.bands[1] = gemm_ceil_div(p->cols, CONV_BLOCK);
    w.size[1] = gemm_ceil_div(p->cols, w.bands[1]);
    w.bands[0] = gemm_ceil_div(p->rows, WF_MAX(1, CONV_BLOCK / w.size[1]));
    w.size[0] = gemm_ceil_div(p->rows, w.bands[0]);
    w.pictures = w.bands[0] * w.bands[1] > 1 ? 1 : WF_MIN(p->batch, WF_MAX(1, CONV_BLOCK / (p->rows * p->cols)));
    w.rows = (w.size[0] - 1) * p->row_step + w.reach[0];
    w.cols = (w.size[1] - 1) * p->col_step + w.reach[1];
    return w;
}

bool conv_direct_weight_pays(const struct wf_conv *s, const struct conv_patches *p)
{
    const int64_t wide = wide_of(p), blocks = gemm_ceil_div(p->channels, wide);
    if (s->batch == 0 || p->rows == 0 || 4 * p->channels < 3 * blocks * wide || p->cols < 4 || s->filters / s->groups < PACK_M_MIN)
        return false;
    if (conv_whole_copy(p) > 4. * (double)p->taps * (double)(p->rows * p->cols))
        return false;
    const struct direct_weight w = plan(s, p);
    return w.rows * w.cols <= p->taps * w.size[0] * w.size[1];
}

/* Copies a band of `channels` channels: out[(row * cols + col) * wide + channel]. */
static void copy_band(const struct direct_weight *w, const wf_real *x, int64_t channels, int64_t row, int64_t col, wf_real *out)
{
    const struct conv_patches *p = w->p;
    const struct gemm_isa *isa = gemm_isa();
    const int64_t wide = w->wide, line = w->cols * wide, lo = WF_MIN(WF_MAX(-col, 0), w->cols),
                  hi = WF_MAX(lo, WF_MIN(p->width - col, w->cols));
    for (int64_t i = 0; i < w->rows; i++, out += line) {
        const int64_t from = row + i;
        if (from < 0 || from >= p->height || lo == hi) {
            memset(out, 0, (size_t)line * sizeof *out);
            continue;
        }
        memset(out, 0, (size_t)(lo * wide) * sizeof *out);
        (wide == isa->nr ? isa->pack_b_panel : isa->pack_b_vector)(channels, hi - lo, x + from * p->width + col + lo, p->channel_step, 1,
                                                                   out + lo * wide);
        memset(out + hi * wide, 0, (size_t)((w->cols - hi) * wide) * sizeof *out);
    }
}

/* The taps of a pair of vectors. */
static int64_t taps_of_pair(const struct direct_weight *w)
{
    return gemm_isa()->nr / w->wide;
}

/* Copies or adds the sums to their places: c[pair][f][tap of the pair][channel] to dweight[f][channel][t]. */
static inline void put_taps(const struct direct_weight *w, const int each, int64_t f0, int64_t filters, int64_t c0, int64_t channels,
                            const wf_real *c)
{
    const int64_t taps = w->p->taps, nr = gemm_isa()->nr;
    for (int64_t f = 0; f < filters; f++) {
        wf_real *to = w->dweight + ((f0 + f) * w->p->channels + c0) * taps;
        for (int64_t i = 0; i < channels; i++) {
            const wf_real *sum = c + f * nr + i;
            int64_t t = 0;
            for (; t + each <= taps; t += each, sum += filters * nr)
                for (int v = 0; v < each; v++, to++)
                    *to = w->add ? *to + sum[v * w->wide] : sum[v * w->wide];
            for (; t < taps; t++, to++) /* the first of the last pair */
                *to = w->add ? *to + *sum : *sum;
        }
    }
}

static void put(const struct direct_weight *w, int64_t f0, int64_t filters, int64_t c0, int64_t channels, const wf_real *c)
{
    if (taps_of_pair(w) == 1)
        put_taps(w, 1, f0, filters, c0, channels, c);
    else
        put_taps(w, 2, f0, filters, c0, channels, c);
}

/* The part of the sums that a band of outputs gives: rows along[0], columns along[1], pictures b0 .. b0 + pictures - 1. */
static void add_band(const struct direct_weight *w, const struct gemm_range along[2], int64_t b0, int64_t pictures, const wf_real *x,
                     int64_t channels, int64_t *line, wf_real *copy, struct conv_sums *sums)
{
    const struct conv_patches *p = w->p;
    const int64_t rows = along[0].end - along[0].begin, picture = w->rows * w->cols * w->wide;
    for (int64_t b = 0; b < pictures; b++) {
        copy_band(w, x + (b0 + b) * p->batch_step, channels, along[0].begin * p->row_step + w->top, along[1].begin * p->col_step + w->left,
                  copy + b * picture);
        for (int64_t i = 0; i < rows; i++) {
            line[b * rows + i] = (b0 + b) * w->s->filters * p->rows * p->cols + (along[0].begin + i) * p->cols + along[1].begin;
            line[(pictures + b) * rows + i] = b * picture + i * p->row_step * w->cols * w->wide;
        }
    }
    sums->lines = pictures * rows;
    sums->cols = along[1].end - along[1].begin;
    sums->dy_line = line;
    sums->x_line = line + sums->lines;
    gemm_isa()->conv_sums(sums);
    sums->add = true;
}

static bool weight_task(void *ctx, int64_t index)
{
    const struct direct_weight *w = ctx;
    const struct conv_patches *p = w->p;
    const int64_t nr = gemm_isa()->nr, wide = w->wide, group = index / (w->blocks * w->across), rest = index % (w->blocks * w->across);
    const int64_t each = w->s->filters / w->s->groups, c0 = rest % w->blocks * wide, channels = WF_MIN(wide, p->channels - c0);
    const int64_t pairs = gemm_ceil_div(p->taps, taps_of_pair(w));
    const struct gemm_range f = gemm_share(each, 1, w->across, rest / w->blocks);
    const int64_t f0 = group * each + f.begin, filters = f.end - f.begin, lines = 2 * w->pictures * w->size[0];
    wf_real *copy = wf_scratch(WF_SCRATCH_GEMM, (size_t)(w->pictures * w->rows * w->cols * wide) * sizeof *copy);
    wf_real *c = wf_scratch(WF_SCRATCH_CONV, (size_t)(pairs * filters * nr) * sizeof *c);
    int64_t *offset = wf_scratch(WF_SCRATCH_PACK_A, (size_t)(2 * pairs + lines) * sizeof *offset);
    if (!copy || !c || !offset)
        return false;
    for (int64_t v = 0; v < 2 * pairs; v++) {
        /* with an odd number of taps the last one is computed twice */
        const int64_t t = wide == nr ? v / 2 : WF_MIN(v, p->taps - 1), vector = wide == nr ? v % 2 * gemm_isa()->lanes : 0;
        offset[v] = ((p->tap[t].row - w->top) * w->cols + p->tap[t].col - w->left) * wide + vector;
    }
    struct conv_sums sums = {.filters = filters,
                             .pairs = pairs,
                             .dy = w->dy + f0 * p->rows * p->cols,
                             .x = copy,
                             .dy_step = p->rows * p->cols,
                             .x_step = p->col_step * wide,
                             .offset = offset,
                             .c = c};
    const wf_real *x = p->x + (group * p->channels + c0) * p->channel_step;
    for (int64_t b = 0; b < p->batch; b += w->pictures)
        for (int64_t i = 0; i < w->bands[0]; i++)
            for (int64_t j = 0; j < w->bands[1]; j++) {
                const struct gemm_range along[2] = {gemm_share(p->rows, 1, w->bands[0], i), gemm_share(p->cols, 1, w->bands[1], j)};
                add_band(w, along, b, WF_MIN(w->pictures, p->batch - b), x, channels, offset + 2 * pairs, copy, &sums);
            }
    put(w, f0, filters, c0, channels, c);
    return true;
}

bool conv_direct_weight(const struct wf_conv *s, const struct conv_patches *p, const wf_real *dy, wf_real *dweight, bool add)
{
    struct direct_weight w = plan(s, p);
    const int64_t each = s->filters / s->groups, threads = wf_threads();
    w.dy = dy, w.dweight = dweight, w.add = add;
    w.blocks = gemm_ceil_div(p->channels, w.wide);
    /* tasks that divide the filters copy the same channels: with many filters the copy costs little, with few only idle threads cost more
     */
    w.across = WF_MIN(gemm_ceil_div(2 * threads, s->groups * w.blocks), gemm_ceil_div(each, 32));
    w.across = WF_MAX(w.across, WF_MIN(gemm_ceil_div(threads, s->groups * w.blocks), gemm_ceil_div(each, gemm_isa()->mr)));
    const double flops = 2. * (double)(s->batch * s->rows * s->cols) * (double)(p->channels * p->taps) * (double)s->filters;
    const struct stages stages = {.count = 1, .stage = {{s->groups * w.blocks * w.across, weight_task, &w}}};
    return wf_gemm_stages(&stages, flops / FLOPS_PER_NS, false);
}
