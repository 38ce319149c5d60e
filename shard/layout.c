/* SPDX-License-Identifier: MIT */
/* Divides a registry into shards: computes which rank owns which blocks, and lets the optimisers keep only the moments
 * of this rank's shard. */
#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/memory.h>

#include "private.h"

/* --- layout -------------------------------------------------------------------------------------------------------- */

int64_t layout_bound(const struct ranks_layout *l, int64_t bucket, int rank)
{
    const int64_t begin = l->bucket[bucket].begin, end = l->bucket[bucket + 1].begin;
    if (l->bucket[bucket].owner >= 0)
        return rank <= l->bucket[bucket].owner ? begin : end;
    return begin + (end - begin) * rank / l->ranks->size;
}

int64_t layout_bucket(const struct ranks_layout *l, int64_t block)
{
    int64_t low = 0, high = l->buckets; /* the bucket is in low .. high - 1 */
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (l->bucket[middle].begin <= block)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int layout_owner(const struct ranks_layout *l, int64_t block)
{
    const int64_t bucket = layout_bucket(l, block);
    int rank = 0;
    while (block >= layout_bound(l, bucket, rank + 1))
        rank++;
    return rank;
}

enum { SHARE_BLOCKS = 64 }; /* the largest number of blocks in a share: 2 MiB in float */

static void free_layout(struct ranks_layout *l)
{
    wf_free(l->shard.first);
    wf_free(l->shard.before);
    wf_free(l->shard.whole);
    wf_free(l->bucket);
    wf_free(l->block);
    wf_free(l->partial);
    wf_free(l->at);
    wf_free(l->transfer);
    *l = (struct ranks_layout){0};
}

static int64_t elements(const wf_registry *registry, int i)
{
    return wf_registry_is_buffer(registry, i) ? 0 : wf_array_count(&wf_parameter_info(wf_registry_at(registry, i))->value);
}

/* Whether an optimiser updates a parameter as a whole, so that all its blocks need one owner. */
static bool is_whole(const struct wf_ranks *ranks, const wf_registry *registry, int i)
{
    bool whole = ranks->rule && wf_rule_is_whole(ranks->rule, ranks->rule_ctx, wf_registry_at(registry, i));
    for (int k = 0; k < ranks->optimizers; k++)
        whole |= wf_optimizer_is_whole(ranks->optimizer[k], registry, i);
    return whole && !wf_registry_is_buffer(registry, i);
}

/* Chooses the owners of whole parameters: the largest parameter first, each to the rank with the least so far. owner[i] becomes -1 for a
 * parameter whose blocks are divided among the ranks. `load` [ranks] is zero. */
static void choose_owners(const struct ranks_layout *l, int *owner, int64_t *load)
{
    const int64_t *first = l->shard.first;
    for (int i = 0; i < l->shard.parameters; i++)
        owner[i] = -1;
    for (;;) {
        int largest = -1, rank = 0;
        for (int i = 0; i < l->shard.parameters; i++)
            if (l->shard.whole[i] && owner[i] < 0 && (largest < 0 || first[i + 1] - first[i] > first[largest + 1] - first[largest]))
                largest = i;
        if (largest < 0)
            break;
        for (int r = 1; r < l->ranks->size; r++)
            rank = load[r] < load[rank] ? r : rank;
        owner[largest] = rank;
        load[rank] += first[largest + 1] - first[largest];
    }
    for (int i = 1; i < l->shard.parameters; i++) /* a single block between whole parameters, such as a bias, makes no bucket by itself */
        if (owner[i] < 0 && first[i + 1] - first[i] == 1)
            owner[i] = owner[i - 1];
}

/* Adds buckets with the blocks begin .. end - 1, of at most `most` blocks each; owner < 0: divided among the ranks. The last bucket grows
 * instead if it has the same owner and room. */
static bool add_buckets(struct ranks_layout *l, int64_t begin, int64_t end, int64_t most, int owner)
{
    struct layout_bucket *last = l->buckets > 0 ? &l->bucket[l->buckets - 1] : NULL;
    const int64_t count = (end - begin + most - 1) / most;
    if (last && owner >= 0 && last->owner == owner && end - last->begin <= most)
        return true;
    for (int64_t i = 0; i < count; i++) {
        if (!wf_grow(&l->bucket, &l->bucket_room, l->buckets + 2, sizeof *l->bucket)) /* + 1 for the end of the last one */
            return false;
        l->bucket[l->buckets++] = (struct layout_bucket){begin + (end - begin) * i / count, owner};
    }
    return true;
}

/* Divides the blocks into buckets. A bucket has at most 256 blocks (8 MiB in float), or one for each rank if there are more ranks; a bucket
 * with one owner has the size of a share. */
static bool make_buckets(struct ranks_layout *l)
{
    const int size = l->ranks->size;
    const int64_t share = WF_MAX(1, WF_MIN(256 / size, SHARE_BLOCKS)), *first = l->shard.first;
    int *owner = wf_alloc_zero((size_t)l->shard.parameters + 1, sizeof *owner);
    int64_t *load = wf_alloc_zero((size_t)size, sizeof *load);
    bool ready = owner && load;
    if (ready)
        choose_owners(l, owner, load);
    for (int i = 0, next; ready && i < l->shard.parameters; i = next) {
        for (next = i + 1; next < l->shard.parameters && owner[i] < 0 && owner[next] < 0;)
            next++;
        ready = add_buckets(l, first[i], first[next], owner[i] < 0 ? share * size : share, owner[i]);
    }
    if (ready && l->buckets == 0) /* there are no blocks */
        ready = wf_grow(&l->bucket, &l->bucket_room, 2, sizeof *l->bucket) && l->buckets++ == 0;
    if (ready && l->blocks == 0)
        l->bucket[0] = (struct layout_bucket){0, -1};
    if (ready)
        l->bucket[l->buckets] = (struct layout_bucket){l->blocks, -1};
    wf_free(owner);
    wf_free(load);
    l->arrived = l->buckets;
    return ready;
}

static wf_status lay_out(struct ranks_layout *l, struct wf_ranks *ranks, const wf_registry *registry, wf_error *error)
{
    const int parameters = wf_registry_count(registry);
    int64_t blocks = 0, n = 0;
    for (int i = 0; i < parameters; i++)
        blocks += (elements(registry, i) + WF_GRADS_BLOCK - 1) / WF_GRADS_BLOCK;
    *l = (struct ranks_layout){.ranks = ranks, .registry = registry, .blocks = blocks};
    l->shard = (struct wf_shard){.parameters = parameters, .share = gather_partial, .ctx = l};
    l->shard.first = wf_alloc_zero((size_t)parameters + 1, sizeof *l->shard.first);
    l->shard.before = wf_alloc_zero((size_t)blocks + 1, sizeof *l->shard.before);
    l->shard.whole = wf_alloc_zero((size_t)parameters + 1, sizeof *l->shard.whole);
    l->block = wf_alloc_zero((size_t)blocks + 1, sizeof *l->block);
    l->partial = wf_alloc_zero((size_t)blocks + 1, sizeof *l->partial);
    l->at = wf_alloc_zero((size_t)ranks->size + 1, sizeof *l->at);
    bool ready = l->shard.first && l->shard.before && l->shard.whole && l->block && l->partial && l->at;
    for (int i = 0; ready && i < parameters; i++) {
        const int64_t count = elements(registry, i);
        l->shard.whole[i] = is_whole(ranks, registry, i);
        for (int64_t at = 0; at < count; at += WF_GRADS_BLOCK)
            l->block[n++] = (struct wf_grads_block){i, at, WF_MIN(count - at, WF_GRADS_BLOCK)};
        l->shard.first[i + 1] = n;
    }
    ready = ready && make_buckets(l);
    l->transfer = ready ? wf_alloc_zero((size_t)l->buckets, sizeof *l->transfer) : NULL;
    if (!l->transfer) {
        free_layout(l);
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the shards of %d processes", ranks->size);
    }
    for (int64_t b = 0; b < blocks; b++)
        l->shard.before[b + 1] = l->shard.before[b] + (layout_owner(l, b) == ranks->rank);
    return WF_OK;
}

/* Gives the registry's gradients this rank's shard, and lets the optimisers keep only the moments of it. */
static wf_status shard(struct wf_ranks *ranks, int k, wf_error *error)
{
    struct ranks_layout *l = &ranks->layout[k];
    wf_registry *registry = ranks->registry[k];
    wf_grads *grads = wf_registry_grads(registry);
    if (l->registry || !grads)
        return WF_OK;
    if (lay_out(l, ranks, registry, error))
        return error->code;
    int done = 0;
    while (done < ranks->optimizers && wf_optimizer_shard(ranks->optimizer[done], registry, &l->shard, error) == WF_OK)
        done++;
    if (done == ranks->optimizers) {
        grads->shard = &l->shard;
        reduction_free(ranks); /* its buffers may be too small for this registry; the next phase allocates them again */
        return WF_OK;
    }
    while (done > 0)
        (void)!wf_optimizer_shard(ranks->optimizer[--done], registry, NULL, NULL);
    free_layout(l);
    return error->code;
}

wf_status wf_ranks_shard(struct wf_ranks *ranks)
{
    wf_error why = {0};
    if (ranks->size == 1)
        return WF_OK;
    if (!ranks->layout && !(ranks->layout = wf_alloc_zero(WF_RANKS_REGISTRIES, sizeof *ranks->layout)))
        return wf_error_set(ranks->error, WF_ERR_MEMORY, "no memory for the shards of %d processes", ranks->size);
    for (int k = 0; k < ranks->registries; k++)
        if (shard(ranks, k, &why))
            return wf_error_set(ranks->error, why.code, "%s", why.message);
    return WF_OK;
}

void layouts_activate(struct wf_ranks *ranks, bool active)
{
    for (int k = 0; ranks->layout && k < WF_RANKS_REGISTRIES; k++)
        ranks->layout[k].shard.active = active;
}

/* --- the end ------------------------------------------------------------------------------------------------------- */

/* Whether *why is WF_OK on every rank. It holds an error on a rank whose options were refused, or that lacks shards or memory. All ranks
 * call this function, even after a failed training. */
static bool all_are_well(struct wf_ranks *ranks, const wf_error *why)
{
    const wf_error was = *ranks->error;
    const bool agreed = ranks->agreed;
    *ranks->error = *why;
    ranks->agreed = false;
    const bool well = wf_ranks_agree(ranks) == WF_OK;
    if (was.code != WF_OK) { /* keep the error that ended the training */
        *ranks->error = was;
        ranks->agreed = agreed;
    }
    return well;
}

void layouts_free(struct wf_ranks *ranks, bool whole)
{
    wf_error why = {0};
    if (ranks->registries == 0)
        wf_error_set(&why, WF_ERR_STATE, "the options were refused here");
    for (int k = 0; k < ranks->registries; k++) {
        const wf_grads *grads = wf_registry_grads(ranks->registry[k]);
        if (grads && !grads->shard)
            wf_error_set(&why, WF_ERR_STATE, "registry %d has no shards", k);
    }
    for (int k = 0; ranks->layout && k < WF_RANKS_REGISTRIES; k++) {
        const wf_registry *registry = ranks->layout[k].registry;
        wf_grads *grads = registry ? wf_registry_grads(registry) : NULL;
        for (int i = 0; grads && i < ranks->optimizers; i++)
            (void)!wf_optimizer_shard(ranks->optimizer[i], registry, NULL, &why);
        if (grads)
            grads->shard = NULL;
    }
    whole = whole && ranks->open && !ranks->lost && all_are_well(ranks, &why);
    for (int k = 0; ranks->layout && k < WF_RANKS_REGISTRIES; k++) {
        if (whole && ranks->layout[k].registry)
            gather_moments(ranks, &ranks->layout[k]);
        free_layout(&ranks->layout[k]);
    }
    wf_free(ranks->layout);
    ranks->layout = NULL;
}
