/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/file.h>
#include <weft/internal/reason.h>
#include <weft/memory.h>

static wf_status too_long(const char *path, int64_t limit, wf_error *error)
{
    return wf_error_set(error, WF_ERR_FORMAT, "%s: longer than the %" PRId64 " bytes that are allowed here", path, limit);
}

/* Reads to the end. The length that stat gave is only a hint: pipes have none, and files grow. */
static char *read_all(int fd, const char *path, int64_t hint, int64_t limit, int64_t *bytes, wf_error *error)
{
    int64_t room = hint + 1, used = 0;
    char *data = wf_alloc((size_t)room + 1);
    while (data) {
        if (used == room) {
            room += room / 2 + 4096;
            if (room > limit + 1)
                room = limit + 1;
            char *more = wf_realloc(data, (size_t)room + 1);
            if (!more)
                break;
            data = more;
        }
        /* Linux reads at most 0x7ffff000 bytes at once. */
        int64_t want = room - used < 0x40000000 ? room - used : 0x40000000;
        ssize_t got = read(fd, data + used, (size_t)want);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int number = errno;
            wf_free(data);
            if (number == EISDIR)
                wf_error_set(error, WF_ERR_IO, "%s: is a folder, not a file", path);
            else
                wf_error_set(error, WF_ERR_IO, "%s: cannot be read at byte %" PRId64 ": %s", path, used, wf_reason(number));
            return NULL;
        }
        used += got;
        if (used > limit) {
            wf_free(data);
            too_long(path, limit, error);
            return NULL;
        }
        if (got == 0) {
            data[used] = 0;
            *bytes = used;
            return data;
        }
    }
    wf_free(data);
    wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for %" PRId64 " bytes", path, room);
    return NULL;
}

char *wf_file_load(const char *path, int64_t limit, int64_t *bytes, wf_error *error)
{
    if (limit < 0 || limit > INT64_MAX / 4) {
        wf_error_set(error, WF_ERR_ARGUMENT, "%s: a limit of %" PRId64 " bytes is out of range", path, limit);
        return NULL;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        wf_error_set(error, WF_ERR_IO, "%s: cannot be opened: %s", path, wf_reason(errno));
        return NULL;
    }
    struct stat info;
    int64_t hint = 4095 < limit ? 4095 : limit, length;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > hint) {
        if (info.st_size > limit) {
            too_long(path, limit, error);
            close(fd);
            return NULL;
        }
        hint = info.st_size;
    }
    char *data = read_all(fd, path, hint, limit, &length, error);
    close(fd);
    if (data && bytes)
        *bytes = length;
    return data;
}
