/* SPDX-License-Identifier: MIT */
/* The chain of sublayers that runs. It is the thread's, since a module's call has no other way to it than its tensors. */
#include <weft/internal/sublayers.h>

#include "internal.h"

static _Thread_local struct wf_sublayers *running;

struct wf_sublayers *wf_sublayers_set(struct wf_sublayers *chain)
{
    struct wf_sublayers *former = running;
    running = chain;
    return former;
}

wf_tensor *wf_sublayers_compact(wf_tensor *x)
{
    if (!running || !x || x == running->kept || wf_tape_of(x) != running->tape || wf_is_poison(x))
        return x;
    return running->kept = wf_tape_compact(running->since, x);
}

/* A norm after the sum has made x: its operand ends here, as the norm itself cannot know. */
wf_tensor *sublayer_begin(wf_tensor *x, wf_tensor **residual)
{
    if (*residual != x)
        return x;
    return *residual = wf_sublayers_compact(x);
}

wf_tensor *sublayer_end(wf_tensor *y, const wf_tensor *x, const wf_tensor *residual)
{
    return residual && residual != x ? wf_sublayers_compact(y) : y;
}
