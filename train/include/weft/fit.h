/* SPDX-License-Identifier: MIT */
/* A training loop for any model: the program gives batches and a loss, and wf_fit does the rest. wf_fit accumulates gradients, clips them,
 * sets learning rates, validates, keeps the best weights, stops early, writes checkpoints and metrics, ends cleanly when it is cancelled
 * (for example by Ctrl-C), and resumes an interrupted training.
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
 * Sections, the simple ones first: the task; events; options and wf_fit_one; wf_fit for several registries, optimisers and phases; the
 * place in the data; the order of the calls; several processes. docs/training.md is the guide.
 *
 * Files: wf_fit writes each file of the run's folder under a temporary name, syncs it and renames it. A save is complete once
 * state.safetensors is renamed. This file holds the weights of all registries, the optimisers' moments, the step, the task's place in its
 * data, the best value of metric[best], and the number of validations since the best one. model.safetensors is written next, then, if .keep
 * or .keep_every is set, a checkpoint such as checkpoints/step-00000100.safetensors. best.safetensors has the weights of the best
 * validation. docs/files.md describes all files and each line of metrics.jsonl. A crash loses at most the updates since the last save. The
 * resumed training gives the same bytes as an uninterrupted one. */
#ifndef WEFT_FIT_H
#define WEFT_FIT_H

#include <weft/optim.h>
#include <weft/registry.h>

WF_BEGIN_DECLS

/* --- the task ------------------------------------------------------------------------------------------------------ */

/* The greatest number of phases, reports and metrics that a task may have, and of optimisers and registries that wf_fit takes. */
enum { WF_FIT_PHASES = 8, WF_FIT_REPORTS = 8, WF_FIT_METRICS = 16, WF_FIT_OPTIMIZERS = 16, WF_FIT_REGISTRIES = 16 };

/* The micro-batch for which wf_task.loss computes the loss. */
struct wf_micro_batch {
    wf_tape *tape; /* the tape to compute on; wf_fit has reset it with WF_TRAIN */
    int64_t step;  /* updates done before this one: 0, 1, 2, ... */
    int phase;     /* index of the phase; 0 if the task has one phase */
    int64_t index; /* number of this micro-batch in the batch, 0 .. count - 1 */
    int64_t count; /* number of micro-batches of the batch: .accumulate of the options, or more on several processes */
    double weight; /* weight of the whole batch, from `next`; `loss` divides by it */
    /* `loss` may set these to scalars that are divided by `weight`, as the loss is. wf_fit adds up the scalars of all micro-batches. */
    wf_tensor *shown;                  /* logged instead of the loss, for example the loss without label smoothing and penalties */
    wf_tensor *report[WF_FIT_REPORTS]; /* other numbers to log, in the order of the task's `reports` */
};
/* A number that a validation measures. */
struct wf_metric {
    const char *name; /* for example "loss" or "accuracy" */
    bool higher;      /* a higher value is better */
    /* Its name in metrics.jsonl and TensorBoard: 1 to 95 bytes of UTF-8, which no other number there may have. NULL: `name` followed by
     * /valid. */
    const char *tag;
};
/* Handle with which a task saves and restores its place in the data. */
typedef struct wf_fit_state wf_fit_state;

/* Describes a training. The members `abi`, `name`, `next` and `loss` are required; the others may be zero. The first argument of all
 * functions is `ctx` of the options. A function that fails returns a status and sets a message in *error. If it fails because of an op on
 * the tape, it returns wf_tape_status(tape, error). */
struct wf_task {
    size_t abi;       /* WF_TASK_ABI */
    const char *name; /* name of the training; the state stores it, and a resume must give the same name */
    const char *unit; /* unit of a batch's weight, in the plural, such as "tokens" or "images"; NULL: "rows" */
    /* Names of the phases of an update, ending with NULL; NULL: there is one phase. The phases run one after the other, and each has its
     * own losses and optimisers, as the discriminator and the generator of a GAN have. Once an optimiser has stepped, a cancellation waits
     * for the end of the update. */
    const char *const *phases;
    const char *const *reports;     /* names of the numbers in wf_micro_batch.report, ending with NULL; logged as NAME/train */
    const struct wf_metric *metric; /* [metrics]: the numbers that `validate` measures */
    int metrics;
    int best; /* metric[best] decides which weights are best, for best.safetensors and patience */

    /* Chooses the batch of update `step` (0, 1, ...) and sets its weight, such as its number of rows or of predicted tokens. The weight is
     * finite and not negative. `next` may compute on another tape (WF_INFER) with the present weights, but see .values_by_ops. If the batch
     * is a function of `step`, as with wf_epochs_batch (weft/epochs.h), a resume needs nothing else; otherwise see `put`. Called once for
     * an update, even if its losses are computed again to find a NaN. */
    wf_status (*next)(void *ctx, int64_t step, double *weight, wf_error *error);
    /* The forward of one micro-batch. Returns the loss, a scalar that is divided by b->weight: wf_cross_entropy, for example, divides by
     * its .normalizer. With this divisor the losses of all micro-batches add up to the loss of the batch. Returns NULL for an empty
     * micro-batch; if the batch's weight is above 0, at least one micro-batch must have a loss. `loss` may be called again for a
     * micro-batch, and must then return the same loss.
     *
     * wf_fit has reset the tape with the seed and the step, so dropout has the same masks after a resume. The masks of each micro-batch are
     * different. To get the masks that the whole batch would have as a single micro-batch, call wf_tape_first_row(b->tape, ROW), where ROW
     * is the index in the batch of the micro-batch's first row. */
    wf_tensor *(*loss)(void *ctx, struct wf_micro_batch *b);
    /* Measures the metrics and sets value[metrics]. wf_fit has set all of them to NaN; a value that stays NaN was not measured, but
     * value[best] must be set. `validate` resets the tape itself (WF_INFER). NULL: there is no validation. */
    wf_status (*validate)(void *ctx, wf_tape *tape, double *value, wf_error *error);
    /* Sets *text to a sample of what the model generates, for people to read. The task owns the text, which must stay valid until the next
     * call. The same weights should give the same text. NULL: there are no samples. */
    wf_status (*sample)(void *ctx, wf_tape *tape, const char **text, wf_error *error);
    /* The place in the data, for tasks whose batches depend on more than the step. `put` saves and `get` restores everything that
     * next(step) needs to choose its batch; `step` is the number of updates done. If next(step) has been called already, its
     * update was dropped, and will be repeated after a resume: `put` then saves the place as it was before that call of `next`. Both NULL:
     * there is nothing to save. */
    void (*put)(void *ctx, int64_t step, wf_fit_state *state);
    wf_status (*get)(void *ctx, int64_t step, const wf_fit_state *state, wf_error *error);
};
#define WF_TASK_ABI sizeof(struct wf_task)

/* --- events --------------------------------------------------------------------------------------------------------- */

enum wf_event_kind {
    WF_EVENT_PREPARE, /* wf_train only, a few times a second: `text`, `done` and `total` say what is prepared, and how far */
    WF_EVENT_DATA,   /* wf_train only: `text` says how many training or validation pairs are used and skipped, with the reasons. If .from is
                        set, `text` also says where the weights come from */
    WF_EVENT_CHANGE, /* in a resume: `text` lists the settings that the resume changes */
    WF_EVENT_START,  /* training begins; `step` is the step from which a resume continues */
    WF_EVENT_STEP,   /* after each update */
    WF_EVENT_VALID,  /* after a validation */
    WF_EVENT_SAVE,   /* after a save */
    WF_EVENT_WARNING, /* `text` is a warning, for example that the run was made on another instruction set. The event may come during an
                         update, if another rank is late (wf_dist_watch) */
    WF_EVENT_END,     /* `text` says why the training ends: it is complete, stopped early or cancelled, or the time limit is near */
    WF_EVENT_SAMPLE,  /* after a validation, if the task gives samples: `text` is the sample. In wf_train the model continues the beginning
                         of the validation text */
    WF_EVENT_PROGRESS /* a validation or save begins: `text` is "validating" or "saving", `done` and `total` are 0. wf_train reports again
                         after each batch of a validation, with `done` and `total`; `text` is then "validating" or "translating the
                         validation text" */
};

/* A number in a line of metrics.jsonl. */
struct wf_fit_number {
    const char *tag; /* name of the number in the line */
    double value;
};
struct wf_fit_event {
    enum wf_event_kind kind;
    int64_t step;         /* updates done */
    int64_t steps;        /* updates in total */
    double loss;          /* the logged loss of phase 0 in the last update; NaN before the first */
    const double *losses; /* [phases]: the logged loss of each phase in the last update */
    const double *value;  /* [metrics]: results of the last validation; NaN: not measured */
    double best;          /* the best value so far of metric[best]; NaN before the first validation */
    bool improved;        /* WF_EVENT_VALID: this validation is the best so far */
    double lr;            /* learning rate of the first optimiser in the last update */
    double grad_norm;     /* gradient norm of phase 0 before clipping */
    double per_second;    /* WF_EVENT_STEP: the batch's weight divided by the seconds of the update; else 0 */
    int64_t parameters;   /* number of elements of all registries' parameters */
    double seconds;       /* seconds since wf_fit was called */
    double left;          /* estimated seconds until the end, including validations and saves; NaN before the first update */
    int64_t done;         /* WF_EVENT_PROGRESS: units of the validation that are done */
    int64_t total;        /* WF_EVENT_PROGRESS: units in total; 0: not known */
    double expected;      /* WF_EVENT_PROGRESS: estimated seconds of the whole validation or save */
    const char *text;     /* UTF-8, with \xNN for each invalid byte of a path; may be NULL */
    /* [numbers]: WF_EVENT_STEP, WF_EVENT_VALID: the numbers of this event that are logged in metrics.jsonl, without those that are not
     * finite. */
    const struct wf_fit_number *number;
    int numbers;
};

/* --- options, and a training with one optimiser --------------------------------------------------------------------- */

struct wf_fit_options {
    /* The run's folder; created if it does not exist. NULL: wf_fit writes no file and does not keep the best weights; the last weights are
     * in the registries. If `out` is NULL, setting `resume`, `save_every`, `keep` or `keep_every` is WF_ERR_ARGUMENT. */
    const char *out;
    /* The registries and optimisers, for wf_fit. For wf_fit_one, leave these four members zero. */
    const struct wf_fit_registry *registry;
    int registries;
    const struct wf_fit_optimizer *optimizer;
    int optimizers;
    int64_t steps;      /* number of updates in total, including those that were done before a resume */
    int64_t accumulate; /* number of micro-batches of a batch; 0 means 1 */
    /* Number of leaves of the tree in which gradients are added. A leaf is the sum of the gradients of `accumulate` / `leaves`
     * micro-batches, in order. `leaves` is a power of two that divides `accumulate`. The bits of a training depend on `leaves`, but not on
     * the number of processes; the state stores `leaves`. 0: the number in the state; for a new run the largest possible number up to 8, or
     * with more than 8 processes the number of processes, rounded up to a power of two. */
    int64_t leaves;
    /* Arithmetic of the matrix products of the task's losses, forward and backward (weft/tape.h). The state stores it; a resume with
     * another one is WF_ERR_ARGUMENT. A tape that a validation uses is the task's own: give it the same precision. */
    enum wf_precision precision;
    double clip; /* maximum norm of the gradients of a phase, over all registries of its optimisers; 0: no clipping */
    /* Returns the learning rate of options.optimizer[optimizer] for update `step` (0, 1, ...), which replaces that of the optimiser's
     * schedule. Called once for each optimiser in each update, right before the optimiser's step. The same arguments must give the same
     * rate on all ranks and after a resume. NULL: the schedules are used. */
    double (*rate)(void *ctx, int optimizer, int64_t step);
    int64_t save_every;  /* number of updates between two saves; 0: only the save at the end */
    int64_t valid_every; /* number of updates between two validations; 0: only the validation at the end */
    int64_t log_every;   /* number of updates between two lines of metrics.jsonl; 0: 10. The first and the last update always have a line */
    int64_t keep;        /* number of latest checkpoints that are kept; 0: none */
    int64_t keep_every;  /* checkpoints at multiples of this step are never deleted; 0: there are no such checkpoints */
    int64_t patience;    /* ends the training after this many validations without improvement; 0: never */
    uint64_t seed;       /* seed of dropout; a resume must have the same seed */
    bool resume;         /* resumes the run in `out`; if there is no run, starts a new one with a warning */
    /* Settings of the program, which the state stores: NAME=VALUE, separated by blanks, in UTF-8, such as "width=64 data=digits.bin". A
     * resume may change the settings in `settings`, which WF_EVENT_CHANGE reports. It must not change those in `fixed`, on which weights
     * and data depend: that is WF_ERR_ARGUMENT. */
    const char *settings;
    const char *fixed;
    void (*event)(void *ctx, const struct wf_fit_event *event); /* may be NULL */
    /* Called before each op of an update or a validation; on several processes only between updates. If it returns true, wf_fit drops the
     * unfinished update, saves the state after the last finished update, and returns WF_ERR_CANCELLED. Since the calls are many, the
     * function must be cheap: it may read a flag that a signal handler sets. May be NULL. */
    bool (*cancelled)(void *ctx);
    void *ctx; /* the first argument of all functions of the options and the task */
    /* Time limit in seconds, counted from the call of wf_fit; 0: no limit. Before it passes, wf_fit saves and returns WF_ERR_TIME. An
     * update begins only if the time left is more than 0.5 s plus 1.25 times the sum of: the longest update, the longest validation and
     * save if they are due after it, and the longest save again for the end. "Longest" means in this call of wf_fit. If an update
     * or validation takes longer than this estimate, it is dropped as soon as the time left is only enough for the last save. To measure
     * how long a save takes, wf_fit saves after the first update. On several processes all ranks must have the same limit, rank 0 decides
     * by its clock whether another update begins, and an update that has begun is completed: only a validation may be dropped. */
    double max_time;
    /* For several processes. False: gradients are sent while the backward pass computes others. True: messages are sent only while nothing
     * is computed; a comparison of both shows what the overlap gains. */
    bool no_overlap;
    /* For several processes. True: new weights arrive while the next loss is computed, and each op waits for the weights that it reads. So
     * `next`, `rate`, `loss`, `cancelled`, and `event` after an update, must not read weights through pointers, but only by ops, wf_view,
     * wf_read and wf_parameter_set. */
    bool values_by_ops;
    /* Maximum absolute value of the elements of a phase's gradients (wf_clip_value), applied before `clip`; the gradient norms that are
     * reported are those before any clipping. 0: no clipping by value. */
    double clip_value;
};
struct wf_fit_result {
    int64_t step;                 /* updates done */
    double loss;                  /* as in wf_fit_event; NaN if there is none */
    double best;                  /* as in wf_fit_event; NaN if there is none */
    double value[WF_FIT_METRICS]; /* results of the last validation; NaN: not measured */
};

/* Trains a registry with one optimiser until `steps` updates are done. `schedule` sets the learning rate; if it is NULL, or its .peak is 0
 * and it is no function, optimizer->lr stays as it is. *result (may be NULL) is also set after an error. The registry and the optimiser
 * stay the caller's. After the call they hold the weights and moments of the last update.
 *
 * Errors:
 * - WF_ERR_ARGUMENT: a member of the task or the options is missing or out of range; a resume has another task name, `seed` or `fixed` than
 *   the run, or its `steps` is less than the number of updates done; or the time limit passed before any update was done, as it would in
 *   each resume.
 * - WF_ERR_STATE: the registry is not built.
 * - WF_ERR_EXISTS: `out` holds a run's state, and .resume is not set.
 * - WF_ERR_BUSY: another process trains in the folder.
 * - WF_ERR_FORMAT: the state is damaged, or has other parameters.
 * - WF_ERR_NUMERIC: a loss, gradient or weight is not finite. wf_fit repeats the update with checks, and the message names the step and the
 *   first such tensor. Nothing of that update is saved.
 * - WF_ERR_CANCELLED: see .cancelled.
 * - WF_ERR_TIME: see .max_time. A resume gives the same bytes as an uninterrupted run. */
WF_API wf_status wf_fit_one_with(const struct wf_task *task, wf_registry *registry, struct wf_optimizer *optimizer,
                                 const struct wf_schedule *schedule, const struct wf_fit_options *options, struct wf_fit_result *result,
                                 wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_fit_one(task, registry, optimizer, schedule, result, error, ...)                                                                \
    wf_fit_one_with(task, registry, optimizer, schedule, &(struct wf_fit_options){__VA_ARGS__}, result, error)
#endif

/* --- several registries, optimisers and phases ---------------------------------------------------------------------- */

/* A registry whose weights and persistent buffers wf_fit saves. Buffers change (wf_running_average, weft/op.h) at the end of a phase whose
 * optimisers update the registry, by that phase's micro-batches. It must be built or loaded. In the run's files its parameters are called
 * NAME.PARAMETER. */
struct wf_fit_registry {
    const char *name; /* NULL, for a single registry only: the files call the parameters by their own names */
    wf_registry *registry;
};
/* An initialised optimiser, whose registries are all in the list .registry of the options. Several optimisers may step in the same phase if
 * no two of them update the same parameter: see wf_optimizer_only. */
struct wf_fit_optimizer {
    const char *name; /* its moments are NAME.* in the state; not "model" or "task"; NULL, for a single optimiser only: "optimizer" */
    struct wf_optimizer *optimizer;
    int phase; /* the optimiser steps after the losses of this phase */
    /* Schedule of its learning rate. .steps 0 means `steps` of the options. .peak 0 means no schedule unless .kind is
     * WF_SCHEDULE_FUNCTION: optimizer->lr stays as the program sets it. */
    struct wf_schedule schedule;
};

/* Trains as wf_fit_one does, but with the registries and optimisers that the options list. With one registry and one optimiser, both
 * without names, it writes the same files as wf_fit_one. */
WF_API wf_status wf_fit(const struct wf_task *task, const struct wf_fit_options *options, struct wf_fit_result *result,
                        wf_error *error) WF_CHECKED;

/* --- the place in the data ------------------------------------------------------------------------------------------ */

/* Save and restore named values, in the functions `put` and `get` of a task. The task chooses the names. wf_fit_put_array does not copy:
 * the array is read when the state is written, shortly after `put` returns. wf_fit_get_array copies `count` elements and converts them as
 * wf_safetensors_read does. A missing name is WF_ERR_FORMAT. */
WF_API void wf_fit_put_int(wf_fit_state *state, const char *name, int64_t value);
WF_API void wf_fit_put_array(wf_fit_state *state, const char *name, const wf_array *array);
WF_API wf_status wf_fit_get_int(const wf_fit_state *state, const char *name, int64_t *value, wf_error *error) WF_CHECKED;
WF_API wf_status wf_fit_get_array(const wf_fit_state *state, const char *name, wf_dtype dtype, void *out, int64_t count,
                                  wf_error *error) WF_CHECKED;

/* --- what is called when --------------------------------------------------------------------------------------------
 *
 * wf_fit calls the functions of the task and of the options from one thread, in the following order. It leaves out functions that are NULL.
 *
 * At first:
 *   - `get`, in a resume
 *   - `put` and WF_EVENT_CHANGE, in a resume that changes settings: wf_fit saves the change at once
 *   - WF_EVENT_START
 *   - a validation, if one was due when the run was interrupted
 *
 * Each update:
 *   - `cancelled`
 *   - `next`, with `step`, once
 *   - in each phase: `loss` and its backward pass for micro-batch 0, then for micro-batch 1, ...; then for each optimiser of the phase, in
 *     the order of .optimizer: `rate`, once, and the optimiser's step (.check of its rule, and .step of the rule for each block)
 *   - WF_EVENT_STEP, whose .step counts this update
 *
 * A validation, after its update:
 *   - `validate`, once; WF_EVENT_VALID; `sample`, once; WF_EVENT_SAMPLE
 *   - if metric[best] is not finite: `validate` once more, with wf_tape_check_finite, to find the tensor for the message of the error that
 *     ends the training
 *
 * A save, after its update and validation; the last update has only the save at the end:
 *   - `put`, once; WF_EVENT_SAVE
 *
 * At the end, also after a cancellation and at the time limit:
 *   - `put`, unless the state of this step is saved already; WF_EVENT_SAVE; WF_EVENT_END
 *
 * The `step` that `next`, `loss` and `rate` get is the number of updates done before: 0, 1, ..., without gaps, even over a resume. `rate`
 * is called after the losses and the clipping of its phase, but not if a loss or a gradient norm is not finite. The optimiser then steps
 * with the learning rate that `rate` returned, or without `rate` with that of the schedule. If an update was dropped (cancelled, or at the
 * time limit), the resume repeats this update from `next` on. `cancelled` is also called before each op of a loss, a backward pass or a
 * validation; in an update only until an optimiser has stepped. `next` and `rate` may change hyperparameters (optimizer->adam, the ctx of a
 * rule). */

/* --- several processes -----------------------------------------------------------------------------------------------
 *
 * If mpirun started the program several times, the processes train together (weft/dist.h; docs/cluster.md is the guide). Every rank calls
 * `next`, `get`, `rate`, the optimisers' steps, `validate` and `cancelled`; these must give the same results on all ranks. Every rank calls
 * `loss` for its own micro-batches. Only rank 0 calls `put`, `sample` and `event`. With .values_by_ops, the call of `cancelled` for an
 * update comes earlier, before the WF_EVENT_STEP of the previous update, unless a validation or a save follows that update.
 *
 * Persistent buffers, such as the running statistics of batch normalisation, change on all ranks by the micro-batches of all ranks, in the
 * order of the leaves.
 *
 * The files have the same bytes as those of one process with the same .accumulate and .leaves. .accumulate must be 2 or more: a loss that
 * was written for one micro-batch may ignore b->index, and each process would then compute the whole batch. If .leaves is 0, wf_fit raises
 * .accumulate and .leaves of a new run until each process has a leaf, and reports this as a WF_EVENT_WARNING. Otherwise the number of
 * leaves, that of the options or of the state, must not be below the number of processes (WF_ERR_ARGUMENT). Until wf_fit returns, each rank
 * holds only a shard of the optimisers' moments. If the program calls wf_optimizer_step before that, the call returns WF_ERR_STATE; if it
 * calls wf_optimizer_save, wf_safetensors_commit returns WF_ERR_STATE; and wf_grad_norm returns the norm of this rank's gradients alone. */

WF_END_DECLS

#endif
