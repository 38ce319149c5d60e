/* SPDX-License-Identifier: MIT */
#include "display.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <utf8proc.h>

#include <weft/internal/text.h>

/* Back to the bar's first cell, wrapping on, and nothing from there to the end of the screen. The screen is cleared behind a blank: tmux
 * takes clearing from the first cell of its first row for clearing the screen, and keeps what was there in its history. */
#define ERASE "\r\033[?7h \033[J\r"

enum { MOST_BAR = 40, LEAST_BAR = 4 };
/* Nine a second: with the last one, which waits for nothing, they are never more than ten. */
static const double between = 1.0 / 9;

static volatile sig_atomic_t on_screen;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- what is drawn ------------------------------------------------------------------------------------------------- */

static int window(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

/* As much of the text as fits into so many columns, cut between characters; what no terminal should be sent is shown as '?'. Returns
 * the bytes, *columns those that it takes. */
static size_t fit(const char *text, int width, char *out, int *columns)
{
    size_t length = strlen(text), bytes = 0;
    *columns = 0;
    for (size_t at = 0; at < length;) {
        utf8proc_int32_t c;
        utf8proc_ssize_t size = utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(length - at), &c);
        bool bad = size < 1 || utf8proc_category(c) == UTF8PROC_CATEGORY_CC || utf8proc_category(c) == UTF8PROC_CATEGORY_CF ||
                   utf8proc_category(c) == UTF8PROC_CATEGORY_ZL || utf8proc_category(c) == UTF8PROC_CATEGORY_ZP;
        int cells = bad ? 1 : utf8proc_charwidth(c);
        if (*columns + cells > width)
            break;
        if (bad)
            out[bytes] = '?';
        else
            memcpy(out + bytes, text + at, (size_t)size);
        bytes += bad ? 1 : (size_t)size;
        at += size < 1 ? 1 : (size_t)size;
        *columns += cells;
    }
    return bytes;
}

static size_t append(char *out, size_t at, const char *text)
{
    size_t length = strlen(text);
    memcpy(out + at, text, length);
    return at + length;
}

/* A terminal that is slow or gone is no reason to fail. */
static void write_all(const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t done = write(STDERR_FILENO, bytes, count);
        if (done < 0 && errno == EAGAIN) /* somebody made it non-blocking */
            poll(&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, -1);
        else if (done < 0 && errno != EINTR)
            return;
        bytes += done > 0 ? done : 0;
        count -= done > 0 ? (size_t)done : 0;
    }
}

/* Whoever works in the shell meanwhile (weft train ... &) is left alone. */
static bool in_background(void)
{
    pid_t group = tcgetpgrp(STDERR_FILENO);
    return group >= 0 && group != getpgrp();
}

static void draw(struct display *d, double t)
{
    char out[DISPLAY_TEXT + MOST_BAR + 64], text[DISPLAY_TEXT];
    /* the last column stays free: a character there leaves the cursor in a place that terminals do not agree about */
    int columns = window(), width = columns > 1 ? columns - 1 : 1, used;
    if (in_background())
        return;
    size_t length = fit(d->text, width, text, &used), at = append(out, 0, ERASE "\033[?7l");
    int bar = width - used - 3;
    bar = bar > MOST_BAR ? MOST_BAR : bar;
    if (d->share >= 0 && bar >= LEAST_BAR) {
        int full = (int)((double)bar * (d->share < 1 ? d->share : 1));
        out[at++] = '[';
        memset(out + at, '#', (size_t)full);
        memset(out + at + full, '.', (size_t)(bar - full));
        at = append(out, at + (size_t)bar, "] ");
    }
    memcpy(out + at, text, length);
    at = append(out, at + length, "\033[?7h\r");
    on_screen = 1;
    write_all(out, at);
    d->drawn_at = t;
}

/* What goes before a message: where there is no bar, there may be the terminal's "^C" of the one who stops the program. */
static const char *eraser(const struct display *d)
{
    return d->terminal && !d->off && !in_background() ? ERASE : "";
}

/* --- the display --------------------------------------------------------------------------------------------------- */

void display_wipe(void)
{
    if (on_screen && write(STDERR_FILENO, ERASE, sizeof ERASE - 1) < 0)
        return; /* nothing to be done about it */
    on_screen = 0;
}

void display_die(int signal)
{
    display_wipe();
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(signal, &action, NULL);
    raise(signal);
}

static void wipe_at_the_end(void)
{
    static const int deadly[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        struct sigaction was, action = {.sa_handler = display_die};
        if (sigaction(deadly[i], NULL, &was) == 0 && was.sa_handler == SIG_DFL)
            sigaction(deadly[i], &action, NULL);
    }
}

void display_open(struct display *d)
{
    const char *term = getenv("TERM");
    double t = now();
    *d = (struct display){.begin = t, .said_at = t, .drawn_at = -1, .share = -1};
    d->terminal = isatty(STDERR_FILENO) && term && term[0] && strcmp(term, "dumb") != 0;
    if (d->terminal)
        wipe_at_the_end();
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

void display_line(struct display *d, const char *format, ...)
{
    enum { ROOM = 4096 };
    char line[ROOM];
    double t = now();
    va_list list;
    bool again = on_screen && d->text[0];
    size_t at = append(line, 0, eraser(d));
    va_start(list, format);
    int length = vsnprintf(line + at, ROOM - at - 1, format, list);
    va_end(list);
    /* in one write, for nothing to come between; too long a line loses its end */
    at += length < 0 ? 0 : (size_t)length < ROOM - at - 1 ? (size_t)length : ROOM - at - 2;
    line[at++] = '\n';
    write_all(line, at);
    on_screen = 0;
    d->said_at = t;
    if (again && t - d->drawn_at >= between)
        draw(d, t);
}

void display_clear(struct display *d)
{
    const char *bytes = eraser(d);
    write_all(bytes, strlen(bytes));
    on_screen = 0;
    d->text[0] = 0;
}

char *display_time(double seconds, char text[DISPLAY_TIME])
{
    if (!(seconds < 100 * 3600 - 1)) { /* not a number either */
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
