/* SPDX-License-Identifier: MIT */
/* The configuration of a model and its training. The keys of the architecture belong to the model's family; the keys of training,
 * tokenizer and generation are common to all families. Names are the same in the presets, in `--set key=value` and in config.json.
 * Setting a key that the model does not use is an error. */
#ifndef WEFT_CONFIG_H
#define WEFT_CONFIG_H

#include <weft/nn.h>

WF_BEGIN_DECLS

/* Placement of a sublayer's norm: norm(x + f(x)), or x + f(norm(x)). */
enum wf_norm_place { WF_NORM_POST, WF_NORM_PRE };
/* Size of a batch of pairs in padded tokens: pairs x (longest source + longest target), or pairs x the longer of the two. */
enum wf_batch_cost { WF_BATCH_BOTH, WF_BATCH_SIDE };

/* The measure for the best weights and for patience of a translation model: the loss, BLEU or chrF of the validation text. */
enum wf_best_by { WF_BEST_LOSS, WF_BEST_BLEU, WF_BEST_CHRF };

enum wf_model_kind { WF_MODEL_LANGUAGE, WF_MODEL_PAIRS, WF_MODEL_ENCODER };

/* Hyperparameters of training. */
struct wf_training {
    int64_t steps, batch, accumulate; /* `batch` rows per step, in `accumulate` micro-batches */
    double epochs;                    /* passes through the training text, from which wf_train makes steps; 0: steps counts */
    int64_t leaves;                   /* wf_fit_options.leaves; 0: chosen */
    bool checkpoint;                  /* blocks are computed a second time in backward: see weft/blocks.h */
    int64_t batch_tokens;             /* pairs: padded positions per step, instead of `batch`; 0: one batch of all pairs */
    int64_t batch_tolerance;          /* positions by which a step may exceed batch_tokens */
    enum wf_batch_cost batch_cost;    /* "both", "side"; used with batch_tokens */
    int64_t batch_window;             /* pairs that are sorted by length together; 0: all. Used with batch_tokens */
    double lr, min_lr;                /* peak, and final value of "cosine"; the other schedules do not use min_lr */
    int64_t warmup;
    int schedule; /* enum wf_schedule_kind; "constant", "cosine", "inverse_sqrt" in text */
    double weight_decay, beta1, beta2, eps, clip, label_smoothing;
    double ema;                      /* wf_optimizer.ema */
    double mask_rate;                /* encoders: fraction of the tokens that are masked */
    int64_t crop;                    /* encoders: tokens of a row, at most the context; 0: the context */
    bool frame;                      /* encoders: a row begins and ends with the tokenizer's start and end tokens ([CLS], [SEP]) */
    int64_t save_every, valid_every; /* steps; 0: only at the end */
    int64_t log_every;               /* steps between lines of metrics.jsonl */
    int64_t keep;                    /* number of latest checkpoints kept; 0: none */
    int64_t keep_every;              /* checkpoints at multiples of this step are never deleted; 0: none */
    int64_t valid_tokens;            /* approximate size of a validation; 0: all tokens; -1: a tenth of those trained between two
                                        validations, at most 1,000,000 */
    int64_t patience;                /* stops after this many validations without improvement; 0: never */
    enum wf_best_by best_by;         /* pairs: "loss", "bleu", "chrf"; the latter two translate the validation text each time */
    bool valid_scores;               /* pairs: BLEU and chrF are measured, for any best_by */
    double max_ratio;                /* pairs to train on: wf_bitext_options.max_ratio; 0: no limit */
    bool deduplicate;                /* pairs to train on: wf_bitext_options.deduplicate */
};

/* The optimiser of training, and its own hyperparameters: weft/optimizers.h. */
enum { WF_OPTIMIZER_SPACE = 128 }; /* bytes of the largest struct of hyperparameters */
enum wf_optimizer_number {
    WF_OPTIMIZER_ELSEWHERE = -1, /* in the config.json of a run: one that this program has not registered; .values is its name. The model
                                    can be used; wf_config_check, and so a training, and wf_config_save refuse it */
    WF_OPTIMIZER_ADAMW,
    WF_OPTIMIZER_SGD
};
struct wf_optimizer_settings {
    int kind;                               /* wf_optimizer_number, then those that the program has registered; as text their names */
    int64_t values[WF_OPTIMIZER_SPACE / 8]; /* its struct, read and set by the keys NAME.KEY; AdamW's are in wf_training */
};

/* The tokenizer that training creates when none is given. */
struct wf_tokenizer_settings {
    int kind;              /* wf_tokenizer_kind; as text "char", "word", "bpe", "byte-bpe". If a tokenizer was given: its kind */
    int64_t min_frequency; /* 0 if a tokenizer was given */
};

/* Defaults of `weft generate` and `weft translate`. */
struct wf_generation {
    double temperature, top_p; /* temperature 0: greedy */
    int64_t top_k, max_tokens; /* max_tokens: new tokens, or maximum length of a translation in tokens (0: max_length) */
    int64_t beam;              /* beam width; 1: greedy */
    double length_penalty;     /* A in ((5 + length) / 6)^A */
    int64_t extra_tokens;      /* a translation may be this many tokens longer than its source; 0: no limit */
};

/* A family of models: "gpt", "rms", "seq2seq", "encoder", "bert". */
struct wf_family;
enum { WF_CONFIG_SPACE = 512 }; /* bytes of the largest family's struct */

/* A plain value that can be copied by assignment. Initialize it with wf_config_preset, wf_config_defaults or wf_config_load. */
struct wf_config {
    char model[64];                 /* name of the preset, or of the family */
    const struct wf_family *family; /* NULL: none yet */
    struct wf_training training;
    struct wf_optimizer_settings optimizer;
    struct wf_tokenizer_settings tokenizer;
    struct wf_generation generation;
    int64_t architecture[WF_CONFIG_SPACE / 8]; /* the family's struct; read and set by key */
};

/* A named configuration, defined in its family's file. */
struct wf_preset {
    const char *name, *purpose; /* purpose: one line */
    const char *settings;       /* differences from the defaults: "d_model=384 heads=6 lr=1e-3" */
};
WF_API const struct wf_preset *wf_preset_at(int index); /* NULL past the last */
/* A preset's configuration by name. An unknown name is WF_ERR_ARGUMENT, with the nearest name in the message. */
WF_API wf_status wf_config_preset(struct wf_config *config, const char *name, wf_error *error) WF_CHECKED;
/* The defaults of the family with this name; config->model is set to the name. Errors as above. */
WF_API wf_status wf_config_defaults(struct wf_config *config, const char *family, wf_error *error) WF_CHECKED;

/* Sets one key from text ("dropout", "0.1"). WF_ERR_ARGUMENT: an unknown key (the message suggests the nearest), a key that the model does
 * not use (the message lists those that it uses instead), a value of the wrong type or out of range. Numbers are read the same in every
 * locale. Setting steps sets epochs to 0. Setting lr below min_lr also lowers min_lr to lr, setting batch below accumulate lowers
 * accumulate to batch, setting the context below crop lowers crop to it, and leaves that no longer divide accumulate are chosen anew; so
 * set min_lr after lr, accumulate after batch, crop after context, and leaves after accumulate. Setting another optimizer gives its keys
 * (sgd.momentum) their defaults; those of other optimisers are refused, so set optimizer before them. */
WF_API wf_status wf_config_set(struct wf_config *config, const char *key, const char *value, wf_error *error) WF_CHECKED;
/* Several keys, separated by spaces: "d_model=24 heads=4 lr=1e-3". Stops at the first error. */
WF_API wf_status wf_config_set_all(struct wf_config *config, const char *settings, wf_error *error) WF_CHECKED;
/* Sets the vocabulary sizes, taken from the tokenizers. source: the source vocabulary of a translation model with two tokenizers, else 0.
 */
WF_API void wf_config_set_vocab(struct wf_config *config, int64_t vocab_size, int64_t source);
/* Checks the range of every key and the constraints between keys: heads divides d_model, min_lr <= lr, accumulate <= batch, at most 2^40
 * parameters, and the family's constraints. warmup may exceed steps, so that a preset can be tried for a few steps. */
WF_API wf_status wf_config_check(const struct wf_config *config, wf_error *error) WF_CHECKED;
/* The value of a key as text; false if the key is unknown or the model does not use it. */
WF_API bool wf_config_get(const struct wf_config *config, const char *key, char *text, size_t size);

/* Properties of the configuration's family, which must be set. */
WF_API const char *wf_config_family(const struct wf_config *config); /* its name; "" without one */
WF_API enum wf_model_kind wf_config_kind(const struct wf_config *config);
/* Whether the model comes from another library: Weft runs it, but does not train it. */
WF_API bool wf_config_read_only(const struct wf_config *config);

/* Sizes that are common to all families. */
struct wf_model_shape {
    int64_t vocab_size;             /* translation: of the target. 0: not set yet */
    int64_t source_vocab_size;      /* translation: of the source */
    int64_t context;                /* maximum number of tokens in a sequence; translation: in a sentence, with special tokens */
    int64_t width;                  /* d of the hidden states [..,d] */
    int64_t layers, encoder_layers; /* number of blocks; translation: of the decoder, and of the encoder */
    int64_t heads, kv_width;        /* attention heads per block; width of the cached keys per block, the same as of the values */
    int64_t ffn_weights;            /* elements of a block's feed-forward matrices */
    int64_t segments;               /* size of the segment embedding; 0: none */
    bool shared_tokenizer;          /* translation: one tokenizer for source and target */
    bool source_bos, source_eos;    /* special tokens around the source; a target always has both */
};
WF_API struct wf_model_shape wf_config_shape(const struct wf_config *config);

/* --- listing keys -------------------------------------------------------------------------------------------------- */
struct wf_config_key {
    const char *name, *meaning; /* meaning: one line, with the unit */
    const char *section;        /* "training", "optimizer", "tokenizer", "generation", or the family's name */
    const char *value;          /* the default */
    char values[80];            /* allowed values: "1 to 1024", "above 0", "post or pre", "true or false" */
    bool resumable;             /* a resumed training may use another value */
    bool of_batches;            /* such a resume begins an epoch of pairs, since their batches depend on the key */
    bool of_validation;         /* such a resume compares losses of validations anew, since they depend on the key */
    int kinds;                  /* model kinds that use it, as bits 1 << enum wf_model_kind; 0: all */
};
/* The keys of one configuration, in the order of config.json; false past the last. */
WF_API bool wf_config_key_at(const struct wf_config *config, int index, struct wf_config_key *out);
/* All sections: the common ones, then the families; NULL past the last. */
WF_API const char *wf_config_section_at(int index);
/* The keys of a section; a name can occur twice, for different kinds of model. false past the last. */
WF_API bool wf_config_section_key(const char *section, int index, struct wf_config_key *out);

/* config.json holds "model", "family", every key by its name, "weft_version", and "model_type" for programs that read Hugging Face's
 * format. A file that you write needs only "model" or "family": with "model" missing keys take the values of that preset, with "family"
 * the defaults. Unknown keys (the message suggests the nearest), wrong types and values out of range are WF_ERR_FORMAT; the message gives
 * file and key. The file of a run, which has "weft_version", may name an optimizer that is not registered here: WF_OPTIMIZER_ELSEWHERE. */
WF_API wf_status wf_config_save(const struct wf_config *config, const char *path, wf_error *error) WF_CHECKED;
WF_API wf_status wf_config_load(struct wf_config *config, const char *path, wf_error *error) WF_CHECKED;
/* Overwrites the keys of *config that such a file contains; the file needs neither "model" nor "family". */
WF_API wf_status wf_config_load_over(struct wf_config *config, const char *path, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
