/* SPDX-License-Identifier: MIT */
/* Plots the metrics of runs, which are logged in metrics.jsonl, with gnuplot: losses, the learning rate, or any other metric. */
#ifndef WEFT_PLOT_H
#define WEFT_PLOT_H

#include <weft/tokenizer.h>

WF_BEGIN_DECLS

enum wf_plot_x {
    WF_PLOT_STEPS,  /* updates done */
    WF_PLOT_TOKENS, /* number of tokens trained on, or of another unit that the task counts (images, rows); runs of older versions have no
                       such number */
    WF_PLOT_SECONDS /* seconds of training, summed over all resumes */
};
enum {
    WF_PLOT_METRICS = 16,  /* maximum number of metrics of a picture or text */
    WF_PLOT_RUNS = 40,     /* maximum number of runs of a picture: there are 40 different combinations of colour and dash */
    WF_PLOT_TEXT_RUNS = 26 /* maximum number of runs of a text */
};

/* Options of a plot. If all are zero, it shows the losses and the learning rate of the whole runs over the steps. */
struct wf_plot_options {
    bool log;          /* logarithmic vertical axes, except those of learning rates */
    int columns, rows; /* size of a text in characters; 0: 80 and 24 */
    enum wf_plot_x x;  /* quantity on the horizontal axis */
    double from, to;   /* range of the horizontal axis in its unit; `to` 0: up to the end */
    /* Number of logged values over which a running mean is taken. 1 or negative: no running mean. 0: a thirtieth of the values that are
     * drawn, but no running mean if these are fewer than 40. Validations and learning rates are never smoothed. */
    int64_t smooth;
    const char *const *metric; /* [metrics]: names in metrics.jsonl, such as "grad_norm". NAME/train and NAME/valid share a panel; any other
                                  metric has its own */
    int64_t metrics;           /* number of names; 0: the plot shows "loss/train", "loss/valid" and "lr", as far as the runs have them */
};
/* Draws the runs into an SVG or PNG file, which is written atomically; the extension of `path`, .svg or .png, determines the format. In the
 * picture a run is called by the name of its folder. If a few outliers would more than double a vertical axis, the axis ends at the 1 % or
 * 99 % quantile, and the picture says how many values lie beyond. WF_ERR_ARGUMENT: another extension, options out of range, more than
 * WF_PLOT_RUNS runs, a metric that no run has (the message lists the known ones), or no value between `from` and `to`. WF_ERR_STATE: a run
 * has logged no loss yet, or gnuplot failed or is not installed (the message names the package). WF_ERR_IO: there is no such run.
 * WF_ERR_FORMAT: a run has an invalid line (the message names file and line). */
WF_API wf_status wf_plot_save(const char *const *runs, int64_t count, const struct wf_plot_options *options, const char *path,
                              wf_error *error) WF_CHECKED;
/* Draws the runs as text, which is appended to *out. There may be at most WF_PLOT_TEXT_RUNS runs. The errors are those of wf_plot_save. */
WF_API wf_status wf_plot_text(const char *const *runs, int64_t count, const struct wf_plot_options *options, struct wf_string *out,
                              wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
