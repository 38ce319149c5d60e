/* SPDX-License-Identifier: MIT */
/* The training loop: updates, validations, saves, and the end of a training. */
#include <inttypes.h>
#include <stdio.h>

#include "loop.h"

static bool due(int64_t every, int64_t step)
{
    return every > 0 && step > 0 && step % every == 0;
}

static bool validates_at(const struct fit *f, int64_t step)
{
    return f->task.validate && (step >= f->o.steps || due(f->o.valid_every, step));
}

/* --- saves --------------------------------------------------------------------------------------------------------- */

struct write {
    struct fit *fit;
    void (*write)(void *fit);
};

static void write_files(void *ctx, int64_t result[2])
{
    const struct write *w = ctx;
    w->write(w->fit);
    result[0] = w->fit->saved;
    result[1] = w->fit->on_disk;
}

wf_status state_write(struct fit *f, void (*write)(void *fit))
{
    int64_t result[2] = {f->saved, f->on_disk};
    wf_ranks_gather_state(&f->ranks, write_files, &(struct write){f, write}, result);
    f->saved = result[0] != 0;
    f->on_disk = result[1];
    return f->error->code;
}

/* Writes the files of a save. The save is complete once the state is renamed; model.safetensors and a checkpoint follow. A save
 * at an interruption writes a checkpoint only if one is due at this step, so that in the end the run has checkpoints of the same steps as
 * an uninterrupted run. */
static void save_files(void *fit)
{
    struct fit *f = fit;
    const bool whole = f->step >= f->o.steps || f->early || due(f->o.save_every, f->step);
    if (!(refuse_bad_weights(f) || (!f->saved && state_save(f)) || weights_save(f, "model.safetensors") || averages_save(f) ||
          (whole && checkpoint_save(f))))
        report(f, WF_EVENT_SAVE, NULL);
}

static wf_status save(struct fit *f)
{
    struct timespec begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    f->pace.saving = f->o.out != NULL;
    if (f->pace.saving)
        pace_report(f, "saving", 0, 0);
    wf_ranks_settle(&f->ranks);
    if (wf_ranks_agree(&f->ranks)) /* rank 0 may have an error that the other ranks do not know yet */
        return f->error->code;
    if (f->o.out)
        state_write(f, save_files); /* the next agreement tells the other ranks of an error */
    else
        refuse_bad_weights(f);
    f->pace.saving = f->pace.save_left = false;
    return limit_measure_save(f, &begin);
}

/* --- the loop ------------------------------------------------------------------------------------------------------ */

/* One update, then the validation and the save that are due after it. */
static wf_status step(struct fit *f)
{
    struct timespec begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (fit_update(f))
        return f->error->code;
    const double seconds = seconds_since(&begin);
    f->per_second = f->weight / seconds;
    pace_update(f, seconds);
    f->pace.validation_left = validates_at(f, f->step);
    f->pace.save_left = due(f->o.save_every, f->step);
    if (report(f, WF_EVENT_STEP, NULL))
        return f->error->code;
    limit_measure(&f->limit.update, &begin);
    if (validates_at(f, f->step) && fit_validate(f))
        return f->error->code;
    const bool last = f->step >= f->o.steps || f->early;
    return !last && (due(f->o.save_every, f->step) || limit_wants_save(f)) ? save(f) : WF_OK;
}

/* Sets an error if the training must end after `done` updates, because it is cancelled or the time limit is near. */
static void check_end(struct fit *f, int64_t done)
{
    if (f->o.cancelled && f->o.cancelled(f->o.ctx))
        wf_error_set(f->error, WF_ERR_CANCELLED, "cancelled");
    limit_check(f, validates_at(f, done + 1), due(f->o.save_every, done + 1));
    limit_rename(f);
}

void fit_agree_ahead(struct fit *f)
{
    const int64_t done = f->step + 1;
    if (!wf_ranks_are_late(&f->ranks) || done >= f->o.steps || validates_at(f, done) || due(f->o.save_every, done) || limit_wants_save(f))
        return;
    if (!f->error->code)
        check_end(f, done);
    f->agreed_next = wf_ranks_agree(&f->ranks) == WF_OK;
    if (f->error->code == WF_ERR_CANCELLED || f->error->code == WF_ERR_TIME) { /* not an error of this update, which is completed first */
        f->end = f->error->code;
        wf_ranks_clear_error(&f->ranks);
    }
}

/* Whether all ranks begin another update. */
static bool goes_on(struct fit *f)
{
    if (f->agreed_next) { /* go on even with an error: the other ranks learn of it in the phases of the update */
        f->agreed_next = false;
        return true;
    }
    const bool more = f->step < f->o.steps && !f->early;
    if (f->end != WF_OK && !f->error->code)
        wf_error_set(f->error, f->end, "asked to stop");
    else if (more && !f->error->code)
        check_end(f, f->step);
    limit_rename(f);
    return wf_ranks_agree(&f->ranks) == WF_OK && more;
}

/* --- the end ------------------------------------------------------------------------------------------------------- */

static const char *why_it_ends(const struct fit *f, wf_status status, char text[160])
{
    const struct wf_metric *by = &f->task.metric[f->task.best];
    if (status == WF_ERR_TIME)
        return limit_text(f, text);
    if (status == WF_ERR_CANCELLED && f->o.out)
        snprintf(text, 160, "interrupted; %s continues from here", fit_resume_name(f));
    else if (status == WF_ERR_CANCELLED)
        snprintf(text, 160, "interrupted; nothing is saved without .out");
    else if (f->step >= f->o.steps)
        return "trained to the end";
    else
        snprintf(text, 160, "stopped early: the validation %.64s no longer %s", by->name, by->higher ? "rises" : "falls");
    return text;
}

static wf_status end(struct fit *f, wf_status status)
{
    char text[160];
    if ((status != WF_OK && status != WF_ERR_CANCELLED && status != WF_ERR_TIME) || (status == WF_ERR_TIME && limit_too_short(f)))
        return f->error->code;
    wf_ranks_clear_error(&f->ranks);
    save(f);
    if (wf_ranks_agree(&f->ranks) || report(f, WF_EVENT_END, why_it_ends(f, status, text)))
        return f->error->code;
    if (status == WF_ERR_TIME)
        return limit_error(f);
    if (status == WF_ERR_CANCELLED)
        wf_error_set(f->error, status, "interrupted after step %" PRId64 " of %" PRId64 "%s%s%s", f->step, f->o.steps, f->o.out ? "; " : "",
                     f->o.out ? fit_resume_name(f) : "", f->o.out ? " continues from there" : "");
    return status;
}

wf_status after_failure(struct fit *f, wf_status status)
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

wf_status fit_run(struct fit *f)
{
    /* If the process was killed after it wrote the state but before the checkpoint, write the checkpoint now. */
    if (f->ranks.rank == 0 && f->on_disk >= 0 && due(f->o.save_every, f->step) && !checkpoint_exists(f))
        checkpoint_save(f);
    f->early = patience_is_out(f);
    if (f->validation_due)
        fit_validate(f);
    while (goes_on(f))
        step(f);
    return after_failure(f, end(f, f->error->code));
}
