/* SPDX-License-Identifier: MIT */
/* Draws the bar on a terminal, or prints plain lines. */
#include "display.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <weft/internal/minmax.h>
#include <weft/internal/text.h>

/* Moves the cursor to the first column, and erases the screen from there on. The cursor stands in the first column of the bar. A terminal
 * that becomes narrower breaks the bar into several rows; the cursor stays in the first of these rows, so all of them are erased. */
#define ERASE "\r\033[J"

enum {
    MOST_BAR = 40, /* maximum width of the bar in columns */
    LEAST_BAR = 4  /* minimum width; if the window has less space, no bar is drawn */
};
/* Seconds between two drawings. There are nine drawings a second, and with the last one, which is not delayed, at most ten. */
static const double between = 1.0 / 9;

static volatile sig_atomic_t on_screen; /* a bar is on the screen */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Whether the program runs in the background (weft train ... &). It then draws nothing, because its user works in the shell. */
static bool in_background(void)
{
    pid_t group = tcgetpgrp(STDERR_FILENO);
    return group >= 0 && group != getpgrp();
}

static int window_columns(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

/* The width of a UTF-8 text in columns, with one column for each character. */
static int columns_of(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += (*text & 0xc0) != 0x80;
    return count;
}

/* The number of bytes from the start of the text that fit into `columns` columns. The text consists of fields with two blanks between
 * them. Only whole fields are taken, except that the first field is cut if it is too long. */
static int fitting(const char *text, int columns)
{
    int at = 0, fields = 0;
    for (int used = 0; text[at]; at++) {
        used += (text[at] & 0xc0) != 0x80;
        if (text[at] == ' ' && text[at + 1] == ' ')
            fields = at;
        if (used > columns)
            return fields > 0 ? fields : at;
    }
    return at;
}

/* Draws the bar, if the window is wide enough for one, and the text. The last column stays empty, because some terminals go to a new row
 * after it. Line wrapping is off while the text is written, because the window may have become narrower after its width was read. */
static void draw(struct display *d, double t)
{
    static const char full[] = "########################################", rest[] = "........................................";
    const int columns = window_columns();
    int bar = columns - 4 - columns_of(d->text), filled;
    if (in_background())
        return;
    bar = d->share < 0 || bar < LEAST_BAR ? 0 : WF_MIN(MOST_BAR, bar);
    /* A shorter text leaves more room. The bar does not grow into this room, because the bar's empty part would grow too, as if progress
     * were lost. */
    if (columns == d->columns && d->bar > 0 && bar > d->bar)
        bar = d->bar;
    d->columns = columns;
    d->bar = bar;
    filled = (int)(bar * WF_MIN(d->share, 1));
    on_screen = 1;
    fprintf(stderr, ERASE "\033[?7l%s%.*s%.*s%s%.*s\r\033[?7h", bar ? "[" : "", filled, full, bar - filled, rest, bar ? "] " : "",
            fitting(d->text, columns - 1), d->text);
    d->drawn_at = t;
}

/* Returns what to print before a message: the sequence that erases the bar, and with it a "^C" that the terminal may have echoed there.
 * Returns "" if the display draws no bar. */
static const char *eraser(const struct display *d)
{
    return d->terminal && !d->off && !in_background() ? ERASE : "";
}

void display_wipe(void)
{
    if (on_screen && write(STDERR_FILENO, ERASE, sizeof ERASE - 1) < 0)
        return; /* an error of this write cannot be reported anywhere */
    on_screen = 0;
}

void display_open(struct display *d)
{
    const char *term = getenv("TERM");
    double t = now();
    *d = (struct display){.begin = t, .said_at = t, .drawn_at = -1, .share = -1};
    d->terminal = isatty(STDERR_FILENO) && term && term[0] && strcmp(term, "dumb") != 0;
}

void display_open_beside_output(struct display *d)
{
    display_open(d);
    struct stat info;
    d->off = d->terminal && (isatty(STDOUT_FILENO) || isatty(STDIN_FILENO));
    d->piped = fstat(STDOUT_FILENO, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

void display_make_way(struct display *d)
{
    if (d->piped)
        display_clear(d);
}

double display_seconds(const struct display *d)
{
    return now() - d->begin;
}

void display_show(struct display *d, double share, bool last, const char *format, ...)
{
    double t = now();
    if (d->off || (!d->terminal && t - d->said_at < DISPLAY_LINE_EVERY))
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(d->text, sizeof d->text, format, list);
    va_end(list);
    d->share = share;
    if (!d->terminal)
        display_line(d, "%s", d->text);
    else if (last || d->drawn_at < 0 || t - d->drawn_at >= between)
        draw(d, t);
}

void display_show_lines(struct display *d, double share, int64_t lines)
{
    char count[WF_NUMBER_SIZE], left[DISPLAY_TIME];
    double seconds = display_seconds(d), speed = (double)lines / seconds;
    wf_text_count(lines, count);
    if (share > 0)
        display_show(d, share, false, "%s lines  %.1f lines/s  %s left", count, speed, display_time(seconds / share * (1 - share), left));
    else
        display_show(d, share, false, "%s lines  %.1f lines/s", count, speed);
}

/* Replaces blanks of a line by line feeds where the window ends. */
static void break_line(char *line, int columns)
{
    char *blank = NULL;
    int used = 0;
    for (char *at = line; *at; at++) {
        used += (*at & 0xc0) != 0x80;
        if (*at == ' ')
            blank = at;
        if (used > columns && blank) {
            *blank = '\n';
            used = 0;
            for (const char *c = blank + 1; c <= at; c++)
                used += (*c & 0xc0) != 0x80;
            blank = NULL;
        }
    }
}

void display_line(struct display *d, const char *format, ...)
{
    char line[4096];
    double t = now();
    bool again = on_screen && d->text[0];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (d->terminal)
        break_line(line, window_columns());
    fprintf(stderr, "%s%s\n", eraser(d), line); /* in one call, so that nothing is printed between the eraser and the line */
    on_screen = 0;
    d->said_at = t;
    if (again && t - d->drawn_at >= between)
        draw(d, t);
}

void display_clear(struct display *d)
{
    fputs(eraser(d), stderr);
    on_screen = 0;
    d->text[0] = 0;
}

char *display_time(double seconds, char text[DISPLAY_TIME])
{
    if (!(seconds < 100 * 3600 - 1)) { /* also true for NaN */
        snprintf(text, DISPLAY_TIME, "over 99 h");
        return text;
    }
    int whole = seconds > 0 ? (int)ceil(seconds) : 0;
    if (whole < 60)
        snprintf(text, DISPLAY_TIME, "%d s", whole);
    else if (whole < 3600)
        snprintf(text, DISPLAY_TIME, "%d:%02d min", whole / 60, whole % 60);
    else
        snprintf(text, DISPLAY_TIME, "%d:%02d h", whole / 3600, whole / 60 % 60);
    return text;
}
