/* SPDX-License-Identifier: MIT */
/* Curves of runs, from their metrics.jsonl: losses of training and validation, and the learning rate. Drawn by gnuplot. */
#ifndef WEFT_PLOT_H
#define WEFT_PLOT_H

#include <weft/tokenizer.h>

WF_BEGIN_DECLS

struct wf_plot_options {
    bool log;          /* logarithmic losses */
    int columns, rows; /* of the drawing in characters; 0: 80 x 24 */
};
/* Draws losses and learning rate of the runs over the steps into an SVG or PNG file (by the extension of `path`), atomically. Runs are
 * named by their folders. An error for a run without metrics, or with an invalid line, names the run and the line. WF_ERR_ARGUMENT: another
 * format; WF_ERR_STATE: gnuplot is not installed (names the package). */
WF_API wf_status wf_plot_save(const char *const *runs, int64_t count, const struct wf_plot_options *options, const char *path,
                              wf_error *error) WF_CHECKED;
/* The same as text, appended to *out. */
WF_API wf_status wf_plot_text(const char *const *runs, int64_t count, const struct wf_plot_options *options, struct wf_string *out,
                              wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
