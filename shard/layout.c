/* SPDX-License-Identifier: MIT */
/* Divides a registry into shards: computes which rank owns which blocks, and lets the optimisers keep only the moments
 * of this rank's shard. */
#include <weft/internal/minmax.h>
#include <weft/memory.h>

#include "private.h"

/* --- layout -------------------------------------------------------------------------------------------------------- */

int64_t layout_bound(const struct ranks_layout *l, int64_t bucket, int rank)
{
    const int64_t begin = l->blocks * bucket / l->buckets, end = l->blocks * (bucket + 1) / l->buckets;
    return begin + (end - begin) * rank / l->ranks->size;
}

int64_t layout_bucket(const struct ranks_layout *l, int64_t block)
{
    int64_t bucket = block * l->buckets / l->blocks; /* an estimate, which the loops correct */
    while (bucket + 1 < l->buckets && block >= layout_bound(l, bucket + 1, 0))
        bucket++;
    while (block < layout_bound(l, bucket, 0))
        bucket--;
    return bucket;
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

static wf_status lay_out(struct ranks_layout *l, struct wf_ranks *ranks, const wf_registry *registry, wf_error *error)
{
    const int parameters = wf_registry_count(registry);
    /* A bucket has at most 256 blocks (8 MiB in float), or one for each rank if there are more ranks. */
    const int64_t share = WF_MAX(1, WF_MIN(256 / ranks->size, SHARE_BLOCKS));
    int64_t blocks = 0;
    for (int i = 0; i < parameters; i++)
        blocks += (elements(registry, i) + WF_GRADS_BLOCK - 1) / WF_GRADS_BLOCK;
    *l = (struct ranks_layout){.ranks = ranks, .registry = registry, .blocks = blocks};
    l->shard = (struct wf_shard){.parameters = parameters, .share = gather_partial, .ctx = l};
    l->shard.first = wf_alloc_zero((size_t)parameters + 1, sizeof *l->shard.first);
    l->shard.before = wf_alloc_zero((size_t)blocks + 1, sizeof *l->shard.before);
    l->block = wf_alloc_zero((size_t)blocks + 1, sizeof *l->block);
    l->partial = wf_alloc_zero((size_t)blocks + 1, sizeof *l->partial);
    l->at = wf_alloc_zero((size_t)ranks->size + 1, sizeof *l->at);
    l->buckets = (blocks + share * ranks->size - 1) / (share * ranks->size);
    l->buckets = l->arrived = l->buckets > 0 ? l->buckets : 1;
    l->transfer = wf_alloc_zero((size_t)l->buckets, sizeof *l->transfer);
    if (!l->shard.first || !l->shard.before || !l->block || !l->partial || !l->at || !l->transfer) {
        free_layout(l);
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the shards of %d processes", ranks->size);
    }
    int64_t n = 0;
    for (int i = 0; i < parameters; i++) {
        const int64_t count = elements(registry, i);
        l->shard.first[i] = n;
        for (int64_t at = 0; at < count; at += WF_GRADS_BLOCK)
            l->block[n++] = (struct wf_grads_block){i, at, WF_MIN(count - at, WF_GRADS_BLOCK)};
    }
    l->shard.first[parameters] = n;
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
