/* SPDX-License-Identifier: MIT */
/* The encoder-decoder of the zoo (Vaswani et al. 2017) behind wf_model: training on pairs, and decoding step by step. Sentences are
 * packed end to end everywhere, so that padding costs nothing. For whole translations see <weft/translate.h>. */
#ifndef WEFT_SEQ2SEQ_H
#define WEFT_SEQ2SEQ_H

#include <weft/models.h>
#include <weft/pairs.h>

WF_BEGIN_DECLS

/* Whether the model translates, and takes the functions below. Those of a model of one kind on a model of another are an error of the
 * tape that says so. */
WF_API bool wf_model_translates(const wf_model *model);

/* Attention weights of every layer, for one pair: encoder [1,H,S,S], decoder [1,H,T,T] and cross [1,H,T,S], [layers] tensors each. */
struct wf_seq2seq_weights {
    wf_tensor **encoder, **decoder, **cross; /* arrays of the caller's, of encoder_layers and decoder_layers; NULL: not wanted */
};
/* N target ids of all pairs -> logits [N,V]. weights may be NULL; wanted, there must be one pair. Sets the tape's first row
 * from the pairs, so that dropout does not depend on how a batch is cut. */
WF_API wf_tensor *wf_pairs_logits(const wf_model *model, wf_tape *tape, const struct wf_pairs *pairs,
                                  const struct wf_seq2seq_weights *weights);
/* Mean cross-entropy over all targets -> [], without holding all logits. */
WF_API wf_tensor *wf_pairs_loss_with(const wf_model *model, wf_tape *tape, const struct wf_pairs *pairs,
                                     const struct wf_cross_entropy_options *options);
#ifndef __cplusplus
#define wf_pairs_loss(model, tape, pairs, ...) wf_pairs_loss_with(model, tape, pairs, &(struct wf_cross_entropy_options){__VA_ARGS__})
#endif

/* --- decoding, in WF_INFER ----------------------------------------------------------------------------------------- */
/* Source sentences, end to end -> memory [M,d]. */
WF_API wf_tensor *wf_model_encode(const wf_model *model, wf_tape *tape, const int32_t *ids, const int32_t *offsets, int64_t count);
/* Keys and values of every decoder layer's cross-attention, kv[decoder_layers], computed once for a whole translation. */
WF_API void wf_model_memory(const wf_model *model, wf_tensor *memory, wf_tensor *kv[]);
/* Ids [R,T] that continue the R rows of the cache -> logits of the last of each, [R,V]. Row r translates the sentence i with
 * row_offsets[i] <= r < row_offsets[i+1]; a sentence may have no rows. source_offsets are those of wf_model_encode. The cache is that of
 * wf_model_cache, or one for fewer ids of the same widths (wf_cache_init of decoder_layers, d_model, d_model); it is advanced. */
WF_API wf_tensor *wf_model_decode(const wf_model *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor *const kv[],
                                  const int32_t *row_offsets, const int32_t *source_offsets, int64_t count);

WF_END_DECLS

#endif
