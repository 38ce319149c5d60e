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
/* Draws the runs' losses over the steps, and below them the learning rate, into an SVG or PNG file: the path's end says which. Runs are
 * named by their folders. A run without metrics, or with a line that is no JSON, is named, with the line. WF_ERR_ARGUMENT: another
 * format; WF_ERR_STATE: no gnuplot (says the package). Written whole or not at all. */
WF_API wf_status wf_plot_save(const char *const *runs, int64_t count, const struct wf_plot_options *options, const char *path,
                              wf_error *error) WF_CHECKED;
/* The same in characters, appended to *out. */
WF_API wf_status wf_plot_text(const char *const *runs, int64_t count, const struct wf_plot_options *options, struct wf_string *out,
                              wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
