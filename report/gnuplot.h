/* SPDX-License-Identifier: MIT */
/* Makes scripts for the program gnuplot and runs it. */
#ifndef WEFT_REPORT_GNUPLOT_H
#define WEFT_REPORT_GNUPLOT_H

#include <weft/error.h>
#include <weft/internal/string.h>

enum picture_format { PICTURE_SVG, PICTURE_PNG, PICTURE_TEXT };
/* Finds the format by the extension of the path. WF_ERR_ARGUMENT: another extension; the message lists the known ones. */
wf_status picture_format_of(const char *path, enum picture_format *out, wf_error *error) WF_CHECKED;

/* Runs gnuplot on a script and appends gnuplot's standard output to *out. The script must not contain `set output`. WF_ERR_STATE: gnuplot
 * is not installed (the message names the package), or it failed (the message has the first line of its complaint). No file remains. */
wf_status gnuplot_run(const struct wf_string *script, struct wf_string *out, wf_error *error) WF_CHECKED;

/* The functions below append to a script. They report no errors: gnuplot_run fails if there was no memory for the script. */

/* Appends a text as a gnuplot string in double quotes. No part of the text acts as a command, an escape or (after script_terminal) markup,
 * and an SVG with it is well-formed. tic: the text is the label of a tic, which gnuplot takes as a format for a number (so each % is
 * doubled) and cuts off after 50 bytes. */
void script_quote(struct wf_string *s, const char *text, bool tic);
/* Appends a text at x, y, with gnuplot's options `how`. The coordinates run from 0 to 1 over the picture, from its lower left corner. */
void script_label(struct wf_string *s, const char *text, double x, double y, const char *how);
/* Sets the edges of a panel, in the same coordinates. */
void script_margins(struct wf_string *s, double left, double right, double top, double bottom);
/* Sets gnuplot's terminal: UTF-8, no markup in strings, a white background. Sizes are in pixels for an SVG, and in characters for a picture
 * of characters. A PNG is drawn twice as wide and high, with fonts and lines of twice the size, so that it is sharp and looks like the SVG.
 */
void script_terminal(struct wf_string *s, enum picture_format format, int width, int height, int font_size);

#endif
