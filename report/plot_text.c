/* SPDX-License-Identifier: MIT */
/* Plots runs as text, for terminals. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/memory.h>

#include "plot_runs.h"

enum { LEFT = 9, RIGHT = 4, LEAST_COLUMNS = 40, LEAST_ROWS = 9, LEAST_RATE = 6 };

/* The characters with which gnuplot's text terminal draws its line types 1 to 7. Further runs are drawn as rows of dots, and each
 * dot is the letter of its run. */
static const char lines[] = "*#$%@&=";
enum { LINES = sizeof lines - 1 };
static_assert(WF_PLOT_TEXT_RUNS == 26, "each run has a letter");

static char sign_of(int64_t run)
{
    return run < LINES ? lines[run] : (char)('a' + run);
}

/* The character for validations: o if there is a single run, otherwise A, B, ... */
static char letter_of(const struct plot *p, int64_t run)
{
    return p->count == 1 ? 'o' : (char)('A' + run);
}

struct page {
    int columns, rows[WF_PLOT_METRICS];
};

/* Divides the rows among the panels. A learning rate gets half as many rows as another panel. The first panel gets the rows that remain.
 * LEAST_RATE and LEAST_ROWS are the minimum for each panel, even if the sum is then above `rows`. */
static struct page layout_of(const struct plot *p, int columns, int rows)
{
    struct page page = {.columns = columns};
    int shares = 0, left = rows;
    for (int i = 0; i < p->panels; i++)
        shares += p->panel[i].rate ? 1 : 2;
    for (int i = p->panels - 1; i >= 0; i--) {
        bool rate = p->panel[i].rate;
        int least = rate ? LEAST_RATE : LEAST_ROWS, share = i > 0 ? rows * (rate ? 1 : 2) / shares : left;
        page.rows[i] = WF_MAX(share, least);
        left -= page.rows[i];
    }
    return page;
}

static double height_of(const struct axis *a, double value)
{
    return (a->log ? log(value / a->low) / log(a->high / a->low) : (value - a->low) / (a->high - a->low));
}

/* Adds a curve as a data block of dots, at least one for each column and row that the curve goes through. */
static void add_dots(const struct plot *p, const struct page *page, int metric, int64_t run, struct wf_string *s)
{
    int panel = p->metric[metric].panel;
    const struct curve *c = &p->run[run].of[metric].mean;
    const struct axis *y = &p->panel[panel].y;
    int most = 4 * (page->columns + page->rows[panel]);
    wf_string_format(s, "$d%d_%" PRId64 " << END\n", metric, run);
    for (int64_t i = 0; i < c->count; i++) {
        const struct point *a = &c->point[i], *b = i + 1 < c->count ? a + 1 : a;
        double across = page->columns * (b->x - a->x) / (p->x.high - p->x.low);
        double up = page->rows[panel] * (height_of(y, b->value) - height_of(y, a->value));
        int dots = (int)fmin(most, ceil(fmax(1, fmax(across, fabs(up)))));
        for (int k = 0; k < dots; k++) {
            double part = 1.0 * k / dots;
            double value = y->log ? a->value * pow(b->value / a->value, part) : a->value + part * (b->value - a->value);
            wf_string_format(s, "%.12g %.9g\n", a->x + part * (b->x - a->x), value / y->unit);
        }
    }
    wf_string_text(s, "END\n");
}

static void add_curves(const struct plot *p, int panel, struct wf_string *s)
{
    for (int points = 0; points < 2; points++)
        for (int k = 0; k < p->metrics; k++)
            for (int64_t i = 0; i < p->count && p->metric[k].panel == panel && p->metric[k].points == points; i++)
                if (!plot_curve(&p->run[i].of[k].mean, !points && i >= LINES ? 'd' : 'm', k, i, s))
                    continue;
                else if (points || i >= LINES)
                    wf_string_format(s, "points pt \"%c\"", points ? letter_of(p, i) : sign_of(i));
                else
                    wf_string_format(s, "lines lt %d", 1 + (int)i);
    wf_string_text(s, "\n");
}

/* Writes the script, which draws one panel after the other. */
static void add_all(const struct plot *p, const struct page *page, struct wf_string *s)
{
    plot_add_data(p, s);
    for (int k = 0; k < p->metrics; k++)
        for (int64_t i = LINES; i < p->count && p->metric[k].panel >= 0; i++)
            add_dots(p, page, k, i, s);
    for (int i = 0; i < p->panels; i++) {
        bool last = i == p->panels - 1;
        script_terminal(s, PICTURE_TEXT, page->columns, page->rows[i], 0);
        wf_string_format(s, "set lmargin %d\nset rmargin %d\nset tmargin 0\nset border 3\nunset key\nset tics nomirror out scale 0.5\n",
                         LEFT, RIGHT);
        wf_string_format(s, "set clip two\nset bmargin %d\n", last ? 1 : 0);
        axis_script(&p->x, 'x', last, axis_fit(&p->x, page->columns - LEFT - RIGHT), s);
        axis_script(&p->panel[i].y, 'y', true, page->rows[i] / 2, s);
        add_curves(p, i, s);
    }
}

/* Appends the title of a panel: "loss (nats per token), 3 values above the axis". */
static void add_title(const struct plot_panel *panel, struct wf_string *s)
{
    plot_add_title(panel, s);
    if (panel->above || panel->below)
        wf_string_text(s, ", ");
    plot_add_beyond(panel, s);
}

/* Whether the title of the first panel has its own line. Otherwise the name of the only run follows the title in the same line. */
static bool has_title_line(const struct plot *p)
{
    return p->count > 1 || p->panel[0].above || p->panel[0].below;
}

/* Appends the title of the first panel, then a line for each run with its characters and its name. */
static void add_head(const struct plot *p, struct wf_string *s)
{
    bool apart = has_title_line(p);
    add_title(&p->panel[0], s);
    wf_string_text(s, apart ? "\n" : ": ");
    for (int64_t i = 0; i < p->count; i++) {
        const char *start = apart ? "  " : "", *words[] = {p->trained ? "training" : "line", "validation"};
        wf_string_text(s, start);
        if (plot_has_line(p, i))
            wf_string_format(s, "%c %s  ", sign_of(i), words[0]);
        else if (p->count > 1)
            wf_string_format(s, "%*s", 4 + (int)strlen(words[0]), "");
        if (plot_has_points(p, i))
            wf_string_format(s, "%c %s  ", letter_of(p, i), words[1]);
        else if (p->count > 1)
            wf_string_format(s, "%*s", 4 + (int)strlen(words[1]), "");
        wf_string_format(s, "%s\n", p->run[i].name);
    }
}

/* Appends a page of gnuplot's output without the blanks at the ends of lines. Pages are separated by form feeds. Returns the page's end. */
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

/* Appends the whole text: titles of the panels, gnuplot's drawings, and the name of the horizontal axis. */
static void add_text(const struct plot *p, const struct page *page, const char *drawn, struct wf_string *out)
{
    add_head(p, out);
    for (int i = 0; i < p->panels; i++) {
        if (i > 0) {
            add_title(&p->panel[i], out);
            wf_string_char(out, '\n');
        }
        drawn = add_drawn(drawn, out);
    }
    int name = text_columns(p->x_name);
    wf_string_format(out, "%*s%s\n", LEFT + (page->columns - LEFT - RIGHT) / 2 - name / 2, "", p->x_name);
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
    columns = WF_MAX(columns, LEAST_COLUMNS);
    int64_t head = count == 1 ? 1 : count + 1, before = out->length;
    struct plot p;
    struct wf_string s = {0}, drawn = {0};
    wf_status status = plot_load(runs, count, o, columns, WF_PLOT_TEXT_RUNS, &p, error);
    if (status == WF_OK) {
        int used = (int)head + p.panels; /* rows of the titles, of the names of the runs and of the name of the horizontal axis */
        struct page page = layout_of(&p, columns, used < rows ? rows - used : 0);
        plot_finish(&p, 0.7 / page.rows[0]);
        page.rows[0] -= count == 1 && has_title_line(&p) && page.rows[0] > LEAST_ROWS;
        add_all(&p, &page, &s);
        status = gnuplot_run(&s, &drawn, error);
        if (status == WF_OK)
            add_text(&p, &page, drawn.data, out);
    }
    if (status == WF_OK && out->failed) {
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for a drawing of %" PRId64 " runs", count);
        wf_string_cut(out, before);
        out->failed = false;
    }
    wf_string_free(&drawn);
    wf_string_free(&s);
    plot_free(&p);
    return status;
}
