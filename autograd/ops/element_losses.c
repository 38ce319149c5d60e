/* SPDX-License-Identifier: MIT */
/* Losses of elements: squared and absolute errors, Huber's loss, binary cross-entropy of logits, Kullback-Leibler divergences. With a
 * reduction, each block adds up PIECE losses at a time, so that there is no array of all losses. */
#include <math.h>

#include "common.h"

struct loss_attr {
    enum wf_reduction reduction;
    bool log_target; /* kl_div: the target is a logarithm */
    double delta;    /* huber: the magnitude of an error at which the loss becomes linear */
};

enum { OPERANDS = 3, BLOCK = 8192, PIECE = 1024 };

/* The kernels for the loss of an element (`value`) and for its derivative by each operand (`slope`). */
struct kind {
    wf_map_kernel *value, *slope[OPERANDS];
};

static wf_status loss_shape(wf_call *c)
{
    const struct loss_attr *a = c->attr;
    if (wf_want_reals(c, 2) != WF_OK || (wf_has(c, 2) && wf_want(c, 2, WF_REAL) != WF_OK))
        return WF_ERR_ARGUMENT;
    if ((unsigned)a->reduction > WF_REDUCE_BATCH_MEAN)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the reduction %d is unknown", (int)a->reduction);
    wf_shape x = wf_array_shape(&c->in[0]), y = wf_array_shape(&c->in[1]), both;
    if (!wf_shape_equal(&x, &y))
        return wf_call_fail(c, WF_ERR_SHAPE, "the first two operands must have the same shape: wf_expand repeats one that is smaller");
    if (wf_has(c, 2)) {
        wf_shape weight = wf_array_shape(&c->in[2]);
        if (!wf_shape_broadcast(&x, &weight, &both) || !wf_shape_equal(&x, &both))
            return wf_call_fail(c, WF_ERR_SHAPE, "the positive weight does not broadcast to the shape of the logits");
    }
    if (a->reduction == WF_REDUCE_BATCH_MEAN && x.ndim < 1)
        return wf_call_fail(c, WF_ERR_SHAPE, "the mean over a batch takes at least one dimension");
    c->out[0] = wf_call_shape(WF_REAL, a->reduction == WF_REDUCE_NONE ? &x : &(wf_shape){0});
    return WF_OK;
}

/* The factor of the sum of losses: 1 for a sum, 1 / n for a mean over n elements or items, 0 for a mean over nothing. */
static double scale_of(enum wf_reduction how, const wf_shape *shape)
{
    int64_t n = 1;
    switch (how) {
    case WF_REDUCE_MEAN:
        n = wf_shape_count(shape);
        break;
    case WF_REDUCE_BATCH_MEAN:
        n = shape->dim[0];
        break;
    case WF_REDUCE_SUM:
    case WF_REDUCE_NONE:
        break;
    }
    return n > 0 ? 1 / (double)n : 0;
}

struct work {
    wf_map_kernel *f;
    wf_real delta; /* the constant of f */
    const wf_real *in[OPERANDS];
    wf_real *out;      /* [n]: values of f; NULL: only their sums are wanted */
    double *sum;       /* [blocks]: the sum of each block; NULL: no sums are wanted */
    const wf_real *dy; /* [n]: factors of `out`; NULL: `scale` is the factor of all elements */
    wf_real scale;
};

static void work_body(void *ctx, int64_t begin, int64_t end)
{
    const struct work *w = ctx;
    wf_real piece[PIECE];
    double sum = 0;
    for (int64_t i = begin; i < end; i += PIECE) {
        int64_t n = WF_MIN(end - i, PIECE);
        const wf_real *in[OPERANDS];
        for (int k = 0; k < OPERANDS; k++)
            in[k] = w->in[k] ? w->in[k] + i : NULL;
        wf_real *y = w->out ? w->out + i : piece;
        w->f(&w->delta, n, in, y);
        if (w->sum)
            sum += wf_kernel->sum(n, y);
        else if (w->dy)
            wf_kernel->mul(n, y, 1, w->dy + i, 1, y);
        else if (w->scale != 1)
            wf_kernel->affine(n, w->scale, 0, y, y);
    }
    if (w->sum)
        w->sum[begin / BLOCK] = sum;
}

static wf_real delta_of(const wf_call *c)
{
    return (wf_real)((const struct loss_attr *)c->attr)->delta;
}

/* Sets w->in to the operands, contiguous and repeated to the shape of the first. False without memory. */
static bool operands_of(wf_call *c, struct work *w)
{
    wf_shape shape = wf_array_shape(&c->in[0]);
    for (int i = 0; i < OPERANDS; i++) {
        if (!wf_has(c, i))
            continue;
        wf_array all = wf_array_expand(&c->in[i], &shape), x = wf_call_contiguous(c, &all);
        if (!x.data)
            return false;
        w->in[i] = x.data;
    }
    return true;
}

static wf_status forward(wf_call *c, const struct kind *kind)
{
    struct work w = {.f = kind->value, .scale = 1, .delta = delta_of(c)};
    int64_t n = wf_array_count(&c->in[0]), blocks = (n + BLOCK - 1) / BLOCK;
    const wf_shape shape = wf_array_shape(&c->in[0]);
    const enum wf_reduction how = ((const struct loss_attr *)c->attr)->reduction;
    const bool each = how == WF_REDUCE_NONE;
    if (!operands_of(c, &w))
        return WF_ERR_MEMORY;
    if (each)
        w.out = c->out[0].data;
    else if (!(w.sum = wf_call_temp(c, WF_F64, &(wf_shape){1, {blocks}}).data))
        return WF_ERR_MEMORY;
    wf_parallel_ranges(n, BLOCK, 0.5 * (double)n, work_body, &w);
    if (each)
        return WF_OK;
    double sum = 0;
    for (int64_t i = 0; i < blocks; i++)
        sum += w.sum[i];
    *(wf_real *)c->out[0].data = (wf_real)(n > 0 ? sum * scale_of(how, &shape) : 0);
    return WF_OK;
}

/* l = s sum f(x, t, w) with s from scale_of, so dx = s dl f_x with the derivative f_x of f by x. Without a reduction dx = dl f_x, and each
 * element has its own dl. */
static wf_status backward(wf_call *c, const struct kind *kind)
{
    struct work w = {.scale = 1, .delta = delta_of(c)};
    const wf_shape shape = wf_array_shape(&c->in[0]);
    const enum wf_reduction how = ((const struct loss_attr *)c->attr)->reduction;
    if (!operands_of(c, &w))
        return WF_ERR_MEMORY;
    wf_array dy = wf_call_contiguous(c, &c->dout[0]);
    if (!dy.data)
        return WF_ERR_MEMORY;
    if (how == WF_REDUCE_NONE)
        w.dy = dy.data;
    else
        w.scale = (wf_real)(scale_of(how, &shape) * (double)*(const wf_real *)dy.data);
    for (int i = 0; i < OPERANDS; i++) {
        if (!c->need[i])
            continue;
        wf_array g = wf_call_temp(c, WF_REAL, &shape);
        if (!g.data)
            return WF_ERR_MEMORY;
        w.f = kind->slope[i];
        w.out = g.data;
        wf_parallel_ranges(wf_array_count(&g), BLOCK, 0.6 * (double)wf_array_count(&g), work_body, &w);
        wf_grad_give(c, i, &g);
    }
    return WF_OK;
}

/* dl times the factor of the sum, for `gradient`. */
static wf_tensor *scaled(const wf_gradient_call *c)
{
    const enum wf_reduction how = ((const struct loss_attr *)c->attr)->reduction;
    const wf_shape shape = wf_shape_of(c->x[0]);
    return wf_scale(c->dy[0], scale_of(how, &shape));
}

#define ONE(fill0, fill1) .fill = {fill0, fill1}
#define HOW(...) ATTR(struct loss_attr, __VA_ARGS__)
#define LOSS_CASES(...)                                                                                                                    \
    WF_CASES({"mean", {{3, 5}, {3, 5}}, ONE(__VA_ARGS__), HOW(WF_REDUCE_MEAN)},                                                            \
             {"sum", {{2, 3, 4}, {2, 3, 4}}, ONE(__VA_ARGS__), HOW(WF_REDUCE_SUM)},                                                        \
             {"each", {{3, 7}, {3, 7}}, ONE(__VA_ARGS__), HOW(WF_REDUCE_NONE)},                                                            \
             {"mean over the batch", {{4, 3}, {4, 3}}, ONE(__VA_ARGS__), HOW(WF_REDUCE_BATCH_MEAN)},                                       \
             {"scalar", {{-2}, {-2}}, ONE(__VA_ARGS__), HOW(WF_REDUCE_MEAN)},                                                              \
             {"nothing", {{-1, 3}, {-1, 3}}, ONE(__VA_ARGS__), HOW(WF_REDUCE_MEAN)},                                                       \
             {"each of nothing", {{-1, 3}, {-1, 3}}, ONE(__VA_ARGS__), HOW(WF_REDUCE_NONE)},                                               \
             {"several pieces", {{2600}, {2600}}, ONE(__VA_ARGS__), HOW(WF_REDUCE_SUM)})

/* Defines an op. `of` is a function that returns the kernels for a call. */
#define ELEMENT_LOSS(op, of, ...)                                                                                                          \
    static wf_status op##_forward(wf_call *c)                                                                                              \
    {                                                                                                                                      \
        struct kind k = of(c);                                                                                                             \
        return forward(c, &k);                                                                                                             \
    }                                                                                                                                      \
    static wf_status op##_backward(wf_call *c)                                                                                             \
    {                                                                                                                                      \
        struct kind k = of(c);                                                                                                             \
        return backward(c, &k);                                                                                                            \
    }                                                                                                                                      \
    const wf_op wf_op_##op = {.name = #op,                                                                                                 \
                              .attr_size = sizeof(struct loss_attr),                                                                       \
                              .forward = op##_forward,                                                                                     \
                              .backward = op##_backward,                                                                                   \
                              .gradient = op##_gradient,                                                                                   \
                              __VA_ARGS__};

/* --- mse: f = (x - t)^2, f_x = 2 (x - t), f_t = -f_x ------------------------------------------------------------------- */

static struct kind squared(const wf_call *c)
{
    (void)c;
    const struct wf_internal_kernels *k = wf_kernel->internal;
    return (struct kind){k->mse, {k->mse_slope, k->mse_slope_target}};
}

static void mse_gradient(const wf_gradient_call *c)
{
    c->dx[0] = wf_mul(wf_scale(scaled(c), 2), wf_subtract(c->x[0], c->x[1]));
    c->dx[1] = c->need[1] ? wf_neg(c->dx[0]) : NULL;
}

ELEMENT_LOSS(mse, squared, .shape = loss_shape, .operands = "x target", .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1),
             .cases = LOSS_CASES(WF_FILL_NORMAL, WF_FILL_NORMAL))

wf_tensor *wf_mse(wf_tensor *x, wf_tensor *target, enum wf_reduction reduction)
{
    return wf_apply(&wf_op_mse, &(struct loss_attr){.reduction = reduction}, 2, (wf_tensor *[]){x, target});
}

/* --- l1: f = |x - t|, f_x = sign(x - t) ---------------------------------------------------------------------------------- */

static struct kind absolute(const wf_call *c)
{
    (void)c;
    const struct wf_internal_kernels *k = wf_kernel->internal;
    return (struct kind){k->l1, {k->l1_slope, k->l1_slope_target}};
}

static void l1_gradient(const wf_gradient_call *c)
{
    c->dx[0] = wf_mul(scaled(c), wf_sign(wf_subtract(c->x[0], c->x[1])));
    c->dx[1] = c->need[1] ? wf_neg(c->dx[0]) : NULL;
}

ELEMENT_LOSS(l1, absolute, .shape = loss_shape, .operands = "x target", .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1),
             .cases = LOSS_CASES(WF_FILL_NORMAL, WF_FILL_NORMAL))

wf_tensor *wf_l1(wf_tensor *x, wf_tensor *target, enum wf_reduction reduction)
{
    return wf_apply(&wf_op_l1, &(struct loss_attr){.reduction = reduction}, 2, (wf_tensor *[]){x, target});
}

/* --- huber: with d = x - t, f = d^2 / 2 for |d| <= delta, else delta (|d| - delta / 2); f_x = d limited to -delta .. delta -- */

static struct kind huber(const wf_call *c)
{
    (void)c;
    const struct wf_internal_kernels *k = wf_kernel->internal;
    return (struct kind){k->huber, {k->huber_slope, k->huber_slope_target}};
}

static wf_status huber_shape(wf_call *c)
{
    const double delta = ((const struct loss_attr *)c->attr)->delta;
    const wf_status status = loss_shape(c);
    if (status == WF_OK && !(delta > 0 && delta < (double)INFINITY))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "delta = %g must be above 0, and finite", delta);
    return status;
}

static void huber_gradient(const wf_gradient_call *c)
{
    const double delta = ((const struct loss_attr *)c->attr)->delta;
    c->dx[0] = wf_mul(scaled(c), wf_clamp(wf_subtract(c->x[0], c->x[1]), -delta, delta));
    c->dx[1] = c->need[1] ? wf_neg(c->dx[0]) : NULL;
}

#define DELTA(how, delta) ATTR(struct loss_attr, how, false, delta)
ELEMENT_LOSS(huber, huber, .operands = "x target", .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1), .shape = huber_shape,
             .cases = WF_CASES({"mean", {{3, 5}, {3, 5}}, DELTA(WF_REDUCE_MEAN, 1)},
                               {"sum", {{2, 3, 4}, {2, 3, 4}}, DELTA(WF_REDUCE_SUM, 0.5)},
                               {"each", {{3, 7}, {3, 7}}, DELTA(WF_REDUCE_NONE, 1)},
                               {"mean over the batch", {{4, 3}, {4, 3}}, DELTA(WF_REDUCE_BATCH_MEAN, 2)},
                               {"scalar", {{-2}, {-2}}, DELTA(WF_REDUCE_MEAN, 1)},
                               {"nothing", {{-1, 3}, {-1, 3}}, DELTA(WF_REDUCE_MEAN, 1)},
                               {"several pieces", {{2600}, {2600}}, DELTA(WF_REDUCE_SUM, 1)}))

wf_tensor *wf_huber(wf_tensor *x, wf_tensor *target, double delta, enum wf_reduction reduction)
{
    return wf_apply(&wf_op_huber, &(struct loss_attr){.reduction = reduction, .delta = delta}, 2, (wf_tensor *[]){x, target});
}

/* --- bce_with_logits: f = -w t log s(x) - (1 - t) log(1 - s(x)) with the sigmoid s -------------------------------------- */

/* With softplus(x) = log(1 + e^x) this is f = w t softplus(-x) + (1 - t) softplus(x). The derivatives are f_x = (1 - t) s(x) - w t s(-x),
 * f_t = w softplus(-x) - softplus(x) and f_w = t softplus(-x). */

static struct kind binary(const wf_call *c)
{
    (void)c;
    const struct wf_internal_kernels *k = wf_kernel->internal;
    return (struct kind){k->bce, {k->bce_slope, k->bce_slope_target, k->bce_slope_weight}};
}

/* With a target outside 0 .. 1 the loss has no lower bound. */
static wf_status check_targets(wf_call *c)
{
    wf_array t = wf_call_contiguous(c, &c->in[1]);
    if (!t.data)
        return WF_ERR_MEMORY;
    int64_t i = wf_kernel->internal->find_outside_unit(wf_array_count(&t), t.data);
    char text[160];
    return i < 0 ? WF_OK
                 : wf_call_fail(c, WF_ERR_ARGUMENT, "targets%s = %g is not in 0 .. 1", wf_index_text(&t, i, text, sizeof text),
                                (double)((const wf_real *)t.data)[i]);
}

static wf_status bce_forward(wf_call *c)
{
    struct kind k = binary(c);
    wf_status status = check_targets(c);
    return status == WF_OK ? forward(c, &k) : status;
}

static wf_status bce_backward(wf_call *c)
{
    struct kind k = binary(c);
    return backward(c, &k);
}

static void bce_gradient(const wf_gradient_call *c)
{
    wf_tensor *x = c->x[0], *t = c->x[1], *w = c->inputs > 2 ? c->x[2] : NULL, *g = scaled(c), *below = wf_softplus(wf_neg(x), 1);
    wf_tensor *weighted = w ? wf_mul(w, t) : t;
    if (c->need[0])
        c->dx[0] = wf_mul(g, wf_subtract(wf_mul(wf_constant_minus(1, t), wf_sigmoid(x)), wf_mul(weighted, wf_sigmoid(wf_neg(x)))));
    if (c->need[1])
        c->dx[1] = wf_mul(g, wf_subtract(w ? wf_mul(w, below) : below, wf_softplus(x, 1)));
    if (w && c->need[2])
        c->dx[2] = wf_mul(g, wf_mul(t, below));
}

/* The gradient check also passes one tensor as two operands, so all operands hold valid targets, 0 .. 1. */
#define PLAIN(...) .inputs = 3, .fill = {WF_FILL_UNIT, WF_FILL_UNIT, WF_FILL_ABSENT}, HOW(__VA_ARGS__)
#define WEIGHTED(...) .fill = {WF_FILL_UNIT, WF_FILL_UNIT, WF_FILL_UNIT}, HOW(__VA_ARGS__)
const wf_op wf_op_bce_with_logits = {
    .name = "bce_with_logits",
    .operands = "logits targets",
    .attr_size = sizeof(struct loss_attr),
    .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1) | WF_READS_INPUT(2),
    .shape = loss_shape,
    .forward = bce_forward,
    .backward = bce_backward,
    .gradient = bce_gradient,
    .cases = WF_CASES({"mean", {{3, 5}, {3, 5}}, PLAIN(WF_REDUCE_MEAN)}, {"sum", {{2, 3, 4}, {2, 3, 4}}, PLAIN(WF_REDUCE_SUM)},
                      {"each", {{3, 7}, {3, 7}}, PLAIN(WF_REDUCE_NONE)}, {"scalar", {{-2}, {-2}}, PLAIN(WF_REDUCE_MEAN)},
                      {"nothing", {{-1, 3}, {-1, 3}}, PLAIN(WF_REDUCE_MEAN)}, {"several pieces", {{1100}, {1100}}, PLAIN(WF_REDUCE_NONE)},
                      {"weighted", {{4, 3}, {4, 3}, {3}}, WEIGHTED(WF_REDUCE_MEAN)},
                      {"one weight", {{4, 3}, {4, 3}, {-2}}, WEIGHTED(WF_REDUCE_SUM)},
                      {"weight of each", {{4, 3}, {4, 3}, {4, 3}}, WEIGHTED(WF_REDUCE_NONE)},
                      {"weight of rows, mean over the batch", {{4, 3}, {4, 3}, {4, 1}}, WEIGHTED(WF_REDUCE_BATCH_MEAN)})};

wf_tensor *wf_bce_with_logits_with(wf_tensor *logits, wf_tensor *targets, const struct wf_bce_options *options)
{
    static const struct wf_bce_options none;
    const struct wf_bce_options *o = options ? options : &none;
    return wf_apply(&wf_op_bce_with_logits, &(struct loss_attr){.reduction = o->reduction}, 3,
                    (wf_tensor *[]){logits, targets, o->positive_weight});
}

/* --- kl_div ----------------------------------------------------------------------------------------------------------- */

/* For a target p: f = p (log p - x), f_x = -p, f_p = log p - x + 1. For a target t = log p: f = e^t (t - x), f_x = -e^t,
 * f_t = e^t (t - x + 1). */

static struct kind divergence(const wf_call *c)
{
    const struct wf_internal_kernels *k = wf_kernel->internal;
    return ((const struct loss_attr *)c->attr)->log_target ? (struct kind){k->kl_log, {k->kl_log_slope, k->kl_log_slope_target}}
                                                           : (struct kind){k->kl, {k->kl_slope, k->kl_slope_target}};
}

static void kl_div_gradient(const wf_gradient_call *c)
{
    const bool log_target = ((const struct loss_attr *)c->attr)->log_target;
    wf_tensor *x = c->x[0], *t = c->x[1], *g = scaled(c), *p = log_target ? wf_exp(t) : t;
    if (c->need[0])
        c->dx[0] = wf_neg(wf_mul(g, p));
    if (c->need[1]) { /* where p is 0, f is 0 whatever x is */
        wf_tensor *none = wf_eq_constant(p, 0), *safe = wf_masked_fill(t, none, log_target ? 0 : 1);
        wf_tensor *rest = wf_masked_fill(wf_add_constant(wf_subtract(log_target ? safe : wf_log(safe), x), 1), none, 0);
        c->dx[1] = wf_mul(g, log_target ? wf_mul(p, rest) : rest);
    }
}

#define PROBABILITIES(...) .fill = {WF_FILL_UNIT, WF_FILL_UNIT}, HOW(__VA_ARGS__)
#define LOGARITHMS(how) .fill = {WF_FILL_NORMAL, WF_FILL_NORMAL}, HOW(how, true)
ELEMENT_LOSS(kl_div, divergence, .shape = loss_shape, .operands = "log_q target", .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1),
             .cases = WF_CASES({"mean", {{3, 5}, {3, 5}}, PROBABILITIES(WF_REDUCE_MEAN)},
                               {"sum", {{2, 3, 4}, {2, 3, 4}}, PROBABILITIES(WF_REDUCE_SUM)},
                               {"each", {{3, 7}, {3, 7}}, PROBABILITIES(WF_REDUCE_NONE)},
                               {"mean over the batch", {{4, 3}, {4, 3}}, PROBABILITIES(WF_REDUCE_BATCH_MEAN)},
                               {"log, mean", {{3, 5}, {3, 5}}, LOGARITHMS(WF_REDUCE_MEAN)},
                               {"log, each", {{3, 7}, {3, 7}}, LOGARITHMS(WF_REDUCE_NONE)},
                               {"log, mean over the batch", {{2600}, {2600}}, LOGARITHMS(WF_REDUCE_BATCH_MEAN)},
                               {"nothing", {{-1, 3}, {-1, 3}}, PROBABILITIES(WF_REDUCE_BATCH_MEAN)}))

wf_tensor *wf_kl_div_with(wf_tensor *log_q, wf_tensor *target, const struct wf_kl_options *options)
{
    static const struct wf_kl_options none;
    const struct wf_kl_options *o = options ? options : &none;
    return wf_apply(&wf_op_kl_div, &(struct loss_attr){o->reduction, o->log_target}, 2, (wf_tensor *[]){log_q, target});
}

/* --- kl_normal: f = (m^2 + e^s - 1 - s) / 2, f_m = m, f_s = (e^s - 1) / 2 ---------------------------------------------- */

static struct kind from_standard(const wf_call *c)
{
    (void)c;
    const struct wf_internal_kernels *k = wf_kernel->internal;
    return (struct kind){k->kl_normal, {k->kl_normal_slope, k->kl_normal_slope_variance}};
}

static void kl_normal_gradient(const wf_gradient_call *c)
{
    if (c->need[0])
        c->dx[0] = wf_mul(scaled(c), c->x[0]);
    if (c->need[1])
        c->dx[1] = wf_mul(scaled(c), wf_affine(wf_exp(c->x[1]), 0.5, -0.5));
}

ELEMENT_LOSS(kl_normal, from_standard, .shape = loss_shape, .operands = "mean log_variance", .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1),
             .cases = LOSS_CASES(WF_FILL_NORMAL, WF_FILL_NORMAL))

wf_tensor *wf_kl_normal(wf_tensor *mean, wf_tensor *log_variance, enum wf_reduction reduction)
{
    return wf_apply(&wf_op_kl_normal, &(struct loss_attr){.reduction = reduction}, 2, (wf_tensor *[]){mean, log_variance});
}
