/* SPDX-License-Identifier: MIT */
/* Logs to which whole pieces are appended. A piece is a line of JSON or a record of an event file. */
#ifndef WEFT_IO_APPEND_H
#define WEFT_IO_APPEND_H

#include <weft/error.h>

struct append_file {
    char *path;
    int fd;
    int64_t bytes; /* end of the last whole piece */
};

/* Removes the pieces of steps after `last`, and an incomplete last piece, from the bytes of a log. Moves the other pieces to the front of
 * `data` and sets *kept to their length. *prefix becomes true if no piece had to move. `where` is the path, for messages. */
typedef wf_status append_keeper(char *data, int64_t bytes, int64_t last, const char *where, int64_t *kept, bool *prefix, wf_error *error);

/* Opens a log, or creates it, for a training that continues after step `last`. The pieces that `keep` drops are removed from the file. If
 * they are at its end, the file is truncated, else it is replaced atomically. Takes over `path`; NULL means that there was no memory for
 * the path. On an error *file is closed. */
wf_status append_open(struct append_file *file, char *path, append_keeper *keep, int64_t last, wf_error *error) WF_CHECKED;
/* Appends a piece with one write, so that the piece survives the death of the process. On a full disk returns WF_ERR_IO, and the file is as
 * before. If an incomplete piece could not be removed again, the message says so with `name`. */
wf_status append_piece(struct append_file *file, const void *piece, int64_t length, const char *name, wf_error *error) WF_CHECKED;
void append_close(struct append_file *file); /* *file may be {0} */

#endif
