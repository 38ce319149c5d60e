/* SPDX-License-Identifier: MIT */
/* Declarations that the files of the loop share: wf_fit, which wf_train calls. */
#ifndef WEFT_TRAIN_LOOP_H
#define WEFT_TRAIN_LOOP_H

#include <time.h>

#include <weft/events.h>
#include <weft/fit.h>
#include <weft/internal/files.h>
#include <weft/internal/jsonl.h>
#include <weft/internal/minmax.h>
#include <weft/internal/ranks.h>
#include <weft/internal/string.h>

/* A number of a line: its name and its source. */
enum { TAG = 95 }; /* the bytes of a tag, at most */
struct curve {
    enum wf_event_kind kind;
    char tag[TAG + 1];
    const double *value; /* one that is not finite is left out */
};
enum { CURVES = 3 * WF_FIT_PHASES + WF_FIT_REPORTS + WF_FIT_OPTIMIZERS + WF_FIT_METRICS + 2 };

struct log {
    wf_jsonl *metrics;
    wf_events *events; /* NULL in a library without protobuf-c */
    struct curve curve[CURVES];
    int curves;
    struct wf_fit_number number[CURVES];
};

/* A whole number of a line. */
struct count {
    const char *key;
    int64_t value;
};

/* Sums over the micro-batches of a leaf of the reduction tree. */
struct scalars {
    double loss, minimized, report[WF_FIT_REPORTS];
    int64_t losses; /* micro-batches that had one */
    bool shows;     /* a micro-batch shows a loss that lacks other minimised terms */
};

/* Seconds, for a limit of time: the longest of each in this process, 0: none yet. */
struct limit {
    double update, validation, save; /* save: that of rank 0 */
    bool save_measured, cut;         /* cut: the limit ended an update or a validation, which was dropped */
};

/* Times of an update, a validation and a save, to predict the time left. */
struct pace {
    int64_t updates;         /* measured */
    double update;           /* seconds, their mean */
    double validation;       /* of the last one; 0: none yet */
    double validation_share; /* its rows, as a fraction of those of an update; 0: not known */
    bool validating, saving;
    bool validation_left, save_left; /* at the present step, and not done yet */
    int64_t done, total;
    double share; /* done, of the present validation or save */
};

struct fit;
/* How a caller resumes: a program sets .resume, the command has --resume. */
const char *fit_resume_name(const struct fit *f);
/* Additions of a caller inside this room to the files of a run. */
struct fit_owner {
    bool any; /* a task of any program, known by its name */
    /* put: into the state; the first error is f->error. get: from it, before anything else of the state is loaded. */
    void (*put)(struct fit *f, wf_safetensors_writer *w);
    wf_status (*get)(struct fit *f, const wf_safetensors *file, const char *path);
    void (*describe)(const struct fit *f, wf_safetensors_writer *w); /* into every file of weights */
    const char *state_prefix;                                        /* of the task's names in the state */
    void (*identify)(const struct fit *f, struct wf_string *text);   /* KEY=VALUE, separated by blanks: must be equal on all ranks */
    const char *minimized_tag;                                       /* of the minimised loss, if another is shown; NULL: it is shown */
};

/* The first error wins: f->error->code is the status, and a function that fails has set it. Functions are therefore chained with ||, and
 * the code is returned once. */
struct fit {
    struct wf_task task;
    struct wf_fit_options o;
    const struct fit_owner *owner;
    wf_lock *lock;
    wf_tape *tape;
    struct log log;
    struct timespec start;
    wf_error *error;
    int phases, reports;
    bool stepped; /* an optimiser has stepped in the present update, which is then finished before a cancellation */

    /* of the last update and the last validation; NaN where there is none */
    double loss[WF_FIT_PHASES], minimized[WF_FIT_PHASES];
    double grad_norm[WF_FIT_PHASES]; /* before clipping */
    double report[WF_FIT_REPORTS], lr[WF_FIT_OPTIMIZERS], value[WF_FIT_METRICS];
    double weight, per_second;
    int64_t losses; /* micro-batches of the update so far that had one */
    bool improved;

    /* the ranks that train together */
    struct wf_ranks ranks;
    bool agreed_next; /* all ranks have agreed to the next update */
    wf_status end;    /* why all ranks end before the next update; WF_OK: they do not */
    bool resumes;     /* the folder holds a state, as rank 0 has seen it */

    struct limit limit;
    struct pace pace;

    /* what a resume restores */
    int64_t step;            /* updates done */
    double total;            /* sum of the weights of their batches; NaN: the state is older than this number */
    int64_t given;           /* .accumulate of a program, before several ranks raised it */
    double best;             /* NaN: no validation yet */
    int64_t since_best;      /* validations */
    bool validation_due;     /* at this step, and not done */
    struct wf_string change; /* what the resume changes, for people; empty: nothing */
    bool new_validation;     /* the state's best value is not comparable with new ones */
    bool early;              /* patience has run out */
    bool saved;              /* the state on disk is that of this step */
    int64_t on_disk;         /* the step of the state on disk; -1: there is none */
};

/* begin.c and loop.c, in this order: */
void fit_init(struct fit *f, wf_error *error); /* f is zeroed */
wf_status fit_enter(struct fit *f);            /* after wf_ranks_open: locks the folder; warns if .resume finds no state */
wf_status fit_prepare(struct fit *f);          /* once task and options are complete and checked */
wf_status fit_take(struct fit *f);             /* loads the state; nothing is written yet */
wf_status fit_set_aside(struct fit *f);        /* files that a new training would replace; rank 0 */
wf_status fit_begin(struct fit *f);            /* saves if the resume changes something; opens the logs */
wf_status fit_run(struct fit *f);              /* to the end */
void fit_free(struct fit *f);

bool fit_cancelled(void *fit); /* by the caller; never once an optimiser has stepped in the update */
/* During an update, before the new weights are sent: agrees whether all ranks go on after it. A message behind the weights would be late.
 */
void fit_agree_ahead(struct fit *f);
/* write(f), on rank 0, while the other ranks serve their moments. f->error's code. */
wf_status state_write(struct fit *f, void (*write)(void *fit));
/* After an error of a file, on a full disk say, the message says where the run continues. */
wf_status after_failure(struct fit *f, wf_status status);

/* validate.c */
wf_status fit_validate(struct fit *f);
bool patience_is_out(const struct fit *f);

/* ranks.c: several ranks. */
/* New run: raises accumulate and leaves until each rank has a micro-batch; warns of the change. */
wf_status ranks_share(struct fit *f);
/* Refuses more ranks than there are leaves in the state. */
wf_status ranks_resume(struct fit *f, const char *path);
/* Checks that all ranks train the same: program, machine, settings, texts and weights. */
wf_status ranks_compare(struct fit *f);

/* limit.c: .max_time */
bool limit_passed(const struct fit *f);
void limit_measure(double *longest, const struct timespec *begin);
/* The same for a save, on all ranks: they get the time of rank 0. f->error's code. */
wf_status limit_measure_save(struct fit *f, const struct timespec *begin);
/* Whether to save only to measure the time of a save. */
bool limit_wants_save(const struct fit *f);
/* Before an update: WF_ERR_TIME on rank 0 if time is too short for it and for the validation or save that is due after it. */
wf_status limit_check(struct fit *f, bool validates, bool saves);
/* Whether the present computation must be dropped, because there is time only for a save. It ends with WF_ERR_CANCELLED, and limit_rename
 * phases that into WF_ERR_TIME. */
bool limit_cuts(struct fit *f);
wf_status limit_rename(struct fit *f);
const char *limit_text(const struct fit *f, char text[160]); /* a message for the end of a training */
wf_status limit_error(struct fit *f);                        /* the error of such an end */
/* An error if the limit allowed no update at all. */
wf_status limit_too_short(struct fit *f);

/* pace.c: progress and the time left */
void pace_update(struct fit *f, double seconds);
double pace_left(const struct fit *f);     /* seconds; NaN before the first update */
double pace_expected(const struct fit *f); /* seconds of the present validation or save; 0: none */
/* WF_EVENT_PROGRESS: "validating", "saving". */
wf_status pace_report(struct fit *f, const char *text, int64_t done, int64_t total);

/* check.c */
int phases_of(const struct wf_task *task); /* 1 if it names none */
wf_status fit_check(const struct wf_task *task, const struct wf_fit_options *o, wf_error *error);

/* update.c */
wf_status fit_update(struct fit *f);
/* The loss of micro-batch i, on the tape; NULL: it is empty. */
wf_tensor *fit_forward(struct fit *f, struct wf_micro_batch *b, int phase, int64_t i);
void fit_zero_gradients(const struct fit *f);

/* explain.c: numbers that are not finite. Each sets the error. */
/* They repeat the phase with checks, and name the first tensor that is not finite. No optimiser of the phase has stepped. */
wf_status explain_loss(struct fit *f, int phase);
wf_status explain_gradient(struct fit *f, int phase); /* after all backwards */
/* After a validation whose deciding value is not finite, on all ranks: validates again and checks every result. */
wf_status explain_validation(struct fit *f);
/* An error if weights are not finite: they must not replace the state or the best weights. */
wf_status refuse_bad_weights(struct fit *f);

/* fit_state.c: state.safetensors, all that a resume needs. */
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
wf_status averages_save(struct fit *f);      /* ema.safetensors, if an optimiser has averages */
wf_status checkpoint_save(struct fit *f);    /* and drops those beyond `keep` */
bool checkpoint_exists(const struct fit *f); /* that of this step */
/* Renames files that a new training would replace; a warning names them. */
wf_status set_others_aside(struct fit *f);
/* Renames a file or folder of the run, if it exists (wf_file_set_aside); the warning says why. */
#define NEW_FILES ".weft-new" /* a folder of the run's for files that are compared with those that are there */
#define WOULD_REPLACE "the training would replace what is in its folder"
wf_status set_aside(struct fit *f, const char *name, const char *as, const char *why);
/* Prefix of a registry's parameters in a file of weights: "" or "NAME."; in the state it follows "model.". */
enum { PREFIX = 96 };
const char *registry_prefix(const struct fit *f, int registry, const char *before, char text[PREFIX]);

/* metrics.c: a line of metrics.jsonl, its numbers in the event file, and a call of the user's event(). */
wf_status metrics_open(struct fit *f, bool resuming);
void metrics_close(struct fit *f);
wf_status curves_of(struct fit *f); /* lists the numbers and their names; refuses a name that occurs twice */
wf_status report(struct fit *f, enum wf_event_kind kind, const char *text);
wf_status report_string(struct fit *f, enum wf_event_kind kind, struct wf_string *text); /* frees it */
/* A text may have any bytes, such as a path; bytes that are not UTF-8 become \xNN. */
wf_status report_counts(struct fit *f, enum wf_event_kind kind, const char *text, const struct count *count, int counts);
int64_t parameters_of(const struct fit *f); /* of all registries */
wf_status report_sample(struct fit *f);     /* a sample of the model, if the task gives samples */
double seconds_since(const struct timespec *start);

#endif
