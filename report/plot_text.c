/* SPDX-License-Identifier: MIT */
/* Runs as a drawing of characters, for terminals. */
#include <inttypes.h>
#include <string.h>

#include <weft/internal/needs.h>
#include <weft/memory.h>

#include "plot_runs.h"

enum { LEFT = 9, RIGHT = 4, LEAST_COLUMNS = 40, LEAST_LOSS = 9, LEAST_RATE = 6 };

/* What gnuplot's linetypes 1, 2, ... draw with; runs beyond the last begin again. Validation: o of one run, else A, B, ... */
static const char lines[] = "*#$%@&=";
enum { LINES = sizeof lines - 1 };

static char letter_of(const struct plot *p, int64_t run)
{
    return p->count == 1 ? 'o' : (char)('A' + run % 26);
}

static void add_line(const struct curve *c, char kind, int64_t run, struct wf_string *s)
{
    if (plot_curve(c, kind, run, s))
        wf_string_format(s, "lines lt %d", 1 + (int)(run % LINES));
}

static void add_page(int columns, int rows, struct wf_string *s)
{
    script_terminal(s, PICTURE_TEXT, columns, rows, 0);
    wf_string_format(s, "set lmargin %d\nset rmargin %d\nset tmargin 0\nset border 3\nunset key\nset tics nomirror out scale 0.5\n", LEFT,
                     RIGHT);
}

/* Two drawings, one after the other. */
static void add_all(struct plot *p, int columns, int loss_rows, int rate_rows, struct wf_string *s)
{
    bool rate = !axis_empty(&p->lr);
    plot_finish(p, 0.7 / loss_rows);
    plot_add_data(p, s);
    add_page(columns, rate ? loss_rows : loss_rows + rate_rows + 1, s);
    wf_string_format(s, "set bmargin %d\n", rate ? 0 : 1);
    axis_script(&p->x, 'x', !rate, axis_fit(&p->x, columns - LEFT - RIGHT), s);
    axis_script(&p->loss, 'y', true, loss_rows / 2, s);
    for (int64_t i = 0; i < p->count; i++)
        add_line(&p->run[i].mean, 'm', i, s);
    for (int64_t i = 0; i < p->count; i++)
        if (plot_curve(&p->run[i].valid, 'v', i, s))
            wf_string_format(s, "points pt \"%c\"", letter_of(p, i));
    wf_string_text(s, "\n");
    if (!rate)
        return;
    add_page(columns, rate_rows, s);
    wf_string_format(s, "set bmargin 1\n");
    axis_script(&p->x, 'x', true, axis_fit(&p->x, columns - LEFT - RIGHT), s);
    axis_script(&p->lr, 'y', true, rate_rows / 2, s);
    for (int64_t i = 0; i < p->count; i++)
        add_line(&p->run[i].lr, 'r', i, s);
    wf_string_format(s, "\n");
}

/* One line a run: what draws it, and its name. */
static void add_head(const struct plot *p, struct wf_string *s)
{
    const char *loss = p->loss.log ? "loss (nats per token), logarithmic" : "loss (nats per token)";
    if (p->count > 1)
        wf_string_format(s, "%s\n", loss);
    for (int64_t i = 0; i < p->count; i++) {
        const struct plot_run *run = &p->run[i];
        wf_string_format(s, "%s%s", p->count == 1 ? loss : "  ", p->count == 1 ? ": " : "");
        if (run->mean.count > 0)
            wf_string_format(s, "%c training  ", lines[i % LINES]);
        else if (p->count > 1)
            wf_string_format(s, "            ");
        if (run->valid.count > 0)
            wf_string_format(s, "%c validation  ", letter_of(p, i));
        else if (p->count > 1)
            wf_string_format(s, "              ");
        wf_string_format(s, "%s\n", run->name);
    }
}

/* A page of gnuplot's without blanks at the ends of lines; begins behind the form feed and ends before the next. Returns where it ends. */
static const char *add_drawn(const char *page, struct wf_string *s)
{
    page += *page == '\f';
    while (*page && *page != '\f') {
        size_t length = strcspn(page, "\n\f"), keep = length;
        while (keep > 0 && page[keep - 1] == ' ')
            keep--;
        wf_string_format(s, "%.*s\n", (int)keep, page);
        page += length + (page[length] == '\n');
    }
    return page;
}

wf_status wf_plot_text(const char *const *runs, int64_t count, const struct wf_plot_options *options, struct wf_string *out,
                       wf_error *error)
{
    if (wf_needs(error, "runs, out", wf_some(runs, count), out))
        return WF_ERR_ARGUMENT;
    static const struct wf_plot_options defaults;
    const struct wf_plot_options *o = options ? options : &defaults;
    if (o->columns < 0 || o->rows < 0 || o->columns > 10000 || o->rows > 10000)
        return wf_error_set(error, WF_ERR_ARGUMENT, "a drawing of %d columns and %d rows is out of range, 0 to 10000", o->columns, o->rows);
    int columns = o->columns ? o->columns : 80, rows = o->rows ? o->rows : 24;
    columns = columns > LEAST_COLUMNS ? columns : LEAST_COLUMNS;
    int64_t head = count == 1 ? 1 : count + 1, before = out->length;
    int free_rows = head + 2 < rows ? rows - (int)head - 2 : 0;
    int rate_rows = free_rows / 3 > LEAST_RATE ? free_rows / 3 : LEAST_RATE;
    int loss_rows = free_rows - rate_rows > LEAST_LOSS ? free_rows - rate_rows : LEAST_LOSS;
    struct plot p;
    struct wf_string s = {0}, drawn = {0};
    wf_status status = plot_load(runs, count, o->log, columns, &p, error);
    if (status == WF_OK) {
        add_all(&p, columns, loss_rows, rate_rows, &s);
        status = gnuplot_run(&s, &drawn, error);
    }
    if (status == WF_OK) {
        add_head(&p, out);
        const char *rest = add_drawn(drawn.data, out);
        if (*rest) {
            plot_add_rate(&p, out);
            wf_string_char(out, '\n');
            add_drawn(rest, out);
        }
        wf_string_format(out, "%*s\n", LEFT + (columns - LEFT - RIGHT) / 2 + 2, "step");
        if (out->failed) {
            status = wf_error_set(error, WF_ERR_MEMORY, "no memory for a drawing of %" PRId64 " runs", count);
            wf_string_cut(out, before);
            out->failed = false;
        }
    }
    wf_string_free(&drawn);
    wf_string_free(&s);
    plot_free(&p);
    return status;
}
