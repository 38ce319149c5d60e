/* SPDX-License-Identifier: MIT */
/* Lines of a file or of standard input, one at a time, however long the input is. */
#ifndef WEFT_CLI_LINE_INPUT_H
#define WEFT_CLI_LINE_INPUT_H

#include "cli.h"

struct line_input {
    int fd;
    const char *name;   /* for messages: "standard input" */
    int64_t line, mark; /* of the last line: its number from 1, and the bytes of a byte order mark before it */
    char *data;
    int64_t begin, end, room; /* what was read and not yet given out */
    int64_t taken, size; /* bytes that were given out, and what there was of a regular file when it was opened; else 0 */
    bool ended;
};

/* Whole lines as they stand in the input. */
struct line_window {
    char *text;
    int64_t length, lines; /* bytes, and line ends: one more where the last line has none */
};

/* Standard input where path is NULL. */
wf_status line_input_open(struct line_input *in, const char *path, wf_error *error) WF_CHECKED;
/* The next line without its end ("\n" or "\r\n") and without a byte order mark; *text is NULL after the last one, and valid until the next
 * call. What was printed is flushed before it waits for more. */
wf_status line_input_next(struct line_input *in, char **text, int64_t *length, wf_error *error) WF_CHECKED;
/* Waits for a line, then takes what comes without a pause, `lines` at most, and no more once there are `bytes`: what is there is worked on
 * at once, and much of it together. None after the last one, nor where the input was interrupted: WF_ERR_CANCELLED. The next window.lines
 * calls of line_input_next then give these lines without reading, so that their texts last together; or line_input_drop passes over
 * them. */
wf_status line_input_window(struct line_input *in, int64_t lines, int64_t bytes, struct line_window *window, wf_error *error) WF_CHECKED;
void line_input_drop(struct line_input *in, const struct line_window *window);
/* How much of it was given out, 0 to 1; -1 where nobody knows the size. `more` bytes count as given out. */
double line_input_share(const struct line_input *in, double more);
/* "standard input:3:7: what is wrong" for the byte at `offset` of the last line. Returns WF_ERR_FORMAT. */
wf_status line_input_fault(const struct line_input *in, int64_t offset, wf_error *error, const char *format, ...) WF_PRINTF(4, 5);
/* Appends the ids of the last line; what the vocabulary lacks or is not UTF-8 is placed as above. */
wf_status line_input_encode(const struct line_input *in, const wf_tokenizer *tokenizer, const char *text, int64_t length,
                            const struct wf_encode_options *options, struct wf_tokens *out, wf_error *error) WF_CHECKED;
void line_input_close(struct line_input *in);

#endif
