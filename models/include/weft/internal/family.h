/* SPDX-License-Identifier: MIT */
/* Internals of models and families for the rooms above models/, besides <weft/family.h>. */
#ifndef WEFT_INTERNAL_FAMILY_H
#define WEFT_INTERNAL_FAMILY_H

#include <weft/family.h>

/* The families of models/meson.build, in that order; ends with NULL. */
extern const struct wf_family *const wf_zoo[];

/* wf_config_set for one key alone. in_file: for a value in a file of Weft's, where a tokenizer that can't be trained may stand. */
wf_status wf_config_set_as(struct wf_config *config, const char *key, const char *value, bool in_file, wf_error *error) WF_CHECKED;

/* A wf_model. */
struct wf_model {
    struct wf_config config;
    const struct wf_family *family;
    struct wf_model_shape shape;
    wf_registry *registry;
    void *body; /* the family's struct */
};
/* Whether it has an output layer; encoders may lack one. */
bool wf_has_head(const wf_model *model);
/* Gives a configuration the output layer that a training needs, where the family leaves it open. Returns the key's name; NULL: none. */
const char *wf_config_set_head(struct wf_config *config);
/* Lowers crop to the context, of an architecture that comes from elsewhere than the settings of training. */
void wf_config_settle(struct wf_config *config);
/* Whether a vocabulary fits a model that another library trained, whose embeddings are often padded to a multiple of 8 to 128 rows: a
 * tokenizer may then have a few types less. */
bool wf_config_fits(const struct wf_config *config, int64_t types);
/* Hidden states [..,d] -> logits [..,V], or the mean cross-entropy of targets [..]. A model without a head is an error of the tape. */
wf_tensor *wf_head_logits(const wf_model *model, wf_tensor *x);
wf_tensor *wf_head_loss(const wf_model *model, wf_tensor *x, wf_tensor *targets, const struct wf_cross_entropy_options *options);

/* Around a call of a family's function on `tape`: in a training with checkpoint=true wf_blocks_forward recomputes each block in backward.
 * wf_blocks_end returns x, or poison where the function did not call it. */
struct wf_blocks_pass {
    const wf_model *model;
    bool recompute, ran;
    struct wf_blocks_pass *outer;
};
void wf_blocks_begin(struct wf_blocks_pass *pass, const wf_model *model, const wf_tape *tape);
wf_tensor *wf_blocks_end(struct wf_blocks_pass *pass, wf_tape *tape, wf_tensor *x);
/* A copy on the tape for blocks that are computed again, when the caller's memory may be gone. NULL: `from` is, or the tape has the error.
 */
void *wf_blocks_copy(wf_tape *tape, const void *from, size_t bytes);

/* Collects what the model's functions add by wf_loss_term_add while its loss is computed on `tape`, in this thread. share: of the ids of
 * this part in the batch; source_share: of the source's ids. wf_loss_terms_end gives the loss with the terms; *term: their sum, times the
 * shares, or NULL where there are none. */
struct wf_loss_terms {
    const wf_model *model;
    wf_tape *tape;
    wf_tensor *sum;
    double share, source_share;
    bool source; /* the source's encoder is running */
    struct wf_loss_terms *outer;
};
void wf_loss_terms_begin(struct wf_loss_terms *t, const wf_model *model, wf_tape *tape, double share, double source_share);
void wf_loss_terms_of_source(const wf_tape *tape, bool source);
wf_tensor *wf_loss_terms_end(struct wf_loss_terms *t, wf_tensor *loss, wf_tensor **term);

#endif
