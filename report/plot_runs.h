/* SPDX-License-Identifier: MIT */
/* What a picture of runs shows, before it is drawn. */
#ifndef WEFT_REPORT_PLOT_RUNS_H
#define WEFT_REPORT_PLOT_RUNS_H

#include <weft/plot.h>

#include "axis.h"
#include "curves.h"

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

/* Finishes the axes, with at most so many tics; of the steps as many as fit below the panel, which has room for so many letters.
 * margin: of the losses, above and below. */
void plot_finish(struct plot *plot, int letters, int losses, int rates, double margin);
/* The points as gnuplot's data block "$kind" "run", such as $m0; of an empty curve nothing. */
void plot_add_data(const struct curve *curve, char kind, int64_t run, struct script *s);

/* The ends of the paths that tell the runs apart, cut in the middle to NAME_COLUMNS: name[i] is freed with wf_free, also after an error. */
enum { NAME_COLUMNS = 36 };
wf_status plot_names(const char *const *runs, int64_t count, char **name, wf_error *error) WF_CHECKED;
/* The columns that a text takes in a terminal, about. */
int text_columns(const char *text);

#endif
