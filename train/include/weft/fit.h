/* SPDX-License-Identifier: MIT */
/* Any training: the program brings batches and a loss, wf_fit brings the loop. It accumulates gradients, clips, sets learning rates,
 * validates, keeps the best weights, stops early, writes checkpoints and metrics, ends cleanly at Ctrl-C, and resumes to the same bytes.
 *
 *   static wf_tensor *loss(void *ctx, struct wf_micro_batch *b)
 *   {
 *       struct digits *d = ctx;
 *       wf_tensor *logits = digits_forward(d, b->tape, b->step, b->index);
 *       return wf_cross_entropy(logits, digits_labels(d, b->tape), .normalizer = b->weight);
 *   }
 *   ...
 *   const struct wf_task task = {WF_TASK_ABI, .name = "digits", .next = next, .loss = loss};
 *   const struct wf_schedule schedule = {WF_SCHEDULE_COSINE, .peak = 1e-3, .warmup = 50};
 *   if (wf_fit_one(&task, registry, &adam, &schedule, NULL, &error, .out = "runs/digits", .steps = 1000, .resume = true, .ctx = &d)) ...
 *
 * This header, from the simple to the rare: the task, events, options, wf_fit_one; wf_fit for several registries, optimisers and phases; a
 * place in the data; the order of the calls; several processes. docs/training.md is the guide.
 *
 * Files: every file of the run's folder is written under a temporary name, synced and renamed. A save is complete once state.safetensors is
 * renamed: it holds the weights of all registries, the optimisers' moments, the step, the task's place in its data, the best value and
 * patience. model.safetensors follows it, then checkpoints/step-00000100.safetensors; best.safetensors has the weights of the best
 * validation. docs/files.md describes them, and each line of metrics.jsonl. A crash loses at most the updates since the last save, and the
 * resumed training gives the same bytes as an uninterrupted one. */
#ifndef WEFT_FIT_H
#define WEFT_FIT_H

#include <weft/optim.h>
#include <weft/registry.h>

WF_BEGIN_DECLS

/* --- the task ------------------------------------------------------------------------------------------------------ */

enum { WF_FIT_PHASES = 8, WF_FIT_REPORTS = 8, WF_FIT_METRICS = 16, WF_FIT_OPTIMIZERS = 16, WF_FIT_REGISTRIES = 16 }; /* at most */

/* A micro-batch, whose loss is wanted. */
struct wf_micro_batch {
    wf_tape *tape;        /* reset, WF_TRAIN */
    int64_t step;         /* updates done before this one: 0, 1, 2, ... */
    int phase;            /* the phase; 0 if the task has one */
    int64_t index, count; /* micro-batch 0 .. count-1 of the batch; count: .accumulate of the options, or more on several processes */
    double weight;        /* of the whole batch, as `next` gave it; the loss of each micro-batch is divided by it */
    /* May be set by `loss`: scalars that it has divided by the weight, so that those of all micro-batches add up. */
    wf_tensor *shown;                  /* logged instead of the loss: say, without label smoothing and penalties */
    wf_tensor *report[WF_FIT_REPORTS]; /* other numbers of the update, in the order of the task's `reports` */
};
/* A number that a validation measures. */
struct wf_metric {
    const char *name; /* "loss", "accuracy" */
    bool higher;      /* a higher value is better */
    const char *tag;  /* its name in metrics.jsonl and TensorBoard, 1 to 95 bytes of UTF-8, no other number's; NULL: NAME/valid */
};
typedef struct wf_fit_state wf_fit_state;

/* A training. All functions get .ctx of the options. A function that fails returns a status with a message in *error; if a pass on the tape
 * failed, wf_tape_status(tape, error). Zero is the default of each member. */
struct wf_task {
    size_t abi;       /* WF_TASK_ABI */
    const char *name; /* of the training; the state keeps it, and a resume compares it */
    const char *unit; /* of a batch's weight, in the plural: "tokens", "images"; NULL: "rows" */
    /* Names of the phases of an update, ending with NULL; NULL: one phase. Each phase has its losses and optimisers, one after the other,
     * as a GAN's discriminator and generator. Once the second phase has begun, a cancellation waits for the end of the update. */
    const char *const *phases;
    const char *const *reports; /* names of the numbers in wf_micro_batch.report, ends with NULL; logged as NAME/train */
    /* The numbers that `validate` measures. metric[best] decides about best.safetensors and patience. */
    const struct wf_metric *metric;
    int metrics, best;

    /* Chooses the batch of update `step` (0, 1, ...) and sets its weight, such as its rows or its predicted tokens: finite, not negative,
     * and known before any forward. It may compute on another tape (WF_INFER) with the present weights, but see .values_by_ops. If the
     * batch is a function of `step`, such as that of wf_epochs_batch (weft/epochs.h), a resume needs no more; else see `put`. Not called
     * again for an update that is repeated. */
    wf_status (*next)(void *ctx, int64_t step, double *weight, wf_error *error);
    /* The forward of one micro-batch -> the loss [], divided by b->weight, so that the losses of all add up to the batch's:
     * wf_cross_entropy(..., .normalizer = b->weight). NULL: an empty micro-batch; a batch with a weight has one that is not. May be
     * called again for a micro-batch, and must then give the same.
     *
     * wf_fit has reset the tape with the seed and the step, so that dropout is the same after a resume. Each micro-batch draws other masks.
     * To draw those of the whole batch, call wf_tape_first_row(b->tape, ROW) with the number of its first row in the batch. */
    wf_tensor *(*loss)(void *ctx, struct wf_micro_batch *b);
    /* Fills value[metrics], which are NaN before. A value that stays NaN was not measured; metric[best] must be. Resets the tape as it
     * needs (WF_INFER). NULL: no validation. */
    wf_status (*validate)(void *ctx, wf_tape *tape, double *value, wf_error *error);
    /* A text that the model makes now, for people to look at; it stays valid until the next call. The same weights should give the same.
     * NULL: none. */
    wf_status (*sample)(void *ctx, wf_tape *tape, const char **text, wf_error *error);
    /* The place in the data, for tasks whose batches depend on more than the step. put saves and get restores everything that next(step)
     * needs for its batch; `step` is the number of updates done. If next(step) has been called already, its update was dropped: save the
     * place from before that call. Both NULL: nothing. */
    void (*put)(void *ctx, int64_t step, wf_fit_state *state);
    wf_status (*get)(void *ctx, int64_t step, const wf_fit_state *state, wf_error *error);
};
#define WF_TASK_ABI sizeof(struct wf_task)

/* --- events --------------------------------------------------------------------------------------------------------- */

enum wf_event_kind {
    WF_EVENT_PREPARE, /* wf_train: progress of tokenizer training and encoding, a few times a second: text, done, total */
    WF_EVENT_DATA,    /* wf_train: text has the numbers of training or validation pairs used and skipped, with the reasons; or, with .from,
                         where the weights come from */
    WF_EVENT_CHANGE,  /* resume: text lists the settings that differ from now on */
    WF_EVENT_START,   /* training begins: parameters, and for a resume the step that it resumes from */
    WF_EVENT_STEP,    /* after each update */
    WF_EVENT_VALID,   /* after a validation */
    WF_EVENT_SAVE,    /* after a save */
    WF_EVENT_WARNING, /* text: a warning, for example of a resume on another instruction set; also within an update, of a long wait for
                         another rank (wf_dist_watch) */
    WF_EVENT_END,     /* training is complete, stopped early or was cancelled: text says which */
    WF_EVENT_SAMPLE, /* after a validation, if the task has samples: text is one. wf_train: the model's continuation of the beginning of the
                        validation text */
    WF_EVENT_PROGRESS /* text is "validating" or "saving", once at its beginning, with done and total 0; wf_train: again after each batch of
                         a validation, with done and total, and with "translating the validation text" */
};

/* A number of a line of metrics.jsonl. */
struct wf_fit_number {
    const char *tag;
    double value;
};
struct wf_fit_event {
    enum wf_event_kind kind;
    int64_t step, steps; /* updates done, and in total */
    double loss;         /* of the last update, as logged, of phase 0; NaN before the first. losses: of each phase */
    const double *losses;
    const double *value; /* [metrics] of the last validation; NaN: none */
    double best;         /* the best value so far of the metric that decides; NaN before the first */
    bool improved;       /* WF_EVENT_VALID: this validation is the best so far */
    double lr;           /* of the first optimiser, in the last update */
    double grad_norm;    /* of phase 0, before clipping */
    double per_second;   /* WF_EVENT_STEP: weight per second; else 0 */
    int64_t parameters;  /* of all registries */
    double seconds;      /* since wf_fit was called */
    double left;         /* estimate of the seconds until the end, with validations and saves; NaN before the first update */
    int64_t done, total; /* WF_EVENT_PROGRESS; total 0: not known */
    double expected;     /* WF_EVENT_PROGRESS: estimate of the seconds of the validation or save */
    const char *text;    /* UTF-8, in which other bytes (of a path) are written \xNN; may be NULL */
    /* WF_EVENT_STEP, WF_EVENT_VALID: the numbers of its line in metrics.jsonl, with their names there. */
    const struct wf_fit_number *number;
    int numbers;
};

/* --- options, and a training with one optimiser --------------------------------------------------------------------- */

struct wf_fit_options {
    /* The run's folder; created if it does not exist. NULL: nothing is written, the weights are in the registries, and the best ones are
     * not kept; resume, save_every, keep and keep_every are WF_ERR_ARGUMENT then. */
    const char *out;
    /* For wf_fit; empty for wf_fit_one. */
    const struct wf_fit_registry *registry;
    int registries;
    const struct wf_fit_optimizer *optimizer;
    int optimizers;
    int64_t steps;      /* updates in total, also of a resumed run */
    int64_t accumulate; /* micro-batches of a batch; 0: 1 */
    /* Leaves of the reduction tree of gradients, each the sum of accumulate / leaves micro-batches in order: a power of two that divides
     * `accumulate`. The bits of a training depend on it, but not on the number of processes; the state keeps it. 0: that of the state;
     * otherwise the largest up to 8, or the world size if that is larger. */
    int64_t leaves;
    double clip; /* maximum norm of the gradients of a phase, over all registries of its optimisers; 0: no clipping */
    /* The learning rate of update `step` (0, 1, ...) for options.optimizer[optimizer], instead of its schedule: called once for each
     * optimiser in each update, right before its step. The same arguments must give the same on all ranks and after a resume. NULL: the
     * schedules. */
    double (*rate)(void *ctx, int optimizer, int64_t step);
    int64_t save_every, valid_every; /* updates; 0: only at the end */
    int64_t log_every;               /* updates between two lines of metrics.jsonl; 0: 10. The first and the last have one always */
    int64_t keep;                    /* number of latest checkpoints kept; 0: none */
    int64_t keep_every;              /* checkpoints at multiples of this step are never deleted; 0: none */
    int64_t patience;                /* stops after this many validations without improvement; 0: never */
    uint64_t seed;                   /* of dropout; a resume must have the same */
    bool resume;                     /* resumes the run in `out`; without a run there, starts a new one with a warning */
    /* Settings of the program, which the state keeps: NAME=VALUE, separated by blanks, in UTF-8, such as "width=64 data=digits.bin". A
     * resume reports a difference in `settings` with WF_EVENT_CHANGE, and refuses one in `fixed`: settings on which weights and data
     * depend. */
    const char *settings, *fixed;
    void (*event)(void *ctx, const struct wf_fit_event *event); /* may be NULL */
    /* Called before each op of an update or a validation; on several processes between updates. True: the unfinished update is dropped, the
     * state after the last finished one is saved, and wf_fit returns WF_ERR_CANCELLED. Must be cheap, such as reading a flag that a signal
     * handler sets. May be NULL. */
    bool (*cancelled)(void *ctx);
    void *ctx; /* for all functions of the options and the task */
    /* Limit of time: seconds from the call of wf_fit on, before which the training saves and ends with WF_ERR_TIME; 0: none. An update
     * begins only if there is time for 0.5 s and 1.25 times the longest update so far, the validation and the save that are due after it,
     * and the save at the end; each counts as the longest of its kind in this call. An update or validation that takes too long is dropped
     * when only the time for the last save is left (on several processes a validation only). A save follows the first update, so that its
     * time is known. On several processes rank 0's clock decides, between updates; all ranks must have the same limit. */
    double max_time;
    /* For several processes. Gradients are sent while the backward runs. no_overlap, for comparison: only when nothing is computed.
     * values_by_ops: new weights arrive while the next loss is computed, and each op waits for those that it reads. Then next, rate, loss,
     * cancelled, and event after an update must not read or write weights through pointers, only by ops, wf_view, wf_read and
     * wf_parameter_set. */
    bool no_overlap, values_by_ops;
};
struct wf_fit_result {
    int64_t step;      /* updates done */
    double loss, best; /* as in wf_fit_event; NaN if there is none */
    double value[WF_FIT_METRICS];
};

/* Trains a registry with one optimiser until `steps` updates are done. schedule: of the learning rate; NULL, or .peak 0: optimizer->lr
 * stays as it is. *result (may be NULL) is also set after an error. Registry and optimiser remain the caller's, in the state of the last
 * update.
 *
 * WF_ERR_ARGUMENT: a member of the task or the options is missing or out of its range; a resume with another task, seed or `fixed`, or with
 * fewer steps than are done. WF_ERR_STATE: a registry that is not built. WF_ERR_EXISTS: `out` holds a run's state and .resume
 * is not set. WF_ERR_BUSY: another process trains in the folder. WF_ERR_FORMAT: the state is damaged, or of other parameters.
 * WF_ERR_NUMERIC: a loss, gradient or weight is not finite. The message names the step and the first such tensor (the update is repeated
 * with checks), and nothing of that update is saved. WF_ERR_CANCELLED: see .cancelled. WF_ERR_TIME: see .max_time; a resume gives the same
 * bytes as an uninterrupted run. A limit that passes before anything is done is WF_ERR_ARGUMENT, since the same limit would never lead on.
 */
WF_API wf_status wf_fit_one_with(const struct wf_task *task, wf_registry *registry, struct wf_optimizer *optimizer,
                                 const struct wf_schedule *schedule, const struct wf_fit_options *options, struct wf_fit_result *result,
                                 wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_fit_one(task, registry, optimizer, schedule, result, error, ...)                                                                \
    wf_fit_one_with(task, registry, optimizer, schedule, &(struct wf_fit_options){__VA_ARGS__}, result, error)
#endif

/* --- several registries, optimisers and phases ---------------------------------------------------------------------- */

/* A registry, built or loaded, whose weights are saved. Its parameters are called NAME.PARAMETER in the run's files. */
struct wf_fit_registry {
    const char *name; /* NULL: parameters have their own names; for a single registry */
    wf_registry *registry;
};
/* An initialised optimiser of the listed registries. Several may share a phase if no two of them update the same parameter: see
 * wf_optimizer_only. */
struct wf_fit_optimizer {
    const char *name; /* its moments are NAME.* in the state; NULL: "optimizer", for a single one. Not "model", not "task" */
    struct wf_optimizer *optimizer;
    int phase;                   /* the phase after whose losses it steps */
    struct wf_schedule schedule; /* its learning rate; .steps 0: those of the training. .peak 0: there is none, and optimizer->lr
                                   stays as the program sets it, whatever .kind says */
};

/* wf_fit_one for the registries and optimisers that the options list. A list of one gives the files of wf_fit_one. */
WF_API wf_status wf_fit(const struct wf_task *task, const struct wf_fit_options *options, struct wf_fit_result *result,
                        wf_error *error) WF_CHECKED;

/* --- the place in the data ------------------------------------------------------------------------------------------ */

/* For put and get. Names are the task's own. An array is read when the state is written, shortly after put; get copies `count` elements as
 * wf_safetensors_read does. A missing name is WF_ERR_FORMAT. */
WF_API void wf_fit_put_int(wf_fit_state *state, const char *name, int64_t value);
WF_API void wf_fit_put_array(wf_fit_state *state, const char *name, const wf_array *array);
WF_API wf_status wf_fit_get_int(const wf_fit_state *state, const char *name, int64_t *value, wf_error *error) WF_CHECKED;
WF_API wf_status wf_fit_get_array(const wf_fit_state *state, const char *name, wf_dtype dtype, void *out, int64_t count,
                                  wf_error *error) WF_CHECKED;

/* --- what is called when --------------------------------------------------------------------------------------------
 *
 * wf_fit calls the functions of the task and of the options from one thread, in this order, and leaves out those that are NULL:
 *
 *   at first         get (a resume); put and WF_EVENT_CHANGE (a resume that changes settings, which are saved at once); WF_EVENT_START; a
 *                    validation that was due when the run ended and was not done
 *   each update      cancelled
 *                    next(step), once
 *                    each phase: loss(micro-batch 0), loss(micro-batch 1), ..., a backward after each; then for each optimiser of the
 * phase, in the order of .optimizer: rate(optimizer, step), once, and its step (rule.check, and rule.step for each block) WF_EVENT_STEP,
 * whose .step counts this update a validation     after its update: validate, once; WF_EVENT_VALID; sample, once; WF_EVENT_SAMPLE. If
 * metric[best] is not finite, validate once more, with wf_tape_check_finite, for the message of the error that ends the training a save
 * after its update and validation: put, once; WF_EVENT_SAVE. At the last update it is the one below at the end       put, unless this
 * step's state is saved; WF_EVENT_SAVE; WF_EVENT_END. After Ctrl-C and at a limit of time too
 *
 * `step` of next, loss and rate is the number of updates done before: 0, 1, ..., with no gap, also over a resume. rate comes after the
 * losses and the clipping of its phase; optimizer->lr of the step that follows is its result, or else that of the schedule. It is not
 * called if a loss or a gradient norm is not finite. The resume repeats an update that was dropped (cancelled, limit of time), from next
 * on. `cancelled` is also called before each op of a loss, a backward or a validation, until an optimiser has stepped in the update. next
 * and rate may change hyperparameters (optimizer->adam, the ctx of a rule). */

/* --- several processes -----------------------------------------------------------------------------------------------
 *
 * If mpirun started the program several times, the processes train together (weft/dist.h; docs/cluster.md is the guide). Every rank calls
 * next, get, rate, the optimisers' steps, validate and cancelled, which must give the same on each, and loss for its own micro-batches.
 * Rank 0 alone calls put, sample and event. With .values_by_ops, cancelled for the next update comes before the WF_EVENT_STEP of this one.
 *
 * The files have the same bytes as those of one process with the same accumulate and leaves. .accumulate must be 2 or more: a loss that was
 * written for 1 may ignore micro-batches. A larger world size raises it. Until wf_fit returns the ranks share the optimisers:
 * wf_optimizer_save and wf_optimizer_step by the program are WF_ERR_STATE, and wf_grad_norm is that of this rank's gradients. */

WF_END_DECLS

#endif
