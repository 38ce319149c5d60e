/* SPDX-License-Identifier: MIT */
#include "line_input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/internal/lines.h>
#include <weft/internal/sentence.h>
#include <weft/internal/reason.h>

enum {
    CHUNK = 1 << 16,
    MOST_LINE = 1 << 26, /* bytes of a line in a window */
    PAUSE = 5,           /* milliseconds without more input after which a window ends */
    GLANCE = 500         /* milliseconds after which an interruption is seen that came just before the wait for a line */
};

static wf_status refused(const struct line_input *in, const char *what, int number, wf_error *error)
{
    if (number == EISDIR)
        return wf_error_set(error, WF_ERR_IO, "%s: is a folder, not a file", in->name);
    return wf_error_set(error, WF_ERR_IO, "%s: cannot be %s: %s", in->name, what, wf_reason(number));
}

wf_status line_input_open(struct line_input *in, const char *path, wf_error *error)
{
    *in = (struct line_input){.fd = STDIN_FILENO, .name = path ? path : "standard input"};
    if (path && (in->fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return refused(in, "opened", errno, error);
    struct stat info;
    off_t at = lseek(in->fd, 0, SEEK_CUR);
    if (at >= 0 && fstat(in->fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > at)
        in->size = info.st_size - at;
    return WF_OK;
}

void line_input_close(struct line_input *in)
{
    if (in->fd > STDIN_FILENO)
        close(in->fd);
    wf_free(in->data);
    *in = (struct line_input){.fd = -1};
}

/* Reads on behind what is there. */
static wf_status read_more(struct line_input *in, wf_error *error)
{
    if (in->begin > 0) {
        memmove(in->data, in->data + in->begin, (size_t)(in->end - in->begin));
        in->end -= in->begin;
        in->begin = 0;
    }
    if (in->room - in->end < CHUNK) {
        int64_t room = in->room * 2 + 2 * CHUNK;
        char *data = wf_realloc(in->data, (size_t)room);
        if (!data)
            return wf_error_set(error, WF_ERR_MEMORY, "%s:%lld: no memory for a line of %lld bytes", in->name, (long long)in->line + 1,
                                (long long)room);
        in->data = data;
        in->room = room;
    }
    fflush(stdout); /* a failure stays noted in the stream */
    ssize_t got = read(in->fd, in->data + in->end, CHUNK);
    if (got < 0 && errno == EAGAIN) /* somebody made it non-blocking */
        poll(&(struct pollfd){.fd = in->fd, .events = POLLIN}, 1, -1);
    else if (got < 0 && errno != EINTR)
        return refused(in, "read", errno, error);
    in->ended = got == 0;
    in->end += got > 0 ? got : 0;
    return WF_OK;
}

wf_status line_input_next(struct line_input *in, char **text, int64_t *length, wf_error *error)
{
    char *newline = NULL;
    *text = NULL;
    *length = 0;
    for (int64_t seen = 0; !in->ended || in->end > in->begin;) {
        if (in->end - in->begin > seen)
            newline = memchr(in->data + in->begin + seen, '\n', (size_t)(in->end - in->begin - seen));
        seen = in->end - in->begin;
        if (newline || in->ended)
            break;
        wf_status status = read_more(in, error);
        if (status != WF_OK)
            return status;
    }
    if (in->end == in->begin)
        return WF_OK;
    *text = in->data + in->begin;
    *length = newline ? newline - *text : in->end - in->begin;
    in->begin += *length + (newline != NULL);
    in->taken += *length + (newline != NULL);
    in->mark = in->line == 0 && *length > 2 && !memcmp(*text, "\xEF\xBB\xBF", 3) ? 3 : 0;
    in->line++;
    *text += in->mark;
    *length -= in->mark;
    if (newline && *length > 0 && newline[-1] == '\r')
        --*length;
    return WF_OK;
}

/* Counts line ends from *scanned on. */
static void count_lines(const struct line_input *in, int64_t most, struct line_window *w, int64_t *scanned)
{
    const char *text = in->data + in->begin;
    int64_t have = in->end - in->begin;
    for (const char *at; w->lines < most && *scanned < have; w->lines++) {
        at = memchr(text + *scanned, '\n', (size_t)(have - *scanned));
        if (!at) {
            *scanned = have;
            break;
        }
        *scanned = w->length = at + 1 - text;
    }
}

wf_status line_input_window(struct line_input *in, int64_t lines, int64_t bytes, struct line_window *w, wf_error *error)
{
    *w = (struct line_window){0};
    for (int64_t scanned = 0;;) {
        count_lines(in, lines, w, &scanned);
        if (w->lines == lines || in->ended || (w->lines > 0 && in->end - in->begin >= bytes)) /* the rest may be one line without end */
            break;
        if (w->lines == 0 && in->end - in->begin >= MOST_LINE)
            return wf_error_set(error, WF_ERR_FORMAT, "%s:%lld: no line end in %d bytes: this is no text in lines", in->name,
                                (long long)in->line + 1, MOST_LINE);
        struct pollfd ready = {.fd = in->fd, .events = POLLIN};
        int count = poll(&ready, 1, w->lines > 0 ? PAUSE : GLANCE);
        if (interrupted(NULL))
            return wf_error_set(error, WF_ERR_CANCELLED, "interrupted");
        if (count == 0 && w->lines > 0)
            break;
        wf_status status = count > 0 ? read_more(in, error) : WF_OK;
        if (status != WF_OK)
            return status;
    }
    if (w->lines < lines && in->ended && in->end - in->begin > w->length) { /* the last line may do without its end */
        w->length = in->end - in->begin;
        w->lines++;
    }
    w->text = in->data + in->begin;
    return WF_OK;
}

void line_input_drop(struct line_input *in, const struct line_window *w)
{
    in->begin += w->length;
    in->taken += w->length;
    in->line += w->lines;
}

double line_input_share(const struct line_input *in, double more)
{
    double share = in->size > 0 ? ((double)in->taken + more) / (double)in->size : -1;
    return share > 1 ? 1 : share;
}

wf_status line_input_fault(const struct line_input *in, int64_t offset, wf_error *error, const char *format, ...)
{
    char message[512];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    return wf_error_set(error, WF_ERR_FORMAT, "%s:%lld:%lld: %s", in->name, (long long)in->line, (long long)(offset + in->mark + 1),
                        message);
}

wf_status line_input_encode(const struct line_input *in, const wf_tokenizer *tokenizer, const char *text, int64_t length,
                            const struct wf_encode_options *options, struct wf_tokens *out, wf_error *error)
{
    int64_t fault = wf_text_fault(text, length);
    if (fault >= 0 && !text[fault])
        return line_input_fault(in, fault, error, "a NUL byte: this is not text, or it is in UTF-16; convert it to UTF-8");
    /* a byte order mark counts among the bytes of its line */
    return wf_line_encode(tokenizer, in->name, text - in->mark, in->line - 1, 0, in->mark, in->mark + length, options, out, error);
}
