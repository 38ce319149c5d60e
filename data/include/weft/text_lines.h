/* SPDX-License-Identifier: MIT */
/* The lines of a text file, by number. This suits data sets with one item per line: wf_epochs_batch (weft/epochs.h) chooses
 * the numbers of a shuffled batch's lines.
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
    /* Maps the file instead of reading it into memory. Use this for files larger than memory, or to share the memory between processes. If
     * another process truncates a mapped file, this process ends as soon as it reads one of the lost bytes, so map only files to which
     * nobody writes. */
    bool map;
};
/* A line ends at "\n" or "\r\n", which is not part of the line. The last line may lack a line end. Empty lines count. A byte order mark at
 * the beginning of the file is not part of the first line. */
struct wf_text_lines {
    int64_t count;
    const char *text; /* the content of the file */
    int64_t bytes;
    int64_t *start; /* [count + 1]: the offset in `text` at which each line begins; 8 bytes per line */
    void *store;    /* owns the memory of `text` */
};

/* Opens a file, or if .map is not set also a pipe, and checks the whole content, on all threads. The caller closes *lines with
 * wf_text_lines_close. WF_ERR_FORMAT with file:line:byte (from 1): bytes that are not UTF-8, or NUL. WF_ERR_FORMAT also for an empty file.
 * WF_ERR_IO, WF_ERR_MEMORY. On an error *lines is empty. */
WF_API wf_status wf_text_lines_open_with(struct wf_text_lines *lines, const char *path, const struct wf_text_lines_options *options,
                                         wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_text_lines_open(lines, path, error, ...)                                                                                        \
    wf_text_lines_open_with(lines, path, &(struct wf_text_lines_options){__VA_ARGS__}, error)
#endif
WF_API void wf_text_lines_close(struct wf_text_lines *lines); /* frees the memory and leaves *lines empty */
/* Returns line `index`, from 0, and sets *length (may be NULL) to its number of bytes. The line has no NUL at its end, and is valid until
 * wf_text_lines_close. Returns NULL if `index` is outside 0 .. count-1. */
WF_API const char *wf_text_lines_at(const struct wf_text_lines *lines, int64_t index, int64_t *length);

WF_END_DECLS

#endif
