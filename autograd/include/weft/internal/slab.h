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

/* Multiplies the factor that wf_clip_norm left into the slab, where there is one. */
void wf_grads_settle(wf_grads *grads);

#endif
