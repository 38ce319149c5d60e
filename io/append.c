/* SPDX-License-Identifier: MIT */
#include "append.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include <weft/internal/reason.h>

wf_status append_piece(int fd, const char *path, const void *piece, int64_t length, const char *name, int64_t *bytes, wf_error *error)
{
    ssize_t done;
    do
        done = write(fd, piece, (size_t)length);
    while (done < 0 && errno == EINTR);
    if (done == length) {
        *bytes += length;
        return WF_OK;
    }
    int number = done < 0 ? errno : ENOSPC; /* a short write of so few bytes has one cause */
    wf_error_set(error, WF_ERR_IO, "%s: cannot be written at byte %" PRId64 ": %s", path, *bytes, wf_reason(number));
    if (done > 0 && ftruncate(fd, *bytes) != 0)
        wf_error_prefix(error, "a torn %s is left", name);
    return WF_ERR_IO;
}
