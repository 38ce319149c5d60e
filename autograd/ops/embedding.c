/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "common.h"

static wf_status embedding_shape(wf_call *c)
{
    if (wf_want(c, 0, WF_REAL) != WF_OK || wf_want(c, 1, WF_I32) != WF_OK)
        return WF_ERR_ARGUMENT;
    wf_shape shape = wf_array_shape(&c->in[1]);
    if (c->in[0].ndim != 2 || shape.ndim == WF_MAX_DIMS || wf_shape_count(&shape) > INT32_MAX)
        return wf_call_fail(c, WF_ERR_SHAPE, "weight must be [V,D], and ids must have at most %d dimensions", WF_MAX_DIMS - 1);
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
    wf_array ids = wf_call_contiguous(c, &c->in[1]);
    if (!ids.data)
        return WF_ERR_MEMORY;
    wf_status status = wf_check_ids(c, &ids, "ids", c->in[0].dim[0], NULL, NULL);
    int64_t n = wf_array_count(&ids), d = c->in[0].dim[1];
    if (status != WF_OK || n * d == 0)
        return status;
    struct gather g = {&c->in[0], ids.data, c->out[0].data};
    wf_parallel_ranges(n, 1 + 8192 / d, 0.07 * (double)n * (double)d, gather_body, &g);
    return WF_OK;
}

enum { COLUMNS = 256, BUCKETS = 16, ZERO_BLOCK = 1 << 16 };

static void zero_body(void *ctx, int64_t begin, int64_t end)
{
    memset((wf_real *)ctx + begin, 0, (size_t)(end - begin) * sizeof(wf_real));
}

/* Ids go into buckets by their low bits, and a block of work is a bucket and some columns: no two blocks write to the same
 * place, and a place's additions come in the order of positions whoever does them. */
struct scatter {
    const wf_array *dy; /* [n, D] */
    const int32_t *id;
    const int32_t *position; /* by bucket, in order */
    int64_t begin[BUCKETS + 1];
    wf_real *dw;
};

static void scatter_body(void *ctx, int64_t block)
{
    const struct scatter *s = ctx;
    int64_t d = s->dy->dim[1], bucket = block % BUCKETS, from = block / BUCKETS * COLUMNS, n = d - from < COLUMNS ? d - from : COLUMNS;
    for (int64_t k = s->begin[bucket]; k < s->begin[bucket + 1]; k++) {
        int64_t i = s->position[k];
        wf_real *to = s->dw + s->id[i] * d + from;
        wf_kernel->add(n, to, 1, (const wf_real *)s->dy->data + i * s->dy->stride[0] + from, 1, to);
    }
}

static bool scatter(wf_call *c, const wf_array *dy, const int32_t *id, wf_real *dw)
{
    struct scatter s = {.dy = dy, .id = id, .dw = dw};
    int64_t n = dy->dim[0], d = dy->dim[1], next[BUCKETS];
    int32_t *position = wf_call_temp(c, WF_I32, &(wf_shape){1, {n}}).data;
    if (!position)
        return false;
    for (int64_t i = 0; i < n; i++)
        s.begin[id[i] % BUCKETS + 1]++;
    for (int b = 0; b < BUCKETS; b++) {
        next[b] = s.begin[b];
        s.begin[b + 1] += s.begin[b];
    }
    for (int64_t i = 0; i < n; i++)
        position[next[id[i] % BUCKETS]++] = (int32_t)i;
    s.position = position;
    wf_parallel((d + COLUMNS - 1) / COLUMNS * BUCKETS, 0.08 * (double)n * (double)(d + 30), scatter_body, &s);
    return true;
}

/* y_i = w[id_i], so dw[v] is the sum of dy_i over the i with id_i = v. */
static wf_status embedding_backward(wf_call *c)
{
    wf_array ids = wf_call_contiguous(c, &c->in[1]), dy = wf_rows_of(c, &c->dout[0]);
    if (!ids.data || !dy.data)
        return WF_ERR_MEMORY;
    struct contiguous_grad dw;
    if (!wf_contiguous_grad(c, 0, &dw))
        return WF_ERR_MEMORY;
    int64_t count = wf_array_count(&dw.contiguous);
    if (!dw.add)
        wf_parallel_ranges(count, ZERO_BLOCK, 0.05 * (double)count, zero_body, dw.contiguous.data);
    if (!scatter(c, &dy, ids.data, dw.contiguous.data))
        return WF_ERR_MEMORY;
    wf_contiguous_grad_done(&dw);
    return WF_OK;
}

#define IDS(n) .fill = {WF_FILL_NORMAL, WF_FILL_IDS}, .limit = {0, n}
const wf_op wf_op_embedding = {.name = "embedding",
                               .reads = WF_READS_INPUT(1),
                               .shape = embedding_shape,
                               .forward = embedding_forward,
                               .backward = embedding_backward,
                               .cases = WF_CASES({"matrix", {{5, 4}, {2, 3}}, IDS(5)}, {"repeated ids", {{2, 3}, {11}}, IDS(2)},
                                                 {"one row", {{1, 1}, {3}}, IDS(1)}, {"one id", {{5, 4}, {-2}}, IDS(5)},
                                                 {"no ids", {{5, 4}, {2, -1}}, IDS(5)}, {"no columns", {{5, -1}, {3}}, IDS(5)},
                                                 {"odd", {{7, 33}, {3, 1, 5}}, IDS(7)}, {"wide", {{3, 70}, {9}}, IDS(3)})};

wf_tensor *wf_embedding(wf_tensor *weight, wf_tensor *ids)
{
    return wf_apply(&wf_op_embedding, NULL, 2, (wf_tensor *[]){weight, ids});
}
