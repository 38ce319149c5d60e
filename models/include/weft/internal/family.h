/* SPDX-License-Identifier: MIT */
/* Declarations about models and families for training and inference, in addition to the public <weft/family.h>. */
#ifndef WEFT_INTERNAL_FAMILY_H
#define WEFT_INTERNAL_FAMILY_H

#include <weft/family.h>

/* Weft's own families, in the order of the list in models/meson.build; ends with NULL. */
extern const struct wf_family *const wf_zoo[];
/* The next type of a list model_type, cut at 63 characters; moves *at. False at the end. */
bool family_next_type(const char **at, char type[64]);
/* Whether the family reads config.json of another library with this "model_type". */
bool family_reads(const struct wf_family *family, const char *type);

/* Sets one key as wf_config_set does, but changes no second key, except that a new value of `optimizer` also gives the keys of that
 * optimiser their defaults. in_file: the value comes from a file that Weft wrote, which may name kinds of tokenizer that users cannot
 * set. */
wf_status wf_config_set_as(struct wf_config *config, const char *key, const char *value, bool in_file, wf_error *error) WF_CHECKED;

struct wf_model {
    struct wf_config config;
    const struct wf_family *family;
    struct wf_model_shape shape;
    wf_registry *registry;
    void *body; /* the model's struct, which the family defines */
};
/* Whether the model has an output layer; encoders may lack one. */
bool wf_has_head(const wf_model *model);
/* Switches on the output layer, which every training needs, if the family has a key with the role WF_KEY_HEAD. Returns that key's name, or
 * NULL if the family has no such key. */
const char *wf_config_set_head(struct wf_config *config);
/* Lowers an encoder's `crop` to its context if `crop` is larger. Call it if the architecture and the settings of training were taken
 * from two configurations. */
void wf_config_settle(struct wf_config *config);
/* Whether a tokenizer with `types` ids fits the model. The embeddings of a model that another library trained are often padded to a
 * multiple of 8 to 128 rows, or have room for further tokens, so a tokenizer with slightly fewer ids fits such a model. */
bool wf_config_fits(const struct wf_config *config, int64_t types);
/* The same, but before a training has set the vocabulary size (0), any tokenizer is taken. */
bool wf_config_takes(const struct wf_config *config, int64_t types);
/* Hidden states [..,d] -> logits [..,V]. A model without an output layer is an error of the tape. */
wf_tensor *wf_head_logits(const wf_model *model, wf_tensor *x);
/* Hidden states [..,d] -> mean cross-entropy of targets [..]. A model without an output layer is an error of the tape. */
wf_tensor *wf_head_loss(const wf_model *model, wf_tensor *x, wf_tensor *targets, const struct wf_cross_entropy_options *options);

enum { WF_NO_TARGET = -1 };
/* The losses in nats of each target: ids [B,T] and the targets of their last t positions [B,t] -> [B,t]. The loss of the target
 * WF_NO_TARGET is 0. Without gradients, a loss has the same bits whatever else is in the batch, in ids after its position, and with a cache
 * (NULL: none), whose sequences the ids continue. */
wf_tensor *wf_model_token_losses(const wf_model *model, wf_tensor *ids, wf_tensor *targets, struct wf_cache *cache);

/* Call wf_blocks_begin before and wf_blocks_end after each call of a family's function on `tape`. Between the two calls, in a training with
 * checkpoint=true, wf_blocks_forward records its blocks so that backward computes them again. wf_blocks_end returns x, or poison if the
 * family's function should have called wf_blocks_forward but did not. */
struct wf_blocks_pass {
    const wf_model *model;
    bool recompute;               /* this is a training with checkpoint=true */
    bool ran;                     /* wf_blocks_forward was called */
    struct wf_blocks_pass *outer; /* the thread's pass before wf_blocks_begin, which wf_blocks_end restores */
};
void wf_blocks_begin(struct wf_blocks_pass *pass, const wf_model *model, const wf_tape *tape);
wf_tensor *wf_blocks_end(struct wf_blocks_pass *pass, wf_tape *tape, wf_tensor *x);
/* Returns x, or poison if a file from which weights are mapped was truncated (wf_registry_intact), so that x may be wrong. */
wf_tensor *wf_model_intact(const wf_model *model, wf_tensor *x);
/* Returns x, the result of the family's function of this name, or poison if that has advanced the cache, whose first row held `before`
 * tokens: the caller advances it. */
wf_tensor *wf_cache_untouched(const wf_model *model, wf_tensor *x, const char *function, const struct wf_cache *cache, int32_t before);
/* Copies `bytes` bytes to memory of the tape, because backward computes blocks again when the caller's memory may already be freed. Returns
 * NULL if `from` is NULL, or if there is no memory, which is an error of the tape. */
void *wf_blocks_copy(wf_tape *tape, const void *from, size_t bytes);

/* Between wf_loss_terms_begin and wf_loss_terms_end the loss of a micro-batch is computed on `tape` in this thread, and the terms that the
 * model's functions add with wf_loss_term_add are summed. wf_loss_terms_end returns the loss plus that sum, and sets *term to the sum, or
 * to NULL if no term was added. */
struct wf_loss_terms {
    const wf_model *model;
    wf_tape *tape;
    wf_tensor *sum;              /* terms added so far, each times its share */
    double share;                /* (ids of the micro-batch) / (ids of the batch); target ids in a translation model */
    double source_share;         /* the same ratio for the source ids of a translation model */
    bool source;                 /* the encoder of the source is running, so terms are multiplied by source_share */
    struct wf_loss_terms *outer; /* the thread's struct before wf_loss_terms_begin, which wf_loss_terms_end restores */
};
void wf_loss_terms_begin(struct wf_loss_terms *t, const wf_model *model, wf_tape *tape, double share, double source_share);
/* Call it with true before the encoder of the source runs, and with false after it. */
void wf_loss_terms_of_source(const wf_tape *tape, bool source);
wf_tensor *wf_loss_terms_end(struct wf_loss_terms *t, wf_tensor *loss, wf_tensor **term);

#endif
