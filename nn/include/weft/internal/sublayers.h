/* SPDX-License-Identifier: MIT */
/* Blocks that are chains of sublayers: a pass without records then needs the memory of a sublayer, not that of a block. */
#ifndef WEFT_INTERNAL_SUBLAYERS_H
#define WEFT_INTERNAL_SUBLAYERS_H

#include <weft/tape.h>

/* Attention and feed-forwards with a residual drop what was made on `tape` since the mark, but for the sum x + f(norm(x)), or before
 * x + f(x) but for x, whose norm came last. */
struct wf_sublayers {
    wf_tape *tape;
    wf_tape_mark since;
    wf_tensor *kept; /* by the last drop */
};
/* Sets this thread's chain and returns the former one. NULL: none. */
struct wf_sublayers *wf_sublayers_set(struct wf_sublayers *chain);

/* x, the only one of the chain's tensors that is used later. */
wf_tensor *wf_sublayers_compact(wf_tensor *x);

#endif
