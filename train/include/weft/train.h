/* SPDX-License-Identifier: MIT */
/* Training as a library function: batches, accumulation, schedule, clipping, validation, checkpoints, resume, metrics.
 *
 * The run's folder is as DESIGN says: every file is written to a temporary name, synced and renamed; the rename of
 * state.safetensors is the commit (weights, moments, step, best score, patience, what the bits depend on), model.safetensors
 * follows. A killed run loses at most the steps since the last save and resumes bit for bit. */
#ifndef WEFT_TRAIN_H
#define WEFT_TRAIN_H

#include <weft/config.h>
#include <weft/text.h>

WF_BEGIN_DECLS

enum wf_event_kind {
    WF_EVENT_START,   /* the run is set up: parameters, tokens, and with resume the step to go on from */
    WF_EVENT_STEP,    /* after each update */
    WF_EVENT_VALID,   /* after a validation */
    WF_EVENT_SAVE,    /* after a save */
    WF_EVENT_WARNING, /* text: something that the user should know (a resume on another instruction set) */
    WF_EVENT_END      /* trained to the end, stopped early, or cancelled: text says which */
};
struct wf_event {
    enum wf_event_kind kind;
    int64_t step, steps;     /* updates done, and in all */
    double loss;             /* WF_EVENT_STEP: of this update's batch; WF_EVENT_VALID: over the validation text */
    double best;             /* lowest validation loss so far; NaN before the first */
    double lr, grad_norm;
    double tokens_per_second;
    int64_t parameters, train_tokens, valid_tokens, vocab_size;
    double seconds;          /* since the start of this process's training */
    const char *text;
};

struct wf_train_options {
    struct wf_config config;     /* of the model and the training; steps is the goal */
    const char *out;             /* the run's folder; made if need be */
    const char *const *train;    /* files */
    int64_t train_files;
    const char *const *valid;    /* files; none: the last tenth of the training text */
    int64_t valid_files;
    const char *tokenizer;       /* a tokenizer.json; NULL: one is made from the training text */
    uint64_t seed;
    bool resume;
    void (*event)(void *ctx, const struct wf_event *event); /* may be NULL */
    void *ctx;
    /* Looked at after each update: true saves and ends cleanly with WF_ERR_CANCELLED. May be NULL. */
    bool (*cancelled)(void *ctx);
};
struct wf_train_result {
    int64_t step;
    double loss, valid, best;
};
/* Errors: WF_ERR_EXISTS, a run with a state without .resume; WF_ERR_BUSY, another process trains it; WF_ERR_NUMERIC, a loss
 * or a gradient that is not finite: names the step and, by replaying it with checks on, the first tensor that went bad; nothing
 * of that step is saved. A resume whose config, texts or seed differ from the run's is WF_ERR_ARGUMENT and says what differs
 * (steps may be raised). */
WF_API wf_status wf_train(const struct wf_train_options *options, struct wf_train_result *result, wf_error *error) WF_CHECKED;

/* The configuration that a run's state was made with: what a resume starts from. */
WF_API wf_status wf_train_config(const char *folder, struct wf_config *config, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
