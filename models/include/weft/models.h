/* SPDX-License-Identifier: MIT */
/* One interface to all models of the zoo, for programs that train or run any of them. To build a single architecture, take its file in
 * models/ as an example and use <weft/nn.h>. */
#ifndef WEFT_MODELS_H
#define WEFT_MODELS_H

#include <weft/cache.h>
#include <weft/config.h>
#include <weft/nn.h>
#include <weft/ops.h>
#include <weft/registry.h>

WF_BEGIN_DECLS

/* A decoder-only language model, an encoder-decoder or an encoder. The functions on ids [B,T] below are for language models; those of the
 * others are in <weft/seq2seq.h> and <weft/encoder.h>. */
typedef struct wf_model wf_model;

/* Declares the names and shapes of the weights of a checked configuration with vocab_size > 0; allocates no memory for them. Call
 * wf_registry_build (to train from scratch) or wf_model_load next. NULL with *error. Free with wf_model_free. */
WF_API wf_model *wf_model_new(const struct wf_config *config, wf_error *error) WF_CHECKED;
struct wf_model_options {
    /* Adapters of the linear maps that fit the pattern, of any family, by wf_registry_lora: NULL is "*", all of them; rank 0: none. */
    const char *lora_pattern;
    struct wf_lora lora;
};
/* The same; the options may be NULL. */
WF_API wf_model *wf_model_new_with(const struct wf_config *config, const struct wf_model_options *options, wf_error *error) WF_CHECKED;
WF_API void wf_model_free(wf_model *model);
WF_API wf_registry *wf_model_registry(const wf_model *model); /* belongs to the model */
/* Loads the weights from an open file, as strictly as wf_registry_load: by Weft's names, or, for a family that another library has too, by
 * that library's, whichever the file has. */
WF_API wf_status wf_model_load(wf_model *model, const wf_safetensors *file, wf_error *error) WF_CHECKED;
/* The same with .allow_missing, .missing and .missing_ctx of the options (may be NULL); the other members say how names are mapped, which
 * is the family's to know, and must be zero. */
WF_API wf_status wf_model_load_with(wf_model *model, const wf_safetensors *file, const struct wf_load_options *options,
                                    wf_error *error) WF_CHECKED;
WF_API const struct wf_config *wf_model_config(const wf_model *model);
WF_API enum wf_model_kind wf_model_kind_of(const wf_model *model);
WF_API const struct wf_model_shape *wf_model_shape_of(const wf_model *model); /* wf_config_shape of its configuration */

/* ids [B,T] -> logits [B,T,V]. With a cache (WF_INFER) the ids continue the sequences in it, and the cache advances by T. */
WF_API wf_tensor *wf_model_logits(const wf_model *model, wf_tensor *ids, struct wf_cache *cache);
/* The same logits without a cache, and the attention weights of every layer for visualisation: weights [layers] receives tensors
 * [B,H,T,T] with a row per query. */
WF_API wf_tensor *wf_model_attention(const wf_model *model, wf_tensor *ids, wf_tensor **weights);
/* As wf_model_logits, for the last position only -> [B,V]. */
WF_API wf_tensor *wf_model_next(const wf_model *model, wf_tensor *ids, struct wf_cache *cache);
/* Mean cross-entropy of targets [B,T] given ids [B,T] -> [], without storing all logits. */
WF_API wf_tensor *wf_model_loss_with(const wf_model *model, wf_tensor *ids, wf_tensor *targets,
                                     const struct wf_cross_entropy_options *options);
#ifndef __cplusplus
#define wf_model_loss(model, ids, targets, ...) wf_model_loss_with(model, ids, targets, &(struct wf_cross_entropy_options){__VA_ARGS__})
#endif
/* An empty cache for `rows` sequences of up to the model's context, or an encoder-decoder's max_length, tokens: the family's, where it has
 * a .cache. Free it with wf_cache_free. */
WF_API wf_status wf_model_cache(const wf_model *model, struct wf_cache *cache, int64_t rows, wf_error *error) WF_CHECKED;
struct wf_model_cache_options {
    int64_t capacity; /* tokens of a sequence, for which memory is taken; 0: the context */
};
/* The same; the options may be NULL. */
WF_API wf_status wf_model_cache_with(const wf_model *model, struct wf_cache *cache, int64_t rows,
                                     const struct wf_model_cache_options *options, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
