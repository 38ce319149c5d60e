/* SPDX-License-Identifier: MIT */
/* Reads text by lines or by blocks of lines, and writes the messages about invalid text (weft/internal/lines.h). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/internal/foreign.h>
#include <weft/internal/grow.h>
#include <weft/internal/lines.h>
#include <weft/internal/minmax.h>
#include <weft/internal/reason.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

enum { CHUNK = 1 << 16 };

wf_status wf_file_refused(const char *name, const char *what, int number, wf_error *error)
{
    if (number == EISDIR)
        return wf_error_set(error, WF_ERR_IO, "%s: is a folder, not a file", name);
    return wf_error_set(error, WF_ERR_IO, "%s: cannot be %s: %s", name, what, wf_reason(number));
}

int64_t wf_text_fault(const char *text, int64_t length)
{
    if (length == 0)
        return -1;
    int64_t bad = wf_utf8_check(text, length);
    const char *nul = memchr(text, 0, (size_t)(bad < 0 ? length : bad));
    return nul ? nul - text : bad;
}

wf_status wf_text_refuse(const char *name, int64_t line, int64_t column, const char *data, int64_t length, wf_error *error)
{
    if (line == 1 && column == 1 && length > 1 && (!memcmp(data, "\xFF\xFE", 2) || !memcmp(data, "\xFE\xFF", 2)))
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s:1:1: this is UTF-16, not UTF-8; convert it, for example with iconv -f utf-16 -t utf-8", name);
    if (!data[0])
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s:%" PRId64 ":%" PRId64 ": a NUL byte: the file is not text, or is UTF-16; convert it to UTF-8", name, line,
                            column);
    return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ":%" PRId64 ": not UTF-8: byte 0x%02X: %s; convert it to UTF-8", name, line,
                        column, (unsigned char)data[0], wf_utf8_fault(data, length));
}

wf_status wf_text_empty(const char *name, wf_error *error)
{
    return wf_error_set(error, WF_ERR_FORMAT, "%s: the file is empty; text is required", name);
}

int64_t wf_line_first(const char *text, int64_t bytes)
{
    return bytes >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0;
}

int64_t wf_line_ends(const char *text, int64_t bytes)
{
    int64_t count = 0;
    while (bytes > 0) {
        /* A piece has at most 16 KiB, so that its sum fits an int32_t. If the sum were an int64_t, the compiler would not count 16 bytes at
         * once. */
        int64_t piece = bytes < 1 << 14 ? bytes : 1 << 14;
        int32_t sum = 0;
        for (int64_t i = 0; i < piece; i++)
            sum += text[i] == '\n';
        count += sum;
        text += piece;
        bytes -= piece;
    }
    return count;
}

/* --- the reader --- */

wf_status wf_lines_open(struct wf_lines *l, const char *path, wf_error *error)
{
    struct stat info;
    *l = (struct wf_lines){.name = path ? path : "standard input", .line = 1};
    l->fd = path ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (l->fd < 0)
        return wf_file_refused(l->name, "opened", errno, error);
    off_t at = lseek(l->fd, 0, SEEK_CUR);
    if (at >= 0 && fstat(l->fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > at)
        l->size = info.st_size - at;
    return WF_OK;
}

void wf_lines_of(struct wf_lines *l, const char *name, const char *text, int64_t length)
{
    *l = (struct wf_lines){.name = name, .line = 1, .data = (char *)text, .end = length, .size = length, .ended = true, .fd = -1};
}

void wf_lines_close(struct wf_lines *l)
{
    if (l->fd > STDIN_FILENO)
        close(l->fd);
    if (l->capacity > 0) /* if 0, the memory belongs to the caller of wf_lines_of */
        wf_free(l->data);
    *l = (struct wf_lines){.fd = -1};
}

wf_status wf_lines_read(struct wf_lines *l, wf_error *error)
{
    l->text = NULL;
    l->length = 0;
    if (l->ended)
        return WF_OK;
    if (l->begin > 0) {
        memmove(l->data, l->data + l->begin, (size_t)(l->end - l->begin));
        l->end -= l->begin;
        l->begin = 0;
    }
    if (!wf_grow(&l->data, &l->capacity, l->end + CHUNK, 1))
        return wf_error_set(error, WF_ERR_MEMORY, "%s:%" PRId64 ": no memory for a line of %" PRId64 " bytes", l->name, l->line + l->ends,
                            l->end + CHUNK);
    if (l->wait && !l->wait(l->ctx, l->fd))
        return wf_error_set(error, WF_ERR_CANCELLED, "interrupted");
    ssize_t got = read(l->fd, l->data + l->end, (size_t)(l->capacity - l->end));
    if (got < 0 && errno == EAGAIN) /* another process made the file non-blocking, so wait for input */
        poll(&(struct pollfd){.fd = l->fd, .events = POLLIN}, 1, -1);
    else if (got < 0 && errno != EINTR)
        return wf_file_refused(l->name, "read", errno, error);
    l->ended = got == 0;
    l->end += WF_MAX(got, 0);
    return WF_OK;
}

/* Ends the current piece: counts its lines and its bytes, and sets `text` to NULL. The next piece begins at data[begin]. */
static void pass(struct wf_lines *l)
{
    l->line += l->ends;
    l->column = l->ends > 0 || !l->text ? 0 : l->column + l->mark + l->length;
    l->ends = l->length = l->mark = 0;
    l->cut = false;
    l->text = NULL;
}

/* Makes the next `length` bytes the current piece. Its text is the first `shown` bytes, without a byte order mark. */
static void give(struct wf_lines *l, int64_t length, int64_t shown, int64_t ends)
{
    l->mark = l->done == 0 ? wf_line_first(l->data + l->begin, shown) : 0;
    l->text = l->data + l->begin + l->mark;
    l->length = shown - l->mark;
    l->ends = ends;
    l->begin += length;
    l->done += length;
}

/* Ends the current piece, reads more bytes if necessary, and finds the "\n" at which the next piece ends: the last within the next `bytes`
 * bytes, or else the first after them. *end is NULL if the text ends without "\n", or if `cuts` is set and the block must end inside a
 * line. */
static wf_status find_end(struct wf_lines *l, int64_t bytes, const char **end, wf_error *error)
{
    *end = NULL;
    pass(l);
    for (int64_t seen = bytes;;) { /* memchr searches from byte `seen` on, because the bytes up to there have no "\n" */
        int64_t held = l->end - l->begin, most = WF_MIN(held, bytes);
        if (most > 0 && (held >= bytes || l->ended) && (*end = memrchr(l->data + l->begin, '\n', (size_t)most)))
            return WF_OK;
        if (l->cuts && held > bytes) {
            *end = l->data[l->begin + bytes] == '\n' ? l->data + l->begin + bytes : NULL;
            return WF_OK;
        }
        if (held > seen) {
            *end = memchr(l->data + l->begin + seen, '\n', (size_t)(held - seen));
            seen = held;
        }
        if (l->longest > 0 && (*end ? *end - l->data - l->begin : held) > l->longest)
            return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": a line of more than %" PRId64 " bytes; is this a text file?",
                                l->name, l->line, l->longest);
        if (*end || l->ended)
            return WF_OK;
        wf_status status = wf_lines_read(l, error);
        if (status != WF_OK)
            return status;
    }
}

wf_status wf_lines_next(struct wf_lines *l, wf_error *error)
{
    const char *end;
    wf_status status = find_end(l, 0, &end, error);
    if (status != WF_OK || l->begin == l->end)
        return status;
    int64_t length = (end ? end - l->data + 1 : l->end) - l->begin, shown = length - (end != NULL);
    shown -= end && shown > 0 && end[-1] == '\r';
    give(l, length, shown, 1);
    return WF_OK;
}

/* Returns how many of the next `bytes` bytes a block takes if it must end inside a line: up to the last run of spaces that begins
 * in the second half of these bytes, or else up to the end of a character. */
static int64_t cut_line(struct wf_lines *l, int64_t bytes)
{
    const char *text = l->data + l->begin;
    for (int64_t at = bytes; at > bytes / 2; at--)
        if (text[at] == ' ' && text[at - 1] != ' ')
            return at;
    l->cut = true;
    int64_t at = bytes;
    while (at > bytes - 3 && (text[at] & 0xC0) == 0x80)
        at--;
    return at;
}

wf_status wf_lines_block(struct wf_lines *l, int64_t bytes, wf_error *error)
{
    const char *end;
    wf_status status = find_end(l, bytes, &end, error);
    if (status != WF_OK || l->begin == l->end)
        return status;
    int64_t held = l->end - l->begin, length = end && !(l->ended && held <= bytes) ? end + 1 - l->data - l->begin : held;
    bool inside = l->cuts && !end && held > bytes;
    if (inside)
        length = cut_line(l, bytes);
    int64_t ends = wf_line_ends(l->data + l->begin, length);
    give(l, length, length, ends + (!inside && l->data[l->begin + length - 1] != '\n'));
    return WF_OK;
}

/* Finds where in the file byte `offset` of the piece lies: sets *line, and returns the byte's number in that line, both from 1. */
static int64_t place_of(const struct wf_lines *l, int64_t offset, int64_t *line)
{
    int64_t begin = -l->mark - l->column;
    *line = l->line;
    for (const char *p = l->text, *end = l->text + offset; (p = memchr(p, '\n', (size_t)(end - p))); ++*line)
        begin = ++p - l->text;
    return offset - begin + 1;
}

char *wf_lines_place(const struct wf_lines *l, int64_t offset, char *place, size_t size)
{
    int64_t line, column = place_of(l, offset, &line);
    snprintf(place, size, "%s:%" PRId64 ":%" PRId64, l->name, line, column);
    return place;
}

wf_status wf_lines_refuse(const struct wf_lines *l, int64_t offset, wf_error *error)
{
    int64_t line, column = place_of(l, offset, &line), known = l->length + l->mark;
    /* Another format can be recognised only by the first bytes of the file. */
    const char *foreign = l->line == 1 && l->column == 0 ? wf_foreign_text(l->text - l->mark, known) : NULL;
    if (foreign)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: %s", l->name, foreign);
    return wf_text_refuse(l->name, line, column, l->text + offset, l->length - offset, error);
}

wf_status wf_lines_check(const struct wf_lines *l, wf_error *error)
{
    int64_t fault = l->text ? wf_text_fault(l->text, l->length) : -1;
    return fault < 0 ? WF_OK : wf_lines_refuse(l, fault, error);
}
