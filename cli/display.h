/* SPDX-License-Identifier: MIT */
/* Shows the progress of a command on standard error. On a terminal a bar in one line is drawn again and again. If standard error is no
 * terminal, or a terminal that cannot move its cursor (TERM unset or "dumb"), the progress is printed as plain lines. */
#ifndef WEFT_CLI_DISPLAY_H
#define WEFT_CLI_DISPLAY_H

#include <weft/base.h>

enum {
    DISPLAY_TEXT = 512,     /* size of the text beside the bar */
    DISPLAY_LINE_EVERY = 10 /* seconds between two plain lines */
};

struct display {
    bool terminal;           /* draws a bar; false: prints plain lines */
    bool off;                /* shows nothing */
    bool piped;              /* standard output is a pipe, and the program behind it may print on the same terminal */
    double begin;            /* time of display_open */
    double drawn_at;         /* time when the bar was last drawn; -1: never */
    double said_at;          /* time of the last message or plain line */
    int columns;             /* width of the window when the bar was last drawn */
    int bar;                 /* width of the bar when it was last drawn; 0: no bar */
    double share;            /* latest progress, from 0 to 1, drawn or not; below 0: unknown */
    char text[DISPLAY_TEXT]; /* latest text, drawn or not; "": no text */
};

/* Starts the display, and the clock of display_seconds. */
void display_open(struct display *d);
/* Starts the display for a command that writes results line by line to standard output. No bar is shown if the results go to a terminal,
 * where they show the progress themselves, or if the input comes from a terminal. */
void display_open_beside_output(struct display *d);
/* Call it before writing results: erases the bar if standard output is a pipe, because the results may appear on the bar's terminal. */
void display_make_way(struct display *d);
/* Seconds since the display was opened. */
double display_seconds(const struct display *d);

/* Shows the progress. On a terminal: a bar filled to `share`, from 0 to 1 (below 0: no bar), followed by the text. Fields of the text
 * are separated by two blanks, and only fields that fit into the window are shown. The bar is drawn at most ten times a second: a call
 * that comes too early for that only stores its share and text, unless `last` is set. Without a terminal: prints the text as a line
 * every ten seconds. */
void display_show(struct display *d, double share, bool last, const char *format, ...) WF_PRINTF(4, 5);
/* Shows the progress of a command that processes lines: the number of lines, lines per second, and the time left if `share` is above 0. */
void display_show_lines(struct display *d, double share, int64_t lines);
/* Prints a message above the bar: up to 4,095 bytes, broken into several rows at blanks on a terminal. */
void display_line(struct display *d, const char *format, ...) WF_PRINTF(2, 3);
/* Erases the bar. Call it before something else is printed, and at the end. */
void display_clear(struct display *d);

/* Erases the bar; may be called in a signal handler. */
void display_wipe(void);

/* Writes a time for people, such as "3 s", "1:05 min" or "2:30 h", and returns `text`. */
enum { DISPLAY_TIME = 32 };
char *display_time(double seconds, char text[DISPLAY_TIME]);

#endif
