/* SPDX-License-Identifier: MIT */
/* Shared by the files of the op attention. */
#ifndef WEFT_OPS_ATTENTION_H
#define WEFT_OPS_ATTENTION_H

#include <weft/op.h>
#include <weft/packed.h>

enum { Q, K, V, MASK, BIAS }; /* operands */

struct attention_attr {
    int heads, kv_heads;
    double scale, dropout;
    bool causal;
    int64_t window;                      /* 0: none */
    const int32_t *key_lengths, *starts; /* [B] */
    struct wf_packed packed, k_packed;   /* rows of q, and of k and v */
    double softcap;                      /* 0: none */
};

/* attention_shape.c: checks of the options, and the shapes of the results. */
wf_status wf_attention_shape(wf_call *c);
/* The shape that a mask or a bias, operand i, broadcasts to: [B,H,T,S]; of packed rows [n,H,L,M], by places in sequences, with the
 * operand's L and M where it is larger than the longest sequences. */
wf_shape wf_attention_scores(const wf_call *c, int i);
/* attention_backward.c */
wf_status wf_attention_backward(wf_call *c);

#endif
