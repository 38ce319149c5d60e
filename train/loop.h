/* SPDX-License-Identifier: MIT */
/* What the files of the loop share: wf_fit, of which wf_train is made. */
#ifndef WEFT_TRAIN_LOOP_H
#define WEFT_TRAIN_LOOP_H

#include <time.h>

#include <weft/dist.h>
#include <weft/events.h>
#include <weft/fit.h>
#include <weft/internal/files.h>
#include <weft/internal/jsonl.h>
#include <weft/internal/string.h>
#include <weft/internal/transport.h>

#include "exchange.h"
#include "slices.h"
#include "tree.h"

/* What a number of a line is read from. */
enum { TAG = 95 }; /* the bytes of a tag, at most */
struct curve {
    enum wf_event_kind kind;
    char tag[TAG + 1];
    const double *value; /* one that is not finite is left out */
};
enum { CURVES = 3 * WF_FIT_TURNS + WF_FIT_REPORTS + WF_FIT_OPTIMIZERS + WF_FIT_METRICS + 2 };

/* A whole number of a line. */
struct count {
    const char *key;
    int64_t value;
};

/* Scalars of a leaf: sums over its parts. */
struct leaf {
    double loss, minimized, report[WF_FIT_REPORTS];
    int64_t losses; /* parts that had one */
    bool shows;     /* a part's loss is shown without what is minimised besides */
};

/* Seconds, for a limit of time: the longest of each in this process, 0: none yet. */
struct limit {
    double update, validation, save; /* save: rank 0's */
    bool saved, cut;                 /* cut: what was being computed is dropped for the limit */
};

/* What an update, a validation and a save take, for the time that is left. */
struct pace {
    int64_t updates;         /* measured */
    double update;           /* seconds, their mean */
    double validation;       /* of the last one; 0: none yet */
    double validation_share; /* its rows, of those of an update; 0: not known */
    bool validating, saving;
    bool owes_validation, owes_save; /* those of the present step, which are not done yet */
    int64_t done, total;
    double share; /* of what is being done */
};

struct fit;
/* How a caller resumes: a program sets .resume, the command has --resume. */
const char *fit_resume_name(const struct fit *f);
/* What a caller inside this room adds to the files of a run. */
struct fit_owner {
    bool any; /* a task of any program, known by its name */
    /* Into the state; the first error is f->error. And from it, before anything of the state is taken over. */
    void (*put)(struct fit *f, wf_safetensors_writer *w);
    wf_status (*get)(struct fit *f, const wf_safetensors *file, const char *path);
    void (*describe)(const struct fit *f, wf_safetensors_writer *w); /* into every file of weights */
    const char *state_prefix;                                        /* of the task's names in the state */
    void (*identify)(const struct fit *f, struct wf_string *text);   /* KEY=VALUE, blanks between: what processes must have in common */
    const char *minimized_tag;                                       /* of the loss that is minimised, where another is shown; NULL: none */
};

/* The first error wins: f->error->code is the status, and a function that fails has set it. Functions are therefore chained with ||, and
 * the code is returned once. */
struct fit {
    struct wf_task task;
    struct wf_fit_options o;
    const struct fit_owner *owner;
    wf_lock *lock;
    wf_tape *tape;
    wf_jsonl *metrics;
    wf_events *events; /* NULL in a library without protobuf-c */
    struct timespec start;
    wf_error *error;
    int turns, reports;
    bool committed; /* an optimiser has changed weights for an update that is not finished: it is finished before it is cancelled */
    struct curve curve[CURVES];
    int curves;
    struct wf_fit_number number[CURVES];
    char best_tag[64]; /* what the decision is by, for messages */

    /* of the last update and the last validation; NaN where there is none */
    double loss[WF_FIT_TURNS], minimized[WF_FIT_TURNS], grad_norm[WF_FIT_TURNS]; /* before clipping */
    double report[WF_FIT_REPORTS], lr[WF_FIT_OPTIMIZERS], value[WF_FIT_METRICS];
    double weight, per_second;
    int64_t losses; /* parts of the update so far that had one */
    bool improved;

    /* the processes that train together */
    wf_dist *dist;
    int rank, processes;
    bool in_company;            /* with others, until together_close */
    bool echo;                  /* the error is only that another process has one */
    bool told;                  /* the error is that of all processes */
    bool lost;                  /* this process cannot tell the others of its error */
    bool ahead;                 /* all have agreed to the next update already */
    wf_status stop;             /* all have agreed to end before the next update; WF_OK: they have not */
    bool resumes;               /* the folder holds a state, as rank 0 has seen it */
    struct wf_dist_watch watch; /* the caller's */
    struct slicing slicing[WF_FIT_REGISTRIES];
    struct spread *spread;
    struct exchange exchange;

    struct tree tree;
    struct leaf *leaf; /* [o.leaves] of a turn */
    struct limit limit;
    struct pace pace;

    /* what a resume restores */
    int64_t step;            /* updates done */
    double total;            /* sum of the weights of their batches; NaN: the state is older than this number */
    int64_t asked;           /* .accumulate of a program, before several processes raised it */
    double best;             /* NaN: no validation yet */
    int64_t stale;           /* validations since the best */
    bool owes_validation;    /* that of this step was due and is not done */
    struct wf_string change; /* what the resume changes, for people; empty: nothing */
    bool new_validation;     /* the state's best value is of another text */
    bool early;              /* patience has run out */
    bool dropped;            /* the update after this step was begun and cancelled: the place in the data is that of its batch */
    bool saved;              /* the state on disk is that of this step */
    int64_t on_disk;         /* the step of the state on disk; -1: there is none */
};

/* loop.c, in this order: */
void fit_init(struct fit *f, wf_error *error); /* f is zeroed */
wf_status fit_enter(struct fit *f);            /* after together_open: takes the folder; with .resume and without a state, a warning */
bool fit_resumes(const struct fit *f);         /* whether the folder, which was entered, holds a state */
wf_status fit_prepare(struct fit *f);          /* once task and options are complete and checked */
wf_status fit_take(struct fit *f);             /* loads the state; nothing is written yet */
wf_status fit_set_aside(struct fit *f);        /* what a new training would replace; rank 0 */
wf_status fit_begin(struct fit *f);            /* what the resume changes is saved; opens the logs */
wf_status fit_run(struct fit *f);              /* to the end */
void fit_free(struct fit *f);
bool fit_cancelled(void *fit); /* by the caller; never amid an update whose optimisers have begun */

/* Within an update, before weights go to the others: whether they all go on after it, since a message behind these would come late. */
void fit_ask_ahead(struct fit *f);

/* together.c: several processes. */
/* What the transport could not do leaves the others alone: they are ended when this process ends. The error's code. */
wf_status together_lost(struct fit *f);
wf_status together_failed(struct fit *f, const wf_error *why); /* the same, with this error, whatever there was before */
wf_status together_open(struct fit *f);
void together_close(struct fit *f);
/* One outcome for all, from that of each in f->error: the error is that of the process that failed. */
wf_status together_agree(struct fit *f);
/* Waits for all, asleep: before together_agree, where one of them works for long. */
void together_rest(struct fit *f);
/* Rank 0's data, on all. */
wf_status together_from_first(struct fit *f, void *data, int64_t bytes);
/* Of a new run: accumulate and leaves that are enough for all processes; a warning says what it changes. */
wf_status together_share(struct fit *f);
/* Refuses more processes than there are leaves in the state. */
wf_status together_resume(struct fit *f, const char *path);
/* That all processes train the same: program, machine, settings, texts and weights. */
wf_status together_compare(struct fit *f);

/* limit.c: .max_time */
bool limit_passed(const struct fit *f);
void limit_measure(double *longest, const struct timespec *begin);
/* The same of a save, on all processes, which then know rank 0's; f->error's code. */
wf_status limit_measure_save(struct fit *f, const struct timespec *begin);
/* A first save, so that its time is known. */
bool limit_asks_save(const struct fit *f);
/* Before an update, after which there is a validation or a save that is due: WF_ERR_TIME on rank 0 where there is no room for them. */
wf_status limit_check(struct fit *f, bool validates, bool saves);
/* Whether what is being computed must be dropped, since there is room for a save only. It ends with WF_ERR_CANCELLED, which limit_name
 * makes WF_ERR_TIME. */
bool limit_cuts(struct fit *f);
wf_status limit_name(struct fit *f);
const char *limit_near(const struct fit *f, char text[160]); /* to people, at the end */
wf_status limit_ended(struct fit *f);                        /* the error of such an end */
/* An error where nothing was done: the same limit again would do nothing again. */
wf_status limit_too_short(struct fit *f);

/* pace.c: how far it is */
void pace_update(struct fit *f, double seconds);
double pace_left(const struct fit *f);     /* seconds; NaN before the first update */
double pace_expected(const struct fit *f); /* seconds, of the validation or the save that goes on; 0: none */
/* WF_EVENT_PROGRESS: "validating", "saving". */
wf_status pace_report(struct fit *f, const char *text, int64_t done, int64_t total);

/* check.c */
wf_status fit_check(const struct wf_task *task, const struct wf_fit_options *o, wf_error *error);

/* update.c: one update, and what to say when a number goes bad. */
wf_status fit_update(struct fit *f);
/* Weights that are not finite replace nothing: not the state, and not what was best. */
wf_status refuse_bad_weights(struct fit *f);
/* After a validation whose deciding value is not finite, on all processes: validates once more with a look at every result. */
wf_status explain_validation(struct fit *f);

/* fit_state.c: state.safetensors, which alone is enough to go on. */
#define STATE_FILE "state.safetensors"
struct wf_fit_state {
    const char *prefix, *path;
    wf_safetensors_writer *writer;
    const wf_safetensors *file;
};
wf_status state_save(struct fit *f);
wf_status state_load(struct fit *f);
void state_put_number(wf_safetensors_writer *w, const char *key, int64_t value);
wf_status state_get_number(const wf_safetensors *file, const char *path, const char *key, int64_t *out, wf_error *error);
/* A state that is open for reading. */
struct state {
    char *path;
    wf_safetensors *file;
};
wf_status state_open(struct state *s, const char *folder, wf_error *error);
void state_close(struct state *s);

/* settings.c: differences of .settings and .fixed from those of the state. */
wf_status settings_compare(struct fit *f, const wf_safetensors *file, const char *path);
void settings_words(const char *settings, struct wf_string *words); /* each with a blank behind; NULL: none */

/* files.c: the other files of the run. */
wf_status weights_save(struct fit *f, const char *name);
wf_status averages_save(struct fit *f);      /* ema.safetensors, where an optimiser has averages */
wf_status checkpoint_save(struct fit *f);    /* and drops those beyond `keep` */
bool checkpoint_exists(const struct fit *f); /* that of this step */
/* What a new training would replace gets another name, which a warning says. */
wf_status set_others_aside(struct fit *f);
/* `name`, a file or a folder of the run's, gets another name, where it is there (wf_file_set_aside); the warning says why. */
#define NEW_FILES ".weft-new" /* a folder of the run's for files that are compared with those that are there */
#define WOULD_REPLACE "the training would replace what is in its folder"
wf_status set_aside(struct fit *f, const char *name, const char *as, const char *why);
/* How the names of a registry's parameters begin in a file of weights: "" or "NAME."; in the state after "model.". */
enum { PREFIX = 96 };
const char *registry_prefix(const struct fit *f, int registry, const char *before, char text[PREFIX]);

/* metrics.c: a line of metrics.jsonl, its numbers in the event file, and a call of the user's event(). */
wf_status metrics_open(struct fit *f, bool resuming);
void metrics_close(struct fit *f);
wf_status curves_of(struct fit *f); /* which numbers there are, and their names; two of one name are refused */
wf_status report(struct fit *f, enum wf_event_kind kind, const char *text);
wf_status report_string(struct fit *f, enum wf_event_kind kind, struct wf_string *text); /* frees it */
/* A text may have any bytes, such as those of a path: those that are not UTF-8 become \xNN. */
wf_status report_counts(struct fit *f, enum wf_event_kind kind, const char *text, const struct count *count, int counts);
int64_t parameters_of(const struct fit *f); /* of all registries */
wf_status report_sample(struct fit *f);     /* what the model makes now, where the task has samples */
double seconds_since(const struct timespec *start);

#endif
