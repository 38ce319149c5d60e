/* SPDX-License-Identifier: MIT */
/* Convolution in which each filter reads one channel, and its gradients: the rows of a padded copy of the channel are multiplied directly,
 * because a product with one row would only pack. The copy of a picture stays in the first-level cache, if the picture is small. */
#include <string.h>

#include <weft/internal/scratch.h>

#include "product.h"

enum {
    CHAIN = 256, /* products, about, that a lane adds up for the gradient of the weight before its sum goes to one in double */
    GRAIN = 2048 /* elements of a task, at least, where pictures are small */
};

/* A padded picture. If the stride of columns is above 1, each row lies as one part for each remainder by the stride, so that the elements
 * that successive outputs read lie side by side. */
struct plane {
    int64_t rows, cols; /* with the padding */
    int64_t step;       /* the stride of columns, or `cols` if that is less */
    int64_t part;       /* elements of a part */
};

static struct plane plane_of(int64_t rows, int64_t cols, int64_t stride)
{
    rows = WF_MAX(rows, 0), cols = WF_MAX(cols, 0); /* without outputs they may be negative */
    const int64_t step = WF_MIN(stride, WF_MAX(cols, 1));
    return (struct plane){rows, cols, step, gemm_ceil_div(cols, step)};
}

static int64_t plane_row(const struct plane *p)
{
    return p->step * p->part;
}

/* Whether its elements can be counted: padding and dilation may be of any size. */
static bool plane_fits(const struct plane *p)
{
    return (double)p->rows * (double)plane_row(p) < 1e15;
}

/* The index of an element in its row. */
static int64_t plane_col(const struct plane *p, int64_t col)
{
    return col % p->step * p->part + col / p->step;
}

/* The kernels read and write a vector more than the plane. */
static wf_real *plane_memory(const struct plane *p, int slot)
{
    return wf_scratch(slot, (size_t)(p->rows * plane_row(p) + gemm_isa()->nr) * sizeof(wf_real));
}

/* --- tasks --------------------------------------------------------------------------------------------------------- */

/* The elements of x whose row and column have the same remainders by the strides: their gradient is one convolution of dy. */
struct phase {
    int64_t row, col;    /* the first of these elements */
    int64_t rows, cols;  /* how many there are */
    int64_t first, taps; /* of w.at */
};

struct work {
    const struct wf_conv *s;
    const wf_real *x, *dy, *weight, *bias;
    wf_real *out;
    bool add;
    struct plane p;    /* the padded copy of a channel of x, or of a filter of dy for the gradient of x */
    int64_t row, col;  /* the element of the picture at the plane's first row and column; either may be negative */
    int64_t grain;     /* channels of a task; of the gradient of the weight one */
    int64_t each;      /* filters that read one channel */
    int64_t taps;      /* of a filter */
    const int64_t *at; /* [taps] the place in the plane at which a tap reads for the first output */
    const struct phase *phase;
    int64_t phases;
};

static void pad(const struct work *w, const wf_real *x, int64_t height, int64_t width, wf_real *plane)
{
    const struct conv_band band = {.x = x,
                                   .channels = 1,
                                   .height = height,
                                   .width = width,
                                   .row = w->row,
                                   .col = w->col,
                                   .rows = w->p.rows,
                                   .step = w->p.step,
                                   .part = w->p.part};
    gemm_isa()->conv_pad(&band, plane);
}

/* The outputs of the convolution, or its gradient's, as the kernels read them. */
static struct conv_outputs outputs(const struct work *w, const wf_real *plane)
{
    return (struct conv_outputs){w->s->rows, w->s->cols, w->taps, plane, w->s->stride[0] * plane_row(&w->p), w->at};
}

/* The channels of pictures that a task computes, counted through all pictures. */
static struct gemm_range channels_of(const struct work *w, int64_t index)
{
    return (struct gemm_range){index * w->grain, WF_MIN((index + 1) * w->grain, w->s->batch * w->s->channels)};
}

static bool forward_task(void *ctx, int64_t index)
{
    const struct work *w = ctx;
    const struct wf_conv *s = w->s;
    const struct gemm_range all = channels_of(w, index);
    const int64_t picture = s->rows * s->cols;
    wf_real *plane = plane_memory(&w->p, WF_SCRATCH_CONV);
    if (!plane)
        return false;
    const struct conv_outputs t = outputs(w, plane);
    for (int64_t n = all.begin; n < all.end; n++) {
        pad(w, w->x + n * s->height * s->width, s->height, s->width, plane);
        if (n + 1 < w->s->batch * s->channels) {
            conv_fetch(w->x + (n + 1) * s->height * s->width, s->height * s->width);
            conv_fetch(w->out + (n + 1) * w->each * picture, w->each * picture);
        }
        for (int64_t i = 0; i < w->each; i++) {
            const int64_t f = n % s->channels * w->each + i;
            wf_kernel->internal->conv_taps(&t, w->weight + f * w->taps, w->bias ? w->bias[f] : 0, w->add,
                                           w->out + (n * w->each + i) * picture, s->cols);
        }
    }
    return true;
}

/* The gradient of a channel of one picture. It goes to `out`, which lies in parts as the plane `to`. */
static void data_phases(const struct work *w, int64_t n, wf_real *plane, const struct plane *to, wf_real *out, bool add)
{
    const struct wf_conv *s = w->s;
    const int64_t c = n % s->channels;
    for (int64_t i = 0; i < w->each; i++) {
        pad(w, w->dy + (n * w->each + i) * s->rows * s->cols, s->rows, s->cols, plane);
        for (const struct phase *p = w->phase; p < w->phase + w->phases; p++) {
            const struct conv_outputs t = {p->rows, p->cols, p->taps, plane, w->p.part, w->at + p->first};
            wf_kernel->internal->conv_taps(&t, w->weight + (c * w->each + i) * w->taps + p->first, i == 0 && w->bias ? w->bias[c] : 0,
                                           add || i > 0, out + p->row * plane_row(to) + p->col * to->part, s->stride[0] * plane_row(to));
        }
    }
}

static bool data_task(void *ctx, int64_t index)
{
    const struct work *w = ctx;
    const struct wf_conv *s = w->s;
    const struct gemm_range all = channels_of(w, index);
    const struct plane to = plane_of(s->height, s->width, s->stride[1]);
    const int64_t size = s->height * s->width;
    wf_real *plane = plane_memory(&w->p, WF_SCRATCH_CONV), *parts = to.step > 1 ? plane_memory(&to, WF_SCRATCH_GEMM) : NULL;
    if (!plane || (to.step > 1 && !parts))
        return false;
    for (int64_t n = all.begin; n < all.end; n++) {
        wf_real *dx = w->out + n * size;
        if (n + 1 < s->batch * s->channels) {
            conv_fetch(w->dy + (n + 1) * w->each * s->rows * s->cols, w->each * s->rows * s->cols);
            conv_fetch(dx + size, size);
        }
        data_phases(w, n, plane, &to, parts ? parts : dx, !parts && w->add);
        if (parts)
            wf_kernel->internal->conv_join(s->height, s->width, to.step, to.part, parts, w->add, dx);
    }
    return true;
}

/* Adds the sums of the lanes to those of the taps, and clears them. */
static void fold(int64_t taps, int64_t lanes, wf_real *lane, double *sum)
{
    for (int64_t k = 0; k < taps; k++)
        for (int64_t i = 0; i < lanes; i++)
            sum[k] += (double)lane[k * lanes + i];
    memset(lane, 0, (size_t)(taps * lanes) * sizeof *lane);
}

/* A channel's weights: sums over all pictures. A lane of a vector adds up products of about CHAIN elements in wf_real; the sums of these
 * are in double. */
static bool weight_task(void *ctx, int64_t c)
{
    const struct work *w = ctx;
    const struct wf_conv *s = w->s;
    const int64_t lanes = gemm_isa()->lanes, size = s->height * s->width, picture = s->rows * s->cols, taps = w->each * w->taps,
                  row = s->stride[0] * plane_row(&w->p);
    const int64_t cols = WF_MIN(s->cols, CHAIN * lanes), rows = WF_MAX(1, CHAIN / gemm_ceil_div(WF_MAX(cols, 1), lanes)); /* of a block */
    wf_real *plane = plane_memory(&w->p, WF_SCRATCH_CONV);
    wf_real *lane = wf_scratch(WF_SCRATCH_GEMM, (size_t)(taps * lanes) * sizeof *lane);
    double *sum = wf_scratch(WF_SCRATCH_PACK_A, (size_t)taps * sizeof *sum);
    if (!plane || !lane || !sum)
        return false;
    memset(sum, 0, (size_t)taps * sizeof *sum);
    memset(lane, 0, (size_t)(taps * lanes) * sizeof *lane);
    int64_t added = 0;
    for (int64_t b = 0; b < s->batch; b++) {
        const wf_real *x = w->x + (b * s->channels + c) * size;
        pad(w, x, s->height, s->width, plane);
        const wf_real *dy = w->dy + (b * s->filters + c * w->each) * picture;
        if (b + 1 < s->batch) {
            conv_fetch(x + s->channels * size, size);
            conv_fetch(dy + s->filters * picture, w->each * picture);
        }
        for (int64_t i = 0; i < s->rows; i += rows)
            for (int64_t j = 0; j < s->cols; j += cols) {
                struct conv_outputs t = outputs(w, plane + i * row + j);
                t.rows = WF_MIN(rows, s->rows - i);
                t.cols = WF_MIN(cols, s->cols - j);
                for (int64_t f = 0; f < w->each; f++)
                    wf_kernel->internal->conv_tap_sums(&t, dy + f * picture + i * s->cols + j, s->cols, lane + f * w->taps * lanes);
                added += t.rows * gemm_ceil_div(t.cols, lanes);
                if (added >= CHAIN) {
                    fold(taps, lanes, lane, sum);
                    added = 0;
                }
            }
    }
    fold(taps, lanes, lane, sum);
    wf_real *out = w->out + c * taps;
    for (int64_t k = 0; k < taps; k++)
        out[k] = (w->add ? out[k] : 0) + (wf_real)sum[k];
    return true;
}

static bool run(struct work *w, int64_t tasks, bool (*task)(void *ctx, int64_t index))
{
    const struct wf_conv *s = w->s;
    const double flops = 2. * (double)(s->batch * s->filters) * (double)(s->rows * s->cols) * (double)w->taps;
    const struct stages stages = {.count = 1, .stage = {{tasks, task, w}}};
    return wf_gemm_stages(&stages, flops / 10, false); /* memory bounds the rate, not arithmetic */
}

static bool run_channels(struct work *w, bool (*task)(void *ctx, int64_t index))
{
    const struct wf_conv *s = w->s;
    w->grain = gemm_ceil_div(GRAIN, WF_MAX(1, WF_MAX(s->height * s->width, s->rows * s->cols) * w->each));
    return run(w, gemm_ceil_div(s->batch * s->channels, w->grain), task);
}

/* --- what all tasks read ------------------------------------------------------------------------------------------- */

static struct work work_of(const struct wf_conv *s)
{
    return (struct work){.s = s, .each = s->filters / s->channels, .taps = s->kernel[0] * s->kernel[1]};
}

/* The plane with what the outputs read, and the places of the taps in it. */
static bool plan_outputs(struct work *w)
{
    const struct wf_conv *s = w->s;
    w->p = plane_of((s->rows - 1) * s->stride[0] + (s->kernel[0] - 1) * s->dilation[0] + 1,
                    (s->cols - 1) * s->stride[1] + (s->kernel[1] - 1) * s->dilation[1] + 1, s->stride[1]);
    w->row = -s->before[0];
    w->col = -s->before[1];
    int64_t *at = plane_fits(&w->p) ? wf_scratch(WF_SCRATCH_CONV_W, (size_t)w->taps * sizeof *at) : NULL;
    w->at = at;
    for (int64_t r = 0; r < s->kernel[0] && at; r++)
        for (int64_t q = 0; q < s->kernel[1]; q++)
            *at++ = r * s->dilation[0] * plane_row(&w->p) + plane_col(&w->p, q * s->dilation[1]);
    return w->at != NULL;
}

/* The number of rows (dim 0) or columns (1) of dy that the phases read, from the first to the last. */
static int64_t phases_reach(const struct wf_conv *s, int dim, struct conv_phase_taps *t, int64_t *first)
{
    const int64_t size = dim == 0 ? s->height : s->width;
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    for (int64_t i = 0; i < WF_MIN(s->stride[dim], size); i++) {
        conv_find_taps(s, dim, i, t);
        for (int64_t k = 0; k < t->count; k++) {
            lo = WF_MIN(lo, t->at[k]);
            hi = WF_MAX(hi, t->at[k] + gemm_ceil_div(size - i, s->stride[dim]));
        }
    }
    *first = lo < hi ? lo : 0;
    return lo < hi ? hi - lo : 0;
}

/* The plane with what the phases read of dy; the phases; the places of their taps; and the weights in this order. */
static bool plan_phases(struct work *w)
{
    const struct wf_conv *s = w->s;
    const int64_t rows = WF_MIN(s->stride[0], s->height), cols = WF_MIN(s->stride[1], s->width);
    const int64_t indices = w->taps + 2 * (s->kernel[0] + s->kernel[1]);
    char *memory = wf_scratch(WF_SCRATCH_CONV_W, (size_t)(rows * cols) * sizeof(struct phase) + (size_t)indices * sizeof(int64_t) +
                                                     (size_t)(s->filters * w->taps) * sizeof(wf_real));
    if (!memory)
        return false;
    struct phase *phase = (void *)memory;
    int64_t *at = (int64_t *)(phase + rows * cols), *index = at + w->taps;
    struct conv_phase_taps t[2] = {{0, index, index + s->kernel[0]},
                                   {0, index + 2 * s->kernel[0], index + 2 * s->kernel[0] + s->kernel[1]}};
    wf_real *weight = (wf_real *)(at + indices);
    w->p.rows = phases_reach(s, 0, &t[0], &w->row);
    w->p.cols = w->p.part = phases_reach(s, 1, &t[1], &w->col);
    w->p.step = 1;
    if (!plane_fits(&w->p))
        return false;
    int64_t n = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t q = 0; q < cols; q++) {
            conv_find_taps(s, 0, r, &t[0]);
            conv_find_taps(s, 1, q, &t[1]);
            *phase++ = (struct phase){
                r, q, gemm_ceil_div(s->height - r, s->stride[0]), gemm_ceil_div(s->width - q, s->stride[1]), n, t[0].count * t[1].count};
            for (int64_t i = 0; i < t[0].count; i++)
                for (int64_t j = 0; j < t[1].count; j++, n++) {
                    at[n] = (t[0].at[i] - w->row) * w->p.part + t[1].at[j] - w->col;
                    for (int64_t f = 0; f < s->filters; f++)
                        weight[f * w->taps + n] = w->weight[f * w->taps + t[0].tap[i] * s->kernel[1] + t[1].tap[j]];
                }
        }
    w->phase = (void *)memory;
    w->phases = rows * cols;
    w->at = at;
    w->weight = weight;
    return true;
}

bool conv_depthwise_forward(const struct wf_conv *s, const wf_real *x, const wf_real *weight, const wf_real *bias, wf_real *y, bool add)
{
    if (conv_lanes_pay(s, false))
        return conv_lanes_forward(s, x, weight, bias, y, add);
    struct work w = work_of(s);
    w.x = x, w.weight = weight, w.bias = bias, w.out = y, w.add = add;
    return plan_outputs(&w) && run_channels(&w, forward_task);
}

bool conv_depthwise_data(const struct wf_conv *s, const wf_real *dy, const wf_real *weight, const wf_real *bias, wf_real *dx, bool add)
{
    if (conv_lanes_pay(s, true))
        return conv_lanes_data(s, dy, weight, bias, dx, add);
    struct work w = work_of(s);
    w.dy = dy, w.weight = weight, w.bias = bias, w.out = dx, w.add = add;
    return plan_phases(&w) && run_channels(&w, data_task);
}

bool conv_depthwise_weight(const struct wf_conv *s, const wf_real *x, const wf_real *dy, wf_real *dweight, bool add)
{
    if (conv_lanes_pay(s, false))
        return conv_lanes_weight(s, x, dy, dweight, add);
    struct work w = work_of(s);
    w.x = x, w.dy = dy, w.out = dweight, w.add = add;
    return plan_outputs(&w) && run(&w, s->channels, weight_task);
}
