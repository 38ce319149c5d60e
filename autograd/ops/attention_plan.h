/* SPDX-License-Identifier: MIT */
/* The work of one call of attention, as its forward and its backward prepare it (attention_plan.c). */
#ifndef WEFT_OPS_ATTENTION_PLAN_H
#define WEFT_OPS_ATTENTION_PLAN_H

#include <stdatomic.h>

#include <weft/internal/attention.h>

#include "attention.h"
#include "common.h"

/* An operand [B, T, width], or packed [N, width], in which the elements of each row are contiguous. */
struct attention_rows {
    wf_real *data;
    int64_t item; /* elements from one item of the batch to the next; 0 if packed */
    int64_t step; /* elements from one row to the next */
};

/* Sizes are named as in weft/ops.h: without packing q is [B, T, ...] and k and v are [B, S, ...]. Packed q, k and v hold n sequences, and
 * the scores of a sequence are [L, K] (wf_attention_scores). */
struct attention_plan {
    const wf_call *c;
    const struct attention_attr *attr;
    int64_t sequences;            /* B; n if packed */
    int64_t heads;                /* query heads */
    int64_t groups;               /* heads of keys and values */
    int64_t share;                /* query heads that share one head of keys: heads / groups */
    int64_t queries;              /* T; if packed, all rows of q */
    int64_t keys;                 /* S; if packed, all rows of k */
    int64_t e;                    /* width of a head of q and k */
    int64_t f;                    /* width of a head of v */
    int64_t longest;              /* number of queries in the longest sequence */
    double scores;                /* estimated number of scores in all sequences and heads; the cost follows from it */
    struct attention_rows in[3];  /* q, k and v */
    struct attention_rows out;    /* the result */
    struct attention_rows dout;   /* backward: the gradient of the result; otherwise data is NULL */
    struct attention_rows din[3]; /* backward: the gradients of q, k and v; data is NULL if a gradient is not needed */
    bool add[3];                  /* backward: true: add to din[i]; false: overwrite it */
    wf_array mask;                /* [B, H, T, S], or packed [n, H, L, K]; data is NULL without a mask */
    wf_array bias;                /* [B, H, T, S], or packed [n, H, L, K]; data is NULL without a bias */
    wf_array dbias; /* the bias' gradient: size 1 where the bias is broadcast over batch, queries or keys; data NULL if not needed */
    bool in_turn;   /* backward: all sequences add to the same elements of dbias, so one block computes them in turn */
    struct wf_attention common; /* the members that are the same for all sequences and heads */
    int64_t chunk;              /* forward: queries in a block */
    int64_t chunks;             /* forward: blocks that share the queries of a sequence */
    _Atomic bool no_memory;     /* set by a block that found no memory for its scratch */
};

bool wf_attention_adjoin(const wf_array *a); /* whether the elements of each row are contiguous */
struct attention_rows wf_attention_rows(const wf_array *a);
/* Sets *out to the rows of `a`, or to those of a contiguous copy if the elements of a row are not contiguous. False without memory. */
bool wf_attention_operand(wf_call *c, const wf_array *a, struct attention_rows *out);
/* Fills *p from the call, except for the gradients, which backward sets. False without memory. */
bool wf_attention_plan(wf_call *c, struct attention_plan *p);
/* The arguments of a kernel for sequence i and head g of the keys, with all query heads that share this head. */
struct wf_attention wf_attention_problem(const struct attention_plan *p, int64_t i, int64_t g);

#endif
