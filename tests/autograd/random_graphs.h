/* SPDX-License-Identifier: MIT */
/* Random graphs over all differentiable ops, for tests of gradients: a graph is a function of a seed and of the values of its leaves.
 *
 * A graph is built once at its base point (`moving` = -1) and again with one leaf moved. What must not follow a moved leaf is noted at
 * the base point and read from the notes later: constants (wf_detach, attention weights), and the factors that keep values small. */
#ifndef TESTS_RANDOM_GRAPHS_H
#define TESTS_RANDOM_GRAPHS_H

#include <weft/nn.h>
#include <weft/op.h>
#include <weft/random.h>

enum { LEAVES = 64, PARTS = 48 /* checkpoints */, POOL = 96, MOST = 400 /* elements of a tensor */ };

struct leaf {
    const char *what;
    wf_tensor *tensor; /* of the base run */
    wf_real *value;    /* of the base point */
    int64_t count;
};

/* The function of a checkpoint: of x, another tensor and modules. */
struct checkpointed {
    struct graph *g;
    int kind, inner; /* inner: of a checkpoint within it; -1: there is none */
    wf_tensor *other;
};

struct graph {
    wf_tape *tape;     /* of the seed: */
    wf_tape *tapes[2]; /* the second gives up values of any size in backward, and erases them */
    wf_registry *registry;
    uint64_t seed;
    wf_rng rng;          /* of the structure, which depends on the seed alone */
    bool train;          /* with dropout */
    bool differentiates; /* a result is a gradient, so every pass has to record */
    const wf_op *prefer; /* the op in question: graphs are short, and many of their ops are this one; NULL: there is none */
    struct leaf leaf[LEAVES];
    int leaves, parameters, ops;
    wf_tensor *pool[POOL];
    bool chosen[POOL]; /* as an operand */
    int pooled, given; /* tensors; those that are no result of an op */
    wf_tensor *first;  /* an input that needs a gradient */
    struct checkpointed part[PARTS];
    int parts;
    wf_tensor *output[2];     /* losses; the second may be NULL */
    wf_tensor *weight;        /* the gradient of the objective with respect to output[0]; NULL: ones */
    int moving;               /* this leaf stands at value + step * direction; -1: none does */
    const wf_real *direction; /* of `moving` */
    double step;
    wf_real *notes;
    int64_t noted, room;
    char text[8000]; /* the ops of the base run */
    size_t written;
    struct {
        struct wf_linear linear;
        struct wf_mha self, cross;
        struct wf_ffn ffn[5];
        struct wf_rms_norm rms;
        struct wf_layer_norm norm;
    } module;
};

struct graph *graph_new(void);
void graph_free(struct graph *g);
/* A pass on g's tape: leaves, ops and outputs of the graph `g->seed`. Returns the objective: the sum of the outputs' elements, weighted. */
double graph_run(struct graph *g, wf_mode mode);

/* --- for the ops ---------------------------------------------------------------------------------------------------- */
static inline int64_t below(struct graph *g, int64_t n)
{
    return (int64_t)wf_rng_below(&g->rng, (uint64_t)n);
}
static inline int64_t count_of(const wf_tensor *x)
{
    wf_shape s = wf_shape_of(x);
    return wf_shape_count(&s);
}
/* One of the tensors so far, more often a late one. */
wf_tensor *graph_any(struct graph *g);
/* Adds a result to the tensors so far: every one goes through here. Its values have to be finite; large ones are scaled down to 3, so that
 * chains of products and exponentials stay in the range of float, and smooth at the steps of the differences: exp(exp(x / 2) / 2), of two
 * checkpoints, is above 1e50 at x = 11. */
void graph_put(struct graph *g, wf_tensor *x);
/* One more tensor, of a random op, and the op's name; NULL where no operands fit. */
wf_tensor *graph_op(struct graph *g, const char **name);
/* random_graphs_cases.c: any op of ops.def, and its name. */
wf_tensor *graph_case(struct graph *g, const char **name);
/* random_graphs_blocks.c */
wf_tensor *graph_packed_attention(struct graph *g);
wf_tensor *graph_recurrent(struct graph *g);
wf_tensor *graph_selective_scan(struct graph *g);
wf_tensor *graph_attention(struct graph *g);
wf_tensor *graph_losses(struct graph *g);
wf_tensor *graph_modules(struct graph *g);
wf_tensor *graph_released(struct graph *g);
wf_tensor *graph_without_gradient(struct graph *g);
wf_tensor *graph_checkpoint(struct graph *g);
/* Constants, as the gradient check fills an operand with reals. */
const wf_real *graph_values(struct graph *g, enum wf_fill fill, int64_t count);
/* The value of x at the base point, a constant. */
wf_tensor *graph_fixed(struct graph *g, wf_tensor *x);
/* x, whose gradient is checked too: what is added to it is a leaf whose value is 0. */
wf_tensor *graph_probed(struct graph *g, wf_tensor *x);

#endif
