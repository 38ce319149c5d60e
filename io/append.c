/* SPDX-License-Identifier: MIT */
/* Opens logs for a training that continues, and appends pieces to them (append.h). */
#include "append.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/file.h>
#include <weft/internal/reason.h>
#include <weft/memory.h>

static const int64_t LONGEST = (int64_t)1 << 31;

/* The dropped pieces are nearly always at the end of the file. Then the file is truncated in place, so that a TensorBoard that has the file
 * open can read on at its place: the training writes the same steps again, and their records have the same length as before. */
static wf_status drop_after(struct append_file *file, append_keeper *keep, int64_t last, wf_error *error)
{
    int64_t bytes;
    bool prefix;
    char *data = wf_file_load(file->path, LONGEST, &bytes, error);
    if (!data)
        return error->code;
    wf_status status = keep(data, bytes, last, file->path, &file->bytes, &prefix, error);
    if (status == WF_OK && !prefix)
        status = wf_file_save(file->path, data, file->bytes, error);
    else if (status == WF_OK && file->bytes < bytes && truncate(file->path, file->bytes) != 0)
        status =
            wf_error_set(error, WF_ERR_IO, "%s: cannot be truncated to %" PRId64 " bytes: %s", file->path, file->bytes, wf_reason(errno));
    wf_free(data);
    return status;
}

wf_status append_open(struct append_file *file, char *path, append_keeper *keep, int64_t last, wf_error *error)
{
    struct stat info;
    wf_error failure = {0}; /* `error` may be NULL or hold an older error */
    *file = (struct append_file){.path = path, .fd = -1};
    bool there = path && stat(path, &info) == 0;
    if (!path)
        wf_error_set(&failure, WF_ERR_MEMORY, "no memory for the path of a log");
    else if (there && !S_ISREG(info.st_mode)) /* reading a pipe would wait for a writer */
        wf_error_set(&failure, WF_ERR_IO, "%s: is not a regular file", path);
    else if ((!there || drop_after(file, keep, last, &failure) == WF_OK) &&
             (file->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) < 0)
        wf_error_set(&failure, WF_ERR_IO, "%s: cannot be opened for writing: %s", path, wf_reason(errno));
    if (!failure.code)
        return WF_OK;
    append_close(file);
    return wf_error_set(error, failure.code, "%s", failure.message);
}

wf_status append_piece(struct append_file *file, const void *piece, int64_t length, const char *name, wf_error *error)
{
    ssize_t done;
    do
        done = write(file->fd, piece, (size_t)length);
    while (done < 0 && errno == EINTR);
    if (done == length) {
        file->bytes += length;
        return WF_OK;
    }
    int number = done < 0 ? errno : ENOSPC; /* a short write of so few bytes means that the disk is full */
    wf_error_set(error, WF_ERR_IO, "%s: cannot be written at byte %" PRId64 ": %s", file->path, file->bytes, wf_reason(number));
    if (done > 0 && ftruncate(file->fd, file->bytes) != 0)
        wf_error_prefix(error, "an incomplete %s remains", name);
    return WF_ERR_IO;
}

void append_close(struct append_file *file)
{
    if (file->path && file->fd >= 0)
        close(file->fd);
    wf_free(file->path);
    *file = (struct append_file){0};
}
