/* SPDX-License-Identifier: MIT */
/* Plots runs as an SVG or PNG: panels one below the other, and the legend to the right of them. */
#include <assert.h>
#include <inttypes.h>

#include <weft/file.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/memory.h>

#include "plot_runs.h"

/* Sizes in pixels of an SVG. */
enum {
    LEFT = 112,                /* left edge of the panels */
    PANEL = 760,               /* width of a panel */
    TOP = 46,                  /* top edge of the first panel */
    PANELS = 556,              /* height of all panels with the gaps between them, unless a panel would be lower than LEAST */
    LEAST = 200,               /* minimum height of a panel, unless its height is RATE */
    RATE = 130,                /* height of the panel of a learning rate if there are other panels */
    BETWEEN = 26,              /* gap between two panels */
    BOTTOM = 68,               /* space below the last panel */
    FONT = 14,                 /* font size */
    LINE = 20,                 /* height of a line of the legend */
    LETTER = 9,                /* approximate width of a letter */
    SAMPLE = 58,               /* width of a sample line in the legend with the space after it */
    LEGEND = LEFT + PANEL + 22 /* left edge of the legend */
};

/* The colours of Okabe and Ito, which colour-blind readers can tell apart. Their yellow is too light on white; a violet replaces it, chosen
 * to be as different as possible from the others, also for colour-blind readers. */
static const uint32_t colours[] = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000, 0x7700dd};
/* Run i has colour i mod 8 and dash i mod 5. So consecutive runs differ in both, and no two of WF_PLOT_RUNS = 40 runs have the same
 * combination, because 5 and 8 have no common factor. */
static const char *const dashes[] = {"1", "(10,5)", "(2,3)", "(12,4,2,4)", "(22,4,6,4)"};
enum { COLOURS = sizeof colours / sizeof *colours, DASHES = sizeof dashes / sizeof *dashes };
static_assert(WF_PLOT_RUNS == COLOURS * DASHES, "each run has its own line");
static const int marks[] = {7, 5, 9, 13, 11, 6, 4};

static uint32_t colour_of(int64_t run)
{
    return colours[run % COLOURS];
}

/* A light version of a colour, for the logged values behind a running mean. */
static uint32_t faint(uint32_t colour)
{
    uint32_t out = 0;
    for (int shift = 0; shift < 24; shift += 8)
        out |= (255 - (255 - (colour >> shift & 255)) * 32 / 100) << shift;
    return out;
}

/* The colour of validations: that of the run, or a second colour if there is a single run with a training curve. */
static uint32_t valid_colour(const struct plot *p, int64_t run)
{
    return colour_of(p->count == 1 && p->trained ? 1 : run);
}

static int mark_of(int64_t run)
{
    return marks[(run + run / COLOURS) % (int64_t)(sizeof marks / sizeof *marks)];
}

static const char *dash_of(int64_t run)
{
    return dashes[run % DASHES];
}

struct layout {
    int width, height;
    int panel[WF_PLOT_METRICS + 1]; /* top edge of each panel; the last element is the top edge that a further panel would have */
};

/* The height of panel i. If there are other panels, those of learning rates are low, and the others share the rest of the height. */
static int panel_height(const struct plot *p, int i)
{
    int rates = 0;
    for (int k = 0; k < p->panels; k++)
        rates += p->panel[k].rate;
    bool low = rates < p->panels;
    if (low && p->panel[i].rate)
        return RATE;
    int rest = PANELS - (p->panels - 1) * BETWEEN - (low ? rates * RATE : 0), each = rest / (low ? p->panels - rates : p->panels);
    return WF_MAX(each, LEAST);
}

static struct layout layout_of(const struct plot *p)
{
    struct layout l = {.panel = {TOP}};
    int longest = text_columns("training (running mean)");
    int64_t lines = p->count > 1 ? 5 + p->count : 5;
    for (int64_t i = 0; i < p->count && p->count > 1; i++) {
        int columns = text_columns(p->run[i].name);
        longest = WF_MAX(columns, longest);
    }
    for (int i = 0; i < p->panels; i++)
        l.panel[i + 1] = l.panel[i] + panel_height(p, i) + BETWEEN;
    int height = l.panel[p->panels] - BETWEEN + BOTTOM;
    l.width = LEGEND + SAMPLE + longest * LETTER;
    l.height = height > TOP + lines * LINE ? height : (int)(TOP + lines * LINE);
    return l;
}

/* --- panels -------------------------------------------------------------------------------------------------------- */

/* Adds a curve as a line. A curve of a single point is drawn as a point, because a line would be invisible. */
static void add_line(const struct plot *p, const struct curve *c, int metric, int64_t run, double width, struct wf_string *s)
{
    if (!plot_curve(c, 'm', metric, run, s))
        return;
    if (c->count == 1)
        wf_string_format(s, "points pt %d ps 0.7", mark_of(run));
    else
        wf_string_format(s, "lines lw %g dt %s", width, p->count > 1 ? dash_of(run) : "1");
    wf_string_format(s, " lc rgb 0x%06x", colour_of(run));
}

static void add_points(const struct plot *p, const struct curve *c, int metric, int64_t run, struct wf_string *s)
{
    if (plot_curve(c, 'm', metric, run, s))
        wf_string_format(s, "linespoints lw 2 dt %s pt %d ps 0.7 pi %" PRId64 " lc rgb 0x%06x", p->count > 1 ? dash_of(run) : "1",
                         mark_of(run), 1 + c->count / 30, valid_colour(p, run));
}

/* Adds the curves of a panel in three layers: logged values, then lines over them, then points. */
static void add_curves(const struct plot *p, int panel, struct wf_string *s)
{
    for (int layer = 0; layer < 3; layer++)
        for (int k = 0; k < p->metrics; k++)
            for (int64_t i = 0; i < p->count && p->metric[k].panel == panel; i++) {
                const struct plot_line *line = &p->run[i].of[k];
                if (layer == 0 && plot_curve(&line->raw, 'w', k, i, s))
                    wf_string_format(s, "lines lw 0.6 dt 1 lc rgb 0x%06x", faint(colour_of(i)));
                else if (layer == 1 && !p->metric[k].points)
                    add_line(p, &line->mean, k, i, p->panel[panel].rate ? 1.6 : 1.3, s);
                else if (layer == 2 && p->metric[k].points)
                    add_points(p, &line->mean, k, i, s);
            }
    wf_string_text(s, "\n");
}

/* Adds the edges and axes of panel i, its title on the left, and at its upper right the number of values beyond the axis. */
static void add_panel(const struct plot *p, const struct layout *l, int i, struct wf_string *s)
{
    const struct plot_panel *panel = &p->panel[i];
    int from = l->panel[i], to = l->panel[i + 1] - BETWEEN;
    int tics = (to - from) * 9 / 400, least = panel->rate ? 4 : 6;
    bool last = i == p->panels - 1;
    struct wf_string title = {0}, beyond = {0};
    plot_add_title(panel, &title);
    plot_add_beyond(panel, &beyond);
    s->failed |= title.failed || beyond.failed;
    script_margins(s, (double)LEFT / l->width, (double)(LEFT + PANEL) / l->width, 1 - (double)from / l->height, 1 - (double)to / l->height);
    wf_string_text(s, "unset label\n");
    script_label(s, title.data ? title.data : "", 18.0 / l->width, 1 - (from + to) / 2.0 / l->height,
                 "center rotate by 90 tc rgb \"#333333\"");
    if (beyond.length > 0)
        script_label(s, beyond.data, (LEFT + PANEL - 4.0) / l->width, 1 - (from - 9.0) / l->height, "right tc rgb \"#666666\"");
    if (last)
        script_label(s, p->x_name, (LEFT + PANEL / 2.0) / l->width, 1 - (to + 50.0) / l->height, "center tc rgb \"#333333\"");
    axis_script(&p->x, 'x', last, axis_fit(&p->x, PANEL / LETTER), s);
    axis_script(&panel->y, 'y', true, WF_MAX(tics, least), s);
    wf_string_free(&title);
    wf_string_free(&beyond);
}

/* --- the legend ---------------------------------------------------------------------------------------------------- */

struct sample {
    double width;
    int mark; /* gnuplot's point type; 0: no point */
    uint32_t colour;
    const char *dash;
};

/* Adds a line of the legend as an arrow, a point and a label. gnuplot's own legend would break into columns at the height of a panel. */
static void add_entry(struct wf_string *s, const struct layout *l, int line, struct sample sample, const char *title)
{
    double y = 1 - (TOP + 6.0 + line * LINE) / l->height, from = 1.0 * LEGEND / l->width, to = (LEGEND + SAMPLE - 12.0) / l->width;
    wf_string_format(s, "set arrow from screen %.6f,%.6f to screen %.6f,%.6f nohead lw %g dt %s lc rgb 0x%06x\n", from, y, to, y,
                     sample.width, sample.dash, sample.colour);
    if (sample.mark)
        wf_string_format(s, "set label \"\" at screen %.6f,%.6f point pt %d ps 0.7 lc rgb 0x%06x\n", (from + to) / 2, y, sample.mark,
                         sample.colour);
    script_label(s, title, (LEGEND + SAMPLE - 4.0) / l->width, y, "left tc rgb \"#222222\"");
}

static bool is_marked(const struct plot *p, int64_t run)
{
    bool marked = plot_has_points(p, run);
    for (int k = 0; k < p->metrics; k++)
        marked |= p->run[run].of[k].mean.count == 1 && !p->panel[p->metric[k].panel].rate;
    return marked;
}

static void add_legend(const struct plot *p, const struct layout *l, struct wf_string *s)
{
    bool one = p->count == 1;
    uint32_t grey = 0x555555;
    int line = 0;
    if (p->trained)
        add_entry(s, l, line++, (struct sample){1.3, 0, one ? colour_of(0) : grey, "1"}, p->noisy ? "training (running mean)" : "training");
    if (p->noisy)
        add_entry(s, l, line++, (struct sample){1.3, 0, faint(one ? colour_of(0) : grey), "1"}, "training (as logged)");
    if (p->validated)
        add_entry(s, l, line++, (struct sample){2, mark_of(0), one ? valid_colour(p, 0) : grey, "1"}, "validation");
    line += line > 0;
    for (int64_t i = 0; i < p->count && !one; i++)
        add_entry(s, l, line++, (struct sample){2, is_marked(p, i) ? mark_of(i) : 0, colour_of(i), dash_of(i)}, p->run[i].name);
}

static void add_all(struct plot *p, enum picture_format format, struct wf_string *s)
{
    plot_finish(p, 0.03);
    struct layout l = layout_of(p);
    script_terminal(s, format, l.width, l.height, FONT);
    plot_add_data(p, s);
    wf_string_format(s, "set multiplot\n"
                        "set border 3 lc rgb \"#666666\"\nset tics nomirror out tc rgb \"#333333\"\n"
                        "set grid xtics ytics lt 1 lw 0.5 lc rgb \"#dddddd\"\nset clip two\nunset key\n");
    for (int i = 0; i < p->panels; i++) {
        add_panel(p, &l, i, s);
        if (i == 0 && p->count == 1) {
            wf_string_format(s, "set title ");
            script_quote(s, p->run[0].name, false);
            wf_string_format(s, " offset 0,-0.3 tc rgb \"#222222\"\n");
        }
        if (i == 0)
            add_legend(p, &l, s);
        add_curves(p, i, s);
        if (i == 0) /* legend and title must not be drawn again with the next panels */
            wf_string_format(s, "unset arrow\nunset title\n");
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
    status = plot_load(runs, count, options, PANEL, WF_PLOT_RUNS, &p, error);
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
