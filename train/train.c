/* SPDX-License-Identifier: MIT */
/* Setting a training up, and the loop. */
#include <weft/train.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <weft/internal/files.h>
#include <weft/internal/kernels.h>
#include <weft/internal/runtime.h>
#include <weft/memory.h>

#include "trainer.h"

static wf_status sweep(struct trainer *t, const char *folder)
{
    char *path = wf_run_path(t->options->out, folder, t->error);
    if (path && wf_folder_exists(path))
        (void)!wf_file_sweep(path, NULL, t->error);
    wf_free(path);
    return t->error->code;
}

static wf_status enter_folder(struct trainer *t)
{
    const char *out = t->options->out;
    char *path = wf_folder_make(out, t->error) == WF_OK ? wf_run_path(out, ".weft-lock", t->error) : NULL;
    t->lock = path ? wf_lock_take(path, t->error) : NULL;
    wf_free(path);
    if (t->error->code == WF_ERR_BUSY)
        wf_error_prefix(t->error, "%s is being trained by another process", out);
    if (t->lock && wf_run_has(out, STATE_FILE) && !t->options->resume)
        return wf_error_set(t->error, WF_ERR_EXISTS, "%s holds a run already: add --resume to continue it, or choose another --out", out);
    if (!t->error->code && !sweep(t, "") && !sweep(t, NEW_FILES))
        sweep(t, "checkpoints");
    return t->error->code;
}

static wf_status open_task(struct trainer *t, bool resuming)
{
    t->data = wf_alloc_zero(1, t->task->size);
    if (!t->data)
        return wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a training");
    t->scans = wf_scans_new();
    wf_status status = t->task->open(t, resuming);
    wf_scans_free(t->scans);
    t->scans = NULL;
    return status;
}

/* To fill a large model takes seconds, and a state of it is long to write. */
static wf_status not_begun(struct trainer *t)
{
    if (!cancelled(t))
        return t->error->code;
    wf_error_clear(t->error);
    return wf_error_set(t->error, WF_ERR_CANCELLED, "interrupted before the training began; nothing was saved");
}

static wf_status build(struct trainer *t, bool resuming)
{
    const struct wf_config *c = &t->config;
    const struct wf_training *o = &c->training;
    if (wf_config_check(c, t->error) || !(t->model = wf_model_new(c, t->error)) || !(t->tape = wf_tape_new(t->error)))
        return t->error->code;
    t->registry = wf_model_registry(t->model);
    wf_tape_cancel(t->tape, t->options->cancelled, t->options->ctx);
    wf_registry_cancel(t->registry, t->options->cancelled, t->options->ctx);
    if ((resuming ? wf_registry_gradients(t->registry, t->error) : wf_registry_build(t->registry, t->options->seed, t->error)) ||
        wf_adamw_init(&t->optimizer, t->registry, t->error, .lr = o->lr, .beta1 = o->beta1, .beta2 = o->beta2, .eps = o->eps,
                      .weight_decay = o->weight_decay))
        return not_begun(t);
    wf_optimizer_decay_matrices_only(&t->optimizer);
    t->schedule = (struct wf_schedule){
        .kind = (enum wf_schedule_kind)o->schedule, .peak = o->lr, .min = o->min_lr, .warmup = o->warmup, .steps = o->steps};
    return WF_OK;
}

/* A validation takes about a third of the time of an update on as many tokens, so that this is about a tenth of the training. */
void choose_validation(struct trainer *t, int64_t tokens)
{
    enum { LEAST = 100000, MOST = 1000000 };
    const struct wf_training *c = &t->config.training;
    double third = (double)tokens * (double)(c->valid_every > 0 ? c->valid_every : c->steps) / 3;
    t->valid_limit = t->kept_limit >= 0     ? t->kept_limit
                     : c->valid_tokens >= 0 ? c->valid_tokens
                     : third < LEAST        ? LEAST
                     : third > MOST         ? MOST
                                            : (int64_t)third;
    if (t->valid_limit > 0 && t->valid_tokens > t->valid_limit)
        t->valid_tokens = t->valid_limit;
}

/* --- one update: batch, forward, backward, Adam; and what to say when a number goes bad --------------------------- */

/* The first parameter whose value, or gradient, is not finite; NULL if all are fine. */
static const char *first_bad(const struct trainer *t, bool gradient)
{
    for (int i = 0; i < wf_registry_count(t->registry); i++) {
        const wf_tensor *p = wf_registry_at(t->registry, i);
        const struct wf_parameter_info *info = wf_parameter_info(p);
        const wf_real *x = gradient ? wf_grads_at(info->grads, p) : info->value.data;
        if (x && wf_kernel->find_nonfinite(wf_array_count(&info->value), x) >= 0)
            return info->name;
    }
    return NULL;
}

/* What to do where numbers are not finite. */
static const char *numeric_advice(const struct trainer *t)
{
    return t->on_disk >= 0 ? "this step was not saved; --resume with a lower lr, or with clip, continues from the last save"
                           : "this step was not saved; lower lr, or set clip";
}

/* Runs the step again with a look at every result, and names the first tensor that is not finite. The weights are as they were:
 * no update was made. */
static wf_status explain(struct trainer *t, const char *what)
{
    const char *advice = numeric_advice(t);
    const char *weight = first_bad(t, false);
    if (weight)
        return wf_error_set(t->error, WF_ERR_NUMERIC, "step %lld: %s is not finite; the parameter %s was bad before this step: %s",
                            (long long)t->step + 1, what, weight, advice);
    const char *gradient = first_bad(t, true);
    wf_tape_check_finite(t->tape, true);
    for (int64_t micro = 0; micro < t->config.training.accumulate; micro++) {
        double value;
        wf_tensor *plain, *loss = t->task->forward(t, micro, &plain);
        if (loss && wf_item(loss, &value) == WF_ERR_NUMERIC)
            wf_error_set(t->error, WF_ERR_NUMERIC, "step %lld: %s is not finite; the first bad tensor: %s: %s", (long long)t->step + 1,
                         what, wf_tape_error(t->tape)->message, advice);
    }
    wf_tape_check_finite(t->tape, false);
    return wf_error_set(t->error, WF_ERR_NUMERIC,
                        "step %lld: %s is not finite; the forward pass is, and the first bad gradient is that of %s: %s",
                        (long long)t->step + 1, what, gradient ? gradient : "an inner tensor", advice);
}

/* What an op or the optimiser says, with the step. */
static wf_status failed(struct trainer *t, const wf_error *why)
{
    return wf_error_set(t->error, why->code != WF_OK ? why->code : WF_ERR_STATE, "step %lld: %s", (long long)t->step + 1, why->message);
}

static wf_status train_step(struct trainer *t)
{
    double sum = 0, smoothed_sum = 0;
    t->dropped = true; /* unless it comes to its end */
    if (t->task->next(t))
        return t->error->code;
    for (int64_t micro = 0; micro < t->config.training.accumulate; micro++) {
        wf_tensor *plain = NULL, *loss = t->task->forward(t, micro, &plain);
        double value, smoothed;
        if (!loss)
            continue;
        if (wf_item(loss, &smoothed) || wf_item(plain ? plain : loss, &value))
            return failed(t, wf_tape_error(t->tape));
        if (!isfinite(value) || !isfinite(smoothed))
            return explain(t, "the loss");
        if (wf_backward(loss))
            return failed(t, wf_tape_error(t->tape));
        sum += value;
        smoothed_sum += smoothed;
    }
    t->optimizer.lr = wf_schedule_lr(&t->schedule, t->step);
    wf_error error = {0};
    wf_status status = wf_clip_norm(wf_registry_grads(t->registry), t->config.training.clip, &t->grad_norm, &error);
    if (status == WF_OK)
        status = wf_optimizer_step(&t->optimizer, &error);
    if (status != WF_OK)
        return status == WF_ERR_NUMERIC ? explain(t, "the gradient's norm") : failed(t, &error);
    t->step++;
    t->loss = sum;
    t->smoothed = t->config.training.label_smoothing > 0 ? smoothed_sum : NAN;
    t->dropped = t->saved = false;
    return WF_OK;
}

/* --- the loop ------------------------------------------------------------------------------------------------------ */

/* Weights that are not finite replace nothing: not the state, and not what was best. */
static wf_status refuse_bad_weights(struct trainer *t)
{
    const char *bad = first_bad(t, false);
    if (!bad)
        return WF_OK;
    return wf_error_set(t->error, WF_ERR_NUMERIC, "step %" PRId64 ": the parameter %s is not finite after the update; %s", t->step, bad,
                        numeric_advice(t));
}

static bool due(int64_t every, int64_t step)
{
    return every > 0 && step > 0 && step % every == 0;
}

/* The rename of the state is the commit; model.safetensors follows, and a checkpoint: not where the user cut in, so that those of a
 * broken run are at the same steps as an unbroken one's. */
static wf_status save(struct trainer *t)
{
    bool whole = t->step >= t->config.training.steps || t->early || due(t->config.training.save_every, t->step);
    if (refuse_bad_weights(t) || (!t->saved && state_save(t)) || weights_save(t, "model.safetensors") || (whole && checkpoint_save(t)))
        return t->error->code;
    return report(t, WF_EVENT_SAVE, 0, NULL);
}

static wf_status validate(struct trainer *t)
{
    t->owes_validation = true; /* until it is done: a resume makes up for one that was cancelled */
    t->saved = false;          /* best and stale are part of the state */
    struct wf_evaluation e;
    if (refuse_bad_weights(t) || t->task->evaluate(t, &e))
        return t->error->code;
    t->valid = e.loss;
    t->valid_smoothed = t->config.training.label_smoothing > 0 ? e.smoothed : NAN;
    if (!isfinite(t->valid))
        return wf_error_set(t->error, WF_ERR_NUMERIC, "step %" PRId64 ": the validation loss is %g, though all weights are finite; %s",
                            t->step, t->valid, numeric_advice(t));
    bool best = !(t->valid >= t->best); /* the first, too: best is NaN before it */
    t->stale = best ? 0 : t->stale + 1;
    if (best)
        t->best = t->valid;
    t->owes_validation = false;
    t->early = t->config.training.patience > 0 && t->stale >= t->config.training.patience;
    if ((best && weights_save(t, "best.safetensors")) || report(t, WF_EVENT_VALID, 0, NULL))
        return t->error->code;
    return report_sample(t);
}

static wf_status one_step(struct trainer *t)
{
    const struct wf_training *c = &t->config.training;
    struct timespec begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (train_step(t) || report(t, WF_EVENT_STEP, (double)t->step_tokens / seconds_since(&begin), NULL))
        return t->error->code;
    bool last = t->step >= c->steps;
    if (t->validates && (last || due(c->valid_every, t->step)) && validate(t))
        return t->error->code;
    return !last && !t->early && due(c->save_every, t->step) ? save(t) : WF_OK;
}

static wf_status loop(struct trainer *t)
{
    int64_t steps = t->config.training.steps;
    t->early = t->config.training.patience > 0 && t->stale >= t->config.training.patience;
    wf_status status = t->owes_validation ? validate(t) : WF_OK;
    while (status == WF_OK && t->step < steps && !t->early)
        status = cancelled(t) ? WF_ERR_CANCELLED : one_step(t);
    if (status != WF_OK && status != WF_ERR_CANCELLED)
        return status;
    wf_error_clear(t->error);
    if (save(t) || report(t, WF_EVENT_END, 0,
                          status == WF_ERR_CANCELLED ? "interrupted; --resume continues from here"
                          : t->step >= steps         ? "trained to the end"
                                                     : "stopped early: the validation loss no longer falls"))
        return t->error->code;
    if (status == WF_ERR_CANCELLED)
        wf_error_set(t->error, status, "interrupted after step %" PRId64 " of %" PRId64 "; --resume continues from there", t->step, steps);
    return status;
}

/* A run that can't be written, on a full disk say, is not lost. */
static wf_status what_now(struct trainer *t, wf_status status)
{
    if (status != WF_ERR_IO)
        return status;
    wf_error failure = *t->error;
    wf_error_clear(t->error);
    if (t->on_disk >= 0)
        return wf_error_set(t->error, status, "%s; after fixing this, --resume continues from step %" PRId64, failure.message, t->on_disk);
    return wf_error_set(t->error, status, "%s; fix this and start again: nothing has been saved yet", failure.message);
}

static wf_status nothing_to_resume(struct trainer *t)
{
    char text[600];
    snprintf(text, sizeof text, "nothing to resume in %.500s: starting a new run", t->options->out);
    return report(t, WF_EVENT_WARNING, 0, text);
}

static wf_status run(struct trainer *t)
{
    if (enter_folder(t))
        return t->error->code;
    bool resuming = wf_run_has(t->options->out, STATE_FILE);
    if ((t->options->resume && !resuming && nothing_to_resume(t)) || open_task(t, resuming) || build(t, resuming) || not_begun(t) ||
        (resuming ? state_load(t) : set_others_aside(t)) || run_files_save(t, resuming) ||
        (t->change.length && what_now(t, state_save(t))) || metrics_open(t, resuming) ||
        (t->change.length && report(t, WF_EVENT_CHANGE, 0, t->change.data)) || tokenizers_tell(t) || t->task->tell(t) ||
        report(t, WF_EVENT_START, 0, NULL))
        return t->error->code;
    /* What was killed between the state and its checkpoint lacks the checkpoint. */
    if (resuming && due(t->config.training.save_every, t->step) && !checkpoint_exists(t) && checkpoint_save(t))
        return t->error->code;
    return what_now(t, loop(t));
}

/* A pipe would be waited for, for ever, and could not be read a second time. What is missing is found, and told, by who reads it. */
static wf_status check_files(const char *const *path, int64_t count, wf_error *error)
{
    struct stat info;
    for (int64_t i = 0; i < count; i++)
        if (stat(path[i], &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
            return wf_error_set(error, WF_ERR_IO, "%s is a pipe or a device, and training reads its text more than once: give a file",
                                path[i]);
    return WF_OK;
}

static wf_status check_options(const struct wf_train_options *o, wf_error *error)
{
    if (!o->out || !o->out[0])
        return wf_error_set(error, WF_ERR_ARGUMENT, "no folder for the run: give --out");
    if (o->train_files < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "no text to train on: give --train");
    if (check_files(o->train, o->train_files, error) || check_files(o->valid, o->valid_files, error))
        return error->code;
    const struct wf_training *c = &o->config.training;
    if (c->patience > 0 && c->valid_every == 0)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "patience=%" PRId64
                            " counts validations, and valid_every=0 validates only at the end: set valid_every, or patience=0",
                            c->patience);
    if (wf_config_read_only(&o->config))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is read from other libraries' folders, not trained", o->config.model);
    return wf_config_check(&o->config, error);
}

wf_status wf_train(const struct wf_train_options *options, struct wf_train_result *result, wf_error *error)
{
    wf_error failure = {0};
    struct trainer t = {.options = options,
                        .config = options->config,
                        .on_disk = -1,
                        .kept_limit = -1,
                        .best = NAN,
                        .loss = NAN,
                        .smoothed = NAN,
                        .valid = NAN,
                        .valid_smoothed = NAN,
                        .error = &failure};
    static const struct task *const tasks[] = {
        [WF_MODEL_LANGUAGE] = &language_task, [WF_MODEL_PAIRS] = &translation_task, [WF_MODEL_ENCODER] = &masked_task};
    t.task = tasks[wf_config_kind(&t.config)];
    clock_gettime(CLOCK_MONOTONIC, &t.start);
    if (wf_init_default(t.error) == WF_OK && check_options(options, t.error) == WF_OK)
        run(&t);
    if (result)
        *result = (struct wf_train_result){.step = t.step, .loss = t.loss, .valid = t.valid, .best = t.best};
    metrics_close(&t);
    wf_optimizer_free(&t.optimizer);
    wf_tape_free(t.tape);
    wf_model_free(t.model);
    if (t.data)
        t.task->free(&t);
    wf_free(t.data);
    if (t.source_tokenizer != t.tokenizer)
        wf_tokenizer_free(t.source_tokenizer);
    wf_tokenizer_free(t.tokenizer);
    wf_lock_release(t.lock);
    wf_string_free(&t.change);
    return failure.code ? wf_error_set(error, failure.code, "%s", failure.message) : WF_OK;
}
