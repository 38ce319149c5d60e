/* SPDX-License-Identifier: MIT */
/* Runs as a picture: losses above, the learning rate below, the legend beside them, where it covers nothing. */
#include <inttypes.h>

#include <weft/file.h>
#include <weft/internal/needs.h>
#include <weft/memory.h>

#include "plot_runs.h"

/* Sizes in pixels of an SVG. */
enum {
    LEFT = 112,
    PANEL = 760,
    TOP = 46,
    LOSS = 400,
    BETWEEN = 26,
    RATE = 130,
    BOTTOM = 68,
    FONT = 14,
    LINE = 20,
    LETTER = 9,
    SAMPLE = 46,
    LEGEND = LEFT + PANEL + 22,
    LOSS_TICS = 9,
    RATE_TICS = 4
};

/* Okabe and Ito's colours, which the colour-blind tell apart, without their yellow, which nobody sees on white. Beyond seven runs they
 * come again with other marks. */
static const uint32_t colours[] = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000};
enum { COLOURS = sizeof colours / sizeof *colours };
static const int marks[] = {7, 5, 9, 13, 11, 6, 4};

static uint32_t colour_of(int64_t run)
{
    return colours[run % COLOURS];
}

/* For the noise behind the means. */
static uint32_t faint(uint32_t colour)
{
    uint32_t out = 0;
    for (int shift = 0; shift < 24; shift += 8)
        out |= (255 - (255 - (colour >> shift & 255)) * 32 / 100) << shift;
    return out;
}

/* Validation of a single run has another colour than its training. */
static uint32_t valid_colour(const struct plot *p, int64_t run)
{
    return colour_of(p->count == 1 ? 1 : run);
}

static int mark_of(int64_t run)
{
    return marks[(run + run / COLOURS) % (int64_t)(sizeof marks / sizeof *marks)];
}

struct layout {
    int width, height;
};

static struct layout layout_of(const struct plot *p)
{
    int longest = text_columns("training (running mean)"), height = TOP + LOSS + BETWEEN + RATE + BOTTOM;
    int64_t lines = p->count > 1 ? 5 + p->count : 5;
    for (int64_t i = 0; i < p->count && p->count > 1; i++) {
        int columns = text_columns(p->run[i].name);
        longest = columns > longest ? columns : longest;
    }
    return (struct layout){LEGEND + SAMPLE + longest * LETTER, height > TOP + lines * LINE ? height : (int)(TOP + lines * LINE)};
}

/* A panel between two heights, in pixels from above. */
static void add_panel(struct wf_string *s, const struct layout *l, int from, int to, const char *what)
{
    script_margins(s, (double)LEFT / l->width, (double)(LEFT + PANEL) / l->width, 1 - (double)from / l->height, 1 - (double)to / l->height);
    wf_string_text(s, "unset label\n");
    script_label(s, what, 18.0 / l->width, 1 - (from + to) / 2.0 / l->height, "center rotate by 90 tc rgb \"#333333\"");
}

static void add_steps(struct wf_string *s, const struct layout *l, int to)
{
    script_label(s, "step", (LEFT + PANEL / 2.0) / l->width, 1 - (to + 50.0) / l->height, "center tc rgb \"#333333\"");
}

/* One point alone makes no line. */
static void add_line(const struct curve *c, char kind, int64_t run, double width, struct wf_string *s)
{
    if (!plot_curve(c, kind, run, s))
        return;
    if (c->count == 1)
        wf_string_format(s, "points pt %d ps 0.7", mark_of(run));
    else
        wf_string_format(s, "lines lw %g", width);
    wf_string_format(s, " lc rgb 0x%06x", colour_of(run));
}

static void add_losses(const struct plot *p, struct wf_string *s)
{
    for (int64_t i = 0; i < p->count; i++)
        if (plot_curve(&p->run[i].raw, 't', i, s))
            wf_string_format(s, "lines lw 0.6 lc rgb 0x%06x", faint(colour_of(i)));
    for (int64_t i = 0; i < p->count; i++)
        add_line(&p->run[i].mean, 'm', i, 1.3, s);
    for (int64_t i = 0; i < p->count; i++)
        if (plot_curve(&p->run[i].valid, 'v', i, s))
            wf_string_format(s, "linespoints lw 2 pt %d ps 0.7 pi %" PRId64 " lc rgb 0x%06x", mark_of(i), 1 + p->run[i].valid.count / 30,
                             valid_colour(p, i));
    wf_string_text(s, "\n");
}

/* --- the legend ---------------------------------------------------------------------------------------------------- */

/* gnuplot's own would be cut into columns at the height of the panel. mark 0: none. */
static void add_entry(struct wf_string *s, const struct layout *l, int line, double width, int mark, uint32_t colour, const char *title)
{
    double y = 1 - (TOP + 6.0 + line * LINE) / l->height, from = 1.0 * LEGEND / l->width, to = (LEGEND + 34.0) / l->width;
    wf_string_format(s, "set arrow from screen %.6f,%.6f to screen %.6f,%.6f nohead lw %g lc rgb 0x%06x\n", from, y, to, y, width, colour);
    if (mark)
        wf_string_format(s, "set label \"\" at screen %.6f,%.6f point pt %d ps 0.7 lc rgb 0x%06x\n", (from + to) / 2, y, mark, colour);
    script_label(s, title, (LEGEND + 42.0) / l->width, y, "left tc rgb \"#222222\"");
}

static void add_legend(const struct plot *p, const struct layout *l, struct wf_string *s)
{
    bool one = p->count == 1;
    uint32_t grey = 0x555555;
    int line = 0;
    if (p->trained)
        add_entry(s, l, line++, 1.3, 0, one ? colour_of(0) : grey, p->noisy ? "training (running mean)" : "training");
    if (p->noisy)
        add_entry(s, l, line++, 1.3, 0, faint(one ? colour_of(0) : grey), "training (as logged)");
    if (p->validated)
        add_entry(s, l, line++, 2, mark_of(0), one ? valid_colour(p, 0) : grey, "validation");
    line++;
    for (int64_t i = 0; i < p->count && !one; i++) {
        bool marked = p->run[i].valid.count > 0 || p->run[i].mean.count == 1;
        add_entry(s, l, line++, 2, marked ? mark_of(i) : 0, colour_of(i), p->run[i].name);
    }
}

static void add_all(struct plot *p, enum picture_format format, struct wf_string *s)
{
    struct layout l = layout_of(p);
    plot_finish(p, 0.03);
    script_terminal(s, format, l.width, l.height, FONT);
    plot_add_data(p, s);
    wf_string_format(s, "set multiplot\n"
                        "set border 3 lc rgb \"#666666\"\nset tics nomirror out tc rgb \"#333333\"\n"
                        "set grid xtics ytics lt 1 lw 0.5 lc rgb \"#dddddd\"\nset clip two\nunset key\n");
    bool rate = !axis_empty(&p->lr);
    int end = rate ? TOP + LOSS : TOP + LOSS + BETWEEN + RATE;
    add_panel(s, &l, TOP, end, p->loss.log ? "loss (nats per token), logarithmic" : "loss (nats per token)");
    if (p->count == 1) {
        wf_string_format(s, "set title ");
        script_quote(s, p->run[0].name, false);
        wf_string_format(s, " offset 0,-0.3 tc rgb \"#222222\"\n");
    }
    axis_script(&p->x, 'x', !rate, axis_fit(&p->x, PANEL / LETTER), s);
    axis_script(&p->loss, 'y', true, LOSS_TICS, s);
    if (!rate)
        add_steps(s, &l, end);
    add_legend(p, &l, s);
    add_losses(p, s);
    if (rate) {
        wf_string_format(s, "unset arrow\nunset title\n");
        struct wf_string what = {0};
        plot_add_rate(p, &what);
        add_panel(s, &l, TOP + LOSS + BETWEEN, TOP + LOSS + BETWEEN + RATE, what.data ? what.data : "");
        wf_string_free(&what);
        add_steps(s, &l, TOP + LOSS + BETWEEN + RATE);
        axis_script(&p->x, 'x', true, axis_fit(&p->x, PANEL / LETTER), s);
        axis_script(&p->lr, 'y', true, RATE_TICS, s);
        for (int64_t i = 0; i < p->count; i++)
            add_line(&p->run[i].lr, 'r', i, 1.6, s);
        wf_string_text(s, "\n");
    }
    wf_string_format(s, "unset multiplot\n");
}

wf_status wf_plot_save(const char *const *runs, int64_t count, const struct wf_plot_options *options, const char *path, wf_error *error)
{
    if (wf_needs(error, "runs, path", wf_some(runs, count), path))
        return WF_ERR_ARGUMENT;
    enum picture_format format;
    wf_status status = picture_format_of(path, &format, error);
    if (status != WF_OK)
        return status;
    struct plot p;
    struct wf_string s = {0};
    struct wf_string picture = {0};
    status = plot_load(runs, count, options && options->log, PANEL, &p, error);
    if (status == WF_OK) {
        add_all(&p, format, &s);
        status = gnuplot_run(&s, &picture, error);
    }
    if (status == WF_OK)
        status = wf_file_save(path, picture.data, picture.length, error);
    wf_string_free(&picture);
    wf_string_free(&s);
    plot_free(&p);
    return status;
}
