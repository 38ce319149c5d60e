/* SPDX-License-Identifier: MIT */
/* The work of one call of lstm or gru, as its forward and its backward prepare it (recurrent.c, recurrent_backward.c). */
#ifndef WEFT_OPS_RECURRENT_H
#define WEFT_OPS_RECURRENT_H

#include <weft/internal/recurrent.h>

#include "common.h"

enum { X, W_IH, B_IH, W_HH, B_HH, H0, C0 }; /* operands */
enum { Y, H_LAST, C_LAST };                 /* results */
enum { GATES, KEPT };                       /* saved: the gates [N, G H]; c' or s of weft/internal/recurrent.h [N, H] */

struct recurrent_attr {
    bool reverse;
    struct wf_packed packed;
};

/* A sequence is a row of the batch. x and y have N rows, one for each step of each sequence. All arrays are contiguous. */
struct recurrence {
    wf_call *c;
    bool gru, reverse;
    struct wf_packed packed;
    int64_t sequences;        /* B */
    int64_t length;           /* T, the steps of each sequence, if it is not packed */
    int64_t longest;          /* steps of the longest sequence */
    int64_t n;                /* N */
    int64_t hidden;           /* H */
    int64_t gates;            /* G H */
    const wf_real *weights;   /* W_hh, packed for the kernels */
    const wf_real *bias;      /* GRU: the bias [H] of W_hn h */
    const wf_real *h0, *c0;   /* [B, H]; NULL: zeros */
    wf_real *gate, *kept, *y; /* [N, G H], [N, H], [N, H] */
    bool keep;                /* whether `kept` has a row for each step; if not, it is [B, H], and a step overwrites the step before */
    const wf_real *dy;        /* backward: the gradients of y, of the last h and of the last c; NULL: zeros */
    const wf_real *dh;
    wf_real *carry;           /* [B, H]: carry and start of wf_cell_row */
    wf_real *start;           /* NULL: the gradient of h0 is not needed */
    wf_real *grads;           /* [N, 4 H]: grads of wf_cell_row */
    struct wf_cell_row *rows; /* [B], for wf_recurrence_run */
};

/* Fills *r from the operands, and packs W_hh. False without memory. */
bool wf_recurrence_of(wf_call *c, bool back, struct recurrence *r);
/* A temporary array of at least one element, so that its data are NULL only without memory. */
wf_real *wf_recurrence_temp(wf_call *c, int64_t count);

static inline int64_t wf_recurrence_length(const struct recurrence *r, int64_t b)
{
    return r->packed.offsets ? r->packed.offsets[b + 1] - r->packed.offsets[b] : r->length;
}

/* The row of x and y with step s of sequence b. The reverse direction begins at the end of the sequence. */
static inline int64_t wf_recurrence_place(const struct recurrence *r, int64_t b, int64_t s)
{
    return (r->packed.offsets ? r->packed.offsets[b] : b * r->length) + (r->reverse ? wf_recurrence_length(r, b) - 1 - s : s);
}

/* Writes the arguments of a kernel for step s of the sequences begin .. end-1 to `rows` [end - begin]. Sequences without this step are
 * left out. Returns the number of rows, and stores how many of them, which come first, have a product. */
typedef int64_t wf_recurrence_step(const struct recurrence *r, int64_t s, int64_t begin, int64_t end, struct wf_cell_row *rows,
                                   int64_t *products);
/* Computes the steps first, first + by, ... before `end`. WF_ERR_MEMORY without memory. */
wf_status wf_recurrence_run(struct recurrence *r, bool back, wf_recurrence_step *step, int64_t first, int64_t end);

wf_status wf_recurrent_backward(wf_call *c);

#endif
