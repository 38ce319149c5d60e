/* SPDX-License-Identifier: MIT */
/* The loop over the blocks of a model. */
#include <weft/blocks.h>
#include <weft/internal/sublayers.h>
#include <weft/internal/tape_needs.h>

#include <weft/ops.h>

static bool is_set(wf_tape_mark mark)
{
    return mark.word[6]; /* its tape */
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
    const bool drops = !o.weights && !o.keep;
    struct wf_sublayers chain = {.tape = tape, .since = is_set(o.since) ? o.since : wf_tape_here(tape)};
    for (int64_t i = 0; i < count; i++) {
        const struct wf_block_call call = {
            .index = i, .cache = o.cache ? &o.cache->layer[i] : NULL, .weights = o.weights ? &o.weights[i] : NULL, .ctx = o.ctx};
        struct wf_sublayers *outer = wf_sublayers_set(drops && is_set(o.since) ? &chain : NULL);
        x = forward((const char *)first + (size_t)i * size, x, &call);
        if (drops && x) {
            wf_sublayers_set(&chain);
            x = wf_sublayers_compact(wf_contiguous(x));
        }
        wf_sublayers_set(outer);
    }
    return x;
}
