/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <weft/internal/reason.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

#include "lines.h"
#include "text.h"

wf_status lines_open(struct lines *lines, const char *path, wf_error *error)
{
    *lines = (struct lines){.name = path ? path : "standard input", .fd = path ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO};
    if (lines->fd < 0)
        return wf_error_set(error, WF_ERR_IO, "%s: cannot be opened: %s", lines->name, wf_reason(errno));
    return WF_OK;
}

void lines_close(struct lines *lines)
{
    if (lines->fd > STDIN_FILENO)
        close(lines->fd);
    wf_free(lines->data);
    *lines = (struct lines){.fd = -1};
}

static wf_status read_more(struct lines *l, wf_error *error)
{
    if (l->start > 0 && (l->start == l->length || l->start > l->capacity / 2)) {
        memmove(l->data, l->data + l->start, (size_t)(l->length - l->start));
        l->length -= l->start;
        l->start = 0;
    }
    if (l->length == l->capacity) {
        int64_t capacity = l->capacity ? 2 * l->capacity : 1 << 16;
        char *data = wf_realloc(l->data, (size_t)capacity);
        if (!data)
            return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for line %" PRId64, l->name, l->line + 1);
        l->data = data;
        l->capacity = capacity;
    }
    ssize_t got;
    do
        got = read(l->fd, l->data + l->length, (size_t)(l->capacity - l->length < 1 << 20 ? l->capacity - l->length : 1 << 20));
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EISDIR)
        return wf_error_set(error, WF_ERR_IO, "%s: is a folder, not a file", l->name);
    if (got < 0)
        return wf_error_set(error, WF_ERR_IO, "%s: cannot be read after line %" PRId64 ": %s", l->name, l->line, wf_reason(errno));
    l->end = got == 0;
    l->length += got;
    return WF_OK;
}

/* The next line as it stands, "\n" left out. */
static wf_status raw_next(struct lines *l, struct wf_segment *out, wf_error *error)
{
    *out = (struct wf_segment){0};
    int64_t looked = 0; /* a long line is not searched again from its start */
    for (;;) {
        int64_t have = l->length - l->start;
        const char *stop = have > looked ? memchr(l->data + l->start + looked, '\n', (size_t)(have - looked)) : NULL;
        if (stop || (l->end && have > 0)) {
            *out = (struct wf_segment){l->data + l->start, stop ? stop - l->data - l->start : have};
            l->start += out->length + (stop != NULL);
            l->line++;
            return WF_OK;
        }
        if (l->end)
            return WF_OK;
        looked = have;
        wf_status status = read_more(l, error);
        if (status != WF_OK)
            return status;
    }
}

wf_status lines_next(struct lines *l, struct wf_segment *out, wf_error *error)
{
    wf_status status = raw_next(l, out, error);
    if (status != WF_OK || !out->text)
        return status;
    int64_t bad = wf_utf8_check(out->text, out->length);
    if (bad >= 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ":%" PRId64 ": not UTF-8: byte 0x%02X: %s; convert the file to UTF-8",
                            l->name, l->line, bad + 1, (unsigned char)out->text[bad], wf_utf8_fault(out->text + bad, out->length - bad));
    out->length = score_trim(out->text, out->length);
    return WF_OK;
}

wf_status lines_rest(struct lines *l, wf_error *error)
{
    struct wf_segment line = {.text = ""};
    wf_status status = WF_OK;
    while (status == WF_OK && line.text)
        status = raw_next(l, &line, error);
    return status;
}
