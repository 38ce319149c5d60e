/* SPDX-License-Identifier: MIT */
/* Inside the room: a file line by line, with no more of it in memory than a line. */
#ifndef WEFT_DATA_SCORE_LINES_H
#define WEFT_DATA_SCORE_LINES_H

#include <weft/score.h>

struct lines {
    const char *name;
    int fd;
    bool end;
    char *data;
    int64_t start, length, capacity; /* the rest of what was read: data[start .. length-1] */
    int64_t line;                    /* of lines so far */
};

wf_status lines_open(struct lines *lines, const char *path, wf_error *error) WF_CHECKED; /* NULL: standard input */
/* The next line, without "\n" and the white space before it; text is NULL at the end. Valid until the next call. */
wf_status lines_next(struct lines *lines, struct wf_segment *out, wf_error *error) WF_CHECKED;
/* Goes to the end: lines->line is then the number of lines. */
wf_status lines_rest(struct lines *lines, wf_error *error) WF_CHECKED;
void lines_close(struct lines *lines);

#endif
