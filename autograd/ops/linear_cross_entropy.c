/* SPDX-License-Identifier: MIT */
/* Cross-entropy fused with the linear layer that computes its logits. The gradient of the logits is proportional to the upstream gradient,
 * that of the loss, so the forward can already replace the logits by their gradient for an upstream gradient of 1. If this gradient takes
 * little memory for all logits (keeps_all), it is kept. Then backward is that of a linear layer, whose products add straight to the
 * gradients. Otherwise rows are computed in chunks, and the logits of only one chunk exist at a time: the forward computes the gradients of
 * x, weight and bias too, and backward only scales them. */
#include <string.h>

#include "losses.h"

enum { DX, DW, DB, DZ }; /* saved gradients: of x, weight, bias and logits */

/* Rows of a chunk; all chunks have about the same number. Small chunks are good because a few MiB of logits stay in the cache. Large chunks
 * are good because each chunk reads or writes the weight and its gradient three times, from memory, and that takes as long as the products
 * of some 60 rows. */
static int64_t chunk_rows(int64_t rows, int64_t v, int64_t d)
{
    enum { CACHED = 1 << 21, LARGE_WEIGHT = 1 << 22, LEAST = 128, LEAST_LARGE = 512 };
    int64_t least = v * d > LARGE_WEIGHT ? LEAST_LARGE : LEAST, most = CACHED / WF_MAX(v, 1) / 64 * 64;
    most = WF_MAX(most, least);
    int64_t chunks = (rows + most - 1) / most;
    return chunks > 1 ? (rows + chunks - 1) / chunks : most;
}

/* Whether to keep the gradient of all logits. It is kept if it is no larger than the logits of one chunk and the gradient of the weight
 * together. If the weight is frozen, it is kept if it is no larger than the gradient of x. */
static bool keeps_all(const wf_call *c, int64_t rows)
{
    const int64_t v = c->in[1].dim[0], d = c->in[1].dim[1];
    return rows > 0 && v > 0 && (c->need[1] ? rows <= chunk_rows(rows, v, d) + d : v <= d);
}

static wf_status fused_shape(wf_call *c)
{
    if (wf_want(c, 0, WF_REAL) != WF_OK || wf_want_stored(c, 1) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *x = &c->in[0], *w = &c->in[1];
    if (x->ndim < 1 || w->ndim != 2 || x->dim[x->ndim - 1] != w->dim[1])
        return wf_call_fail(c, WF_ERR_SHAPE, "x must be [...,D], and weight [V,D]");
    wf_status status = wf_want_vector(c, 2, "bias", w->dim[0]);
    if (status != WF_OK)
        return status;
    if (loss_is_reduced(c)) {
        wf_shape z = wf_array_shape(x);
        z.dim[z.ndim - 1] = w->dim[0];
        int64_t rows = 1;
        for (int i = 0; i < z.ndim - 1; i++)
            rows *= z.dim[i];
        if (keeps_all(c, rows))
            c->saved[DZ] = wf_call_shape(WF_REAL, &z);
        for (int i = 0; i < 3 && !keeps_all(c, rows); i++) {
            wf_shape shape = wf_array_shape(&c->in[i]);
            if (c->need[i])
                c->saved[i] = wf_call_shape(WF_REAL, &shape);
        }
    }
    return loss_shape(c, x, 3, w->dim[0]);
}

struct fused {
    wf_array x; /* [rows, D], any strides */
    wf_array w; /* [V, D], any strides */
    const wf_real *bias;
    wf_real *logits;
    wf_array targets;
    double scale;
    struct loss_sums sums;
    bool into_gradient;       /* replace logits by their gradient */
    const wf_array *gradient; /* where to put the gradients DX, DW and DB; NULL: do not compute them */
};

/* Z = X W^T + b, and the loss gives dZ. Then dX = dZ W, dW += dZ^T X, db += the sum of dZ's rows (derivations: losses.c, products.c). */
static bool one_chunk(wf_call *c, struct fused *f, int64_t begin, int64_t rows, const struct loss_each *each)
{
    const int64_t v = f->w.dim[0];
    const bool later = begin > 0;
    wf_array x = wf_array_slice(f->x, 0, begin, rows), wt = wf_swap_last(&f->w),
             z = wf_array_contiguous(f->logits, WF_REAL, &(wf_shape){2, {rows, v}});
    if (wf_product(c, &x, &wt, &z, false, f->bias, c->rows_alone) != WF_OK)
        return false;
    if (!loss_rows(c, rows, v, f->logits, (const int32_t *)f->targets.data + begin, f->scale, f->into_gradient ? f->logits : NULL,
                   each ? NULL : &f->sums, each))
        return false;
    if (!f->gradient)
        return true;
    if (c->need[0]) {
        wf_array dx = wf_array_contiguous(f->gradient[DX].data, WF_REAL, &(wf_shape){2, {f->x.dim[0], f->x.dim[1]}});
        dx = wf_array_slice(dx, 0, begin, rows);
        if (wf_product(c, &z, &f->w, &dx, false, NULL, false) != WF_OK)
            return false;
    }
    if (c->need[1] && wf_product_of_columns(c, &z, &x, &f->gradient[DW], later) != WF_OK)
        return false;
    return !c->need[2] || wf_sum_into(c, &f->gradient[DB], &z, 1, later) == WF_OK;
}

/* Sets the operands in *f, and the memory for the logits of a chunk. *most becomes the rows of a chunk: all rows if the
 * gradient of all logits is kept. */
static wf_status fused_begin(wf_call *c, struct fused *f, int64_t *most)
{
    f->targets = wf_call_contiguous(c, &c->in[3]);
    f->w = c->in[1];
    f->x = wf_matrix_of(c, &c->in[0]);
    if (!f->x.data || !f->targets.data || !wf_vector_of(c, 2, &f->bias))
        return WF_ERR_MEMORY;
    const int64_t rows = f->x.dim[0], v = f->w.dim[0];
    const bool kept = c->grad && c->saved[DZ].data;
    *most = kept ? rows : chunk_rows(rows, v, f->w.dim[1]);
    f->logits = kept ? c->saved[DZ].data : wf_call_temp(c, WF_REAL, &(wf_shape){2, {WF_MIN(rows, *most), v}}).data;
    return f->logits ? WF_OK : WF_ERR_MEMORY;
}

static void clear(const wf_array *a)
{
    memset(a->data, 0, (size_t)wf_array_count(a) * sizeof(wf_real));
}

static wf_status fused_forward(wf_call *c)
{
    struct fused f = {.into_gradient = c->grad};
    int64_t most;
    if (c->grad && !c->saved[DZ].data)
        f.gradient = c->saved;
    wf_status status = fused_begin(c, &f, &most);
    if (status == WF_OK)
        status = loss_scale(c, &f.targets, f.w.dim[0], &f.scale);
    if (status != WF_OK)
        return status;
    const int64_t rows = f.x.dim[0];
    if (rows == 0 || f.scale == 0) { /* there are no rows, no target counts, or the class weights of all targets are 0 */
        for (int i = DX; i <= DZ; i++)
            if (c->saved[i].data)
                clear(&c->saved[i]);
        loss_set(c, &f.sums, 0);
        return WF_OK;
    }
    for (int64_t begin = 0; begin < rows; begin += most)
        if (!one_chunk(c, &f, begin, WF_MIN(rows - begin, most), NULL))
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
    if (c->saved[DZ].data)
        return upstream == 0 ? wf_give_zeros(c) : wf_linear_gradients(c, &c->saved[DZ], (double)upstream);
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
/* The logits of all rows exist here at once. */
static void fused_gradient(const wf_gradient_call *c)
{
    wf_tensor *dz = c->dy[0] ? loss_logits_gradient(c, wf_linear(c->x[0], c->x[1], c->x[2]), c->x[3]) : NULL;
    if (dz)
        wf_linear_gradient(c, dz);
}

const wf_op wf_op_linear_cross_entropy = {
    .name = "linear_cross_entropy",
    .operands = "x weight bias targets",
    .attr_size = sizeof(struct loss_attr),
    .outputs = 2,
    .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1), /* backward reads x and weight if the gradient of all logits is kept */
    .rounds = WF_READS_INPUT(0),
    .shape = fused_shape,
    .forward = fused_forward,
    .backward = fused_backward,
    .gradient = fused_gradient,
    /* None of these cases has more than one chunk; tests/autograd/losses.c tests several. */
    .cases = WF_CASES({"rows", {{3, 4}, {5, 4}, {5}, {3}}, FUSED_TARGETS(5), LOSS_HOW(0)},
                      {"no bias", {{2, 3, 4}, {5, 4}, {5}, {2, 3}}, NO_BIAS(5), LOSS_HOW(0)},
                      {"smoothed", {{4, 3}, {6, 3}, {6}, {4}}, FUSED_TARGETS(6), LOSS_HOW(.smoothing = 0.1)},
                      {"ignored", {{9, 3}, {4, 3}, {4}, {9}}, FUSED_TARGETS(4), LOSS_HOW(.has_ignore = true, .ignore = 1)},
                      {"normalised", {{3, 4}, {5, 4}, {5}, {3}}, FUSED_TARGETS(5), LOSS_HOW(.smoothing = 0.2, .normalizer = 17)},
                      {"one row", {{4}, {5, 4}, {5}, {-2}}, FUSED_TARGETS(5), LOSS_HOW(0)},
                      {"one class", {{3, 2}, {1, 2}, {1}, {3}}, FUSED_TARGETS(1), LOSS_HOW(0)},
                      {"all ignored", {{3, 2}, {1, 2}, {1}, {3}}, FUSED_TARGETS(1), LOSS_HOW(.has_ignore = true, .ignore = 0)},
                      {"no rows", {{-1, 4}, {5, 4}, {5}, {-1}}, FUSED_TARGETS(5), LOSS_HOW(0)},
                      {"sum", {{3, 4}, {5, 4}, {5}, {3}}, FUSED_TARGETS(5), LOSS_HOW(.reduction = WF_REDUCE_SUM)},
                      {"weighted and smoothed", {{6, 4}, {5, 4}, {5}, {6}}, FUSED_TARGETS(5), LOSS_HOW(.smoothing = 0.2, LOSS_WEIGHTS)},
                      {"softcap", {{3, 4}, {5, 4}, {5}, {3}}, FUSED_TARGETS(5), LOSS_HOW(.softcap = 0.9)},
                      {"softcap, no bias", {{2, 3, 4}, {5, 4}, {5}, {2, 3}}, NO_BIAS(5), LOSS_HOW(.softcap = 2, .smoothing = 0.1)},
                      {"odd", {{70, 9}, {17, 9}, {17}, {70}}, FUSED_TARGETS(17), LOSS_HOW(0)})};

/* Without a reduction each row has its own upstream gradient. Only backward knows it, so backward computes the logits again. */

static wf_status fused_rows_forward(wf_call *c)
{
    struct fused f = {0};
    int64_t most;
    wf_status status = fused_begin(c, &f, &most);
    if (status == WF_OK)
        status = loss_scale(c, &f.targets, f.w.dim[0], &f.scale);
    for (int64_t begin = 0, rows = f.x.dim[0]; status == WF_OK && begin < rows; begin += most) {
        struct loss_each each = loss_each_of(c, begin);
        if (!one_chunk(c, &f, begin, WF_MIN(rows - begin, most), &each))
            status = WF_ERR_MEMORY;
    }
    return status;
}

static wf_status fused_rows_backward(wf_call *c)
{
    if (!c->dout[0].data)
        return WF_OK;
    struct fused f = {.scale = 1, .into_gradient = true};
    wf_array d[3] = {{0}}, g = wf_call_contiguous(c, &c->dout[0]);
    int64_t most;
    if (!g.data || fused_begin(c, &f, &most) != WF_OK)
        return WF_ERR_MEMORY;
    f.gradient = d;
    for (int i = 0; i < 3; i++)
        if (c->need[i]) {
            d[i] = wf_grad_new(c, i);
            if (!d[i].data)
                return WF_ERR_MEMORY;
            if (f.x.dim[0] == 0)
                clear(&d[i]);
        }
    for (int64_t begin = 0, rows = f.x.dim[0]; begin < rows; begin += most) {
        struct loss_each each = {.upstream = (const wf_real *)g.data + begin};
        if (!one_chunk(c, &f, begin, WF_MIN(rows - begin, most), &each))
            return WF_ERR_MEMORY;
    }
    for (int i = 0; i < 3; i++)
        if (c->need[i])
            wf_grad_give(c, i, &d[i]);
    return WF_OK;
}

#define EACH(...) LOSS_HOW(.reduction = WF_REDUCE_NONE, __VA_ARGS__)
const wf_op wf_op_linear_cross_entropy_rows = {
    .name = "linear_cross_entropy",
    .operands = "x weight bias targets",
    .attr_size = sizeof(struct loss_attr),
    .outputs = 2,
    .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1) | WF_READS_INPUT(2) | WF_READS_INPUT(3),
    .shape = fused_shape,
    .forward = fused_rows_forward,
    .backward = fused_rows_backward,
    .gradient = fused_gradient,
    .cases = WF_CASES({"each row", {{3, 4}, {5, 4}, {5}, {3}}, FUSED_TARGETS(5), EACH(.smoothing = 0)},
                      {"each row, no bias", {{2, 3, 4}, {5, 4}, {5}, {2, 3}}, NO_BIAS(5), EACH(.smoothing = 0)},
                      {"each row, weighted, smoothed and ignored",
                       {{9, 3}, {5, 3}, {5}, {9}},
                       FUSED_TARGETS(5),
                       EACH(.smoothing = 0.2, .has_ignore = true, .ignore = 1, LOSS_WEIGHTS)},
                      {"each of no rows", {{-1, 4}, {5, 4}, {5}, {-1}}, FUSED_TARGETS(5), EACH(.smoothing = 0)},
                      {"softcap, each row", {{70, 9}, {17, 9}, {17}, {70}}, FUSED_TARGETS(17), EACH(.softcap = 1)},
                      {"each row, odd", {{70, 9}, {17, 9}, {17}, {70}}, FUSED_TARGETS(17), EACH(.smoothing = 0.1)})};

wf_tensor *wf_linear_cross_entropy_with(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, wf_tensor *targets,
                                        const struct wf_cross_entropy_options *options)
{
    return loss_apply(&wf_op_linear_cross_entropy, &wf_op_linear_cross_entropy_rows, 4, (wf_tensor *[]){x, weight, bias, targets}, options);
}
