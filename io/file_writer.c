/* SPDX-License-Identifier: MIT */
/* Atomic replacement of a file. The lock on the temporary file tells wf_file_sweep that its writer lives; process ids would
 * not do, they mean nothing across containers that share a folder. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <weft/file.h>
#include <weft/internal/reason.h>
#include <weft/memory.h>

#include "temporary.h"

enum { BUFFER = 1 << 18, TRIES = 100 };

struct wf_file_writer {
    char *path;
    char *temporary; /* NULL: written in place, as it comes */
    int fd;
    int64_t buffered, written;
    wf_error failure;
    char *buffer;
};

bool wf_temporary_is(const char *name)
{
    return strlen(name) == TEMPORARY_NAME && !strncmp(name, ".weft-", 6) && strspn(name + 6, "0123456789abcdef") == 16 &&
           !strcmp(name + 22, ".tmp");
}

/* Different for every call of every process with near certainty; O_EXCL makes certain. */
static uint64_t unlikely_number(void)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) == sizeof number)
        return number;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)getpid() << 40) ^ ((uint64_t)now.tv_sec << 20) ^ (uint64_t)now.tv_nsec;
}

/* Something that a rename would destroy instead of writing to it: devices, pipes, and the names of the standard streams, even where
 * these lead to a regular file. */
static bool written_in_place(const char *path, struct stat *info, bool *there)
{
    *there = stat(path, info) == 0;
    return (*there && !S_ISREG(info->st_mode) && !S_ISDIR(info->st_mode)) || !strncmp(path, "/dev/fd/", 8) ||
           !strncmp(path, "/dev/std", 8) || !strncmp(path, "/proc/", 6);
}

/* The number of the open file that the path is another name of, or -1. It is written on from where it stands: to open it by that name would
 * begin at its start, lose what a shell's >> keeps, and does not work for a socket. */
static int open_already(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (!strcmp(path, "/dev/stdout"))
        return STDOUT_FILENO;
    if (!strcmp(path, "/dev/stderr"))
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *number = path + strlen(folders[i]);
        if (strncmp(path, folders[i], strlen(folders[i])) != 0)
            continue;
        size_t digits = strspn(number, "0123456789");
        if (digits > 0 && digits < 10 && !number[digits]) /* longer ones are no int, and no open file */
            return atoi(number);
    }
    return -1;
}

/* A new temporary file in the folder of w->path, locked; 0 or an errno. */
static int make_temporary(wf_file_writer *w, const char *folder)
{
    for (int i = 0; i < TRIES; i++) {
        wf_free(w->temporary);
        if (!(w->temporary = wf_format("%s.weft-%016" PRIx64 ".tmp", folder, unlikely_number())))
            return ENOMEM;
        if ((w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0) {
            if (errno == EEXIST || errno == EINTR)
                continue;
            int number = errno;
            wf_free(w->temporary);
            w->temporary = NULL;
            return number;
        }
        /* A sweep may have come between open and flock, and removed it; a file system without locks has to do without. */
        struct stat info;
        if ((flock(w->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && fstat(w->fd, &info) == 0 && info.st_nlink > 0)
            return 0;
        close(w->fd);
        w->fd = -1;
    }
    wf_free(w->temporary);
    w->temporary = NULL;
    return EEXIST;
}

static wf_file_writer *begin_in(wf_file_writer *w, const char *path, wf_error *error)
{
    struct stat info;
    bool there;
    if (written_in_place(path, &info, &there)) {
        int number = open_already(path);
        w->fd = number >= 0 ? fcntl(number, F_DUPFD_CLOEXEC, 0) : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (w->fd >= 0)
            return w;
        wf_error_set(error, WF_ERR_IO, "%s: cannot be opened for writing: %s", path, wf_reason(errno));
        return NULL;
    }
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    if (!*name || (there && S_ISDIR(info.st_mode))) {
        wf_error_set(error, WF_ERR_IO, "%s: is a folder, a file cannot be written there", path);
        return NULL;
    }
    char *folder = wf_format("%.*s", (int)(name - path), path);
    if (!folder) {
        wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to write it", path);
        return NULL;
    }
    int number = make_temporary(w, folder);
    if (number == ENOMEM && !w->temporary)
        wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to write it", path);
    else if (number)
        wf_error_set(error, WF_ERR_IO, "%s: cannot write in the folder %s: %s", path, *folder ? folder : ".", wf_reason(number));
    wf_free(folder);
    if (number)
        return NULL;
    /* Only the owner may; a failure leaves the usual mode, which is no reason to lose the data. */
    if (there && fchmod(w->fd, info.st_mode & 0777) != 0)
        errno = 0;
    return w;
}

static void release(wf_file_writer *w)
{
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
    else if (begin_in(w, path, error))
        return w;
    if (w)
        release(w);
    return NULL;
}

static wf_status put(wf_file_writer *w, const char *data, int64_t bytes)
{
    while (bytes > 0) {
        ssize_t done = write(w->fd, data, (size_t)(bytes < 0x40000000 ? bytes : 0x40000000));
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) /* a write of zero bytes would be repeated for ever */
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
    if (bytes <= BUFFER - w->buffered) {
        if (bytes)
            memcpy(w->buffer + w->buffered, data, (size_t)bytes);
        w->buffered += bytes;
        return WF_OK;
    }
    if (flush(w) != WF_OK)
        return w->failure.code;
    if (bytes >= BUFFER)
        return put(w, data, bytes);
    memcpy(w->buffer, data, (size_t)bytes);
    w->buffered = bytes;
    return WF_OK;
}

/* The name of a file is on the disk only when its folder is. */
static wf_status sync_folder(wf_file_writer *w)
{
    char *end = strrchr(w->path, '/');
    if (end)
        end[end == w->path] = 0; /* "/" of "/file" stays */
    int fd = open(end ? w->path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A folder that may be written but not read, and file systems that can't sync folders: nothing more can be done. */
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
    /* Renamed while it is still open and locked: no sweep can come between. */
    if (rename(w->temporary, w->path) != 0)
        return wf_error_set(&w->failure, WF_ERR_IO, "%s: cannot be replaced: %s", w->path, wf_reason(errno));
    wf_free(w->temporary);
    w->temporary = NULL;
    return sync_folder(w);
}

wf_status wf_file_commit(wf_file_writer *w, wf_error *error)
{
    if (!w)
        return error && error->code ? error->code : wf_error_set(error, WF_ERR_STATE, "a file that was never begun is committed");
    wf_status status = finish(w);
    if (status != WF_OK)
        wf_error_set(error, status, "%s", w->failure.message);
    release(w);
    return status;
}

void wf_file_abort(wf_file_writer *w)
{
    if (w)
        release(w);
}

wf_status wf_file_save(const char *path, const void *data, int64_t bytes, wf_error *error)
{
    wf_error failure = {0}; /* the caller's may hold an older one, or be NULL */
    wf_file_writer *w = wf_file_begin(path, &failure);
    wf_file_append(w, data, bytes);
    wf_status status = wf_file_commit(w, &failure);
    return status == WF_OK ? WF_OK : wf_error_set(error, status, "%s", failure.message);
}
