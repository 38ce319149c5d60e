/* SPDX-License-Identifier: MIT */
/* Encoders behind wf_model: every token sees every other one. Out come a vector for each token, and on demand the weights of every
 * layer's and head's attention. Families: "encoder" (the preset encoder-attention), trained here to find masked words again (Devlin et
 * al. 2019, section 3.1), and "bert", read from a folder of Hugging Face. */
#ifndef WEFT_ENCODER_H
#define WEFT_ENCODER_H

#include <weft/models.h>

WF_BEGIN_DECLS

/* How the ids lie, and what may be looked at. All zero: whole rows. */
struct wf_encoder_call {
    const int32_t *lengths;  /* [B]: row b holds lengths[b] tokens, the rest is padding: its keys get a weight of exactly 0 */
    wf_tensor *mask;         /* bools that broadcast to [B,H,T,T]; true = may attend */
    bool causal;             /* token t sees tokens up to t */
    const int32_t *segments; /* one for each id, below the configuration's `segments`; NULL: all 0. "bert" only */
    const int32_t *offsets;  /* [sentences + 1]: sentences end to end, ids [N]; instead of lengths and mask */
    int sentences;
    wf_tensor **weights; /* [layers], receives [B,H,T,T] each, before dropout; not with offsets */
};
/* ids [B,T] -> [B,T,d], or with offsets ids [N] -> [N,d]. A row longer than the configuration's context, a model that is no
 * encoder and a call that contradicts itself are errors of the tape. Rows past their length hold what the model makes of their ids:
 * nothing that others see. In WF_INFER a sentence has the same bits packed or in rows, alone or beside others, its weights looked at or
 * not. In WF_TRAIN the tape's first_row is the row of a larger batch, of packed sentences the token, at which these ids begin. call may
 * be NULL: whole rows. */
WF_API wf_tensor *wf_encoder_forward_with(const wf_model *model, wf_tensor *ids, const struct wf_encoder_call *call);
/* The same through the output layer -> [B,T,V] or [N,V]. An error for a model that has none ("bert"). */
WF_API wf_tensor *wf_encoder_logits_with(const wf_model *model, wf_tensor *ids, const struct wf_encoder_call *call);
#ifndef __cplusplus
#define wf_encoder_forward(model, ids, ...) wf_encoder_forward_with(model, ids, &(struct wf_encoder_call){__VA_ARGS__})
#define wf_encoder_logits(model, ids, ...) wf_encoder_logits_with(model, ids, &(struct wf_encoder_call){__VA_ARGS__})
#endif

/* The mean cross-entropy of `count` chosen tokens -> []: places[i] counts from 0 over the B*T (or N) ids, targets[i] is what stood there.
 * Only these rows go through the output layer. options as of wf_cross_entropy. No places: 0 with zero gradients. */
WF_API wf_tensor *wf_encoder_loss_with(const wf_model *model, wf_tensor *ids, const struct wf_encoder_call *call, const int32_t *places,
                                       const int32_t *targets, int64_t count, const struct wf_cross_entropy_options *options);
#ifndef __cplusplus
#define wf_encoder_loss(model, ids, call, places, targets, count, ...)                                                                     \
    wf_encoder_loss_with(model, ids, call, places, targets, count, &(struct wf_cross_entropy_options){__VA_ARGS__})
#endif

WF_END_DECLS

#endif
