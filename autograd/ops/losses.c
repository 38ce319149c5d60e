/* SPDX-License-Identifier: MIT */
/* Cross-entropy, alone and fused with the linear layer that makes its logits. */
#include <string.h>

#include "common.h"

struct loss_attr {
    double smoothing, normalizer;
    bool has_ignore;
    int32_t ignore;
};

/* In shape: checks options, and targets (operand i) against the leading dims of x; sets both outputs. */
static wf_status loss_shape(wf_call *c, const wf_array *x, int targets)
{
    const struct loss_attr *a = c->attr;
    if (wf_want(c, targets, WF_I32) != WF_OK)
        return WF_ERR_ARGUMENT;
    if (!(a->smoothing >= 0 && a->smoothing <= 1))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "label_smoothing = %g is not in 0 .. 1", a->smoothing);
    if (!(a->normalizer >= 0 && a->normalizer < 1e300))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "normalizer = %g must be a number of targets, or 0 for the number in this call",
                            a->normalizer);
    wf_shape leading = wf_array_shape(x), shape = wf_array_shape(&c->in[targets]);
    leading.ndim--;
    if (!wf_shape_equal(&leading, &shape))
        return wf_call_fail(c, WF_ERR_SHAPE, "the targets must have the shape of the first operand without its last dimension");
    c->out[0] = c->out[1] = wf_call_shape(WF_REAL, &(wf_shape){0});
    return WF_OK;
}

/* Checks the targets' values; *scale is 1 over what the sum is divided by, 0 when no target counts. */
static wf_status loss_scale(wf_call *c, const wf_array *targets, int64_t v, double *scale)
{
    const struct loss_attr *a = c->attr;
    int64_t counted;
    wf_status status = wf_check_ids(c, targets, "targets", v, a->has_ignore ? &a->ignore : NULL, &counted);
    *scale = counted == 0 ? 0 : a->normalizer > 0 ? 1 / a->normalizer : 1 / (double)counted;
    return status;
}

struct loss_sums {
    double smoothed, plain;
};

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

/* Losses of contiguous rows of logits, and their gradients if dlogits (which may be logits) is given. Adds the sums. */
static bool loss_rows(wf_call *c, int64_t rows, int64_t v, const wf_real *logits, const int32_t *target, double scale, wf_real *dlogits,
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

static void loss_set(wf_call *c, const struct loss_sums *sums, double scale)
{
    *(wf_real *)c->out[0].data = (wf_real)(scale == 0 ? 0 : sums->smoothed * scale);
    if (c->outputs > 1)
        *(wf_real *)c->out[1].data = (wf_real)(scale == 0 ? 0 : sums->plain * scale);
}

/* Applies, with the plain loss as a constant. */
static wf_tensor *loss_apply(const wf_op *op, int inputs, wf_tensor *const in[], const struct wf_cross_entropy_options *o)
{
    static const struct wf_cross_entropy_options none;
    o = o ? o : &none;
    wf_tensor *out[2];
    wf_apply_multi(op, &(struct loss_attr){o->label_smoothing, o->normalizer, o->has_ignore, o->ignore}, inputs, in, o->plain ? 2 : 1, out);
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
    c->saved[0] = wf_call_shape(WF_F64, &(wf_shape){0}); /* the scale */
    return loss_shape(c, &c->in[0], 1);
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
    if (!loss_rows(c, logits.dim[0], logits.dim[1], logits.data, targets.data, scale, NULL, &sums))
        return WF_ERR_MEMORY;
    loss_set(c, &sums, scale);
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
    wf_array logits = wf_contiguous_rows_of(c, &c->in[0]), targets = wf_call_contiguous(c, &c->in[1]), dx = wf_grad_new(c, 0);
    if (!logits.data || !targets.data || !dx.data)
        return WF_ERR_MEMORY;
    double scale = *(const double *)c->saved[0].data * (double)*(const wf_real *)c->dout[0].data;
    loss_rows(c, logits.dim[0], logits.dim[1], logits.data, targets.data, scale, dx.data, NULL);
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

#define TARGETS(n) .fill = {WF_FILL_NORMAL, WF_FILL_IDS}, .limit = {0, n}
#define HOW(...) ATTR(struct loss_attr, __VA_ARGS__)
const wf_op wf_op_cross_entropy = {
    .name = "cross_entropy",
    .attr_size = sizeof(struct loss_attr),
    .outputs = 2,
    .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1),
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
    return loss_apply(&wf_op_cross_entropy, 2, (wf_tensor *[]){logits, targets}, options);
}

/* --- linear_cross_entropy ------------------------------------------------------------------------------------------ *
 *
 * Logits live for some rows at a time; the loss is linear in its upstream gradient, so the gradients are computed in the forward, while
 * a chunk's logits are there, and the backward only scales them. */

enum { DX, DW, DB };

/* Rows of a chunk, of about the same number each. Some MiB of logits stay in the cache; but a pass over a weight that does not
 * costs as much as the products of 60 rows or so, three times a chunk, and asks for many. */
static int64_t chunk_rows(int64_t rows, int64_t v, int64_t d)
{
    enum { CACHED = 1 << 21, LARGE_WEIGHT = 1 << 22, LEAST = 128, LEAST_LARGE = 512 };
    int64_t least = v * d > LARGE_WEIGHT ? LEAST_LARGE : LEAST, most = CACHED / (v > 0 ? v : 1) / 64 * 64;
    most = most < least ? least : most;
    int64_t chunks = (rows + most - 1) / most;
    return chunks > 1 ? (rows + chunks - 1) / chunks : most;
}

static wf_status fused_shape(wf_call *c)
{
    if (wf_want_reals(c, 2) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *x = &c->in[0], *w = &c->in[1];
    if (x->ndim < 1 || w->ndim != 2 || x->dim[x->ndim - 1] != w->dim[1])
        return wf_call_fail(c, WF_ERR_SHAPE, "x must be [...,D], and weight [V,D]");
    wf_status status = wf_want_vector(c, 2, "bias", w->dim[0]);
    if (status != WF_OK)
        return status;
    for (int i = 0; i < 3; i++) {
        wf_shape shape = wf_array_shape(&c->in[i]);
        if (c->need[i])
            c->saved[i] = wf_call_shape(WF_REAL, &shape);
    }
    return loss_shape(c, x, 3);
}

struct fused {
    wf_array x, w; /* [rows, D], [V, D], any strides */
    const wf_real *bias;
    wf_real *logits;
    const int32_t *target;
    double scale;
    struct loss_sums sums;
};

/* Z = X W^T + b, dZ by the loss; dX = dZ W, dW += dZ^T X, db += sum of dZ's rows (derivations: above, products.c). */
static bool one_chunk(wf_call *c, struct fused *f, int64_t begin, int64_t rows)
{
    const int64_t v = f->w.dim[0];
    const bool later = begin > 0;
    wf_array x = wf_array_slice(f->x, 0, begin, rows), wt = wf_swap_last(&f->w),
             z = wf_array_contiguous(f->logits, WF_REAL, &(wf_shape){2, {rows, v}});
    if (wf_product(c, &x, &wt, &z, false, f->bias, c->rows_alone) != WF_OK)
        return false;
    if (!loss_rows(c, rows, v, f->logits, f->target + begin, f->scale, c->grad ? f->logits : NULL, &f->sums))
        return false;
    if (c->need[0]) {
        wf_array dx = wf_array_contiguous(c->saved[DX].data, WF_REAL, &(wf_shape){2, {f->x.dim[0], f->x.dim[1]}});
        dx = wf_array_slice(dx, 0, begin, rows);
        if (wf_product(c, &z, &f->w, &dx, false, NULL, false) != WF_OK)
            return false;
    }
    if (c->need[1] && wf_product_of_columns(c, &z, &x, &c->saved[DW], later) != WF_OK)
        return false;
    return !c->need[2] || wf_sum_into(c, &c->saved[DB], &z, 1, later) == WF_OK;
}

static wf_status fused_forward(wf_call *c)
{
    struct fused f = {.w = c->in[1], .x = wf_matrix_of(c, &c->in[0])};
    wf_array targets = wf_call_contiguous(c, &c->in[3]);
    if (!f.x.data || !targets.data || !wf_vector_of(c, 2, &f.bias))
        return WF_ERR_MEMORY;
    f.target = targets.data;
    int64_t rows = f.x.dim[0], v = f.w.dim[0], most = chunk_rows(rows, v, f.w.dim[1]);
    wf_status status = loss_scale(c, &targets, v, &f.scale);
    if (status != WF_OK)
        return status;
    if (rows == 0 || f.scale == 0) { /* no target counts */
        for (int i = 0; i < 3; i++)
            if (c->need[i])
                memset(c->saved[i].data, 0, (size_t)wf_array_count(&c->saved[i]) * sizeof(wf_real));
        loss_set(c, &f.sums, 0);
        return WF_OK;
    }
    f.logits = wf_call_temp(c, WF_REAL, &(wf_shape){2, {rows < most ? rows : most, v}}).data;
    if (!f.logits)
        return WF_ERR_MEMORY;
    for (int64_t begin = 0; begin < rows; begin += most)
        if (!one_chunk(c, &f, begin, rows - begin < most ? rows - begin : most))
            return WF_ERR_MEMORY;
    loss_set(c, &f.sums, f.scale);
    return WF_OK;
}

struct scaling {
    const wf_real *from;
    wf_real *to, scale;
    bool add;
};

static void scaling_body(void *ctx, int64_t begin, int64_t end)
{
    const struct scaling *s = ctx;
    if (s->add)
        wf_kernel->axpy(end - begin, s->scale, s->from + begin, s->to + begin);
    else
        wf_kernel->affine(end - begin, s->scale, 0, s->from + begin, s->to + begin);
}

static wf_status fused_backward(wf_call *c)
{
    if (!c->dout[0].data)
        return WF_OK;
    wf_real upstream = *(const wf_real *)c->dout[0].data;
    for (int i = 0; i < 3; i++) {
        if (!c->need[i])
            continue;
        if (upstream == 1) {
            wf_grad_give(c, i, &c->saved[i]);
            continue;
        }
        struct contiguous_grad g;
        if (!wf_contiguous_grad(c, i, &g))
            return WF_ERR_MEMORY;
        struct scaling s = {c->saved[i].data, g.contiguous.data, upstream, g.add};
        int64_t count = wf_array_count(&g.contiguous);
        wf_parallel_ranges(count, 16384, 0.08 * (double)count, scaling_body, &s);
        wf_contiguous_grad_done(&g);
    }
    return WF_OK;
}

#define FUSED_TARGETS(n) .fill = {WF_FILL_NORMAL, WF_FILL_NORMAL, WF_FILL_NORMAL, WF_FILL_IDS}, .limit = {0, 0, 0, n}
#define NO_BIAS(n) .fill = {WF_FILL_NORMAL, WF_FILL_NORMAL, WF_FILL_ABSENT, WF_FILL_IDS}, .limit = {0, 0, 0, n}, .inputs = 4
const wf_op wf_op_linear_cross_entropy = {
    .name = "linear_cross_entropy",
    .attr_size = sizeof(struct loss_attr),
    .outputs = 2,
    .reads = WF_READS_NOTHING,
    .shape = fused_shape,
    .forward = fused_forward,
    .backward = fused_backward,
    .cases = WF_CASES({"rows", {{3, 4}, {5, 4}, {5}, {3}}, FUSED_TARGETS(5), HOW(0)},
                      {"no bias", {{2, 3, 4}, {5, 4}, {5}, {2, 3}}, NO_BIAS(5), HOW(0)},
                      {"smoothed", {{4, 3}, {6, 3}, {6}, {4}}, FUSED_TARGETS(6), HOW(.smoothing = 0.1)},
                      {"ignored", {{9, 3}, {4, 3}, {4}, {9}}, FUSED_TARGETS(4), HOW(.has_ignore = true, .ignore = 1)},
                      {"normalised", {{3, 4}, {5, 4}, {5}, {3}}, FUSED_TARGETS(5), HOW(.smoothing = 0.2, .normalizer = 17)},
                      {"one row", {{4}, {5, 4}, {5}, {-2}}, FUSED_TARGETS(5), HOW(0)},
                      {"one class", {{3, 2}, {1, 2}, {1}, {3}}, FUSED_TARGETS(1), HOW(0)},
                      {"all ignored", {{3, 2}, {1, 2}, {1}, {3}}, FUSED_TARGETS(1), HOW(.has_ignore = true, .ignore = 0)},
                      {"no rows", {{-1, 4}, {5, 4}, {5}, {-1}}, FUSED_TARGETS(5), HOW(0)},
                      {"odd", {{70, 9}, {17, 9}, {17}, {70}}, FUSED_TARGETS(17), HOW(0)})}; /* several chunks: tests/autograd/losses.c */

wf_tensor *wf_linear_cross_entropy_with(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, wf_tensor *targets,
                                        const struct wf_cross_entropy_options *options)
{
    return loss_apply(&wf_op_linear_cross_entropy, 4, (wf_tensor *[]){x, weight, bias, targets}, options);
}
