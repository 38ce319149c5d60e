/* SPDX-License-Identifier: MIT */
/* Lock files, which let only one process use a folder (files.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <weft/internal/files.h>
#include <weft/internal/minmax.h>
#include <weft/internal/reason.h>
#include <weft/memory.h>

struct wf_lock {
    int fd;
    char path[];
};

/* Returns the process id in the lock file, or 0 if there is none. The holder writes its id right after it has got the lock, so this
 * function waits a little for the id. */
static long holder(int fd)
{
    for (int tries = 0; tries < 50; tries++) {
        char text[24] = {0};
        ssize_t got = pread(fd, text, sizeof text - 1, 0);
        if (got > 0 && text[got - 1] == '\n') {
            long pid = strtol(text, NULL, 10);
            return WF_MAX(pid, 0);
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return 0;
}

/* Returns true if the path still names the open file. The last holder may have removed the file between our open and flock. */
static bool has_name(int fd, const char *path)
{
    struct stat open_one, named;
    return fstat(fd, &open_one) == 0 && stat(path, &named) == 0 && open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

static wf_status take(wf_lock *lock, wf_error *error)
{
    for (;;) {
        lock->fd = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (lock->fd < 0)
            return wf_error_set(error, WF_ERR_IO, "%s: the lock file cannot be created: %s", lock->path, wf_reason(errno));
        bool locked = flock(lock->fd, LOCK_EX | LOCK_NB) == 0;
        if (!locked && errno == EWOULDBLOCK) {
            long pid = holder(lock->fd);
            if (!pid)
                return wf_error_set(error, WF_ERR_BUSY, "%s: another process holds the lock; wait for it to end", lock->path);
            return wf_error_set(error, WF_ERR_BUSY, "%s: process %ld holds the lock; wait for it to end, or end it", lock->path, pid);
        }
        if (!locked && errno != EINTR)
            return wf_error_set(error, WF_ERR_IO, "%s: cannot be locked: %s", lock->path, wf_reason(errno));
        if (locked && has_name(lock->fd, lock->path))
            break;
        close(lock->fd);
    }
    char text[24];
    int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* The lock works without the process id too. On a full disk, other processes just do not learn the id. */
    if ((ftruncate(lock->fd, 0) != 0 || pwrite(lock->fd, text, (size_t)length, 0) != length) && ftruncate(lock->fd, 0) != 0)
        errno = 0;
    return WF_OK;
}

wf_lock *wf_lock_take(const char *path, wf_error *error)
{
    wf_lock *lock = wf_alloc(sizeof *lock + strlen(path) + 1);
    if (!lock) {
        wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the lock", path);
        return NULL;
    }
    strcpy(lock->path, path);
    if (take(lock, error) == WF_OK)
        return lock;
    if (lock->fd >= 0)
        close(lock->fd);
    wf_free(lock);
    return NULL;
}

void wf_lock_release(wf_lock *lock)
{
    if (!lock)
        return;
    /* Remove the file while it is locked: a process that has just opened it then sees in has_name that the file is gone. */
    if (has_name(lock->fd, lock->path))
        unlink(lock->path);
    close(lock->fd);
    wf_free(lock);
}
