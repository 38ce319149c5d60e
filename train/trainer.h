/* SPDX-License-Identifier: MIT */
/* What the files of the training loop share. */
#ifndef WEFT_TRAIN_TRAINER_H
#define WEFT_TRAIN_TRAINER_H

#include <time.h>

#include <weft/events.h>
#include <weft/internal/files.h>
#include <weft/internal/jsonl.h>
#include <weft/internal/run_folder.h>
#include <weft/models.h>
#include <weft/optim.h>
#include <weft/run.h>
#include <weft/train.h>

#include "task.h"

/* The first error wins: t->error->code is the trainer's status, and a function that fails has set it. Functions are therefore chained
 * with ||, and the code is returned once. */
struct trainer {
    const struct wf_train_options *options;
    struct wf_config config;
    wf_lock *lock;
    wf_model *model;
    wf_registry *registry;
    struct wf_optimizer optimizer;
    struct wf_schedule schedule;
    wf_tape *tape;
    wf_jsonl *metrics;
    wf_events *events; /* NULL in a library without protobuf-c */
    struct timespec start;
    wf_error *error;

    /* the task, and what it fills */
    const struct task *task;
    void *data;                                 /* its own */
    wf_scans *scans;                            /* of the texts, which tokenizers are trained on and then encode; may be NULL */
    wf_tokenizer *tokenizer, *source_tokenizer; /* may be the same */
    bool made;                                  /* the tokenizers, from the texts */
    uint64_t train_hash, valid_hash;            /* a resume must see the same texts */
    int64_t train_tokens, valid_tokens, train_pairs, valid_pairs;
    bool validates;
    int64_t valid_limit; /* tokens of the validation text that are validated on, evenly spread; 0: all */

    /* of the last update and the last validation; NaN where there is none */
    double loss, smoothed, valid, valid_smoothed;
    double grad_norm; /* before clipping */
    int64_t step_tokens;

    /* what a resume restores */
    int64_t step;            /* updates done */
    double best;             /* NaN: no validation yet */
    int64_t stale;           /* validations since the best */
    bool owes_validation;    /* that of this step was due and is not done */
    struct wf_string change; /* what the resume changes of the configuration, for people; empty: nothing */
    bool new_batches;        /* the batches of pairs are cut in another way than before the resume */
    int64_t kept_limit;      /* valid_limit of the state, so that losses stay comparable; -1: none */
    bool new_validation;     /* valid_tokens differs from the state's: its best loss is of another text */
    bool early;              /* patience has run out */
    bool dropped;            /* the update after this step was begun and cancelled: the place in the data is that of its batch */
    bool saved;              /* the state on disk is that of this step */
    int64_t on_disk;         /* the step of the state on disk; -1: there is none */
};

/* state.c: state.safetensors, which alone is enough to go on. */
#define STATE_FILE "state.safetensors"
wf_status state_save(struct trainer *t);
wf_status state_load(struct trainer *t);
wf_status state_tokenizers(struct trainer *t); /* those of the state; the source's may be missing */
void state_put_number(wf_safetensors_writer *w, const char *key, int64_t value);
wf_status state_get_number(const wf_safetensors *file, const char *path, const char *key, int64_t *out, wf_error *error);

/* files.c: the other files of the run. */
wf_status weights_save(struct trainer *t, const char *name);
wf_status checkpoint_save(struct trainer *t);    /* and drops those beyond `keep` */
bool checkpoint_exists(const struct trainer *t); /* that of this step */
/* What a new training would replace gets another name, which a warning says. */
wf_status set_others_aside(struct trainer *t);
/* config.json and the tokenizers, which are first written into a folder of the run's; what stands under their names and differs is set
 * aside. */
#define NEW_FILES ".weft-new"
wf_status run_files_save(struct trainer *t, bool resuming);
/* `name`, a file or a folder of the run's, gets another name, where it is there (wf_file_set_aside); the warning says why. */
#define WOULD_REPLACE "the training would replace what is in its folder"
wf_status set_aside(struct trainer *t, const char *name, const char *as, const char *why);

/* tokenizers.c */
/* The tokenizers of the state (a resume; given ones must be the same), those that are given, or new ones of the kind and size of the
 * config, from the texts. The config gets the sizes of their vocabularies. */
wf_status tokenizers_open(struct trainer *t, bool resuming);
/* Warns of a new vocabulary that is smaller than that asked for: a short text has fewer merges and words than a preset asks for. */
wf_status tokenizers_tell(struct trainer *t);
/* Warns of unknown tokens in the text, where there are any. */
wf_status unknown_tell(struct trainer *t, const char *text, int64_t unknown, int64_t tokens);

/* metrics.c: a line of metrics.jsonl, its numbers in the event file, and a call of the user's event(). */
wf_status metrics_open(struct trainer *t, bool resuming);
void metrics_close(struct trainer *t);
wf_status report(struct trainer *t, enum wf_event_kind kind, double tokens_per_second, const char *text);
wf_status report_sample(struct trainer *t); /* what the model writes now, where the task has samples */
wf_status report_data(struct trainer *t, const struct wf_bitext_survey *survey, const char *text);
/* false: the training was cancelled. */
bool report_progress(struct trainer *t, const char *text, int64_t done, int64_t total);
/* Sets valid_limit, and valid_tokens to no more; `tokens`: of an update. */
void choose_validation(struct trainer *t, int64_t tokens);
bool cancelled(const struct trainer *t);
double seconds_since(const struct timespec *start);

#endif
