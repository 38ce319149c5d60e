/* SPDX-License-Identifier: MIT */
/* Inside the room: a text file, read in pieces on demand. It is not mapped: a mapped file that another process truncates ends this process;
 * here it is an error. */
#ifndef WEFT_DATA_TEXT_FILE_H
#define WEFT_DATA_TEXT_FILE_H

#include <sys/stat.h>

#include <weft/error.h>
#include <weft/internal/minmax.h>
#include <weft/scans.h>

struct text_file {
    char *path;
    int64_t bytes;
    int fd;
    char *memory;            /* the whole content of a pipe or a device; else NULL */
    struct timespec written; /* the time of the last modification */
    struct stat info;        /* when it was opened */
};

/* Opens a file. A pipe or a device is read into memory with `pipes`, else it is WF_ERR_IO. WF_ERR_IO, WF_ERR_MEMORY; WF_ERR_FORMAT for an
 * empty file, also one of only a byte order mark. On an error *file is closed. */
wf_status text_file_open(struct text_file *file, const char *path, bool pipes, wf_error *error) WF_CHECKED;
void text_file_close(struct text_file *file); /* also of {0} */
/* Reads bytes at .. at+bytes-1. WF_ERR_FORMAT if the file has been truncated. */
wf_status text_file_read(const struct text_file *file, int64_t at, int64_t bytes, char *out, wf_error *error) WF_CHECKED;
/* WF_ERR_FORMAT for a file that was modified while in use. */
wf_status text_file_changed(const struct text_file *file, wf_error *error);
/* WF_ERR_FORMAT for the byte at `offset`, which is invalid in text. */
wf_status text_file_refuse(const struct text_file *file, int64_t offset, wf_error *error);
/* Writes "path:line:byte" of it. */
wf_status text_file_place(const struct text_file *file, int64_t offset, char *place, size_t size, wf_error *error) WF_CHECKED;

/* The caller's function for progress, asked several times a second from the caller's thread. */
struct text_progress {
    bool (*call)(void *ctx, int64_t done, int64_t total); /* bytes; may be NULL */
    void *ctx;
    int64_t done, total;
    const char *what; /* for the message: "the survey of the parallel text" */
};
/* WF_ERR_CANCELLED when the caller wants to stop. `progress` may be NULL. */
wf_status text_progress(struct text_progress *progress, int64_t more, wf_error *error) WF_CHECKED;

/* Calls body(ctx, worker, item, error) for the items first .. end-1, each once: every worker, 0 .. workers-1, takes the next item when it
 * has done one. The error is that of the first item that failed, on any number of threads. `cost` as for wf_parallel. Allocates nothing. */
typedef wf_status share_body(void *ctx, int64_t worker, int64_t item, wf_error *error);
wf_status share_out(int workers, int64_t first, int64_t end, double cost, share_body *body, void *ctx, wf_error *error) WF_CHECKED;

/* The file by pieces of TEXT_PIECE bytes: ends[i] lines end before piece i, points[i] characters begin before it; [pieces + 1]. */
enum { TEXT_PIECE = 1 << 18 };
struct text_scan {
    int64_t pieces, lines;
    int64_t first; /* where the text begins: after a byte order mark */
    int64_t *ends, *points;
    uint64_t content; /* hash */
};
/* One walk over all bytes, on all threads. `progress` may be NULL. Free with text_scan_free. */
wf_status text_file_scan(const struct text_file *file, struct text_progress *progress, struct text_scan *out, wf_error *error) WF_CHECKED;
void text_scan_free(struct text_scan *scan);

/* The scans of files by what identifies their content; see <weft/scans.h>. */
struct wf_scans {
    struct scanned *first;
};
/* The same, without a walk where `scans` have it already. *out is theirs: valid until they are freed. */
wf_status text_file_scan_once(const struct text_file *file, struct wf_scans *scans, struct text_progress *progress, struct text_scan *out,
                              wf_error *error) WF_CHECKED;
void text_scans_clear(struct wf_scans *scans);
static inline int64_t text_piece_bytes(const struct text_file *file, int64_t piece)
{
    int64_t left = file->bytes - piece * TEXT_PIECE;
    return WF_MIN(left, TEXT_PIECE);
}

/* share_out over the pieces of a file, `at_once` a worker at a time, so that the caller hears of them and can stop. `cost`: nanoseconds a
 * byte; `counts`: the bytes are added to the progress. */
wf_status text_file_walk(const struct text_file *file, int workers, int64_t at_once, double cost, share_body *body, void *ctx,
                         struct text_progress *progress, bool counts, wf_error *error) WF_CHECKED;

/* WF_ERR_FORMAT if the content of the file has changed since it was opened; one that was only touched, or written with the same bytes, has
 * not. */
wf_status text_file_verify(struct text_file *file, uint64_t content, wf_error *error) WF_CHECKED;

#endif
