/* SPDX-License-Identifier: MIT */
/* The functions that a phase of an update calls. They add up the gradients of the micro-batches of each leaf, then the sums of leaves in
 * the order of the tree, and at the end the sums of all ranks. */
#include <inttypes.h>
#include <string.h>

#include <weft/internal/averages.h>
#include <weft/internal/buffers.h>
#include <weft/memory.h>

#include "private.h"

int64_t wf_leaves(int64_t accumulate)
{
    int64_t leaves = 1;
    while (leaves < 8 && accumulate % (2 * leaves) == 0)
        leaves *= 2;
    return leaves;
}

bool wf_leaves_fit(int64_t leaves, int64_t accumulate)
{
    return leaves > 0 && leaves <= (int64_t)1 << (TREE_LEVELS - 1) && (leaves & (leaves - 1)) == 0 && accumulate % leaves == 0;
}

int64_t wf_leaves_again(int64_t asked, int64_t was, int64_t accumulate)
{
    was = was > 0 ? was : 1;
    return asked > 0 ? asked : wf_leaves_fit(was, accumulate) ? was : wf_leaves(accumulate);
}

/* Where the changes of buffers begin in a leaf, in bytes: behind the caller's scalars. */
static size_t averages_at(const struct wf_ranks *ranks)
{
    return (ranks->leaf_bytes + sizeof(double) - 1) / sizeof(double) * sizeof(double);
}

wf_status wf_ranks_cut(struct wf_ranks *ranks, int64_t accumulate, int64_t leaves)
{
    ranks->accumulate = accumulate;
    ranks->leaves = leaves;
    ranks->leaf_size = averages_at(ranks);
    for (int k = 0; k < ranks->registries; k++)
        ranks->leaf_size += (size_t)wf_registry_averages(ranks->registry[k]) * sizeof(double);
    ranks->leaf = wf_alloc_zero((size_t)leaves, ranks->leaf_size);
    ranks->tree = wf_alloc_zero(1, sizeof *ranks->tree);
    if (ranks->leaf && ranks->tree)
        return WF_OK;
    return wf_error_set(ranks->error, WF_ERR_MEMORY, "no memory for the losses of %" PRId64 " leaves", leaves);
}

struct wf_range own_leaves(const struct wf_ranks *ranks, int rank)
{
    return (struct wf_range){ranks->leaves * rank / ranks->size, ranks->leaves * (rank + 1) / ranks->size};
}

static int64_t per_leaf(const struct wf_ranks *ranks)
{
    return ranks->accumulate / ranks->leaves;
}

struct wf_range wf_ranks_mine(const struct wf_ranks *ranks)
{
    const struct wf_range leaves = own_leaves(ranks, ranks->rank);
    return (struct wf_range){leaves.begin * per_leaf(ranks), leaves.end * per_leaf(ranks)};
}

/* --- a phase -------------------------------------------------------------------------------------------------------- */

wf_status wf_ranks_begin(struct wf_ranks *ranks, wf_grads *const *grads, int count)
{
    const struct wf_range mine = own_leaves(ranks, ranks->rank);
    if (wf_ranks_shard(ranks)) /* a registry that has got gradients since the last update needs shards */
        ranks_lost(ranks);
    memcpy(ranks->grads, grads, (size_t)count * sizeof *grads);
    ranks->count = count;
    tree_begin(ranks->tree);
    if (mine.end - mine.begin == 1)
        tree_last(ranks->tree, mine.begin);
    return reduction_begin(ranks);
}

void *wf_ranks_leaf(struct wf_ranks *ranks, int64_t i)
{
    void *leaf = ranks->leaf + (size_t)(i / per_leaf(ranks)) * ranks->leaf_size;
    return i % per_leaf(ranks) == 0 ? memset(leaf, 0, ranks->leaf_bytes) : leaf;
}

const void *wf_ranks_leaf_at(const struct wf_ranks *ranks, int64_t leaf)
{
    return ranks->leaf + (size_t)leaf * ranks->leaf_size;
}

/* --- changes of buffers ---------------------------------------------------------------------------------------------- */

static double *averages_of(const struct wf_ranks *ranks, int64_t leaf)
{
    return (double *)(ranks->leaf + (size_t)leaf * ranks->leaf_size + averages_at(ranks));
}

/* Moves the changes that the micro-batches of a leaf have asked for from the gradients to the leaf. */
static void take_averages(const struct wf_ranks *ranks, int64_t leaf)
{
    double *to = averages_of(ranks, leaf);
    for (int k = 0; k < ranks->count; k++) {
        struct wf_averages *a = ranks->grads[k]->averages;
        if (!a)
            continue;
        memcpy(to, a->number, (size_t)a->numbers * sizeof *to);
        wf_averages_clear(a);
        to += a->numbers;
    }
}

/* Moves the changes of all leaves, in their order, to the gradients. */
static void give_averages(const struct wf_ranks *ranks)
{
    int64_t at = 0;
    for (int k = 0; k < ranks->count; k++) {
        struct wf_averages *a = ranks->grads[k]->averages;
        for (int64_t leaf = 0; a && leaf < ranks->leaves; leaf++)
            wf_averages_join(a, averages_of(ranks, leaf) + at);
        at += a ? a->numbers : 0;
    }
}

/* --- a micro-batch ---------------------------------------------------------------------------------------------------- */

wf_status wf_ranks_backward(struct wf_ranks *ranks, int64_t i, wf_tensor *loss)
{
    const bool last = i == wf_ranks_mine(ranks).end - 1; /* after its backward the gradients change no more, so they can be sent */
    if (last)
        reduction_listen(ranks, true);
    const wf_status status = wf_backward(loss);
    if (last)
        reduction_listen(ranks, false);
    return status;
}

wf_status wf_ranks_add(struct wf_ranks *ranks, int64_t i)
{
    const int64_t leaf = i / per_leaf(ranks), end = own_leaves(ranks, ranks->rank).end;
    if ((i + 1) % per_leaf(ranks) != 0)
        return WF_OK;
    take_averages(ranks, leaf);
    if (leaf == end - 1)
        return WF_OK;
    if (tree_add(ranks->tree, leaf, ranks->grads, ranks->count, ranks->error))
        return ranks->error->code;
    if (leaf + 1 == end - 1)
        tree_last(ranks->tree, leaf + 1);
    return WF_OK;
}

wf_status wf_ranks_finish(struct wf_ranks *ranks)
{
    if (ranks->size == 1 && !ranks->error->code) {
        for (int k = 0; k < ranks->count; k++)
            tree_join(ranks->tree, k, ranks->grads[k], 0, ranks->grads[k]->blocks);
        tree_joined(ranks->tree, ranks->grads, ranks->count);
    }
    if (reduction_end(ranks) || wf_ranks_settle(ranks)) /* new values that no forward has read may still be under way */
        return ranks->error->code;
    give_averages(ranks);
    layouts_activate(ranks, true);
    return WF_OK;
}

wf_status wf_ranks_publish(struct wf_ranks *ranks, bool values)
{
    layouts_activate(ranks, false);
    return values ? gather_values(ranks) : ranks->error->code;
}
