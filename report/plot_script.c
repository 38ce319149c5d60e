/* SPDX-License-Identifier: MIT */
/* Code that plot.c and plot_text.c share: it writes curves as data for gnuplot, sets the ranges of the axes, and makes titles. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plot_runs.h"

void plot_add_data(const struct plot *p, struct wf_string *s)
{
    for (int k = 0; k < p->metrics; k++)
        for (int64_t i = 0; i < p->count && p->metric[k].panel >= 0; i++) {
            const struct curve *const curves[] = {&p->run[i].of[k].raw, &p->run[i].of[k].mean};
            for (int c = 0; c < 2; c++) {
                wf_string_format(s, "$%c%d_%" PRId64 " << END\n", "wm"[c], k, i);
                for (const struct point *at = curves[c]->point, *end = at + curves[c]->count; at < end; at++)
                    wf_string_format(s, "%.12g %.9g\n", at->x, at->value / p->panel[p->metric[k].panel].y.unit);
                wf_string_text(s, "END\n");
            }
        }
}

bool plot_curve(const struct curve *c, char kind, int metric, int64_t run, struct wf_string *s)
{
    bool first = s->failed || s->data[s->length - 1] == '\n';
    return c->count > 0 && wf_string_format(s, "%s$%c%d_%" PRId64 " with ", first ? "plot " : ", ", kind, metric, run);
}

static bool has(const struct plot *p, int64_t run, bool points)
{
    bool found = false;
    for (int k = 0; k < p->metrics; k++)
        found |= p->run[run].of[k].mean.count > 0 && p->metric[k].points == points &&
                 (points || !p->trained || !p->panel[p->metric[k].panel].rate);
    return found;
}

bool plot_has_line(const struct plot *p, int64_t run)
{
    return has(p, run, false);
}

bool plot_has_points(const struct plot *p, int64_t run)
{
    return has(p, run, true);
}

/* --- axes ---------------------------------------------------------------------------------------------------------- */

static void finish_rate(struct axis *a)
{
    bool from_zero = a->low >= 0;
    if (from_zero)
        a->low = 0;
    axis_finish(a, 0.06);
    if (from_zero)
        a->low = 0;
    /* write "3" with the title "learning rate (1e-4)", because gnuplot would mix 0.0003 and 5e-05 */
    if (a->high > 0 && a->high < 0.1)
        a->unit = pow(10, floor(log10(a->high / 1.06)));
}

static void count_beyond(const struct plot *p, int panel, struct plot_panel *out)
{
    for (int64_t i = 0; i < p->count; i++)
        for (int k = 0; k < p->metrics; k++)
            for (int64_t j = 0; j < p->read[i].of[k].count && p->metric[k].panel == panel; j++) {
                double value = p->read[i].of[k].point[j].value;
                out->above += value > out->y.high;
                out->below += value < out->y.low && !(out->y.log && value <= 0);
            }
}

void plot_finish(struct plot *p, double margin)
{
    if (p->x.low <= 0.05 * p->x.high)
        p->x.low = 0;
    if (p->x.high - p->x.low < 1 && !p->x.broken) {
        p->x.low -= 1;
        p->x.high += 1;
    }
    axis_finish(&p->x, 0);
    for (int i = 0; i < p->panels; i++) {
        struct plot_panel *panel = &p->panel[i];
        if (panel->rate)
            finish_rate(&panel->y);
        else
            axis_finish(&panel->y, margin);
        count_beyond(p, i, panel);
    }
}

/* --- titles -------------------------------------------------------------------------------------------------------- */

void plot_add_title(const struct plot_panel *panel, struct wf_string *s)
{
    wf_string_text(s, strcmp(panel->name, "loss") == 0 ? "loss (nats per token)"
                      : strcmp(panel->name, "lr") == 0 ? "learning rate"
                                                       : panel->name);
    if (panel->y.unit != 1)
        wf_string_format(s, " (1e%d)", (int)lround(log10(panel->y.unit)));
    if (panel->y.log)
        wf_string_text(s, ", logarithmic");
}

void plot_add_beyond(const struct plot_panel *panel, struct wf_string *s)
{
    int64_t first = panel->above ? panel->above : panel->below;
    if (first == 0)
        return;
    wf_string_format(s, "%" PRId64 " value%s %s", first, first == 1 ? "" : "s", panel->above ? "above" : "below");
    if (panel->above && panel->below)
        wf_string_format(s, " and %" PRId64 " below", panel->below);
    wf_string_text(s, " the axis");
}
