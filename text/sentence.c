/* SPDX-License-Identifier: MIT */
/* Finds the sentences of text files with one sentence per line, and encodes them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/sentence.h>

#include "tokenizer/internal.h"
#include "tokenizer/unicode.h"

int64_t wf_line_at(const char *text, int64_t bytes, int64_t begin, int64_t *from, int64_t *to)
{
    const char *newline = memchr(text + begin, '\n', (size_t)(bytes - begin));
    int64_t end = newline ? newline - text : bytes;
    *from = unicode_skip_space(text, begin, end);
    *to = unicode_skip_space_back(text, *from, end);
    return newline ? end + 1 : end;
}

wf_status wf_line_encode(const wf_tokenizer *tokenizer, const char *path, const char *text, int64_t line, int64_t begin, int64_t from,
                         int64_t to, const struct wf_encode_options *options, struct wf_tokens *out, wf_error *error)
{
    struct wf_encode_fault fault = {0};
    wf_status status = wf_tokenizer_encode_placed(tokenizer, text + from, to - from, options, out, &fault);
    if (status == WF_ERR_MEMORY)
        return wf_error_set(error, status, "%s:%" PRId64 ": no memory for the tokens of %" PRId64 " bytes", path, line + 1, to - from);
    if (status == WF_ERR_CANCELLED)
        return wf_error_set(error, status, "interrupted");
    if (status == WF_OK)
        return WF_OK;
    char place[1024];
    snprintf(place, sizeof place, "%s:%" PRId64 ":%" PRId64, path, line + 1, from + fault.offset - (line ? begin : 0) + 1);
    return wf_tokenizer_fault(tokenizer, text + from, to - from, &fault, place, error);
}

int64_t wf_text_trim_end(const char *text, int64_t length)
{
    return unicode_skip_space_back(text, 0, length);
}
