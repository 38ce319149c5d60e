/* SPDX-License-Identifier: MIT */
/* Lines of text. All code of Weft reads lines, from a file, a pipe or memory, through this reader, and reports invalid bytes in text
 * through its messages. A line ends at "\n" and nowhere else; the last line may lack it. */
#ifndef WEFT_INTERNAL_LINES_H
#define WEFT_INTERNAL_LINES_H

#include <weft/error.h>

/* Reads one line, or one block of whole lines, at a time. It holds no more than one block and its longest line in memory.
 *
 *     struct wf_lines in;
 *     wf_status status = wf_lines_open(&in, path, error);
 *     while (status == WF_OK && (status = wf_lines_next(&in, error)) == WF_OK && in.text)
 *         if ((status = wf_lines_check(&in, error)) == WF_OK)
 *             ... in.text[0 .. in.length-1] is line number in.line ...
 *     wf_lines_close(&in);
 *
 * The line or block that the reader returned last is called the piece. */
struct wf_lines {
    const char *name; /* for messages: the path, which must outlive the reader, or "standard input" */
    const char *text; /* the piece, valid until the next call; NULL after the end of the text */
    int64_t length;   /* bytes of the piece */
    int64_t line;     /* number of the piece's first line, from 1; after the end of the text, the number of lines plus 1 */
    int64_t mark;     /* bytes of a byte order mark, which lies before text[0]: 3 or 0; text does not include it */
    int64_t done;     /* bytes of all pieces so far, including their line ends */
    int64_t size;     /* bytes that a regular file had at opening, or of the memory; 0 if not known */
    /* The caller may set the next four members after opening. */
    int64_t longest; /* a line with more bytes is WF_ERR_FORMAT; 0: only memory limits a line */
    /* true: a block may end inside a line that is longer than the block, before a space in the second half of the block, or else between
     * two characters. */
    bool cuts;
    bool (*wait)(void *ctx, int fd); /* called before each read; if it returns false, the result is WF_ERR_CANCELLED */
    void *ctx;
    /* data[begin .. end-1] are the bytes that were read and belong to no piece yet. */
    char *data;
    int64_t begin, end, capacity;
    int64_t ends;   /* number of line ends in the piece */
    int64_t column; /* bytes of the piece's first line that belonged to earlier pieces */
    bool cut;       /* the piece ends inside a line, at a position without a space */
    bool ended;     /* the end of the file was read */
    int fd;
};

/* Opens the file `path`, or standard input if `path` is NULL. Returns WF_ERR_IO if the file cannot be opened. */
wf_status wf_lines_open(struct wf_lines *lines, const char *path, wf_error *error) WF_CHECKED;
/* Makes a reader of `length` bytes of memory, which must outlive the reader. */
void wf_lines_of(struct wf_lines *lines, const char *name, const char *text, int64_t length);
void wf_lines_close(struct wf_lines *lines); /* may be called after a failure, and for {.fd = -1} */

/* Returns in lines->text the next line, without "\n" or "\r\n". */
wf_status wf_lines_next(struct wf_lines *lines, wf_error *error) WF_CHECKED;
/* Returns in lines->text the next whole lines, unchanged: about `bytes` bytes. The block is shorter at the end of the text, and longer
 * if one line is longer and `cuts` is false. */
wf_status wf_lines_block(struct wf_lines *lines, int64_t bytes, wf_error *error) WF_CHECKED;
/* Reads once and appends the bytes to the buffer; the current piece becomes invalid. Only callers that wait for input themselves need
 * this function. */
wf_status wf_lines_read(struct wf_lines *lines, wf_error *error) WF_CHECKED;

/* WF_ERR_FORMAT if the piece is not UTF-8 or contains a NUL. */
wf_status wf_lines_check(const struct wf_lines *lines, wf_error *error) WF_CHECKED;
/* Returns WF_ERR_FORMAT, with a message about the invalid byte that wf_text_fault found at `offset` of the piece. If the piece
 * begins the file and wf_foreign_text recognises another format in it, the message names that format instead. */
wf_status wf_lines_refuse(const struct wf_lines *lines, int64_t offset, wf_error *error);
/* Writes "name:line:byte" for the byte at `offset` of the piece, and returns `place`. Line and byte count from 1. A byte order mark
 * counts among the bytes of its line. */
char *wf_lines_place(const struct wf_lines *lines, int64_t offset, char *place, size_t size);

/* --- bytes that text must not contain --- */
/* The offset of the first byte that is NUL or not UTF-8; -1 if there is none. */
int64_t wf_text_fault(const char *text, int64_t length);
/* Returns WF_ERR_FORMAT for the invalid byte data[0], which stands in line `line` at byte `column` (both from 1) and is the first of
 * `length` bytes: "name:line:column: not UTF-8: byte 0xFF: ...". */
wf_status wf_text_refuse(const char *name, int64_t line, int64_t column, const char *data, int64_t length, wf_error *error);
/* Returns WF_ERR_FORMAT with the message that the file `name` is empty. */
wf_status wf_text_empty(const char *name, wf_error *error);
/* Returns WF_ERR_IO, with the system's reason for the error `number`, for a file that cannot be `what` ("opened", "read"). */
wf_status wf_file_refused(const char *name, const char *what, int number, wf_error *error);
/* The number of "\n" in `bytes` bytes. */
int64_t wf_line_ends(const char *text, int64_t bytes);
/* The offset of a file's first line: 3 after a byte order mark, else 0. */
int64_t wf_line_first(const char *text, int64_t bytes);

#endif
