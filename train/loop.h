/* SPDX-License-Identifier: MIT */
/* Declarations that the files of the training loop share. wf_fit runs the loop for a program's task, wf_train for a configured model. */
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

enum { TAG = 95 }; /* the longest name of a logged number, in bytes without the final 0 */
/* A number that is logged in metrics.jsonl and in TensorBoard's event file. */
struct curve {
    enum wf_event_kind kind; /* the event that logs the number */
    char tag[TAG + 1];       /* the name in both files */
    const double *value;     /* points to the present value, which is logged only if it is finite */
};
/* The largest number of curves: loss, minimised loss and gradient norm of each phase; each report, learning rate and metric; the weight per
 * second; and the best value. */
enum { CURVES = 3 * WF_FIT_PHASES + WF_FIT_REPORTS + WF_FIT_OPTIMIZERS + WF_FIT_METRICS + 2 };

struct log {
    wf_jsonl *metrics; /* NULL: nothing is logged */
    wf_events *events; /* NULL in a library without protobuf-c */
    struct curve curve[CURVES];
    int curves;
    struct wf_fit_number number[CURVES]; /* the finite numbers of the present event */
};

/* An integer in a line of metrics.jsonl. */
struct count {
    const char *key;
    int64_t value;
};

/* Sums and counts over the micro-batches of a leaf of the reduction tree, and a flag. */
struct scalars {
    double loss;                   /* the logged loss */
    double minimized;              /* the minimised loss */
    double report[WF_FIT_REPORTS]; /* the task's other numbers */
    int64_t losses;                /* micro-batches that were not empty */
    bool shows;                    /* a micro-batch has set wf_micro_batch.shown, so the logged loss is not the minimised one */
};

/* For .max_time: the longest times so far in this process, in seconds (0 before the first measurement), and two flags. */
struct limit {
    double update;
    double validation;
    double save;        /* measured on rank 0 */
    bool save_measured; /* `save` has been measured */
    bool cut;           /* the time limit has ended an unfinished computation */
};

/* Measured times, and what is running or still to come: these predict the remaining time of the training. */
struct pace {
    int64_t updates;         /* number of measured updates */
    double update;           /* mean time of an update in seconds */
    double validation;       /* time of the last validation in seconds; 0: there was none */
    double validation_share; /* size of a validation divided by the size of an update's batch; 0: not known */
    bool validating;         /* a validation is running */
    bool saving;             /* a save is running */
    bool validation_left;    /* the present step still needs a validation */
    bool save_left;          /* the present step still needs a save */
    int64_t done;            /* progress of the running validation or save: units done */
    int64_t total;           /* units in total; 0: not known */
    double share;            /* done / total */
};

struct fit;
/* The name of the option that resumes, for messages: ".resume" for wf_fit, "--resume" for wf_train, which the command calls. */
const char *fit_resume_name(const struct fit *f);
/* The differences between wf_fit and wf_train. Most are functions and names for the data that each adds to the files of a run. */
struct fit_owner {
    bool any; /* true for wf_fit, whose runs are identified by the task's name; false for wf_train */
    /* Writes additional data into the state. Sets f->error if it fails. */
    void (*put)(struct fit *f, wf_safetensors_writer *w);
    /* Reads and checks these data in a resume, before anything else of the state is loaded. */
    wf_status (*get)(struct fit *f, const wf_safetensors *file, const char *path);
    /* Writes metadata into each file of weights. */
    void (*describe)(const struct fit *f, wf_safetensors_writer *w);
    /* In the state, the names that the task's `put` writes get this prefix. */
    const char *state_prefix;
    /* Appends settings that must be equal on all ranks: words KEY=VALUE, separated by blanks. NULL: there are none. */
    void (*identify)(const struct fit *f, struct wf_string *text);
    /* If the logged loss is not the minimised one, the latter is logged too, under the name loss/train_TAG (with several phases
     * PHASE/train_TAG), where TAG is this string. NULL: it is not logged. */
    const char *minimized_tag;
};

/* A running training. f->error holds the first error. A function that fails sets it and returns its code, so calls are chained with || and
 * the chain ends with `return f->error->code`. */
struct fit {
    struct wf_task task;
    struct wf_fit_options o;
    const struct fit_owner *owner;
    wf_lock *lock; /* locks the run's folder; NULL on other ranks than 0 */
    wf_tape *tape;
    struct log log;
    struct timespec start; /* time of the call of wf_fit or wf_train */
    wf_error *error;
    int phases;   /* number of the task's phases, at least 1 */
    int reports;  /* number of the task's reports */
    bool stepped; /* an optimiser has stepped in the present update; a cancellation then waits for the end of the update */

    /* Results of the last update and the last validation. Before these, `loss`, `minimized`, `report`, `value` and `per_second` are NaN. */
    double loss[WF_FIT_PHASES];      /* the logged loss of each phase */
    double minimized[WF_FIT_PHASES]; /* the minimised loss of each phase; NaN if it is the logged one */
    double grad_norm[WF_FIT_PHASES]; /* the gradient norm of each phase, before clipping */
    double report[WF_FIT_REPORTS];   /* the task's other numbers */
    double lr[WF_FIT_OPTIMIZERS];    /* learning rates */
    double value[WF_FIT_METRICS];    /* metrics of the validation; NaN: not measured */
    double weight;                   /* weight of the whole batch, from the task's `next` */
    double per_second;               /* weight per second */
    int64_t losses;                  /* micro-batches of the present update that were not empty */
    bool improved;                   /* the validation was the best so far */

    /* Several processes. */
    struct wf_ranks ranks;
    bool agreed_next; /* all ranks have agreed to begin the next update */
    wf_status end;    /* why all ranks end after the present update: WF_ERR_CANCELLED or WF_ERR_TIME; WF_OK: they go on */
    bool resumes;     /* the run's folder holds a state; rank 0 looks and tells the others */

    struct limit limit;
    struct pace pace;

    /* Progress, which a resume restores from the state. */
    int64_t step;        /* updates done */
    double total;        /* sum of the weights of all batches so far; NaN: resumed from an old state, which does not hold the sum */
    double best;         /* best value of the deciding metric; NaN before the first validation */
    int64_t since_best;  /* validations since the best one */
    bool validation_due; /* the validation of this step has not been completed */

    /* Data of this process, which a resume does not restore. */
    int64_t given;           /* .accumulate as the program set it; several ranks may have raised f->o.accumulate */
    struct wf_string change; /* settings that the resume changes, as text for the user; empty: none */
    bool new_validation;     /* the resume changes how validations are measured, so the state's best value is dropped */
    bool early;              /* patience has run out */
    bool saved;              /* the state on disk is that of the present step */
    int64_t on_disk;         /* the step of the state on disk; -1: there is no state */
};

/* begin.c and loop.c: the parts of a training. wf_fit and wf_train call each of these functions once, in this order, except that wf_fit
 * calls fit_prepare before fit_enter. */
void fit_init(struct fit *f, wf_error *error); /* initialises *f, which the caller has zeroed */
wf_status fit_enter(struct fit *f);     /* rank 0 locks the run's folder, and warns if .resume finds no state; called after wf_ranks_open */
wf_status fit_prepare(struct fit *f);   /* derives the loop's own data from f->task and f->o, which the caller has filled in */
wf_status fit_take(struct fit *f);      /* loads the state if there is one; writes no file */
wf_status fit_set_aside(struct fit *f); /* rank 0 renames files that a new training would replace */
wf_status fit_begin(struct fit *f);     /* saves the state if the resume changes settings; opens the logs */
wf_status fit_run(struct fit *f);       /* trains to the end */
void fit_free(struct fit *f);

/* Whether the present computation must stop: the caller cancels, or the time limit is near. With several ranks only the time limit
 * counts, and only in a validation. False once an optimiser has stepped in the update. The tape calls this function before each op. */
bool fit_cancelled(void *fit);
/* With late values (new weights that arrive while the next forward pass runs: wf_ranks_are_late), all ranks agree here whether to begin the
 * next update, before they send the new weights of this one. If the messages of the agreement were sent after
 * the weights, they would queue behind them. */
void fit_agree_ahead(struct fit *f);
/* Calls write(f) on rank 0 while the other ranks send their moments to rank 0. Returns f->error's code. */
wf_status state_write(struct fit *f, void (*write)(void *fit));
/* After a failure to write a file, for example on a full disk, adds to the message from which step a resume will continue. */
wf_status after_failure(struct fit *f, wf_status status);

/* validate.c */
/* Validates, updates the best weights and patience, and reports. */
wf_status fit_validate(struct fit *f);
bool patience_is_out(const struct fit *f);

/* ranks.c: several processes. */
/* For a new run: raises `accumulate` and `leaves` until each rank has a leaf, with a warning. */
wf_status ranks_share(struct fit *f);
/* For a resume: an error if there are more ranks than leaves. */
wf_status ranks_resume(struct fit *f, const char *path);
/* Checks that program, machine, settings, texts and weights are the same on all ranks. */
wf_status ranks_compare(struct fit *f);

/* limit.c: the time limit, .max_time. */
/* Whether the limit has passed. */
bool limit_passed(const struct fit *f);
/* Raises *longest to the seconds since `begin`, if these are more. */
void limit_measure(double *longest, const struct timespec *begin);
/* limit_measure for a save; all ranks get the time that rank 0 measured. Returns f->error's code. */
wf_status limit_measure_save(struct fit *f, const struct timespec *begin);
/* Whether to save now in order to learn how long a save takes. */
bool limit_wants_save(const struct fit *f);
/* Called before an update. Sets WF_ERR_TIME on rank 0 if the time left is too short for the update, for a validation (`validates`) and a
 * save (`saves`) after it, and for the save at the end. Until an update or a validation has been measured, sets it only if no time is left.
 */
wf_status limit_check(struct fit *f, bool validates, bool saves);
/* Whether the present computation must be dropped, because the time left is only enough for a save. The computation then fails with
 * WF_ERR_CANCELLED, which limit_rename changes to WF_ERR_TIME. */
bool limit_cuts(struct fit *f);
wf_status limit_rename(struct fit *f);
/* The text of WF_EVENT_END for a training that the limit ends. */
const char *limit_text(const struct fit *f, char text[160]);
/* Sets the error that wf_fit returns for a training that the limit ends. */
wf_status limit_error(struct fit *f);
/* Sets WF_ERR_ARGUMENT if the limit passed before any update or validation was done. */
wf_status limit_too_short(struct fit *f);

/* pace.c: progress and the remaining time. */
/* Records the time of an update. */
void pace_update(struct fit *f, double seconds);
/* Estimates the seconds until the end of the training; NaN before the first update. */
double pace_left(const struct fit *f);
/* Estimates how many seconds the running validation or save takes from its beginning to its end; 0 if neither is running. */
double pace_expected(const struct fit *f);
/* Reports WF_EVENT_PROGRESS with a text such as "validating" or "saving". */
wf_status pace_report(struct fit *f, const char *text, int64_t done, int64_t total);

/* check.c */
/* The number of the task's phases: 1 if it names none. */
int phases_of(const struct wf_task *task);
/* Checks the task and the options that a program has given. */
wf_status fit_check(const struct wf_task *task, const struct wf_fit_options *o, wf_error *error);

/* update.c */
/* One update: batch, gradients, clipping and optimisers. */
wf_status fit_update(struct fit *f);
/* Resets the tape, fills in *b, and calls the task's loss for micro-batch i. Returns NULL for an empty micro-batch. */
wf_tensor *fit_forward(struct fit *f, struct wf_micro_batch *b, int phase, int64_t i);
void fit_zero_gradients(const struct fit *f);

/* explain.c: errors for numbers that are not finite. */
/* After a loss that is not finite: repeats the phase with checks, and sets an error that names the first tensor that is not finite. Must be
 * called before an optimiser of the phase has stepped. */
wf_status explain_loss(struct fit *f, int phase);
/* The same after a gradient norm that is not finite, once all backwards of the phase have run. */
wf_status explain_gradient(struct fit *f, int phase);
/* Called on all ranks after a validation whose deciding value is not finite: validates again with checks, and sets an error that names the
 * first tensor that is not finite. */
wf_status explain_validation(struct fit *f);
/* Sets an error if a weight is not finite, so that bad weights never replace the state or the best weights. */
wf_status refuse_bad_weights(struct fit *f);

/* fit_state.c: state.safetensors, the file from which a training resumes. */
#define STATE_FILE "state.safetensors"
/* The handle that a task's `put` and `get` receive. */
struct wf_fit_state {
    const char *prefix;            /* text in front of the names that `put` and `get` give (fit_owner.state_prefix) */
    const char *path;              /* path of the state, for messages */
    wf_safetensors_writer *writer; /* for `put`; NULL in `get` */
    const wf_safetensors *file;    /* for `get`; NULL in `put` */
};
wf_status state_save(struct fit *f);
wf_status state_load(struct fit *f);
/* Write and read an integer in the state's metadata. A missing or malformed number is WF_ERR_FORMAT. */
void state_put_number(wf_safetensors_writer *w, const char *key, int64_t value);
wf_status state_get_number(const wf_safetensors *file, const char *path, const char *key, int64_t *out, wf_error *error);
/* A state file that is open for reading. Call state_close after state_open, even if that failed. */
struct state {
    char *path;
    wf_safetensors *file;
};
wf_status state_open(struct state *s, const char *folder, wf_error *error);
void state_close(struct state *s);

/* settings.c: the options .settings and .fixed. */
/* Compares both options with the state. Adds changes of .settings to f->change; a change of .fixed is WF_ERR_ARGUMENT. */
wf_status settings_compare(struct fit *f, const wf_safetensors *file, const char *path);
/* Appends each setting, followed by a blank. `settings` may be NULL. */
void settings_words(const char *settings, struct wf_string *words);

/* weights.c: the other files of the run. */
/* Writes the weights of all registries into the file `name`. */
wf_status weights_save(struct fit *f, const char *name);
/* Writes ema.safetensors if an optimiser keeps moving averages. Otherwise renames such a file of an earlier part of the run. */
wf_status averages_save(struct fit *f);
/* Writes the checkpoint of this step if .keep or .keep_every wants it, and deletes old checkpoints. */
wf_status checkpoint_save(struct fit *f);
/* Whether there is a checkpoint of this step. */
bool checkpoint_exists(const struct fit *f);
/* Renames weights, state and checkpoints that a new training would replace, with warnings. */
wf_status set_others_aside(struct fit *f);
/* A folder in the run's folder: run_files_save writes new files there and compares them with the present ones before it replaces these. */
#define NEW_FILES ".weft-new"
/* A value of `why` for set_aside. */
#define WOULD_REPLACE "the training would replace what is in its folder"
/* Renames the file or folder `name` of the run if it exists, and reports a warning that begins with `why`. The new name is made from `as`,
 * or from `name` if `as` is NULL (wf_file_set_aside). */
wf_status set_aside(struct fit *f, const char *name, const char *as, const char *why);
/* Size of the text of registry_prefix. */
enum { PREFIX = 96 };
/* The prefix of a registry's parameters in a file: `before`, which is "model." in the state and "" in files of weights, then "NAME." if the
 * registry has a name. */
const char *registry_prefix(const struct fit *f, int registry, const char *before, char text[PREFIX]);

/* metrics.c: events. Each report calls the program's event(), and most write a line of metrics.jsonl and its numbers into TensorBoard's
 * event file. */
wf_status metrics_open(struct fit *f, bool resuming);
void metrics_close(struct fit *f);
/* Lists the numbers that will be logged, with their names. A name that occurs twice is WF_ERR_ARGUMENT. */
wf_status curves_of(struct fit *f);
/* Reports an event. `text` may be NULL. */
wf_status report(struct fit *f, enum wf_event_kind kind, const char *text);
/* Reports an event, and frees `text`. */
wf_status report_string(struct fit *f, enum wf_event_kind kind, struct wf_string *text);
/* Reports an event with further integers in its line. Bytes of `text` that are not UTF-8, for example in a path, become \xNN. */
wf_status report_counts(struct fit *f, enum wf_event_kind kind, const char *text, const struct count *count, int counts);
/* The number of elements of the parameters of all registries. */
int64_t parameters_of(const struct fit *f);
/* Asks the task for a sample, if it gives samples, and reports it. */
wf_status report_sample(struct fit *f);
double seconds_since(const struct timespec *start);

#endif
