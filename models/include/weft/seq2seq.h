/* SPDX-License-Identifier: MIT */
/* The encoder-decoder of the zoo (Vaswani et al. 2017) as a wf_model: training on pairs, and stepwise decoding. Sentences are packed end to
 * end without padding. A model of another kind (wf_model_kind_of) is an error of the tape. For beam search see <weft/translate.h>. */
#ifndef WEFT_SEQ2SEQ_H
#define WEFT_SEQ2SEQ_H

#include <weft/models.h>
#include <weft/pairs.h>

WF_BEGIN_DECLS

/* Attention weights of every layer, for one pair: encoder [1,H,S,S], decoder [1,H,T,T] and cross [1,H,T,S], [layers] tensors each. */
struct wf_seq2seq_weights {
    wf_tensor **encoder, **decoder, **cross; /* the caller's arrays: [encoder_layers], [decoder_layers], [decoder_layers]; NULL: skipped */
};
/* The N target ids of all pairs -> logits [N,V]. weights may be NULL; otherwise there must be exactly one pair. Sets the tape's first row
 * from the pairs, so that dropout does not depend on the division into micro-batches. */
WF_API wf_tensor *wf_pairs_logits(const wf_model *model, wf_tape *tape, const struct wf_pairs *pairs,
                                  const struct wf_seq2seq_weights *weights);
/* Mean cross-entropy over all targets -> [], without storing all logits. */
WF_API wf_tensor *wf_pairs_loss_with(const wf_model *model, wf_tape *tape, const struct wf_pairs *pairs,
                                     const struct wf_cross_entropy_options *options);
#ifndef __cplusplus
#define wf_pairs_loss(model, tape, pairs, ...) wf_pairs_loss_with(model, tape, pairs, &(struct wf_cross_entropy_options){__VA_ARGS__})
#endif

/* --- decoding, in WF_INFER ----------------------------------------------------------------------------------------- */
/* The ids of packed source sentences -> encoder output ("memory") [M,d]. */
WF_API wf_tensor *wf_model_encode(const wf_model *model, wf_tape *tape, const int32_t *ids, struct wf_packed source);
/* Keys and values of every decoder layer's cross-attention, kv[decoder_layers]; computed once per translation. */
WF_API void wf_model_memory(const wf_model *model, wf_tensor *memory, wf_tensor *kv[]);
/* Ids [R,T] that continue the R rows of the cache -> logits of the last id of each row, [R,V]. The rows are those of the sentences in
 * order, packed: translations of sentence i are rows translations.offsets[i] .. translations.offsets[i+1]-1; a sentence may have none.
 * source: as given to wf_model_encode. The cache is made by wf_model_cache, or for fewer ids by wf_model_cache_with; it advances by T. */
WF_API wf_tensor *wf_model_decode(const wf_model *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor *const kv[],
                                  struct wf_packed translations, struct wf_packed source);

WF_END_DECLS

#endif
