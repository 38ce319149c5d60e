/* SPDX-License-Identifier: MIT */
/* The op cross_entropy of rows of logits, and the functions that it shares with the op linear_cross_entropy. */
#include <string.h>

#include "losses.h"

wf_status loss_shape(wf_call *c, const wf_array *x, int targets, int64_t v)
{
    const struct loss_attr *a = c->attr;
    if (wf_want(c, targets, WF_I32) != WF_OK)
        return WF_ERR_ARGUMENT;
    if (!(a->smoothing >= 0 && a->smoothing <= 1))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "label_smoothing = %g is not in 0 .. 1", a->smoothing);
    if (!(a->normalizer >= 0 && a->normalizer < 1e300))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "normalizer = %g must be a number of targets, or 0 for the number in this call",
                            a->normalizer);
    if ((unsigned)a->reduction > WF_REDUCE_NONE)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "reduction %d: cross-entropy has a mean over the targets, a sum, or no reduction",
                            (int)a->reduction);
    if (a->normalizer > 0 && a->reduction != WF_REDUCE_MEAN)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "normalizer = %g is of the mean, but the reduction is another", a->normalizer);
    if (!(a->softcap == 0 || (a->softcap >= 1e-30 && a->softcap <= 1e30)))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "softcap = %g is not in 1e-30 .. 1e30; 0 stands for none", a->softcap);
    if (a->weight && a->classes != v)
        return wf_call_fail(c, WF_ERR_SHAPE, "there are %lld class weights for %lld classes", (long long)a->classes, (long long)v);
    wf_shape leading = wf_array_shape(x), shape = wf_array_shape(&c->in[targets]);
    leading.ndim--;
    if (!wf_shape_equal(&leading, &shape))
        return wf_call_fail(c, WF_ERR_SHAPE, "the targets must have the shape of the first operand without its last dimension");
    c->out[0] = c->out[1] = wf_call_shape(WF_REAL, a->reduction == WF_REDUCE_NONE ? &shape : &(wf_shape){0});
    return WF_OK;
}

static bool is_ignored(const struct loss_attr *a, int32_t target)
{
    return a->has_ignore && target == a->ignore;
}

/* The factor of the summed losses of n valid targets, of which `counted` are not ignored. */
static double scale_of(const struct loss_attr *a, int64_t n, const int32_t *target, int64_t counted)
{
    double divisor = (double)counted;
    if (a->weight) {
        divisor = 0;
        for (int64_t i = 0; i < n; i++)
            divisor += is_ignored(a, target[i]) ? 0 : (double)a->weight[target[i]];
    }
    if (a->reduction != WF_REDUCE_MEAN)
        divisor = 1;
    else if (a->normalizer > 0)
        divisor = a->normalizer;
    return counted == 0 || divisor == 0 ? 0 : 1 / divisor;
}

wf_status loss_scale(wf_call *c, const wf_array *targets, int64_t v, double *scale)
{
    const struct loss_attr *a = c->attr;
    int64_t counted;
    wf_status status = wf_check_ids(c, targets, "targets", v, a->has_ignore ? &a->ignore : NULL, &counted);
    *scale = status == WF_OK ? scale_of(a, wf_array_count(targets), targets->data, counted) : 0;
    return status;
}

struct loss {
    const struct loss_attr *attr;
    int64_t v;
    const wf_real *logits;
    const int32_t *target;
    int32_t ignore;
    wf_real smoothing;
    double scale;
    wf_real *dlogits;
    struct loss_sums *sums; /* [blocks]: the sums of each block; may be NULL */
    struct loss_each each;
    int64_t block_rows;
    _Atomic bool *failed; /* becomes true if there is no memory */
};

enum { MOST_ROWS = 64 };

/* Computes the losses and the gradient of one row. With the target t and the class weights w, and with e and lse as in
 * cross_entropy_backward, the smoothed loss is l = (1 - e) w_t (lse - z_t) + e / V sum_j w_j (lse - z_j), so
 * dz = g (a softmax(z) - (1 - e) w_t onehot(t) - e w / V) with a = (1 - e) w_t + e sum(w) / V, where g is what is g / N there. */
static void weighted_row(const struct loss *s, const wf_real *z, int32_t target, double g, double *plain, double *smoothed, wf_real *dz)
{
    const wf_real *w = s->attr->weight;
    const double e = s->attr->smoothing, picked = (double)z[target], own = (double)w[target],
                 all = own * (1 - e) + e * s->attr->weights / (double)s->v, spread = e != 0 && smoothed ? wf_kernel->dot(s->v, w, z) : 0;
    wf_kernel->cross_entropy(1, s->v, z, &target, s->ignore, 0, (wf_real)(g * all), plain, NULL, dz);
    if (smoothed)
        *smoothed = (1 - e) * own * *plain + (e != 0 ? e / (double)s->v * (s->attr->weights * (*plain + picked) - spread) : 0);
    *plain *= own;
    if (!dz || e == 0)
        return;
    dz[target] += (wf_real)(g * (all - (1 - e) * own));
    wf_kernel->axpy(s->v, (wf_real)(-g * e / (double)s->v), w, dz);
}

/* Computes one row with a factor g of the gradient. `capped` is memory for a row if there is a softcap, and otherwise NULL. With it, y and
 * z for a logit after and before it, dz = dy (1 - (y / softcap)^2). */
static void loss_row(const struct loss *s, int64_t i, double g, wf_real *capped, double *plain, double *smoothed)
{
    const wf_real *z = s->logits + i * s->v, bound = (wf_real)s->attr->softcap;
    wf_real *dz = s->dlogits ? s->dlogits + i * s->v : NULL;
    if (capped) {
        wf_kernel->internal->softcap(&bound, s->v, (const wf_real *const[]){z}, capped);
        z = capped;
    }
    if (s->attr->weight && !is_ignored(s->attr, s->target[i]))
        weighted_row(s, z, s->target[i], g, plain, smoothed, dz);
    else
        wf_kernel->cross_entropy(1, s->v, z, s->target + i, s->ignore, s->smoothing, (wf_real)g, plain, smoothed, dz);
    if (capped && dz)
        wf_kernel->internal->softcap_grad(&bound, s->v, (const wf_real *const[]){capped, dz}, dz);
}

static void loss_body(void *ctx, int64_t begin, int64_t end)
{
    const struct loss *s = ctx;
    double plain[MOST_ROWS], smoothed[MOST_ROWS];
    const bool smooth = s->smoothing != 0, values = s->sums || s->each.smoothed, cap = s->attr->softcap > 0;
    wf_real *capped = cap ? wf_scratch(WF_SCRATCH_OP, (size_t)s->v * sizeof *capped) : NULL;
    if (cap && !capped) {
        *s->failed = true;
        return;
    }
    if (!s->attr->weight && !s->each.upstream && !cap)
        wf_kernel->cross_entropy(end - begin, s->v, s->logits + begin * s->v, s->target + begin, s->ignore, s->smoothing, (wf_real)s->scale,
                                 plain, smooth && values ? smoothed : NULL, s->dlogits ? s->dlogits + begin * s->v : NULL);
    else
        for (int64_t i = begin; i < end; i++) {
            const double g = s->scale * (s->each.upstream ? (double)s->each.upstream[i] : 1);
            loss_row(s, i, g, capped, &plain[i - begin], values ? &smoothed[i - begin] : NULL);
        }
    const double *loss = smooth || s->attr->weight ? smoothed : plain;
    struct loss_sums sum = {0, 0};
    for (int64_t i = 0; values && i < end - begin; i++) {
        sum.plain += plain[i];
        sum.smoothed += loss[i];
        if (s->each.smoothed)
            s->each.smoothed[begin + i] = (wf_real)loss[i];
        if (s->each.plain)
            s->each.plain[begin + i] = (wf_real)plain[i];
    }
    if (s->sums)
        s->sums[begin / s->block_rows] = sum;
}

bool loss_rows(wf_call *c, int64_t rows, int64_t v, const wf_real *logits, const int32_t *target, double scale, wf_real *dlogits,
               struct loss_sums *sums, const struct loss_each *each)
{
    const struct loss_attr *a = c->attr;
    _Atomic bool failed = false;
    struct loss s = {.attr = a,
                     .v = v,
                     .logits = logits,
                     .target = target,
                     .ignore = a->has_ignore ? a->ignore : -1,
                     .smoothing = (wf_real)a->smoothing,
                     .scale = scale,
                     .dlogits = dlogits,
                     .each = each ? *each : (struct loss_each){0},
                     .block_rows = wf_block_rows(v),
                     .failed = &failed};
    int64_t blocks = (rows + s.block_rows - 1) / s.block_rows;
    if (sums) {
        s.sums = wf_call_temp(c, WF_F64, &(wf_shape){2, {blocks, 2}}).data;
        if (!s.sums)
            return false;
    }
    wf_parallel_ranges(rows, s.block_rows, (double)rows * (double)v * (a->softcap > 0 ? 0.8 : 0.3), loss_body, &s);
    for (int64_t i = 0; sums && i < blocks; i++) {
        sums->plain += s.sums[i].plain;
        sums->smoothed += s.sums[i].smoothed;
    }
    if (failed)
        wf_call_fail(c, WF_ERR_MEMORY, "no memory for the logits with a softcap");
    return !failed;
}

void loss_set(wf_call *c, const struct loss_sums *sums, double scale)
{
    *(wf_real *)c->out[0].data = (wf_real)(scale == 0 ? 0 : sums->smoothed * scale);
    if (c->outputs > 1)
        *(wf_real *)c->out[1].data = (wf_real)(scale == 0 ? 0 : sums->plain * scale);
}

struct loss_each loss_each_of(const wf_call *c, int64_t first)
{
    return (struct loss_each){.smoothed = (wf_real *)c->out[0].data + first,
                              .plain = c->outputs > 1 ? (wf_real *)c->out[1].data + first : NULL};
}

bool loss_is_reduced(const wf_call *c)
{
    return ((const struct loss_attr *)c->attr)->reduction != WF_REDUCE_NONE;
}

/* Copies the class weights to the tape's memory, for the attributes. On failure the tape has the error. */
static void copy_weights(wf_tape *tape, const char *op, const wf_tensor *weight, struct loss_attr *attr)
{
    wf_array view;
    if (!wf_parameter_info(weight) && wf_tape_of(weight) != tape)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: the class weights '%s' are of another tape", op, wf_name_of(weight));
    else if (wf_view(weight, &view) != WF_OK)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: the class weights '%s' cannot be read", op,
                     wf_name_of(weight)); /* has no effect if the tape already has an error */
    else if (view.ndim != 1 || view.dtype != WF_REAL)
        wf_tape_fail(tape, WF_ERR_SHAPE, "%s: the class weights '%s' must be a vector of reals, one for each class", op,
                     wf_name_of(weight));
    if (wf_tape_error(tape)->code != WF_OK)
        return;
    wf_shape shape = wf_array_shape(&view);
    wf_array copy = wf_array_contiguous(wf_tape_memory(tape, (size_t)view.dim[0] * sizeof(wf_real)), WF_REAL, &shape);
    if (!copy.data)
        return;
    wf_array_copy(&copy, &view);
    for (int64_t i = 0; i < view.dim[0]; i++) {
        const double w = (double)((const wf_real *)copy.data)[i];
        if (!(w >= 0 && w <= 1.7976931348623157e308)) {
            wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: the class weights '%s' have %g at [%lld]: a weight is finite and not negative", op,
                         wf_name_of(weight), w, (long long)i);
            return;
        }
    }
    attr->weight = copy.data;
    attr->classes = view.dim[0];
    attr->weights = wf_kernel->sum(view.dim[0], copy.data);
}

wf_tensor *loss_apply(const wf_op *op, const wf_op *each, int inputs, wf_tensor *const in[], const struct wf_cross_entropy_options *o)
{
    static const struct wf_cross_entropy_options none;
    o = o ? o : &none;
    wf_tensor *out[2] = {NULL, NULL};
    struct loss_attr attr = {.smoothing = o->label_smoothing,
                             .normalizer = o->normalizer,
                             .has_ignore = o->has_ignore,
                             .ignore = o->ignore,
                             .reduction = o->reduction,
                             .softcap = o->softcap};
    wf_tape *tape = wf_tape_of_operands(inputs, in);
    if (tape && o->class_weights && wf_tape_error(tape)->code == WF_OK)
        copy_weights(tape, op->name, o->class_weights, &attr); /* on an error the op below returns poison */
    wf_apply_multi(o->reduction == WF_REDUCE_NONE ? each : op, &attr, inputs, in, o->plain ? 2 : 1, out);
    if (o->plain)
        *o->plain = wf_detach(out[1]);
    return out[0];
}

/* --- cross_entropy ------------------------------------------------------------------------------------------------- */

static wf_status cross_entropy_shape(wf_call *c)
{
    if (wf_want(c, 0, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    if (c->in[0].ndim < 1)
        return wf_call_fail(c, WF_ERR_SHAPE, "logits must be [...,V], not a scalar");
    c->saved[0] = wf_call_shape(WF_F64, &(wf_shape){0}); /* the factor of the summed losses */
    return loss_shape(c, &c->in[0], 1, c->in[0].dim[c->in[0].ndim - 1]);
}

static wf_status cross_entropy_forward(wf_call *c)
{
    wf_array logits = wf_contiguous_rows_of(c, &c->in[0]), targets = wf_call_contiguous(c, &c->in[1]);
    if (!logits.data || !targets.data)
        return WF_ERR_MEMORY;
    double scale;
    wf_status status = loss_scale(c, &targets, logits.dim[1], &scale);
    if (status != WF_OK)
        return status;
    struct loss_sums sums = {0, 0};
    struct loss_each each = loss_each_of(c, 0);
    bool reduced = loss_is_reduced(c);
    if (!loss_rows(c, logits.dim[0], logits.dim[1], logits.data, targets.data, scale, NULL, reduced ? &sums : NULL, reduced ? NULL : &each))
        return WF_ERR_MEMORY;
    if (reduced)
        loss_set(c, &sums, scale);
    if (c->grad)
        *(double *)c->saved[0].data = scale;
    return WF_OK;
}

/* Let e be the label smoothing, and lse = log sum_j exp(z_j). A row whose target t counts has the loss
 * l = (1 - e) (lse - z_t) + e (lse - mean z). The result is the sum of l over the rows, divided by N: the divisor of the mean (loss_scale),
 * or 1 for a sum. Since dlse/dz = softmax(z), and with g the gradient of the result,
 * dz = g / N (softmax(z) - (1 - e) onehot(t) - e / V). Without a reduction g is the gradient of the row's own loss, and N = 1. */
static wf_status cross_entropy_backward(wf_call *c)
{
    if (!c->dout[0].data)
        return WF_OK;
    wf_array logits = wf_contiguous_rows_of(c, &c->in[0]), targets = wf_call_contiguous(c, &c->in[1]), dx = wf_grad_new(c, 0);
    if (!logits.data || !targets.data || !dx.data)
        return WF_ERR_MEMORY;
    double scale = *(const double *)c->saved[0].data;
    struct loss_each each = {0};
    if (loss_is_reduced(c)) {
        scale *= (double)*(const wf_real *)c->dout[0].data;
    } else {
        wf_array g = wf_call_contiguous(c, &c->dout[0]);
        each.upstream = g.data;
        if (!g.data)
            return WF_ERR_MEMORY;
    }
    if (!loss_rows(c, logits.dim[0], logits.dim[1], logits.data, targets.data, scale, dx.data, NULL, &each))
        return WF_ERR_MEMORY;
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

/* The constants of dz = g (A softmax(z) - Q), of cross_entropy_backward and weighted_row: A [rows] and Q [rows, v] contain the divisor of
 * the mean. False without memory. */
static bool constants(wf_tape *tape, const struct loss_attr *a, const wf_array *targets, int64_t v, wf_tensor **all, wf_tensor **share)
{
    const int32_t *target = targets->data;
    const int64_t n = wf_array_count(targets);
    int64_t counted = 0;
    for (int64_t i = 0; i < n; i++)
        counted += !is_ignored(a, target[i]);
    const double scale = scale_of(a, n, target, counted), e = a->smoothing;
    wf_shape rows = wf_array_shape(targets), logits = rows;
    rows.dim[rows.ndim++] = 1;
    logits.dim[logits.ndim++] = v;
    wf_array one = wf_array_contiguous(wf_tape_memory(tape, (size_t)n * sizeof(wf_real)), WF_REAL, &rows);
    wf_array each = wf_array_contiguous(wf_tape_memory(tape, (size_t)(n * v) * sizeof(wf_real)), WF_REAL, &logits);
    if (!one.data || !each.data)
        return false;
    memset(one.data, 0, (size_t)n * sizeof(wf_real));
    memset(each.data, 0, (size_t)(n * v) * sizeof(wf_real));
    for (int64_t i = 0; i < n; i++) {
        if (is_ignored(a, target[i]))
            continue;
        wf_real *q = (wf_real *)each.data + i * v;
        const double own = (1 - e) * (a->weight ? (double)a->weight[target[i]] : 1);
        ((wf_real *)one.data)[i] = (wf_real)(scale * (own + e * (a->weight ? a->weights / (double)v : 1)));
        for (int64_t j = 0; j < v; j++)
            q[j] = (wf_real)(scale * ((j == target[i] ? own : 0) + e * (a->weight ? (double)a->weight[j] : 1) / (double)v));
    }
    *all = wf_borrow(tape, &one);
    *share = wf_borrow(tape, &each);
    return true;
}

wf_tensor *loss_logits_gradient(const wf_gradient_call *c, wf_tensor *z, wf_tensor *targets)
{
    const struct loss_attr *a = c->attr;
    wf_tensor *ids = wf_contiguous(targets), *all, *share, *g = c->dy[0];
    if (a->has_ignore) /* 0 times a NaN is a NaN */
        z = wf_masked_fill(z, wf_unsqueeze(wf_eq_constant(ids, a->ignore), -1), 0);
    wf_tensor *capped = a->softcap > 0 ? wf_softcap(z, a->softcap) : z;
    wf_array view;
    if (wf_is_poison(ids) || wf_is_poison(z) || wf_view(ids, &view) != WF_OK || !constants(c->tape, a, &view, wf_dim(z, -1), &all, &share))
        return NULL;
    if (a->reduction == WF_REDUCE_NONE)
        g = wf_unsqueeze(g, -1);
    wf_tensor *dz = wf_mul(g, wf_subtract(wf_mul(all, wf_softmax(capped)), share));
    return a->softcap > 0 ? wf_mul(dz, wf_constant_minus(1, wf_square(wf_div_constant(capped, a->softcap)))) : dz;
}

static void cross_entropy_gradient(const wf_gradient_call *c)
{
    if (c->dy[0])
        c->dx[0] = loss_logits_gradient(c, c->x[0], c->x[1]);
}

#define TARGETS(n) .fill = {WF_FILL_NORMAL, WF_FILL_IDS}, .limit = {0, n}
const wf_op wf_op_cross_entropy = {
    .name = "cross_entropy",
    .operands = "logits targets",
    .attr_size = sizeof(struct loss_attr),
    .outputs = 2,
    .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1),
    .shape = cross_entropy_shape,
    .forward = cross_entropy_forward,
    .backward = cross_entropy_backward,
    .gradient = cross_entropy_gradient,
    .cases =
        WF_CASES({"rows", {{3, 5}, {3}}, TARGETS(5), LOSS_HOW(0)}, {"three dims", {{2, 3, 7}, {2, 3}}, TARGETS(7), LOSS_HOW(0)},
                 {"smoothed", {{4, 6}, {4}}, TARGETS(6), LOSS_HOW(.smoothing = 0.1)},
                 {"ignored", {{9, 4}, {9}}, TARGETS(4), LOSS_HOW(.has_ignore = true, .ignore = 1)},
                 {"ignored and smoothed", {{9, 3}, {9}}, TARGETS(3), LOSS_HOW(.smoothing = 0.3, .has_ignore = true, .ignore = 2)},
                 {"normalised", {{3, 5}, {3}}, TARGETS(5), LOSS_HOW(.normalizer = 17)}, {"one row", {{5}, {-2}}, TARGETS(5), LOSS_HOW(0)},
                 {"one class", {{3, 1}, {3}}, TARGETS(1), LOSS_HOW(0)},
                 {"all ignored", {{3, 1}, {3}}, TARGETS(1), LOSS_HOW(.has_ignore = true, .ignore = 0)},
                 {"no rows", {{-1, 5}, {-1}}, TARGETS(5), LOSS_HOW(0)}, {"odd", {{70, 17}, {70}}, TARGETS(17), LOSS_HOW(.smoothing = 0.1)},
                 {"sum", {{3, 5}, {3}}, TARGETS(5), LOSS_HOW(.reduction = WF_REDUCE_SUM)},
                 {"weighted", {{6, 5}, {6}}, TARGETS(5), LOSS_HOW(LOSS_WEIGHTS)},
                 {"weighted, smoothed and ignored",
                  {{9, 5}, {9}},
                  TARGETS(5),
                  LOSS_HOW(LOSS_WEIGHTS, .smoothing = 0.2, .has_ignore = true, .ignore = 3)},
                 {"softcap", {{3, 5}, {3}}, TARGETS(5), LOSS_HOW(.softcap = 0.7)},
                 {"softcap, weighted, smoothed and ignored",
                  {{9, 5}, {9}},
                  TARGETS(5),
                  LOSS_HOW(LOSS_WEIGHTS, .smoothing = 0.2, .has_ignore = true, .ignore = 3, .softcap = 2)},
                 {"softcap, each row", {{70, 17}, {70}}, TARGETS(17), LOSS_HOW(.softcap = 1, .reduction = WF_REDUCE_NONE)},
                 {"each row", {{3, 5}, {3}}, TARGETS(5), LOSS_HOW(.reduction = WF_REDUCE_NONE)},
                 {"each row, three dims",
                  {{2, 4, 5}, {2, 4}},
                  TARGETS(5),
                  LOSS_HOW(LOSS_WEIGHTS, .smoothing = 0.2, .has_ignore = true, .ignore = 1, .reduction = WF_REDUCE_NONE)},
                 {"each of no rows", {{-1, 5}, {-1}}, TARGETS(5), LOSS_HOW(.reduction = WF_REDUCE_NONE)},
                 {"each row, odd", {{70, 17}, {70}}, TARGETS(17), LOSS_HOW(.smoothing = 0.1, .reduction = WF_REDUCE_NONE)})};

wf_tensor *wf_cross_entropy_with(wf_tensor *logits, wf_tensor *targets, const struct wf_cross_entropy_options *options)
{
    return loss_apply(&wf_op_cross_entropy, &wf_op_cross_entropy, 2, (wf_tensor *[]){logits, targets}, options);
}
