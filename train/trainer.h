/* SPDX-License-Identifier: MIT */
/* Declarations that the files of wf_train share. wf_train makes a model, its tokenizers and its texts from a configuration, and trains the
 * model with the loop of wf_fit. */
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

/* What wf_train_options.from stands for: two paths, and settings that are read from the second. */
struct origin {
    char *weights;                    /* path of the file of weights; NULL: the training starts from an initialisation */
    char *folder;                     /* folder with the config.json and tokenizers of the weights; NULL: there is no such folder */
    struct wf_embedder_options embed; /* settings of sentence vectors in `folder`; .max_length 0: it has no such settings */
};

/* A running wf_train. */
struct trainer {
    struct fit fit;                         /* the training loop; the task's functions get this struct trainer as their ctx */
    const struct wf_train_options *options; /* points to `own` */
    struct wf_train_options own;            /* a copy of the caller's options; in a resume without texts it names the texts of the state */
    struct wf_train_texts texts;            /* the texts that the state names, in a resume */
    const char **train;                     /* [texts.train_files]: memory of own.train in a resume without texts */
    const char **valid;                     /* [texts.valid_files]: memory of own.valid in a resume without texts */
    struct wf_config config;                /* the configuration, completed with the sizes of vocabularies and the number of steps */
    wf_model *model;
    wf_registry *registry;
    struct wf_optimizer optimizer;
    struct wf_fit_registry registries[1];
    struct wf_fit_optimizer optimizers[1];
    struct fit_owner owner;
    struct wf_metric metric[METRICS];
    const char *reports[2];  /* the name of the family's additional loss term, then NULL */
    struct wf_string sample; /* the last sample */
    wf_error *error;         /* the same error as fit.error */

    /* The task, and the members that it fills. */
    const struct task *task;
    void *data;                     /* [task->size]: the task's own struct */
    wf_scans *scans;                /* results of scanning the texts, shared by training a tokenizer and encoding; may be NULL */
    wf_tokenizer *tokenizer;        /* the tokenizer; in a translation it is the target's */
    wf_tokenizer *source_tokenizer; /* translation only; may be the same as `tokenizer` */
    bool made;                      /* the tokenizers were trained on the texts */
    int64_t long_words;             /* words that were too long for the tokenizer's training (struct wf_tokenizer_options) */
    uint64_t train_hash;            /* hash of the training text's ids; a resume must have the same */
    uint64_t valid_hash;            /* hash of the validation text's ids; 0: no validation */
    int64_t train_tokens;           /* see struct wf_event for this and the next three members */
    int64_t valid_tokens;
    int64_t train_pairs;
    int64_t valid_pairs;
    bool validates;      /* there is a validation text */
    bool scores;         /* a validation also measures BLEU and chrF */
    int64_t valid_limit; /* a validation uses this many tokens, spread evenly over the validation text; 0: all tokens */

    /* Resume. */
    bool new_batches;   /* a setting that determines the batches differs from the state */
    int64_t kept_limit; /* valid_limit of the state, which is kept so that losses stay comparable; -1: not kept */

    /* Start from weights. */
    struct origin from;
    struct wf_string differs; /* settings that differ from those of the weights, as text */
    struct wf_string fresh;   /* names of the parameters that the file of weights lacks, as text */
    int64_t fresh_count;      /* number of these parameters */
    wf_tokenizer *before;     /* the tokenizer of the weights, if the vocabulary grows; else NULL */
    struct wf_string grown;   /* which tokens were added, as text */

    const struct wf_bitext_survey *survey; /* wf_event.survey of the event that is being reported */
};

/* trainer_state.c: the data that wf_train adds to the state. zoo_put, zoo_get and zoo_identify are the members
 * put, get and identify of struct fit_owner for wf_train, which trains the models that Weft ships (the zoo). */
void zoo_put(struct fit *f, wf_safetensors_writer *w);
void zoo_identify(const struct fit *f, struct wf_string *text);
/* For a resume: if several ranks have raised `accumulate` and the caller asks for the original number again, keeps the raised one. */
wf_status state_parts(struct trainer *t);
wf_status zoo_get(struct fit *f, const wf_safetensors *file, const char *path);
/* Loads the tokenizers from the state; the source's may be missing. */
wf_status state_tokenizers(struct trainer *t);

/* grow.c: a larger vocabulary than that of the weights. */
/* Replaces the tokenizer by a larger one, with the tokens in .new_tokens; t->before becomes the one of the weights. */
wf_status grow_tokenizer(struct trainer *t);
/* Loads weights with `rows` rows of tokens. The old rows stay; those of new tokens become the mean of the old tokens' rows. */
wf_status grow_load(struct trainer *t, const wf_safetensors *file, int64_t rows, const struct wf_load_options *options);

/* texts.c: the names of the files that a run was trained on, stored under the key "trained_on". */
/* For a resume without texts: takes the texts that the state names into t->own. */
wf_status texts_recall(struct trainer *t);
/* Makes the object that is stored. NULL, with an error set, if that fails. */
json_t *texts_json(const struct trainer *t, wf_error *error);
/* Stores the object in the state. */
void texts_put(struct trainer *t, wf_safetensors_writer *w);
/* Warns if the texts differ from those of the run that is repeated, .repeats of the options. */
wf_status texts_tell(struct trainer *t);
/* Reads the object from the state. NULL: the state has none, or there is an error. */
json_t *texts_of_state(const struct state *s, wf_error *error);

/* run_files.c: writes config.json and the tokenizers. Files of these names with other contents are renamed first, but a resume replaces a
 * config.json that the run itself wrote. */
wf_status run_files_save(struct trainer *t, bool resuming);

/* tokenizers.c */
/* Gets the tokenizers: in a resume those of the state, which given ones must equal; otherwise the given ones; or else new ones, trained on
 * the texts with the kind and size in the config. Sets the vocabulary sizes of the config. */
wf_status tokenizers_open(struct trainer *t, bool resuming);
/* Warns if the text was too short for a vocabulary of the requested size. Also warns of words that were too long for the tokenizer's
 * training. */
wf_status tokenizers_tell(struct trainer *t);
/* Warns if `unknown`, the number of unknown tokens of a text, is above 0. `text` names the text, which has `tokens` tokens in all. */
wf_status unknown_tell(struct trainer *t, const char *text, int64_t unknown, int64_t tokens);

/* from.c: a start from trained weights, .from of the options. */
/* Finds the file of weights and its folder. Free *out with origin_free. */
wf_status origin_find(const char *from, struct origin *out, wf_error *error);
void origin_free(struct origin *o);
/* An error if the weights lie in the folder of a new run, which would replace them. */
wf_status origin_apart(const char *from, const char *out, wf_error *error);
/* Loads the tokenizers that lie with the weights. */
wf_status origin_tokenizers(struct trainer *t);
/* Loads the weights into the built registry. Parameters that the file lacks stay initialised. */
wf_status origin_load(struct trainer *t);
/* Reports which weights the training starts from, and warns of differences. */
wf_status origin_tell(struct trainer *t);

/* events.c: the events of wf_train. */
/* wf_fit_options.event: passes an event of the loop to the caller as a wf_event. */
void pass_on(void *trainer, const struct wf_fit_event *e);
/* WF_EVENT_START with the numbers of parameters and tokens. */
wf_status report_start(struct trainer *t);
/* WF_EVENT_DATA with the counts of a survey. */
wf_status report_data(struct trainer *t, const struct wf_bitext_survey *survey, const char *text);
/* WF_EVENT_PREPARE. Returns false if the preparation must stop: the caller has cancelled, or the time limit has passed. */
bool report_progress(struct trainer *t, const char *text, int64_t done, int64_t total);

/* WF_EVENT_PROGRESS within a validation; a callback for struct wf_progress. */
void validation_tell(void *trainer, int64_t done, int64_t total);

/* train.c */
/* Adds the family's additional loss terms to the loss of a micro-batch, and reports them. */
wf_tensor *with_terms(struct wf_loss_terms *terms, struct wf_micro_batch *p, wf_tensor *loss);
/* Sets the number of updates if the configuration gives epochs instead; `updates` is the number of updates in an epoch. */
wf_status choose_steps(struct trainer *t, double updates);
/* Sets valid_limit, and reduces valid_tokens to it; `tokens` is the number of tokens in an update. */
void choose_validation(struct trainer *t, int64_t tokens);
/* Whether the caller has cancelled the training. The argument of this and the next function is a struct trainer. */
bool cancelled(void *trainer);
/* Whether the caller has cancelled, or a validation must stop because the time limit is near. */
bool validation_cancelled(void *trainer);

#endif
