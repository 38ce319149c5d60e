/* SPDX-License-Identifier: MIT */
/* The data of a picture of runs: curves, axes and panels, which plot.c draws as an image and plot_text.c as text. */
#ifndef WEFT_REPORT_PLOT_RUNS_H
#define WEFT_REPORT_PLOT_RUNS_H

#include <weft/plot.h>

#include "gnuplot.h"

/* --- curves.c: reads curves from the metrics.jsonl of a run --- */
struct point {
    double step, value;
    double x; /* position on the horizontal axis: steps, tokens or seconds */
};
struct curve {
    struct point *point; /* in order of rising steps, with one point per step; x never falls */
    int64_t count, capacity;
};
/* Indices of the metrics that are read by default. */
enum { CURVE_TRAIN, CURVE_VALID, CURVE_LR, CURVE_KINDS };
extern const char *const curve_usual[CURVE_KINDS];
enum { NAMES = 64 }; /* maximum number of metrics of a run that are listed by name */
struct curves {
    struct curve of[WF_PLOT_METRICS];
    bool stepped[WF_PLOT_METRICS]; /* the metric has values in lines of metrics.jsonl that are not of validations */
    bool valid[WF_PLOT_METRICS];   /* the metric has values in lines of validations */
    char *name[NAMES];             /* names of all metrics of the run */
    int names;                     /* number of these names */
    char unit[64];                 /* what the run counts in its batches, for example "tokens" */
};

/* Reads the metrics of a run from its metrics.jsonl. `options` (NULL: the defaults) chooses the metrics and the quantity x. An incomplete
 * last line, of a process that was killed or is still writing, is ignored. If a step was logged twice, because the run was resumed, the
 * values logged before the resume for that step and all later steps are dropped. Values are capped at 1e100. Errors: there is no such
 * folder or file, the file has none of the metrics, or a line is invalid (the message names the line). *out is empty after an error. */
wf_status curves_read(const char *folder, const struct wf_plot_options *options, struct curves *out, wf_error *error) WF_CHECKED;
void curves_free(struct curves *curves);
/* Appends the names of all metrics that the runs have: "a, b, c". */
void curves_add_names(const struct curves *runs, int64_t count, struct wf_string *s);

/* Sets *out to the running mean of a curve: each value becomes the mean of the point and `half` neighbours on either side. Near the
 * beginning, where losses fall steeply, both sides have only as many neighbours as exist on the left. Near the end the right side has fewer
 * neighbours than the left. */
wf_status curve_smooth(const struct curve *in, int64_t half, struct curve *out, wf_error *error) WF_CHECKED;
/* Divides a long curve into `buckets` ranges and keeps the lowest and the highest point of each, so that every peak remains visible. */
wf_status curve_thin(const struct curve *in, int64_t buckets, struct curve *out, wf_error *error) WF_CHECKED;
/* Drops the points whose x is not between `from` and `to`; `to` 0: drops only those before `from`. */
void curve_clip(struct curve *curve, double from, double to);
void curve_free(struct curve *curve);

/* --- axis.c --- */
struct axis {
    double low, high; /* range of the values; after axis_finish range of the axis */
    double unit;      /* the numbers at the tics are values divided by `unit` */
    bool log;         /* logarithmic */
    bool broken;      /* for the horizontal axis: tics may have decimals */
};
#define NO_AXIS ((struct axis){.low = INFINITY, .high = -INFINITY, .unit = 1})
bool axis_empty(const struct axis *a);
/* Extends the range so that it contains the value. */
void axis_see(struct axis *a, double value);
/* Extends the range so that it contains a curve. If a few outliers would more than double the range on one side, that side ends at the 1 %
 * or 99 % quantile instead. */
wf_status axis_see_most(struct axis *a, const struct curve *c, wf_error *error);
/* Makes the range of the axis from that of the values. `margin` is the share of the range that is added at either end. */
void axis_finish(struct axis *a, double margin);
/* Writes gnuplot's commands for the range and at most `most` tics of the axis 'x' or 'y', with or without labels. */
void axis_script(const struct axis *a, char name, bool labels, int most, struct wf_string *s);
/* The number of labels that fit below a horizontal axis of `letters` letters. */
int axis_fit(const struct axis *a, int letters);

/* --- plot_runs.c --- */
/* A metric of a run, as it is drawn. */
struct plot_line {
    struct curve raw;  /* the logged values behind a running mean; empty if no running mean is drawn */
    struct curve mean; /* the running mean, or the logged values if no running mean is drawn */
};
struct plot_run {
    char *name;
    struct plot_line of[WF_PLOT_METRICS];
};
struct plot_metric {
    const char *name;
    int panel;   /* index of the panel; -1: the metric has nothing to draw */
    bool points; /* all values are of validations, so they are drawn as points */
};
struct plot_panel {
    struct axis y; /* before plot_finish the range of the values, after it the range of the axis */
    /* NAME if the panel shows NAME/train and NAME/valid; "loss" even if it shows only one of the two; otherwise the name of its metric */
    const char *name;
    char own[64];  /* memory for NAME */
    bool rate;     /* the panel shows a learning rate */
    int64_t above; /* number of logged values above the axis */
    int64_t below; /* number of logged values below the axis */
};
struct plot {
    struct plot_run *run;
    struct curves *read; /* [count]: the logged values of each run, from the x that the option `from` gives to that of `to` */
    int64_t count;
    struct plot_metric metric[WF_PLOT_METRICS];
    struct plot_panel panel[WF_PLOT_METRICS];
    int metrics, panels;
    bool noisy;     /* some curve has logged values behind a running mean */
    bool trained;   /* some curve is a line that does not show a learning rate */
    bool validated; /* some curve is of validations */
    struct axis x;
    const char *x_name;
};
/* Checks the options and reads the runs. WF_ERR_ARGUMENT if there are more than `most` runs. Curves are thinned to what a drawing of
 * `columns` columns can show. Free *out with plot_free, also after an error. */
wf_status plot_load(const char *const *runs, int64_t count, const struct wf_plot_options *options, int64_t columns, int64_t most,
                    struct plot *out, wf_error *error) WF_CHECKED;
void plot_free(struct plot *plot);

/* Sets the ranges of all axes. `margin` is the share of a vertical axis that stays free above and below the curves. */
void plot_finish(struct plot *plot, double margin);
/* Whether the legend has a line for the run. Learning rates count only if no other metric is drawn as a line. */
bool plot_has_line(const struct plot *plot, int64_t run);
/* Whether the legend has a point for the run. */
bool plot_has_points(const struct plot *plot, int64_t run);
/* Appends the title of a panel, such as "loss (nats per token), logarithmic" or "learning rate (1e-4)": the quantity, its unit, and the
 * power of ten by which the numbers at the axis are multiplied. */
void plot_add_title(const struct plot_panel *panel, struct wf_string *s);
/* Appends "3 values above the axis", or nothing if all values lie on the axis. */
void plot_add_beyond(const struct plot_panel *panel, struct wf_string *s);
/* Appends the curves as gnuplot's data blocks $wM_R (raw) and $mM_R (mean), where M is the number of the metric and R that of the run. */
void plot_add_data(const struct plot *plot, struct wf_string *s);
/* Begins or continues a command "plot" with a curve, up to "with"; the caller appends how the curve is drawn. `kind` is the first letter in
 * the name of the curve's data block. False: the curve is empty, and nothing was appended. */
bool plot_curve(const struct curve *curve, char kind, int metric, int64_t run, struct wf_string *s);

/* --- run_names.c --- */
enum { NAME_COLUMNS = 36 }; /* maximum columns of a run's name */
/* Names each run by its path, without the leading folders that all paths share. */
wf_status plot_name_runs(struct plot *p, const char *const *runs, wf_error *error) WF_CHECKED;
/* The approximate number of columns that a text takes in a terminal. */
int text_columns(const char *text);

#endif
