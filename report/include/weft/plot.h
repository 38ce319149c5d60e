/* SPDX-License-Identifier: MIT */
/* Curves of runs, from their metrics.jsonl: losses of training and validation, the learning rate, or any other metric. Drawn by gnuplot. */
#ifndef WEFT_PLOT_H
#define WEFT_PLOT_H

#include <weft/tokenizer.h>

WF_BEGIN_DECLS

enum wf_plot_x {
    WF_PLOT_STEPS,  /* updates done */
    WF_PLOT_TOKENS, /* tokens trained on, or what else the task counts (images, rows); runs of older versions did not log it */
    WF_PLOT_SECONDS /* of training, over all resumes */
};
enum {
    WF_PLOT_METRICS = 16,  /* metrics of a picture, at most */
    WF_PLOT_RUNS = 40,     /* runs of a picture that have different lines */
    WF_PLOT_TEXT_RUNS = 26 /* and of a text */
};

/* All zero: losses and learning rate, of whole runs, over the steps. */
struct wf_plot_options {
    bool log;                  /* logarithmic axes, except of learning rates */
    int columns, rows;         /* of the drawing in characters; 0: 80 x 24 */
    enum wf_plot_x x;          /* the horizontal axis */
    double from, to;           /* the part of it that is drawn, in its unit; to 0: to the end */
    int64_t smooth;            /* window of the running mean in logged values; 1 or negative: no mean; 0: a thirtieth of the values
                                  that are drawn, but no mean for fewer than 40. Validations and learning rates are not smoothed */
    const char *const *metric; /* [metrics]: names in metrics.jsonl, such as "grad_norm". Each has its panel; NAME/train and NAME/valid
                                  share one */
    int64_t metrics;           /* 0: "loss/train", "loss/valid" and "lr", as far as the runs have them */
};
/* Draws the runs into an SVG or PNG file (by the extension of `path`), atomically. Runs are named by their folders. A vertical axis that a
 * few outliers would more than double ends at the 1 % and 99 % quantiles, and the picture says how many values lie beyond. An error for a
 * run without metrics, or with an invalid line, names the run and the line. WF_ERR_ARGUMENT: another format, options out of range, more
 * than WF_PLOT_RUNS runs, a metric that no run has (the message lists the known ones), or nothing between `from` and `to`; WF_ERR_STATE:
 * gnuplot is not installed (names the package). */
WF_API wf_status wf_plot_save(const char *const *runs, int64_t count, const struct wf_plot_options *options, const char *path,
                              wf_error *error) WF_CHECKED;
/* The same as text, appended to *out; at most WF_PLOT_TEXT_RUNS runs. */
WF_API wf_status wf_plot_text(const char *const *runs, int64_t count, const struct wf_plot_options *options, struct wf_string *out,
                              wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
