/* SPDX-License-Identifier: MIT */
/* Operands for the ops of random graphs. */
#ifndef TESTS_RANDOM_GRAPHS_CHOOSE_H
#define TESTS_RANDOM_GRAPHS_CHOOSE_H

#include "random_graphs.h"

/* One of these dims; -1 leaves a dim open. NULL where 16 tries find none. */
static inline wf_tensor *of_dims(struct graph *g, int ndim, int64_t d0, int64_t d1, int64_t d2)
{
    const int64_t dims[] = {d0, d1, d2};
    for (int i = 0; i < 16; i++) {
        wf_tensor *x = graph_any(g);
        bool fits = wf_ndim(x) == ndim;
        for (int d = 0; d < ndim && fits; d++)
            fits = dims[d] < 0 || wf_dim(x, d) == dims[d];
        if (fits)
            return x;
    }
    return NULL;
}

/* One whose last dims are these: d1 the last, d0 that before, -1 open. */
static inline wf_tensor *ending(struct graph *g, int64_t d0, int64_t d1)
{
    for (int i = 0; i < 16; i++) {
        wf_tensor *x = graph_any(g);
        if (wf_ndim(x) >= (d0 == 0 ? 1 : 2) && (d0 <= 0 || wf_dim(x, -2) == d0) && (d1 < 0 || wf_dim(x, -1) == d1))
            return x;
    }
    return NULL;
}

/* One that broadcasts with a. */
static inline wf_tensor *beside(struct graph *g, wf_tensor *a)
{
    wf_shape x = wf_shape_of(a), out;
    for (int i = 0; i < 16; i++) {
        wf_tensor *b = graph_any(g);
        wf_shape y = wf_shape_of(b);
        if (wf_shape_broadcast(&x, &y, &out) && wf_shape_count(&out) <= MOST)
            return b;
    }
    return a;
}

static inline wf_tensor *positive(wf_tensor *x)
{
    return wf_affine(wf_mul(x, x), 1, 0.7);
}

static inline wf_tensor *ids(struct graph *g, const wf_shape *shape, int64_t limit, int32_t ignore)
{
    int32_t id[MOST];
    for (int64_t i = 0, n = wf_shape_count(shape); i < n; i++)
        id[i] = ignore && !below(g, 4) ? ignore : (int32_t)below(g, limit);
    return wf_ids_of(g->tape, id, shape);
}

/* A tensor of this shape, of elements of one that is there. */
static inline wf_tensor *of_elements(struct graph *g, const wf_shape *shape)
{
    wf_tensor *x = wf_reshape(graph_any(g), -1);
    const wf_shape flat = {1, {wf_shape_count(shape)}};
    const int64_t limit = wf_dim(x, 0), first = below(g, limit), step = 1 + below(g, limit);
    int32_t id[MOST];
    for (int64_t i = 0; i < flat.dim[0]; i++)
        id[i] = (int32_t)((first + i * step) % limit);
    return wf_reshape_to(wf_index_select(x, 0, wf_ids_of(g->tape, id, &flat)), shape);
}

static inline wf_shape without_last(const wf_tensor *x)
{
    wf_shape s = wf_shape_of(x);
    s.ndim--;
    return s;
}

#endif
