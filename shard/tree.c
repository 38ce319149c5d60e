/* SPDX-License-Identifier: MIT */
/* Adds the gradients of an update in the order of a binary tree. tree.h describes the method. */
#include "tree.h"

#include <string.h>

#include <weft/compute.h>
#include <weft/internal/kernels.h>
#include <weft/internal/slab.h>
#include <weft/memory.h>

void tree_begin(struct ranks_tree *t)
{
    t->count = t->joins = 0;
}

struct join {
    const struct subtree *left; /* [joins]: added to the gradients, from the last to the first */
    int joins;                  /* number of subtrees to add */
    int k;                      /* index of the registry in subtree.slab */
    wf_grads *to;               /* the gradients */
    int64_t begin;              /* the first block to add */
};

static void join_block(void *ctx, int64_t i)
{
    const struct join *j = ctx;
    const struct wf_grads_block *b = &j->to->block[j->begin + i];
    wf_real *to = wf_grads_block_data(j->to, b);
    bool valid = j->to->valid[b->parameter];
    for (int n = j->joins - 1; n >= 0; n--) {
        const struct tree_slab *left = &j->left[n].slab[j->k];
        const wf_real *from = left->slab + (to - j->to->slab);
        if (!left->valid[b->parameter])
            continue;
        if (valid)
            wf_kernel->add(b->count, from, 1, to, 1, to);
        else
            memcpy(to, from, (size_t)b->count * sizeof *to);
        valid = true;
    }
}

static void join(const struct subtree *left, int joins, int k, wf_grads *to, int64_t begin, int64_t end)
{
    struct join j = {left, joins, k, to, begin};
    const double share = to->blocks > 0 ? (double)(end - begin) / (double)to->blocks : 0;
    if (joins > 0)
        wf_parallel(end - begin, 0.2 * (double)joins * share * (double)to->count, join_block, &j);
}

static void join_valid(const struct subtree *left, int joins, int k, wf_grads *to)
{
    for (int n = 0; n < joins; n++)
        for (int i = 0; i < to->parameters; i++)
            to->valid[i] |= left[n].slab[k].valid[i];
    to->finite = false;
}

static void free_slab(struct tree_slab *s)
{
    wf_free(s->slab);
    wf_free(s->valid);
    *s = (struct tree_slab){0};
}

/* Gives the slab the size of the gradients, which changes when parameters are frozen. */
static wf_status fit_slab(struct tree_slab *s, const wf_grads *grads, wf_error *error)
{
    if (s->slab && s->count == grads->count && s->parameters == grads->parameters)
        return WF_OK;
    free_slab(s);
    s->slab = wf_alloc_zero((size_t)grads->count + 1, sizeof *s->slab);
    s->valid = wf_alloc_zero((size_t)grads->parameters + 1, sizeof *s->valid);
    s->count = grads->count;
    s->parameters = grads->parameters;
    if (s->slab && s->valid)
        return WF_OK;
    free_slab(s);
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for the gradients of a subtree: %lld values", (long long)grads->count);
}

/* Moves the gradients into the slab by exchanging the memory of both. Afterwards grads hold no gradients. */
static void swap(struct tree_slab *s, wf_grads *grads)
{
    struct tree_slab was = *s;
    s->slab = grads->slab;
    s->valid = grads->valid;
    grads->slab = was.slab;
    grads->valid = was.valid;
    wf_grads_zero(grads);
}

bool tree_joins(struct span left, struct span right)
{
    return left.leaves == right.leaves && left.first + left.leaves == right.first && left.first % (2 * left.leaves) == 0;
}

int tree_spans(int64_t begin, int64_t end, struct span out[2 * TREE_LEVELS])
{
    int count = 0;
    for (int64_t leaf = begin; leaf < end; leaf++) {
        struct span s = {leaf, 1};
        for (; count > 0 && tree_joins(out[count - 1], s); count--)
            s = (struct span){out[count - 1].first, 2 * s.leaves};
        out[count++] = s;
    }
    return count;
}

/* Returns how many of the last subtrees in t->held form a larger subtree with the leaf, and sets *span to the leaves of this subtree. */
static int joins_of(const struct ranks_tree *t, int64_t leaf, struct span *span)
{
    int joins = 0;
    *span = (struct span){leaf, 1};
    for (; joins < t->count && tree_joins(t->held[t->count - 1 - joins].span, *span); joins++)
        *span = (struct span){t->held[t->count - 1 - joins].span.first, 2 * span->leaves};
    return joins;
}

wf_status tree_add(struct ranks_tree *t, int64_t leaf, wf_grads *const *grads, int count, wf_error *error)
{
    struct span span;
    const int joins = joins_of(t, leaf, &span);
    t->count -= joins;
    for (int k = 0; k < count; k++) {
        wf_grads_settle(grads[k]); /* applies a factor that wf_clip_norm left for this slab, because swap() gives grads another slab */
        join(&t->held[t->count], joins, k, grads[k], 0, grads[k]->blocks);
        join_valid(&t->held[t->count], joins, k, grads[k]);
    }
    struct subtree *s = &t->held[t->count++];
    s->span = span;
    for (int k = 0; k < count; k++) {
        if (fit_slab(&s->slab[k], grads[k], error) != WF_OK)
            return error->code;
        swap(&s->slab[k], grads[k]);
    }
    return WF_OK;
}

void tree_last(struct ranks_tree *t, int64_t leaf)
{
    struct span span;
    t->joins = joins_of(t, leaf, &span);
    t->count -= t->joins;
}

void tree_join(const struct ranks_tree *t, int k, wf_grads *grads, int64_t begin, int64_t end)
{
    join(&t->held[t->count], t->joins, k, grads, begin, end);
}

bool tree_valid(const struct ranks_tree *t, int k, const wf_grads *grads, int parameter)
{
    bool valid = grads->valid[parameter];
    for (int n = 0; n < t->joins && !valid; n++)
        valid = t->held[t->count + n].slab[k].valid[parameter];
    return valid;
}

void tree_joined(struct ranks_tree *t, wf_grads *const *grads, int count)
{
    for (int k = 0; k < count; k++)
        join_valid(&t->held[t->count], t->joins, k, grads[k]);
    t->joins = 0;
}

void tree_free(struct ranks_tree *t)
{
    for (int i = 0; i < 2 * TREE_LEVELS; i++)
        for (int k = 0; k < WF_RANKS_REGISTRIES; k++)
            free_slab(&t->held[i].slab[k]);
}
