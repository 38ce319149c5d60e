/* SPDX-License-Identifier: MIT */
/* What a model and its training are made of: one struct of all keys, the same names in the presets, in `--set key=value`
 * and in config.json. */
#ifndef WEFT_CONFIG_H
#define WEFT_CONFIG_H

#include <weft/nn.h>

WF_BEGIN_DECLS

struct wf_config {
    char model[64];  /* the preset that it came from: "nanogpt-char" */
    char family[32]; /* "gpt", "rms": which file of models/ builds it */

    /* architecture */
    int64_t d_model, heads, kv_heads, d_ff, layers, context, vocab_size; /* kv_heads 0: as heads; vocab_size 0: of the tokenizer */
    double dropout;
    enum wf_activation activation;
    bool tied, bias;

    /* training */
    int64_t steps, batch, accumulate; /* `batch` rows a step, in `accumulate` micro-batches */
    double lr, min_lr;
    int64_t warmup;
    int schedule;                     /* enum wf_schedule_kind; "constant", "cosine", "inverse_sqrt" in text */
    double weight_decay, beta1, beta2, eps, clip, label_smoothing;
    int64_t save_every, valid_every;  /* steps; 0: only at the end */
    int64_t keep;                     /* checkpoints that are kept; 0: none but the latest state */
    int64_t patience;                 /* validations without a better loss before training stops; 0: never */

    /* sampling, the defaults of `weft generate` */
    double temperature, top_p;
    int64_t top_k, max_tokens;
};

/* The zoo's rows. */
struct wf_preset {
    const char *name, *family, *purpose; /* purpose: one line, what it is for */
    struct wf_config config;
};
WF_API int wf_preset_count(void);
WF_API const struct wf_preset *wf_preset_at(int index);
/* A preset's configuration by name. An unknown name is WF_ERR_ARGUMENT, with the nearest name in the message. */
WF_API wf_status wf_config_preset(struct wf_config *config, const char *name, wf_error *error) WF_CHECKED;

/* Sets one key from text ("dropout", "0.1"). Unknown keys (the nearest is named), text that is no value of the key's kind
 * and values out of the key's range are WF_ERR_ARGUMENT. Numbers are read the same in every locale. */
WF_API wf_status wf_config_set(struct wf_config *config, const char *key, const char *value, wf_error *error) WF_CHECKED;
/* What holds between keys: heads divide d_model, kv_heads divide heads, sizes whose product is a model that no machine
 * holds (2^40 parameters), min_lr <= lr, accumulate <= batch; and every key's range and the family. A warm-up longer than the
 * training is allowed: a preset can be tried for a few steps. */
WF_API wf_status wf_config_check(const struct wf_config *config, wf_error *error) WF_CHECKED;
/* The value of a key as text; false if there is no such key. */
WF_API bool wf_config_get(const struct wf_config *config, const char *key, char *text, size_t size);
WF_API int wf_config_key_count(void);
WF_API const char *wf_config_key_at(int index);

/* config.json: every key with its name, model and family, "weft_version", and for readers of Hugging Face's layout
 * "model_type". Reading is strict: a missing or unknown key, a wrong type or range is WF_ERR_FORMAT with file and key. */
WF_API wf_status wf_config_save(const struct wf_config *config, const char *path, wf_error *error) WF_CHECKED;
WF_API wf_status wf_config_load(struct wf_config *config, const char *path, wf_error *error) WF_CHECKED;

/* The candidate that is nearest to `text` by edit distance, NULL if none is near: for "did you mean ...?". */
WF_API const char *wf_nearest(const char *text, const char *const *candidates, int count);

WF_END_DECLS

#endif
