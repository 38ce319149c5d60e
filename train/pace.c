/* SPDX-License-Identifier: MIT */
/* Estimates the remaining time of a training from the measured times of updates, validations and saves. */
#include <math.h>

#include "loop.h"

void pace_update(struct fit *f, double seconds)
{
    f->pace.updates++;
    f->pace.update += (seconds - f->pace.update) / (double)f->pace.updates;
}

/* The expected seconds of a validation. Before the first one, assumes that a forward takes a third of the time of an update on the same
 * data. */
static double validation(const struct fit *f)
{
    return f->pace.validation > 0 ? f->pace.validation : f->pace.update * f->pace.validation_share / 3;
}

/* The expected seconds of a save. Before the first one, assumes that COPIES values are written for each parameter, the most that is usual:
 * the state holds the weights and two moments, and up to two other files hold the weights again. */
static double save(const struct fit *f)
{
    enum { COPIES = 5 };
    static const double bytes_per_second = 4e8;
    if (!f->o.out)
        return 0;
    return f->limit.save > 0 ? f->limit.save : (double)(COPIES * parameters_of(f)) * sizeof(wf_real) / bytes_per_second;
}

/* The number of multiples of `every` among begin + 1 .. end - 1. */
static int64_t between(int64_t every, int64_t begin, int64_t end)
{
    return every > 0 && end > begin ? (end - 1) / every - begin / every : 0;
}

double pace_left(const struct fit *f)
{
    const int64_t last = f->o.steps;
    const bool ended = f->step >= last;
    double left = save(f); /* the save at the end */
    if (f->pace.updates == 0)
        return NAN;
    if (!ended)
        left += (double)(last - f->step) * f->pace.update + (double)between(f->o.save_every, f->step, last) * save(f);
    if (f->task.validate && !ended)
        left += (double)(between(f->o.valid_every, f->step, last) + 1) * validation(f);
    if (f->pace.validating)
        left += validation(f) * (1 - f->pace.share);
    else if (f->pace.validation_left)
        left += validation(f);
    if (f->pace.save_left && !ended)
        left += save(f);
    return left;
}

double pace_expected(const struct fit *f)
{
    return f->pace.validating ? validation(f) : f->pace.saving ? save(f) : 0;
}

/* Reports the progress of a validation or a save. Cannot fail, because a progress event writes no line of the log. */
wf_status pace_report(struct fit *f, const char *text, int64_t done, int64_t total)
{
    f->pace.done = done;
    f->pace.total = total;
    f->pace.share = total > 0 ? (double)done / (double)total : 0;
    return report(f, WF_EVENT_PROGRESS, text);
}
