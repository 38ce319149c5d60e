/* SPDX-License-Identifier: MIT */
/* Depthwise convolutions of pictures whose rows fill at most half a vector: the lanes are channels. A task has as many channels as a
 * vector has lanes. It copies them, padded with zeros, so that the channels of a position lie side by side. Outputs are added up in the
 * order of depthwise.c, and have its bits. */
#include <string.h>

#include <weft/internal/scratch.h>

#include "product.h"

enum {
    MOST = 1024, /* positions of a padded picture and of its outputs */
    CHAIN = 256, /* products that a lane adds up for the gradient of the weight before its sum goes to one in double */
    GRAIN = 4096 /* elements of a task, at least */
};

struct work {
    const struct wf_conv *s;
    const wf_real *x, *dy, *weight, *bias;
    wf_real *out;
    bool add;
    int64_t height, width; /* of the pictures that are copied */
    int64_t row, col;      /* the element of the picture at the copy's first row and column; either may be negative */
    int64_t rows, cols;    /* of the copy */
    struct conv_lanes t;   /* without x */
    int64_t blocks;        /* of channels */
    int64_t each;          /* pictures of a task */
};

static bool few(double rows, double cols)
{
    return rows * cols <= MOST;
}

/* The answer depends neither on threads nor on the number of pictures: sums for the gradient of the weight may have other bits in
 * depthwise.c. */
bool conv_lanes_pay(const struct wf_conv *s, bool data)
{
    const int64_t lanes = gemm_isa()->lanes, blocks = gemm_ceil_div(s->channels, lanes);
    const double reach[2] = {(double)(s->kernel[0] - 1) * (double)s->dilation[0], (double)(s->kernel[1] - 1) * (double)s->dilation[1]};
    if (s->filters != s->channels || s->batch == 0 || s->channels == 0 || s->rows < 1 || s->cols < 1 || s->height < 1 || s->width < 1)
        return false;
    if (4 * s->channels < 3 * blocks * lanes || 2 * (data ? s->width : s->cols) > lanes || !few((double)s->height, (double)s->width) ||
        !few((double)s->rows, (double)s->cols))
        return false;
    if (data)
        return s->stride[0] == 1 && s->stride[1] == 1 && few((double)s->height + reach[0], (double)s->width + reach[1]);
    return few((double)(s->rows - 1) * (double)s->stride[0] + reach[0] + 1, (double)(s->cols - 1) * (double)s->stride[1] + reach[1] + 1);
}

static struct work work_of(const struct wf_conv *s)
{
    const int64_t lanes = gemm_isa()->lanes;
    return (struct work){.s = s,
                         .t.taps = s->kernel[0] * s->kernel[1],
                         .blocks = gemm_ceil_div(s->channels, lanes),
                         .each = gemm_ceil_div(GRAIN, lanes * WF_MAX(s->height * s->width, s->rows * s->cols))};
}

/* Sets the copy and the places of the taps in it; `row_step` and `col_step` are the strides of the outputs, and `mirrored` taps read in the
 * opposite order. */
static bool place(struct work *w, int64_t row_step, int64_t col_step, bool mirrored)
{
    const struct wf_conv *s = w->s;
    const int64_t lanes = gemm_isa()->lanes;
    int64_t *at = wf_scratch(WF_SCRATCH_CONV_W, (size_t)w->t.taps * sizeof *at);
    w->t.at = at;
    if (!at)
        return false;
    w->rows = (w->t.rows - 1) * row_step + (s->kernel[0] - 1) * s->dilation[0] + 1;
    w->cols = (w->t.cols - 1) * col_step + (s->kernel[1] - 1) * s->dilation[1] + 1;
    w->t.row_step = row_step * w->cols * lanes;
    w->t.col_step = col_step * lanes;
    for (int64_t r = 0; r < s->kernel[0]; r++)
        for (int64_t q = 0; q < s->kernel[1]; q++) {
            const int64_t row = mirrored ? s->kernel[0] - 1 - r : r, col = mirrored ? s->kernel[1] - 1 - q : q;
            *at++ = (row * s->dilation[0] * w->cols + col * s->dilation[1]) * lanes;
        }
    return true;
}

/* Copies the picture of `channels` channels; the zeros around it are there. All elements are transposed at once, to `whole`, because rows
 * are short. */
static void copy_picture(const struct work *w, const wf_real *x, int64_t channels, wf_real *whole, wf_real *copy)
{
    const int64_t lo = WF_MIN(WF_MAX(-w->col, 0), w->cols), hi = WF_MAX(lo, WF_MIN(w->width - w->col, w->cols)), lanes = gemm_isa()->lanes;
    const int64_t first = WF_MAX(w->row, 0), last = WF_MIN(w->row + w->rows, w->height), size = w->height * w->width;
    gemm_isa()->pack_b_vector(channels, size, x, size, 1, whole);
    for (int64_t i = first; i < last; i++)
        memcpy(copy + ((i - w->row) * w->cols + lo) * lanes, whole + (i * w->width + w->col + lo) * lanes,
               (size_t)((hi - lo) * lanes) * sizeof *copy);
}

/* One block of channels, and the pictures of a task. */
struct part {
    int64_t c0, channels, from, to;
};

static struct part part_of(const struct work *w, int64_t index)
{
    const int64_t lanes = gemm_isa()->lanes, c0 = index % w->blocks * lanes, from = index / w->blocks * w->each;
    return (struct part){c0, WF_MIN(lanes, w->s->channels - c0), from, WF_MIN(from + w->each, w->s->batch)};
}

static bool outputs_task(void *ctx, int64_t index)
{
    const struct work *w = ctx;
    const struct part p = part_of(w, index);
    const int64_t lanes = gemm_isa()->lanes, positions = w->t.rows * w->t.cols, size = w->rows * w->cols * lanes;
    const int64_t most = WF_MAX(positions + lanes, w->height * w->width);
    wf_real *copy = wf_scratch(WF_SCRATCH_CONV, (size_t)(size + (w->t.taps + 1 + most) * lanes) * sizeof *copy);
    if (!copy)
        return false;
    wf_real *weight = copy + size, *bias = weight + w->t.taps * lanes, *y = bias + lanes; /* y: the picture before */
    struct conv_lanes t = w->t;
    t.x = copy;
    memset(copy, 0, (size_t)size * sizeof *copy);
    gemm_isa()->pack_b_vector(p.channels, w->t.taps, w->weight + p.c0 * w->t.taps, w->t.taps, 1, weight);
    for (int64_t i = 0; i < lanes; i++)
        bias[i] = w->bias && i < p.channels ? w->bias[p.c0 + i] : 0;
    for (int64_t b = p.from; b < p.to; b++) {
        const int64_t plane = b * w->s->channels + p.c0, size_x = w->height * w->width;
        conv_fetch(w->out + plane * positions, p.channels * positions);
        if (b + 1 < p.to)
            conv_fetch(w->x + (plane + w->s->channels) * size_x, p.channels * size_x);
        copy_picture(w, w->x + plane * size_x, p.channels, y, copy);
        wf_kernel->internal->conv_lane_taps(&t, weight, bias, y);
        wf_kernel->internal->conv_lane_unpack(positions, p.channels, y, w->add, w->out + plane * positions, positions);
    }
    return true;
}

static bool weight_task(void *ctx, int64_t index)
{
    const struct work *w = ctx;
    const struct wf_conv *s = w->s;
    const struct part p = part_of(w, index);
    const int64_t lanes = gemm_isa()->lanes, positions = s->rows * s->cols, size = w->rows * w->cols * lanes, sums = w->t.taps * lanes;
    wf_real *copy = wf_scratch(WF_SCRATCH_CONV, (size_t)(size + WF_MAX(positions, w->height * w->width) * lanes + sums) * sizeof *copy);
    double *sum = wf_scratch(WF_SCRATCH_PACK_A, (size_t)sums * sizeof *sum);
    if (!copy || !sum)
        return false;
    wf_real *lane = copy + size, *dy = lane + sums; /* dy: the picture before */
    memset(copy, 0, (size_t)size * sizeof *copy);
    memset(lane, 0, (size_t)sums * sizeof *lane);
    memset(sum, 0, (size_t)sums * sizeof *sum);
    const int64_t rows = WF_MAX(1, CHAIN / s->cols); /* of a call */
    for (int64_t b = 0, added = 0; b < s->batch; b++) {
        const int64_t plane = b * s->channels + p.c0, size_x = w->height * w->width;
        if (b + 1 < s->batch) {
            conv_fetch(w->x + (plane + s->channels) * size_x, p.channels * size_x);
            conv_fetch(w->dy + (plane + s->channels) * positions, p.channels * positions);
        }
        copy_picture(w, w->x + plane * size_x, p.channels, dy, copy);
        gemm_isa()->pack_b_vector(p.channels, positions, w->dy + plane * positions, positions, 1, dy);
        for (int64_t i = 0; i < s->rows; i += rows) {
            struct conv_lanes t = w->t;
            t.x = copy + i * t.row_step;
            t.rows = WF_MIN(rows, s->rows - i);
            wf_kernel->internal->conv_lane_sums(&t, dy + i * s->cols * lanes, lane);
            added += t.rows * s->cols;
            if (added < CHAIN && b + 1 < s->batch)
                continue;
            for (int64_t k = 0; k < sums; k++)
                sum[k] += (double)lane[k];
            memset(lane, 0, (size_t)sums * sizeof *lane);
            added = 0;
        }
    }
    for (int64_t c = 0; c < p.channels; c++)
        for (int64_t k = 0; k < w->t.taps; k++) {
            wf_real *out = w->out + (p.c0 + c) * w->t.taps + k;
            *out = (w->add ? *out : 0) + (wf_real)sum[k * lanes + c];
        }
    return true;
}

static bool run(struct work *w, bool (*task)(void *ctx, int64_t index))
{
    const struct wf_conv *s = w->s;
    const double flops = 2. * (double)(s->batch * s->channels) * (double)(w->t.rows * w->t.cols) * (double)w->t.taps;
    const struct stages stages = {.count = 1, .stage = {{w->blocks * gemm_ceil_div(s->batch, w->each), task, w}}};
    return wf_gemm_stages(&stages, flops / 10, false); /* memory bounds the rate, not arithmetic */
}

bool conv_lanes_forward(const struct wf_conv *s, const wf_real *x, const wf_real *weight, const wf_real *bias, wf_real *y, bool add)
{
    struct work w = work_of(s);
    w.x = x, w.weight = weight, w.bias = bias, w.out = y, w.add = add;
    w.height = s->height, w.width = s->width;
    w.row = -s->before[0], w.col = -s->before[1];
    w.t.rows = s->rows, w.t.cols = s->cols;
    return place(&w, s->stride[0], s->stride[1], false) && run(&w, outputs_task);
}

bool conv_lanes_data(const struct wf_conv *s, const wf_real *dy, const wf_real *weight, const wf_real *bias, wf_real *dx, bool add)
{
    struct work w = work_of(s);
    w.x = dy, w.weight = weight, w.bias = bias, w.out = dx, w.add = add;
    w.height = s->rows, w.width = s->cols;
    w.row = s->before[0] - (s->kernel[0] - 1) * s->dilation[0];
    w.col = s->before[1] - (s->kernel[1] - 1) * s->dilation[1];
    w.t.rows = s->height, w.t.cols = s->width;
    return place(&w, 1, 1, true) && run(&w, outputs_task);
}

bool conv_lanes_weight(const struct wf_conv *s, const wf_real *x, const wf_real *dy, wf_real *dweight, bool add)
{
    struct work w = work_of(s);
    w.x = x, w.dy = dy, w.out = dweight, w.add = add;
    w.height = s->height, w.width = s->width;
    w.row = -s->before[0], w.col = -s->before[1];
    w.t.rows = s->rows, w.t.cols = s->cols;
    w.each = s->batch;
    return place(&w, s->stride[0], s->stride[1], false) && run(&w, weight_task);
}
