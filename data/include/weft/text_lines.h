/* SPDX-License-Identifier: MIT */
/* The lines of a text file, by number: for data sets with an item a line, in the order of wf_epochs_batch (weft/epochs.h).
 *
 *   struct wf_text_lines lines;
 *   if (wf_text_lines_open(&lines, "reviews.txt", &error) != WF_OK) ...
 *   int64_t length;
 *   const char *line = wf_text_lines_at(&lines, row, &length);
 *   wf_tokenizer_encode(tokenizer, line, length, &ids, &error) ...
 *   wf_text_lines_close(&lines);                                                                                         */
#ifndef WEFT_TEXT_LINES_H
#define WEFT_TEXT_LINES_H

#include <weft/error.h>

WF_BEGIN_DECLS

struct wf_text_lines_options {
    bool map; /* maps the file instead of reading it into memory: for files larger than memory, which processes then share. If another
                 process truncates the file, access to it ends this process: use it only for files that are not written to */
};
/* A line ends at "\n" or "\r\n", neither of which is part of it; the last line may lack it. Empty lines count. A byte order mark at the
 * beginning of the file is not part of the first line. */
struct wf_text_lines {
    int64_t count;
    const char *text; /* the file */
    int64_t bytes;
    int64_t *start; /* [count + 1]: where in `text` lines begin; 8 bytes a line */
    void *store;    /* owns the text */
};

/* Opens a file or, without .map, a pipe, and checks all of it, on all threads. WF_ERR_FORMAT with file:line:byte (from 1): bytes that are
 * not UTF-8, NUL; also an empty file. WF_ERR_IO, WF_ERR_MEMORY. On an error *lines is empty. */
WF_API wf_status wf_text_lines_open_with(struct wf_text_lines *lines, const char *path, const struct wf_text_lines_options *options,
                                         wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_text_lines_open(lines, path, error, ...)                                                                                        \
    wf_text_lines_open_with(lines, path, &(struct wf_text_lines_options){__VA_ARGS__}, error)
#endif
WF_API void wf_text_lines_close(struct wf_text_lines *lines); /* leaves it empty */
/* Line `index`, from 0: *length bytes (may be NULL), not NUL-terminated, valid until the close. NULL outside 0 .. count-1. */
WF_API const char *wf_text_lines_at(const struct wf_text_lines *lines, int64_t index, int64_t *length);

WF_END_DECLS

#endif
