/* SPDX-License-Identifier: MIT */
/* Functions for models that are encoders: they compute a vector for each token by bidirectional attention, and return the attention weights
 * of every layer and head on request. Two families are built in: "encoder", trained by masked-language modelling (Devlin et al. 2019,
 * section 3.1), and "bert", which can be read from a Hugging Face folder. */
#ifndef WEFT_ENCODER_H
#define WEFT_ENCODER_H

#include <weft/models.h>

WF_BEGIN_DECLS

/* The layout of the ids, masks, and the attention weights. All zero: rows of full length without a mask. */
struct wf_encoder_call {
    const int32_t *lengths;  /* [B]: row b holds lengths[b] tokens, and padding after them. No token attends to padding: the attention
                                weights of its keys are exactly 0. NULL: rows of full length */
    wf_tensor *mask;         /* bools that broadcast to [B,H,T,T]; true: the query may attend to the key. NULL: no mask */
    bool causal;             /* token t attends to tokens 0 .. t only */
    const int32_t *segments; /* the segment of each id, below the configuration's `segments`; NULL: all 0. A model without segment
                                embeddings accepts only NULL */
    struct wf_packed packed; /* the ids are packed sentences [N]; cannot be combined with lengths, mask or weights */
    wf_tensor **weights; /* [layers]: weights[i] receives the attention weights [B,H,T,T] of layer i, before dropout. NULL: the caller wants
                            no weights */
};
/* ids [B,T] -> vectors [B,T,d], or packed ids [N] -> [N,d]. `call` may be NULL. A row longer than the context, a model that is not an
 * encoder and contradictory options are errors on the tape. The vectors of padding are undefined, but no vector of another token depends on
 * them. In WF_INFER a sentence has the same bits packed or padded, alone or in a batch, with or without weights. In WF_TRAIN set the tape's
 * first_row to the index of the first row (of packed sentences: of the first token) in the global batch. */
WF_API wf_tensor *wf_encoder_forward_with(const wf_model *model, wf_tensor *ids, const struct wf_encoder_call *call);
/* Logits of all tokens: ids -> [B,T,V] or [N,V]. An error on the tape for a model without an output layer, such as a "bert" that was read
 * from a folder. */
WF_API wf_tensor *wf_encoder_logits_with(const wf_model *model, wf_tensor *ids, const struct wf_encoder_call *call);
#ifndef __cplusplus
#define wf_encoder_forward(model, ids, ...) wf_encoder_forward_with(model, ids, &(struct wf_encoder_call){__VA_ARGS__})
#define wf_encoder_logits(model, ids, ...) wf_encoder_logits_with(model, ids, &(struct wf_encoder_call){__VA_ARGS__})
#endif

/* Mean cross-entropy of `count` masked tokens -> []. places[i] is an index into the B*T (or N) ids, and targets[i] the id that was masked
 * there. Only these tokens go through the output layer. `options` are those of wf_cross_entropy. If `count` is 0, the loss and its
 * gradients are 0. */
WF_API wf_tensor *wf_encoder_loss_with(const wf_model *model, wf_tensor *ids, const struct wf_encoder_call *call, const int32_t *places,
                                       const int32_t *targets, int64_t count, const struct wf_cross_entropy_options *options);
#ifndef __cplusplus
#define wf_encoder_loss(model, ids, call, places, targets, count, ...)                                                                     \
    wf_encoder_loss_with(model, ids, call, places, targets, count, &(struct wf_cross_entropy_options){__VA_ARGS__})
#endif

WF_END_DECLS

#endif
