/* SPDX-License-Identifier: MIT */
/* The time limit, .max_time: the training ends before that time has passed, early enough for a last save. Between updates rank 0 looks at
 * its clock and decides for all ranks whether to go on. */
#include <inttypes.h>

#include <weft/internal/minmax.h>
#include <weft/internal/text.h>

#include "loop.h"

/* The next update, validation and save may take longer than all earlier ones: the time left must be QUARTERS / 4 times the longest times so
 * far, plus least_room. */
enum { QUARTERS = 5 };
static const double least_room = 0.5; /* seconds */

static double left(const struct fit *f)
{
    return f->o.max_time - seconds_since(&f->start);
}

static double room(double seconds)
{
    return seconds * QUARTERS / 4 + least_room;
}

static bool limited(const struct fit *f)
{
    return f->o.max_time > 0;
}

bool limit_passed(const struct fit *f)
{
    return limited(f) && left(f) <= 0;
}

void limit_measure(double *longest, const struct timespec *begin)
{
    const double seconds = seconds_since(begin);
    *longest = WF_MAX(seconds, *longest);
}

wf_status limit_measure_save(struct fit *f, const struct timespec *begin)
{
    limit_measure(&f->limit.save, begin);
    f->limit.save_measured = true;
    if (limited(f))
        wf_ranks_broadcast(&f->ranks, &f->limit.save, sizeof f->limit.save);
    return f->error->code;
}

bool limit_wants_save(const struct fit *f)
{
    return limited(f) && !f->limit.save_measured;
}

static bool done_nothing(const struct fit *f)
{
    return !(f->limit.update > 0) && !(f->limit.validation > 0);
}

wf_status limit_check(struct fit *f, bool validates, bool saves)
{
    const struct limit *l = &f->limit;
    if (f->ranks.rank > 0 || !limited(f))
        return WF_OK;
    const double wanted = done_nothing(f) ? 0 : room(l->update + (validates ? l->validation : 0) + l->save * (saves ? 2 : 1));
    return left(f) > wanted ? WF_OK : wf_error_set(f->error, WF_ERR_TIME, "the time limit is near");
}

bool limit_cuts(struct fit *f)
{
    if (!limited(f) || left(f) > (done_nothing(f) ? 0 : room(f->limit.save)))
        return false;
    f->limit.cut = true;
    return true;
}

wf_status limit_rename(struct fit *f)
{
    if (f->limit.cut && f->error->code == WF_ERR_CANCELLED)
        f->error->code = WF_ERR_TIME;
    return f->error->code;
}

const char *limit_text(const struct fit *f, char text[160])
{
    char limit[WF_NUMBER_SIZE];
    snprintf(text, 160, "the time limit of %s is near%s%s%s", wf_text_seconds(f->o.max_time, limit), f->o.out ? "; " : "",
             f->o.out ? fit_resume_name(f) : "", f->o.out ? " continues from here" : "");
    return text;
}

wf_status limit_error(struct fit *f)
{
    char limit[WF_NUMBER_SIZE];
    return wf_error_set(f->error, WF_ERR_TIME, "ended after step %" PRId64 " of %" PRId64 ", before the time limit of %s%s%s%s", f->step,
                        f->o.steps, wf_text_seconds(f->o.max_time, limit), f->o.out ? "; " : "", f->o.out ? fit_resume_name(f) : "",
                        f->o.out ? " continues from there" : "");
}

wf_status limit_too_short(struct fit *f)
{
    char limit[WF_NUMBER_SIZE];
    if (!done_nothing(f))
        return WF_OK;
    wf_error_clear(f->error);
    return wf_error_set(f->error, WF_ERR_ARGUMENT, "the time limit of %s passed before %s: set a longer one",
                        wf_text_seconds(f->o.max_time, limit),
                        f->validation_due ? "the validation that is due was done" : "an update was done");
}
