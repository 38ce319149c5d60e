/* SPDX-License-Identifier: MIT */
/* Lines of a file or of standard input for commands that answer line by line: wf_lines, and when to wait. */
#ifndef WEFT_CLI_LINE_INPUT_H
#define WEFT_CLI_LINE_INPUT_H

#include <weft/internal/lines.h>

#include "cli.h"

/* wf_lines_open, with a reader that flushes standard output before it waits, and stops if the command is interrupted. */
wf_status line_input_open(struct wf_lines *in, const char *path, wf_error *error) WF_CHECKED;
/* Waits for a line, then reads all that comes without a pause, to answer at once and to process many lines together. Afterwards *count
 * whole lines of *length bytes are held: 0 at the end, at most `most`, and no more once there are `bytes`. *count calls of wf_lines_next
 * give them without reading, so that their texts are valid together; or wf_lines_block of *length bytes gives them all. */
wf_status line_input_wait(struct wf_lines *in, int64_t most, int64_t bytes, int64_t *count, int64_t *length, wf_error *error) WF_CHECKED;
/* The share of the input that was given out, 0 to 1; -1 if its size is unknown. */
double line_input_share(const struct wf_lines *in, double given);
/* Appends the ids of the line that was given out last. An error (not UTF-8, not in the vocabulary) names the place. */
wf_status line_input_encode(const struct wf_lines *in, const wf_tokenizer *tokenizer, const struct wf_encode_options *options,
                            struct wf_tokens *out, wf_error *error) WF_CHECKED;

#endif
