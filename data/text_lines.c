/* SPDX-License-Identifier: MIT */
/* Opens a text file, checks it, and finds where its lines begin. */
#include <string.h>

#include <weft/internal/files.h>
#include <weft/internal/lines.h>
#include <weft/internal/map.h>
#include <weft/internal/needs.h>
#include <weft/memory.h>
#include <weft/runtime.h>
#include <weft/text_lines.h>

#include "text_file.h"

struct store {
    char *memory;
    struct wf_map map;
};

static wf_status load(struct store *store, struct wf_text_lines *lines, const char *path, bool map, wf_error *error)
{
    wf_status status;
    if (map) {
        if ((status = wf_map_open(path, WF_MAP_SHARED, &store->map, error)) != WF_OK)
            return status;
        lines->text = store->map.data;
        lines->bytes = store->map.bytes;
    } else {
        struct text_file file;
        if ((status = text_file_open(&file, path, true, error)) != WF_OK)
            return status;
        lines->bytes = file.bytes;
        lines->text = store->memory = file.memory ? file.memory : wf_file_load_open(file.fd, path, INT64_C(1) << 46, &lines->bytes, error);
        file.memory = NULL;
        text_file_close(&file);
        if (!lines->text)
            return error->code;
    }
    return lines->bytes == wf_line_first(lines->text, lines->bytes) ? wf_text_empty(path, error) : WF_OK;
}

/* --- two walks over the text, in pieces of TEXT_PIECE bytes --- */

struct walk {
    struct wf_text_lines *lines;
    const char *path;
    int64_t *ends; /* [pieces + 1]: number of "\n" in the text before piece i */
};

static int64_t piece_end(const struct wf_text_lines *lines, int64_t piece)
{
    const int64_t left = lines->bytes - piece * TEXT_PIECE;
    return lines->bytes - (left > TEXT_PIECE ? left - TEXT_PIECE : 0);
}

static wf_status count_ends(void *ctx, int64_t worker, int64_t piece, wf_error *error)
{
    const struct walk *w = ctx;
    const int64_t at = piece * TEXT_PIECE;
    (void)worker, (void)error;
    w->ends[piece + 1] = wf_line_ends(w->lines->text + at, piece_end(w->lines, piece) - at);
    return WF_OK;
}

/* The offset of the first character that begins at or after `at`. check_piece checks the characters that begin in its piece, even if their
 * last bytes are in the next piece. */
static int64_t character(const struct wf_text_lines *lines, int64_t at)
{
    int64_t to = at;
    while (to < lines->bytes && to < at + 3 && (lines->text[to] & 0xC0) == 0x80)
        to++;
    return to;
}

static wf_status check_piece(void *ctx, int64_t worker, int64_t piece, wf_error *error)
{
    const struct walk *w = ctx;
    struct wf_text_lines *l = w->lines;
    const int64_t at = piece * TEXT_PIECE, end = piece_end(l, piece);
    const int64_t from = piece == 0 ? wf_line_first(l->text, l->bytes) : character(l, at);
    const int64_t fault = wf_text_fault(l->text + from, character(l, end) - from), place = from + fault;
    int64_t line = w->ends[piece];
    (void)worker;
    if (fault >= 0) {
        const char *before = memrchr(l->text, '\n', (size_t)place);
        const int64_t begin = before ? before + 1 - l->text : 0;
        line += 1 + (place > at ? wf_line_ends(l->text + at, place - at) : 0);
        return wf_text_refuse(w->path, line, place - begin + 1, l->text + place, l->bytes - place, error);
    }
    for (const char *p = l->text + at; (p = memchr(p, '\n', (size_t)(l->text + end - p)));)
        l->start[++line] = ++p - l->text;
    return WF_OK;
}

static wf_status index_lines(struct wf_text_lines *lines, const char *path, wf_error *error)
{
    const int64_t pieces = (lines->bytes + TEXT_PIECE - 1) / TEXT_PIECE;
    const int workers = pieces < wf_threads() ? (int)pieces : wf_threads();
    const bool open = lines->text[lines->bytes - 1] != '\n'; /* the last line has no "\n" */
    struct walk w = {lines, path, wf_alloc_zero((size_t)pieces + 1, sizeof *w.ends)};
    if (!w.ends)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for its lines", path);
    wf_status status = share_out(workers, 0, pieces, 0.1 * (double)lines->bytes, count_ends, &w, error);
    for (int64_t i = 0; i < pieces; i++)
        w.ends[i + 1] += w.ends[i];
    lines->count = w.ends[pieces] + open;
    if (!(lines->start = wf_alloc(((size_t)lines->count + 1) * sizeof *lines->start)))
        status = wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for its lines", path);
    if (status == WF_OK) {
        lines->start[0] = wf_line_first(lines->text, lines->bytes);
        lines->start[lines->count] = lines->bytes + open; /* as if the last line also ended with "\n" */
        status = share_out(workers, 0, pieces, 0.5 * (double)lines->bytes, check_piece, &w, error);
    }
    wf_free(w.ends);
    return status;
}

wf_status wf_text_lines_open_with(struct wf_text_lines *lines, const char *path, const struct wf_text_lines_options *options,
                                  wf_error *error)
{
    if (wf_needs(error, "lines", lines))
        return WF_ERR_ARGUMENT;
    *lines = (struct wf_text_lines){0};
    if (wf_needs(error, "path", path))
        return WF_ERR_ARGUMENT;
    wf_error failure = {0}; /* a local error, since `error` may be NULL */
    struct store *store = lines->store = wf_alloc_zero(1, sizeof *store);
    wf_status status =
        store ? load(store, lines, path, options && options->map, &failure) : wf_error_set(&failure, WF_ERR_MEMORY, "%s: no memory", path);
    if (status == WF_OK)
        status = index_lines(lines, path, &failure);
    if (status == WF_OK)
        return WF_OK;
    wf_text_lines_close(lines);
    return wf_error_set(error, failure.code, "%s", failure.message);
}

void wf_text_lines_close(struct wf_text_lines *lines)
{
    if (!lines)
        return;
    struct store *store = lines->store;
    if (store) {
        wf_map_close(&store->map);
        wf_free(store->memory);
    }
    wf_free(store);
    wf_free(lines->start);
    *lines = (struct wf_text_lines){0};
}

const char *wf_text_lines_at(const struct wf_text_lines *lines, int64_t index, int64_t *length)
{
    const bool there = lines && index >= 0 && index < lines->count;
    int64_t begin = there ? lines->start[index] : 0, end = there ? lines->start[index + 1] - 1 : 0;
    if (end > begin && end < lines->bytes && lines->text[end - 1] == '\r')
        end--;
    if (length)
        *length = end - begin;
    return there ? lines->text + begin : NULL;
}
