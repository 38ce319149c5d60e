/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <weft/internal/text.h>
#include <weft/memory.h>

#include "labels.h"
#include "plot_runs.h"

/* Fewer lines than this are drawn as they are. */
enum { NOISY = 40 };

/* --- axes ---------------------------------------------------------------------------------------------------------- */

#define NO_AXIS ((struct axis){.low = INFINITY, .high = -INFINITY, .unit = 1})

static void axis_see(struct axis *a, double value)
{
    if (a->log && value <= 0)
        return; /* what a logarithm can't show is left out */
    value = a->log ? fmax(1e-100, value) : value;
    a->low = fmin(a->low, value);
    a->high = fmax(a->high, value);
}

bool axis_empty(const struct axis *a)
{
    return a->low > a->high;
}

/* Leaves `margin` of the axis free at both ends. */
static void axis_finish(struct axis *a, double margin)
{
    double largest = fmax(fabs(a->low), fabs(a->high));
    if (a->high - a->low <= fmax(1e-7 * largest, 1e-100)) { /* one value, as far as a float tells: in the middle */
        double size = largest < 1e-100 ? 1 : largest * 0.1;
        a->low -= size;
        a->high += size;
    } else if (a->log) {
        double more = pow(a->high / a->low, margin);
        a->low /= more;
        a->high *= more;
    } else {
        double more = (a->high - a->low) * margin;
        a->low -= more;
        a->high += more;
    }
    a->log = a->log && a->high > 1.1 * a->low; /* on a shorter one nobody sees the difference */
}

/* gnuplot's own tics leave a logarithmic axis of less than two decades with one number or none. Here the decades are cut more finely,
 * as long as no more than `most` lie on the axis. false: leave it to gnuplot. */
static bool add_log_tics(const struct axis *a, int most, struct wf_string *s)
{
    static const double factor[][9] = {{1, 1.5, 2, 3, 4, 5, 6, 8}, {1, 2, 3, 5}, {1, 2, 5}, {1, 3}};
    static const double tenths[] = {1, 2, 5};
    for (int set = 0; set < 3 + 4; set++) {
        int64_t before = s->length;
        int count = 0;
        for (double d = floor(log10(a->low)); d <= log10(a->high) && count <= most; d++)
            for (int i = 0; set < 3 ? 10 + i * tenths[set] < 100 : factor[set - 3][i] > 0; i++) {
                double value = pow(10, d) * (set < 3 ? (10 + i * tenths[set]) / 10 : factor[set - 3][i]);
                if (value >= a->low && value <= a->high)
                    wf_string_format(s, "%s%.3g", count++ ? ", " : "(", value);
            }
        if (count > 0 && count <= most)
            return wf_string_char(s, ')');
        wf_string_cut(s, before);
    }
    return false;
}

/* Steps of 1, 2 or 5 times a power of ten, whose numbers have all the same decimals. */
static void add_linear_tics(const struct axis *a, char name, bool labels, int most, struct wf_string *s)
{
    double least = (a->high - a->low) / a->unit / most, power = pow(10, floor(log10(least)));
    double step = power * (least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10);
    if (name == 'x')
        step = fmax(step, 1);
    int decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    if (name == 'x' && labels && a->high < 1e15) { /* 1,500,000 */
        const char *comma = "";
        wf_string_text(s, "set format x \"%g\"\nset xtics (");
        for (double tic = ceil(a->low / step) * step; tic <= a->high; tic += step, comma = ", ") {
            char number[WF_NUMBER_SIZE];
            wf_string_format(s, "%s\"%s\" %.15g", comma, wf_text_count((int64_t)tic, number), tic);
        }
        wf_string_text(s, ")\n");
        return;
    }
    if (!labels)
        wf_string_format(s, "set format %c \"\"\n", name);
    else if (decimals > 6 || a->high / a->unit >= 1e6)
        wf_string_format(s, "set format %c \"%%g\"\n", name);
    else
        wf_string_format(s, "set format %c \"%%.%df\"\n", name, decimals);
    wf_string_format(s, "set %ctics %.12g\n", name, step);
}

void axis_script(const struct axis *a, char name, bool labels, int most, struct wf_string *s)
{
    wf_string_format(s, "%s logscale %c\nset %crange [%.12g:%.12g]\n", a->log ? "set" : "unset", name, name, a->low / a->unit,
                     a->high / a->unit);
    if (!a->log) {
        add_linear_tics(a, name, labels, most, s);
        return;
    }
    wf_string_format(s, "set format %c \"%%g\"\nset %ctics ", name, name);
    if (!add_log_tics(a, most, s))
        wf_string_text(s, "autofreq");
    wf_string_text(s, "\n");
}

int axis_fit(const struct axis *a, int letters)
{
    int digits = 1 + (int)log10(fmax(a->high, 1)), most = letters / (digits + (digits - 1) / 3 + 3);
    return most < 2 ? 2 : most < 10 ? most : 10;
}

/* --- curves -------------------------------------------------------------------------------------------------------- */

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

/* --- names --------------------------------------------------------------------------------------------------------- */

/* Of a byte: 0 inside of a character. Letters of East Asia, and pictures, are twice as wide. */
static int width_of(const char *c)
{
    unsigned char lead = (unsigned char)*c;
    return (lead & 0xc0) == 0x80 ? 0 : lead >= 0xe3 && lead != 0xef ? 2 : 1;
}

int text_columns(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += width_of(text);
    return columns;
}

/* Cuts a long name in the middle: what tells runs apart stands at either end. NULL without memory. */
static char *shorten(const char *name)
{
    if (text_columns(name) <= NAME_COLUMNS)
        return wf_strdup(name);
    const char *head = name, *tail = name + strlen(name);
    for (int columns = 0; columns + width_of(head) <= NAME_COLUMNS / 3; head++)
        columns += width_of(head);
    for (int columns = 0; columns < NAME_COLUMNS - NAME_COLUMNS / 3 - 2;)
        columns += width_of(--tail);
    return wf_format("%.*s\xe2\x80\xa6%s", (int)(head - name), name, tail);
}

static size_t trimmed(const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    return length;
}

/* A run's name is its path without the folders that the paths of all runs begin with. */
static wf_status name_all(struct plot *p, const char *const *runs, wf_error *error)
{
    size_t shared = trimmed(runs[0]);
    for (int64_t i = 1; i < p->count; i++)
        while (strncmp(runs[i], runs[0], shared) != 0)
            shared--;
    while (shared > 0 && runs[0][shared - 1] != '/')
        shared--;
    for (int64_t i = 0; i < p->count; i++) {
        struct wf_string name = {0};
        size_t length = trimmed(runs[i]), from = shared < length ? shared : 0;
        label_clean(&name, runs[i] + from, (int64_t)(length - from), false);
        p->run[i].name = name.failed ? NULL : shorten(name.data);
        wf_string_free(&name);
        if (!p->run[i].name)
            return wf_error_set(error, WF_ERR_MEMORY, "no memory for a run's name");
    }
    return WF_OK;
}

/* --- all of it ----------------------------------------------------------------------------------------------------- */

wf_status plot_load(const char *const *runs, int64_t count, bool log, int64_t columns, struct plot *out, wf_error *error)
{
    *out = (struct plot){.x = NO_AXIS, .loss = NO_AXIS, .lr = NO_AXIS};
    out->loss.log = log;
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
        status = wf_error_set(error, WF_ERR_ARGUMENT, "no loss is above 0: leave the logarithmic axis out");
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

void plot_add_data(const struct plot *p, struct wf_string *s)
{
    for (int64_t i = 0; i < p->count; i++) {
        const struct plot_run *r = &p->run[i];
        const struct curve *const curves[] = {&r->raw, &r->mean, &r->valid, &r->lr};
        for (int k = 0; k < 4; k++) {
            wf_string_format(s, "$%c%" PRId64 " << END\n", "tmvr"[k], i);
            for (const struct point *c = curves[k]->point, *end = c + curves[k]->count; c < end; c++)
                wf_string_format(s, "%.12g %.9g\n", c->step, c->value / (k == 3 ? p->lr.unit : 1));
            wf_string_text(s, "END\n");
        }
    }
}

bool plot_curve(const struct curve *c, char kind, int64_t run, struct wf_string *s)
{
    bool first = s->failed || s->data[s->length - 1] == '\n';
    return c->count > 0 && wf_string_format(s, "%s$%c%" PRId64 " with ", first ? "plot " : ", ", kind, run);
}

void plot_finish(struct plot *p, double margin)
{
    if (p->x.low <= 0.05 * p->x.high)
        p->x.low = 0;
    if (p->x.high - p->x.low < 1) {
        p->x.low -= 1;
        p->x.high += 1;
    }
    axis_finish(&p->x, 0);
    axis_finish(&p->loss, margin);
    if (axis_empty(&p->lr))
        return;
    bool from_zero = p->lr.low >= 0;
    if (from_zero)
        p->lr.low = 0;
    axis_finish(&p->lr, 0.06);
    if (from_zero)
        p->lr.low = 0;
    /* "3" and "learning rate (1e-4)", not 0.0003 beside 5e-05 */
    if (p->lr.high > 0 && p->lr.high < 0.1)
        p->lr.unit = pow(10, floor(log10(p->lr.high / 1.06)));
}

void plot_add_rate(const struct plot *p, struct wf_string *s)
{
    wf_string_text(s, "learning rate");
    if (p->lr.unit != 1)
        wf_string_format(s, " (1e%d)", (int)lround(log10(p->lr.unit)));
}
