/* SPDX-License-Identifier: MIT */
/* The sentences in lines of text. */
#ifndef WEFT_INTERNAL_SENTENCE_H
#define WEFT_INTERNAL_SENTENCE_H

#include <weft/tokenizer.h>

/* The line that begins at text[begin], begin < bytes, of a text of `bytes` bytes: it ends at "\n" or at the end of the text, and
 * nowhere else, so that it stays aligned with the other file's line. Its sentence, text[from .. to-1], is the line without the white space
 * (Unicode's White_Space, also a "\r") at both ends. Returns where the next line begins. */
int64_t wf_line_at(const char *text, int64_t bytes, int64_t begin, int64_t *from, int64_t *to);

/* wf_tokenizer_encode_with of the sentence text[from .. to-1] of line number `line` (from 0) that begins at `begin`;
 * errors in the text give path:line:byte. */
wf_status wf_line_encode(const wf_tokenizer *tokenizer, const char *path, const char *text, int64_t line, int64_t begin, int64_t from,
                         int64_t to, const struct wf_encode_options *options, struct wf_tokens *out, wf_error *error);

#endif
