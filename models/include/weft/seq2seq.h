/* SPDX-License-Identifier: MIT */
/* Functions for models that are encoder-decoders (Vaswani et al. 2017): logits and losses of sentence pairs, and decoding step by step.
 * Sentences are packed end to end without padding. A call with a model of another kind (wf_model_kind_of) is an error of the tape. For beam
 * search see <weft/translate.h>. */
#ifndef WEFT_SEQ2SEQ_H
#define WEFT_SEQ2SEQ_H

#include <weft/models.h>
#include <weft/pairs.h>

WF_BEGIN_DECLS

/* Arrays of the caller that receive the attention weights of one sentence pair, with a tensor for each layer; encoder_layers and `layers`
 * are members of struct wf_model_shape. A NULL array receives nothing. */
struct wf_seq2seq_weights {
    wf_tensor **encoder; /* [encoder_layers] tensors [1,H,S,S]: self-attention of the source */
    wf_tensor **decoder; /* [layers] tensors [1,H,T,T]: self-attention of the target */
    wf_tensor **cross;   /* [layers] tensors [1,H,T,S]: attention from the target to the source */
};
/* The N ids of `input` of all pairs -> logits [N,V]. `weights` may be NULL; with weights there must be exactly one pair. Sets the tape's
 * first_row to first_source of the pairs for the encoder, and to first_target for the decoder, so that dropout does not depend on the
 * division into micro-batches. */
WF_API wf_tensor *wf_pairs_logits(const wf_model *model, wf_tape *tape, const struct wf_pairs *pairs,
                                  const struct wf_seq2seq_weights *weights);
/* Mean cross-entropy over all target ids -> []. If the output layer is linear and has no LoRA adapters, the logits of all target ids are
 * never stored at once. */
WF_API wf_tensor *wf_pairs_loss_with(const wf_model *model, wf_tape *tape, const struct wf_pairs *pairs,
                                     const struct wf_cross_entropy_options *options);
#ifndef __cplusplus
#define wf_pairs_loss(model, tape, pairs, ...) wf_pairs_loss_with(model, tape, pairs, &(struct wf_cross_entropy_options){__VA_ARGS__})
#endif

/* --- decoding, in WF_INFER ----------------------------------------------------------------------------------------- */
/* The M ids of packed source sentences -> output of the encoder [M,d], called "memory". */
WF_API wf_tensor *wf_model_encode(const wf_model *model, wf_tape *tape, const int32_t *ids, struct wf_packed source);
/* Sets kv[i] to the keys and values of decoder layer i's cross-attention, for all `layers` decoder layers. Call it once per translation. */
WF_API void wf_model_memory(const wf_model *model, wf_tensor *memory, wf_tensor *kv[]);
/* Ids [R,T], which continue the R rows of the cache -> logits of the last id of each row, [R,V]. Each row is one translation of a source
 * sentence, and a sentence may have several rows or none. The rows are in the order of the sentences: sentence i has the rows
 * translations.offsets[i] .. translations.offsets[i+1]-1. `source` has the same offsets as in the call of wf_model_encode. Make the cache
 * with wf_model_cache, or with wf_model_cache_with if it needs to hold less than max_length tokens. The cache advances by T. */
WF_API wf_tensor *wf_model_decode(const wf_model *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor *const kv[],
                                  struct wf_packed translations, struct wf_packed source);

WF_END_DECLS

#endif
