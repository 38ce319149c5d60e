/* SPDX-License-Identifier: MIT */
/* Memory of blocks that are chains of sublayers. In a pass without records a chain needs the memory of one sublayer, not of a block. */
#ifndef WEFT_INTERNAL_SUBLAYERS_H
#define WEFT_INTERNAL_SUBLAYERS_H

#include <weft/tape.h>

/* A running chain. Attention and feed-forward networks with a residual drop the tensors that were made on `tape` since the mark. In a
 * sublayer x + f(norm(x)) they do so at the end, and keep the sum. In a sublayer norm(x + f(x)) the module does not see the norm; therefore
 * the next sublayer drops the tensors at its beginning, and keeps its operand. */
struct wf_sublayers {
    wf_tape *tape;
    wf_tape_mark since;
    wf_tensor *kept; /* the tensor that the last drop kept */
};
/* Sets the running chain of this thread, and returns the former one. NULL: no chain. */
struct wf_sublayers *wf_sublayers_set(struct wf_sublayers *chain);

/* Drops all tensors of this thread's chain except x. Returns the tensor to use in place of x; without a chain, x. */
wf_tensor *wf_sublayers_compact(wf_tensor *x);

#endif
