/* SPDX-License-Identifier: MIT */
/* Learning-rate schedules. */
#include <math.h>

#include <weft/optim.h>

double wf_schedule_lr(const struct wf_schedule *s, int64_t step)
{
    if (!s)
        return NAN;
    double t = (double)step, w = (double)s->warmup;
    if (s->kind == WF_SCHEDULE_INVERSE_SQRT) {
        t += 1;
        return w > 0 ? s->peak * fmin(t / w, sqrt(w / t)) : s->peak / sqrt(t);
    }
    if (step < s->warmup)
        return s->peak * (t + 1) / (w + 1);
    if (s->kind == WF_SCHEDULE_CONSTANT)
        return s->peak;
    double whole = (double)s->steps - w, done = whole > 0 ? fmin((t - w) / whole, 1) : 1;
    return s->min + 0.5 * (1 + cos(acos(-1.0) * done)) * (s->peak - s->min);
}
