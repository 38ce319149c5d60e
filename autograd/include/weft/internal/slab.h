/* SPDX-License-Identifier: MIT */
/* Gradient slabs, for the rooms that make them (nn) and go through them (optim). */
#ifndef WEFT_INTERNAL_SLAB_H
#define WEFT_INTERNAL_SLAB_H

#include <weft/op.h>

/* A piece of one parameter's gradient: the unit of work, fixed by the shapes. */
enum { WF_GRADS_BLOCK = 8192 };
struct wf_grads_block {
    int parameter;
    int64_t at, count; /* elements of the parameter */
};

static inline wf_real *wf_grads_block_data(const wf_grads *grads, const struct wf_grads_block *block)
{
    return grads->slab + grads->place[block->parameter].offset + block->at;
}

/* The shard of a registry that one of several processes holds. Only this process has the sums of these gradients, holds moments for them
 * and updates them. Shards are cut by the blocks of all parameters, so that freezing moves nothing from process to process. */
struct wf_shard {
    int parameters;
    int64_t *first;  /* [parameters + 1]: number of a parameter's first block */
    int64_t *before; /* [blocks + 1]: blocks of this process before a block */
    bool active;     /* this is the update of all processes; otherwise norms are those of the gradients here */
    /* Fills in the others' blocks of grads->partial; all processes call it. */
    wf_status (*share)(void *ctx, wf_grads *grads, wf_error *error);
    void *ctx;
};
static inline int64_t wf_shard_block(const struct wf_shard *shard, int parameter, int64_t at)
{
    return shard->first[parameter] + at / WF_GRADS_BLOCK;
}
/* Without a shard a process has all. */
static inline bool wf_shard_owns(const struct wf_shard *shard, int parameter, int64_t at)
{
    const int64_t block = shard ? wf_shard_block(shard, parameter, at) : 0;
    return !shard || shard->before[block + 1] > shard->before[block];
}
/* The number of the parameter's elements in the shard before element `at`, which begins a block or is `count`, the number of all. */
static inline int64_t wf_shard_elements(const struct wf_shard *shard, int parameter, int64_t count, int64_t at)
{
    if (!shard || at == 0)
        return at;
    const int64_t first = shard->first[parameter], end = shard->first[parameter + 1];
    const int64_t block = at < count ? first + at / WF_GRADS_BLOCK : end;
    const int64_t whole = (shard->before[block] - shard->before[first]) * WF_GRADS_BLOCK;
    const bool last = block == end && shard->before[end] > shard->before[end - 1]; /* the parameter's last block, which may be short */
    return last ? whole - ((end - first) * WF_GRADS_BLOCK - count) : whole;
}

/* Multiplies the slab by the factor that wf_clip_norm left, if there is one. */
void wf_grads_settle(wf_grads *grads);

#endif
