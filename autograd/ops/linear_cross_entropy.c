/* SPDX-License-Identifier: MIT */
/* Cross-entropy of x weight^T + bias. Logits live for some rows at a time; the loss is linear in its upstream gradient, so
 * the gradients are computed in the forward, while a chunk's logits are there, and the backward only scales them. */
#include <string.h>

#include <weft/internal/gemm.h>
#include <weft/internal/kernels.h>
#include <weft/internal/ops_all.h>
#include <weft/internal/parallel.h>

#include "losses.h"
#include "rows.h"

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
    for (int i = 0; i < 2; i++) {
        wf_status status = wf_want(c, i, WF_REAL);
        if (status != WF_OK)
            return status;
    }
    const wf_array *x = &c->in[0], *w = &c->in[1];
    if (x->ndim < 1 || w->ndim != 2 || x->dim[x->ndim - 1] != w->dim[1])
        return wf_call_fail(c, WF_ERR_SHAPE, "x [..., D] and weight [V, D] are wanted");
    wf_status status = wf_want_vector(c, 2, "bias", w->dim[0]);
    if (status != WF_OK)
        return status;
    for (int i = 0; c->grad && i < 3; i++) {
        wf_shape shape = wf_array_shape(&c->in[i]);
        if (c->need[i])
            c->saved[i] = wf_call_shape(WF_REAL, &shape);
    }
    return wf_loss_shape(c, x, 3);
}

struct fused {
    int64_t v, d;
    wf_array x, w; /* [rows, D], [V, D], any strides */
    const wf_real *bias;
    wf_real *logits;
    const int32_t *target;
    wf_array dx; /* [rows, D] */
    double scale;
    struct loss_sums sums;
};

/* Z = X W^T + b, dZ by the loss; dX = dZ W, dW += dZ^T X, db += sum of dZ's rows (derivations: losses.c, products.c). */
static bool one_chunk(wf_call *c, struct fused *f, int64_t begin, int64_t rows)
{
    const wf_real *x = (const wf_real *)f->x.data + begin * f->x.stride[0];
    bool later = begin > 0;
    wf_gemm(&(struct wf_gemm){.m = rows,
                              .n = f->v,
                              .k = f->d,
                              .alpha = 1,
                              .a = x,
                              .a_rs = f->x.stride[0],
                              .a_cs = f->x.stride[1],
                              .b = f->w.data,
                              .b_rs = f->w.stride[1],
                              .b_cs = f->w.stride[0],
                              .c = f->logits,
                              .c_rs = f->v,
                              .c_cs = 1,
                              .bias = f->bias,
                              .rows_alone = c->rows_alone});
    if (!wf_loss_rows(c, rows, f->v, f->logits, f->target + begin, f->scale, c->grad ? f->logits : NULL, &f->sums))
        return false;
    if (!c->grad)
        return true;
    if (c->need[0])
        wf_gemm(&(struct wf_gemm){.m = rows,
                                  .n = f->d,
                                  .k = f->v,
                                  .alpha = 1,
                                  .a = f->logits,
                                  .a_rs = f->v,
                                  .a_cs = 1,
                                  .b = f->w.data,
                                  .b_rs = f->w.stride[0],
                                  .b_cs = f->w.stride[1],
                                  .c = (wf_real *)f->dx.data + begin * f->d,
                                  .c_rs = f->d,
                                  .c_cs = 1});
    if (c->need[1])
        wf_gemm(&(struct wf_gemm){.m = f->v,
                                  .n = f->d,
                                  .k = rows,
                                  .alpha = 1,
                                  .beta = later,
                                  .a = f->logits,
                                  .a_rs = 1,
                                  .a_cs = f->v,
                                  .b = x,
                                  .b_rs = f->x.stride[0],
                                  .b_cs = f->x.stride[1],
                                  .c = c->saved[DW].data,
                                  .c_rs = f->d,
                                  .c_cs = 1});
    if (c->need[2]) {
        wf_array dz = wf_array_dense(f->logits, WF_REAL, &(wf_shape){2, {rows, f->v}});
        return wf_column_sums(c, &dz, later, c->saved[DB].data);
    }
    return true;
}

static wf_status fused_forward(wf_call *c)
{
    struct fused f = {.v = c->in[1].dim[0], .d = c->in[1].dim[1], .w = c->in[1], .x = wf_matrix_of(c, &c->in[0])};
    wf_array targets = wf_call_dense(c, &c->in[3]);
    if (!f.x.data || !targets.data)
        return WF_ERR_MEMORY;
    wf_status status = wf_loss_scale(c, &targets, f.v, &f.scale);
    if (status != WF_OK)
        return status;
    f.target = targets.data;
    if (wf_has(c, 2)) {
        wf_array bias = wf_call_dense(c, &c->in[2]);
        f.bias = bias.data;
        if (!bias.data)
            return WF_ERR_MEMORY;
    }
    if (c->grad && c->need[0])
        f.dx = c->saved[DX];
    int64_t rows = f.x.dim[0], most = chunk_rows(rows, f.v, f.d);
    if (rows == 0 || f.scale == 0) { /* no target counts */
        for (int i = 0; c->grad && i < 3; i++)
            if (c->need[i])
                memset(c->saved[i].data, 0, (size_t)wf_array_count(&c->saved[i]) * sizeof(wf_real));
        wf_loss_set(c, &f.sums, 0);
        return WF_OK;
    }
    f.logits = wf_call_temp(c, WF_REAL, &(wf_shape){2, {rows < most ? rows : most, f.v}}).data;
    if (!f.logits)
        return WF_ERR_MEMORY;
    for (int64_t begin = 0; begin < rows; begin += most)
        if (!one_chunk(c, &f, begin, rows - begin < most ? rows - begin : most))
            return WF_ERR_MEMORY;
    wf_loss_set(c, &f.sums, f.scale);
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
        struct scaling s = {.from = c->saved[i].data, .scale = upstream};
        wf_array into = wf_grad_into(c, i, &s.add), dense = into;
        if (!into.data)
            return WF_ERR_MEMORY;
        if (!wf_array_is_dense(&into)) {
            dense = wf_grad_new(c, i);
            if (!dense.data)
                return WF_ERR_MEMORY;
            if (s.add)
                wf_array_copy(&dense, &into);
        }
        s.to = dense.data;
        int64_t count = wf_array_count(&dense);
        wf_parallel_ranges(count, 16384, 0.08 * (double)count, scaling_body, &s);
        if (dense.data != into.data)
            wf_array_copy(&into, &dense);
    }
    return WF_OK;
}

#define TARGETS(n) .fill = {WF_FILL_NORMAL, WF_FILL_NORMAL, WF_FILL_NORMAL, WF_FILL_IDS}, .limit = {0, 0, 0, n}
#define NO_BIAS(n) .fill = {WF_FILL_NORMAL, WF_FILL_NORMAL, WF_FILL_ABSENT, WF_FILL_IDS}, .limit = {0, 0, 0, n}, .inputs = 4
#define HOW(...)                                                                                                                           \
    .attr = &(const struct loss_attr)                                                                                                      \
    {                                                                                                                                      \
        __VA_ARGS__                                                                                                                        \
    }
const wf_op wf_op_linear_cross_entropy = {
    .name = "linear_cross_entropy",
    .attr_size = sizeof(struct loss_attr),
    .outputs = 2,
    .keeps_inputs_away = true,
    .shape = fused_shape,
    .forward = fused_forward,
    .backward = fused_backward,
    .cases = WF_CASES(
        {"rows", {{3, 4}, {5, 4}, {5}, {3}}, TARGETS(5), HOW(0)}, {"no bias", {{2, 3, 4}, {5, 4}, {5}, {2, 3}}, NO_BIAS(5), HOW(0)},
        {"smoothed", {{4, 3}, {6, 3}, {6}, {4}}, TARGETS(6), HOW(.smoothing = 0.1)},
        {"ignored", {{9, 3}, {4, 3}, {4}, {9}}, TARGETS(4), HOW(.has_ignore = true, .ignore = 1)},
        {"normalised", {{3, 4}, {5, 4}, {5}, {3}}, TARGETS(5), HOW(.smoothing = 0.2, .normalizer = 17)},
        {"one row", {{4}, {5, 4}, {5}, {-2}}, TARGETS(5), HOW(0)}, {"one class", {{3, 2}, {1, 2}, {1}, {3}}, TARGETS(1), HOW(0)},
        {"all ignored", {{3, 2}, {1, 2}, {1}, {3}}, TARGETS(1), HOW(.has_ignore = true, .ignore = 0)},
        {"no rows", {{-1, 4}, {5, 4}, {5}, {-1}}, TARGETS(5), HOW(0)},
        {"odd", {{70, 9}, {17, 9}, {17}, {70}}, TARGETS(17), HOW(0)})}; /* several chunks: tests/autograd/ops.c */

wf_tensor *wf_linear_cross_entropy_with(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, wf_tensor *targets,
                                        const struct wf_cross_entropy_options *options)
{
    return wf_loss_apply(&wf_op_linear_cross_entropy, 4, (wf_tensor *[]){x, weight, bias, targets}, options);
}
