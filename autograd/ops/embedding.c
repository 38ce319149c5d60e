/* SPDX-License-Identifier: MIT */
/* embedding: rows of a weight matrix, taken by ids. */
#include "common.h"

static wf_status embedding_shape(wf_call *c)
{
    if (wf_want_stored(c, 0) != WF_OK || wf_want(c, 1, WF_I32) != WF_OK)
        return WF_ERR_ARGUMENT;
    wf_shape shape = wf_array_shape(&c->in[1]);
    if (c->in[0].ndim != 2 || shape.ndim == WF_MAX_DIMS || wf_shape_count(&shape) > INT32_MAX)
        return wf_call_fail(c, WF_ERR_SHAPE, "weight must be [V,D], and ids must have at most %d dimensions", WF_MAX_DIMS - 1);
    shape.dim[shape.ndim++] = c->in[0].dim[1];
    c->out[0] = wf_call_shape(WF_REAL, &shape);
    return WF_OK;
}

struct widen {
    const wf_array *weight; /* [V, D] in bf16, any strides */
    const int32_t *id;
    wf_real *to;
};

static void widen_body(void *ctx, int64_t begin, int64_t end)
{
    const struct widen *w = ctx;
    const int64_t d = w->weight->dim[1], step = w->weight->stride[1];
    for (int64_t i = begin; i < end; i++) {
        const uint16_t *row = (const uint16_t *)w->weight->data + w->id[i] * w->weight->stride[0];
        for (int64_t j = 0; j < d; j += step == 1 ? d : 1)
            (void)wf_convert(WF_REAL, w->to + i * d + j, WF_BF16, row + j * step, step == 1 ? d : 1);
    }
}

static wf_status embedding_forward(wf_call *c)
{
    wf_array ids = wf_ids_below(c, 1, c->in[0].dim[0]);
    if (!ids.data)
        return WF_ERR_ARGUMENT;
    if (c->in[0].dtype == WF_BF16) {
        const int64_t n = wf_array_count(&ids), d = c->in[0].dim[1];
        if (n * d > 0)
            wf_parallel_ranges(n, 1 + 8192 / d, (double)n * (double)d, widen_body, &(struct widen){&c->in[0], ids.data, c->out[0].data});
        return WF_OK;
    }
    wf_array planes = {.data = c->in[0].data,
                       .dtype = WF_REAL,
                       .ndim = 3,
                       .dim = {1, c->in[0].dim[0], c->in[0].dim[1]},
                       .stride = {0, c->in[0].stride[0], c->in[0].stride[1]}};
    wf_take_rows(&planes, ids.data, wf_array_count(&ids), c->out[0].data);
    return WF_OK;
}

/* y_i = w[id_i], so dw[v] is the sum of dy_i over the i with id_i = v. */
static wf_status embedding_backward(wf_call *c)
{
    wf_array ids = wf_call_contiguous(c, &c->in[1]), dy = wf_rows_of(c, &c->dout[0]);
    struct contiguous_grad dw;
    if (!ids.data || !dy.data || !wf_contiguous_grad_to_add(c, 0, &dw))
        return WF_ERR_MEMORY;
    wf_array planes = {
        .data = dy.data, .dtype = WF_REAL, .ndim = 3, .dim = {1, dy.dim[0], dy.dim[1]}, .stride = {0, dy.stride[0], dy.stride[1]}};
    if (!wf_add_rows(c, &planes, ids.data, c->in[0].dim[0], dw.contiguous.data))
        return WF_ERR_MEMORY;
    wf_contiguous_grad_done(&dw);
    return WF_OK;
}

static void embedding_gradient(const wf_gradient_call *c)
{
    const wf_shape weight = wf_shape_of(c->x[0]), ids = wf_shape_of(c->x[1]), rows = {2, {wf_shape_count(&ids), weight.dim[1]}};
    c->dx[0] = wf_index_add(wf_zeros(c->tape, &weight), 0, wf_reshape(c->x[1], -1), wf_reshape_to(c->dy[0], &rows));
}

#define IDS(n) .fill = {WF_FILL_NORMAL, WF_FILL_IDS}, .limit = {0, n}
const wf_op wf_op_embedding = {.name = "embedding",
                               .operands = "weight ids",
                               .reads = WF_READS_INPUT(1),
                               .shape = embedding_shape,
                               .forward = embedding_forward,
                               .backward = embedding_backward,
                               .gradient = embedding_gradient,
                               .cases = WF_CASES({"matrix", {{5, 4}, {2, 3}}, IDS(5)}, {"repeated ids", {{2, 3}, {11}}, IDS(2)},
                                                 {"one row", {{1, 1}, {3}}, IDS(1)}, {"one id", {{5, 4}, {-2}}, IDS(5)},
                                                 {"no ids", {{5, 4}, {2, -1}}, IDS(5)}, {"no columns", {{5, -1}, {3}}, IDS(5)},
                                                 {"odd", {{7, 33}, {3, 1, 5}}, IDS(7)}, {"wide", {{3, 70}, {9}}, IDS(3)})};

wf_tensor *wf_embedding(wf_tensor *weight, wf_tensor *ids)
{
    return wf_apply(&wf_op_embedding, NULL, 2, (wf_tensor *[]){weight, ids});
}
