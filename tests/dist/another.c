/* SPDX-License-Identifier: MIT */
/* The command on a machine that is not as the others: linked with --wrap, so that the environment says what is otherwise.
 *
 *   ANOTHER_VERSION=9.9.9    its version
 *   WAIT_SECONDS=1           a wait for other processes is reported after this time
 *   DISK_ROOM=20000          so many bytes can still be written into files, then the disk is full
 *   TOLD_LATE=1              the launcher tells it to stop when it is over, as it does where another process of a failed job was sooner,
 * and leaving the job takes it a second more, as on a busy machine */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/dist.h>
#include <weft/main.h>

struct wf_dist_watch __real_wf_dist_watch(wf_dist *dist, const struct wf_dist_watch *watch);
struct wf_dist_watch __wrap_wf_dist_watch(wf_dist *dist, const struct wf_dist_watch *watch);
const char *__real_wf_version(void);
const char *__wrap_wf_version(void);
ssize_t __real_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes);

const char *__wrap_wf_version(void)
{
    const char *other = getenv("ANOTHER_VERSION");
    return other ? other : __real_wf_version();
}

struct wf_dist_watch __wrap_wf_dist_watch(wf_dist *dist, const struct wf_dist_watch *watch)
{
    const char *seconds = getenv("WAIT_SECONDS");
    struct wf_dist_watch w = watch ? *watch : (struct wf_dist_watch){0};
    w.seconds = seconds && *seconds ? atof(seconds) : w.seconds;
    return __real_wf_dist_watch(dist, &w);
}

ssize_t __wrap_write(int fd, const void *data, size_t bytes)
{
    static long long written;
    struct stat info;
    const char *room = getenv("DISK_ROOM");
    if (room && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        const long long left = atoll(room) - written;
        if (left <= 0 && bytes > 0) {
            errno = ENOSPC;
            return -1;
        }
        bytes = (long long)bytes < left ? bytes : (size_t)left;
        written += (long long)bytes;
    }
    return __real_write(fd, data, bytes);
}

int main(int argc, char **argv)
{
    const int code = wf_main(argc, argv);
    if (getenv("TOLD_LATE")) {
        raise(SIGTERM);
        sleep(1);
    }
    return code;
}
