/* SPDX-License-Identifier: MIT */
/* Reads runs and prepares them for drawing: assigns metrics to panels, computes running means and the ranges of the axes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/minmax.h>
#include <weft/memory.h>

#include "plot_runs.h"

/* A curve with fewer values than this gets no running mean by default. */
enum { NOISY = 40 };

/* --- metrics and panels -------------------------------------------------------------------------------------------- */

/* Whether the names differ only in that `a` has "/train" where `b` has "/valid". If so, `base` becomes the name without that part. */
static bool is_pair(const char *a, const char *b, char base[64])
{
    static const char train[] = "/train", valid[] = "/valid";
    const char *from = strstr(a, train), *to = strstr(b, valid);
    if (!from || !to || from - a != to - b || from - a >= 64 || strncmp(a, b, (size_t)(from - a)) != 0 ||
        strcmp(from + sizeof train - 1, to + sizeof valid - 1) != 0)
        return false;
    snprintf(base, 64, "%.*s%.*s", (int)(from - a), a, 63 - (int)(from - a), from + sizeof train - 1);
    return true;
}

static bool is_rate(const char *name)
{
    return strcmp(name, "lr") == 0 || strncmp(name, "lr/", 3) == 0;
}

/* Adds a metric. NAME/train and NAME/valid share a panel; any other metric gets a new panel. */
static void add_metric(struct plot *p, const char *name)
{
    for (int i = 0; i < p->metrics; i++)
        if (strcmp(p->metric[i].name, name) == 0)
            return;
    struct plot_metric *m = &p->metric[p->metrics++];
    *m = (struct plot_metric){.name = name, .panel = -1};
    for (int i = 0; i < p->metrics - 1 && m->panel < 0; i++) {
        struct plot_panel *panel = &p->panel[p->metric[i].panel];
        if (is_pair(p->metric[i].name, name, panel->own) || is_pair(name, p->metric[i].name, panel->own)) {
            m->panel = p->metric[i].panel;
            panel->name = panel->own;
        }
    }
    if (m->panel < 0) {
        m->panel = p->panels++;
        p->panel[m->panel] = (struct plot_panel){.y = NO_AXIS, .name = name, .rate = is_rate(name)};
        if (strcmp(name, "loss/train") == 0 || strcmp(name, "loss/valid") == 0)
            p->panel[m->panel].name = "loss";
    }
}

static void choose_metrics(struct plot *p, const struct wf_plot_options *o)
{
    for (int k = 0; k < (o->metrics > 0 ? o->metrics : CURVE_KINDS); k++)
        add_metric(p, o->metrics > 0 ? o->metric[k] : curve_usual[k]);
    for (int i = 0; i < p->panels; i++)
        p->panel[i].y.log = o->log && !p->panel[i].rate;
}

/* Removes the panels without a value, for example that of a learning rate which no run has logged. */
static void drop_empty_panels(struct plot *p)
{
    int kept = 0;
    for (int i = 0; i < p->panels; i++) {
        bool empty = axis_empty(&p->panel[i].y);
        for (int k = 0; k < p->metrics; k++)
            if (p->metric[k].panel == i)
                p->metric[k].panel = empty ? -1 : kept;
        if (!empty) {
            bool own = p->panel[i].name == p->panel[i].own;
            p->panel[kept] = p->panel[i];
            p->panel[kept].name = own ? p->panel[kept].own : p->panel[kept].name;
            kept++;
        }
    }
    p->panels = kept;
}

/* --- checks -------------------------------------------------------------------------------------------------------- */

static wf_status check_options(const struct wf_plot_options *o, int64_t count, int64_t most, wf_error *error)
{
    if (count < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "no run to plot");
    if (count > most)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%" PRId64 " runs are too many to tell their lines apart: plot at most %" PRId64 "%s",
                            count, most, most < WF_PLOT_RUNS ? ", or draw a picture" : "");
    if ((unsigned)o->x > WF_PLOT_SECONDS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "x = %d is no axis: steps, tokens and seconds are 0, 1 and 2", (int)o->x);
    if (!(o->from >= 0 && o->to >= 0 && isfinite(o->from) && isfinite(o->to)) || (o->to > 0 && o->to <= o->from))
        return wf_error_set(error, WF_ERR_ARGUMENT, "from %g to %g is no part of the axis: give 0 <= from < to", o->from, o->to);
    if (o->metrics < 0 || o->metrics > WF_PLOT_METRICS || (o->metrics > 0 && !o->metric))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%" PRId64 " metrics: a picture shows 1 to %d", o->metrics, WF_PLOT_METRICS);
    for (int64_t i = 0; i < o->metrics; i++)
        if (!o->metric[i] || !o->metric[i][0])
            return wf_error_set(error, WF_ERR_ARGUMENT, "metric %" PRId64 " has no name: give one of metrics.jsonl, such as grad_norm",
                                i + 1);
    return WF_OK;
}

/* Refuses a chosen metric that no run has. */
static wf_status check_metrics(const struct plot *p, const struct wf_plot_options *o, wf_error *error)
{
    for (int k = 0; k < o->metrics; k++) {
        bool found = false;
        for (int64_t i = 0; i < p->count && !found; i++)
            found = p->read[i].of[k].count > 0;
        if (found)
            continue;
        struct wf_string names = {0};
        curves_add_names(p->read, p->count, &names);
        wf_status status = names.failed
                               ? wf_error_set(error, WF_ERR_MEMORY, "no memory for names of metrics")
                               : wf_error_set(error, WF_ERR_ARGUMENT, "no run has a metric '%s': there are %s", o->metric[k], names.data);
        wf_string_free(&names);
        return status;
    }
    return WF_OK;
}

/* Refuses options with which nothing is visible: no value lies between `from` and `to`, or a logarithmic axis has no positive value. */
static wf_status check_shown(const struct plot *p, const struct wf_plot_options *o, const struct axis *all, wf_error *error)
{
    char to[64] = "the end";
    if (axis_empty(&p->x)) {
        if (o->to > 0)
            snprintf(to, sizeof to, "%.15g", o->to);
        return wf_error_set(error, WF_ERR_ARGUMENT, "there is nothing to plot from %.15g to %s: the runs go from %s %.15g to %.15g",
                            o->from, to, p->x_name, all->low, all->high);
    }
    for (int i = 0; i < p->panels; i++)
        for (int k = 0; k < p->metrics && axis_empty(&p->panel[i].y); k++)
            for (int64_t r = 0; r < p->count && p->metric[k].panel == i; r++)
                if (p->read[r].of[k].count > 0)
                    return wf_error_set(error, WF_ERR_ARGUMENT, "no %s is above 0: leave the logarithmic axis out", p->panel[i].name);
    return WF_OK;
}

/* --- curves -------------------------------------------------------------------------------------------------------- */

/* Removes the values that a logarithmic axis cannot show. gnuplot would draw gaps there, but it crashes if a whole curve is a gap. */
static void keep_shown(struct curve *c, const struct axis *axis)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < c->count; i++)
        if (!axis->log || c->point[i].value > 0)
            c->point[kept++] = c->point[i];
    c->count = kept;
}

static int64_t count_between(const struct curve *c, const struct wf_plot_options *o)
{
    int64_t count = 0;
    for (int64_t i = 0; i < c->count; i++)
        count += c->point[i].x >= o->from && (o->to <= 0 || c->point[i].x <= o->to);
    return count;
}

/* Prepares the curve of a metric of a run. It is smoothed before it is clipped to `from` .. `to`, so that the means near these ends use the
 * values on both sides. */
static wf_status shape(struct plot *p, int64_t run, int k, const struct wf_plot_options *o, int64_t columns, wf_error *error)
{
    struct curve *in = &p->read[run].of[k], mean = {0};
    struct plot_line *out = &p->run[run].of[k];
    struct plot_panel *panel = &p->panel[p->metric[k].panel];
    int64_t shown = count_between(in, o), half = o->smooth > 0 ? o->smooth / 2 : o->smooth < 0 || shown < NOISY ? 0 : 1 + shown / 60;
    half = p->metric[k].points || panel->rate ? 0 : WF_MIN(half, in->count);
    wf_status status = curve_smooth(in, half, &mean, error);
    curve_clip(in, o->from, o->to);
    curve_clip(&mean, o->from, o->to);
    for (int64_t i = 0; i < in->count; i++) {
        axis_see(&p->x, in->point[i].x);
        if (panel->rate)
            axis_see(&panel->y, in->point[i].value);
    }
    if (status == WF_OK && !panel->rate)
        status = axis_see_most(&panel->y, in, error);
    if (status == WF_OK)
        status = curve_thin(&mean, columns / 2, &out->mean, error);
    if (status == WF_OK && half > 0)
        status = curve_thin(in, columns, &out->raw, error);
    curve_free(&mean);
    keep_shown(&out->mean, &panel->y);
    keep_shown(&out->raw, &panel->y);
    p->noisy |= out->raw.count > 0;
    p->trained |= out->mean.count > 0 && !p->metric[k].points && !panel->rate;
    p->validated |= out->mean.count > 0 && p->metric[k].points;
    return status;
}

/* --- loading ------------------------------------------------------------------------------------------------------- */

/* Names the horizontal axis. For WF_PLOT_TOKENS all runs must count the same unit. */
static wf_status name_axis(struct plot *p, enum wf_plot_x x, wf_error *error)
{
    p->x_name = x == WF_PLOT_SECONDS ? "seconds" : x == WF_PLOT_STEPS ? "step" : p->read[0].unit[0] ? p->read[0].unit : "tokens";
    for (int64_t i = 1; i < p->count && x == WF_PLOT_TOKENS; i++)
        if (p->read[i].unit[0] && strcmp(p->read[i].unit, p->x_name) != 0)
            return wf_error_set(error, WF_ERR_ARGUMENT, "some runs count %s and some %s, which are no common axis: plot over the steps",
                                p->x_name, p->read[i].unit);
    return WF_OK;
}

static wf_status read_all(struct plot *p, const char *const *runs, const struct wf_plot_options *o, struct axis *all, wf_error *error)
{
    /* p->metric has each metric once, even if the user gave it twice */
    const char *metric[WF_PLOT_METRICS];
    struct wf_plot_options once = *o;
    for (int k = 0; k < p->metrics; k++)
        metric[k] = p->metric[k].name;
    once.metric = metric;
    once.metrics = o->metrics > 0 ? p->metrics : 0;
    wf_status status = WF_OK;
    for (int64_t i = 0; i < p->count && status == WF_OK; i++) {
        status = curves_read(runs[i], &once, &p->read[i], error);
        for (int k = 0; k < p->metrics && status == WF_OK; k++)
            if (p->read[i].of[k].count > 0) {
                const struct curve *c = &p->read[i].of[k];
                axis_see(all, c->point[0].x);
                axis_see(all, c->point[c->count - 1].x);
            }
    }
    for (int k = 0; k < p->metrics; k++) {
        bool stepped = false, valid = false;
        for (int64_t i = 0; i < p->count; i++) {
            stepped |= p->read[i].stepped[k];
            valid |= p->read[i].valid[k];
        }
        p->metric[k].points = valid && !stepped;
    }
    return status == WF_OK ? check_metrics(p, &once, error) : status;
}

wf_status plot_load(const char *const *runs, int64_t count, const struct wf_plot_options *options, int64_t columns, int64_t most,
                    struct plot *out, wf_error *error)
{
    static const struct wf_plot_options defaults;
    const struct wf_plot_options *o = options ? options : &defaults;
    struct axis all = NO_AXIS;
    *out = (struct plot){.x = NO_AXIS};
    out->x.broken = o->x == WF_PLOT_SECONDS;
    wf_status status = check_options(o, count, most, error);
    if (status != WF_OK)
        return status;
    out->run = wf_alloc_zero((size_t)count, sizeof *out->run);
    out->read = wf_alloc_zero((size_t)count, sizeof *out->read);
    if (!out->run || !out->read)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for %" PRId64 " runs", count);
    out->count = count;
    choose_metrics(out, o);
    status = read_all(out, runs, o, &all, error);
    if (status == WF_OK)
        status = name_axis(out, o->x, error);
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < out->metrics && status == WF_OK; k++)
            status = shape(out, i, k, o, columns, error);
    if (status == WF_OK)
        status = check_shown(out, o, &all, error);
    drop_empty_panels(out);
    return status == WF_OK ? plot_name_runs(out, runs, error) : status;
}

void plot_free(struct plot *plot)
{
    for (int64_t i = 0; i < plot->count; i++) {
        wf_free(plot->run[i].name);
        for (int k = 0; k < WF_PLOT_METRICS; k++) {
            curve_free(&plot->run[i].of[k].raw);
            curve_free(&plot->run[i].of[k].mean);
        }
        curves_free(&plot->read[i]);
    }
    wf_free(plot->run);
    wf_free(plot->read);
    *plot = (struct plot){0};
}
