/* SPDX-License-Identifier: MIT */
/* wf_train: trains a model that a configuration describes, on text files, as the command `weft train` does. The family of the model decides
 * how: as a language model, as a translation model on sentence pairs, or as an encoder by masked-language modelling (Devlin et al. 2019).
 * The training includes gradient accumulation, learning-rate schedule, clipping, validation, checkpoints, resume and metrics.
 *
 * Run folder: wf_train writes each file under a temporary name, syncs it and renames it. A save is complete once state.safetensors is
 * renamed. This file holds weights, moments, step, position in the data, tokenizers, best loss, the number of validations since the best
 * one, and everything else that the results depend on. model.safetensors is written after it. A crash loses at most the steps since the
 * last save. The resumed run gives the same bytes as an uninterrupted one, even from the middle of an epoch. */
#ifndef WEFT_TRAIN_H
#define WEFT_TRAIN_H

#include <weft/bitext.h>
#include <weft/config.h>
#include <weft/fit.h>

WF_BEGIN_DECLS

struct wf_event {
    enum wf_event_kind kind;
    int64_t step;  /* updates done */
    int64_t steps; /* updates in total */
    /* Mean loss in nats per predicted token, without label smoothing. WF_EVENT_STEP: the loss of this update's batch. WF_EVENT_VALID: the
     * loss of the validation text. */
    double loss;
    double smoothed; /* the minimised loss, with label smoothing and the family's additional terms; NaN if there are neither */
    double best; /* lowest validation loss so far, or with best_by=bleu or best_by=chrf the highest BLEU or chrF; NaN before the first */
    double lr;   /* learning rate of the last update */
    double grad_norm; /* gradient norm of the last update, before clipping */
    /* Number of predicted tokens of this update's batch, divided by the seconds of the update. A translation model predicts the target
     * tokens, and an encoder predicts the masked tokens. */
    double tokens_per_second;
    int64_t parameters; /* number of elements of all parameters */
    int64_t vocab_size;
    /* Number of tokens of the training text. A translation model counts the target tokens of the used pairs, with EOS, and an encoder the
     * tokens that can be masked. */
    int64_t train_tokens;
    /* Number of tokens of the validation text. A translation model counts as for train_tokens, and an encoder the masked tokens of a
     * validation. 0: there is no validation. */
    int64_t valid_tokens;
    int64_t train_pairs;                   /* number of used sentence pairs of the training text; 0 if the model does not translate */
    int64_t valid_pairs;                   /* number of used sentence pairs of the validation text */
    double seconds;                        /* seconds since wf_train was called */
    double left;                           /* estimated seconds until the end: see wf_fit_event */
    int64_t done;                          /* WF_EVENT_PREPARE, WF_EVENT_PROGRESS: units done */
    int64_t total;                         /* WF_EVENT_PREPARE, WF_EVENT_PROGRESS: units in total; 0: not known */
    double expected;                       /* WF_EVENT_PROGRESS: estimated seconds in total: see wf_fit_event */
    const struct wf_bitext_survey *survey; /* WF_EVENT_DATA of a translation: counts of the pairs; else NULL */
    const char *text;                      /* enum wf_event_kind says what it contains; may be NULL */
    bool masked;                           /* the model is an encoder, trained by masked-language modelling */
    /* WF_EVENT_VALID of a translation with best_by=bleu, best_by=chrf or valid_scores=true: scores of all lines of the validation text, as
     * wf_evaluate_translation measures them. Otherwise NaN. */
    double bleu;
    double chrf;
};

struct wf_train_texts;
struct wf_train_options {
    struct wf_config config; /* model and training; `steps` is the total number of updates, also of a resumed run */
    const char *out;         /* the run's folder; created if it does not exist */
    /* Paths of the training files. Language models and encoders take any number of texts, a translation model exactly two: source and
     * target, aligned by line. In a resume the list may be empty: wf_train then uses the files of the run, which must be unchanged. If the
     * list has other files than the run, the resume fails with WF_ERR_ARGUMENT. */
    const char *const *train;
    int64_t train_files;
    /* Paths of the validation files, in the same way. If the list is empty, a language model or an encoder holds out the last tenth of its
     * text. A translation model is not validated then: the run has no best weights, and a config with `patience` above 0 is
     * WF_ERR_ARGUMENT. (wf_train holds out no pairs, because translation scores are compared on published validation sets.) */
    const char *const *valid;
    int64_t valid_files;
    /* Path of a tokenizer.json. NULL: wf_train trains a tokenizer on the training text, of the kind config.tokenizer.kind and with at most
     * as many entries as the vocabulary size in `config`; the tokenizer of an encoder gets the special tokens <pad> <unk> <mask>. A given
     * tokenizer must have <mask> or [MASK] if the model is an encoder. The run's config.json has the actual vocabulary sizes. If a
     * tokenizer was given, config.json has its kind, and 0 as min_frequency, because that setting only applies to training a tokenizer. */
    const char *tokenizer;
    /* For translation with shared=false: path of the source's tokenizer; `tokenizer` is then the path of the target's tokenizer. NULL:
     * `tokenizer` is used for both. */
    const char *source_tokenizer;
    /* A folder that caches trained tokenizers, ids and surveys of the texts for later runs, such as wf_cache_folder(). NULL: no cache. */
    const char *cache;
    uint64_t seed; /* seed of initialisation, order of the data, and dropout */
    bool resume;   /* resumes the run in `out`; if there is no run, starts a new one with a warning */
    void (*event)(void *ctx, const struct wf_event *event); /* may be NULL */
    void *ctx;
    /* Called before each op of an update or a validation, and a few times a second while the data is prepared. If it returns true, wf_train
     * drops the unfinished update, saves the state after the last finished update, and returns WF_ERR_CANCELLED. A resume gives the same
     * bytes as an uninterrupted run. Since the calls are many, the function must be cheap. May be NULL. */
    bool (*cancelled)(void *ctx);
    /* Path of trained weights from which the training starts, with a new optimiser, instead of initialised weights. One of these:
     * - the folder of a run;
     * - a Hugging Face folder (wf_run_open); the run also gets the folder's end tokens, settings of the tokenizer, template of
     * conversations and settings of sentence vectors;
     * - a safetensors file whose tensors have the names of the model's parameters.
     * The tokenizers are those that lie with the weights; for best.safetensors and checkpoints, those of their run; for other files,
     * `tokenizer`. Parameters that the file lacks are initialised. A warning names them, and another warning names settings of the
     * architecture that differ from those of the weights; wf_train_from copies these settings into the config. A tensor that belongs to no
     * parameter, or has another shape than its parameter, is WF_ERR_FORMAT. The weights must not lie in `out`. A resume of an existing run
     * ignores .from. NULL: the weights are initialised. */
    const char *from;
    /* Time limit in seconds, counted from the call of wf_train; 0: no limit. Before it passes, wf_train saves and returns WF_ERR_TIME: see
     * wf_fit_options. */
    double max_time;
    bool no_overlap; /* on several processes: messages are sent only while nothing is computed; see wf_fit_options */
    /* The texts of a run that this training repeats, as wf_train_texts_load gives them. If the texts have changed since that run, a
     * WF_EVENT_WARNING says so. May be NULL. */
    const struct wf_train_texts *repeats;
    /* With `from`: the path of a file with tokens for a larger vocabulary, one a line; empty lines are ignored. The tokens that the
     * tokenizer lacks get ids after its own (wf_tokenizer_extend), and the model rows for them in the embedding, and in the output layer if
     * that is not tied: each is the mean of the rows of the old tokens. The old rows stay. If the model has more rows than its tokenizer
     * tokens, these spare rows are used first. A resume ignores .new_tokens, because the state has the tokenizer. WF_ERR_ARGUMENT: there is
     * no `from`, or the model translates. NULL: no tokens are added. */
    const char *new_tokens;
};
struct wf_train_result {
    int64_t step; /* updates done */
    double loss;  /* loss of the last update, as in wf_event; NaN if there was none */
    double valid; /* loss of the last validation; NaN if there was none */
    double best;  /* best value of all validations, as in wf_event; NaN if there was none */
};
/* Trains a model. *result (may be NULL) is also set after an error.
 *
 * Errors:
 * - WF_ERR_EXISTS: `out` holds a run's state, and .resume is not set.
 * - WF_ERR_BUSY: another process trains in the folder.
 * - WF_ERR_NUMERIC: a loss or gradient is not finite. wf_train repeats the step with checks, and the message names the step and the first
 *   tensor that is not finite. Nothing of that step is saved.
 * - WF_ERR_ARGUMENT: a resume changes more than it may (see below), or its config has fewer steps than are done.
 *
 * A resume may change the training keys (except mask_rate and precision), the generation keys and dropout; WF_EVENT_CHANGE lists the
 * differences. A change of the pairs in batches (the keys batch_..., max_ratio and deduplicate) starts the next epoch. Any other
 * difference, such as another seed, is WF_ERR_ARGUMENT, and the message names the difference. */
WF_API wf_status wf_train(const struct wf_train_options *options, struct wf_train_result *result, wf_error *error) WF_CHECKED;

/* Prepares a configuration for a start from trained weights; `from` is a path as in wf_train_options.from. Copies the architecture from the
 * config.json that lies with the weights, and the setting `precision` if that is bf16 there (to train such weights in f32, set the key
 * after the call), and adds the output layer that a training needs. The other settings in *config stay, except that a setting `crop` longer
 * than the context is reduced to the context. If *config is zeroed, it gets all settings of that config.json, and of a
 * Hugging Face folder those of sampling in its generation_config.json. WF_ERR_ARGUMENT: the weights
 * are of another family, or *config is zeroed and there is no config.json. */
WF_API wf_status wf_train_from(const char *from, struct wf_config *config, wf_error *error) WF_CHECKED;

/* Reads the configuration and the seed from the state in a run's folder, for a resume that changes nothing. `seed` may be NULL. */
WF_API wf_status wf_train_config(const char *folder, struct wf_config *config, uint64_t *seed, wf_error *error) WF_CHECKED;

/* A file that a run was trained or validated on. */
struct wf_train_text {
    char *path;    /* absolute */
    int64_t bytes; /* size of the file when the run used it */
};
/* The files and the seed that a run was trained with, and hashes of its texts. */
struct wf_train_texts {
    struct wf_train_text *train; /* [train_files] */
    struct wf_train_text *valid; /* [valid_files] */
    int64_t train_files;         /* 0: not known */
    int64_t valid_files;         /* 0: there were no validation files, or they are not known */
    uint64_t train_hash;         /* hash of the training text's ids, or of the content of both files of a parallel text; 0: not known */
    uint64_t valid_hash;         /* the same for the validation text; 0: not known */
    char *from;                  /* wf_train_options.from as an absolute path; NULL: it was not given */
    char *tokenizer;             /* .tokenizer as an absolute path; NULL: it was not given */
    char *source_tokenizer;      /* .source_tokenizer as an absolute path; NULL: it was not given */
    uint64_t seed;
    bool has_seed;    /* `seed` is known */
    char *new_tokens; /* .new_tokens as an absolute path; NULL: it was not given */
};
/* Reads *out from the state in a run's folder, or from a config.json. Free with wf_train_texts_free, even after an error. */
WF_API wf_status wf_train_texts_load(const char *path, struct wf_train_texts *out, wf_error *error) WF_CHECKED;
/* Checks that the training files (`train`) and the validation files (`valid`) exist and still have their sizes. `of` names the run in
 * messages. WF_ERR_IO: a file is missing. WF_ERR_ARGUMENT: a file has another size. */
WF_API wf_status wf_train_texts_check(const struct wf_train_texts *texts, const char *of, bool train, bool valid,
                                      wf_error *error) WF_CHECKED;
WF_API void wf_train_texts_free(struct wf_train_texts *texts);

WF_END_DECLS

#endif
