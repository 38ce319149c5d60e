/* SPDX-License-Identifier: MIT */
/* The gradients of an update, added as a binary tree. */
#include "tree.h"

#include <string.h>

#include <weft/compute.h>
#include <weft/internal/kernels.h>
#include <weft/internal/slab.h>
#include <weft/memory.h>

int64_t tree_leaves(int64_t parts)
{
    int64_t leaves = 1;
    while (leaves < 8 && parts % (2 * leaves) == 0)
        leaves *= 2;
    return leaves;
}

bool tree_fits(int64_t leaves, int64_t parts)
{
    return leaves > 0 && leaves <= (int64_t)1 << (TREE_LEVELS - 1) && (leaves & (leaves - 1)) == 0 && parts % leaves == 0;
}

int64_t tree_leaves_again(int64_t asked, int64_t was, int64_t parts)
{
    was = was > 0 ? was : 1;
    return asked > 0 ? asked : tree_fits(was, parts) ? was : tree_leaves(parts);
}

void tree_begin(struct tree *t)
{
    t->count = 0;
}

struct sum {
    wf_grads *to;
    const struct tree_slab *from;
};

static void sum_block(void *ctx, int64_t i)
{
    const struct sum *s = ctx;
    const struct wf_grads_block *b = &s->to->block[i];
    wf_real *to = wf_grads_block_data(s->to, b);
    const wf_real *from = s->from->slab + (to - s->to->slab);
    if (!s->from->valid[b->parameter])
        return;
    if (s->to->valid[b->parameter])
        wf_kernel->add(b->count, from, 1, to, 1, to);
    else
        memcpy(to, from, (size_t)b->count * sizeof *to);
}

void tree_sum(wf_grads *to, const struct tree_slab *from)
{
    struct sum s = {to, from};
    wf_parallel(to->blocks, 0.2 * (double)to->count, sum_block, &s);
    for (int i = 0; i < to->parameters; i++)
        to->valid[i] |= from->valid[i];
    to->finite = false;
}

static void free_slab(struct tree_slab *s)
{
    wf_free(s->slab);
    wf_free(s->valid);
    *s = (struct tree_slab){0};
}

/* Memory of the size of the gradients, which change with what is frozen. */
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
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for the gradients of another part: %lld values", (long long)grads->count);
}

/* Puts the gradients aside; grads have the slab's old memory, and hold nothing. */
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

wf_status tree_add(struct tree *t, int64_t leaf, bool last, wf_grads *const *grads, int count, wf_error *error)
{
    struct span span = {leaf, 1};
    for (int k = 0; k < count; k++)
        wf_grads_settle(grads[k]);
    for (; t->count > 0 && tree_joins(t->held[t->count - 1].span, span); t->count--) {
        const struct subtree *left = &t->held[t->count - 1];
        for (int k = 0; k < count; k++)
            tree_sum(grads[k], &left->slab[k]);
        span = (struct span){left->span.first, 2 * span.leaves};
    }
    if (last)
        return WF_OK;
    struct subtree *s = &t->held[t->count++];
    s->span = span;
    for (int k = 0; k < count; k++) {
        if (fit_slab(&s->slab[k], grads[k], error) != WF_OK)
            return error->code;
        swap(&s->slab[k], grads[k]);
    }
    return WF_OK;
}

void tree_free(struct tree *t)
{
    for (int i = 0; i < 2 * TREE_LEVELS; i++)
        for (int k = 0; k < WF_FIT_REGISTRIES; k++)
            free_slab(&t->held[i].slab[k]);
}
