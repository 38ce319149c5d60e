/* SPDX-License-Identifier: MIT */
/* Declarations that the files of wf_train share: a model of the zoo, its configuration, tokenizers and texts, trained by the loop. */
#ifndef WEFT_TRAIN_TRAINER_H
#define WEFT_TRAIN_TRAINER_H

#include <jansson.h>

#include <weft/internal/family.h>
#include <weft/internal/run_folder.h>
#include <weft/models.h>
#include <weft/run.h>
#include <weft/train.h>

#include "loop.h"
#include "task.h"

/* Weights to start from. */
struct origin {
    char *weights; /* the file; NULL: none */
    char *folder;  /* with its config.json and tokenizers; NULL: there is none */
    /* settings of sentence vectors there; max_length 0: none */
    struct wf_embedder_options embed;
};

struct trainer {
    struct fit fit;                         /* its context is the trainer */
    const struct wf_train_options *options; /* &own */
    struct wf_train_options own;            /* the caller's; a resume without texts has those of the state */
    struct wf_train_texts texts;
    const char **train, **valid;
    struct wf_config config;
    wf_model *model;
    wf_registry *registry;
    struct wf_optimizer optimizer;
    struct wf_fit_registry registries[1];
    struct wf_fit_optimizer optimizers[1];
    struct fit_owner owner;
    struct wf_metric metric[METRICS];
    const char *reports[2];
    struct wf_string sample;
    wf_error *error; /* the loop's */

    /* the task, and the members that it fills */
    const struct task *task;
    void *data;                                 /* its own */
    wf_scans *scans;                            /* of the texts, which tokenizers are trained on and then encode; may be NULL */
    wf_tokenizer *tokenizer, *source_tokenizer; /* may be the same */
    bool made;                                  /* whether the tokenizers were made from the texts */
    int64_t long_words;                         /* words that they cut (struct wf_tokenizer_options) */
    uint64_t train_hash, valid_hash;            /* a resume must see the same texts */
    int64_t train_tokens, valid_tokens, train_pairs, valid_pairs;
    bool validates, scores; /* scores: by BLEU and chrF too */
    int64_t valid_limit;    /* tokens of the validation text that are validated on, evenly spread; 0: all */

    /* of a resume */
    bool new_batches;   /* a key of batches differs from that of the state */
    int64_t kept_limit; /* valid_limit of the state, so that losses stay comparable; -1: none */

    /* of a start from weights */
    struct origin from;
    struct wf_string differs, fresh; /* keys that differ from those of the weights; parameters that the file lacks */
    int64_t fresh_count;

    const struct wf_bitext_survey *survey; /* of the present event */
};

/* state.c: the state of a model of the zoo, apart from the loop's. */
void zoo_put(struct fit *f, wf_safetensors_writer *w);
void zoo_identify(const struct fit *f, struct wf_string *text);
/* Resume: keeps the accumulate that several ranks raised, if the same number is asked for again. */
wf_status state_parts(struct trainer *t);
wf_status zoo_get(struct fit *f, const wf_safetensors *file, const char *path);
wf_status state_tokenizers(struct trainer *t); /* those of the state; the source's may be missing */

/* texts.c: the texts of a run, under "trained_on". */
wf_status texts_recall(struct trainer *t);                      /* into t->own, if a resume has none */
json_t *texts_json(const struct trainer *t, wf_error *error);   /* NULL with the error */
void texts_put(struct trainer *t, wf_safetensors_writer *w);    /* into the state */
wf_status texts_tell(struct trainer *t);                        /* a warning if .repeats of the options had others */
json_t *texts_of_state(const struct state *s, wf_error *error); /* NULL: it says nothing; or an error */

/* run_files.c: config.json and the tokenizers, written into a new folder of the run first. Files with these names and another content
 * are set aside. */
wf_status run_files_save(struct trainer *t, bool resuming);

/* tokenizers.c */
/* The tokenizers of the state (a resume; given ones must be the same), those that are given, or new ones of the kind and size of the
 * config, from the texts. The config gets the sizes of their vocabularies. */
wf_status tokenizers_open(struct trainer *t, bool resuming);
/* Warns of a new vocabulary that is smaller than that asked for: a short text has fewer merges and words than a preset asks for. */
wf_status tokenizers_tell(struct trainer *t);
/* Warns of unknown tokens in the text, if there are any. */
wf_status unknown_tell(struct trainer *t, const char *text, int64_t unknown, int64_t tokens);

/* from.c: .from of the options. */
wf_status origin_find(const char *from, struct origin *out, wf_error *error);
void origin_free(struct origin *o);
/* Refuses weights in the folder of a new run. */
wf_status origin_apart(const char *from, const char *out, wf_error *error);
wf_status origin_tokenizers(struct trainer *t); /* the tokenizers beside the weights */
wf_status origin_load(struct trainer *t);       /* into the built registry; parameters that the file lacks stay initialised */
wf_status origin_tell(struct trainer *t);

/* events.c: the loop's events as those of wf_train. */
void pass_on(void *trainer, const struct wf_fit_event *e);
wf_status report_start(struct trainer *t);
wf_status report_data(struct trainer *t, const struct wf_bitext_survey *survey, const char *text);
/* false: the training was cancelled. */
bool report_progress(struct trainer *t, const char *text, int64_t done, int64_t total);

/* WF_EVENT_PROGRESS within a validation; for struct wf_progress. */
void validation_tell(void *trainer, int64_t done, int64_t total);

/* train.c */
/* The loss of a micro-batch with the terms of the family, which it reports. */
wf_tensor *with_terms(struct wf_loss_terms *terms, struct wf_micro_batch *p, wf_tensor *loss);
/* Sets the number of updates, if the configuration counts epochs; `updates`: of an epoch. */
wf_status choose_steps(struct trainer *t, double updates);
/* Sets valid_limit, and valid_tokens to no more; `tokens`: of an update. */
void choose_validation(struct trainer *t, int64_t tokens);
bool cancelled(void *trainer);            /* by the caller */
bool validation_cancelled(void *trainer); /* or for a limit of time */

#endif
