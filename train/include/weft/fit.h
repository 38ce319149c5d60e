/* SPDX-License-Identifier: MIT */
/* Any training: the caller brings data and a loss, wf_fit brings the loop: gradient accumulation, clipping, learning rates, validation,
 * the best weights, early stop, checkpoints, metrics, Ctrl-C, and a resume to the same bytes.
 *
 *   static wf_tensor *loss(void *ctx, struct wf_fit_part *p)
 *   {
 *       struct digits *d = ctx;
 *       wf_tensor *logits = digits_forward(d, p->tape, p->step, p->part);
 *       return wf_cross_entropy(logits, digits_labels(d, p->tape), .normalizer = p->weight);
 *   }
 *   ...
 *   const struct wf_task task = {WF_TASK_ABI, .name = "digits", .next = next, .loss = loss};
 *   const struct wf_schedule schedule = {WF_SCHEDULE_COSINE, .peak = 1e-3, .warmup = 50};
 *   if (wf_fit_one(&task, registry, &adam, &schedule, NULL, &error, .out = "runs/digits", .steps = 1000, .resume = true, .ctx = &d)) ...
 *
 * Files: every file of the run's folder is written under a temporary name, synced and renamed. A save is complete once state.safetensors is
 * renamed: it holds the weights of all registries, the optimisers' moments, the step, the task's place in its data, the best value and
 * patience. model.safetensors follows it, then checkpoints/step-00000100.safetensors; best.safetensors has the weights of the best
 * validation. docs/files.md describes them, and each line of metrics.jsonl. After a crash at most the updates since the last save are lost,
 * and the resumed training gives the same bytes as an uninterrupted one.
 *
 * Several processes (weft/dist.h) train together where mpirun started the program several times: next, get and validate are called on each
 * and must give the same there, loss for the process's parts; put, sample and event on rank 0 only. The files have the same bytes as those
 * of one process with the same accumulate and leaves. A program whose .accumulate is 0 or 1 may have a loss that knows of no parts, and is
 * refused. Until wf_fit returns, the processes share the optimisers: wf_optimizer_save and wf_optimizer_step of the program are refused
 * (WF_ERR_STATE), and its wf_grad_norm is that of the gradients here. docs/cluster.md is the guide. */
#ifndef WEFT_FIT_H
#define WEFT_FIT_H

#include <weft/optim.h>
#include <weft/registry.h>

WF_BEGIN_DECLS

enum wf_event_kind {
    WF_EVENT_PREPARE, /* wf_train: progress of tokenizer training and encoding, a few times a second: text, done, total */
    WF_EVENT_DATA,    /* wf_train: text has the numbers of training or validation pairs used and skipped, with the reasons; or, with .from,
                         where the weights come from */
    WF_EVENT_CHANGE,  /* resume: text lists the settings that differ from now on */
    WF_EVENT_START,   /* training begins: parameters, and for a resume the step that it resumes from */
    WF_EVENT_STEP,    /* after each update */
    WF_EVENT_VALID,   /* after a validation */
    WF_EVENT_SAVE,    /* after a save */
    WF_EVENT_WARNING, /* text: a warning, for example a resume on another instruction set; within an update too, where another process is
                         waited for longer than wf_dist_watch says (weft/dist.h) */
    WF_EVENT_END,     /* training is complete, stopped early or was cancelled: text says which */
    WF_EVENT_SAMPLE,  /* after a validation, where the task has samples: text is one. wf_train: of a language model, the beginning of the
                         validation text continued by the model */
    WF_EVENT_PROGRESS /* during long work: text is "validating" or "saving", once as it begins, with done and total 0; wf_train: again
                         after each batch of a validation, with the share that is done, and with "translating the validation text" */
};

/* --- what is called when --------------------------------------------------------------------------------------------
 *
 * The functions of the task and of the options, by one thread, in this order; those that are NULL are left out:
 *
 *   at first         get (a resume); put and WF_EVENT_CHANGE (a resume that changes settings, which are saved at once); WF_EVENT_START; a
 *                    validation that was due when the run ended and was not done
 *   each update      cancelled
 *                    next(step), once
 *                    each turn: loss(part 0), loss(part 1), ..., a backward after each; then for each optimiser of the turn, in the order
 *                    of .optimizer: rate(optimizer, step), once, and its step (rule.check, and rule.step for each block)
 *                    WF_EVENT_STEP, whose .step counts this update
 *   a validation     after its update: validate, once; WF_EVENT_VALID; sample, once; WF_EVENT_SAMPLE. If metric[best] is not finite,
 *                    validate once more, with wf_tape_check_finite, for the message of the error that ends the training
 *   a save           after its update and validation: put, once; WF_EVENT_SAVE. At the last update it is the one below
 *   at the end       put, unless this step's state is saved; WF_EVENT_SAVE; WF_EVENT_END. After Ctrl-C and at a limit of time too
 *
 * `step` of next, loss and rate is the number of updates done before: 0, 1, ..., with no gap, also over a resume. So rate is called for
 * each optimiser in each update, after the losses and the clipping of its turn; what it returns, or else the schedule, is optimizer->lr of
 * the step that follows. It is not called where a loss or a gradient norm is not finite. An update that is dropped (cancelled, limit of
 * time) is asked for again by the resume, from next on. `cancelled` is called before each op of a loss, a backward or a validation too, but
 * no more in an update once an optimiser has stepped. Hyperparameters (optimizer->adam, the ctx of a rule) may be changed by next and rate.
 *
 * Several processes: on each, next, loss for its parts, rate, the steps, validate and cancelled; with .values_by_ops, cancelled for the
 * next update comes before the WF_EVENT_STEP of this one. */

/* --- the task ------------------------------------------------------------------------------------------------------ */

enum { WF_FIT_TURNS = 8, WF_FIT_REPORTS = 8, WF_FIT_METRICS = 16, WF_FIT_OPTIMIZERS = 16, WF_FIT_REGISTRIES = 16 }; /* at most */

/* A part of an update whose loss is wanted. */
struct wf_fit_part {
    wf_tape *tape;       /* reset, WF_TRAIN */
    int64_t step;        /* updates done before this one: 0, 1, 2, ... */
    int turn;            /* 0, but for a task with several turns */
    int64_t part, parts; /* part 0 .. parts-1 of the batch; parts is .accumulate of the options, or more on several processes */
    double weight;       /* of the whole batch, as `next` gave it: what the loss of each part is divided by */
    /* May be set by `loss`: scalars that it has divided by the weight, as the loss, so that the parts' add up. */
    wf_tensor *shown;                  /* what is logged as the loss instead of what is minimised: without label smoothing, penalties */
    wf_tensor *report[WF_FIT_REPORTS]; /* other numbers of the update, in the order of the task's `reports` */
};
/* A number that a validation measures. */
struct wf_metric {
    const char *name; /* "loss", "accuracy" */
    bool higher;      /* a higher value is better */
    const char *tag;  /* its name in metrics.jsonl and TensorBoard, 1 to 95 bytes of UTF-8, no other number's; NULL: NAME/valid */
};
typedef struct wf_fit_state wf_fit_state;

/* The task of a training. All functions get .ctx of the options. A callback that fails returns a status with a message in *error; of a pass
 * that failed, return wf_tape_status(tape, error). Zero is the default of each member. */
struct wf_task {
    size_t abi;       /* WF_TASK_ABI */
    const char *name; /* of the training; the state keeps it, and a resume compares it */
    const char *unit; /* what a batch's weight counts, in the plural: "tokens", "images"; NULL: "rows" */
    /* Several turns within an update, each with its losses and its optimisers, one after the other, as a GAN has: the names of the turns
     * end with NULL. NULL: one turn. An update whose second turn has begun is finished before a cancellation counts. */
    const char *const *turns;
    const char *const *reports; /* names of the numbers in wf_fit_part.report, ends with NULL; logged as NAME/train */
    /* The metrics of `validate`. metric[best] decides what is best, what patience counts, and when best.safetensors is written. */
    const struct wf_metric *metric;
    int metrics, best;

    /* Chooses the batch of update `step` (0, 1, ...) and says its weight: what the parts' losses are divided by, such as its rows or its
     * predicted tokens; finite, not negative, and known before any forward. It may compute on another tape (WF_INFER), with the
     * weights as they are then; but see .values_by_ops. A batch that is a function of `step`, such as that of wf_epochs_batch
     * (weft/epochs.h), needs no more for a resume; else see `put`. Not called again for an update that is repeated. */
    wf_status (*next)(void *ctx, int64_t step, double *weight, wf_error *error);
    /* The forward of one part of that batch -> the loss [], divided by part->weight, so that the parts' losses add up to the batch's:
     * wf_cross_entropy(..., .normalizer = part->weight). NULL: an empty part; not all of a batch that has a weight. May be called again for
     * a part, and gives the same then.
     *
     * wf_fit has reset the tape with the seed and the step, so that dropout is the same after a resume. Each part draws other masks; with
     * wf_tape_first_row(part->tape, ROW), the number of the part's first row in the batch, parts have the masks of the whole batch. */
    wf_tensor *(*loss)(void *ctx, struct wf_fit_part *part);
    /* Fills value[metrics], which are NaN before; one that stays NaN was not measured now, which metric[best] must be. Resets the tape as
     * it needs (WF_INFER). NULL: no validation. */
    wf_status (*validate)(void *ctx, wf_tape *tape, double *value, wf_error *error);
    /* A text that the model makes now, for people to look at; it stays valid until the next call. The same weights should give the same.
     * NULL: none. */
    wf_status (*sample)(void *ctx, wf_tape *tape, const char **text, wf_error *error);
    /* The place in the data, for tasks whose batches depend on more than the step: put saves, and get restores, what next(step) needs to
     * give the batch of that update; `step` is the number of updates done. If next(step) has been called already, its update was dropped:
     * save the place from before that call. Both NULL: nothing. */
    void (*put)(void *ctx, int64_t step, wf_fit_state *state);
    wf_status (*get)(void *ctx, int64_t step, const wf_fit_state *state, wf_error *error);
};
#define WF_TASK_ABI sizeof(struct wf_task)

/* For put and get. Names are the task's own. An array is read when the state is written, shortly after put; get copies `count` elements as
 * wf_safetensors_read does. A missing name is WF_ERR_FORMAT. */
WF_API void wf_fit_put_int(wf_fit_state *state, const char *name, int64_t value);
WF_API void wf_fit_put_array(wf_fit_state *state, const char *name, const wf_array *array);
WF_API wf_status wf_fit_get_int(const wf_fit_state *state, const char *name, int64_t *value, wf_error *error) WF_CHECKED;
WF_API wf_status wf_fit_get_array(const wf_fit_state *state, const char *name, wf_dtype dtype, void *out, int64_t count,
                                  wf_error *error) WF_CHECKED;

/* --- the training -------------------------------------------------------------------------------------------------- */

/* A registry, built or loaded, whose weights are saved. Its parameters are called NAME.PARAMETER in the run's files. */
struct wf_fit_registry {
    const char *name; /* NULL: parameters have their own names; for a single registry */
    wf_registry *registry;
};
/* An optimiser of registries that are listed, initialised with wf_adamw_init or the like. Several may share a turn,
 * where no two of them update the same parameter: see wf_optimizer_only. */
struct wf_fit_optimizer {
    const char *name; /* its moments are NAME.* in the state; NULL: "optimizer", for a single one. Not "model", not "task" */
    struct wf_optimizer *optimizer;
    int turn;                    /* the turn after whose losses it steps */
    struct wf_schedule schedule; /* its learning rate; .steps 0: those of the training. .peak 0: there is none, and optimizer->lr
                                   stays as the program sets it, whatever .kind says */
};

/* A number of a line of metrics.jsonl. */
struct wf_fit_number {
    const char *tag;
    double value;
};
struct wf_fit_event {
    enum wf_event_kind kind;
    int64_t step, steps; /* updates done, and in total */
    double loss;         /* of the last update, as logged: of turn 0; NaN before the first. losses: of each turn */
    const double *losses;
    const double *value; /* [metrics] of the last validation; NaN: none */
    double best;         /* the best value so far of the metric that decides; NaN before the first */
    bool improved;       /* WF_EVENT_VALID: this validation's is the best */
    double lr;           /* of the first optimiser, in the last update */
    double grad_norm;    /* of turn 0, before clipping */
    double per_second;   /* WF_EVENT_STEP: weight per second; else 0 */
    int64_t parameters;  /* of all registries */
    double seconds;      /* since wf_fit was called */
    double left;         /* estimated seconds until the end, with the validations and saves to come; NaN before an update */
    int64_t done, total; /* WF_EVENT_PROGRESS; total 0: not known */
    double expected;     /* WF_EVENT_PROGRESS: seconds that the validation or the save takes, by earlier ones or a guess */
    const char *text;    /* UTF-8: other bytes, as a path may have, are \xNN in it; may be NULL */
    /* The numbers of this event in metrics.jsonl, by their names there: WF_EVENT_STEP, WF_EVENT_VALID. */
    const struct wf_fit_number *number;
    int numbers;
};

struct wf_fit_options {
    /* The run's folder; created if it does not exist. NULL: nothing is written, the weights are in the registries, and the best ones are
     * not kept; then what is about saves (resume, save_every, keep, keep_every) is WF_ERR_ARGUMENT. */
    const char *out;
    const struct wf_fit_registry *registry;
    int registries;
    const struct wf_fit_optimizer *optimizer;
    int optimizers;
    int64_t steps;      /* updates in total, also of a resumed run */
    int64_t accumulate; /* parts of a batch; 0: 1. At least 2 for several processes, of which more than this raise it */
    /* The number of partial sums of gradients, each of accumulate / leaves parts in order, which are added as a binary tree: a power of two
     * that divides `accumulate`. The bits of a training depend on it, and on nothing else of how the work is shared; the state keeps it. 0:
     * that of the state; otherwise the largest up to 8, or up to the number of processes. */
    int64_t leaves;
    double clip; /* maximum norm of a turn's gradients, over all registries of its optimisers; 0 disables clipping */
    /* The learning rate of update `step` (0, 1, ...) for options.optimizer[optimizer], instead of its schedule: called once for each
     * optimiser in each update, right before its step. The same arguments must give the same on all processes and after a resume. NULL: the
     * schedules. */
    double (*rate)(void *ctx, int optimizer, int64_t step);
    int64_t save_every, valid_every; /* updates; 0: only at the end */
    int64_t log_every;               /* updates between two lines of metrics.jsonl; 0: 10. The first and the last have one always */
    int64_t keep;                    /* number of latest checkpoints kept; 0: none */
    int64_t keep_every;              /* checkpoints at multiples of this step are never deleted; 0: none */
    int64_t patience;                /* stops after this many validations without improvement; 0: never */
    uint64_t seed;                   /* of dropout; a resume must have the same */
    bool resume;                     /* resumes the run in `out`; without a run there, starts a new one with a warning */
    /* Settings of the program, NAME=VALUE as "width=64 data=digits.bin", separated by blanks, in UTF-8, which the state keeps. On a resume
     * a difference in `settings` is reported with WF_EVENT_CHANGE; one in `fixed`, for what the weights and the data depend on, is refused
     * by name. */
    const char *settings, *fixed;
    void (*event)(void *ctx, const struct wf_fit_event *event); /* may be NULL */
    /* Called before each op of an update or a validation; on several processes between updates. If it returns true, the unfinished update
     * is dropped, the state after the last finished one is saved, and wf_fit returns WF_ERR_CANCELLED. Must be cheap: it may read a flag
     * that a signal handler sets. May be NULL. */
    bool (*cancelled)(void *ctx);
    void *ctx; /* for all functions of the options and the task */
    /* Seconds from the call of wf_fit on, before which the training saves and ends with WF_ERR_TIME; 0: no limit. No update begins unless
     * 0.5 s and 1.25 times the longest one so far fit, together with the validation and the save that are due after it and the save at the
     * end, by the longest of each in this call. A validation, or on one process an update, that takes longer than any before it is
     * dropped once there is time only for the last save. The first update is followed by a save, so that its time is known. On several
     * processes rank 0's clock decides between updates; all must have the same limit. */
    double max_time;
    /* Several processes. no_overlap: messages go when nothing is computed; for comparison. Otherwise gradients go while the backward runs,
     * and with values_by_ops new weights come while the next loss is computed, where an op waits for those that it reads: then next, rate,
     * loss, cancelled, and event after an update must not read or write weights through pointers, only by ops, wf_view, wf_read and
     * wf_parameter_set. */
    bool no_overlap, values_by_ops;
};
struct wf_fit_result {
    int64_t step;      /* updates done */
    double loss, best; /* as in wf_fit_event; NaN if there is none */
    double value[WF_FIT_METRICS];
};
/* Trains until `steps` updates are done. *result (may be NULL) is also set after an error. Nothing of the caller's is freed; the registries
 * and the optimisers have the state of the last update.
 *
 * WF_ERR_ARGUMENT: a member of the task or the options that is missing or out of its range, by name; on a resume another task, seed,
 * `fixed`, or fewer steps than are done. WF_ERR_STATE: a registry that is not built. WF_ERR_EXISTS: `out` holds a run's state and .resume
 * is not set. WF_ERR_BUSY: another process trains in the folder. WF_ERR_FORMAT: the state is damaged, or of other parameters.
 * WF_ERR_NUMERIC: a loss, gradient or weight that is not finite: the message names the step and the first tensor that is not finite (found
 * by repeating the update with checks), and nothing of that update is saved. WF_ERR_CANCELLED: see .cancelled. WF_ERR_TIME: see .max_time;
 * a resume gives the same bytes as an uninterrupted run. A limit that passes before anything is done, so that the same one would never lead
 * on, is WF_ERR_ARGUMENT. */
WF_API wf_status wf_fit(const struct wf_task *task, const struct wf_fit_options *options, struct wf_fit_result *result,
                        wf_error *error) WF_CHECKED;
/* wf_fit of one registry that one optimiser updates: registry, registries, optimizer and optimizers of the options stay empty. schedule: of
 * the learning rate; NULL, or .peak 0: optimizer->lr stays as it is. The run's files are those that wf_fit writes for a list of one. */
WF_API wf_status wf_fit_one_with(const struct wf_task *task, wf_registry *registry, struct wf_optimizer *optimizer,
                                 const struct wf_schedule *schedule, const struct wf_fit_options *options, struct wf_fit_result *result,
                                 wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_fit_one(task, registry, optimizer, schedule, result, error, ...)                                                                \
    wf_fit_one_with(task, registry, optimizer, schedule, &(struct wf_fit_options){__VA_ARGS__}, result, error)
#endif

WF_END_DECLS

#endif
