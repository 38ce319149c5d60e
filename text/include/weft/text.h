/* SPDX-License-Identifier: MIT */
/* Text from files, checked to be UTF-8. The whole text stays in memory: a language model's corpus of some gigabytes is
 * fine, streaming is not offered.
 *
 * What is kept: every byte, line ends included ("\r\n" stays two characters). What is dropped: a byte order mark
 * (EF BB BF) at the start of a file; one further on is a character like any other. What is refused, with file:line:byte of
 * the first bad byte: everything that is not UTF-8 by RFC 3629 (overlong forms, surrogates, above U+10FFFF, cut sequences),
 * and NUL, which no text file holds and which tells UTF-16 and binary files from text. */
#ifndef WEFT_TEXT_H
#define WEFT_TEXT_H

#include <weft/error.h>

WF_BEGIN_DECLS

/* Where a file's part of a text begins. */
struct wf_text_file {
    char *name;
    int64_t start;   /* offset into wf_text.data */
    int64_t dropped; /* bytes of the file before it: 3 with a byte order mark, else 0 */
};

/* The texts of one or several files, one after the other with nothing between. Only wf_text_read and wf_text_of make one. */
struct wf_text {
    char *data;         /* UTF-8; a NUL follows at data[length] */
    int64_t length;     /* bytes */
    int64_t characters; /* Unicode code points */
    struct wf_text_file *file;
    int64_t files;
};

/* Reads `count` files. On an error *out is empty; a missing, unreadable or empty file and a folder are named, and bad bytes
 * are placed as file:line:byte, lines and bytes in the line from 1, counted in the file as it lies on the disk.
 * WF_ERR_IO, WF_ERR_FORMAT, WF_ERR_MEMORY; WF_ERR_ARGUMENT when count is not positive. Free with wf_text_free. */
WF_API wf_status wf_text_read(const char *const *paths, int64_t count, struct wf_text *out, wf_error *error) WF_CHECKED;

/* A copy of `length` bytes of memory, under the same rules; `name` stands for the file in messages ("standard input"). */
WF_API wf_status wf_text_of(const char *data, int64_t length, const char *name, struct wf_text *out, wf_error *error) WF_CHECKED;

/* Writes "file:line:byte" of data[offset] and returns `place`; offset is 0 .. length. */
WF_API char *wf_text_place(const struct wf_text *text, int64_t offset, char *place, size_t size);

/* The offset of code point number `character` (0 .. characters); `characters` itself gives length. */
WF_API int64_t wf_text_offset(const struct wf_text *text, int64_t character);

WF_API void wf_text_free(struct wf_text *text); /* leaves it empty; NULL and empty texts are fine */

WF_END_DECLS

#endif
