/* SPDX-License-Identifier: MIT */
/* wf_blocks_forward, the loop over the blocks of a model, and the bookkeeping for trainings with checkpoint=true. */
#include <string.h>

#include <weft/blocks.h>
#include <weft/internal/family.h>
#include <weft/internal/sublayers.h>
#include <weft/internal/tape_needs.h>
#include <weft/op.h>

static _Thread_local struct wf_blocks_pass *current;

wf_tensor *wf_model_intact(const wf_model *model, wf_tensor *x)
{
    wf_error error = {0};
    if (wf_registry_intact(model->registry, &error) == WF_OK || wf_is_poison(x) || !x)
        return x;
    return wf_tape_fail(wf_tape_of(x), error.code, "%s", error.message);
}

void wf_blocks_begin(struct wf_blocks_pass *pass, const wf_model *model, const wf_tape *tape)
{
    *pass = (struct wf_blocks_pass){
        .model = model, .recompute = model->config.training.checkpoint && wf_tape_mode(tape) == WF_TRAIN, .outer = current};
    current = pass;
}

wf_tensor *wf_blocks_end(struct wf_blocks_pass *pass, wf_tape *tape, wf_tensor *x)
{
    current = pass->outer;
    if (!pass->recompute || pass->ran || wf_tape_error(tape)->code != WF_OK)
        return x;
    return wf_tape_fail(tape, WF_ERR_ARGUMENT, "checkpoint=true: family %s does not run its blocks by wf_blocks_forward: train without it",
                        pass->model->family->name);
}

void *wf_blocks_copy(wf_tape *tape, const void *from, size_t bytes)
{
    void *copy = from ? wf_tape_memory(tape, bytes) : NULL;
    return copy ? memcpy(copy, from, bytes) : NULL;
}

/* The arguments of a block that wf_checkpoint computes in forward and again in backward. They lie in memory of the tape. */
struct recomputed {
    wf_block_forward *forward;
    const void *block;
    struct wf_block_call call;
};

/* wf_checkpoint calls this function in forward and again in backward, and both calls must record the same ops. The thread's pass
 * (`current`) and its chain of sublayers exist in forward only, so neither call may see them: they are cleared meanwhile. */
static wf_tensor *again(void *ctx, wf_tensor *x)
{
    const struct recomputed *r = ctx;
    struct wf_blocks_pass *pass = current;
    struct wf_sublayers *chain = wf_sublayers_set(NULL);
    current = NULL;
    x = r->forward(r->block, x, &r->call);
    current = pass;
    wf_sublayers_set(chain);
    return x;
}

static wf_tensor *recomputed_forward(wf_tape *tape, wf_block_forward *forward, const void *block, wf_tensor *x,
                                     const struct wf_block_call *call)
{
    struct recomputed *r = wf_tape_memory(tape, sizeof *r);
    if (!r)
        return wf_tape_fail(tape, WF_ERR_MEMORY, "wf_blocks_forward: no memory for a block's call");
    *r = (struct recomputed){forward, block, *call};
    return wf_checkpoint(again, r, x);
}

static bool is_set(wf_tape_mark mark)
{
    return mark.word[6]; /* the address of the mark's tape; 0 in a zeroed mark */
}

wf_tensor *wf_blocks_forward_with(const void *first, size_t size, int64_t count, wf_block_forward *forward, wf_tensor *x,
                                  const struct wf_blocks_options *options)
{
    wf_tape *tape = wf_tape_of(x);
    wf_tensor *refused = wf_tape_needs(tape, "first, forward, x", first, forward, x);
    if (refused)
        return refused;
    if (wf_is_poison(x) || !tape)
        return x;
    const struct wf_blocks_options o = options ? *options : (struct wf_blocks_options){0};
    if (o.cache && o.cache->layers < count)
        return wf_tape_fail(tape, WF_ERR_SHAPE, "wf_blocks_forward: the cache has %d layers, but there are %lld blocks", o.cache->layers,
                            (long long)count);
    const bool drops = !o.weights && !o.keep, recompute = current && current->recompute && !o.weights;
    if (recompute && o.keep)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT,
                            "checkpoint=true: the blocks of family %s make tensors that are used after them (.keep): train without it",
                            current->model->family->name);
    if (current)
        current->ran = true;
    struct wf_sublayers chain = {.tape = tape, .since = is_set(o.since) ? o.since : wf_tape_here(tape)};
    for (int64_t i = 0; i < count; i++) {
        const struct wf_block_call call = {
            .index = i, .cache = o.cache ? &o.cache->layer[i] : NULL, .weights = o.weights ? &o.weights[i] : NULL, .ctx = o.ctx};
        struct wf_sublayers *outer = wf_sublayers_set(drops && is_set(o.since) ? &chain : NULL);
        const void *block = (const char *)first + (size_t)i * size;
        x = recompute ? recomputed_forward(tape, forward, block, x, &call) : forward(block, x, &call);
        if (drops && x) {
            wf_sublayers_set(&chain);
            x = wf_sublayers_compact(wf_contiguous(x));
        }
        wf_sublayers_set(outer);
    }
    return x;
}
