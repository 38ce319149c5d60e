/* SPDX-License-Identifier: MIT */
/* Logs grow by whole pieces: lines of JSON, records of events. */
#ifndef WEFT_IO_APPEND_H
#define WEFT_IO_APPEND_H

#include <weft/error.h>

/* One write at the end of a file that was opened with O_APPEND, so that the piece survives the death of the process. *bytes, where the
 * file ends, grows with it. On a full disk the file is as before (WF_ERR_IO, which names the piece where it could not be cut off again). */
wf_status append_piece(int fd, const char *path, const void *piece, int64_t length, const char *name, int64_t *bytes,
                       wf_error *error) WF_CHECKED;

#endif
