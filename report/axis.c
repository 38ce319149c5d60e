/* SPDX-License-Identifier: MIT */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/text.h>

#include "axis.h"

static const double MOST = 1e100; /* so that nothing here overflows; what is beyond is not drawn */

struct axis axis_new(bool log)
{
    return (struct axis){.low = INFINITY, .high = -INFINITY, .log = log};
}

void axis_see(struct axis *a, double value)
{
    if (a->log && value <= 0)
        return;
    value = fmax(-MOST, fmin(value, MOST));
    if (a->log)
        value = fmax(1 / MOST, value);
    a->low = fmin(a->low, value);
    a->high = fmax(a->high, value);
}

bool axis_empty(const struct axis *a)
{
    return a->low > a->high;
}

/* 1, 2 or 5 times a power of ten, at least `least`. */
static double nice_step(double least)
{
    double unit = pow(10, floor(log10(least)));
    static const double factor[] = {1, 2, 5, 10};
    for (int i = 0; i < 4; i++)
        if (factor[i] * unit >= least * (1 - 1e-9))
            return factor[i] * unit;
    return 10 * unit;
}

/* Six digits, whatever the locale; "5e-05" becomes "5e-5", "1e+21" 1e21. */
static void write_short(double value, char out[WF_NUMBER_SIZE])
{
    locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    snprintf(out, WF_NUMBER_SIZE, "%.6g", value);
    uselocale(before);
    char *e = strchr(out, 'e');
    if (!e)
        return;
    if (e[1] == '+')
        memmove(e + 1, e + 2, strlen(e + 2) + 1);
    e += e[1] == '-';
    if (e[1] == '0')
        memmove(e + 1, e + 2, strlen(e + 2) + 1);
}

/* whole * 10^exponent as "1.5e-4". */
static void write_power(int64_t whole, int exponent, char out[WF_NUMBER_SIZE])
{
    while (whole != 0 && whole % 10 == 0) {
        whole /= 10;
        exponent++;
    }
    char digits[24];
    int count = snprintf(digits, sizeof digits, "%lld", (long long)(whole < 0 ? -whole : whole));
    char text[64];
    snprintf(text, sizeof text, "%s%c%s%se%d", whole < 0 ? "-" : "", digits[0], count > 1 ? "." : "", digits + 1, exponent + count - 1);
    snprintf(out, WF_NUMBER_SIZE, "%.31s", text);
}

/* The k-th tic: k times the step, with the step's decimals, so that 0.2 isn't 0.30000000000000004 and 1 stands as 1.0 beside 0.5. */
static void write_multiple(int64_t k, double step, char out[WF_NUMBER_SIZE])
{
    int exponent = (int)floor(log10(step) + 1e-9), digit = (int)lround(step / pow(10, exponent));
    int64_t whole = k * digit; /* times 10^exponent */
    if (exponent >= 0 && fabs((double)k * step) < 1e15)
        wf_text_count(whole * (int64_t)llround(pow(10, exponent)), out);
    else if (exponent < 0 && exponent >= -4) {
        int64_t unit = llround(pow(10, -exponent)), size = whole < 0 ? -whole : whole;
        char text[64];
        snprintf(text, sizeof text, "%s%lld.%0*lld", whole < 0 ? "-" : "", (long long)(size / unit), -exponent, (long long)(size % unit));
        snprintf(out, WF_NUMBER_SIZE, "%.31s", text);
    } else
        write_power(whole, exponent, out);
    if (k == 0)
        strcpy(out, "0");
}

static void put(struct axis *a, double value)
{
    if (a->count == AXIS_TICS)
        return;
    a->tic[a->count] = value;
    write_short(value, a->label[a->count++]);
}

static void linear_tics(struct axis *a, int most)
{
    /* One number more than there are steps may fit: then the steps are too short. */
    double step = nice_step(fmax((a->high - a->low) / most, a->whole ? 1 : 0));
    while (floor(a->high / step + 1e-9) - ceil(a->low / step - 1e-9) + 1 > most)
        step = nice_step(step * 1.5);
    for (double k = ceil(a->low / step - 1e-9); k * step <= a->high + 1e-9 * step && a->count < AXIS_TICS; k++) {
        a->tic[a->count] = k * step;
        if (fabs(k) < 1e9)
            write_multiple((int64_t)k, step, a->label[a->count++]);
        else
            write_short(k * step, a->label[a->count++]);
    }
}

static void log_tics(struct axis *a, int most)
{
    static const double factor[][9] = {{1, 1.5, 2, 3, 4, 5, 6, 8}, {1, 2, 3, 5}, {1, 2, 5}, {1, 3}, {1}};
    double from = floor(log10(a->low)), to = floor(log10(a->high));
    for (int set = 0; set < 5 + 300; set++) {
        const double *f = factor[set < 5 ? set : 4];
        double decades = set < 5 ? 1 : set - 3, start = floor(from / decades) * decades; /* then every second decade, every third, ... */
        int count = 0;
        for (double d = start; d <= to; d += decades)
            for (int i = 0; f[i] > 0; i++)
                count += f[i] * pow(10, d) >= a->low && f[i] * pow(10, d) <= a->high;
        if (count > most)
            continue;
        if (count < 3 && set == 0) {
            linear_tics(a, most);
            return;
        }
        for (double d = start; d <= to; d += decades)
            for (int i = 0; f[i] > 0; i++)
                if (f[i] * pow(10, d) >= a->low && f[i] * pow(10, d) <= a->high)
                    put(a, f[i] * pow(10, d));
        return;
    }
}

void axis_finish(struct axis *a, double margin, int most)
{
    double largest = fmax(fabs(a->low), fabs(a->high));
    if (a->high - a->low <= fmax(1e-7 * largest, 1 / MOST)) { /* one value, as far as a float tells: in the middle */
        double size = a->whole ? fmax(1, 1e-6 * largest) : largest < 1 / MOST ? 1 : largest * 0.1;
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
    a->count = 0;
    if (a->log)
        log_tics(a, most);
    else
        linear_tics(a, most);
}

void axis_script(const struct axis *a, char name, bool labels, struct script *s)
{
    script_add(s, "%s logscale %c\nset %crange [%.12g:%.12g]\nset %ctics (", a->log ? "set" : "unset", name, name, a->low, a->high, name);
    for (int i = 0; i < a->count; i++) {
        script_add(s, i ? ", " : "");
        script_quote_tic(s, labels ? a->label[i] : "");
        script_add(s, " %.12g", a->tic[i]);
    }
    script_add(s, ")\n");
}
