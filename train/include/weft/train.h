/* SPDX-License-Identifier: MIT */
/* Training as a library function: batches, accumulation, schedule, clipping, validation, checkpoints, resume, metrics; of
 * language models, of translation models on pairs of sentences, and of encoders on masked tokens (Devlin et al. 2019). The model's
 * family says which.
 *
 * The run's folder is as DESIGN says: every file is written to a temporary name, synced and renamed; the rename of
 * state.safetensors is the commit (weights, moments, step, place in the data, tokenizers, best score, patience, what the bits
 * depend on), model.safetensors follows. A killed run loses at most the steps since the last save and resumes bit for bit, in the
 * middle of an epoch too. */
#ifndef WEFT_TRAIN_H
#define WEFT_TRAIN_H

#include <weft/bitext.h>
#include <weft/config.h>

WF_BEGIN_DECLS

enum wf_event_kind {
    WF_EVENT_PREPARE, /* some times a second while tokenizers are made and texts are looked through: text, done, total */
    WF_EVENT_DATA,    /* of pairs: text says how many of the training or validation pairs are used, and why others are not */
    WF_EVENT_CHANGE,  /* of a resume: text says which settings differ from now on */
    WF_EVENT_START,   /* the run is set up: parameters, tokens, and with resume the step to go on from */
    WF_EVENT_STEP,    /* after each update */
    WF_EVENT_VALID,   /* after a validation */
    WF_EVENT_SAVE,    /* after a save */
    WF_EVENT_WARNING, /* text: something that the user should know (a resume on another instruction set) */
    WF_EVENT_END,     /* trained to the end, stopped early, or cancelled: text says which */
    WF_EVENT_SAMPLE   /* after a validation of a language model: text is what it writes now, the beginning of the validation text and
                         how the model goes on */
};
struct wf_event {
    enum wf_event_kind kind;
    int64_t step, steps; /* updates done, and in all */
    double loss;         /* without smoothing, in nats per token that is predicted. WF_EVENT_STEP: of this update's batch;
                            WF_EVENT_VALID: over the validation text */
    double smoothed;     /* the same as it is minimised, with label smoothing; NaN without */
    double best;         /* lowest validation loss so far; NaN before the first */
    double lr, grad_norm;
    double tokens_per_second; /* tokens that are predicted: of pairs, the target's; of encoders, those that are masked */
    int64_t parameters, vocab_size;
    /* Tokens that are predicted; of encoders those of the training text that can be masked, and those of the validation text that are.
     * valid_tokens 0: no validation. */
    int64_t train_tokens, valid_tokens;
    int64_t train_pairs, valid_pairs;      /* of translations, else 0 */
    double seconds;                        /* since the start of this process's training */
    int64_t done, total;                   /* of WF_EVENT_PREPARE */
    const struct wf_bitext_survey *survey; /* of WF_EVENT_DATA */
    const char *text;
    bool masked; /* an encoder's: what is predicted is masked tokens */
};

struct wf_train_options {
    struct wf_config config; /* of the model and the training; steps is the goal */
    const char *out;         /* the run's folder; made if need be */
    /* Files. Language models and encoders: the text, of any number of them. Translation: exactly two, source and target, aligned by line.
     */
    const char *const *train;
    int64_t train_files;
    /* The same for validation. None: a language model or an encoder keeps the last tenth of its text for it; a translation model is not
     * validated, has no best weights, and patience is refused. (Pairs held out by us would be other ones than any published
     * number is about; who has a handful of pairs wants all of them trained.) */
    const char *const *valid;
    int64_t valid_files;
    /* A tokenizer.json; NULL: one is trained on the training text, of config.tokenizer.kind and at most the vocabulary size of config.
     * An encoder's has the special tokens <pad> <unk> <mask>; one that is given needs a mask token, <mask> or [MASK].
     * Either way the run's config.json then has the actual sizes; of a given one also its kind, and min_frequency 0. */
    const char *tokenizer;
    /* Of translations: the source's, with shared=false; `tokenizer` is the target's then. NULL:
     * `tokenizer` serves both. */
    const char *source_tokenizer;
    /* A folder for ids and surveys of the texts, such as wf_cache_folder(), so that they are encoded once; NULL: none. */
    const char *cache;
    uint64_t seed;
    bool resume; /* go on with the run in `out`; where there is none, start anew, with a warning */
    void (*event)(void *ctx, const struct wf_event *event); /* may be NULL */
    void *ctx;
    /* Asked before each op of an update and of a validation, and some times a second while the data is prepared: true drops what is
     * unfinished, saves the state after the last finished update, and ends with WF_ERR_CANCELLED. A resume gives the bytes of an
     * unbroken run. Must be cheap. May be NULL. */
    bool (*cancelled)(void *ctx);
};
struct wf_train_result {
    int64_t step;
    double loss, valid, best;
};
/* Errors: WF_ERR_EXISTS, a run with a state without .resume; WF_ERR_BUSY, another process trains it; WF_ERR_NUMERIC, a loss
 * or a gradient that is not finite: names the step and, by replaying it with checks on, the first tensor that went bad; nothing
 * of that step is saved. A resume may change what alters neither the model's shape nor texts nor tokenizers: the keys of training (but
 * mask_rate) and generation, and dropout; WF_EVENT_CHANGE says what differs. Other batches of pairs (the keys batch_...)
 * start the next epoch. Anything else that differs from the run's, its seed too, is WF_ERR_ARGUMENT and says what; so are fewer steps than
 * were made. */
WF_API wf_status wf_train(const struct wf_train_options *options, struct wf_train_result *result, wf_error *error) WF_CHECKED;

/* The configuration that a run's state was made with: what a resume starts from. */
WF_API wf_status wf_train_config(const char *folder, struct wf_config *config, wf_error *error) WF_CHECKED;
/* And its seed. */
WF_API wf_status wf_train_seed(const char *folder, uint64_t *seed, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
