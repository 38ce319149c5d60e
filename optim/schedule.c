/* SPDX-License-Identifier: MIT */
/* Learning-rate schedules. */
#include <math.h>

#include <weft/optim.h>

/* The share of the way from the beginning of a curve to its end that is still to go at x, 0 <= x <= 1. */
static double left(enum wf_schedule_curve curve, double x)
{
    if (curve == WF_CURVE_COSINE)
        return 0.5 * (1 + cos(acos(-1.0) * x));
    return curve == WF_CURVE_SQRT ? 1 - sqrt(x) : 1 - x;
}

/* How far t is from `begin` to `begin` + `length`, from 0 to 1. */
static double progress(double t, double begin, double length)
{
    return length > 0 ? fmin(fmax((t - begin) / length, 0), 1) : 1;
}

static double down(const struct wf_schedule *s, enum wf_schedule_curve curve, double x)
{
    return s->min + left(curve, x) * (s->peak - s->min);
}

static double one_cycle(const struct wf_schedule *s, double t)
{
    const double start = s->start > 0 ? s->start : s->peak / 25, last = (double)s->steps - 1;
    const double top = (s->warmup > 0 ? (double)s->warmup : 0.3 * (double)s->steps) - 1; /* the step with the peak */
    const enum wf_schedule_curve curve = s->curve == WF_CURVE_DEFAULT ? WF_CURVE_COSINE : s->curve;
    if (t <= top)
        return s->peak + left(curve, progress(t, 0, top)) * (start - s->peak);
    return down(s, curve, progress(t, top, last - top));
}

static double stable_then_down(const struct wf_schedule *s, double t)
{
    const double decay = s->decay > 0 ? (double)s->decay : fmax(1, floor((double)s->steps / 10));
    return down(s, s->curve, progress(t, (double)s->steps - decay, decay));
}

static bool ends(enum wf_schedule_kind kind)
{
    return kind == WF_SCHEDULE_COSINE || kind == WF_SCHEDULE_LINEAR || kind == WF_SCHEDULE_WSD || kind == WF_SCHEDULE_ONE_CYCLE;
}

double wf_schedule_lr(const struct wf_schedule *s, int64_t step)
{
    if (!s || (s->kind == WF_SCHEDULE_FUNCTION && !s->function) || (s->steps < 1 && ends(s->kind)))
        return NAN;
    double t = (double)step, w = (double)s->warmup;
    if (s->kind == WF_SCHEDULE_FUNCTION)
        return s->function(s->ctx, step);
    if (s->kind == WF_SCHEDULE_ONE_CYCLE)
        return one_cycle(s, t);
    if (s->kind == WF_SCHEDULE_INVERSE_SQRT) {
        t += 1;
        return w > 0 ? s->peak * fmin(t / w, sqrt(w / t)) : s->peak / sqrt(t);
    }
    if (step < s->warmup)
        return s->peak * (t + 1) / (w + 1);
    if (s->kind == WF_SCHEDULE_CONSTANT)
        return s->peak;
    if (s->kind == WF_SCHEDULE_WSD)
        return stable_then_down(s, t);
    return down(s, s->kind == WF_SCHEDULE_LINEAR ? WF_CURVE_LINEAR : WF_CURVE_COSINE, progress(t, w, (double)s->steps - w));
}
