/* SPDX-License-Identifier: MIT */
/* The zoo's models behind one face, for programs that train or run any of them. A program that is about one architecture
 * reads its file in models/ and uses nn. */
#ifndef WEFT_MODELS_H
#define WEFT_MODELS_H

#include <weft/cache.h>
#include <weft/config.h>
#include <weft/ops.h>
#include <weft/registry.h>

WF_BEGIN_DECLS

/* A decoder-only language model; or an encoder-decoder or an encoder, for which the functions on ids [B,T] below are an error:
 * theirs are in <weft/seq2seq.h> and <weft/encoder.h>. */
typedef struct wf_model wf_model;

/* Declares the model of a checked configuration with vocab_size > 0: names and shapes, no memory for weights yet. Then
 * wf_registry_build (to train from scratch), or wf_model_load. NULL with *error. Freed with wf_model_free. */
WF_API wf_model *wf_model_new(const struct wf_config *config, wf_error *error) WF_CHECKED;
WF_API void wf_model_free(wf_model *model);
WF_API wf_registry *wf_model_registry(const wf_model *model);
/* Fills the weights from an open file, as strictly as wf_registry_load: under our names, or for a model of another library's folder under
 * that library's. */
WF_API wf_status wf_model_load(wf_model *model, const wf_safetensors *file, wf_error *error) WF_CHECKED;
WF_API const struct wf_config *wf_model_config(const wf_model *model);
WF_API enum wf_model_kind wf_model_kind_of(const wf_model *model);
WF_API const struct wf_model_shape *wf_model_shape_of(const wf_model *model); /* wf_config_shape of its configuration */

/* ids [B,T] -> logits [B,T,V]. With a cache (WF_INFER) the ids continue what is in it; the cache is advanced by T. */
WF_API wf_tensor *wf_model_logits(const wf_model *model, wf_tensor *ids, struct wf_cache *cache);
/* The same without a cache, and the weights of every layer's attention: weights [layers] receives [B,H,T,T] each, rows of queries.
 * For looking at; the logits are those of wf_model_logits. */
WF_API wf_tensor *wf_model_attention(const wf_model *model, wf_tensor *ids, wf_tensor **weights);
/* The same for the last position alone -> [B,V]. */
WF_API wf_tensor *wf_model_next(const wf_model *model, wf_tensor *ids, struct wf_cache *cache);
/* Mean cross-entropy of targets [B,T] given ids [B,T] -> [], without holding all logits. */
WF_API wf_tensor *wf_model_loss_with(const wf_model *model, wf_tensor *ids, wf_tensor *targets,
                                     const struct wf_cross_entropy_options *options);
#ifndef __cplusplus
#define wf_model_loss(model, ids, targets, ...) wf_model_loss_with(model, ids, targets, &(struct wf_cross_entropy_options){__VA_ARGS__})
#endif
/* An empty cache for `rows` rows of this model's context, or of an encoder-decoder's max_length. */
WF_API wf_status wf_model_cache(const wf_model *model, struct wf_cache *cache, int64_t rows, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
