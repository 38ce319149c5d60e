/* SPDX-License-Identifier: MIT */
/* Attributes and functions that the source files of the op attention share. */
#ifndef WEFT_OPS_ATTENTION_H
#define WEFT_OPS_ATTENTION_H

#include <weft/op.h>
#include <weft/packed.h>

enum { Q, K, V, MASK, BIAS }; /* indices of the operands in a call */

struct attention_attr {
    int heads;                  /* heads of q */
    int kv_heads;               /* heads of k and v, a divisor of `heads` */
    double scale;               /* factor of the scores; 0: 1 / sqrt(width of a head of q) */
    double dropout;             /* probability with which a weight is dropped in training */
    bool causal;                /* a query attends to no key after its own position */
    int64_t window;             /* a query attends to keys at a distance below this; 0: no limit */
    const int32_t *key_lengths; /* [B]: the number of keys of each item that count; NULL: all */
    const int32_t *starts;      /* [B]: the position of each item's first query among the keys; NULL: the last query is at the last key */
    struct wf_packed packed;    /* the sequences of q, if its rows are packed */
    struct wf_packed k_packed;  /* the sequences of k and v, if their rows are packed */
    double softcap;             /* a score s becomes softcap tanh(s / softcap); 0: scores stay as they are */
};

/* attention_shape.c: checks the options and sets the shapes of the results. */
wf_status wf_attention_shape(wf_call *c);
/* The shape to which a mask or a bias, operand i, must broadcast: [B,H,T,S], or [n,H,L,K] for packed rows. L and K are the lengths of the
 * longest sequence of queries and of keys, or the sizes of the operand if these are larger. */
wf_shape wf_attention_scores(const wf_call *c, int i);
/* attention_backward.c: the gradients of q, k, v and the bias. */
wf_status wf_attention_backward(wf_call *c);

#endif
