/* SPDX-License-Identifier: MIT */
/* The content of a picture of runs, before it is drawn. */
#ifndef WEFT_REPORT_PLOT_RUNS_H
#define WEFT_REPORT_PLOT_RUNS_H

#include <weft/plot.h>

#include "gnuplot.h"

/* --- curves.c: what metrics.jsonl of a run holds that can be drawn --- */
struct point {
    double step, value;
    double x; /* where it is drawn: the step, tokens or seconds */
};
struct curve {
    struct point *point; /* by step, each step once; x does not fall */
    int64_t count, capacity;
};
/* The metrics that are read by default. */
enum { CURVE_TRAIN, CURVE_VALID, CURVE_LR, CURVE_KINDS };
extern const char *const curve_usual[CURVE_KINDS];
enum { NAMES = 64 }; /* of the metrics of a run, at most */
struct curves {
    struct curve of[WF_PLOT_METRICS];
    bool stepped[WF_PLOT_METRICS], valid[WF_PLOT_METRICS]; /* whether values stood in lines of steps, of validations */
    char *name[NAMES];                                     /* of all metrics that the run has */
    int names;
    char unit[64]; /* what its batches count: "tokens" */
};

/* Reads the run's file; of `options` (NULL: the defaults) metrics and x. An incomplete last line (of a killed process, or one that is being
 * written) does not count. If a step was logged twice, the later line counts, and earlier values of later steps are dropped. Values are
 * capped at 1e100. No folder, no file or none of the metrics yet: an error that says what to do; an invalid line: an error with its place.
 * *out is empty after an error. */
wf_status curves_read(const char *folder, const struct wf_plot_options *options, struct curves *out, wf_error *error) WF_CHECKED;
void curves_free(struct curves *curves);
/* "a, b, c": all metrics that the runs have. */
void curves_add_names(const struct curves *runs, int64_t count, struct wf_string *s);

/* The mean of each point and `half` neighbours on either side. At the beginning, where losses fall steeply, the right side has no more than
 * the left; at the end it has fewer. */
wf_status curve_smooth(const struct curve *in, int64_t half, struct curve *out, wf_error *error) WF_CHECKED;
/* At most 2 * buckets points: the lowest and the highest of each bucket, so that no peak is lost. */
wf_status curve_thin(const struct curve *in, int64_t buckets, struct curve *out, wf_error *error) WF_CHECKED;
/* Drops the points outside of a part of the axis; to 0: to the end. */
void curve_clip(struct curve *curve, double from, double to);
void curve_free(struct curve *curve);

/* --- axis.c --- */
struct axis {
    double low, high; /* the range of the values; after axis_finish that of the axis */
    double unit;      /* of the numbers at its tics */
    bool log, broken; /* broken: tics may have decimals, on the horizontal axis */
};
#define NO_AXIS ((struct axis){.low = INFINITY, .high = -INFINITY, .unit = 1})
bool axis_empty(const struct axis *a);
void axis_see(struct axis *a, double value);
/* Takes in a curve, or, if a few outliers would more than double the axis on one side, only its 1 % to 99 % quantiles. */
wf_status axis_see_most(struct axis *a, const struct curve *c, wf_error *error);
/* Leaves `margin` of the axis free at both ends. */
void axis_finish(struct axis *a, double margin);
/* Range and tics (`most` at most) of axis 'x' or 'y', with or without labels. */
void axis_script(const struct axis *a, char name, bool labels, int most, struct wf_string *s);
/* The number of labels of a horizontal axis that fit into so many letters. */
int axis_fit(const struct axis *a, int letters);

/* --- plot_runs.c --- */
struct plot_line {
    struct curve raw;  /* as it was logged; empty where `mean` is that */
    struct curve mean; /* the running mean, or as it was logged */
};
struct plot_run {
    char *name;
    struct plot_line of[WF_PLOT_METRICS];
};
struct plot_metric {
    const char *name;
    int panel;   /* -1: there is nothing to draw */
    bool points; /* of validations */
};
struct plot_panel {
    struct axis y;        /* the range of its values until plot_finish */
    const char *name;     /* NAME of NAME/train beside NAME/valid, else the metric's */
    char own[64];         /* for such a NAME */
    bool rate;            /* of a learning rate */
    int64_t above, below; /* logged values that lie beyond the axis */
};
struct plot {
    struct plot_run *run;
    struct curves *read; /* [count] as they were logged, between `from` and `to` */
    int64_t count;
    struct plot_metric metric[WF_PLOT_METRICS];
    struct plot_panel panel[WF_PLOT_METRICS];
    int metrics, panels;
    bool noisy, trained, validated; /* whether there is any raw, mean (but of a learning rate), validation */
    struct axis x;
    const char *x_name;
};
/* `columns`: how many points side by side the drawing can show; most: runs. Checks the options. Freed with plot_free, also after an error.
 */
wf_status plot_load(const char *const *runs, int64_t count, const struct wf_plot_options *options, int64_t columns, int64_t most,
                    struct plot *out, wf_error *error) WF_CHECKED;
void plot_free(struct plot *plot);

/* Sets the ranges of the axes; margin: share that stays free above and below, of the first panel. */
void plot_finish(struct plot *plot, double margin);
/* Whether a run has any line, or any points, in any panel. */
bool plot_has_line(const struct plot *plot, int64_t run);
bool plot_has_points(const struct plot *plot, int64_t run);
/* "loss (nats per token), logarithmic": the quantity, and the factor of its numbers. */
void plot_add_title(const struct plot_panel *panel, struct wf_string *s);
/* "3 values above the axis", or nothing. */
void plot_add_beyond(const struct plot_panel *panel, struct wf_string *s);
/* The curves as gnuplot's data blocks $w0_0 (raw), $m0_0 (mean or points): metric and run. */
void plot_add_data(const struct plot *plot, struct wf_string *s);
/* Begins or continues a command "plot" with a curve; the caller adds how it is drawn. false: it is empty, and nothing was added. */
bool plot_curve(const struct curve *curve, char kind, int metric, int64_t run, struct wf_string *s);

/* --- run_names.c --- */
enum { NAME_COLUMNS = 36 }; /* of a run's name, at most */
/* Names all runs by their paths without the folders that all share. */
wf_status plot_name_runs(struct plot *p, const char *const *runs, wf_error *error) WF_CHECKED;
/* The columns that a text takes in a terminal, about. */
int text_columns(const char *text);

#endif
