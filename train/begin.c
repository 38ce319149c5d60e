/* SPDX-License-Identifier: MIT */
/* Sets a training up before its loop: the run's folder, the options, and the state of a resume. Also frees a training. */
#include <math.h>
#include <string.h>

#include <weft/internal/run_folder.h>
#include <weft/memory.h>

#include "loop.h"

/* Reports a long wait for another rank as a warning. If the log cannot be written, ignores that, because an error here would end the
 * update; writing the next line of the log fails too, and reports the error. */
static void waits(void *fit, const char *text)
{
    struct fit *f = fit;
    const wf_error before = *f->error;
    report(f, WF_EVENT_WARNING, text);
    *f->error = before;
}

void fit_init(struct fit *f, wf_error *error)
{
    f->error = error;
    f->ranks = (struct wf_ranks){.size = 1, .error = error, .leaf_bytes = sizeof(struct scalars), .waits = waits, .ctx = f};
    f->on_disk = -1;
    f->best = f->per_second = NAN;
    for (int i = 0; i < WF_FIT_PHASES; i++)
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
    const bool alone = f->ranks.size == 1;
    return !f->stepped && ((alone && f->o.cancelled && f->o.cancelled(f->o.ctx)) ||
                           ((alone || f->validation_due /* a validation is running */) && limit_cuts(f)));
}

const char *fit_resume_name(const struct fit *f)
{
    return f->owner->any ? ".resume" : "--resume";
}

/* --- the folder ---------------------------------------------------------------------------------------------------- */

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

/* Creates, locks and checks the run's folder. Called on rank 0, the only rank that uses the folder. */
static wf_status enter(struct fit *f)
{
    const char *out = f->o.out;
    char *path = wf_folder_make(out, f->error) == WF_OK ? wf_run_path(out, ".weft-lock", f->error) : NULL;
    f->lock = path ? wf_lock_take(path, f->error) : NULL;
    wf_free(path);
    if (f->error->code == WF_ERR_BUSY)
        wf_error_prefix(f->error, "%s is being trained by another process", out);
    f->resumes = wf_run_has(out, STATE_FILE);
    if (f->lock && f->resumes && !f->o.resume)
        return wf_error_set(f->error, WF_ERR_EXISTS,
                            f->owner->any ? "%s holds a run already: set .resume to continue it, or choose another .out"
                                          : "%s holds a run already: add --resume to continue it, or choose another --out",
                            out);
    if (f->error->code || sweep(f, "") || sweep(f, NEW_FILES) || sweep(f, "checkpoints"))
        return f->error->code;
    return f->o.resume && !f->resumes ? nothing_to_resume(f) : WF_OK;
}

wf_status fit_enter(struct fit *f)
{
    bool folder = f->o.out != NULL;
    if (wf_ranks_broadcast(&f->ranks, &folder, sizeof folder))
        return f->error->code;
    if (folder != (f->o.out != NULL))
        wf_error_set(f->error, WF_ERR_ARGUMENT, "wf_fit: .out is %s, and of rank 0 %s: give all processes the same",
                     f->o.out ? f->o.out : "NULL", folder ? "a folder" : "NULL");
    if (f->ranks.rank == 0 && f->o.out)
        enter(f);
    return wf_ranks_agree(&f->ranks) ? f->error->code : wf_ranks_broadcast(&f->ranks, &f->resumes, sizeof f->resumes);
}

/* --- options and state --------------------------------------------------------------------------------------------- */

wf_status fit_prepare(struct fit *f)
{
    struct wf_ranks *ranks = &f->ranks;
    f->phases = phases_of(&f->task);
    for (f->reports = 0; f->task.reports && f->task.reports[f->reports];)
        f->reports++;
    f->o.accumulate = WF_MAX(f->o.accumulate, 1);
    f->given = f->given > 0 ? f->given : f->o.accumulate;
    f->o.log_every = f->o.log_every > 0 ? f->o.log_every : 10;
    if (curves_of(f))
        return f->error->code;
    if (!f->tape && !(f->tape = wf_tape_new(f->error)))
        return f->error->code;
    wf_tape_cancel(f->tape, fit_cancelled, f);
    ranks->no_overlap = f->o.no_overlap;
    ranks->late_values = f->o.values_by_ops || !f->owner->any; /* the tasks of wf_train read weights by ops alone */
    for (ranks->registries = 0; ranks->registries < f->o.registries; ranks->registries++)
        ranks->registry[ranks->registries] = f->o.registry[ranks->registries].registry;
    for (ranks->optimizers = 0; ranks->optimizers < f->o.optimizers; ranks->optimizers++)
        ranks->optimizer[ranks->optimizers] = f->o.optimizer[ranks->optimizers].optimizer;
    return wf_ranks_shard(ranks);
}

wf_status fit_take(struct fit *f)
{
    return (f->resumes ? state_load(f) : ranks_share(f)) ? f->error->code : wf_ranks_cut(&f->ranks, f->o.accumulate, f->o.leaves);
}

wf_status fit_set_aside(struct fit *f)
{
    return f->resumes || f->ranks.rank > 0 || !f->o.out ? WF_OK : set_others_aside(f);
}

static void save_change(void *fit)
{
    struct fit *f = fit;
    after_failure(f, state_save(f));
}

wf_status fit_begin(struct fit *f)
{
    const bool resuming = f->on_disk >= 0;
    if (wf_ranks_agree(&f->ranks)) /* fit_set_aside and run_files_save can fail on rank 0 only */
        return f->error->code;
    if (f->change.length)
        state_write(f, save_change);
    if (f->error->code || (f->ranks.rank == 0 && f->o.out && metrics_open(f, resuming)))
        return f->error->code;
    return f->change.length ? report(f, WF_EVENT_CHANGE, f->change.data) : WF_OK;
}

void fit_free(struct fit *f)
{
    wf_ranks_close(&f->ranks, f->owner->any); /* wf_fit gives the program's optimisers back with all moments, not only with this rank's */
    metrics_close(f);
    wf_tape_free(f->tape);
    wf_lock_release(f->lock);
    wf_string_free(&f->change);
}
