/* SPDX-License-Identifier: MIT */
/* Convolution in which each filter reads one channel, and its gradients: the rows of a padded copy of the channel are multiplied directly,
 * because a product with one row would only pack. */
#include <string.h>

#include <weft/internal/scratch.h>

#include "product.h"

enum { SHORT = 64 }; /* rows of fewer elements are put together for products of sums */

/* A padded picture. If the stride of columns is above 1, each row lies as one part for each remainder by the stride, so that the elements
 * that successive outputs read lie side by side. */
struct plane {
    int64_t rows, cols; /* with the padding */
    int64_t step;       /* the stride of columns */
    int64_t part;       /* elements of a part */
};

static struct plane plane_of(int64_t rows, int64_t cols, int64_t step)
{
    return (struct plane){rows, cols, step, gemm_ceil_div(cols, step)};
}

static int64_t plane_row(const struct plane *p)
{
    return p->step * p->part;
}

/* The index of an element in its row. */
static int64_t plane_col(const struct plane *p, int64_t col)
{
    return col % p->step * p->part + col / p->step;
}

/* How many columns below `col` have this remainder by the step. */
static int64_t parts_before(int64_t col, int64_t rest, int64_t step)
{
    return col > rest ? (col - rest + step - 1) / step : 0;
}

/* Copies a picture [height, width] into the plane, `top` rows below and `left` columns to the right of its first element; either may be
 * negative. The rest is 0. */
static void pad(const struct plane *p, const wf_real *x, int64_t height, int64_t width, int64_t top, int64_t left, wf_real *out)
{
    const struct conv_band band = {.x = x,
                                   .channels = 1,
                                   .height = height,
                                   .width = width,
                                   .row = -top,
                                   .col = -left,
                                   .rows = p->rows,
                                   .step = p->step,
                                   .part = p->part};
    gemm_isa()->conv_pad(&band, out);
}

/* The reverse for one row of the plane, or zeros if `row` is NULL: writes elements left .. left + width - 1 plus `bias` to `out`, or adds
 * them. What lies beyond the plane is 0. */
static void unpad(const struct plane *p, const wf_real *row, int64_t left, int64_t width, wf_real bias, bool add, wf_real *out)
{
    for (int64_t j = 0; j < width; j++)
        out[j] = add ? out[j] + bias : bias;
    const int64_t end = row ? WF_MIN(left + width, p->cols) : left;
    for (int64_t rest = 0; rest < p->step; rest++) {
        const int64_t first = parts_before(left, rest, p->step), last = parts_before(end, rest, p->step);
        const wf_real *from = row ? row + rest * p->part : NULL;
        wf_real *to = out + rest - left;
        if (p->step == 2)
            for (int64_t k = first; k < last; k++)
                to[k * 2] += from[k];
        else
            for (int64_t k = first; k < last; k++)
                to[k * p->step] += from[k];
    }
}

/* --- tasks --------------------------------------------------------------------------------------------------------- */

struct work {
    const struct wf_conv *s;
    const wf_real *x, *dy, *weight, *bias;
    wf_real *out;
    bool add;
    struct plane p;
    int64_t each; /* filters that read one channel */
    int64_t taps;
};

static struct work work_of(const struct wf_conv *s)
{
    const int64_t rows = (s->rows - 1) * s->stride[0] + (s->kernel[0] - 1) * s->dilation[0] + 1;
    const int64_t cols = (s->cols - 1) * s->stride[1] + (s->kernel[1] - 1) * s->dilation[1] + 1;
    return (struct work){
        .s = s, .p = plane_of(rows, cols, s->stride[1]), .each = s->filters / s->channels, .taps = s->kernel[0] * s->kernel[1]};
}

static wf_real *plane_memory(const struct plane *p)
{
    return wf_scratch(WF_SCRATCH_CONV, (size_t)(p->rows * plane_row(p) + gemm_isa()->nr) * sizeof(wf_real)); /* conv_pad writes vectors */
}

/* Memory for one number, one weight and one pointer for each tap. */
struct taps {
    int64_t *at;
    const wf_real **x;
    wf_real *weight;
};

static bool taps_memory(int64_t taps, struct taps *t)
{
    char *memory = wf_scratch(WF_SCRATCH_GEMM, (size_t)taps * (sizeof *t->at + sizeof *t->x + sizeof *t->weight));
    if (!memory)
        return false;
    t->at = (int64_t *)(void *)memory;
    t->x = (const wf_real **)(t->at + taps);
    t->weight = (wf_real *)(t->x + taps);
    return true;
}

/* Sets at[t] to the place at which tap t reads in the plane, counted from the first element that an output reads. */
static void place_taps(const struct wf_conv *s, const struct plane *p, int64_t *at)
{
    for (int64_t r = 0; r < s->kernel[0]; r++)
        for (int64_t q = 0; q < s->kernel[1]; q++)
            *at++ = r * s->dilation[0] * plane_row(p) + plane_col(p, q * s->dilation[1]);
}

static void multiply(const struct taps *t, int64_t taps, const wf_real *plane, int64_t row_step, int64_t rows, int64_t cols, wf_real bias,
                     bool add, wf_real *out)
{
    for (int64_t i = 0; i < rows; i++, out += cols, plane += row_step) {
        for (int64_t k = 0; k < taps; k++)
            t->x[k] = plane + t->at[k];
        wf_kernel->internal->conv_taps(cols, taps, t->x, t->weight, bias, add, out);
    }
}

static bool forward_task(void *ctx, int64_t index)
{
    const struct work *w = ctx;
    const struct wf_conv *s = w->s;
    const int64_t b = index / s->channels, c = index % s->channels, picture = s->rows * s->cols;
    wf_real *plane = plane_memory(&w->p);
    struct taps t;
    if (!plane || !taps_memory(w->taps, &t))
        return false;
    pad(&w->p, w->x + index * s->height * s->width, s->height, s->width, s->before[0], s->before[1], plane);
    place_taps(s, &w->p, t.at);
    for (int64_t f = c * w->each; f < (c + 1) * w->each; f++) {
        memcpy(t.weight, w->weight + f * w->taps, (size_t)w->taps * sizeof *t.weight);
        multiply(&t, w->taps, plane, s->stride[0] * plane_row(&w->p), s->rows, s->cols, w->bias ? w->bias[f] : 0, w->add,
                 w->out + (b * s->filters + f) * picture);
    }
    return true;
}

/* With strides of 1 the gradient of x is a convolution of dy with the taps in the opposite order. */
static bool data_task(void *ctx, int64_t index)
{
    const struct work *w = ctx;
    const struct wf_conv *s = w->s;
    const int64_t b = index / s->channels, c = index % s->channels, picture = s->rows * s->cols;
    const int64_t wide = (s->kernel[1] - 1) * s->dilation[1], high = (s->kernel[0] - 1) * s->dilation[0];
    const struct plane p = plane_of(s->height + high, s->width + wide, 1);
    wf_real *plane = plane_memory(&p), *out = w->out + index * s->height * s->width;
    struct taps t;
    if (!plane || !taps_memory(w->taps, &t))
        return false;
    place_taps(s, &p, t.at);
    for (int64_t f = c * w->each; f < (c + 1) * w->each; f++) {
        pad(&p, w->dy + (b * s->filters + f) * picture, s->rows, s->cols, high - s->before[0], wide - s->before[1], plane);
        for (int64_t k = 0; k < w->taps; k++)
            t.weight[k] = w->weight[f * w->taps + w->taps - 1 - k];
        const bool first = f == c * w->each;
        multiply(&t, w->taps, plane, plane_row(&p), s->height, s->width, first && w->bias ? w->bias[c] : 0, w->add || !first, out);
    }
    return true;
}

/* With other strides each row of dy is added to the rows that it reached. */
static bool strided_data_task(void *ctx, int64_t index)
{
    const struct work *w = ctx;
    const struct wf_conv *s = w->s;
    const int64_t b = index / s->channels, c = index % s->channels, picture = s->rows * s->cols, row = plane_row(&w->p);
    wf_real *plane = plane_memory(&w->p), *out = w->out + index * s->height * s->width;
    struct taps t;
    if (!plane || !taps_memory(w->taps, &t))
        return false;
    place_taps(s, &w->p, t.at);
    memset(plane, 0, (size_t)(w->p.rows * row) * sizeof *plane);
    for (int64_t f = c * w->each; f < (c + 1) * w->each; f++)
        for (int64_t i = 0; i < s->rows; i++)
            for (int64_t k = 0; k < w->taps; k++)
                wf_kernel->axpy(s->cols, w->weight[f * w->taps + k], w->dy + (b * s->filters + f) * picture + i * s->cols,
                                plane + i * s->stride[0] * row + t.at[k]);
    const wf_real bias = w->bias ? w->bias[c] : 0;
    for (int64_t i = 0; i < s->height; i++, out += s->width) {
        const int64_t r = i + s->before[0];
        unpad(&w->p, r < w->p.rows ? plane + r * row : NULL, s->before[1], s->width, bias, w->add, out);
    }
    return true;
}

/* The elements that tap `at` reads, [rows, cols] in a contiguous array: one long product is faster than many of short rows. */
static const wf_real *seen_by(const struct wf_conv *s, const wf_real *plane, int64_t row_step, int64_t at, wf_real *to)
{
    for (int64_t i = 0; i < s->rows; i++)
        memcpy(to + i * s->cols, plane + i * row_step + at, (size_t)s->cols * sizeof *to);
    return to;
}

/* A channel's weights: sums over all pictures, in double. */
static bool weight_task(void *ctx, int64_t c)
{
    const struct work *w = ctx;
    const struct wf_conv *s = w->s;
    const int64_t picture = s->rows * s->cols, row = plane_row(&w->p);
    wf_real *plane = plane_memory(&w->p);
    struct taps t;
    double *sum = wf_scratch(WF_SCRATCH_PACK_A, (size_t)(w->each * w->taps) * sizeof *sum);
    wf_real *seen = s->cols < SHORT ? wf_scratch(WF_SCRATCH_PACK_B, (size_t)picture * sizeof *seen) : NULL;
    if (!plane || !sum || (s->cols < SHORT && !seen) || !taps_memory(w->taps, &t))
        return false;
    place_taps(s, &w->p, t.at);
    memset(sum, 0, (size_t)(w->each * w->taps) * sizeof *sum);
    for (int64_t b = 0; b < s->batch; b++) {
        pad(&w->p, w->x + (b * s->channels + c) * s->height * s->width, s->height, s->width, s->before[0], s->before[1], plane);
        for (int64_t k = 0; k < w->taps && seen; k++) {
            const wf_real *x = seen_by(s, plane, s->stride[0] * row, t.at[k], seen);
            for (int64_t f = 0; f < w->each; f++)
                sum[f * w->taps + k] += wf_kernel->dot(picture, w->dy + (b * s->filters + c * w->each + f) * picture, x);
        }
        for (int64_t f = 0; f < w->each && !seen; f++)
            for (int64_t i = 0; i < s->rows; i++)
                for (int64_t k = 0; k < w->taps; k++)
                    sum[f * w->taps + k] += wf_kernel->dot(s->cols, w->dy + (b * s->filters + c * w->each + f) * picture + i * s->cols,
                                                           plane + i * s->stride[0] * row + t.at[k]);
    }
    wf_real *out = w->out + c * w->each * w->taps;
    for (int64_t k = 0; k < w->each * w->taps; k++)
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

bool conv_depthwise_forward(const struct wf_conv *s, const wf_real *x, const wf_real *weight, const wf_real *bias, wf_real *y, bool add)
{
    struct work w = work_of(s);
    w.x = x, w.weight = weight, w.bias = bias, w.out = y, w.add = add;
    return run(&w, s->batch * s->channels, forward_task);
}

bool conv_depthwise_data(const struct wf_conv *s, const wf_real *dy, const wf_real *weight, const wf_real *bias, wf_real *dx, bool add)
{
    struct work w = work_of(s);
    w.dy = dy, w.weight = weight, w.bias = bias, w.out = dx, w.add = add;
    return run(&w, s->batch * s->channels, s->stride[0] == 1 && s->stride[1] == 1 ? data_task : strided_data_task);
}

bool conv_depthwise_weight(const struct wf_conv *s, const wf_real *x, const wf_real *dy, wf_real *dweight, bool add)
{
    struct work w = work_of(s);
    w.x = x, w.dy = dy, w.out = dweight, w.add = add;
    return run(&w, s->channels, weight_task);
}
