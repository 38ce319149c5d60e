/* SPDX-License-Identifier: MIT */
/* Reads whole files, and recognises files of other programs by their first bytes. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/file.h>
#include <weft/internal/files.h>
#include <weft/internal/foreign.h>
#include <weft/internal/lines.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/string.h>

char *wf_file_load(const char *path, int64_t limit, int64_t *bytes, wf_error *error)
{
    if (wf_needs(error, "path", path))
        return NULL;
    if (limit < 0 || limit > INT64_MAX / 4) {
        wf_error_set(error, WF_ERR_ARGUMENT, "%s: a limit of %" PRId64 " bytes is out of range", path, limit);
        return NULL;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        wf_file_refused(path, "opened", errno, error);
        return NULL;
    }
    char *data = wf_file_load_open(fd, path, limit, bytes, error);
    close(fd);
    return data;
}

char *wf_file_load_open(int fd, const char *path, int64_t limit, int64_t *bytes, wf_error *error)
{
    enum { PIECE = 4096 };
    struct wf_string in = {0};
    struct stat info;
    wf_status status = WF_OK;
    /* The size is only a hint: pipes have none, and files grow. */
    int64_t hint = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? info.st_size : 0;
    bool too_long = hint > limit;
    for (ssize_t got = 1; got != 0 && status == WF_OK && !too_long;) {
        /* Reserve a byte more than expected, so that the end of the file is found without growing, and a byte for the final zero. */
        if (in.length + 2 > in.capacity && !wf_string_reserve(&in, in.length ? PIECE : hint + 1)) {
            status = wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for %" PRId64 " bytes", path, in.length + hint);
            break;
        }
        int64_t room = in.capacity - 1 - in.length, most = limit + 1 - in.length; /* read may return less; then the loop goes on */
        got = read(fd, in.data + in.length, (size_t)WF_MIN(room, most));
        if (got > 0)
            in.length += got;
        else if (got < 0 && errno != EINTR)
            status = wf_file_refused(path, "read", errno, error);
        too_long = in.length > limit;
    }
    char head[WF_FOREIGN_HEAD];
    ssize_t known = too_long ? pread(fd, head, sizeof head, 0) : 0;
    const char *foreign = known > 0 ? wf_foreign(head, known) : NULL;
    if (foreign)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: %s", path, foreign);
    else if (too_long)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: larger than the limit of %" PRId64 " bytes", path, limit);
    if (status != WF_OK) {
        wf_string_free(&in);
        return NULL;
    }
    in.data[in.length] = 0;
    if (bytes)
        *bytes = in.length;
    return in.data;
}

const char *wf_file_foreign(const char *path)
{
    char head[WF_FOREIGN_HEAD];
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t known = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? pread(fd, head, sizeof head, 0) : 0;
    if (fd >= 0)
        close(fd);
    return known > 0 ? wf_foreign(head, known) : NULL;
}
