/* SPDX-License-Identifier: MIT */
/* Learning-rate schedules. */
#include <math.h>
#include <string.h>

#include <weft/optim.h>

static const char *const names[] = {
    [WF_SCHEDULE_CONSTANT] = "constant", [WF_SCHEDULE_COSINE] = "cosine", [WF_SCHEDULE_INVERSE_SQRT] = "inverse_sqrt"};

double wf_schedule_lr(const struct wf_schedule *s, int64_t step)
{
    double t = (double)step, w = (double)s->warmup;
    if (s->kind == WF_SCHEDULE_INVERSE_SQRT) {
        t += 1;
        return w > 0 ? s->peak * fmin(t / w, sqrt(w / t)) : s->peak / sqrt(t);
    }
    if (step < s->warmup)
        return s->peak * (t + 1) / (w + 1);
    if (s->kind == WF_SCHEDULE_CONSTANT)
        return s->peak;
    double whole = (double)(s->steps - s->warmup), done = whole > 0 ? fmin((t - w) / whole, 1) : 1;
    return s->min + 0.5 * (1 + cos(acos(-1.0) * done)) * (s->peak - s->min);
}

bool wf_schedule_parse(const char *name, enum wf_schedule_kind *out)
{
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(names[i], name) == 0) {
            *out = (enum wf_schedule_kind)i;
            return true;
        }
    return false;
}

const char *wf_schedule_name(enum wf_schedule_kind kind)
{
    return names[kind];
}
