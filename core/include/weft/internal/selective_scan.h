/* SPDX-License-Identifier: MIT */
/* The recurrence of a selective state-space layer (Gu and Dao 2023) over a chunk of steps, for a block of channels of one row of the batch.
 * The kernels are in core/kernels/selective_scan.c, the op is in autograd/ops/selective_scan.c. For channel e and state n:
 *
 *   h_t = exp(D_t A) h_(t-1) + D_t B_t x_t,   y_t = sum over n of C_t h_t, plus skip x_t
 *
 * with D_t, x_t and y_t of the channel, A of channel and state, B_t and C_t of the state. A lane of a register is a channel, so the sum
 * over n needs no sum over lanes. Arrays [N,channels] have a distance of `pitch` elements between two states. Kernels use whole registers
 * of them, so each row has room for wf_scan_pitch(channels) elements, and those that no channel has are 0. */
#ifndef WEFT_INTERNAL_SELECTIVE_SCAN_H
#define WEFT_INTERNAL_SELECTIVE_SCAN_H

#include <weft/compute.h>

enum {
    WF_SCAN_CHANNELS = 64, /* channels in a block, at most */
    WF_SCAN_STEPS = 32     /* steps in a chunk, at most: a backward computes so many again at a time */
};

/* A multiple of the largest register. */
static inline int64_t wf_scan_pitch(int64_t channels)
{
    return (channels + 15) / 16 * 16;
}

/* "row" stands for the distance of two steps in an array, in elements. */
struct wf_scan_chunk {
    bool softplus;                   /* D_t is softplus(dt_t), otherwise dt_t */
    int64_t steps, channels, states; /* 1 .. WF_SCAN_STEPS, 1 .. WF_SCAN_CHANNELS, N */
    int64_t pitch;
    const wf_real *x, *dt; /* [steps, channels] */
    const wf_real *b, *c;  /* [steps, N] */
    int64_t x_row, dt_row, b_row, c_row;
    const wf_real *a;    /* [N,channels]: A log2 e */
    const wf_real *skip; /* [channels]; NULL: zeros */
    wf_real *h;          /* [N,channels]. Forward: the states before the chunk, which those after it replace. Backward: those before it */
    wf_real *y;          /* forward: [steps, channels] */
    /* Backward: */
    const wf_real *dy; /* [steps, channels]; NULL: zeros */
    int64_t y_row;     /* of y, dy, dx and ddt */
    wf_real *carry;    /* [N,channels]: the gradient of the states after the chunk, which that of the states before it replaces */
    wf_real *dx, *ddt; /* [steps, channels] */
    wf_real *da;       /* [N,channels]: the gradient of A, to which the chunk's is added */
    wf_real *dskip;    /* [channels], with room as in [N,channels]: likewise */
    wf_real *db, *dc;  /* [steps, N], contiguous: the block's terms of the gradients of B and C */
};

#endif
