/* SPDX-License-Identifier: MIT */
/* What a model and its training are made of: one struct of all keys, the same names in the presets, in `--set key=value`
 * and in config.json. A key that a family does not use is refused by name, and its config.json does not hold it. */
#ifndef WEFT_CONFIG_H
#define WEFT_CONFIG_H

#include <weft/nn.h>

WF_BEGIN_DECLS

/* Where the norm of a sublayer stands: norm(x + f(x)), or x + f(norm(x)). */
enum wf_norm_place { WF_NORM_POST, WF_NORM_PRE };
/* What a token batch of pairs costs: pairs x (longest source + longest target), or pairs x the longer of the two. */
enum wf_batch_cost { WF_BATCH_BOTH, WF_BATCH_SIDE };

/* How a model is trained. */
struct wf_training {
    int64_t steps, batch, accumulate; /* `batch` rows a step, in `accumulate` micro-batches */
    int64_t batch_tokens;             /* pairs: padded positions a step, instead of `batch`; 0: all pairs at once */
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

struct wf_config {
    char model[64];  /* the preset that it came from: "nanogpt-char" */
    char family[32]; /* "gpt", "rms", "seq2seq", "encoder", "bert": which file of models/ builds it */

    /* architecture */
    int64_t d_model, heads, kv_heads, d_ff, layers, context, vocab_size; /* kv_heads 0: as heads; vocab_size 0: of the tokenizer */
    double dropout;
    enum wf_activation activation;
    bool tied, bias;
    /* of "bert", whose config.json is Hugging Face's */
    int64_t segments;                   /* kinds of segments that have an embedding */
    double norm_eps, attention_dropout; /* attention_dropout: on the weights of attention; `dropout` is elsewhere */
    /* of encoder-decoders, and some of encoders */
    int64_t encoder_layers, decoder_layers;
    int64_t source_vocab_size;   /* 0: as vocab_size, which is the target's */
    int64_t max_length;          /* ids of a sentence, marks included; longer pairs are not trained on */
    int64_t positions;           /* rows of the table of positions; 0: max_length */
    enum wf_norm_place norm;     /* "post", "pre" */
    bool final_norm;             /* a norm after each stack */
    bool shared;                 /* one embedding (and one tokenizer) for source and target; `tied`: for the output too */
    bool scale_embeddings;       /* by sqrt(d_model) */
    bool inner_dropout;          /* `dropout` also on attention weights and inside the feed-forward */
    bool xavier;                 /* Xavier-uniform matrices, zero biases, embeddings N(0, 1/d_model); else PyTorch's defaults */
    bool source_bos, source_eos; /* marks of the source; a target always has both */

    struct wf_training training;
    struct wf_tokenizer_settings tokenizer;
    struct wf_generation generation;
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

/* Sets one key from text ("dropout", "0.1"). Unknown keys (the nearest is named), keys that the configuration's family has no use for
 * (with those that are meant), text that is no value of the key's kind and values out of the key's range are WF_ERR_ARGUMENT. Numbers
 * are read the same in every locale. */
WF_API wf_status wf_config_set(struct wf_config *config, const char *key, const char *value, wf_error *error) WF_CHECKED;
/* What holds between keys: heads divide d_model, kv_heads divide heads, sizes whose product is a model that no machine
 * holds (2^40 parameters), min_lr <= lr, accumulate <= batch; of encoder-decoders: one source_vocab_size where the embedding is
 * shared, positions for max_length; and every key's range (0 where the family has no use for it) and the family. A warm-up longer than the
 * training is allowed: a preset can be tried for a few steps. */
WF_API wf_status wf_config_check(const struct wf_config *config, wf_error *error) WF_CHECKED;
/* The value of a key as text; false if there is no such key, or the configuration's family has no use for it. */
WF_API bool wf_config_get(const struct wf_config *config, const char *key, char *text, size_t size);
WF_API int wf_config_key_count(void); /* of all families */
WF_API const char *wf_config_key_at(int index);

/* What a key is for, as `weft train --help` lists it: kinds of models, as bits. */
enum wf_config_users {
    WF_CONFIG_LANGUAGE = 1,
    WF_CONFIG_PAIRS = 2,
    WF_CONFIG_ENCODER = 4,
    WF_CONFIG_TRAINED = 7, /* all that are trained here */
    WF_CONFIG_READ = 8,    /* those of Hugging Face, which are only read: no key of theirs is set, and their config.json is not ours */
    WF_CONFIG_ALL = 15
};
struct wf_config_key {
    const char *name, *meaning; /* meaning: one line, with the unit */
    int users;                  /* the kinds of model that have a use for it */
    char values[80];            /* what it can be: "1 to 1024", "above 0", "post or pre", "true or false" */
};
/* Fills *out for the key at 0 <= index < wf_config_key_count(); false for any other index. */
WF_API bool wf_config_key_help(int index, struct wf_config_key *out);

/* config.json: every key of the family with its name, model and family, "weft_version", and for readers of Hugging Face's layout
 * "model_type". Reading is strict: a missing or unknown key, a wrong type or range is WF_ERR_FORMAT with file and key. */
WF_API wf_status wf_config_save(const struct wf_config *config, const char *path, wf_error *error) WF_CHECKED;
WF_API wf_status wf_config_load(struct wf_config *config, const char *path, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
