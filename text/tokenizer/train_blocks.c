/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train_blocks.h"
#include <weft/internal/lines.h>
#include <weft/internal/reason.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

/* Large enough for the threads to share, small enough for progress to move. A longer line makes the buffer grow. */
static const int64_t block_bytes = (int64_t)4 << 20;

static wf_status refused(const char *name, const char *what, int number, wf_error *error)
{
    if (number == EISDIR)
        return wf_error_set(error, WF_ERR_IO, "%s: is a folder, not a file", name);
    return wf_error_set(error, WF_ERR_IO, "%s: cannot be %s: %s", name, what, wf_reason(number));
}

wf_status train_blocks_open(struct train_blocks *b, const struct tokenizer_source *source, wf_error *error)
{
    *b = (struct train_blocks){.source = source, .fd = -1, .total = source->count ? 0 : source->length, .name = "the text"};
    bool known = true;
    struct stat info;
    for (int64_t i = 0; i < source->count; i++) {
        /* What is missing is said before hours have gone into the files before it. */
        if (stat(source->path[i], &info) != 0)
            return refused(source->path[i], "opened", errno, error);
        known = known && S_ISREG(info.st_mode);
        b->total += known ? info.st_size : 0;
    }
    if (!known)
        b->total = 0;
    return WF_OK;
}

void train_blocks_close(struct train_blocks *b)
{
    if (b->fd >= 0)
        close(b->fd);
    wf_free(b->buffer);
    b->fd = -1;
    b->buffer = NULL;
    b->data = NULL;
    b->length = 0;
}

static const char *place(const struct train_blocks *b, int64_t offset, char *text, size_t size)
{
    int64_t line = 1 + b->line, begin = -b->mark;
    for (const char *p = b->data, *end = b->data + offset; (p = memchr(p, '\n', (size_t)(end - p))); line++)
        begin = ++p - b->data;
    snprintf(text, size, "%s:%" PRId64 ":%" PRId64, b->name, line, offset - begin + 1);
    return text;
}

wf_status train_blocks_fault(const struct train_blocks *b, int64_t offset, wf_error *error)
{
    char where[1024];
    if (!b->data[offset])
        return wf_error_set(error, WF_ERR_FORMAT, "%s: a NUL byte: this is not a text file, or it is in UTF-16; convert it to UTF-8",
                            place(b, offset, where, sizeof where));
    return wf_error_set(error, WF_ERR_FORMAT, "%s: not UTF-8: byte 0x%02X: %s; convert the file to UTF-8",
                        place(b, offset, where, sizeof where), (unsigned char)b->data[offset],
                        wf_utf8_fault(b->data + offset, b->length - offset));
}

/* The first block of a file or text: what it may begin with. */
static wf_status first_block(struct train_blocks *b, wf_error *error)
{
    if (b->length > 1 && (!memcmp(b->data, "\xFF\xFE", 2) || !memcmp(b->data, "\xFE\xFF", 2)))
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s:1:1: this is UTF-16, not UTF-8; convert it, for example with iconv -f utf-16 -t utf-8", b->name);
    b->mark = b->length > 2 && !memcmp(b->data, "\xEF\xBB\xBF", 3) ? 3 : 0;
    b->data += b->mark;
    b->length -= b->mark;
    b->begin += b->mark;
    if (b->length > 0)
        return WF_OK;
    return wf_error_set(error, WF_ERR_FORMAT, "%s: %s is empty; give one with text in it", b->name, b->source->count ? "the file" : "it");
}

/* Reads until the buffer holds the end of a line, and as much as a block, or the file ends. */
static wf_status fill(struct train_blocks *b, wf_error *error)
{
    int64_t rest = b->filled - b->taken;
    if (rest > 0)
        memmove(b->buffer, b->buffer + b->taken, (size_t)rest);
    b->filled = rest;
    b->taken = 0;
    while (!b->ended) {
        if (b->filled == b->capacity) {
            const char *last = b->capacity ? memrchr(b->buffer, '\n', (size_t)b->filled) : NULL;
            if (last) {
                b->taken = last + 1 - b->buffer;
                break;
            }
            int64_t capacity = b->capacity ? b->capacity * 2 : block_bytes;
            char *buffer = capacity > PTRDIFF_MAX / 4 ? NULL : wf_realloc(b->buffer, (size_t)capacity);
            if (!buffer)
                return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for a line of %" PRId64 " bytes", b->name, capacity);
            b->buffer = buffer;
            b->capacity = capacity;
        }
        ssize_t got = read(b->fd, b->buffer + b->filled, (size_t)(b->capacity - b->filled));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return refused(b->name, "read", errno, error);
        b->filled += got;
        b->ended = got == 0;
    }
    if (b->ended)
        b->taken = b->filled;
    b->data = b->buffer;
    b->length = b->taken;
    return WF_OK;
}

static wf_status next_of_files(struct train_blocks *b, wf_error *error)
{
    for (;;) {
        if (b->fd < 0) {
            if (b->file == b->source->count)
                return WF_OK;
            b->name = b->source->path[b->file++];
            b->fd = open(b->name, O_RDONLY | O_CLOEXEC);
            if (b->fd < 0)
                return refused(b->name, "opened", errno, error);
            b->line = b->begin = b->taken = b->filled = 0;
            b->ended = false;
        }
        wf_status status = fill(b, error);
        if (status != WF_OK || b->length > 0 || b->begin == 0)
            return status;
        close(b->fd);
        b->fd = -1;
    }
}

static void next_of_memory(struct train_blocks *b)
{
    int64_t at = b->begin, left = b->source->length - at;
    b->data = b->source->text + at;
    b->length = left;
    if (left > block_bytes) {
        const char *end = memchr(b->data + block_bytes, '\n', (size_t)(left - block_bytes));
        b->length = end ? end + 1 - b->data : left;
    }
}

wf_status train_blocks_next(struct train_blocks *b, wf_error *error)
{
    b->line += wf_line_ends(b->data, b->length);
    b->begin += b->length;
    b->done += b->length + b->mark;
    b->mark = b->length = 0;
    wf_status status = WF_OK;
    if (b->source->count)
        status = next_of_files(b, error);
    else
        next_of_memory(b);
    bool none = b->source->count ? b->fd < 0 : b->begin > 0;
    if (status == WF_OK && b->begin == 0 && !none)
        status = first_block(b, error);
    if (status != WF_OK)
        b->length = 0;
    return status;
}
