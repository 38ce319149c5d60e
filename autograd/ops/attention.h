/* SPDX-License-Identifier: MIT */
/* What the two files of the attention op share. */
#ifndef WEFT_OPS_ATTENTION_H
#define WEFT_OPS_ATTENTION_H

#include <weft/op.h>

enum { Q, K, V, MASK }; /* operands */

struct attention_attr {
    int heads, kv_heads;
    double scale, dropout;
    bool causal;
    const int32_t *key_lengths;           /* [B] */
    const int32_t *q_offsets, *k_offsets; /* [sequences + 1] */
    int sequences;
};

static inline bool wf_attention_packed(const struct attention_attr *a)
{
    return a->q_offsets != NULL;
}

/* attention_blocks.c */
wf_status wf_attention_run(wf_call *c);
wf_status wf_attention_run_backward(wf_call *c);

#endif
