/* SPDX-License-Identifier: MIT */
/* Lines of a file or of standard input, one at a time, however long the input is. */
#ifndef WEFT_CLI_LINES_H
#define WEFT_CLI_LINES_H

#include "cli.h"

struct lines {
    int fd;
    const char *name;   /* for messages: "standard input" */
    int64_t line, mark; /* of the last line: its number from 1, and the bytes of a byte order mark before it */
    char *data;
    int64_t begin, end, room; /* what was read and not yet given out */
    bool ended;
};

/* Standard input where path is NULL. */
wf_status lines_open(struct lines *in, const char *path, wf_error *error) WF_CHECKED;
/* The next line without its end ("\n" or "\r\n") and without a byte order mark; *text is NULL after the last one, and valid until the next
 * call. What was printed is flushed before it waits for more. */
wf_status lines_next(struct lines *in, char **text, int64_t *length, wf_error *error) WF_CHECKED;
/* "standard input:3:7: what is wrong" for the byte at `offset` of the last line. Returns WF_ERR_FORMAT. */
wf_status lines_fault(const struct lines *in, int64_t offset, wf_error *error, const char *format, ...) WF_PRINTF(4, 5);
/* The same without a message, when the last line is UTF-8. */
wf_status lines_check(const struct lines *in, const char *text, int64_t length, wf_error *error) WF_CHECKED;
void lines_close(struct lines *in);

#endif
