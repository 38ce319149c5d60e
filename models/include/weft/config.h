/* SPDX-License-Identifier: MIT */
/* The configuration of a model and its training. The keys of the architecture belong to the model's family; training, tokenizer and
 * generation have keys for all. Names are the same in the presets, in `--set key=value` and in config.json. A key that the model does not
 * use is refused by name. */
#ifndef WEFT_CONFIG_H
#define WEFT_CONFIG_H

#include <weft/nn.h>

WF_BEGIN_DECLS

/* Where the norm of a sublayer stands: norm(x + f(x)), or x + f(norm(x)). */
enum wf_norm_place { WF_NORM_POST, WF_NORM_PRE };
/* What a token batch of pairs costs: pairs x (longest source + longest target), or pairs x the longer of the two. */
enum wf_batch_cost { WF_BATCH_BOTH, WF_BATCH_SIDE };

enum wf_model_kind { WF_MODEL_LANGUAGE, WF_MODEL_PAIRS, WF_MODEL_ENCODER };

/* How a model is trained. */
struct wf_training {
    int64_t steps, batch, accumulate; /* `batch` rows a step, in `accumulate` micro-batches */
    int64_t batch_tokens;             /* pairs: padded positions a step, instead of `batch`; 0: all pairs at once */
    int64_t batch_tolerance;          /* positions by which a step may exceed batch_tokens */
    enum wf_batch_cost batch_cost;    /* "both", "side" */
    int64_t batch_window;             /* pairs sorted by length together; 0: all. Used with batch_tokens, as is batch_cost */
    double lr, min_lr;                /* the peak, and where "cosine" ends; the other schedules do not use min_lr */
    int64_t warmup;
    int schedule; /* enum wf_schedule_kind; "constant", "cosine", "inverse_sqrt" in text */
    double weight_decay, beta1, beta2, eps, clip, label_smoothing;
    double mask_rate;                /* encoders: share of the tokens that are masked */
    int64_t save_every, valid_every; /* steps; 0: only at the end */
    int64_t keep;                    /* latest checkpoints kept; 0: none */
    int64_t keep_every;              /* checkpoints at multiples of this step are never deleted; 0: none */
    int64_t valid_tokens;            /* of a validation, about; 0: all; -1: a third of those trained in valid_every updates, 100,000 to a million */
    int64_t patience;                /* validations without a better loss before training stops; 0: never */
};

/* The tokenizer that training makes when none is given. */
struct wf_tokenizer_settings {
    int kind;              /* wf_tokenizer_kind; "char", "word", "bpe", "byte-bpe" in text. Of a run with a given tokenizer: its kind */
    int64_t min_frequency; /* of a run with a given tokenizer: 0 */
};

/* Defaults of `weft generate` and `weft translate`. */
struct wf_generation {
    double temperature, top_p;
    int64_t top_k, max_tokens; /* of pairs too: maximum length of a translation in tokens; 0: max_length */
    int64_t beam;              /* 1: greedy */
    double length_penalty;     /* A in ((5 + length) / 6)^A */
    int64_t extra_tokens;      /* a translation is at most this many tokens longer than its source; 0: no limit */
};

/* A family of models: "gpt", "rms", "seq2seq", "encoder", "bert". */
struct wf_family;
enum { WF_CONFIG_SPACE = 512 }; /* bytes of the largest family's struct */

/* A plain value: assign it to copy it. Begin with wf_config_preset, wf_config_defaults or wf_config_load. */
struct wf_config {
    char model[64];                 /* the preset that it came from, or the family's name */
    const struct wf_family *family; /* NULL: none yet */
    struct wf_training training;
    struct wf_tokenizer_settings tokenizer;
    struct wf_generation generation;
    int64_t architecture[WF_CONFIG_SPACE / 8]; /* the family's struct; read and set by key */
};

/* A row of the zoo, in its family's file. */
struct wf_preset {
    const char *name, *purpose; /* purpose: one line */
    const char *settings;       /* what differs from the defaults: "d_model=384 heads=6 lr=1e-3" */
};
WF_API int wf_preset_count(void);
WF_API const struct wf_preset *wf_preset_at(int index);
/* A preset's configuration by name. An unknown name is WF_ERR_ARGUMENT, with the nearest name in the message. */
WF_API wf_status wf_config_preset(struct wf_config *config, const char *name, wf_error *error) WF_CHECKED;
/* The defaults of a family's keys, by the family's name; config->model is that name too. Errors as above. */
WF_API wf_status wf_config_defaults(struct wf_config *config, const char *family, wf_error *error) WF_CHECKED;

/* Sets one key from text ("dropout", "0.1"). Unknown keys (the nearest is named), keys that the model does not use (with those
 * that it uses instead), text that is not a value of the key's kind and values out of the key's range are WF_ERR_ARGUMENT. Numbers are
 * read the same in every locale. An lr below min_lr lowers min_lr to it, and a batch below accumulate accumulate: set these afterwards. */
WF_API wf_status wf_config_set(struct wf_config *config, const char *key, const char *value, wf_error *error) WF_CHECKED;
/* Several keys, separated by spaces: "d_model=24 heads=4 lr=1e-3". Stops at the first error. */
WF_API wf_status wf_config_set_all(struct wf_config *config, const char *settings, wf_error *error) WF_CHECKED;
/* Sets the vocabulary sizes, as of the tokenizers. source: of translation models with two tokenizers, else 0. */
WF_API void wf_config_set_vocab(struct wf_config *config, int64_t vocab_size, int64_t source);
/* Every key's range, and what holds between keys: heads divide d_model, min_lr <= lr, accumulate <= batch, at most 2^40 parameters, and
 * what the family checks. A warmup longer than the training is allowed: a preset can be tried for a few steps. */
WF_API wf_status wf_config_check(const struct wf_config *config, wf_error *error) WF_CHECKED;
/* The value of a key as text; false if there is no such key, or the model does not use it. */
WF_API bool wf_config_get(const struct wf_config *config, const char *key, char *text, size_t size);

/* Questions to the configuration's family, which must be known. */
WF_API const char *wf_config_family(const struct wf_config *config); /* its name; "" without one */
WF_API enum wf_model_kind wf_config_kind(const struct wf_config *config);
WF_API bool wf_config_read_only(const struct wf_config *config); /* a model from another library's folder: used here, not trained */

/* What programs that run any model ask of a configuration. */
struct wf_model_shape {
    int64_t vocab_size;             /* of the target, for pairs; 0: to be set from the tokenizer */
    int64_t source_vocab_size;      /* pairs: of the source */
    int64_t context;                /* maximum tokens in a row; pairs: in a sentence, special tokens included */
    int64_t width;                  /* d of the hidden states [..,d] */
    int64_t layers, encoder_layers; /* blocks; pairs: of the decoder, and of the encoder */
    int64_t heads, kv_width;        /* attention heads of a block; width of a block's cached keys, and of its values */
    int64_t ffn_weights;            /* elements of the matrices of a block's feed-forward */
    int64_t segments;               /* segment kinds with an embedding; 0: none */
    bool shared_tokenizer;          /* pairs: one tokenizer for source and target */
    bool source_bos, source_eos;    /* special tokens of the source; a target always has both */
};
WF_API struct wf_model_shape wf_config_shape(const struct wf_config *config);

/* --- keys, for listings -------------------------------------------------------------------------------------------- */
struct wf_config_key {
    const char *name, *meaning; /* meaning: one line, with the unit */
    const char *section;        /* "training", "tokenizer", "generation", or the family's name */
    const char *value;          /* the default */
    char values[80];            /* what it can be: "1 to 1024", "above 0", "post or pre", "true or false" */
    bool resumable;             /* the resume of a training may change it */
    int kinds;                  /* kinds of model that use it, as bits 1 << enum wf_model_kind; 0: all */
};
/* The keys of one configuration, in the order of config.json; false past the last. */
WF_API bool wf_config_key_at(const struct wf_config *config, int index, struct wf_config_key *out);
/* All sections: the common ones, then the families; NULL past the last. */
WF_API const char *wf_config_section_at(int index);
/* The keys of a section; a name can occur twice, for different kinds of model. false past the last. */
WF_API bool wf_config_section_key(const char *section, int index, struct wf_config_key *out);

/* config.json: every key with its name, model and family, "weft_version", and for readers of Hugging Face's layout "model_type". A key
 * that a file lacks has its default. One's own file needs only "model" (a preset, whose values the others then have) or "family". Unknown
 * keys (the nearest is named), wrong types and values out of range are WF_ERR_FORMAT with file and key. */
WF_API wf_status wf_config_save(const struct wf_config *config, const char *path, wf_error *error) WF_CHECKED;
WF_API wf_status wf_config_load(struct wf_config *config, const char *path, wf_error *error) WF_CHECKED;
/* The keys of such a file over those that *config has; the file needs neither "model" nor "family". */
WF_API wf_status wf_config_load_over(struct wf_config *config, const char *path, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
