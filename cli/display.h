/* SPDX-License-Identifier: MIT */
/* The one line of progress that a command shows on standard error: a bar that is drawn again and again on a terminal, plain lines
 * elsewhere, and on a terminal that cannot move its cursor (TERM unset or "dumb"). */
#ifndef WEFT_CLI_DISPLAY_H
#define WEFT_CLI_DISPLAY_H

#include <weft/base.h>

enum { DISPLAY_TEXT = 512, DISPLAY_LINE_EVERY = 10 /* seconds between lines where there is no terminal */ };

struct display {
    bool terminal; /* else lines */
    bool off;      /* nothing at all */
    bool piped;    /* the results go through a pipe, at whose end they may be shown on the same terminal */
    double begin;  /* of display_seconds */
    double drawn_at, said_at;
    int columns, bar;        /* of the window and the bar when it was drawn last */
    double share;            /* the latest state, drawn or not; */
    char text[DISPLAY_TEXT]; /* "": none */
};

void display_open(struct display *d);
/* The same for a command that writes its results line by line to standard output. There is no bar if they go to a terminal, where they show
 * the progress themselves, or if the input is typed. */
void display_open_beside_output(struct display *d);
/* Called before results are written: erases the bar if they may appear on its terminal. */
void display_make_way(struct display *d);
double display_seconds(const struct display *d); /* since it was opened */

/* Shows the progress. On a terminal: a bar of `share`, 0 to 1 (below 0: none), and the fields of the text, separated by two blanks, that
 * fit into the window, at most ten times a second; a call in between is drawn later or never, unless it is the `last`. Elsewhere: the text
 * as a line every ten seconds. */
void display_show(struct display *d, double share, bool last, const char *format, ...) WF_PRINTF(4, 5);
/* The same for a command that processes lines: their number, the number per second, and the time left if the share is known. */
void display_show_lines(struct display *d, double share, int64_t lines);
/* A separate message above the bar: a line of up to 4,000 bytes, on a terminal broken at blanks. */
void display_line(struct display *d, const char *format, ...) WF_PRINTF(2, 3);
/* Erases the bar: before something else is printed, and at the end. */
void display_clear(struct display *d);

/* Erases the bar, in a signal handler. */
void display_wipe(void);

/* "3 s", "1:05 min", "2:30 h" for people; returns text. */
enum { DISPLAY_TIME = 32 };
char *display_time(double seconds, char text[DISPLAY_TIME]);

#endif
