/* SPDX-License-Identifier: MIT */
/* Reads a file or standard input with wf_lines (weft/internal/lines.h), for commands that answer line by line. Adds to wf_lines the waiting
 * for input that arrives slowly. */
#ifndef WEFT_CLI_LINE_INPUT_H
#define WEFT_CLI_LINE_INPUT_H

#include <weft/internal/lines.h>

#include "cli.h"

/* As wf_lines_open. The reader also flushes standard output before each read, stops if the command is interrupted, and refuses lines
 * above 64 MiB. */
wf_status line_input_open(struct wf_lines *in, const char *path, wf_error *error) WF_CHECKED;
/* Waits for a line, then reads all further input that comes without a pause. A single line is therefore answered at once, and many lines
 * are processed together. Afterwards the reader holds *count whole lines, *length bytes together. *count is 0 only at the end of the input.
 * Reading stops when `most` lines, or at least one line and `bytes` bytes, are held. To take the lines, either call wf_lines_next *count
 * times, which then reads nothing, so that the texts of all lines stay valid together; or call wf_lines_block with *length bytes for all
 * lines. */
wf_status line_input_wait(struct wf_lines *in, int64_t most, int64_t bytes, int64_t *count, int64_t *length, wf_error *error) WF_CHECKED;
/* Whether line_input_wait for one line would return at once, or soon: a line is held, the input has ended, or bytes can be read. */
bool line_input_ready(const struct wf_lines *in);
/* The number of bytes `given`, which the reader has given out, as a share of the input's size: 0 to 1, or -1 if the size is unknown. */
double line_input_share(const struct wf_lines *in, double given);
/* Appends the ids of the line that the reader gave out last. An error (not UTF-8, not in the vocabulary) names file, line and byte. */
wf_status line_input_encode(const struct wf_lines *in, const wf_tokenizer *tokenizer, const struct wf_encode_options *options,
                            struct wf_tokens *out, wf_error *error) WF_CHECKED;

#endif
