/* SPDX-License-Identifier: MIT */
/* Logs grow by whole pieces: lines of JSON, records of events. */
#ifndef WEFT_IO_APPEND_H
#define WEFT_IO_APPEND_H

#include <weft/error.h>

struct append_file {
    char *path;
    int fd;
    int64_t bytes; /* where the last whole piece ends */
};

/* Moves the pieces of a log that stay to the front of `data`: those of step `last` and before. *kept is their length; *prefix: they are
 * where they were. A torn last piece goes. `where`: the path, for messages. */
typedef wf_status append_keeper(char *data, int64_t bytes, int64_t last, const char *where, int64_t *kept, bool *prefix, wf_error *error);

/* Opens a log, or creates it, for a training that continues after step `last`. The pieces that `keep` drops are removed: in place if they
 * are the end of the file, else atomically. Takes over `path` (NULL: no memory). On an error *file is closed. */
wf_status append_open(struct append_file *file, char *path, append_keeper *keep, int64_t last, wf_error *error) WF_CHECKED;
/* One write at the end, so that the piece survives the death of the process. On a full disk the file is as before (WF_ERR_IO, which names
 * the piece where it could not be cut off again). */
wf_status append_piece(struct append_file *file, const void *piece, int64_t length, const char *name, wf_error *error) WF_CHECKED;
void append_close(struct append_file *file); /* also of {0} */

#endif
