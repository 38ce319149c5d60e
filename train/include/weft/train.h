/* SPDX-License-Identifier: MIT */
/* Training as a library function: batches, gradient accumulation, learning-rate schedule, clipping, validation, checkpoints, resume and
 * metrics. It trains language models, translation models on sentence pairs, and encoders by masked-language modelling (Devlin et al.
 * 2019), depending on the model's family.
 *
 * Run folder: every file is written under a temporary name, synced and renamed. A save is complete once state.safetensors is renamed: it
 * holds weights, moments, step, position in the data, tokenizers, best loss, patience and everything else that the results depend on.
 * model.safetensors is written after it. After a crash at most the steps since the last save are lost, and the resumed run gives the same
 * bytes as an uninterrupted one, also from the middle of an epoch. */
#ifndef WEFT_TRAIN_H
#define WEFT_TRAIN_H

#include <weft/bitext.h>
#include <weft/config.h>
#include <weft/fit.h>

WF_BEGIN_DECLS

struct wf_event {
    enum wf_event_kind kind;
    int64_t step, steps; /* updates done, and in total */
    double loss;         /* nats per predicted token, without label smoothing. WF_EVENT_STEP: of this update's batch;
                            WF_EVENT_VALID: of the validation text */
    double smoothed;     /* the minimised loss, with label smoothing and the family's terms; NaN where it is `loss` */
    double best;         /* lowest validation loss so far, or highest BLEU or chrF with best_by; NaN before the first */
    double lr, grad_norm;
    double tokens_per_second; /* predicted tokens: translation, target tokens; encoders, masked tokens */
    int64_t parameters, vocab_size;
    /* Predicted tokens. Encoders: training tokens that can be masked, and validation tokens that are masked. valid_tokens 0: no
     * validation. */
    int64_t train_tokens, valid_tokens;
    int64_t train_pairs, valid_pairs;      /* translation; else 0 */
    double seconds;                        /* since wf_train was called */
    double left;                           /* seconds until the end: see wf_fit_event */
    int64_t done, total;                   /* WF_EVENT_PREPARE, WF_EVENT_PROGRESS */
    double expected;                       /* WF_EVENT_PROGRESS: see wf_fit_event */
    const struct wf_bitext_survey *survey; /* WF_EVENT_DATA of translation; else NULL */
    const char *text;
    bool masked; /* masked-language modelling */
    /* WF_EVENT_VALID of translation with best_by=bleu or chrf, or valid_scores: of all lines of the validation text, as
     * wf_evaluate_translation measures them; else NaN. */
    double bleu, chrf;
};

struct wf_train_texts;
struct wf_train_options {
    struct wf_config config; /* model and training; steps is the total, also of a resumed run */
    const char *out;         /* the run folder; created if it does not exist */
    /* Paths of the training files. Language models and encoders: any number of texts. Translation: exactly two, source and target, aligned
     * by line. */
    const char *const *train; /* none: a resume takes those of the run, which must be as they were; another run's are WF_ERR_ARGUMENT */
    int64_t train_files;
    /* The same for validation. Without them a language model or an encoder holds out the last tenth of its text; a translation model is not
     * validated and has no best weights, and patience is WF_ERR_ARGUMENT. (No pairs are held out by default, because scores are compared
     * on published validation sets.) */
    const char *const *valid;
    int64_t valid_files;
    /* A tokenizer.json. NULL: a tokenizer is trained on the training text, with the kind config.tokenizer.kind and at most the vocabulary
     * size of config. For encoders it gets the special tokens <pad> <unk> <mask>; a given tokenizer needs <mask> or [MASK]. The run's
     * config.json has the actual vocabulary sizes, and for a given tokenizer its kind and min_frequency 0. */
    const char *tokenizer;
    /* Translation with shared=false: the source tokenizer; `tokenizer` is then the target's. NULL: `tokenizer` is used for both. */
    const char *source_tokenizer;
    /* A folder that caches trained tokenizers, ids and surveys of the texts, such as wf_cache_folder(), so that all that is done once;
     * NULL: no cache. */
    const char *cache;
    uint64_t seed;
    bool resume; /* resumes the run in `out`; without a run there, starts a new one with a warning */
    void (*event)(void *ctx, const struct wf_event *event); /* may be NULL */
    void *ctx;
    /* Called before each op of an update or a validation, and a few times a second while the data is prepared. If it returns true, the
     * unfinished update is dropped, the state after the last finished one is saved, and wf_train returns WF_ERR_CANCELLED; a resume gives
     * the same bytes as an uninterrupted run. Must be cheap. May be NULL. */
    bool (*cancelled)(void *ctx);
    /* Starts from trained weights, with a fresh optimiser, instead of an initialisation: the folder of a run, a Hugging Face folder with a
     * BERT model (how its sentence vectors are made goes along), or a safetensors file with the names of the model's parameters. Tokenizers
     * are those that lie with the weights (of best.safetensors and checkpoints too, those of their run); for other files `tokenizer`.
     * Parameters that the file lacks are initialised and named by a warning, and so is an architecture that differs from that of the
     * weights. WF_ERR_FORMAT: other shapes or tensors of no parameter, by name. The config should have the architecture of the weights:
     * wf_train_from. With .resume it counts only for a new run. It must not
     * lie in `out`. NULL: none. */
    const char *from;
    /* Seconds from the call of wf_train on, before which the training saves and ends with WF_ERR_TIME; 0: no limit. See wf_fit_options. */
    double max_time;
    bool no_overlap; /* several processes: messages go when nothing is computed; for comparison */
    /* Of a run that is repeated, such as one whose config.json is read: a warning says where its texts have changed. May be NULL. */
    const struct wf_train_texts *repeats;
};
struct wf_train_result {
    int64_t step; /* updates done */
    double loss, valid,
        best; /* as in wf_event: of the last update, of the last validation, and the best value of validations; NaN if none */
};
/* Trains a model; *result (may be NULL) is also set after an error. Errors: WF_ERR_EXISTS if `out` holds a run's state and .resume is not
 * set; WF_ERR_BUSY if another process trains in the folder; WF_ERR_NUMERIC for a loss or gradient that is not finite: the message names the
 * step and the first tensor that is not finite (found by repeating the step with checks), and nothing of that step is saved.
 *
 * A resume may change the training keys (except mask_rate), the generation keys and dropout; WF_EVENT_CHANGE lists the differences.
 * Changing how pairs are batched (the keys batch_...) starts the next epoch. Any other difference from the run, such as another seed, is
 * WF_ERR_ARGUMENT with its name; so is a number of steps below those done. */
WF_API wf_status wf_train(const struct wf_train_options *options, struct wf_train_result *result, wf_error *error) WF_CHECKED;

/* Gives a configuration the architecture of the weights that .from names, of which a config.json lies with them, and the output layer that
 * a training needs; training, tokenizer and generation keep their settings, but for a crop that is longer than the context. A configuration
 * without a family (zeroed) becomes that of the weights in all settings. WF_ERR_ARGUMENT: another family, or no config.json for a
 * configuration without a family. */
WF_API wf_status wf_train_from(const char *from, struct wf_config *config, wf_error *error) WF_CHECKED;

/* The configuration and the seed (may be NULL) stored in a run's state, from which a resume starts. */
WF_API wf_status wf_train_config(const char *folder, struct wf_config *config, uint64_t *seed, wf_error *error) WF_CHECKED;

/* The files and the seed that a run was trained with. */
struct wf_train_text {
    char *path; /* absolute */
    int64_t bytes;
};
struct wf_train_texts {
    struct wf_train_text *train, *valid;
    int64_t train_files, valid_files;          /* 0: there were none, or the file does not say */
    uint64_t train_hash, valid_hash;           /* of the texts' ids; 0: not known */
    char *from, *tokenizer, *source_tokenizer; /* absolute, as the options of the same names; NULL: they were not given */
    uint64_t seed;
    bool has_seed;
};
/* From the state in a run's folder, or from a config.json. Free with wf_train_texts_free, after an error too. */
WF_API wf_status wf_train_texts_load(const char *path, struct wf_train_texts *out, wf_error *error) WF_CHECKED;
/* Whether the texts that are asked for are there and have their sizes; `of` names the run in messages. WF_ERR_IO: one is gone.
 * WF_ERR_ARGUMENT: one has changed. */
WF_API wf_status wf_train_texts_check(const struct wf_train_texts *texts, const char *of, bool train, bool valid,
                                      wf_error *error) WF_CHECKED;
WF_API void wf_train_texts_free(struct wf_train_texts *texts);

WF_END_DECLS

#endif
