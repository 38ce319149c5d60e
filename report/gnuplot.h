/* SPDX-License-Identifier: MIT */
/* Drawing with the program gnuplot. */
#ifndef WEFT_REPORT_GNUPLOT_H
#define WEFT_REPORT_GNUPLOT_H

#include <weft/tokenizer.h>

enum picture_format { PICTURE_SVG, PICTURE_PNG, PICTURE_TEXT };
/* By the path's end. WF_ERR_ARGUMENT names the formats that there are. */
wf_status picture_format_of(const char *path, enum picture_format *out, wf_error *error) WF_CHECKED;

/* Runs gnuplot on a script, which draws to its standard output (no `set output`), and appends what it printed to *out. WF_ERR_STATE: it is
 * not installed (with the package's name); what else goes wrong comes with gnuplot's first line about it. Nothing is left behind. */
wf_status gnuplot_run(const struct wf_string *script, struct wf_string *out, wf_error *error) WF_CHECKED;

/* Building a script: the first failure (no memory) is kept in `status`, and the rest then does nothing. */
struct script {
    struct wf_string text;
    wf_status status;
};
void script_add(struct script *s, const char *format, ...) WF_PRINTF(2, 3); /* numbers with a point in every locale */
/* A text as a gnuplot string in double quotes: nothing in it is read as markup, a command or an escape. */
void script_quote(struct script *s, const char *text);

#endif
