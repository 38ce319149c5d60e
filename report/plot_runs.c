/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <weft/internal/text.h>
#include <weft/memory.h>

#include "plot_runs.h"

/* Fewer lines than this are drawn as they are. */
enum { NOISY = 40 };

static void see(struct plot *p, const struct curve *c, struct axis *axis)
{
    for (int64_t i = 0; i < c->count; i++) {
        axis_see(&p->x, c->point[i].step);
        axis_see(axis, c->point[i].value);
    }
}

/* Leaves out what the axis can't show. gnuplot draws gaps there, but dies of a curve that is one gap. */
static void keep_shown(struct curve *c, const struct axis *axis)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < c->count; i++)
        if (!axis->log || c->point[i].value > 0)
            c->point[kept++] = c->point[i];
    c->count = kept;
}

/* Ranges are those of all points that there are, not of those that are left to draw. */
static wf_status take(struct plot *p, struct plot_run *run, const struct curves *in, int64_t columns, wf_error *error)
{
    const struct curve *train = &in->of[CURVE_TRAIN], *valid = &in->of[CURVE_VALID], *lr = &in->of[CURVE_LR];
    see(p, train, &p->loss);
    see(p, valid, &p->loss);
    see(p, lr, &p->lr);
    bool noisy = train->count >= NOISY;
    struct curve mean = {0};
    wf_status status = curve_smooth(train, noisy ? 1 + train->count / 60 : 0, &mean, error);
    if (status == WF_OK)
        status = curve_thin(&mean, columns / 2, &run->mean, error);
    if (status == WF_OK && noisy)
        status = curve_thin(train, columns, &run->raw, error);
    if (status == WF_OK)
        status = curve_thin(valid, columns / 2, &run->valid, error);
    if (status == WF_OK)
        status = curve_thin(lr, columns / 2, &run->lr, error);
    curve_free(&mean);
    keep_shown(&run->mean, &p->loss);
    keep_shown(&run->raw, &p->loss);
    keep_shown(&run->valid, &p->loss);
    p->noisy |= run->raw.count > 0;
    p->trained |= run->mean.count > 0;
    p->validated |= run->valid.count > 0;
    return status;
}

static wf_status name_all(struct plot *p, const char *const *runs, wf_error *error)
{
    char **name = wf_alloc_zero((size_t)p->count, sizeof *name);
    if (!name)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for names of runs");
    wf_status status = plot_names(runs, p->count, name, error);
    for (int64_t i = 0; i < p->count; i++)
        p->run[i].name = name[i];
    wf_free(name);
    return status;
}

wf_status plot_load(const char *const *runs, int64_t count, bool log, int64_t columns, struct plot *out, wf_error *error)
{
    *out = (struct plot){.x = axis_new(false), .loss = axis_new(log), .lr = axis_new(false)};
    out->x.whole = true;
    if (count < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "no run to plot");
    out->run = wf_alloc_zero((size_t)count, sizeof *out->run);
    if (!out->run)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for %" PRId64 " runs", count);
    out->count = count;
    wf_status status = WF_OK;
    for (int64_t i = 0; i < count && status == WF_OK; i++) {
        struct curves curves;
        status = curves_read(runs[i], &curves, error);
        if (status == WF_OK)
            status = take(out, &out->run[i], &curves, columns, error);
        curves_free(&curves);
    }
    if (status == WF_OK && axis_empty(&out->loss))
        status = wf_error_set(error, WF_ERR_ARGUMENT, "no loss is above 0, which a logarithmic axis needs: leave the logarithm out");
    return status == WF_OK ? name_all(out, runs, error) : status;
}

void plot_free(struct plot *plot)
{
    for (int64_t i = 0; i < plot->count; i++) {
        struct plot_run *run = &plot->run[i];
        wf_free(run->name);
        curve_free(&run->raw);
        curve_free(&run->mean);
        curve_free(&run->valid);
        curve_free(&run->lr);
    }
    wf_free(plot->run);
    *plot = (struct plot){0};
}

void plot_add_data(const struct curve *c, char kind, int64_t run, struct script *s)
{
    if (c->count == 0)
        return;
    script_add(s, "$%c%" PRId64 " << END\n", kind, run);
    for (int64_t i = 0; i < c->count; i++)
        script_add(s, "%.12g %.9g\n", c->point[i].step, c->point[i].value);
    script_add(s, "END\n");
}

void plot_finish(struct plot *p, int letters, int losses, int rates, double margin)
{
    char longest[WF_NUMBER_SIZE];
    int steps = letters / ((int)strlen(wf_text_count((int64_t)fmin(p->x.high, 9e18), longest)) + 3);
    steps = steps < 2 ? 2 : steps < 10 ? steps : 10;
    if (p->x.low <= 0.05 * p->x.high)
        p->x.low = 0;
    axis_finish(&p->x, 0, steps);
    axis_finish(&p->loss, margin, losses);
    if (axis_empty(&p->lr))
        return;
    bool from_zero = p->lr.low >= 0;
    if (from_zero)
        p->lr.low = 0;
    axis_finish(&p->lr, 0.06, rates);
    if (from_zero)
        p->lr.low = 0;
}
