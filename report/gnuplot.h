/* SPDX-License-Identifier: MIT */
/* Drawing with the program gnuplot. */
#ifndef WEFT_REPORT_GNUPLOT_H
#define WEFT_REPORT_GNUPLOT_H

#include <weft/error.h>
#include <weft/internal/string.h>

enum picture_format { PICTURE_SVG, PICTURE_PNG, PICTURE_TEXT };
/* By the path's end. WF_ERR_ARGUMENT names the formats that there are. */
wf_status picture_format_of(const char *path, enum picture_format *out, wf_error *error) WF_CHECKED;

/* Runs gnuplot on a script, which draws to its standard output (no `set output`), and appends the output to *out. WF_ERR_STATE: it is not
 * installed (names the package), or it failed (with gnuplot's first line about it). Nothing is left behind. */
wf_status gnuplot_run(const struct wf_string *script, struct wf_string *out, wf_error *error) WF_CHECKED;

/* A script is built in a string; gnuplot_run checks whether its memory sufficed. */
/* A text as a gnuplot string in double quotes: nothing in it is read as a command or an escape, and after script_terminal not as markup;
 * an SVG with it is well-formed. The label of a tic gnuplot reads as a format for a number (each % is doubled) and cuts at 50 bytes. */
void script_quote(struct wf_string *s, const char *text, bool tic);
/* Places are shares of the picture, from its lower left corner. A text at a place, drawn as `how` says; and the edges of a panel. */
void script_label(struct wf_string *s, const char *text, double x, double y, const char *how);
void script_margins(struct wf_string *s, double left, double right, double top, double bottom);
/* Sets the terminal: UTF-8, no markup in any text, a white ground. Sizes are pixels of an SVG, of which a PNG gets four each (twice the
 * width, height, fonts and lines, so that it is sharp), or characters of a text. The same numbers give the same picture. */
void script_terminal(struct wf_string *s, enum picture_format format, int width, int height, int font_size);

#endif
