/* SPDX-License-Identifier: MIT */
/* Batch normalisation of channels (Ioffe and Szegedy 2015), with the statistics of the batch or with given ones. The work is divided by
 * channels: the elements of one channel are added in a fixed order, so that the bits do not depend on the number of threads. */
#include "channels.h"

struct batch_norm_attr {
    double eps;
    bool running; /* the statistics are operands */
};
enum { MEAN = BIAS + 1, VARIANCE }; /* further operands */
enum { SAVED_MEAN, SAVED_RSTD };
enum { OUT_MEAN = 1, OUT_VARIANCE };

static const char *name_of(const void *attr)
{
    return ((const struct batch_norm_attr *)attr)->running ? "batch_norm_running" : "batch_norm";
}

/* x as `batches` planes of `plane` contiguous elements for each channel, or as rows [N,C], whose columns are the channels. */
struct channels {
    bool rows;
    int64_t batches, channels, plane; /* for rows: 1, C and N */
    const wf_real *x, *dy;            /* dy may be NULL */
    const wf_real *weight, *bias;
    const wf_real *mean, *variance;   /* [C]: the given statistics; NULL: those of the batch */
    const wf_real *dmean, *dvariance; /* [C]: gradients of the statistics; may be NULL */
    double eps;
    wf_real *y, *out_mean, *out_variance; /* the outputs of the statistics may be NULL */
    wf_real *saved_mean, *rstd;           /* NULL in a forward that no backward follows */
    wf_real *dx, *dweight, *dbias;        /* may be NULL */
    bool add;
    double *sum;    /* [C,2]: of channel_moments or channel_products */
    wf_real *of[4]; /* [C]: the mean, and what the last pass over the elements multiplies and adds */
};
enum { M, SCALE, SHIFT };            /* of a forward */
enum { DY = 1, CENTERED, CONSTANT }; /* of a backward: the factors of channel_grad */

static wf_status batch_norm_shape(wf_call *c)
{
    const struct batch_norm_attr *a = c->attr;
    if (channels_shape(c, a->eps) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *x = &c->in[X];
    const int64_t channels = x->dim[1], count = wf_array_count(x);
    for (int i = MEAN; a->running && i <= VARIANCE; i++) {
        if (wf_want_there(c, i) != WF_OK || wf_want_vector(c, i, i == MEAN ? "mean" : "variance", channels) != WF_OK)
            return WF_ERR_ARGUMENT;
        if (c->need[i])
            return wf_call_fail(c, WF_ERR_ARGUMENT, "given statistics have no gradient: pass them through wf_detach");
    }
    if (!a->running && count > 0 && count == channels)
        return wf_call_fail(c, WF_ERR_SHAPE,
                            "each channel has only one value, whose variance is unknown: give more rows, or normalise with the running "
                            "statistics");
    const wf_shape vector = {1, {channels}};
    c->saved[SAVED_MEAN] = c->saved[SAVED_RSTD] = wf_call_shape(WF_REAL, &vector);
    for (int j = OUT_MEAN; j < c->outputs; j++)
        c->out[j] = wf_call_shape(WF_REAL, &vector);
    return WF_OK;
}

/* Sets the sizes, x, weight and bias, and takes memory for the numbers of each channel. False, with the error set, without memory. */
static bool channels_of(wf_call *c, struct channels *s)
{
    const wf_array *in = &c->in[X], x = wf_call_contiguous(c, in);
    s->rows = in->ndim == 2;
    s->channels = in->dim[1];
    s->batches = s->rows ? 1 : in->dim[0];
    s->plane = s->rows ? in->dim[0] : plane_size(in->ndim, in->dim);
    s->x = x.data;
    s->eps = ((const struct batch_norm_attr *)c->attr)->eps;
    s->sum = wf_call_temp(c, WF_F64, &(wf_shape){2, {s->channels, 2}}).data;
    wf_real *of = wf_call_temp(c, WF_REAL, &(wf_shape){2, {4, s->channels}}).data;
    for (int i = 0; i < 4 && of; i++)
        s->of[i] = of + i * s->channels;
    return (x.data || wf_array_count(in) == 0) && ((s->sum && of) || s->channels == 0) && wf_vector_of(c, WEIGHT, &s->weight) &&
           wf_vector_of(c, BIAS, &s->bias);
}

static double elements(const struct channels *s)
{
    return (double)(s->batches * s->plane);
}

enum { COLUMNS = 16 }; /* of rows: the columns that are added up together */

/* Runs the two passes: `channels` does both for channels begin .. end - 1 of planes. For rows, `columns` adds up blocks of COLUMNS columns,
 * `of_channel` computes the numbers of a channel from its sums, and `rows` does the second pass for rows begin .. end - 1. */
static void run(struct channels *s, double cost, bool sums, void (*channels)(void *, int64_t, int64_t),
                void (*columns)(void *, int64_t, int64_t), void (*of_channel)(const struct channels *, int64_t),
                void (*rows)(void *, int64_t, int64_t))
{
    const int64_t each = s->batches * s->plane;
    const double time = cost * (double)each * (double)s->channels;
    if (!s->rows) {
        wf_parallel_ranges(s->channels, WF_MAX(1, 8192 / WF_MAX(1, each)), time, channels, s);
        return;
    }
    for (int64_t k = 0; k < 2 * s->channels; k++)
        s->sum[k] = 0;
    if (sums && each > 0)
        wf_parallel_ranges((s->channels + COLUMNS - 1) / COLUMNS, 1, time / 2, columns, s);
    for (int64_t k = 0; k < s->channels; k++)
        of_channel(s, k);
    if (s->channels > 0)
        wf_parallel_ranges(s->plane, WF_MAX(1, 8192 / s->channels), time / 2, rows, s);
}

/* --- forward --------------------------------------------------------------------------------------------------------- */

/* The element about which a channel's moments are taken. */
static wf_real first_of(const struct channels *s, int64_t k)
{
    return s->x[s->rows ? k : k * s->plane];
}

static void normalize_channel(const struct channels *s, int64_t k)
{
    const double n = elements(s);
    double mean = s->mean ? (double)s->mean[k] : 0, variance = s->mean ? (double)s->variance[k] : 0;
    if (!s->mean && n > 0)
        channel_statistics(first_of(s, k), n, s->sum + 2 * k, &mean, &variance);
    const double rstd = 1 / sqrt(variance + s->eps);
    s->of[M][k] = (wf_real)mean;
    s->of[SCALE][k] = (wf_real)(s->weight ? rstd * (double)s->weight[k] : rstd);
    s->of[SHIFT][k] = s->bias ? s->bias[k] : 0;
    if (s->saved_mean) {
        s->saved_mean[k] = (wf_real)mean;
        s->rstd[k] = (wf_real)rstd;
    }
    if (s->out_mean)
        s->out_mean[k] = (wf_real)mean;
    if (s->out_variance)
        s->out_variance[k] = (wf_real)(n > 0 ? variance * (n / (n - 1)) : 0);
}

static void forward_channels(void *ctx, int64_t begin, int64_t end)
{
    const struct channels *s = ctx;
    for (int64_t k = begin; k < end; k++) {
        s->sum[2 * k] = s->sum[2 * k + 1] = 0;
        for (int64_t b = 0; !s->mean && s->plane > 0 && b < s->batches; b++)
            wf_kernel->internal->channel_moments(s->plane, s->x + (b * s->channels + k) * s->plane, first_of(s, k), s->sum + 2 * k);
        normalize_channel(s, k);
        for (int64_t b = 0; b < s->batches; b++) {
            const int64_t at = (b * s->channels + k) * s->plane;
            wf_kernel->internal->channel_normalize(s->plane, s->x + at, s->of[M][k], s->of[SCALE][k], s->of[SHIFT][k], s->y + at);
        }
    }
}

static void forward_columns(void *ctx, int64_t begin, int64_t end)
{
    const struct channels *s = ctx;
    const int64_t k = begin * COLUMNS, count = WF_MIN(end * COLUMNS, s->channels) - k;
    wf_kernel->internal->column_moments(s->plane, count, s->channels, s->x + k, s->x + k, s->sum + 2 * k);
}

static void forward_rows(void *ctx, int64_t begin, int64_t end)
{
    const struct channels *s = ctx;
    for (int64_t i = begin; i < end; i++)
        wf_kernel->internal->row_normalize(s->channels, s->x + i * s->channels, s->of[M], s->of[SCALE], s->of[SHIFT],
                                           s->y + i * s->channels);
}

static wf_status batch_norm_forward(wf_call *c)
{
    struct channels s = {.saved_mean = c->saved[SAVED_MEAN].data, .rstd = c->saved[SAVED_RSTD].data, .y = c->out[0].data};
    if (!channels_of(c, &s) || (wf_has(c, MEAN) && (!wf_vector_of(c, MEAN, &s.mean) || !wf_vector_of(c, VARIANCE, &s.variance))))
        return WF_ERR_MEMORY;
    s.out_mean = c->outputs > OUT_MEAN ? c->out[OUT_MEAN].data : NULL;
    s.out_variance = c->outputs > OUT_VARIANCE ? c->out[OUT_VARIANCE].data : NULL;
    run(&s, s.mean ? 0.1 : 0.25, !s.mean, forward_channels, forward_columns, normalize_channel, forward_rows);
    return WF_OK;
}

/* --- backward -------------------------------------------------------------------------------------------------------- */

/* For one channel of n elements: m = mean(x), v = mean((x - m)^2), r = 1 / sqrt(v + eps), xhat = (x - m) r, y = xhat weight + bias, and the
 * outputs m and u = v n / (n - 1). dweight and dbias are the sums of dy xhat and of dy. With h = dy weight, dm/dx_j = 1/n,
 * dv/dx_j = 2 (x_j - m) / n and dr/dx_j = -r^2 xhat_j / n,
 *   dx = r (h - mean(h) - xhat mean(h xhat)) + dm / n + 2 du (x - m) / (n - 1),
 * which is a dy + b (x - m) + c with numbers a, b and c of the channel. With given statistics dx = r h. */
static void differentiate_channel(const struct channels *s, int64_t k)
{
    const double n = elements(s), r = (double)s->rstd[k], scale = s->weight ? r * (double)s->weight[k] : r;
    const double *sum = s->sum + 2 * k; /* of dy, and of dy (x - m) */
    double centered = 0, constant = 0;
    if (s->dweight)
        s->dweight[k] = (wf_real)(r * sum[1]);
    if (s->dbias)
        s->dbias[k] = (wf_real)sum[0];
    if (!s->mean && n > 0) {
        centered = -scale * r * r * sum[1] / n + (s->dvariance ? 2 * (double)s->dvariance[k] / (n - 1) : 0);
        constant = -scale * sum[0] / n + (s->dmean ? (double)s->dmean[k] / n : 0);
    }
    s->of[DY][k] = (wf_real)scale;
    s->of[CENTERED][k] = (wf_real)centered;
    s->of[CONSTANT][k] = (wf_real)constant;
}

/* Whether the sums over dy are needed. */
static bool needs_sums(const struct channels *s)
{
    return s->dy && (!s->mean || s->dweight || s->dbias);
}

static void backward_channels(void *ctx, int64_t begin, int64_t end)
{
    const struct channels *s = ctx;
    for (int64_t k = begin; k < end; k++) {
        s->sum[2 * k] = s->sum[2 * k + 1] = 0;
        for (int64_t b = 0; needs_sums(s) && b < s->batches; b++) {
            const int64_t at = (b * s->channels + k) * s->plane;
            wf_kernel->internal->channel_products(s->plane, s->x + at, s->saved_mean[k], s->dy + at, s->sum + 2 * k);
        }
        differentiate_channel(s, k);
        const wf_real factor[] = {s->of[DY][k], s->of[CENTERED][k], s->of[CONSTANT][k]};
        for (int64_t b = 0; s->dx && b < s->batches; b++) {
            const int64_t at = (b * s->channels + k) * s->plane;
            wf_kernel->internal->channel_grad(s->plane, s->x + at, s->saved_mean[k], s->dy ? s->dy + at : NULL, factor, s->dx + at, s->add);
        }
    }
}

static void backward_columns(void *ctx, int64_t begin, int64_t end)
{
    const struct channels *s = ctx;
    const int64_t k = begin * COLUMNS, count = WF_MIN(end * COLUMNS, s->channels) - k;
    wf_kernel->internal->column_products(s->plane, count, s->channels, s->x + k, s->saved_mean + k, s->dy + k, s->sum + 2 * k);
}

static void backward_rows(void *ctx, int64_t begin, int64_t end)
{
    const struct channels *s = ctx;
    for (int64_t i = begin; s->dx && i < end; i++) {
        const int64_t at = i * s->channels;
        wf_kernel->internal->row_grad(s->channels, s->x + at, s->saved_mean, s->dy ? s->dy + at : NULL, (const wf_real *const *)s->of + DY,
                                      s->dx + at, s->add);
    }
}

/* Sets *v to the contiguous gradient of output j, or to NULL if it has none. False without memory. */
static bool given(wf_call *c, int j, const wf_real **v)
{
    *v = j < c->outputs && c->dout[j].data ? wf_call_contiguous(c, &c->dout[j]).data : NULL;
    return *v || j >= c->outputs || !c->dout[j].data;
}

static wf_status batch_norm_backward(wf_call *c)
{
    struct channels s = {.saved_mean = c->saved[SAVED_MEAN].data, .rstd = c->saved[SAVED_RSTD].data};
    struct contiguous_grad dx = {0};
    wf_array vector[3] = {{0}};
    if (!channels_of(c, &s) || !given(c, 0, &s.dy) || !given(c, OUT_MEAN, &s.dmean) || !given(c, OUT_VARIANCE, &s.dvariance))
        return WF_ERR_MEMORY;
    s.mean = ((const struct batch_norm_attr *)c->attr)->running ? s.saved_mean : NULL;
    if (c->need[X] && !wf_contiguous_grad(c, X, &dx))
        return WF_ERR_MEMORY;
    for (int i = WEIGHT; i <= BIAS; i++)
        if (c->need[i] && !(vector[i] = wf_grad_new(c, i)).data)
            return WF_ERR_MEMORY;
    s.dx = dx.contiguous.data;
    s.add = dx.add;
    s.dweight = vector[WEIGHT].data;
    s.dbias = vector[BIAS].data;
    run(&s, 0.35, needs_sums(&s), backward_channels, backward_columns, differentiate_channel, backward_rows);
    if (c->need[X])
        wf_contiguous_grad_done(&dx);
    for (int i = WEIGHT; i <= BIAS; i++)
        if (c->need[i])
            wf_grad_give(c, i, &vector[i]);
    return WF_OK;
}

/* --- the gradient from ops on tensors --------------------------------------------------------------------------------- */

/* Here x is [B,C,P], and a vector [C] is [1,C,1]. */
static wf_tensor *vector_of(wf_tensor *v)
{
    return wf_reshape(v, 1, wf_dim(v, 0), 1);
}

static wf_tensor *sum_of_channels(wf_tensor *x)
{
    return wf_sum_dim(wf_sum_dim(x, 2, true), 0, true); /* [1,C,1] */
}

static wf_tensor *mean_of_channels(wf_tensor *x, int64_t n)
{
    return wf_div_constant(sum_of_channels(x), (double)WF_MAX(n, 1));
}

static void batch_norm_gradient(const wf_gradient_call *c)
{
    const struct batch_norm_attr *a = c->attr;
    const wf_shape shape = wf_shape_of(c->x[X]);
    const int64_t planes = plane_size(shape.ndim, shape.dim), n = shape.dim[0] * planes;
    const wf_shape flat = {3, {shape.dim[0], shape.dim[1], planes}};
    wf_tensor *x = wf_reshape_to(c->x[X], &flat), *weight = c->x[WEIGHT], *dx = NULL;
    wf_tensor *centred = wf_subtract(x, a->running ? vector_of(c->x[MEAN]) : mean_of_channels(x, n));
    wf_tensor *variance = a->running ? vector_of(c->x[VARIANCE]) : mean_of_channels(wf_square(centred), n);
    wf_tensor *r = wf_rsqrt(wf_add_constant(variance, a->eps)), *xhat = wf_mul(centred, r);
    if (c->dy[0]) {
        wf_tensor *dy = wf_reshape_to(c->dy[0], &flat), *h = weight ? wf_mul(dy, vector_of(weight)) : dy;
        dx = h;
        if (!a->running)
            dx = wf_subtract(wf_subtract(h, mean_of_channels(h, n)), wf_mul(xhat, mean_of_channels(wf_mul(h, xhat), n)));
        dx = wf_mul(dx, r);
        if (c->need[WEIGHT])
            c->dx[WEIGHT] = wf_reshape(sum_of_channels(wf_mul(dy, xhat)), -1);
        if (c->need[BIAS])
            c->dx[BIAS] = wf_reshape(sum_of_channels(dy), -1);
    }
    if (c->outputs > 1 && c->dy[OUT_MEAN]) {
        wf_tensor *g = wf_expand_to(wf_div_constant(vector_of(c->dy[OUT_MEAN]), (double)WF_MAX(n, 1)), &flat);
        dx = dx ? wf_add(dx, g) : g;
    }
    if (c->outputs > 2 && c->dy[OUT_VARIANCE]) {
        wf_tensor *g = wf_mul(centred, wf_scale(vector_of(c->dy[OUT_VARIANCE]), 2.0 / (double)WF_MAX(n - 1, 1)));
        dx = dx ? wf_add(dx, g) : g;
    }
    if (dx && c->need[X])
        c->dx[X] = wf_reshape_to(dx, &shape);
}

#define BATCH(e) ATTR(struct batch_norm_attr, e, false)
#define RUNNING(e) ATTR(struct batch_norm_attr, e, true)
#define THREE(w, b) .inputs = 3, .fill = {WF_FILL_NORMAL, w, b}
#define FIVE(w, b)                                                                                                                         \
    .inputs = 5, .fill = {WF_FILL_NORMAL, w, b, WF_FILL_NORMAL, WF_FILL_POSITIVE}, .constant = {[MEAN] = true, [VARIANCE] = true}
const wf_op wf_op_batch_norm = {
    .name = "batch_norm",
    .name_of = name_of,
    .operands = "x weight bias mean variance",
    .attr_size = sizeof(struct batch_norm_attr),
    .outputs = 3,
    .reads = WF_READS_INPUT(X) | WF_READS_INPUT(WEIGHT),
    .shape = batch_norm_shape,
    .forward = batch_norm_forward,
    .backward = batch_norm_backward,
    .gradient = batch_norm_gradient,
    .cases = WF_CASES({"rows", {{6, 5}, {5}, {5}}, BATCH(1e-5)}, {"sequence", {{2, 3, 4}, {3}, {3}}, BATCH(1e-2)},
                      {"pictures", {{2, 3, 4, 5}, {3}, {3}}, BATCH(1e-5)}, {"one channel", {{3, 1, 2, 2}, {1}, {1}}, BATCH(1e-3)},
                      {"one picture", {{1, 4, 3, 7}, {4}, {4}}, BATCH(1e-5)}, {"two rows", {{2, 3}, {3}, {3}}, BATCH(0.1)},
                      {"no bias", {{5, 3}, {3}, {3}}, BATCH(1e-5), THREE(WF_FILL_NORMAL, WF_FILL_ABSENT)},
                      {"no weight", {{2, 3, 5}, {3}, {3}}, BATCH(1e-5), THREE(WF_FILL_ABSENT, WF_FILL_NORMAL)},
                      {"neither", {{2, 3, 5}}, BATCH(1e-5), THREE(WF_FILL_ABSENT, WF_FILL_ABSENT)},
                      {"many elements", {{3, 2, 9, 11}, {2}, {2}}, BATCH(1e-5)}, {"no rows", {{-1, 5}, {5}, {5}}, BATCH(1e-5)},
                      {"no channels", {{3, -1, 2}, {-1}, {-1}}, BATCH(1e-5)},
                      {"running, rows", {{3, 5}, {5}, {5}, {5}, {5}}, RUNNING(1e-5), FIVE(WF_FILL_NORMAL, WF_FILL_NORMAL)},
                      {"running, one row", {{1, 4}, {4}, {4}, {4}, {4}}, RUNNING(1e-2), FIVE(WF_FILL_NORMAL, WF_FILL_NORMAL)},
                      {"running, pictures", {{2, 3, 4, 5}, {3}, {3}, {3}, {3}}, RUNNING(1e-5), FIVE(WF_FILL_NORMAL, WF_FILL_NORMAL)},
                      {"running, neither", {{2, 3, 5}, {3}, {3}, {3}, {3}}, RUNNING(1e-5), FIVE(WF_FILL_ABSENT, WF_FILL_ABSENT)},
                      {"running, no rows", {{-1, 3, 2}, {3}, {3}, {3}, {3}}, RUNNING(1e-5), FIVE(WF_FILL_NORMAL, WF_FILL_NORMAL)})};

wf_tensor *wf_batch_norm(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, double eps, wf_tensor **mean, wf_tensor **variance)
{
    wf_tensor *out[3];
    wf_apply_multi(&wf_op_batch_norm, &(struct batch_norm_attr){.eps = eps}, 3, (wf_tensor *[]){x, weight, bias}, mean || variance ? 3 : 1,
                   out);
    if (mean)
        *mean = out[OUT_MEAN];
    if (variance)
        *variance = out[OUT_VARIANCE];
    return out[0];
}

wf_tensor *wf_batch_norm_running(wf_tensor *x, wf_tensor *mean, wf_tensor *variance, wf_tensor *weight, wf_tensor *bias, double eps)
{
    return wf_apply(&wf_op_batch_norm, &(struct batch_norm_attr){.eps = eps, .running = true}, 5,
                    (wf_tensor *[]){x, weight, bias, mean, variance});
}
