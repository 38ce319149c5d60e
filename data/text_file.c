/* SPDX-License-Identifier: MIT */
/* Reads text files on demand, scans them, notices that they were modified, and distributes their pieces over threads. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/compute.h>
#include <weft/file.h>
#include <weft/internal/files.h>
#include <weft/internal/foreign.h>
#include <weft/internal/hash.h>
#include <weft/internal/lines.h>
#include <weft/internal/map.h>
#include <weft/internal/minmax.h>
#include <weft/memory.h>
#include <weft/runtime.h>

#include "text_file.h"

wf_status text_file_changed(const struct text_file *file, wf_error *error)
{
    return wf_error_set(error, WF_ERR_FORMAT, "%s: the file was modified while it was in use; start again", file->path);
}

static wf_status open_it(struct text_file *file, bool pipes, wf_error *error)
{
    struct stat info;
    /* Without `pipes` a pipe is refused below. O_NONBLOCK is needed to get there: without it, open waits until the pipe has a writer. */
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | (pipes ? 0 : O_NONBLOCK));
    if (file->fd < 0 || fstat(file->fd, &info) != 0)
        return wf_file_refused(file->path, "opened", errno, error);
    if (S_ISDIR(info.st_mode))
        return wf_file_refused(file->path, "read", EISDIR, error);
    if (S_ISREG(info.st_mode)) {
        file->bytes = info.st_size;
        file->written = info.st_mtim;
        file->info = info;
    } else if (!pipes) {
        return wf_error_set(error, WF_ERR_IO,
                            "%s: is a device or a pipe, not a regular file; it is read more than once, so write it to a file first",
                            file->path);
    } else if (!(file->memory = wf_file_load_open(file->fd, file->path, INT64_C(1) << 46, &file->bytes, error))) {
        return error ? error->code : WF_ERR_IO;
    }
    char head[WF_FOREIGN_HEAD];
    int64_t known = WF_MIN(file->bytes, WF_FOREIGN_HEAD);
    wf_status status = text_file_read(file, 0, known, head, error);
    const char *foreign = status == WF_OK ? wf_foreign_text(head, known) : NULL;
    if (foreign)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: %s", file->path, foreign);
    if (status == WF_OK && file->bytes <= 3 && file->bytes == wf_line_first(head, file->bytes))
        status = wf_text_empty(file->path, error);
    return status;
}

wf_status text_file_open(struct text_file *file, const char *path, bool pipes, wf_error *error)
{
    *file = (struct text_file){.path = wf_strdup(path), .fd = -1};
    wf_error failure = {0}; /* a local error, since `error` may be NULL */
    wf_status status =
        file->path ? open_it(file, pipes, &failure) : wf_error_set(&failure, WF_ERR_MEMORY, "%s: no memory to open it", path);
    if (status == WF_OK)
        return WF_OK;
    text_file_close(file);
    return wf_error_set(error, failure.code, "%s", failure.message);
}

void text_file_close(struct text_file *file)
{
    if (file->path && file->fd >= 0)
        close(file->fd);
    wf_free(file->memory);
    wf_free(file->path);
    *file = (struct text_file){0};
}

wf_status text_file_read(const struct text_file *file, int64_t at, int64_t bytes, char *out, wf_error *error)
{
    if (file->memory) {
        memcpy(out, file->memory + at, (size_t)bytes);
        return WF_OK;
    }
    int64_t got = wf_map_read(file->fd, at, out, bytes);
    if (got < 0)
        return wf_file_refused(file->path, "read", errno, error);
    return got < bytes ? text_file_changed(file, error) : WF_OK;
}

/* Line and column (in bytes) of the byte at `offset`, both from 1. They are counted only when a message needs them. */
static wf_status find_line(const struct text_file *file, int64_t offset, int64_t *line, int64_t *column, wf_error *error)
{
    char piece[4096];
    int64_t begin = 0;
    *line = 1;
    for (int64_t at = 0, bytes; at < offset; at += bytes) {
        bytes = WF_MIN(offset - at, (int64_t)sizeof piece);
        wf_status status = text_file_read(file, at, bytes, piece, error);
        if (status != WF_OK)
            return status;
        for (const char *p = piece, *end = piece + bytes; (p = memchr(p, '\n', (size_t)(end - p))); ++*line)
            begin = at + (++p - piece);
    }
    *column = offset - begin + 1;
    return WF_OK;
}

wf_status text_file_place(const struct text_file *file, int64_t offset, char *place, size_t size, wf_error *error)
{
    int64_t line, column;
    wf_status status = find_line(file, offset, &line, &column, error);
    if (status == WF_OK)
        snprintf(place, size, "%s:%" PRId64 ":%" PRId64, file->path, line, column);
    return status;
}

wf_status text_file_refuse(const struct text_file *file, int64_t offset, wf_error *error)
{
    char data[4];
    int64_t line, column, bytes = WF_MIN(file->bytes - offset, 4);
    wf_status status = find_line(file, offset, &line, &column, error);
    if (status == WF_OK)
        status = text_file_read(file, offset, bytes, data, error);
    return status == WF_OK ? wf_text_refuse(file->path, line, column, data, bytes, error) : status;
}

wf_status text_progress(struct text_progress *p, int64_t more, wf_error *error)
{
    if (!p || !p->call)
        return WF_OK;
    p->done += more;
    return p->call(p->ctx, p->done, p->total) ? WF_OK : wf_error_set(error, WF_ERR_CANCELLED, "%s was cancelled", p->what);
}

/* --- distributing items over threads --- */

struct sharing {
    share_body *body;
    void *ctx;
    int64_t end;
    int64_t failed; /* the lowest item that failed; `end`: none */
    _Atomic int64_t next;
    pthread_mutex_t mutex;
    wf_status status;
    wf_error error;
};

static void share_worker(void *ctx, int64_t worker)
{
    struct sharing *s = ctx;
    for (int64_t item; (item = atomic_fetch_add(&s->next, 1)) < s->end;) {
        wf_error error;
        wf_error_clear(&error); /* cheaper than setting the whole struct to zero, because it contains a long array for the message */
        wf_status status = s->body(s->ctx, worker, item, &error);
        if (status == WF_OK)
            continue;
        pthread_mutex_lock(&s->mutex);
        if (item < s->failed) {
            s->failed = item;
            s->status = status;
            s->error = error;
        }
        pthread_mutex_unlock(&s->mutex);
    }
}

wf_status share_out(int workers, int64_t first, int64_t end, double cost, share_body *body, void *ctx, wf_error *error)
{
    struct sharing s = {
        .body = body, .ctx = ctx, .end = end, .failed = end, .next = first, .mutex = PTHREAD_MUTEX_INITIALIZER, .error.code = WF_OK};
    wf_parallel(workers, cost, share_worker, &s);
    return s.failed < end ? wf_error_set(error, s.status, "%s", s.error.message) : WF_OK;
}

wf_status text_file_walk(const struct text_file *file, int workers, int64_t at_once, double cost, share_body *body, void *ctx,
                         struct text_progress *progress, bool counts, wf_error *error)
{
    int64_t pieces = (file->bytes + TEXT_PIECE - 1) / TEXT_PIECE;
    wf_status status = WF_OK;
    for (int64_t first = 0, end; first < pieces && status == WF_OK; first = end) {
        end = pieces - first < at_once * workers ? pieces : first + at_once * workers;
        int64_t bytes = (end < pieces ? end * TEXT_PIECE : file->bytes) - first * TEXT_PIECE;
        status = share_out(workers, first, end, cost * (double)bytes, body, ctx, error);
        if (status == WF_OK)
            status = text_progress(progress, counts ? bytes : 0, error);
    }
    return status;
}

/* --- the scan --- */

struct scanning {
    const struct text_file *file;
    struct text_scan *out;
    uint64_t *hash; /* [pieces]: hash of each piece */
    char *buffer;   /* [workers][TEXT_PIECE] */
    char last;      /* last byte of the file */
};

/* The number of characters of UTF-8 text: counts the bytes that are not continuation bytes. */
static int64_t characters_in(const char *text, int64_t bytes)
{
    int64_t count = 0;
    while (bytes > 0) {
        int64_t piece = bytes < 1 << 14 ? bytes : 1 << 14;
        int32_t sum = 0; /* with a 32-bit sum the compiler counts 16 bytes at once */
        for (int64_t i = 0; i < piece; i++)
            sum += (text[i] & 0xC0) != 0x80;
        count += sum;
        text += piece;
        bytes -= piece;
    }
    return count;
}

static wf_status scan_piece(void *ctx, int64_t worker, int64_t piece, wf_error *error)
{
    struct scanning *s = ctx;
    char *buffer = s->buffer + worker * TEXT_PIECE;
    int64_t bytes = text_piece_bytes(s->file, piece);
    wf_status status = text_file_read(s->file, piece * TEXT_PIECE, bytes, buffer, error);
    if (status != WF_OK)
        return status;
    s->hash[piece] = wf_hash(buffer, bytes, 0);
    s->out->ends[piece + 1] = wf_line_ends(buffer, bytes);
    if (piece == 0)
        s->out->first = wf_line_first(buffer, bytes);
    s->out->points[piece + 1] = characters_in(buffer, bytes) - (piece == 0 && s->out->first > 0);
    if (piece + 1 == s->out->pieces)
        s->last = buffer[bytes - 1];
    return WF_OK;
}

wf_status text_file_scan(const struct text_file *file, struct text_progress *progress, struct text_scan *out, wf_error *error)
{
    int64_t pieces = (file->bytes + TEXT_PIECE - 1) / TEXT_PIECE;
    int workers = pieces < wf_threads() ? (int)pieces : wf_threads();
    size_t counts = (size_t)(pieces + 1) * sizeof(int64_t);
    *out = (struct text_scan){.pieces = pieces, .ends = wf_alloc(counts), .points = wf_alloc(counts)};
    struct scanning s = {.file = file, .out = out, .hash = wf_alloc(counts), .buffer = wf_alloc((size_t)workers * TEXT_PIECE)};
    wf_status status = out->ends && out->points && s.hash && s.buffer /* calls the progress function after every 128 pieces per worker */
                           ? text_file_walk(file, workers, 128, 0.2, scan_piece, &s, progress, false, error)
                           : wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to look through it", file->path);
    if (status == WF_OK) {
        out->ends[0] = out->points[0] = 0;
        for (int64_t i = 0; i < pieces; i++) {
            out->ends[i + 1] += out->ends[i];
            out->points[i + 1] += out->points[i];
        }
        out->lines = out->ends[pieces] + (s.last != '\n');
        out->content = wf_hash(s.hash, pieces * (int64_t)sizeof *s.hash, (uint64_t)file->bytes);
    } else {
        text_scan_free(out);
    }
    wf_free(s.hash);
    wf_free(s.buffer);
    return status;
}

void text_scan_free(struct text_scan *scan)
{
    wf_free(scan->ends);
    wf_free(scan->points);
    *scan = (struct text_scan){0};
}

wf_status text_file_verify(struct text_file *file, uint64_t content, wf_error *error)
{
    struct stat info;
    if (file->memory || fstat(file->fd, &info) != 0) /* the content of a pipe is in memory; if fstat fails, a change cannot be detected */
        return WF_OK;
    if (info.st_size == file->bytes && !memcmp(&info.st_mtim, &file->written, sizeof file->written))
        return WF_OK;
    file->written.tv_nsec = -1; /* no file has this time, so the next call checks again */
    if (info.st_size != file->bytes)
        return text_file_changed(file, error);
    struct text_scan scan;
    wf_status status = text_file_scan(file, NULL, &scan, error);
    if (status != WF_OK)
        return status;
    if (scan.content == content)
        file->written = info.st_mtim;
    else
        status = text_file_changed(file, error);
    text_scan_free(&scan);
    return status;
}
