/* SPDX-License-Identifier: MIT */
/* Setting a training up, and the loop. */
#include <weft/train.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <weft/file.h>
#include <weft/internal/runtime.h>
#include <weft/memory.h>

#include "trainer.h"

static wf_status enter_folder(struct trainer *t)
{
    const char *out = t->options->out;
    wf_status status = wf_folder_make(out, t->error);
    char *path = status == WF_OK ? wf_run_path(out, ".weft-lock", t->error) : NULL;
    if (status == WF_OK)
        t->lock = path ? wf_lock_take(path, t->error) : NULL;
    if (status == WF_OK && !t->lock) {
        status = t->error->code;
        if (status == WF_ERR_BUSY)
            wf_error_prefix(t->error, "%s is being trained by another process", out);
    }
    wf_free(path);
    if (status == WF_OK && state_exists(t) && !t->options->resume)
        status =
            wf_error_set(t->error, WF_ERR_EXISTS, "%s holds a run already: --resume goes on with it, another --out starts a new one", out);
    if (status == WF_OK)
        status = wf_file_sweep(out, NULL, t->error);
    char *checkpoints = wf_run_path(out, "checkpoints", t->error);
    if (status == WF_OK && checkpoints && wf_folder_exists(checkpoints))
        status = wf_file_sweep(checkpoints, NULL, t->error);
    wf_free(checkpoints);
    return status;
}

static wf_status build(struct trainer *t, bool resuming)
{
    const struct wf_config *c = &t->config;
    wf_status status = wf_config_check(c, t->error);
    if (status != WF_OK)
        return status;
    t->model = wf_model_new(c, t->error);
    t->tape = t->model ? wf_tape_new(t->error) : NULL;
    if (!t->tape)
        return t->error->code;
    t->registry = wf_model_registry(t->model);
    status = resuming ? wf_registry_gradients(t->registry, t->error) : wf_registry_build(t->registry, t->options->seed, t->error);
    if (status == WF_OK)
        status = wf_adamw_init(&t->adam, t->registry, t->error, .lr = c->training.lr, .beta1 = c->training.beta1,
                               .beta2 = c->training.beta2, .eps = c->training.eps, .weight_decay = c->training.weight_decay);
    if (status != WF_OK)
        return status;
    wf_adam_decay_matrices_only(&t->adam);
    t->schedule = (struct wf_schedule){.kind = (enum wf_schedule_kind)c->training.schedule,
                                       .peak = c->training.lr,
                                       .min = c->training.min_lr,
                                       .warmup = c->training.warmup,
                                       .steps = c->training.steps};
    return WF_OK;
}

/* --- the loop ------------------------------------------------------------------------------------------------------ */

/* Weights that are not finite replace nothing: not the state, and not what was best. */
static wf_status refuse_bad_weights(struct trainer *t)
{
    const char *bad = first_bad(t, wf_registry_values(t->registry));
    if (!bad)
        return WF_OK;
    return wf_error_set(t->error, WF_ERR_NUMERIC,
                        "step %" PRId64 ": the parameter %s is not finite after the update; nothing of it was saved; lower lr, or set clip",
                        t->step, bad);
}

/* The rename of the state is the commit; model.safetensors follows, and a checkpoint: not where the user cut in, so that those of a
 * broken run are at the same steps as an unbroken one's. */
static wf_status save(struct trainer *t, bool whole)
{
    wf_status status = refuse_bad_weights(t);
    if (status == WF_OK && !t->saved)
        status = state_save(t);
    if (status == WF_OK)
        status = weights_save(t, "model.safetensors");
    if (status == WF_OK)
        status = whole ? checkpoint_save(t) : WF_OK;
    return status == WF_OK ? report(t, WF_EVENT_SAVE, 0, NULL) : status;
}

static wf_status validate(struct trainer *t, bool *stop)
{
    wf_status status = refuse_bad_weights(t);
    if (status == WF_OK)
        status = t->task->evaluate(t);
    if (status != WF_OK)
        return status;
    if (!isfinite(t->valid))
        return wf_error_set(t->error, WF_ERR_NUMERIC,
                            "step %" PRId64
                            ": the validation loss is %g, though all weights are finite; nothing of it was saved; lower lr, or set clip",
                            t->step, t->valid);
    /* best and stale are part of the state */
    t->saved = false;
    if (!(t->valid >= t->best)) { /* the first, too: best is NaN before it */
        t->best = t->valid;
        t->stale = 0;
        status = weights_save(t, "best.safetensors");
    } else {
        t->stale++;
    }
    *stop = t->config.training.patience > 0 && t->stale >= t->config.training.patience;
    if (status == WF_OK)
        status = report(t, WF_EVENT_VALID, 0, NULL);
    return status == WF_OK ? report_sample(t) : status;
}

static bool due(int64_t every, int64_t step)
{
    return every > 0 && step % every == 0;
}

static wf_status loop(struct trainer *t)
{
    const struct wf_config *c = &t->config;
    bool stop = c->training.patience > 0 && t->stale >= c->training.patience, cancelled = false;
    wf_status status = WF_OK;
    while (status == WF_OK && t->step < c->training.steps && !stop && !cancelled) {
        struct timespec begin;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        status = train_step(t);
        if (status == WF_OK)
            status = report(t, WF_EVENT_STEP, (double)t->step_tokens / seconds_since(&begin), NULL);
        bool last = t->step == c->training.steps;
        if (status == WF_OK && t->validates && (last || due(c->training.valid_every, t->step)))
            status = validate(t, &stop);
        if (status == WF_OK && !last && !stop && due(c->training.save_every, t->step))
            status = save(t, true);
        cancelled = t->options->cancelled && t->options->cancelled(t->options->ctx);
    }
    if (status != WF_OK)
        return status;
    bool finished = t->step >= c->training.steps;
    status = save(t, finished || stop || due(c->training.save_every, t->step));
    if (status == WF_OK)
        status = report(t, WF_EVENT_END, 0,
                        finished ? "trained to the end"
                        : stop   ? "stopped early: the validation loss no longer falls"
                                 : "cancelled: --resume goes on from here");
    if (status == WF_OK && cancelled && !finished && !stop)
        status = wf_error_set(t->error, WF_ERR_CANCELLED, "cancelled after step %lld of %lld; --resume goes on from there",
                              (long long)t->step, (long long)c->training.steps);
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
        return wf_error_set(t->error, status, "%s; once that is put right, --resume goes on from step %" PRId64, failure.message,
                            t->on_disk);
    return wf_error_set(t->error, status, "%s; put that right and start again: nothing has been saved yet", failure.message);
}

static wf_status nothing_to_resume(struct trainer *t)
{
    char text[600];
    snprintf(text, sizeof text, "there is nothing to resume in %.500s: starting anew", t->options->out);
    return report(t, WF_EVENT_WARNING, 0, text);
}

static wf_status run(struct trainer *t)
{
    wf_status status = enter_folder(t);
    bool resuming = status == WF_OK && state_exists(t);
    if (status == WF_OK && t->options->resume && !resuming)
        status = nothing_to_resume(t);
    if (status == WF_OK)
        status = t->task->open(t, resuming);
    if (status == WF_OK)
        status = build(t, resuming);
    if (status == WF_OK)
        status = resuming ? state_load(t) : set_others_aside(t);
    if (status == WF_OK)
        status = run_files_save(t, resuming);
    if (status == WF_OK)
        status = metrics_open(t, resuming);
    if (status == WF_OK && t->task->tell)
        status = t->task->tell(t);
    if (status == WF_OK)
        status = report(t, WF_EVENT_START, 0, NULL);
    /* What was killed between the state and its checkpoint lacks the checkpoint. */
    if (status == WF_OK && resuming && due(t->config.training.save_every, t->step) && !checkpoint_exists(t))
        status = checkpoint_save(t);
    return status == WF_OK ? what_now(t, loop(t)) : status;
}

/* A pipe would be waited for, for ever, and could not be read a second time. What is missing is found, and told, by who reads it. */
static wf_status check_files(const char *const *path, int64_t count, wf_error *error)
{
    struct stat info;
    for (int64_t i = 0; i < count; i++)
        if (stat(path[i], &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
            return wf_error_set(error, WF_ERR_IO, "%s is a pipe or a device: a training, and its resume, read a text again: give a file",
                                path[i]);
    return WF_OK;
}

static wf_status check_options(const struct wf_train_options *o, wf_error *error)
{
    if (!o->out || !o->out[0])
        return wf_error_set(error, WF_ERR_ARGUMENT, "no folder for the run: give --out");
    if (o->train_files < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "no text to train on: give --train");
    wf_status status = check_files(o->train, o->train_files, error);
    if (status == WF_OK)
        status = check_files(o->valid, o->valid_files, error);
    return status == WF_OK ? wf_config_check(&o->config, error) : status;
}

wf_status wf_train(const struct wf_train_options *options, struct wf_train_result *result, wf_error *error)
{
    wf_error local = {0};
    struct trainer t = {.options = options,
                        .config = options->config,
                        .on_disk = -1,
                        .best = NAN,
                        .loss = NAN,
                        .smoothed = NAN,
                        .valid = NAN,
                        .valid_smoothed = NAN,
                        .error = error ? error : &local};
    static const struct task *const tasks[] = {
        [WF_MODEL_LANGUAGE] = &language_task, [WF_MODEL_PAIRS] = &translation_task, [WF_MODEL_ENCODER] = &masked_task};
    t.task = tasks[wf_config_kind(&t.config)];
    clock_gettime(CLOCK_MONOTONIC, &t.start);
    wf_status status = wf_init_default(t.error);
    if (status == WF_OK)
        status = check_options(options, t.error);
    if (status == WF_OK)
        status = run(&t);
    if (result)
        *result = (struct wf_train_result){.step = t.step, .loss = t.loss, .valid = t.valid, .best = t.best};
    metrics_close(&t);
    wf_adam_free(&t.adam);
    wf_tape_free(t.tape);
    wf_model_free(t.model);
    t.task->free(&t);
    if (t.source_tokenizer != t.tokenizer)
        wf_tokenizer_free(t.source_tokenizer);
    wf_tokenizer_free(t.tokenizer);
    wf_lock_release(t.lock);
    return status;
}
