/* SPDX-License-Identifier: MIT */
/* Gradient slabs, for nn/, which makes them, and for optim/, which updates parameters from them. */
#ifndef WEFT_INTERNAL_SLAB_H
#define WEFT_INTERNAL_SLAB_H

#include <weft/op.h>

/* A block is a range of one parameter's gradient. It is the unit of work, and shapes alone determine it. */
enum { WF_GRADS_BLOCK = 8192 };
struct wf_grads_block {
    int parameter;
    int64_t at;    /* index of the first element in the parameter */
    int64_t count; /* number of elements */
};

static inline wf_real *wf_grads_block_data(const wf_grads *grads, const struct wf_grads_block *block)
{
    return grads->slab + grads->place[block->parameter].offset + block->at;
}

/* The shard of a registry that one of several processes holds. Only this process has the sums of the shard's gradients, holds the moments
 * for them and updates the values. A shard consists of blocks of all parameters, frozen ones too, so that freezing a parameter moves no
 * data between processes. */
struct wf_shard {
    int parameters;
    int64_t *first;  /* [parameters + 1]: the number of each parameter's first block */
    int64_t *before; /* [blocks + 1]: how many blocks with a smaller number the process holds */
    bool *whole; /* [parameters]: all blocks of the parameter are in one shard, because an optimiser updates it as a whole. NULL: none */
    bool active; /* an update of all processes is running; if false, norms are those of this process's own gradients */
    /* Fills in those elements of grads->partial whose blocks other processes hold. All processes must call it together. */
    wf_status (*share)(void *ctx, wf_grads *grads, wf_error *error);
    void *ctx;
};
static inline int64_t wf_shard_block(const struct wf_shard *shard, int parameter, int64_t at)
{
    return shard->first[parameter] + at / WF_GRADS_BLOCK;
}
/* Whether this process holds the block of element `at`. A process without a shard (NULL) holds all blocks. */
static inline bool wf_shard_owns(const struct wf_shard *shard, int parameter, int64_t at)
{
    const int64_t block = shard ? wf_shard_block(shard, parameter, at) : 0;
    return !shard || shard->before[block + 1] > shard->before[block];
}
static inline bool wf_shard_is_whole(const struct wf_shard *shard, int parameter)
{
    return shard && shard->whole && shard->whole[parameter];
}
/* How many of the parameter's elements before element `at` are in the shard. `at` must begin a block, or be `count`, the parameter's number
 * of elements. */
static inline int64_t wf_shard_elements(const struct wf_shard *shard, int parameter, int64_t count, int64_t at)
{
    if (!shard || at == 0)
        return at;
    const int64_t first = shard->first[parameter], end = shard->first[parameter + 1];
    const int64_t block = at < count ? first + at / WF_GRADS_BLOCK : end;
    const int64_t whole = (shard->before[block] - shard->before[first]) * WF_GRADS_BLOCK;
    /* If `at` is the parameter's end and the last block is in the shard: this block may be shorter than the others. */
    const bool last = block == end && shard->before[end] > shard->before[end - 1];
    return last ? whole - ((end - first) * WF_GRADS_BLOCK - count) : whole;
}

/* Multiplies the gradients in the slab by the factor that wf_clip_norm left there, if any. */
void wf_grads_settle(wf_grads *grads);

#endif
