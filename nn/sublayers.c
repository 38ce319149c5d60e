/* SPDX-License-Identifier: MIT */
/* The running chain of sublayers. It is a variable of the thread, because modules have no argument for a chain. */
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

/* If *residual is x, the sublayers have the form norm(x + f(x)), and x is the result of the norm of the preceding sublayer. The tensors
 * of that sublayer can be dropped only here, because its module ran before the norm, and the norm does not know of the chain. */
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
