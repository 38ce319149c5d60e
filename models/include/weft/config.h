/* SPDX-License-Identifier: MIT */
/* The configuration of a model and its training, as keys with values. The keys of the architecture belong to the model's family; the keys
 * of training, optimiser, tokenizer and generation are common to all families. A key has the same name in the presets, in
 * `--set key=value` and in config.json. Setting a key that the model does not use is an error. */
#ifndef WEFT_CONFIG_H
#define WEFT_CONFIG_H

#include <weft/nn.h>

WF_BEGIN_DECLS

/* The place at which a sublayer f applies its norm. */
enum wf_norm_place {
    WF_NORM_POST, /* norm(x + f(x)) */
    WF_NORM_PRE   /* x + f(norm(x)) */
};
/* How the size of a batch of sentence pairs is counted, in padded tokens. */
enum wf_batch_cost {
    WF_BATCH_BOTH, /* number of pairs x (longest source + longest target) */
    WF_BATCH_SIDE  /* number of pairs x max(longest source, longest target) */
};

/* The measure by which a training of a translation model compares its validations. The weights of the validation with the best value are
 * the best weights, and the training stops after `patience` validations without a better value. */
enum wf_best_by { WF_BEST_LOSS, WF_BEST_BLEU, WF_BEST_CHRF };

/* A language model without an encoder, an encoder-decoder for sentence pairs (a translation model), or an encoder. */
enum wf_model_kind { WF_MODEL_LANGUAGE, WF_MODEL_PAIRS, WF_MODEL_ENCODER };

/* Hyperparameters of a training. "In text" says what the value is called in config.json and in `--set key=value`. */
struct wf_training {
    int64_t steps;                 /* total number of updates */
    int64_t batch;                 /* sequences per update; translation models use batch_tokens instead */
    int64_t accumulate;            /* number of micro-batches into which the batch of an update is divided */
    double epochs;                 /* if above 0, wf_train sets `steps` so that the training passes through the text this many times */
    int64_t leaves;                /* leaves of the reduction tree of gradients, as in wf_fit_options; 0: chosen automatically */
    enum wf_precision precision;   /* arithmetic of matrix products, also of the trained model in use; in text "f32" or "bf16" */
    bool checkpoint;               /* backward computes each block a second time to save memory: see weft/blocks.h */
    int64_t batch_tokens;          /* translation models: padded tokens per update; 0: all pairs in one batch */
    int64_t batch_tolerance;       /* an update may exceed batch_tokens by this number of tokens */
    enum wf_batch_cost batch_cost; /* how an update's tokens are counted for batch_tokens; in text "both" or "side" */
    int64_t batch_window;          /* number of pairs that are sorted by length at a time, before batch_tokens divides them; 0: all */
    double lr;                     /* peak learning rate */
    double min_lr;                 /* final learning rate of the schedules that decay; "constant" and "inverse_sqrt" ignore it */
    int64_t warmup;                /* updates until the learning rate reaches its peak */
    int schedule;                  /* enum wf_schedule_kind; in text "constant", "cosine", "inverse_sqrt", "linear", "wsd" or "one_cycle" */
    int64_t decay;                 /* updates of the decay of the schedule "wsd"; 0: a tenth of `steps` */
    double start_lr;               /* first learning rate of the schedule "one_cycle"; 0: lr / 25 */
    int curve;                     /* enum wf_schedule_curve of "wsd" and "one_cycle"; in text "default", "linear", "cosine" or "sqrt" */
    double weight_decay, beta1, beta2, eps, clip, label_smoothing;
    double clip_value;       /* maximum absolute value of a gradient's elements; 0: no clipping by value */
    double ema;              /* decay of a moving average of the weights, as in struct wf_optimizer; 0: no average */
    double mask_rate;        /* encoders: fraction of the tokens that are masked */
    int64_t crop;            /* encoders: number of tokens of a row, at most the context; 0: the context */
    bool frame;              /* encoders: each row begins and ends with the tokenizer's start and end tokens ([CLS], [SEP]) */
    int64_t save_every;      /* updates between two saves; 0: one save at the end */
    int64_t valid_every;     /* updates between two validations; 0: one validation at the end */
    int64_t log_every;       /* updates between two lines of metrics.jsonl */
    int64_t keep;            /* how many of the latest checkpoints are kept; 0: none */
    int64_t keep_every;      /* checkpoints at multiples of this step are never deleted; 0: every checkpoint may be deleted */
    int64_t valid_tokens;    /* approximate number of tokens per validation; 0: the whole validation text; -1: a tenth of the tokens
                                that are trained on between two validations, at most 1,000,000 */
    int64_t patience;        /* training stops after this number of validations without improvement; 0: never */
    enum wf_best_by best_by; /* for translation models; in text "loss", "bleu" or "chrf". With "bleu" and "chrf" each validation
                                translates the validation text */
    bool valid_scores;       /* translation models: each validation measures BLEU and chrF, whatever best_by is */
    double max_ratio; /* a pair is not trained on if its longer sentence has more than this number times the tokens of its shorter one; 0:
                         no limit */
    bool deduplicate; /* only the first of several equal pairs is trained on */
};

/* The optimiser of a training and its hyperparameters; a program can register further optimisers with <weft/optimizers.h>. */
enum { WF_OPTIMIZER_SPACE = 128 }; /* maximum size of an optimiser's struct of hyperparameters in bytes */
enum wf_optimizer_number {
    WF_OPTIMIZER_ELSEWHERE = -1, /* the config.json that wf_config_load has read is that of a run, and names an optimiser that this program
                                    has not registered; `values` holds the name of this optimiser as a string. The model can be used, but
                                    wf_config_save and wf_config_check refuse the configuration, so it cannot be trained */
    WF_OPTIMIZER_ADAMW,
    WF_OPTIMIZER_SGD,
    WF_OPTIMIZER_LION,
    WF_OPTIMIZER_ADAFACTOR,
    WF_OPTIMIZER_MUON
};
struct wf_optimizer_settings {
    int kind;                               /* enum wf_optimizer_number; registered optimisers have the numbers after WF_OPTIMIZER_MUON.
                                               In text: the optimiser's name */
    int64_t values[WF_OPTIMIZER_SPACE / 8]; /* the optimiser's struct of hyperparameters; the keys NAME.KEY read and set its members.
                                               AdamW's hyperparameters are in struct wf_training instead */
};

/* The tokenizer that a training creates if the user gives none. */
struct wf_tokenizer_settings {
    int kind;              /* enum wf_tokenizer_kind; in text "char", "word", "bpe" or "byte-bpe"; if the user gave a tokenizer, its kind */
    int64_t min_frequency; /* minimum number of occurrences of a word or merge; 0 if the user gave a tokenizer */
};

/* Defaults of `weft generate` and `weft translate`. */
struct wf_generation {
    double temperature; /* softmax temperature; 0: always the most likely token */
    double top_p;  /* samples from the smallest set of most likely tokens whose total probability reaches this number; 1: from all tokens */
    int64_t top_k; /* samples from this number of most likely tokens; 0: all tokens */
    double min_p;  /* samples from tokens that are at least this many times as likely as the likeliest; 0: from all */
    double repetition_penalty; /* of tokens that prompt or text have (wf_penalize); 1: none */
    int64_t max_tokens; /* language models: maximum number of new tokens. Translation models: maximum length of a translation in tokens; 0:
                           the value of the key max_length */
    int64_t beam;       /* beam width; 1: greedy */
    double length_penalty; /* A in ((5 + length) / 6)^A, by which the score of a translation is divided */
    int64_t extra_tokens;  /* a translation may be this number of tokens longer than its source; 0: no limit */
};

/* A family of models, such as "gpt" or "seq2seq": struct wf_family is defined in <weft/family.h>. */
struct wf_family;
enum { WF_CONFIG_SPACE = 512 }; /* maximum size of a family's configuration struct in bytes */

/* A plain value that can be copied by assignment. Initialize it with wf_config_preset, wf_config_defaults or wf_config_load. */
struct wf_config {
    char model[64];                 /* name of the preset, or of the family */
    const struct wf_family *family; /* NULL: no family is set yet */
    struct wf_training training;
    struct wf_optimizer_settings optimizer;
    struct wf_tokenizer_settings tokenizer;
    struct wf_generation generation;
    int64_t architecture[WF_CONFIG_SPACE / 8]; /* the family's configuration struct; keys read and set its members */
};

/* A named configuration of a family. */
struct wf_preset {
    const char *name;
    const char *purpose;  /* one line */
    const char *settings; /* the settings that differ from the defaults of the keys: "d_model=384 heads=6 lr=1e-3" */
};
/* Entry `index` in the list of the presets of all families; NULL past the last entry. */
WF_API const struct wf_preset *wf_preset_at(int index);
/* Sets *config to the preset with this name. An unknown name is WF_ERR_ARGUMENT, and the message suggests the nearest name. */
WF_API wf_status wf_config_preset(struct wf_config *config, const char *name, wf_error *error) WF_CHECKED;
/* Sets *config to the defaults of the family with this name, and config->model to the name. An unknown name is WF_ERR_ARGUMENT, and the
 * message suggests the nearest name. */
WF_API wf_status wf_config_defaults(struct wf_config *config, const char *family, wf_error *error) WF_CHECKED;

/* Sets one key from text ("dropout", "0.1"). Numbers are read the same in every locale. WF_ERR_ARGUMENT: the key is unknown (the message
 * suggests the nearest one), the model does not use the key (the message names the keys to set instead), or the value has the wrong type or
 * is out of range. Setting one of the following keys can change a second key as well:
 *
 *   steps        sets epochs to 0
 *   lr           lowers min_lr to lr
 *   batch        lowers accumulate to batch
 *   the context  lowers crop to the context
 *   accumulate   sets leaves to 0 (chosen automatically) if leaves does not divide accumulate
 *   optimizer    gives the keys of a different optimiser (such as sgd.momentum) their defaults
 *
 * Therefore set `min_lr` after `lr`, `accumulate` after `batch`, `crop` after the context, and `leaves` after `accumulate`. Set `optimizer`
 * before the keys of that optimiser, because keys of any other optimiser are an error. */
WF_API wf_status wf_config_set(struct wf_config *config, const char *key, const char *value, wf_error *error) WF_CHECKED;
/* Sets several keys, separated by spaces: "d_model=24 heads=4 lr=1e-3". Stops at the first error; the keys before the error are then set.
 * Unlike in wf_config_set, no key changes a second key, except that `optimizer` gives the keys of a different optimiser their defaults. */
WF_API wf_status wf_config_set_all(struct wf_config *config, const char *settings, wf_error *error) WF_CHECKED;
/* Sets the vocabulary sizes, which come from the tokenizers. `source` is the size of the source vocabulary of a translation model with two
 * tokenizers, and 0 for every other model. */
WF_API void wf_config_set_vocab(struct wf_config *config, int64_t vocab_size, int64_t source);
/* Checks the range of every key and the conditions between keys: `heads` divides `d_model`, min_lr <= lr, accumulate <= batch, the model
 * has at most 2^40 parameters, and the family's own conditions. `warmup` may be greater than `steps`, because then a preset can be tried
 * for a few steps without another setting. */
WF_API wf_status wf_config_check(const struct wf_config *config, wf_error *error) WF_CHECKED;
/* Writes the value of a key into `text`, of `size` bytes. False: the key is unknown, or the model does not use it. */
WF_API bool wf_config_get(const struct wf_config *config, const char *key, char *text, size_t size);

/* The name of the configuration's family; "" if no family is set. */
WF_API const char *wf_config_family(const struct wf_config *config);
/* The kind of the family's models. */
WF_API enum wf_model_kind wf_config_kind(const struct wf_config *config);
/* Whether the model comes from another library; Weft runs such a model but does not train it. */
WF_API bool wf_config_read_only(const struct wf_config *config);

/* Sizes that are common to all families. */
struct wf_model_shape {
    int64_t vocab_size;        /* size of the vocabulary (in a translation model: of the target's); 0: not set yet */
    int64_t source_vocab_size; /* in a translation model: size of the source's vocabulary */
    int64_t context;           /* maximum number of tokens in a sequence (in a translation model: in a sentence, with special tokens) */
    int64_t width;             /* d of the hidden states [..,d] */
    int64_t layers;            /* number of blocks (in a translation model: decoder blocks) */
    int64_t encoder_layers;    /* in a translation model: number of encoder blocks */
    int64_t heads;             /* attention heads per block */
    int64_t kv_width;          /* width of a block's cached keys; its cached values have the same width */
    int64_t ffn_weights;       /* number of elements of a block's feed-forward matrices */
    int64_t segments;          /* number of segments that the segment embedding knows; 0: the model has no segment embedding */
    bool shared_tokenizer;     /* in a translation model: source and target use the same tokenizer */
    bool source_bos;           /* the source begins with the start token; a target always does */
    bool source_eos;           /* the source ends with the end token; a target always does */
};
WF_API struct wf_model_shape wf_config_shape(const struct wf_config *config);

/* --- listing keys -------------------------------------------------------------------------------------------------- */
/* The description of a key, for help texts and checks. */
struct wf_config_key {
    const char *name;
    const char *meaning; /* one line, with the unit */
    const char *section; /* "training", "optimizer", "tokenizer", "generation", or the family's name */
    const char *value;   /* the default */
    char values[80];     /* allowed values: "1 to 1024", "above 0", "post or pre", "true or false" */
    bool resumable;      /* a resumed training may have another value of the key */
    bool of_batches;     /* batches of sentence pairs depend on the key, so a resume that changes it begins a new epoch */
    bool of_validation;  /* validation losses depend on the key, so a resume that changes it selects the best weights anew */
    int kinds; /* the kinds of model that use the key: the sum of 1 << kind over these values of enum wf_model_kind; 0: all kinds */
};
/* Sets *out to entry `index` in the list of a configuration's keys, in the order of config.json. Returns false past the last entry. */
WF_API bool wf_config_key_at(const struct wf_config *config, int index, struct wf_config_key *out);
/* The name of entry `index` in the list of sections: the common sections, then one for each family. NULL past the last entry. */
WF_API const char *wf_config_section_at(int index);
/* Sets *out to entry `index` in the list of a section's keys. Returns false past the last entry. A name can occur twice, with different
 * `kinds`. */
WF_API bool wf_config_section_key(const char *section, int index, struct wf_config_key *out);

/* Writes or reads a config.json. The file holds "model", "family", every key by its name, "weft_version", and "model_type" for programs
 * that read Hugging Face's format. A file that you write yourself needs only "model" or "family". Keys that it lacks take the values of the
 * preset "model", or the defaults of "family". WF_ERR_FORMAT: a key is unknown (the message suggests the nearest one), or a value has the
 * wrong type or is out of range; the message names file and key. The file in the folder of a run has "weft_version". If such a file names
 * an optimiser that this program has not registered, wf_config_load succeeds with WF_OPTIMIZER_ELSEWHERE. */
WF_API wf_status wf_config_save(const struct wf_config *config, const char *path, wf_error *error) WF_CHECKED;
WF_API wf_status wf_config_load(struct wf_config *config, const char *path, wf_error *error) WF_CHECKED;
/* Overwrites those keys of *config that the config.json at `path` contains; that file needs neither "model" nor "family". */
WF_API wf_status wf_config_load_over(struct wf_config *config, const char *path, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
