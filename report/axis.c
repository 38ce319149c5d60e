/* SPDX-License-Identifier: MIT */
/* The axes of a plot: ranges, tics and the numbers at the tics. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include <weft/internal/minmax.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include "plot_runs.h"

void axis_see(struct axis *a, double value)
{
    if (a->log && value <= 0)
        return; /* a logarithmic axis cannot show this value */
    value = a->log ? fmax(1e-100, value) : value;
    a->low = fmin(a->low, value);
    a->high = fmax(a->high, value);
}

bool axis_empty(const struct axis *a)
{
    return a->low > a->high;
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* With fewer values than this, no value counts as an outlier. */
enum { MANY = 10 };

wf_status axis_see_most(struct axis *a, const struct curve *c, wf_error *error)
{
    double *sorted = wf_alloc((size_t)(c->count + 1) * sizeof *sorted);
    if (!sorted)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a curve of %" PRId64 " points", c->count);
    int64_t count = 0;
    for (int64_t i = 0; i < c->count; i++)
        if (!a->log || c->point[i].value > 0)
            sorted[count++] = a->log ? log(fmax(1e-100, c->point[i].value)) : c->point[i].value;
    qsort(sorted, (size_t)count, sizeof *sorted, rising);
    if (count > 0) {
        /* sorted[low] and sorted[high] are the 1 % and 99 % quantiles; rounding leaves at least one value beyond each if count >= MANY */
        int64_t high = (int64_t)(0.99 * (double)(count - 1)), low = count - 1 - high;
        double span = sorted[high] - sorted[low];
        bool cut = count >= MANY && span > 0;
        double from = cut && sorted[0] < sorted[low] - span ? sorted[low] : sorted[0];
        double to = cut && sorted[count - 1] > sorted[high] + span ? sorted[high] : sorted[count - 1];
        axis_see(a, a->log ? exp(from) : from);
        axis_see(a, a->log ? exp(to) : to);
    }
    wf_free(sorted);
    return WF_OK;
}

void axis_finish(struct axis *a, double margin)
{
    double largest = fmax(fabs(a->low), fabs(a->high));
    if (a->high - a->low <= fmax(1e-7 * largest, 1e-100)) { /* all values are equal in float precision: put them in the middle */
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
    a->log = a->log && a->high > 1.1 * a->low; /* on a shorter axis a logarithm makes no visible difference */
}

/* Adds the tics of a logarithmic axis. gnuplot itself puts at most one number on an axis of less than two decades. This function tries sets
 * of numbers per decade, from many to few, and takes the first set with at most `most` tics on the axis. False: no set fits, so gnuplot
 * must choose the tics. */
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

/* Adds tics in steps of 1, 2 or 5 times a power of ten. All numbers at the tics have the same number of decimals. */
static void add_linear_tics(const struct axis *a, char name, bool labels, int most, struct wf_string *s)
{
    double least = (a->high - a->low) / a->unit / most, power = pow(10, floor(log10(least)));
    double step = power * (least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10);
    if (name == 'x' && !a->broken)
        step = fmax(step, 1);
    int decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    if (name == 'x' && labels && decimals == 0 && a->high < 1e15) { /* numbers with commas, such as 1,500,000 */
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
    return most < 2 ? 2 : WF_MIN(most, 10);
}
