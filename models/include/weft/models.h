/* SPDX-License-Identifier: MIT */
/* One interface to the models of all families, for programs that train or run any of them. To build a single architecture, take its file
 * in models/ as an example and use <weft/nn.h>. */
#ifndef WEFT_MODELS_H
#define WEFT_MODELS_H

#include <weft/cache.h>
#include <weft/config.h>
#include <weft/nn.h>
#include <weft/ops.h>
#include <weft/registry.h>

WF_BEGIN_DECLS

/* A decoder-only language model, an encoder-decoder or an encoder. The functions below that take ids [B,T] are for language models. Those
 * for encoder-decoders are in <weft/seq2seq.h>, and those for encoders in <weft/encoder.h>. */
typedef struct wf_model wf_model;

/* Declares the names and shapes of a model's weights, but allocates no memory for the weights: call wf_registry_build (to train from
 * scratch) or wf_model_load next. Checks the configuration, whose vocabulary size must be set. On an error returns NULL and sets *error.
 * Free the model with wf_model_free. */
WF_API wf_model *wf_model_new(const struct wf_config *config, wf_error *error) WF_CHECKED;
struct wf_model_options {
    const char *lora_pattern; /* which linear layers get LoRA adapters, as in wf_registry_lora; NULL: all of them */
    struct wf_lora lora;      /* the adapters; rank 0: no adapters */
};
/* wf_model_new with options; `options` may be NULL. */
WF_API wf_model *wf_model_new_with(const struct wf_config *config, const struct wf_model_options *options, wf_error *error) WF_CHECKED;
WF_API void wf_model_free(wf_model *model);
WF_API wf_registry *wf_model_registry(const wf_model *model); /* belongs to the model */
/* Loads the weights from an open file, as strictly as wf_registry_load. The tensors in the file have Weft's names, or the names of the
 * library that the family comes from (such as Hugging Face's for "bert"). */
WF_API wf_status wf_model_load(wf_model *model, const wf_safetensors *file, wf_error *error) WF_CHECKED;
/* wf_model_load with options, which may be NULL. Only .allow_missing, .missing, .missing_ctx, .stored and .map may be set. The other
 * members map names of tensors; setting one of them is WF_ERR_ARGUMENT, because the family itself maps the names. */
WF_API wf_status wf_model_load_with(wf_model *model, const wf_safetensors *file, const struct wf_load_options *options,
                                    wf_error *error) WF_CHECKED;
/* The model's configuration, kind and sizes. The data that the pointers point to belong to the model. */
WF_API const struct wf_config *wf_model_config(const wf_model *model);
WF_API enum wf_model_kind wf_model_kind_of(const wf_model *model);
/* The arithmetic of the model's matrix products: the setting `precision` of its configuration. Give it to the tape: wf_tape_reset(tape,
 * WF_INFER, .precision = wf_model_precision(model)). wf_model_set_precision changes the setting of the model. WF_ERR_ARGUMENT, with nothing
 * changed: the precision is unknown, or bf16 in the library of doubles. */
WF_API enum wf_precision wf_model_precision(const wf_model *model);
WF_API wf_status wf_model_set_precision(wf_model *model, enum wf_precision precision, wf_error *error) WF_CHECKED;
WF_API const struct wf_model_shape *wf_model_shape_of(const wf_model *model); /* wf_config_shape of its configuration */

/* ids [B,T] -> logits [B,T,V]. `cache` may be NULL. With a cache, in WF_INFER, the ids continue the sequences in the cache, and the cache
 * advances by T. */
WF_API wf_tensor *wf_model_logits(const wf_model *model, wf_tensor *ids, struct wf_cache *cache);
/* Returns the logits of wf_model_logits without a cache, and also gives the attention weights, for example to plot them: `weights` has
 * `layers` elements, and weights[i] receives the tensor [B,H,T,T] of layer i, with a row for each query. */
WF_API wf_tensor *wf_model_attention(const wf_model *model, wf_tensor *ids, wf_tensor **weights);
/* The logits of the last position only: ids [B,T] -> [B,V]. `cache` works as in wf_model_logits. */
WF_API wf_tensor *wf_model_next(const wf_model *model, wf_tensor *ids, struct wf_cache *cache);
/* Mean cross-entropy of targets [B,T] given ids [B,T] -> []. If the output layer is linear and has no LoRA adapters, the logits of all
 * positions are never stored at once. */
WF_API wf_tensor *wf_model_loss_with(const wf_model *model, wf_tensor *ids, wf_tensor *targets,
                                     const struct wf_cross_entropy_options *options);
#ifndef __cplusplus
#define wf_model_loss(model, ids, targets, ...) wf_model_loss_with(model, ids, targets, &(struct wf_cross_entropy_options){__VA_ARGS__})
#endif
/* Makes an empty cache for `rows` sequences. Each has room for as many tokens as `context` of wf_model_shape_of(model) says. If the family
 * has its own function .cache, that function makes the cache. Free the cache with wf_cache_free. */
WF_API wf_status wf_model_cache(const wf_model *model, struct wf_cache *cache, int64_t rows, wf_error *error) WF_CHECKED;
struct wf_model_cache_options {
    int64_t capacity; /* number of tokens per sequence for which memory is allocated; 0: the context */
};
/* wf_model_cache with options; `options` may be NULL. */
WF_API wf_status wf_model_cache_with(const wf_model *model, struct wf_cache *cache, int64_t rows,
                                     const struct wf_model_cache_options *options, wf_error *error) WF_CHECKED;
/* The memory that a model takes. */
struct wf_model_bytes {
    int64_t weights; /* bytes of the parameters as they are stored */
    int64_t mapped;  /* how many of them are not in memory of their own but in a file (.map of wf_load_options) */
    int64_t token;   /* bytes of a cache for each token and row; 0 if the family has no cache of keys and values */
};
WF_API struct wf_model_bytes wf_model_bytes(const wf_model *model);

WF_END_DECLS

#endif
