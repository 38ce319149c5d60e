/* SPDX-License-Identifier: MIT */
/* Lines of a file or of standard input for commands that answer line by line: wf_lines, and when to wait. */
#ifndef WEFT_CLI_LINE_INPUT_H
#define WEFT_CLI_LINE_INPUT_H

#include <weft/internal/lines.h>

#include "cli.h"

/* wf_lines_open, of a reader that flushes what was printed before it waits for more, and stops where the command was interrupted. */
wf_status line_input_open(struct wf_lines *in, const char *path, wf_error *error) WF_CHECKED;
/* Waits for a line, then reads what comes without a pause: what is there is worked on at once, and much of it together. *count whole lines
 * (0 at the end, `most` at most, and no more once there are `bytes`) of *length bytes are then held: so many calls of wf_lines_next give
 * them without reading, so that their texts last together; or wf_lines_block of *length bytes gives them all. */
wf_status line_input_wait(struct wf_lines *in, int64_t most, int64_t bytes, int64_t *count, int64_t *length, wf_error *error) WF_CHECKED;
/* How much of it was given out, 0 to 1; -1 where nobody knows the size. */
double line_input_share(const struct wf_lines *in, double given);
/* Appends the ids of the line that was given out last; what the vocabulary lacks or is not UTF-8 is placed. */
wf_status line_input_encode(const struct wf_lines *in, const wf_tokenizer *tokenizer, const struct wf_encode_options *options,
                            struct wf_tokens *out, wf_error *error) WF_CHECKED;

#endif
