/* SPDX-License-Identifier: MIT */
/* Reads lines from a terminal, with editing and a history if Weft was built with libedit. */
#ifndef WEFT_CLI_LINE_EDIT_H
#define WEFT_CLI_LINE_EDIT_H

#include <weft/error.h>
#include <weft/strings.h>

enum line_edit_end {
    LINE_EDIT_LINE,   /* a line was read */
    LINE_EDIT_HALTED, /* Ctrl-C: the line was dropped */
    LINE_EDIT_ENDED   /* Ctrl-D, the end of the input, or a signal that ends the command */
};
struct line_edit;
/* Opens standard input, which must be a terminal. The prompt is printed on standard error. Returns NULL if there is no memory. */
struct line_edit *line_edit_open(const char *prompt, wf_error *error) WF_CHECKED;
/* Replaces *line by the next line, without its line end: valid UTF-8, in which U+FFFD stands for invalid bytes. The command must watch
 * signals with WATCH_ANSWER. */
enum line_edit_end line_edit_read(struct line_edit *l, struct wf_string *line);
void line_edit_close(struct line_edit *l); /* NULL is allowed */

#endif
