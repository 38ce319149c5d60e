/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/file.h>
#include <weft/internal/json.h>
#include <weft/internal/jsonl.h>
#include <weft/internal/reason.h>
#include <weft/memory.h>

#include "append.h"

enum { TAIL = 4096 };
static const int64_t LONGEST = (int64_t)1 << 31;

struct wf_jsonl {
    int fd;
    int64_t bytes; /* where the last whole line ends */
    char *path;
};

static wf_status failed(const wf_jsonl *file, const char *what, wf_error *error)
{
    return wf_error_set(error, WF_ERR_IO, "%s: cannot be %s at byte %" PRId64 ": %s", file->path, what, file->bytes, wf_reason(errno));
}

/* Sets file->bytes to the end of the last whole line and cuts off what follows. */
static wf_status cut_torn_line(wf_jsonl *file, wf_error *error)
{
    struct stat info;
    if (fstat(file->fd, &info) != 0)
        return failed(file, "read", error);
    if (!S_ISREG(info.st_mode))
        return wf_error_set(error, WF_ERR_IO, "%s: is not a regular file", file->path);
    char tail[TAIL];
    int64_t end = info.st_size;
    while (end > 0) {
        int64_t want = end < TAIL ? end : TAIL;
        ssize_t got = pread(file->fd, tail, (size_t)want, end - want);
        if (got < 0 && errno == EINTR)
            continue;
        if (got != want) {
            file->bytes = end - want;
            return failed(file, "read", error);
        }
        const char *newline = memrchr(tail, '\n', (size_t)want);
        end -= want;
        if (newline) {
            end += newline - tail + 1;
            break;
        }
    }
    file->bytes = end;
    if (end < info.st_size && ftruncate(file->fd, end) != 0)
        return failed(file, "cut", error);
    return WF_OK;
}

wf_jsonl *wf_jsonl_open(const char *path, wf_error *error)
{
    wf_jsonl *file = wf_alloc_zero(1, sizeof *file);
    if (!file || !(file->path = wf_strdup(path))) {
        wf_free(file);
        wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to open it", path);
        return NULL;
    }
    file->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    wf_status status = file->fd < 0 ? wf_error_set(error, WF_ERR_IO, "%s: cannot be opened for writing: %s", path, wf_reason(errno))
                                    : cut_torn_line(file, error);
    if (status == WF_OK)
        return file;
    wf_jsonl_close(file);
    return NULL;
}

wf_status wf_jsonl_append(wf_jsonl *file, const json_t *event, wf_error *error)
{
    int64_t bytes;
    wf_error failure = {0};
    char *line = wf_json_text(event, 0, &bytes, &failure);
    if (!line)
        return wf_error_set(error, failure.code, "%s: %s", file->path, failure.message);
    line[bytes++] = '\n'; /* in the place of the zero */
    wf_status status = append_piece(file->fd, file->path, line, bytes, "line", &file->bytes, error);
    wf_free(line);
    return status;
}

wf_status wf_jsonl_sync(wf_jsonl *file, wf_error *error)
{
    return fsync(file->fd) == 0 ? WF_OK : failed(file, "synced", error);
}

void wf_jsonl_close(wf_jsonl *file)
{
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    wf_free(file->path);
    wf_free(file);
}

/* Moves the lines that stay to the front of the text; *kept is their length. */
static wf_status keep_lines(char *text, int64_t bytes, const char *path, const char *key, int64_t last, int64_t *kept, wf_error *error)
{
    *kept = 0;
    int64_t number = 1;
    for (int64_t at = 0; at < bytes; number++) {
        const char *newline = memchr(text + at, '\n', (size_t)(bytes - at));
        if (!newline)
            break; /* torn */
        int64_t length = newline - (text + at) + 1;
        json_t *event = wf_json_parse_line(text + at, length - 1, path, number, error);
        if (!event)
            return error->code;
        if (!json_is_object(event)) {
            json_decref(event);
            return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ":1: a line that is no JSON object", path, number);
        }
        const json_t *step = json_object_get(event, key);
        if (!(json_is_integer(step) && json_integer_value(step) > last)) {
            memmove(text + *kept, text + at, (size_t)length);
            *kept += length;
        }
        json_decref(event);
        at += length;
    }
    return WF_OK;
}

wf_status wf_jsonl_drop_after(const char *path, const char *key, int64_t last, wf_error *error)
{
    struct stat info;
    bool there = stat(path, &info) == 0;
    if (!there && errno == ENOENT)
        return WF_OK;
    if (there && S_ISFIFO(info.st_mode)) /* reading it would wait for a writer */
        return wf_error_set(error, WF_ERR_IO, "%s: is not a regular file", path);
    int64_t bytes, kept;
    wf_error failure = {0};
    char *text = wf_file_load(path, LONGEST, &bytes, &failure);
    if (!text)
        return wf_error_set(error, failure.code, "%s", failure.message);
    wf_status status = keep_lines(text, bytes, path, key, last, &kept, &failure);
    if (status == WF_OK && kept < bytes)
        status = wf_file_save(path, text, kept, &failure);
    wf_free(text);
    return status == WF_OK ? WF_OK : wf_error_set(error, status, "%s", failure.message);
}
