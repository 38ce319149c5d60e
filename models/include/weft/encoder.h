/* SPDX-License-Identifier: MIT */
/* Encoders: bidirectional attention, a vector for each token, and optionally the attention weights of every layer and head. Families:
 * "encoder" (the preset encoder-attention), trained by masked-language modelling (Devlin et al. 2019, section 3.1), and "bert", read from
 * a Hugging Face folder. */
#ifndef WEFT_ENCODER_H
#define WEFT_ENCODER_H

#include <weft/models.h>

WF_BEGIN_DECLS

/* Layout of the ids, and masks. All zero: rows of full length. */
struct wf_encoder_call {
    const int32_t *lengths;  /* [B]: row b holds lengths[b] tokens, the rest is padding, whose keys get a weight of exactly 0 */
    wf_tensor *mask;         /* bool, broadcasts to [B,H,T,T]; true = may attend */
    bool causal;             /* token t attends to tokens 0 .. t */
    const int32_t *segments; /* one for each id, below the configuration's `segments`; NULL: all 0. For models with segment embeddings */
    struct wf_packed packed; /* packed sentences, ids [N]; excludes lengths and mask */
    wf_tensor **weights;     /* [layers], receives [B,H,T,T] each, before dropout; not with packed */
};
/* ids [B,T] -> [B,T,d], or packed ids [N] -> [N,d]. A row longer than the context, a model that is not an
 * encoder and contradictory options are errors on the tape. Vectors of padding are undefined; no other token depends on them. In WF_INFER
 * a sentence has the same bits packed or padded, alone or in a batch, with or without weights. In WF_TRAIN the tape's first_row is the
 * index of the first row (of packed sentences: of the first token) in the global batch. call may be NULL. */
WF_API wf_tensor *wf_encoder_forward_with(const wf_model *model, wf_tensor *ids, const struct wf_encoder_call *call);
/* The same through the output layer -> [B,T,V] or [N,V]. An error for a model that has none ("bert"). */
WF_API wf_tensor *wf_encoder_logits_with(const wf_model *model, wf_tensor *ids, const struct wf_encoder_call *call);
#ifndef __cplusplus
#define wf_encoder_forward(model, ids, ...) wf_encoder_forward_with(model, ids, &(struct wf_encoder_call){__VA_ARGS__})
#define wf_encoder_logits(model, ids, ...) wf_encoder_logits_with(model, ids, &(struct wf_encoder_call){__VA_ARGS__})
#endif

/* Mean cross-entropy of `count` masked tokens -> []: places[i] is an index into the B*T (or N) ids, targets[i] the original id. Only these
 * rows go through the output layer. options as for wf_cross_entropy. With count 0 the loss is 0 with zero gradients. */
WF_API wf_tensor *wf_encoder_loss_with(const wf_model *model, wf_tensor *ids, const struct wf_encoder_call *call, const int32_t *places,
                                       const int32_t *targets, int64_t count, const struct wf_cross_entropy_options *options);
#ifndef __cplusplus
#define wf_encoder_loss(model, ids, call, places, targets, count, ...)                                                                     \
    wf_encoder_loss_with(model, ids, call, places, targets, count, &(struct wf_cross_entropy_options){__VA_ARGS__})
#endif

WF_END_DECLS

#endif
