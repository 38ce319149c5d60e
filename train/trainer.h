/* SPDX-License-Identifier: MIT */
/* What the files of the training loop share. */
#ifndef WEFT_TRAIN_TRAINER_H
#define WEFT_TRAIN_TRAINER_H

#include <time.h>

#include <weft/batches.h>
#include <weft/corpus.h>
#include <weft/internal/jsonl.h>
#include <weft/lock.h>
#include <weft/models.h>
#include <weft/optim.h>
#include <weft/train.h>

struct trainer {
    const struct wf_train_options *options;
    struct wf_config config;
    wf_lock *lock;
    wf_tokenizer *tokenizer;
    struct wf_text train_text, valid_text;
    struct wf_corpus corpus;
    uint64_t train_hash, valid_hash; /* of the ids: a resume must see the same texts */
    wf_model *model;
    wf_registry *registry;
    struct wf_adam adam;
    struct wf_schedule schedule;
    wf_tape *tape;
    struct wf_crops crops;
    int32_t *x, *y;                  /* [batch / accumulate, rounded up, context] */
    wf_jsonl *metrics;
    struct timespec start;
    wf_error *error;

    /* what a resume restores */
    int64_t step;      /* updates done */
    double best;       /* NaN: no validation yet */
    int64_t stale;     /* validations since the best */
    double loss, valid;
    bool saved;        /* the state on disk is that of this step */
};

/* state.c: state.safetensors, which alone is enough to go on. */
bool state_exists(const struct trainer *t);
wf_status state_save(struct trainer *t);
wf_status state_load(struct trainer *t);
wf_status state_tokenizer(struct trainer *t);

/* files.c: the other files of the run. */
char *run_path(const char *folder, const char *name, wf_error *error); /* wf_free */
wf_status weights_save(struct trainer *t, const char *name);
wf_status checkpoint_save(struct trainer *t); /* and drops those beyond `keep` */
/* Weights that lie in a folder without a state are nobody's run, but somebody's: they get another name, which is reported. */
wf_status weights_set_aside(struct trainer *t);

/* step.c */
wf_status train_step(struct trainer *t); /* one update; t->loss */
/* The first parameter that is not finite in a slab (values, or gradients that are valid); NULL if all are fine. */
const char *first_bad(const struct trainer *t, const wf_real *slab);

/* metrics.c: a line of metrics.jsonl and a call of the user's event(). */
wf_status report(struct trainer *t, enum wf_event_kind kind, double tokens_per_second, const char *text);
double seconds_since(const struct timespec *start);

#endif
