/* SPDX-License-Identifier: MIT */
/* The product of a matrix with the matrix of patches, whose panels are not packed. Each task copies a band of x once, padded with zeros;
 * then row k of the matrix, of channel c and tap t, is the same for all outputs but for a shift: it lies offset[k] elements after the first
 * element that an output reads. The register tiles load whole vectors there. A packed panel has each element of x once for each tap that
 * reads it; the copy has it once. */
#include <string.h>

#include <weft/internal/scratch.h>
#include <weft/runtime.h>

#include "product.h"

struct direct {
    const struct conv_product *w;
    int64_t kc;
    int64_t top, left, reach[2]; /* the least row and column of a tap, and the rows and columns from there to the greatest */
    int64_t bands[2], size[2];   /* bands of a picture along rows and columns; the most outputs of a band */
    int64_t part, row, plane;    /* elements of the copy's part of a row, of a row, of a channel */
    int64_t channels;            /* the most channels of a cache block */
    int64_t down;                /* tasks that divide the filters */
    int64_t tiles;               /* of each of these tasks, at most */
    const int64_t *offset;       /* [k] */
    const wf_real *a;            /* packed, cache block after cache block */
};

int64_t conv_reach(const struct conv_patches *p, int dim, int64_t *least)
{
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    for (int64_t t = 0; t < p->taps; t++) {
        const int64_t at = dim == 0 ? p->tap[t].row : p->tap[t].col;
        lo = WF_MIN(lo, at), hi = WF_MAX(hi, at);
    }
    *least = lo;
    return hi - lo + 1;
}

/* Sets the layout of the copy of bands of this size, and returns its bytes. */
static int64_t layout(struct direct *d)
{
    const struct conv_patches *p = &d->w->p;
    const int64_t line = CACHE_LINE / (int64_t)sizeof(wf_real);
    d->part = gemm_ceil_div((d->size[1] - 1) * p->col_step + d->reach[1], p->col_step);
    d->row = d->part * p->col_step;
    /* an odd number of cache lines, so that channels do not compete for the same places in the cache */
    d->plane = (gemm_ceil_div(((d->size[0] - 1) * p->row_step + d->reach[0]) * d->row, line) | 1) * line;
    return d->channels * d->plane * (int64_t)sizeof(wf_real);
}

static void divide(struct direct *d, int dim)
{
    const struct conv_patches *p = &d->w->p;
    const int64_t n = dim == 0 ? p->rows : p->cols, grain = dim == 0 ? 1 : gemm_isa()->nr, grains = gemm_ceil_div(n, grain);
    d->bands[dim] = WF_MIN(2 * d->bands[dim], grains);
    d->size[dim] = WF_MIN(gemm_ceil_div(grains, d->bands[dim]) * grain, n);
}

static struct direct plan(const struct conv_product *w)
{
    const struct conv_patches *p = &w->p;
    const int nr = gemm_isa()->nr;
    struct direct d = {.w = w, .kc = gemm_kc(w->k), .bands = {1, 1}, .size = {p->rows, p->cols}};
    d.reach[0] = conv_reach(p, 0, &d.top);
    d.reach[1] = conv_reach(p, 1, &d.left);
    d.channels = WF_MIN(p->channels, (d.kc + p->taps - 2) / p->taps + 1);
    while (layout(&d) > CONV_BAND && (d.size[0] > 1 || d.size[1] > 4 * nr))
        divide(&d, d.size[0] > 1 ? 0 : 1);
    const int64_t wanted = (int64_t)CONV_TASKS * wf_threads();
    while (w->groups * p->batch * d.bands[0] * d.bands[1] < wanted && d.size[0] * d.size[1] > CONV_COLUMNS &&
           (d.size[0] > 1 || d.size[1] > 4 * nr))
        divide(&d, d.size[0] > 1 ? 0 : 1);
    layout(&d);
    /* few outputs, many filters: the filters are divided, too, and each task makes its own copy */
    const int64_t tasks = w->groups * p->batch * d.bands[0] * d.bands[1], tiles = gemm_ceil_div(w->m, gemm_isa()->mr);
    d.down = WF_MIN(WF_MAX(1, tiles / TASK_TILES), gemm_ceil_div(wanted, tasks));
    return d;
}

double conv_whole_copy(const struct conv_patches *p)
{
    int64_t least;
    return ((double)(p->rows - 1) * (double)p->row_step + (double)conv_reach(p, 0, &least)) *
           ((double)(p->cols - 1) * (double)p->col_step + (double)conv_reach(p, 1, &least));
}

/* The answer depends neither on threads nor on the number of pictures: sums that are added to y may have other bits in product.c. */
bool conv_direct_pays(const struct conv_product *w)
{
    const struct conv_patches *p = &w->p;
    const int64_t lanes = gemm_isa()->lanes, vectors = gemm_ceil_div(p->cols, lanes);
    return 4 * p->cols >= 3 * vectors * lanes && 1.75 * conv_whole_copy(p) <= (double)p->taps * (double)(p->rows * p->cols);
}

/* The filters of a task, which the packed panels divide anew. */
static struct gemm_range filters_of(const struct direct *d, int64_t index)
{
    return (struct gemm_range){gemm_cut(d->w->m, d->down, index), gemm_cut(d->w->m, d->down, index + 1)};
}

/* The packed weights of a task's filters, from step k0 of k on. */
static int64_t packed_at(const struct direct *d, int64_t group, int64_t down, int64_t k0)
{
    return ((group * d->down + down) * d->w->k + k0) * d->tiles * gemm_isa()->mr;
}

/* Packs the weights and sets the offsets of the rows of the matrix. */
static bool prepare(struct direct *d)
{
    const struct conv_product *w = d->w;
    const struct conv_patches *p = &w->p;
    d->tiles = gemm_ceil_div(gemm_ceil_div(w->m, d->down), gemm_isa()->mr);
    const int64_t packed = w->groups * d->down * w->k * d->tiles * gemm_isa()->mr;
    char *memory = wf_scratch(WF_SCRATCH_PACK_B, (size_t)packed * sizeof(wf_real) + (size_t)w->k * sizeof(int64_t));
    if (!memory)
        return false;
    int64_t *offset = (int64_t *)(void *)memory;
    wf_real *a = (wf_real *)(offset + w->k);
    for (int64_t t = 0; t < p->taps; t++) {
        const int64_t row = p->tap[t].row - d->top, col = p->tap[t].col - d->left;
        for (int64_t c = 0; c < p->channels; c++)
            offset[c * p->taps + t] = c * d->plane + row * d->row + col % p->col_step * d->part + col / p->col_step;
    }
    for (int64_t i = 0; i < w->groups * d->down; i++) {
        const struct gemm_range f = filters_of(d, i % d->down);
        for (int64_t k0 = 0; k0 < w->k; k0 += d->kc) {
            struct gemm_cache_block block = {.m = f.end - f.begin, .k = WF_MIN(d->kc, w->k - k0), .a_rs = w->k, .a_cs = 1};
            block.a = w->a + (i / d->down * w->m + f.begin) * w->k + k0;
            wf_gemm_pack_a(&block, a + packed_at(d, i / d->down, i % d->down, k0));
        }
    }
    d->offset = offset;
    d->a = a;
    return true;
}

/* One task's part of the outputs, and where it goes. */
struct part {
    int64_t rows, cols;
    wf_real *c;
    int64_t filter_step, row_step;
};

/* Multiplies a cache block of k with the copy: the outputs by vectors, two at a time. `first` is the copy's element for offset 0. */
static void multiply(const struct direct *d, struct conv_tiles *t, const struct part *to, const wf_real *first)
{
    const int64_t lanes = gemm_isa()->lanes;
    int filled = 0;
    t->c_step = to->filter_step;
    for (int64_t i = 0; i < to->rows; i++)
        for (int64_t j = 0; j < to->cols; j += lanes) {
            t->b[filled] = first + i * d->w->p.row_step * d->row + j;
            t->c[filled] = to->c + i * to->row_step + j;
            t->tail[filled] = WF_MIN(lanes, to->cols - j);
            if (++filled < 2)
                continue;
            gemm_isa()->conv_tiles(t);
            filled = 0;
        }
    if (filled == 0)
        return;
    t->b[1] = t->b[0];
    t->tail[1] = 0;
    gemm_isa()->conv_tiles(t);
}

/* Copies or adds results to a y whose columns are not contiguous. */
static void scatter(const struct conv_product *w, int64_t m, const struct part *from, wf_real *y)
{
    const struct conv_out *o = &w->out;
    for (int64_t f = 0; f < m; f++)
        for (int64_t i = 0; i < from->rows; i++) {
            const wf_real *c = from->c + f * from->filter_step + i * from->row_step;
            wf_real *to = y + f * o->filter_step + i * o->row_step;
            for (int64_t j = 0; j < from->cols; j++)
                to[j * o->col_step] = w->add ? to[j * o->col_step] + c[j] : c[j];
        }
}

static bool direct_task(void *ctx, int64_t index)
{
    const struct direct *d = ctx;
    const struct conv_product *w = d->w;
    const struct conv_patches *p = &w->p;
    const int64_t across = index % d->bands[1], along = index / d->bands[1] % d->bands[0], rest = index / (d->bands[0] * d->bands[1]);
    const int64_t b = rest % p->batch, down = rest / p->batch % d->down, group = rest / p->batch / d->down;
    const struct gemm_range rows = gemm_share(p->rows, 1, d->bands[0], along),
                            cols = gemm_share(p->cols, gemm_isa()->nr, d->bands[1], across);
    const struct gemm_range f = filters_of(d, down);
    const int64_t filter = group * w->m + f.begin, m = f.end - f.begin;
    wf_real *y =
        w->out.y + b * w->out.batch_step + filter * w->out.filter_step + rows.begin * w->out.row_step + cols.begin * w->out.col_step;
    const bool in_place = w->out.col_step == 1;
    struct part to = {rows.end - rows.begin, cols.end - cols.begin, y, w->out.filter_step, w->out.row_step};
    wf_real *copy = wf_scratch(WF_SCRATCH_GEMM, (size_t)(d->channels * d->plane + 2 * gemm_isa()->nr) * sizeof *copy);
    if (!in_place) {
        to.row_step = to.cols;
        to.filter_step = to.rows * to.cols;
        to.c = wf_scratch(WF_SCRATCH_CONV, (size_t)(m * to.filter_step) * sizeof(wf_real));
    }
    if (!copy || !to.c)
        return false;
    struct conv_band band = {.x = p->x + b * p->batch_step,
                             .channel_step = p->channel_step,
                             .height = p->height,
                             .width = p->width,
                             .row = rows.begin * p->row_step + d->top,
                             .col = cols.begin * p->col_step + d->left,
                             .rows = (to.rows - 1) * p->row_step + d->reach[0],
                             .step = p->col_step,
                             .part = d->part,
                             .plane = d->plane};
    for (int64_t k0 = 0; k0 < w->k; k0 += d->kc) {
        struct conv_tiles t = {.m = m,
                               .k = WF_MIN(d->kc, w->k - k0),
                               .a = d->a + packed_at(d, group, down, k0),
                               .offset = d->offset + k0,
                               .add = k0 > 0 || (in_place && w->add)};
        const int64_t c0 = k0 / p->taps;
        t.bias = k0 + t.k == w->k && w->bias ? w->bias + filter : NULL;
        band.x = p->x + b * p->batch_step + (group * p->channels + c0) * p->channel_step;
        band.channels = gemm_ceil_div(k0 + t.k, p->taps) - c0;
        gemm_isa()->conv_pad(&band, copy);
        /* some of the weights at a time, which stay in the second-level cache beside the copy */
        const int64_t tiles = gemm_ceil_div(m, gemm_isa()->mr), each = gemm_ceil_div(tiles, gemm_ceil_div(m * t.k, CONV_WEIGHTS));
        for (; t.from < tiles; t.from = t.to) {
            t.to = WF_MIN(t.from + each, tiles);
            multiply(d, &t, &to, copy - c0 * d->plane);
        }
    }
    if (!in_place)
        scatter(w, m, &to, y);
    return true;
}

bool conv_direct_run(const struct conv_product *w)
{
    const struct conv_patches *p = &w->p;
    struct direct d = plan(w);
    if (!prepare(&d))
        return false;
    const double flops = 2. * (double)(p->batch * p->rows * p->cols) * (double)w->m * (double)w->k * (double)w->groups;
    const struct stages stages = {.count = 1, .stage = {{w->groups * d.down * p->batch * d.bands[0] * d.bands[1], direct_task, &d}}};
    return wf_gemm_stages(&stages, flops / FLOPS_PER_NS, false);
}
