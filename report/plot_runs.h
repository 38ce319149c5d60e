/* SPDX-License-Identifier: MIT */
/* What a picture of runs shows, before it is drawn. */
#ifndef WEFT_REPORT_PLOT_RUNS_H
#define WEFT_REPORT_PLOT_RUNS_H

#include <weft/plot.h>

#include "gnuplot.h"

/* --- curves.c: what metrics.jsonl of a run holds that can be drawn over the steps --- */
struct point {
    double step, value;
};
struct curve {
    struct point *point; /* by step, each step once */
    int64_t count, capacity;
};
enum curve_kind { CURVE_TRAIN, CURVE_VALID, CURVE_LR, CURVE_KINDS };
struct curves {
    struct curve of[CURVE_KINDS];
};

/* Reads the run's file. A last line that is not whole (of a killed process, or one that is being written) does not count. Of a step that
 * was logged twice the later line counts, and nothing stays of steps behind it. Values are capped at 1e100. A folder that is none, without
 * the file, or in which no loss was logged yet: an error with what to do; a line that can't be read is placed. *out is empty after an
 * error. */
wf_status curves_read(const char *folder, struct curves *out, wf_error *error) WF_CHECKED;
void curves_free(struct curves *curves);

/* The mean of each point and `half` neighbours on either side; fewer at the end, and at the beginning, where losses fall steeply, as many
 * on the right as there are on the left. */
wf_status curve_smooth(const struct curve *in, int64_t half, struct curve *out, wf_error *error) WF_CHECKED;
/* At most 2 * buckets points: the lowest and the highest of each of so many stretches, so that no peak is lost. */
wf_status curve_thin(const struct curve *in, int64_t buckets, struct curve *out, wf_error *error) WF_CHECKED;
void curve_free(struct curve *curve);

/* --- plot_runs.c --- */
struct axis {
    double low, high; /* what there is; then what is drawn */
    double unit;      /* of the numbers at its tics */
    bool log;
};
struct plot_run {
    char *name;
    struct curve raw;  /* training as it was logged; empty where so few lines are no noise */
    struct curve mean; /* its running mean, or itself */
    struct curve valid, lr;
};
struct plot {
    struct plot_run *run;
    int64_t count;
    bool noisy, trained, validated; /* whether any run has raw, mean, valid */
    struct axis x, loss, lr;        /* with what they must hold; not finished. lr may be empty */
};
/* `columns`: how many points side by side the drawing can show. Freed with plot_free, also after an error. */
wf_status plot_load(const char *const *runs, int64_t count, bool log, int64_t columns, struct plot *out, wf_error *error) WF_CHECKED;
void plot_free(struct plot *plot);

/* Sets the ranges of the axes; margin: share that stays free above and below the losses. */
void plot_finish(struct plot *plot, double margin);
/* "learning rate", with what its numbers are multiplied by. */
void plot_add_rate(const struct plot *plot, struct wf_string *s);
bool axis_empty(const struct axis *a);
/* Range and tics (at most so many) of axis 'x' or 'y', with or without what is written at them. */
void axis_script(const struct axis *a, char name, bool labels, int most, struct wf_string *s);
/* How many numbers of an axis of steps fit into so many letters. */
int axis_fit(const struct axis *a, int letters);
/* The curves of all runs as gnuplot's data blocks $t0 (raw), $m0 (mean), $v0 (validation), $r0 (rate), $t1 ... */
void plot_add_data(const struct plot *plot, struct wf_string *s);
/* Begins or continues a command "plot" with a curve; the caller adds how it is drawn. false: it is empty, and nothing was added. */
bool plot_curve(const struct curve *curve, char kind, int64_t run, struct wf_string *s);

enum { NAME_COLUMNS = 36 }; /* of a run's name, at most */
/* The columns that a text takes in a terminal, about. */
int text_columns(const char *text);

#endif
