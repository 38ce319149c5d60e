/* SPDX-License-Identifier: MIT */
/* Internal to data/: a text file that is read on demand, in pieces. It is not mapped, because a process that has mapped a file is killed
 * when another process truncates that file. A read of a truncated file is an ordinary error. */
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
    char *memory;            /* the whole content of a pipe or a device; NULL for a regular file */
    struct timespec written; /* modification time of the file when its content was last known to be as at opening */
    struct stat info;        /* result of fstat when the file was opened */
};

/* Opens a file. With `pipes` the content of a pipe or a device is read into memory; without `pipes` such a file is WF_ERR_IO. Other errors:
 * WF_ERR_IO, WF_ERR_MEMORY; WF_ERR_FORMAT for a file that is empty, has only a byte order mark, or is recognised as another kind of file.
 * On an error *file is closed. */
wf_status text_file_open(struct text_file *file, const char *path, bool pipes, wf_error *error) WF_CHECKED;
void text_file_close(struct text_file *file); /* {0} is allowed */
/* Reads bytes at .. at+bytes-1 into `out`. WF_ERR_FORMAT if the file has been truncated. */
wf_status text_file_read(const struct text_file *file, int64_t at, int64_t bytes, char *out, wf_error *error) WF_CHECKED;
/* Sets the error for a file that was modified while in use. Returns WF_ERR_FORMAT. */
wf_status text_file_changed(const struct text_file *file, wf_error *error);
/* Sets the error for an invalid byte at `offset`, with its line and column. Returns WF_ERR_FORMAT. */
wf_status text_file_refuse(const struct text_file *file, int64_t offset, wf_error *error);
/* Writes "path:line:byte" for the byte at `offset` to place[0 .. size-1]. */
wf_status text_file_place(const struct text_file *file, int64_t offset, char *place, size_t size, wf_error *error) WF_CHECKED;

/* The user's progress function. It is called several times a second, in the thread that called the library. */
struct text_progress {
    bool (*call)(void *ctx, int64_t done, int64_t total); /* returns false to cancel; may be NULL */
    void *ctx;
    int64_t done;     /* number of bytes processed so far */
    int64_t total;    /* number of bytes to process */
    const char *what; /* the activity, for the message: "the survey of the parallel text" */
};
/* Adds `more` bytes to progress->done and calls the user's function. WF_ERR_CANCELLED if it returns false. `progress` may be NULL. */
wf_status text_progress(struct text_progress *progress, int64_t more, wf_error *error) WF_CHECKED;

/* Calls body(ctx, worker, item, error) once for each item first .. end-1. Each worker (0 .. workers-1) takes the next item when it has
 * finished one. A failure does not stop the other items: the error returned is that of the failed item with the lowest number, whatever the
 * number of threads. `cost` is in nanoseconds, as for wf_parallel. Allocates nothing. */
typedef wf_status share_body(void *ctx, int64_t worker, int64_t item, wf_error *error);
wf_status share_out(int workers, int64_t first, int64_t end, double cost, share_body *body, void *ctx, wf_error *error) WF_CHECKED;

/* A scan divides a file into pieces of TEXT_PIECE bytes. */
enum { TEXT_PIECE = 1 << 18 };
struct text_scan {
    int64_t pieces;
    int64_t lines;
    int64_t first;    /* offset of the first byte of text, after a byte order mark */
    int64_t *ends;    /* [pieces + 1]: number of "\n" in the file before piece i */
    int64_t *points;  /* [pieces + 1]: number of characters that begin before piece i */
    uint64_t content; /* hash of the file's content */
};
/* Reads the whole file once, on all threads. `progress` may be NULL. The caller frees *out with text_scan_free. */
wf_status text_file_scan(const struct text_file *file, struct text_progress *progress, struct text_scan *out, wf_error *error) WF_CHECKED;
void text_scan_free(struct text_scan *scan);

/* Scans that earlier calls made, as a list. A file that has not changed since is found by its inode, size and times; see <weft/scans.h>. */
struct wf_scans {
    struct scanned *first;
};
/* text_file_scan, but reuses a scan of the same file from `scans`, or adds a new scan to `scans`. `scans` owns the memory of *out, which
 * stays valid until text_scans_clear. */
wf_status text_file_scan_once(const struct text_file *file, struct wf_scans *scans, struct text_progress *progress, struct text_scan *out,
                              wf_error *error) WF_CHECKED;
void text_scans_clear(struct wf_scans *scans);
static inline int64_t text_piece_bytes(const struct text_file *file, int64_t piece)
{
    int64_t left = file->bytes - piece * TEXT_PIECE;
    return WF_MIN(left, TEXT_PIECE);
}

/* share_out over the pieces of a file, in rounds of `at_once` pieces per worker. After each round the user's progress function is called
 * and may cancel. `cost`: nanoseconds per byte. `counts`: whether the walk adds its bytes to the progress. */
wf_status text_file_walk(const struct text_file *file, int workers, int64_t at_once, double cost, share_body *body, void *ctx,
                         struct text_progress *progress, bool counts, wf_error *error) WF_CHECKED;

/* WF_ERR_FORMAT if the content of the file has changed since it was opened. If only its time of modification has changed, the content is
 * hashed again and compared with `content`. */
wf_status text_file_verify(struct text_file *file, uint64_t content, wf_error *error) WF_CHECKED;

#endif
