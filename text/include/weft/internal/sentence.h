/* SPDX-License-Identifier: MIT */
/* Sentences in text files with one sentence per line. */
#ifndef WEFT_INTERNAL_SENTENCE_H
#define WEFT_INTERNAL_SENTENCE_H

#include <weft/tokenizer.h>

/* Finds the line that begins at text[begin], where begin < bytes. Only "\n" and the end of the text end a line, so that both files of a
 * parallel text have the same line numbers. The line's sentence is text[from .. to-1], without the white space at both ends (Unicode's
 * White_Space, which includes "\r"). Returns the start of the next line. */
int64_t wf_line_at(const char *text, int64_t bytes, int64_t begin, int64_t *from, int64_t *to);

/* wf_tokenizer_encode_with for the sentence text[from .. to-1], which is in line number `line` (from 0). That line begins at text[begin].
 * Errors in the text are reported as path:line:byte. */
wf_status wf_line_encode(const wf_tokenizer *tokenizer, const char *path, const char *text, int64_t line, int64_t begin, int64_t from,
                         int64_t to, const struct wf_encode_options *options, struct wf_tokens *out, wf_error *error);

/* The length of the text without the white space (Unicode's White_Space) at its end. */
int64_t wf_text_trim_end(const char *text, int64_t length);

#endif
