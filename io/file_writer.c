/* SPDX-License-Identifier: MIT */
/* Replaces files atomically. A writer holds a lock on its temporary file, which tells wf_file_sweep that the writer is alive. A process id
 * would not serve, because it means nothing in another container that shares the folder. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/internal/files.h>
#include <weft/internal/hash.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/reason.h>
#include <weft/memory.h>

enum { BUFFER = 1 << 18, TRIES = 100 };

struct wf_file_writer {
    char *path;
    char *temporary; /* NULL: the file is written in place */
    int fd;
    int64_t buffered, written;
    wf_error failure;
    char *buffer;
};

/* Returns true if the path must be written in place, because a rename would destroy it: a device, a pipe, or the name of a standard stream,
 * even if that leads to a regular file. */
static bool written_in_place(const char *path, const struct stat *info)
{
    return (info && !S_ISREG(info->st_mode) && !S_ISDIR(info->st_mode)) || !strncmp(path, "/dev/fd/", 8) || !strncmp(path, "/dev/std", 8) ||
           !strncmp(path, "/proc/", 6);
}

/* Returns the number of the open file that the path names (/dev/stdout, /dev/fd/N), or -1. Writing continues at the position of that file.
 * Opening it by its name would instead begin at its start, lose what a shell's >> keeps, and fail for a socket. */
static int open_already(const char *path)
{
    char digits[10]; /* a longer number is not an int, and not an open file */
    int end = 0;
    if (!strcmp(path, "/dev/stdout"))
        return STDOUT_FILENO;
    if (!strcmp(path, "/dev/stderr"))
        return STDERR_FILENO;
    if (sscanf(path, "/dev/fd/%9[0-9]%n", digits, &end) < 1)
        sscanf(path, "/proc/self/fd/%9[0-9]%n", digits, &end);
    return end > 0 && !path[end] ? atoi(digits) : -1;
}

/* Creates and locks a temporary file in the folder that is to contain the file w->path. The first `folder` bytes of w->path name this
 * folder, with the '/' at its end. Returns 0 or an errno. */
static int make_temporary(wf_file_writer *w, int folder)
{
    struct stat info;
    for (int i = 0; i < TRIES; i++) {
        if (!(w->temporary = wf_format("%.*s.weft-%016" PRIx64 ".tmp", folder, w->path, wf_hash_key())))
            return ENOMEM;
        w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        int number = w->fd < 0 ? errno : EEXIST;
        /* If a sweep has removed the file between open and flock, try again. If the file system has no locks, go on without a lock. */
        if (w->fd >= 0 && (flock(w->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && fstat(w->fd, &info) == 0 && info.st_nlink > 0)
            return 0;
        if (w->fd >= 0)
            close(w->fd);
        w->fd = -1;
        wf_free(w->temporary);
        w->temporary = NULL;
        if (number != EEXIST && number != EINTR)
            return number;
    }
    return EEXIST;
}

static wf_status begin(wf_file_writer *w, wf_error *error)
{
    struct stat info;
    bool there = stat(w->path, &info) == 0;
    if (written_in_place(w->path, there ? &info : NULL)) {
        int number = open_already(w->path);
        w->fd = number >= 0 ? fcntl(number, F_DUPFD_CLOEXEC, 0) : open(w->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        return w->fd >= 0 ? WF_OK : wf_error_set(error, WF_ERR_IO, "%s: cannot be opened for writing: %s", w->path, wf_reason(errno));
    }
    const char *slash = strrchr(w->path, '/');
    int folder = slash ? (int)(slash + 1 - w->path) : 0;
    if (!w->path[folder] || (there && S_ISDIR(info.st_mode)))
        return wf_error_set(error, WF_ERR_IO, "%s: is a folder; name a file", w->path);
    int number = make_temporary(w, folder);
    if (number == ENOMEM)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to write it", w->path);
    if (number)
        return wf_error_set(error, WF_ERR_IO, "%s: cannot write in the folder %.*s: %s", w->path, folder ? folder : 1,
                            folder ? w->path : ".", wf_reason(number));
    /* Keep the mode of the old file. If the file system refuses that, the file has the usual mode, which is better than to lose the
     * data. */
    if (there && fchmod(w->fd, info.st_mode & 0777) != 0)
        errno = 0;
    return WF_OK;
}

void wf_file_abort(wf_file_writer *w)
{
    if (!w)
        return;
    if (w->temporary)
        unlink(w->temporary);
    if (w->fd >= 0)
        close(w->fd);
    wf_free(w->temporary);
    wf_free(w->path);
    wf_free(w->buffer);
    wf_free(w);
}

wf_file_writer *wf_file_begin(const char *path, wf_error *error)
{
    wf_file_writer *w = wf_alloc_zero(1, sizeof *w);
    if (w) {
        w->fd = -1;
        w->path = wf_strdup(path);
        w->buffer = wf_alloc(BUFFER);
    }
    if (!w || !w->path || !w->buffer)
        wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to write it", path);
    else if (begin(w, error) == WF_OK)
        return w;
    wf_file_abort(w);
    return NULL;
}

static wf_status put(wf_file_writer *w, const char *data, int64_t bytes)
{
    while (bytes > 0) {
        ssize_t done = write(w->fd, data, (size_t)WF_MIN(bytes, 0x40000000));
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) /* after a result of 0, the loop might never end */
            return wf_error_set(&w->failure, WF_ERR_IO, "%s: cannot be written at byte %" PRId64 ": %s", w->path, w->written,
                                wf_reason(done < 0 ? errno : ENOSPC));
        w->written += done;
        data += done;
        bytes -= done;
    }
    return WF_OK;
}

static wf_status flush(wf_file_writer *w)
{
    int64_t bytes = w->buffered;
    w->buffered = 0;
    return put(w, w->buffer, bytes);
}

wf_status wf_file_append(wf_file_writer *w, const void *data, int64_t bytes)
{
    if (!w)
        return WF_ERR_STATE;
    if (w->failure.code)
        return w->failure.code;
    if (bytes < 0)
        return wf_error_set(&w->failure, WF_ERR_ARGUMENT, "%s: %" PRId64 " bytes cannot be written", w->path, bytes);
    if (bytes > BUFFER - w->buffered && flush(w) != WF_OK)
        return w->failure.code;
    if (bytes > BUFFER - w->buffered)
        return put(w, data, bytes);
    if (bytes)
        memcpy(w->buffer + w->buffered, data, (size_t)bytes);
    w->buffered += bytes;
    return WF_OK;
}

/* Syncs the folder of the file. Only then is the name of the file on the disk. */
static wf_status sync_folder(wf_file_writer *w)
{
    char *end = strrchr(w->path, '/');
    if (end)
        end[end == w->path] = 0; /* for "/file", the folder is "/" */
    int fd = open(end ? w->path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some folders may be written but not read, and some file systems can't sync folders. Nothing more can be done then. */
    bool done = fd < 0 ? errno == EACCES : fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
    int number = errno;
    if (fd >= 0)
        close(fd);
    if (done)
        return WF_OK;
    return wf_error_set(&w->failure, WF_ERR_IO, "%s: the folder cannot be synced: %s", end ? w->path : ".", wf_reason(number));
}

static wf_status finish(wf_file_writer *w)
{
    if (w->failure.code || flush(w) != WF_OK)
        return w->failure.code;
    if (fsync(w->fd) != 0 && (w->temporary || (errno != EINVAL && errno != ENOTSUP && errno != EROFS)))
        return wf_error_set(&w->failure, WF_ERR_IO, "%s: cannot be synced: %s", w->path, wf_reason(errno));
    if (!w->temporary) {
        int fd = w->fd;
        w->fd = -1;
        return close(fd) == 0 ? WF_OK : wf_error_set(&w->failure, WF_ERR_IO, "%s: cannot be closed: %s", w->path, wf_reason(errno));
    }
    /* Rename the file while it is still open and locked, so that no sweep removes the temporary file first. */
    if (rename(w->temporary, w->path) != 0)
        return wf_error_set(&w->failure, WF_ERR_IO, "%s: cannot be replaced: %s", w->path, wf_reason(errno));
    wf_free(w->temporary);
    w->temporary = NULL;
    return sync_folder(w);
}

wf_status wf_file_commit(wf_file_writer *w, wf_error *error)
{
    if (!w)
        return error && error->code ? error->code : wf_error_set(error, WF_ERR_STATE, "wf_file_commit without wf_file_begin");
    wf_status status = finish(w);
    if (status != WF_OK)
        wf_error_set(error, status, "%s", w->failure.message);
    wf_file_abort(w);
    return status;
}

wf_status wf_file_save(const char *path, const void *data, int64_t bytes, wf_error *error)
{
    if (wf_needs(error, "path, data", path, wf_some(data, bytes)))
        return WF_ERR_ARGUMENT;
    wf_error failure = {0}; /* `error` may be NULL or hold an older error */
    wf_file_writer *w = wf_file_begin(path, &failure);
    wf_file_append(w, data, bytes);
    wf_status status = wf_file_commit(w, &failure);
    return status == WF_OK ? WF_OK : wf_error_set(error, status, "%s", failure.message);
}
