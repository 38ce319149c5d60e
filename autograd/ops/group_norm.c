/* SPDX-License-Identifier: MIT */
/* Normalisation of groups of channels (Wu and He 2018). The work is divided by the groups of all pictures; what weight and bias receive is
 * added in the order of the pictures, so that the bits do not depend on the number of threads. */
#include "channels.h"

struct group_norm_attr {
    int64_t groups;
    double eps;
};
enum { SAVED_MEAN, SAVED_RSTD }; /* [B,G] */

struct groups {
    int64_t batches, channels, groups, width, plane; /* `width` channels are a group; a channel of a picture has `plane` elements */
    const wf_real *x, *dy, *weight, *bias;           /* weight and bias may be NULL */
    double eps;
    wf_real *y, *mean, *rstd; /* mean and rstd are NULL in a forward that no backward follows */
    wf_real *dx;              /* may be NULL */
    bool add;
    double *sum; /* [B,C,2], in a backward: sums over a plane of dy and of dy (x - m) */
};

static wf_status group_norm_shape(wf_call *c)
{
    const struct group_norm_attr *a = c->attr;
    if (channels_shape(c, a->eps) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *x = &c->in[X];
    if (a->groups < 1 || a->groups > WF_MAX(1, x->dim[1]) || x->dim[1] % a->groups != 0)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "%lld groups do not divide %lld channels", (long long)a->groups, (long long)x->dim[1]);
    const wf_shape each = {2, {x->dim[0], a->groups}};
    c->saved[SAVED_MEAN] = c->saved[SAVED_RSTD] = wf_call_shape(WF_REAL, &each);
    return WF_OK;
}

/* Sets the sizes, x, weight and bias. False, with the error set, without memory. */
static bool groups_of(wf_call *c, struct groups *s)
{
    const struct group_norm_attr *a = c->attr;
    const wf_array *in = &c->in[X], x = wf_call_contiguous(c, in);
    s->batches = in->dim[0];
    s->channels = in->dim[1];
    s->groups = a->groups;
    s->width = s->channels / a->groups;
    s->plane = plane_size(in->ndim, in->dim);
    s->x = x.data;
    s->eps = a->eps;
    return (x.data || wf_array_count(in) == 0) && wf_vector_of(c, WEIGHT, &s->weight) && wf_vector_of(c, BIAS, &s->bias);
}

/* Runs `body` for each group of each picture. `cost`: the time in nanoseconds for an element. */
static void run(struct groups *s, double cost, void (*body)(void *, int64_t, int64_t))
{
    const int64_t each = s->width * s->plane, count = s->batches * s->groups;
    wf_parallel_ranges(count, WF_MAX(1, 8192 / WF_MAX(1, each)), cost * (double)each * (double)count, body, s);
}

static double weight_of(const struct groups *s, int64_t channel)
{
    return s->weight ? (double)s->weight[channel] : 1;
}

static void forward_groups(void *ctx, int64_t begin, int64_t end)
{
    const struct groups *s = ctx;
    const int64_t each = s->width * s->plane;
    for (int64_t k = begin; k < end; k++) {
        const wf_real *x = s->x + k * each;
        double sum[2] = {0, 0}, mean = 0, variance = 0;
        if (each > 0) {
            wf_kernel->internal->channel_moments(each, x, x[0], sum);
            channel_statistics(x[0], (double)each, sum, &mean, &variance);
        }
        const double rstd = 1 / sqrt(variance + s->eps);
        for (int64_t i = 0, channel = k % s->groups * s->width; i < s->width; i++, channel++)
            wf_kernel->internal->channel_normalize(s->plane, x + i * s->plane, (wf_real)mean, (wf_real)(rstd * weight_of(s, channel)),
                                                   s->bias ? s->bias[channel] : 0, s->y + k * each + i * s->plane);
        if (s->mean) {
            s->mean[k] = (wf_real)mean;
            s->rstd[k] = (wf_real)rstd;
        }
    }
}

static wf_status group_norm_forward(wf_call *c)
{
    struct groups s = {.y = c->out[0].data, .mean = c->saved[SAVED_MEAN].data, .rstd = c->saved[SAVED_RSTD].data};
    if (!groups_of(c, &s))
        return WF_ERR_MEMORY;
    run(&s, 0.25, forward_groups);
    return WF_OK;
}

/* For one group of n elements: m = mean(x), r = 1 / sqrt(mean((x - m)^2) + eps), xhat = (x - m) r, y = xhat weight + bias. dweight and
 * dbias are the sums of dy xhat and of dy over a channel of all pictures. With h = dy weight, dm/dx_j = 1/n and dr/dx_j = -r^2 xhat_j / n,
 * dx = r (h - mean(h) - xhat mean(h xhat)), which is r weight dy - r^2 mean(h xhat) (x - m) - r mean(h). */
static void backward_groups(void *ctx, int64_t begin, int64_t end)
{
    const struct groups *s = ctx;
    const int64_t each = s->width * s->plane;
    for (int64_t k = begin; k < end; k++) {
        const wf_real *x = s->x + k * each, *dy = s->dy + k * each;
        const int64_t first = k % s->groups * s->width;
        double *sum = s->sum + 2 * k * s->width, mean_h = 0, mean_hx = 0;
        const double r = (double)s->rstd[k];
        for (int64_t i = 0; i < s->width; i++) {
            sum[2 * i] = sum[2 * i + 1] = 0;
            wf_kernel->internal->channel_products(s->plane, x + i * s->plane, s->mean[k], dy + i * s->plane, sum + 2 * i);
            mean_h += weight_of(s, first + i) * sum[2 * i];
            mean_hx += weight_of(s, first + i) * sum[2 * i + 1] * r;
        }
        if (!s->dx || each == 0)
            continue;
        mean_h /= (double)each;
        mean_hx /= (double)each;
        for (int64_t i = 0; i < s->width; i++) {
            const wf_real factor[] = {(wf_real)(r * weight_of(s, first + i)), (wf_real)(-r * r * mean_hx), (wf_real)(-r * mean_h)};
            wf_kernel->internal->channel_grad(s->plane, x + i * s->plane, s->mean[k], dy + i * s->plane, factor,
                                              s->dx + k * each + i * s->plane, s->add);
        }
    }
}

/* Gives operand i the sums over the pictures: of dy xhat for the weight, of dy for the bias. */
static wf_status give_sums(wf_call *c, const struct groups *s, int i)
{
    wf_array d = wf_grad_new(c, i);
    if (!d.data)
        return WF_ERR_MEMORY;
    for (int64_t channel = 0; channel < s->channels; channel++) {
        double total = 0;
        for (int64_t b = 0; b < s->batches; b++) {
            const double *sum = s->sum + 2 * (b * s->channels + channel);
            total += i == WEIGHT ? sum[1] * (double)s->rstd[b * s->groups + channel / s->width] : sum[0];
        }
        ((wf_real *)d.data)[channel] = (wf_real)total;
    }
    wf_grad_give(c, i, &d);
    return WF_OK;
}

static wf_status group_norm_backward(wf_call *c)
{
    struct groups s = {.mean = c->saved[SAVED_MEAN].data, .rstd = c->saved[SAVED_RSTD].data};
    const wf_array dy = wf_call_contiguous(c, &c->dout[0]);
    struct contiguous_grad dx = {0};
    if (!groups_of(c, &s))
        return WF_ERR_MEMORY;
    s.dy = dy.data;
    s.sum = wf_call_temp(c, WF_F64, &(wf_shape){3, {s.batches, s.channels, 2}}).data;
    if ((!dy.data && wf_array_count(&c->in[X]) > 0) || (!s.sum && s.batches * s.channels > 0) ||
        (c->need[X] && !wf_contiguous_grad(c, X, &dx)))
        return WF_ERR_MEMORY;
    s.dx = dx.contiguous.data;
    s.add = dx.add;
    run(&s, 0.35, backward_groups);
    if (c->need[X])
        wf_contiguous_grad_done(&dx);
    for (int i = WEIGHT; i <= BIAS; i++)
        if (c->need[i] && give_sums(c, &s, i) != WF_OK)
            return WF_ERR_MEMORY;
    return WF_OK;
}

/* The sums over pictures and planes of x [B,C,P], as [C]. */
static wf_tensor *sum_of_channels(wf_tensor *x)
{
    return wf_sum_dim(wf_sum_dim(x, 2, false), 0, false);
}

static void group_norm_gradient(const wf_gradient_call *c)
{
    const struct group_norm_attr *a = c->attr;
    const wf_shape shape = wf_shape_of(c->x[X]);
    const int64_t plane = plane_size(shape.ndim, shape.dim);
    const wf_shape planes = {3, {shape.dim[0], shape.dim[1], plane}},
                   rows = {3, {shape.dim[0], a->groups, shape.dim[1] / a->groups * plane}};
    wf_tensor *x = wf_reshape_to(c->x[X], &rows), *centred = wf_subtract(x, wf_mean_dim(x, -1, true));
    wf_tensor *r = wf_rsqrt(wf_add_constant(wf_mean_dim(wf_square(centred), -1, true), a->eps)), *xhat = wf_mul(centred, r);
    wf_tensor *dy = wf_reshape_to(c->dy[0], &planes);
    wf_tensor *h = wf_reshape_to(c->x[WEIGHT] ? wf_mul(dy, wf_reshape(c->x[WEIGHT], -1, 1)) : dy, &rows);
    wf_tensor *rest = wf_subtract(wf_subtract(h, wf_mean_dim(h, -1, true)), wf_mul(xhat, wf_mean_dim(wf_mul(h, xhat), -1, true)));
    if (c->need[X])
        c->dx[X] = wf_reshape_to(wf_mul(rest, r), &shape);
    if (c->need[WEIGHT])
        c->dx[WEIGHT] = sum_of_channels(wf_mul(dy, wf_reshape_to(xhat, &planes)));
    if (c->need[BIAS])
        c->dx[BIAS] = sum_of_channels(dy);
}

#define GROUPS(n, e) ATTR(struct group_norm_attr, n, e)
#define ABSENT(w, b) .inputs = 3, .fill = {WF_FILL_NORMAL, w, b}
const wf_op wf_op_group_norm = {
    .name = "group_norm",
    .operands = "x weight bias",
    .attr_size = sizeof(struct group_norm_attr),
    .reads = WF_READS_INPUT(X) | WF_READS_INPUT(WEIGHT),
    .shape = group_norm_shape,
    .forward = group_norm_forward,
    .backward = group_norm_backward,
    .gradient = group_norm_gradient,
    .cases = WF_CASES({"pictures", {{2, 6, 3, 5}, {6}, {6}}, GROUPS(2, 1e-5)}, {"sequence", {{3, 4, 5}, {4}, {4}}, GROUPS(2, 1e-2)},
                      {"rows", {{4, 6}, {6}, {6}}, GROUPS(2, 1e-3)}, {"one group", {{2, 3, 4}, {3}, {3}}, GROUPS(1, 1e-5)},
                      {"a group each", {{2, 3, 2, 4}, {3}, {3}}, GROUPS(3, 1e-5)},
                      {"no bias", {{2, 4, 3}, {4}, {4}}, GROUPS(2, 1e-5), ABSENT(WF_FILL_NORMAL, WF_FILL_ABSENT)},
                      {"no weight", {{2, 4, 3}, {4}, {4}}, GROUPS(2, 1e-5), ABSENT(WF_FILL_ABSENT, WF_FILL_NORMAL)},
                      {"neither", {{2, 4, 3}}, GROUPS(2, 1e-5), ABSENT(WF_FILL_ABSENT, WF_FILL_ABSENT)},
                      {"many elements", {{2, 4, 9, 11}, {4}, {4}}, GROUPS(2, 1e-5)}, {"no rows", {{-1, 4, 2}, {4}, {4}}, GROUPS(2, 1e-5)},
                      {"no channels", {{3, -1, 2}, {-1}, {-1}}, GROUPS(1, 1e-5)}, {"no steps", {{3, 4, -1}, {4}, {4}}, GROUPS(2, 1e-5)})};

wf_tensor *wf_group_norm(wf_tensor *x, int64_t groups, wf_tensor *weight, wf_tensor *bias, double eps)
{
    return wf_apply(&wf_op_group_norm, &(struct group_norm_attr){groups, eps}, 3, (wf_tensor *[]){x, weight, bias});
}
