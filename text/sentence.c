/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/sentence.h>
#include <weft/internal/utf8.h>

#include "tokenizer/internal.h"
#include "tokenizer/unicode.h"

/* The bytes need not be UTF-8: what is not ends the white space. */
static int64_t skip_space(const char *text, int64_t from, int64_t to)
{
    while (from < to) {
        uint32_t c;
        int size = wf_utf8_decode(text + from, to - from, &c);
        if (!size || !(unicode_class(c) & CHAR_SPACE))
            break;
        from += size;
    }
    return from;
}

static int64_t skip_space_back(const char *text, int64_t from, int64_t to)
{
    while (from < to) {
        uint32_t c;
        int64_t at = to - 1;
        while (at > from && to - at < 4 && (text[at] & 0xC0) == 0x80)
            at--;
        if (wf_utf8_decode(text + at, to - at, &c) != to - at || !(unicode_class(c) & CHAR_SPACE))
            break;
        to = at;
    }
    return to;
}

int64_t wf_line_at(const char *text, int64_t bytes, int64_t begin, int64_t *from, int64_t *to)
{
    const char *newline = memchr(text + begin, '\n', (size_t)(bytes - begin));
    int64_t end = newline ? newline - text : bytes;
    *from = skip_space(text, begin, end);
    *to = skip_space_back(text, *from, end);
    return newline ? end + 1 : end;
}

wf_status wf_line_encode(const wf_tokenizer *tokenizer, const char *path, const char *text, int64_t line, int64_t begin, int64_t from,
                         int64_t to, const struct wf_encode_options *options, struct wf_tokens *out, wf_error *error)
{
    struct wf_encode_fault fault = {0};
    wf_status status = wf_tokenizer_encode_placed(tokenizer, text + from, to - from, options, out, &fault);
    if (status == WF_ERR_MEMORY)
        return wf_error_set(error, status, "%s:%" PRId64 ": no memory for the tokens of %" PRId64 " bytes", path, line + 1, to - from);
    if (status == WF_OK)
        return WF_OK;
    char place[1024];
    snprintf(place, sizeof place, "%s:%" PRId64 ":%" PRId64, path, line + 1, from + fault.offset - (line ? begin : 0) + 1);
    return wf_tokenizer_fault(tokenizer, text + from, to - from, &fault, place, error);
}
