/* SPDX-License-Identifier: MIT */
/* A validation: measures the metrics, saves the best weights, and counts validations for patience. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "loop.h"

static wf_status measure(struct fit *f)
{
    wf_error why = {0};
    double value[WF_FIT_METRICS];
    const double untouched = nan("0x7e57"); /* marks values that `validate` does not set: no computation gives this NaN */
    for (int i = 0; i < WF_FIT_METRICS; i++)
        value[i] = untouched;
    wf_status status = f->task.validate(f->o.ctx, f->tape, value, &why);
    if (wf_tape_error(f->tape)->code == WF_ERR_CANCELLED) /* the task may have returned another status */
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

/* Compares the validation with the best one so far, and updates best value, patience and `early`. */
static void compare(struct fit *f)
{
    const bool higher = f->task.metric[f->task.best].higher;
    const double value = f->value[f->task.best];
    f->improved = higher ? !(value <= f->best) : !(value >= f->best); /* true for the first validation, because f->best is NaN before it */
    f->since_best = f->improved ? 0 : f->since_best + 1;
    if (f->improved)
        f->best = value;
    f->early = patience_is_out(f);
}

static wf_status save_best(struct fit *f)
{
    if (!f->improved || !f->o.out)
        return WF_OK;
    f->pace.saving = true;
    pace_report(f, "saving", 0, 0);
    f->pace.saving = false;
    return f->ranks.rank == 0 ? weights_save(f, "best.safetensors") : WF_OK;
}

bool patience_is_out(const struct fit *f)
{
    return f->o.patience > 0 && f->since_best >= f->o.patience;
}

wf_status fit_validate(struct fit *f)
{
    struct timespec begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    f->validation_due = true; /* until the end: if the validation is cancelled, a resume repeats it */
    f->saved = false;         /* the validation changes the state: `best` and `since_best` */
    f->pace.validating = true;
    pace_report(f, "validating", 0, 0);
    if (!wf_ranks_settle(&f->ranks))
        refuse_bad_weights(f);
    if (wf_ranks_agree(&f->ranks)) /* stop here on all ranks: in wf_train they share the work of a validation */
        return f->error->code;
    measure(f);
    f->pace.validating = f->pace.validation_left = false;
    limit_rename(f);
    /* All ranks use the values of rank 0, because a program's `validate` may give other values on other ranks. */
    if (wf_ranks_agree(&f->ranks) || wf_ranks_broadcast(&f->ranks, f->value, sizeof f->value))
        return f->error->code;
    if (!isfinite(f->value[f->task.best]))
        return explain_validation(f);
    f->validation_due = false;
    compare(f);
    if (save_best(f) || report(f, WF_EVENT_VALID, NULL) || (f->ranks.rank == 0 && report_sample(f)))
        return f->error->code;
    limit_measure(&f->limit.validation, &begin);
    f->pace.validation = seconds_since(&begin);
    return WF_OK;
}
