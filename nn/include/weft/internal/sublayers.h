/* SPDX-License-Identifier: MIT */
/* Saves memory in models whose blocks are chains of sublayers. A sublayer is x + f(norm(x)) or norm(x + f(x)), where f is an attention or
 * feed-forward module. In a pass without records (WF_INFER), the tensors of a sublayer are dropped when it is done, so a chain needs the
 * memory of one sublayer, not of a block. */
#ifndef WEFT_INTERNAL_SUBLAYERS_H
#define WEFT_INTERNAL_SUBLAYERS_H

#include <weft/tape.h>

/* A running chain. A module f with a residual drops the tensors that were made on `tape` since the mark. In a sublayer x + f(norm(x)) it
 * does so at the end, and keeps the sum. In a sublayer norm(x + f(x)) the norm comes after the module; therefore the module of the next
 * sublayer drops the tensors, at its beginning, and keeps its operand. */
struct wf_sublayers {
    wf_tape *tape;
    wf_tape_mark since; /* the mark: tensors made before it stay */
    wf_tensor *kept;    /* the tensor that the last drop kept */
};
/* Sets the running chain of this thread, and returns the former one. NULL: no chain. */
struct wf_sublayers *wf_sublayers_set(struct wf_sublayers *chain);

/* Drops all tensors of this thread's chain except x. Returns the tensor to use in place of x; without a chain, x. */
wf_tensor *wf_sublayers_compact(wf_tensor *x);

#endif
