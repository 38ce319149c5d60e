/* SPDX-License-Identifier: MIT */
/* Lines of text: the one reader of them, from a file, a pipe or memory, and the one set of messages for bytes that no text may hold. Lines
 * end at "\n" and at nothing else; a last line may lack it. */
#ifndef WEFT_INTERNAL_LINES_H
#define WEFT_INTERNAL_LINES_H

#include <weft/error.h>

/* Reads one line or one block of whole lines at a time; no more is held than a block and its longest line.
 *
 *     struct wf_lines in;
 *     wf_status status = wf_lines_open(&in, path, error);
 *     while (status == WF_OK && (status = wf_lines_next(&in, error)) == WF_OK && in.text)
 *         if ((status = wf_lines_check(&in, error)) == WF_OK)
 *             ... in.text[0 .. in.length-1] is line number in.line ...
 *     wf_lines_close(&in);                                                                                                           */
struct wf_lines {
    const char *name;   /* for messages: the path, which must outlive the reader, or "standard input" */
    const char *text;   /* the piece that was given out last, NULL after the end; valid until the next call */
    int64_t length;     /* bytes */
    int64_t line;       /* number of its first line, from 1; after the end one more than there are lines */
    int64_t mark;       /* bytes of a byte order mark, which lies before text[0] and is left out: 3 in the first line, or 0 */
    int64_t done, size; /* bytes that were given out; of a regular file those that there were when it was opened, else 0 */
    /* To be set after opening, if wanted. */
    int64_t longest;                 /* a line of more bytes is WF_ERR_FORMAT; 0: the memory is the limit */
    bool cuts;                       /* a block may end inside a line that it cannot hold: before a space, or where there is none between
                                        two characters */
    bool (*wait)(void *ctx, int fd); /* called before each read; false: WF_ERR_CANCELLED */
    void *ctx;
    /* Bytes read and not yet given out: data[begin .. end-1]. */
    char *data;
    int64_t begin, end, capacity;
    int64_t ends;   /* line ends in the piece */
    int64_t column; /* bytes of the piece's first line that were given out before it */
    bool cut;       /* the piece ends inside a line where there was no space */
    bool ended;     /* nothing is left to be read */
    int fd;
};

/* Opens a file; NULL: standard input. WF_ERR_IO. */
wf_status wf_lines_open(struct wf_lines *lines, const char *path, wf_error *error) WF_CHECKED;
/* Reads `length` bytes of memory, which must outlive the reader. */
void wf_lines_of(struct wf_lines *lines, const char *name, const char *text, int64_t length);
void wf_lines_close(struct wf_lines *lines); /* also after a failure, and of {.fd = -1} */

/* The next line, without "\n" or "\r\n". */
wf_status wf_lines_next(struct wf_lines *lines, wf_error *error) WF_CHECKED;
/* The next whole lines as they stand, about `bytes` of them: fewer at the end, more where one line is longer (not if `cuts`). */
wf_status wf_lines_block(struct wf_lines *lines, int64_t bytes, wf_error *error) WF_CHECKED;
/* Reads once, behind what is held; the piece that was given out is gone. For callers that wait for input themselves. */
wf_status wf_lines_read(struct wf_lines *lines, wf_error *error) WF_CHECKED;

/* WF_ERR_FORMAT where the piece is not UTF-8 or holds NUL. */
wf_status wf_lines_check(const struct wf_lines *lines, wf_error *error) WF_CHECKED;
/* WF_ERR_FORMAT, with its message, for the byte at `offset` of the piece, which wf_text_fault found. */
wf_status wf_lines_refuse(const struct wf_lines *lines, int64_t offset, wf_error *error);
/* Writes "name:line:byte" of that byte, both from 1, and returns `place`. A byte order mark counts among the bytes of its line. */
char *wf_lines_place(const struct wf_lines *lines, int64_t offset, char *place, size_t size);

/* --- bytes that no text may hold --- */
/* The offset of the first byte that is not UTF-8, or NUL; -1 where all is well. */
int64_t wf_text_fault(const char *text, int64_t length);
/* WF_ERR_FORMAT for that byte, data[0] of `length` that follow, in line `line` at byte `column` of it, both from 1: "name:line:column: not
 * UTF-8: byte 0xFF: ...". */
wf_status wf_text_refuse(const char *name, int64_t line, int64_t column, const char *data, int64_t length, wf_error *error);
/* WF_ERR_FORMAT for a file with nothing in it. */
wf_status wf_text_empty(const char *name, wf_error *error);
/* WF_ERR_IO, with the system's reason, for a file that cannot be `what` ("opened", "read"). */
wf_status wf_file_refused(const char *name, const char *what, int number, wf_error *error);
/* The number of "\n" in so many bytes. */
int64_t wf_line_ends(const char *text, int64_t bytes);
/* The start of a file's first line: after a byte order mark. */
int64_t wf_line_first(const char *text, int64_t bytes);

#endif
