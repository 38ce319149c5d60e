/* SPDX-License-Identifier: MIT */
/* What a picture of runs shows, before it is drawn. */
#ifndef WEFT_REPORT_PLOT_RUNS_H
#define WEFT_REPORT_PLOT_RUNS_H

#include <weft/plot.h>

#include "curves.h"
#include "gnuplot.h"

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
/* The points as gnuplot's data block "$kind" "run", such as $m0; values are divided by `unit`; of an empty curve nothing. */
void plot_add_data(const struct curve *curve, char kind, int64_t run, double unit, struct wf_string *s);

enum { NAME_COLUMNS = 36 }; /* of a run's name, at most */
/* The columns that a text takes in a terminal, about. */
int text_columns(const char *text);

#endif
