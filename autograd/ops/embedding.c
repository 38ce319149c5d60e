/* SPDX-License-Identifier: MIT */
#include <string.h>

#include <weft/op.h>
#include <weft/ops.h>

#include <weft/internal/kernels.h>
#include <weft/internal/ops_all.h>
#include <weft/internal/parallel.h>

#include "rows.h"

static wf_status embedding_shape(wf_call *c)
{
    wf_status status = wf_want(c, 0, WF_REAL);
    if (status == WF_OK)
        status = wf_want(c, 1, WF_I32);
    if (status != WF_OK)
        return status;
    wf_shape shape = wf_array_shape(&c->in[1]);
    if (c->in[0].ndim != 2 || shape.ndim == WF_MAX_DIMS)
        return wf_call_fail(c, WF_ERR_SHAPE, "weight [V, D] and ids of at most %d dimensions are wanted", WF_MAX_DIMS - 1);
    shape.dim[shape.ndim++] = c->in[0].dim[1];
    c->out[0] = wf_call_shape(WF_REAL, &shape);
    return WF_OK;
}

struct gather {
    const wf_array *weight;
    const int32_t *id;
    wf_real *y;
};

static void gather_body(void *ctx, int64_t begin, int64_t end)
{
    const struct gather *g = ctx;
    int64_t d = g->weight->dim[1], row = g->weight->stride[0], step = g->weight->stride[1];
    for (int64_t i = begin; i < end; i++) {
        const wf_real *from = (const wf_real *)g->weight->data + g->id[i] * row;
        wf_real *to = g->y + i * d;
        if (step == 1)
            memcpy(to, from, (size_t)d * sizeof *to);
        else
            for (int64_t j = 0; j < d; j++)
                to[j] = from[j * step];
    }
}

static wf_status embedding_forward(wf_call *c)
{
    wf_array ids = wf_call_dense(c, &c->in[1]);
    if (!ids.data)
        return WF_ERR_MEMORY;
    wf_status status = wf_check_ids(c, &ids, "ids", c->in[0].dim[0], NULL, NULL);
    int64_t n = wf_array_count(&ids), d = c->in[0].dim[1];
    if (status != WF_OK || n * d == 0)
        return status;
    struct gather g = {&c->in[0], ids.data, c->out[0].data};
    wf_parallel_ranges(n, 1 + 8192 / d, 0.15 * (double)n * (double)d, gather_body, &g);
    return WF_OK;
}

enum { COLUMNS = 32, ZERO_BLOCK = 1 << 16 };

static void zero_body(void *ctx, int64_t begin, int64_t end)
{
    memset((wf_real *)ctx + begin, 0, (size_t)(end - begin) * sizeof(wf_real));
}

struct scatter {
    const wf_array *dy; /* [n, D] */
    const int32_t *id;
    wf_real *dw;
    int64_t row; /* distance between rows of dw */
};

/* A thread owns columns, and walks all ids in order: the order of additions doesn't depend on threads. */
static void scatter_body(void *ctx, int64_t block)
{
    const struct scatter *s = ctx;
    int64_t d = s->dy->dim[1], from = block * COLUMNS, n = d - from < COLUMNS ? d - from : COLUMNS;
    const wf_real *dy = (const wf_real *)s->dy->data + from;
    for (int64_t i = 0; i < s->dy->dim[0]; i++, dy += s->dy->stride[0]) {
        wf_real *to = s->dw + s->id[i] * s->row + from;
        wf_kernel->add(n, to, 1, dy, 1, to);
    }
}

/* y_i = w[id_i], so dw[v] is the sum of dy_i over the i with id_i = v. */
static wf_status embedding_backward(wf_call *c)
{
    wf_array ids = wf_call_dense(c, &c->in[1]), dy = wf_rows_of(c, &c->dout[0]);
    if (!ids.data || !dy.data)
        return WF_ERR_MEMORY;
    bool add, apart = false;
    wf_array dw = wf_grad_into(c, 0, &add), target = dw;
    if (!dw.data)
        return WF_ERR_MEMORY;
    if (!wf_array_is_dense(&dw)) { /* the weight is a view */
        apart = true;
        dw = wf_grad_new(c, 0);
        if (!dw.data)
            return WF_ERR_MEMORY;
        if (add)
            wf_array_copy(&dw, &target);
    }
    int64_t v = dw.dim[0], d = dw.dim[1];
    if (!add)
        wf_parallel_ranges(v * d, ZERO_BLOCK, 0.05 * (double)v * (double)d, zero_body, dw.data);
    struct scatter s = {&dy, ids.data, dw.data, d};
    wf_parallel((d + COLUMNS - 1) / COLUMNS, 0.3 * (double)dy.dim[0] * (double)d, scatter_body, &s);
    if (apart)
        wf_array_copy(&target, &dw);
    return WF_OK;
}

#define IDS(n) .fill = {WF_FILL_NORMAL, WF_FILL_IDS}, .limit = {0, n}
const wf_op wf_op_embedding = {
    .name = "embedding", .reads_inputs = 1u << 1, .shape = embedding_shape, .forward = embedding_forward,
    .backward = embedding_backward,
    .cases = WF_CASES({"matrix", {{5, 4}, {2, 3}}, IDS(5)}, {"repeated ids", {{2, 3}, {11}}, IDS(2)}, {"one row", {{1, 1}, {3}}, IDS(1)},
                      {"one id", {{5, 4}, {-2}}, IDS(5)}, {"no ids", {{5, 4}, {2, -1}}, IDS(5)}, {"no columns", {{5, -1}, {3}}, IDS(5)},
                      {"odd", {{7, 33}, {3, 1, 5}}, IDS(7)}, {"wide", {{3, 70}, {9}}, IDS(3)})};

wf_tensor *wf_embedding(wf_tensor *weight, wf_tensor *ids)
{
    return wf_apply(&wf_op_embedding, NULL, 2, (wf_tensor *[]){weight, ids});
}
