/* SPDX-License-Identifier: MIT */
/* The attention weights that a call gives besides its result. */
#ifndef WEFT_INTERNAL_WEIGHTS_END_H
#define WEFT_INTERNAL_WEIGHTS_END_H

#include <weft/tape.h>

/* After an error x is poison: so are then the weights of all layers, because the caller may go on with them. `weights` may be NULL. */
static inline void wf_weights_end(wf_tensor *x, wf_tensor **weights, int64_t layers)
{
    for (int64_t i = 0; weights && i < layers && wf_is_poison(x); i++)
        weights[i] = x;
}

#endif
