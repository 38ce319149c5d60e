/* SPDX-License-Identifier: MIT */
/* Cross-entropy, and what the fused linear + cross-entropy shares with it. */
#include "losses.h"

#include <weft/internal/kernels.h>
#include <weft/internal/ops_all.h>
#include <weft/internal/parallel.h>

#include "rows.h"

struct loss_attr wf_loss_attr(const struct wf_cross_entropy_options *options)
{
    if (!options)
        return (struct loss_attr){0};
    return (struct loss_attr){options->label_smoothing, options->normalizer, options->has_ignore, options->ignore};
}

wf_status wf_loss_shape(wf_call *c, const wf_array *x, int targets)
{
    const struct loss_attr *a = c->attr;
    wf_status status = wf_want(c, targets, WF_I32);
    if (status != WF_OK)
        return status;
    if (!(a->smoothing >= 0 && a->smoothing <= 1))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "label_smoothing is %g, it must be in 0 .. 1", a->smoothing);
    if (!(a->normalizer >= 0 && a->normalizer < 1e300))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "normalizer is %g, it must be a number of targets, or 0 for those here", a->normalizer);
    const wf_array *t = &c->in[targets];
    bool fits = t->ndim == x->ndim - 1;
    for (int d = 0; fits && d < t->ndim; d++)
        fits = t->dim[d] == x->dim[d];
    if (!fits)
        return wf_call_fail(c, WF_ERR_SHAPE, "the targets must have the shape of the first operand without its last dimension");
    c->out[0] = c->out[1] = wf_call_shape(WF_REAL, &(wf_shape){0});
    return WF_OK;
}

wf_status wf_loss_scale(wf_call *c, const wf_array *targets, int64_t v, double *scale)
{
    const struct loss_attr *a = c->attr;
    int64_t counted;
    wf_status status = wf_check_ids(c, targets, "targets", v, a->has_ignore ? &a->ignore : NULL, &counted);
    *scale = counted == 0 ? 0 : a->normalizer > 0 ? 1 / a->normalizer : 1 / (double)counted;
    return status;
}

struct loss {
    int64_t v;
    const wf_real *logits;
    const int32_t *target;
    int32_t ignore;
    wf_real smoothing, scale;
    wf_real *dlogits;
    struct loss_sums *sums; /* of each block */
    int64_t block_rows;
};

enum { MOST_ROWS = 64 };

static void loss_body(void *ctx, int64_t begin, int64_t end)
{
    const struct loss *s = ctx;
    double plain[MOST_ROWS], smoothed[MOST_ROWS];
    struct loss_sums sum = {0, 0};
    bool smooth = s->smoothing != 0;
    wf_kernel->cross_entropy(end - begin, s->v, s->logits + begin * s->v, s->target + begin, s->ignore, s->smoothing, s->scale, plain,
                             smooth && s->sums ? smoothed : NULL, s->dlogits ? s->dlogits + begin * s->v : NULL);
    if (!s->sums)
        return;
    for (int64_t i = 0; i < end - begin; i++) {
        sum.plain += plain[i];
        sum.smoothed += smooth ? smoothed[i] : plain[i];
    }
    s->sums[begin / s->block_rows] = sum;
}

bool wf_loss_rows(wf_call *c, int64_t rows, int64_t v, const wf_real *logits, const int32_t *target, double scale, wf_real *dlogits,
                  struct loss_sums *sums)
{
    const struct loss_attr *a = c->attr;
    struct loss s = {.v = v,
                     .logits = logits,
                     .target = target,
                     .ignore = a->has_ignore ? a->ignore : -1,
                     .smoothing = (wf_real)a->smoothing,
                     .scale = (wf_real)scale,
                     .dlogits = dlogits,
                     .block_rows = wf_block_rows(v)};
    int64_t blocks = (rows + s.block_rows - 1) / s.block_rows;
    if (sums) {
        s.sums = wf_call_temp(c, WF_F64, &(wf_shape){2, {blocks, 2}}).data;
        if (!s.sums)
            return false;
    }
    wf_parallel_ranges(rows, s.block_rows, (double)rows * (double)v * 0.3, loss_body, &s);
    for (int64_t i = 0; sums && i < blocks; i++) {
        sums->plain += s.sums[i].plain;
        sums->smoothed += s.sums[i].smoothed;
    }
    return true;
}

void wf_loss_set(wf_call *c, const struct loss_sums *sums, double scale)
{
    *(wf_real *)c->out[0].data = (wf_real)(scale == 0 ? 0 : sums->smoothed * scale);
    if (c->outputs > 1)
        *(wf_real *)c->out[1].data = (wf_real)(scale == 0 ? 0 : sums->plain * scale);
}

wf_tensor *wf_loss_apply(const wf_op *op, int inputs, wf_tensor *const in[], const struct wf_cross_entropy_options *options)
{
    struct loss_attr attr = wf_loss_attr(options);
    wf_tensor *out[2];
    bool plain = options && options->plain;
    wf_apply_multi(op, &attr, inputs, in, plain ? 2 : 1, out);
    if (plain)
        *options->plain = wf_detach(out[1]);
    return out[0];
}

/* --- cross_entropy ------------------------------------------------------------------------------------------------- */

static wf_status cross_entropy_shape(wf_call *c)
{
    wf_status status = wf_want(c, 0, WF_REAL);
    if (status != WF_OK)
        return status;
    if (c->in[0].ndim < 1)
        return wf_call_fail(c, WF_ERR_SHAPE, "logits [..., V] are wanted");
    if (c->grad)
        c->saved[0] = wf_call_shape(WF_F64, &(wf_shape){0}); /* the scale */
    return wf_loss_shape(c, &c->in[0], 1);
}

static wf_status cross_entropy_forward(wf_call *c)
{
    wf_array logits = wf_dense_rows_of(c, &c->in[0]), targets = wf_call_dense(c, &c->in[1]);
    if (!logits.data || !targets.data)
        return WF_ERR_MEMORY;
    double scale;
    wf_status status = wf_loss_scale(c, &targets, logits.dim[1], &scale);
    if (status != WF_OK)
        return status;
    struct loss_sums sums = {0, 0};
    if (!wf_loss_rows(c, logits.dim[0], logits.dim[1], logits.data, targets.data, scale, NULL, &sums))
        return WF_ERR_MEMORY;
    wf_loss_set(c, &sums, scale);
    if (c->grad)
        *(double *)c->saved[0].data = scale;
    return WF_OK;
}

/* Of a row that counts: l = (1 - e) (lse - z_t) + e (lse - mean z), lse = log sum_j e^z_j, and dlse/dz = softmax(z), so
 * dz = g / N (softmax(z) - (1 - e) onehot(t) - e / V). */
static wf_status cross_entropy_backward(wf_call *c)
{
    if (!c->dout[0].data)
        return WF_OK;
    wf_array logits = wf_dense_rows_of(c, &c->in[0]), targets = wf_call_dense(c, &c->in[1]), dx = wf_grad_new(c, 0);
    if (!logits.data || !targets.data || !dx.data)
        return WF_ERR_MEMORY;
    double scale = *(const double *)c->saved[0].data * (double)*(const wf_real *)c->dout[0].data;
    wf_loss_rows(c, logits.dim[0], logits.dim[1], logits.data, targets.data, scale, dx.data, NULL);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

#define TARGETS(n) .fill = {WF_FILL_NORMAL, WF_FILL_IDS}, .limit = {0, n}
#define HOW(...)                                                                                                                           \
    .attr = &(const struct loss_attr)                                                                                                      \
    {                                                                                                                                      \
        __VA_ARGS__                                                                                                                        \
    }
const wf_op wf_op_cross_entropy = {
    .name = "cross_entropy",
    .attr_size = sizeof(struct loss_attr),
    .outputs = 2,
    .shape = cross_entropy_shape,
    .forward = cross_entropy_forward,
    .backward = cross_entropy_backward,
    .cases = WF_CASES({"rows", {{3, 5}, {3}}, TARGETS(5), HOW(0)}, {"three dims", {{2, 3, 7}, {2, 3}}, TARGETS(7), HOW(0)},
                      {"smoothed", {{4, 6}, {4}}, TARGETS(6), HOW(.smoothing = 0.1)},
                      {"ignored", {{9, 4}, {9}}, TARGETS(4), HOW(.has_ignore = true, .ignore = 1)},
                      {"ignored and smoothed", {{9, 3}, {9}}, TARGETS(3), HOW(.smoothing = 0.3, .has_ignore = true, .ignore = 2)},
                      {"normalised", {{3, 5}, {3}}, TARGETS(5), HOW(.normalizer = 17)}, {"one row", {{5}, {-2}}, TARGETS(5), HOW(0)},
                      {"one class", {{3, 1}, {3}}, TARGETS(1), HOW(0)},
                      {"all ignored", {{3, 1}, {3}}, TARGETS(1), HOW(.has_ignore = true, .ignore = 0)},
                      {"no rows", {{-1, 5}, {-1}}, TARGETS(5), HOW(0)}, {"odd", {{70, 17}, {70}}, TARGETS(17), HOW(.smoothing = 0.1)})};

wf_tensor *wf_cross_entropy_with(wf_tensor *logits, wf_tensor *targets, const struct wf_cross_entropy_options *options)
{
    return wf_loss_apply(&wf_op_cross_entropy, 2, (wf_tensor *[]){logits, targets}, options);
}
