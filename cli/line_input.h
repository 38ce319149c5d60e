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
    bool ended;
};

/* Standard input where path is NULL. */
wf_status line_input_open(struct line_input *in, const char *path, wf_error *error) WF_CHECKED;
/* The next line without its end ("\n" or "\r\n") and without a byte order mark; *text is NULL after the last one, and valid until the next
 * call. What was printed is flushed before it waits for more. */
wf_status line_input_next(struct line_input *in, char **text, int64_t *length, wf_error *error) WF_CHECKED;
/* "standard input:3:7: what is wrong" for the byte at `offset` of the last line. Returns WF_ERR_FORMAT. */
wf_status line_input_fault(const struct line_input *in, int64_t offset, wf_error *error, const char *format, ...) WF_PRINTF(4, 5);
/* Appends the ids of the last line; what the vocabulary lacks or is not UTF-8 is placed as above. */
wf_status line_input_encode(const struct line_input *in, const wf_tokenizer *tokenizer, const char *text, int64_t length,
                            const struct wf_encode_options *options, struct wf_tokens *out, wf_error *error) WF_CHECKED;
void line_input_close(struct line_input *in);

#endif
