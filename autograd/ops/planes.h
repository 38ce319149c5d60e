/* SPDX-License-Identifier: MIT */
/* Sequences [B,C,T] and pictures [B,C,H,W] as planes, for ops that work on each plane on its own: pooling.c and resize.c. */
#ifndef WEFT_OPS_PLANES_H
#define WEFT_OPS_PLANES_H

#include "common.h"

/* The number of planes, their size in operand 0, and their size in the result. A sequence is a plane of one row. */
struct planes {
    int64_t count, height, width, rows, cols;
};

static inline struct planes planes_of(const wf_call *c)
{
    const wf_array *x = &c->in[0], *y = &c->out[0];
    const bool two = x->ndim == 4;
    return (struct planes){x->dim[0] * x->dim[1], two ? x->dim[2] : 1, x->dim[x->ndim - 1], two ? y->dim[2] : 1, y->dim[y->ndim - 1]};
}

/* Refuses several rows of a result for a sequence: their author has probably given the number of steps first. */
static inline wf_status planes_want_rows(wf_call *c, int64_t rows)
{
    if (c->in[0].ndim == 4 || rows <= 1)
        return WF_OK;
    return wf_call_fail(c, WF_ERR_ARGUMENT,
                        "x is a sequence [B,C,T], of one row, but %lld rows were asked for: give 1 row, and the steps as columns",
                        (long long)rows);
}

/* For the transpose of such an op: its planes, whose result is the call's operand, and the call's result. `size` is that of the last two
 * dimensions of the result. */
static inline struct planes planes_swapped(const wf_call *c)
{
    const wf_array *dy = &c->in[0], *dx = &c->out[0];
    const bool two = dy->ndim == 4;
    return (struct planes){dy->dim[0] * dy->dim[1], two ? dx->dim[2] : 1, dx->dim[dx->ndim - 1], two ? dy->dim[2] : 1,
                           dy->dim[dy->ndim - 1]};
}

static inline wf_array planes_back(const wf_call *c, const int64_t size[2])
{
    wf_shape shape = wf_array_shape(&c->in[0]);
    for (int d = 2; d < shape.ndim; d++)
        shape.dim[d] = size[d - shape.ndim + 2];
    return wf_call_shape(WF_REAL, &shape);
}

/* Runs `body` over all planes in parallel; `cost` is the time in nanoseconds for each element of operand and result. */
static inline void planes_run(const struct planes *p, double cost, void (*body)(void *ctx, int64_t begin, int64_t end), void *ctx)
{
    const int64_t each = p->height * p->width + p->rows * p->cols;
    wf_parallel_ranges(p->count, WF_MAX(1, 16384 / WF_MAX(1, each)), cost * (double)p->count * (double)each, body, ctx);
}

#endif
