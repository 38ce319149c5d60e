/* SPDX-License-Identifier: MIT */
/* The training loop: from the folder to the end. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/run_folder.h>
#include <weft/internal/runtime.h>
#include <weft/memory.h>

#include "loop.h"

/* --- getting ready ------------------------------------------------------------------------------------------------- */

void fit_init(struct fit *f, wf_error *error)
{
    f->error = error;
    f->on_disk = -1;
    f->processes = 1;
    f->best = f->per_second = NAN;
    for (int i = 0; i < WF_FIT_TURNS; i++)
        f->loss[i] = f->minimized[i] = NAN;
    for (int i = 0; i < WF_FIT_REPORTS; i++)
        f->report[i] = NAN;
    for (int i = 0; i < WF_FIT_METRICS; i++)
        f->value[i] = NAN;
    clock_gettime(CLOCK_MONOTONIC, &f->start);
}

bool fit_cancelled(void *fit)
{
    struct fit *f = fit;
    const bool alone = f->processes == 1;
    return !f->committed && ((alone && f->o.cancelled && f->o.cancelled(f->o.ctx)) ||
                             ((alone || f->owes_validation /* during a validation */) && limit_cuts(f)));
}

const char *fit_resume_name(const struct fit *f)
{
    return f->owner->any ? ".resume" : "--resume";
}

bool fit_resumes(const struct fit *f)
{
    return f->resumes;
}

static wf_status sweep(struct fit *f, const char *folder)
{
    char *path = wf_run_path(f->o.out, folder, f->error);
    if (path && wf_folder_exists(path))
        (void)!wf_file_sweep(path, NULL, f->error);
    wf_free(path);
    return f->error->code;
}

static wf_status nothing_to_resume(struct fit *f)
{
    struct wf_string text = {0};
    wf_string_format(&text, "nothing to resume in %s: starting a new run", f->o.out);
    return report_string(f, WF_EVENT_WARNING, &text);
}

/* Only rank 0 uses the folder. */
static wf_status enter(struct fit *f)
{
    const char *out = f->o.out;
    char *path = wf_folder_make(out, f->error) == WF_OK ? wf_run_path(out, ".weft-lock", f->error) : NULL;
    f->lock = path ? wf_lock_take(path, f->error) : NULL;
    wf_free(path);
    if (f->error->code == WF_ERR_BUSY)
        wf_error_prefix(f->error, "%s is being trained by another process", out);
    f->resumes = wf_run_has(out, STATE_FILE);
    if (f->lock && fit_resumes(f) && !f->o.resume)
        return wf_error_set(f->error, WF_ERR_EXISTS,
                            f->owner->any ? "%s holds a run already: set .resume to continue it, or choose another .out"
                                          : "%s holds a run already: add --resume to continue it, or choose another --out",
                            out);
    if (f->error->code || sweep(f, "") || sweep(f, NEW_FILES) || sweep(f, "checkpoints"))
        return f->error->code;
    return f->o.resume && !fit_resumes(f) ? nothing_to_resume(f) : WF_OK;
}

wf_status fit_enter(struct fit *f)
{
    bool folder = f->o.out != NULL;
    if (together_from_first(f, &folder, sizeof folder))
        return f->error->code;
    if (folder != (f->o.out != NULL))
        wf_error_set(f->error, WF_ERR_ARGUMENT, "wf_fit: .out is %s, and of rank 0 %s: give all processes the same",
                     f->o.out ? f->o.out : "NULL", folder ? "a folder" : "NULL");
    if (f->rank == 0 && f->o.out)
        enter(f);
    return together_agree(f) ? f->error->code : together_from_first(f, &f->resumes, sizeof f->resumes);
}

wf_status fit_prepare(struct fit *f)
{
    for (f->turns = 0; f->task.turns && f->task.turns[f->turns];)
        f->turns++;
    f->turns = f->turns > 0 ? f->turns : 1;
    for (f->reports = 0; f->task.reports && f->task.reports[f->reports];)
        f->reports++;
    f->o.accumulate = f->o.accumulate > 0 ? f->o.accumulate : 1;
    f->asked = f->asked > 0 ? f->asked : f->o.accumulate;
    f->o.log_every = f->o.log_every > 0 ? f->o.log_every : 10;
    if (curves_of(f))
        return f->error->code;
    if (!f->tape && !(f->tape = wf_tape_new(f->error)))
        return f->error->code;
    wf_tape_cancel(f->tape, fit_cancelled, f);
    for (int i = 0; i < f->o.registries; i++)
        if (slices_make(f, i, f->o.registry[i].registry))
            return f->error->code;
    return WF_OK;
}

wf_status fit_take(struct fit *f)
{
    if (fit_resumes(f) ? state_load(f) : together_share(f))
        return f->error->code;
    f->leaf = wf_alloc_zero((size_t)f->o.leaves, sizeof *f->leaf);
    return f->leaf ? WF_OK : wf_error_set(f->error, WF_ERR_MEMORY, "no memory for the losses of %" PRId64 " leaves", f->o.leaves);
}

wf_status fit_set_aside(struct fit *f)
{
    return fit_resumes(f) || f->rank > 0 || !f->o.out ? WF_OK : set_others_aside(f);
}

/* --- saves and validations ----------------------------------------------------------------------------------------- */

static bool due(int64_t every, int64_t step)
{
    return every > 0 && step > 0 && step % every == 0;
}

/* Files that rank 0 writes for all. */
static wf_status save_files(struct fit *f)
{
    const bool whole = f->step >= f->o.steps || f->early || due(f->o.save_every, f->step);
    return refuse_bad_weights(f) || (!f->saved && state_save(f)) || weights_save(f, "model.safetensors") || averages_save(f) ||
                   (whole && checkpoint_save(f))
               ? f->error->code
               : report(f, WF_EVENT_SAVE, NULL);
}

/* The rename of the state is the commit; model.safetensors follows, and a checkpoint. An interrupt writes no checkpoint, so that
 * interrupted and uninterrupted runs have checkpoints of the same steps. */
static wf_status save(struct fit *f)
{
    struct timespec begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    f->pace.saving = f->o.out != NULL;
    if (f->pace.saving)
        pace_report(f, "saving", 0, 0);
    slices_settle(f);
    if (together_agree(f)) /* rank 0 may have failed alone */
        return f->error->code;
    if (!f->o.out)
        refuse_bad_weights(f);
    else if (f->rank == 0) { /* the next agreement spreads an error of it */
        save_files(f);
        slices_served(f);
    } else
        slices_serve(f);
    f->pace.saving = f->pace.owes_save = false;
    return limit_measure_save(f, &begin);
}

static wf_status measure(struct fit *f)
{
    wf_error why = {0};
    double value[WF_FIT_METRICS];
    const double untouched = nan("0x7e57"); /* no computation gives this NaN */
    for (int i = 0; i < WF_FIT_METRICS; i++)
        value[i] = untouched;
    wf_status status = f->task.validate(f->o.ctx, f->tape, value, &why);
    if (wf_tape_error(f->tape)->code == WF_ERR_CANCELLED) /* even if the task returned another status */
        status = WF_ERR_CANCELLED;
    if (status != WF_OK)
        return wf_error_set(f->error, status, "%s", why.message[0] ? why.message : "the task's validate failed without a message");
    if (memcmp(&value[f->task.best], &untouched, sizeof untouched) == 0)
        return wf_error_set(f->error, WF_ERR_ARGUMENT,
                            "step %" PRId64 ": the task's validate did not set value[%d], %s, which decides what is best", f->step,
                            f->task.best, f->task.metric[f->task.best].name);
    memcpy(f->value, value, sizeof value);
    return WF_OK;
}

static wf_status validate(struct fit *f)
{
    struct timespec begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    f->owes_validation = true; /* until it is done: a resume makes up for one that was cancelled */
    f->saved = false;          /* best and stale are part of the state */
    f->pace.validating = true;
    pace_report(f, "validating", 0, 0);
    if (!slices_settle(f))
        refuse_bad_weights(f);
    if (together_agree(f)) /* a task of the zoo is measured by all together */
        return f->error->code;
    measure(f);
    f->pace.validating = f->pace.owes_validation = false;
    limit_name(f);
    /* The values of rank 0 decide on all ranks; a program's validate may give others elsewhere. */
    if (together_agree(f) || together_from_first(f, f->value, sizeof f->value))
        return f->error->code;
    const struct wf_metric *by = &f->task.metric[f->task.best];
    double value = f->value[f->task.best];
    if (!isfinite(value))
        return explain_validation(f);
    f->improved = by->higher ? !(value <= f->best) : !(value >= f->best); /* true for the first: best is NaN before it */
    f->stale = f->improved ? 0 : f->stale + 1;
    if (f->improved)
        f->best = value;
    f->owes_validation = false;
    f->early = f->o.patience > 0 && f->stale >= f->o.patience;
    const bool saves = f->improved && f->o.out;
    f->pace.saving = saves;
    if (saves)
        pace_report(f, "saving", 0, 0);
    f->pace.saving = false;
    if ((saves && f->rank == 0 && weights_save(f, "best.safetensors")) || report(f, WF_EVENT_VALID, NULL) ||
        (f->rank == 0 && report_sample(f)))
        return f->error->code;
    limit_measure(&f->limit.validation, &begin);
    f->pace.validation = seconds_since(&begin);
    return WF_OK;
}

/* --- the loop ------------------------------------------------------------------------------------------------------ */

static bool validates_at(const struct fit *f, int64_t step)
{
    return f->task.validate && (step >= f->o.steps || due(f->o.valid_every, step));
}

static wf_status one_step(struct fit *f)
{
    struct timespec begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (fit_update(f))
        return f->error->code;
    const double seconds = seconds_since(&begin);
    f->per_second = f->weight / seconds;
    pace_update(f, seconds);
    f->pace.owes_validation = validates_at(f, f->step);
    f->pace.owes_save = due(f->o.save_every, f->step);
    if (report(f, WF_EVENT_STEP, NULL))
        return f->error->code;
    limit_measure(&f->limit.update, &begin);
    bool last = f->step >= f->o.steps;
    if (validates_at(f, f->step) && validate(f))
        return f->error->code;
    return !last && !f->early && (due(f->o.save_every, f->step) || limit_asks_save(f)) ? save(f) : WF_OK;
}

static const char *stopped_early(const struct fit *f, char text[160])
{
    snprintf(text, 160, "stopped early: the validation %.64s no longer %s", f->task.metric[f->task.best].name,
             f->task.metric[f->task.best].higher ? "rises" : "falls");
    return text;
}

static const char *interrupted(const struct fit *f, char text[160])
{
    if (f->o.out)
        snprintf(text, 160, "interrupted; %s continues from here", fit_resume_name(f));
    else
        snprintf(text, 160, "interrupted; nothing is saved without .out");
    return text;
}

/* Checks before an update, after `done` others. */
static void ask(struct fit *f, int64_t done)
{
    if (f->o.cancelled && f->o.cancelled(f->o.ctx))
        wf_error_set(f->error, WF_ERR_CANCELLED, "cancelled");
    limit_check(f, validates_at(f, done + 1), due(f->o.save_every, done + 1));
    limit_name(f);
}

void fit_ask_ahead(struct fit *f)
{
    const int64_t done = f->step + 1;
    if (!slices_are_late(f) || done >= f->o.steps || validates_at(f, done) || due(f->o.save_every, done) || limit_asks_save(f))
        return;
    if (!f->error->code)
        ask(f, done);
    f->ahead = together_agree(f) == WF_OK;
    if (f->error->code == WF_ERR_CANCELLED || f->error->code == WF_ERR_TIME) { /* after this update */
        f->stop = f->error->code;
        wf_error_clear(f->error);
        f->told = false;
    }
}

static wf_status loop(struct fit *f)
{
    int64_t steps = f->o.steps;
    char text[160];
    f->early = f->o.patience > 0 && f->stale >= f->o.patience;
    wf_status status = f->owes_validation ? validate(f) : WF_OK;
    for (bool more = true; more;) {
        const bool ahead = f->ahead;
        more = f->step < steps && !f->early;
        f->ahead = false;
        if (f->stop != WF_OK && !f->error->code)
            wf_error_set(f->error, f->stop, "asked to stop");
        f->stop = WF_OK;
        if (!ahead && status == WF_OK && more && !f->error->code)
            ask(f, f->step);
        limit_name(f);
        if (!ahead)
            status = together_agree(f);
        more = ahead || (more && status == WF_OK); /* ahead: that update spreads an error of this rank */
        if (more)
            status = one_step(f);
    }
    const bool late = status == WF_ERR_TIME;
    if ((status != WF_OK && status != WF_ERR_CANCELLED && !late) || (late && limit_too_short(f)))
        return f->error->code;
    wf_error_clear(f->error);
    f->told = false;
    save(f);
    if (together_agree(f) || report(f, WF_EVENT_END,
                                    late                         ? limit_near(f, text)
                                    : status == WF_ERR_CANCELLED ? interrupted(f, text)
                                    : f->step >= steps           ? "trained to the end"
                                                                 : stopped_early(f, text)))
        return f->error->code;
    if (late)
        return limit_ended(f);
    if (status == WF_ERR_CANCELLED)
        wf_error_set(f->error, status, "interrupted after step %" PRId64 " of %" PRId64 "%s%s%s", f->step, steps, f->o.out ? "; " : "",
                     f->o.out ? fit_resume_name(f) : "", f->o.out ? " continues from there" : "");
    return status;
}

/* After an error of a file, on a full disk say, the message says where the run continues. */
static wf_status what_now(struct fit *f, wf_status status)
{
    if (status != WF_ERR_IO || !f->o.out)
        return status;
    wf_error failure = *f->error;
    wf_error_clear(f->error);
    if (f->on_disk >= 0)
        return wf_error_set(f->error, status, "%s; after fixing this, %s continues from step %" PRId64, failure.message, fit_resume_name(f),
                            f->on_disk);
    return wf_error_set(f->error, status, "%s; fix this and start again: nothing has been saved yet", failure.message);
}

wf_status fit_begin(struct fit *f)
{
    bool resuming = f->on_disk >= 0;
    if (together_agree(f)) /* rank 0 may have failed alone */
        return f->error->code;
    if (f->change.length && f->rank == 0) {
        what_now(f, state_save(f));
        slices_served(f);
    } else if (f->change.length)
        slices_serve(f);
    if (f->error->code || (f->rank == 0 && f->o.out && metrics_open(f, resuming)))
        return f->error->code;
    if (f->change.length && report(f, WF_EVENT_CHANGE, f->change.data))
        return f->error->code;
    return WF_OK;
}

wf_status fit_run(struct fit *f)
{
    /* A run that was killed between the state and its checkpoint lacks the checkpoint. */
    if (f->rank == 0 && f->on_disk >= 0 && due(f->o.save_every, f->step) && !checkpoint_exists(f))
        checkpoint_save(f);
    return what_now(f, loop(f));
}

void fit_free(struct fit *f)
{
    /* A program gets its optimisers back whole. */
    slices_drop(f, f->owner->any);
    together_close(f);
    metrics_close(f);
    wf_tape_free(f->tape);
    wf_lock_release(f->lock);
    wf_string_free(&f->change);
    tree_free(&f->tree);
    wf_free(f->leaf);
}
