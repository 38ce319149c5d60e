/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/lines.h>
#include <weft/internal/text.h>
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

int64_t wf_line_first(const char *text, int64_t bytes)
{
    return bytes >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0;
}

int64_t wf_line_fault(const char *text, int64_t begin, int64_t end)
{
    int64_t bad = wf_utf8_check(text + begin, end - begin);
    const char *nul = memchr(text + begin, 0, (size_t)(bad < 0 ? end - begin : bad));
    return nul ? nul - text : bad < 0 ? -1 : begin + bad;
}

wf_status wf_line_refuse(const char *path, const char *text, int64_t bytes, int64_t line, int64_t begin, int64_t offset, wf_error *error)
{
    if (bytes > 1 && (!memcmp(text, "\xFF\xFE", 2) || !memcmp(text, "\xFE\xFF", 2)))
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s:1:1: this is UTF-16, not UTF-8; convert it, for example with iconv -f utf-16 -t utf-8", path);
    /* In the first line bytes count from the start of the file, a byte order mark too. */
    int64_t column = offset - (line == 0 ? 0 : begin) + 1;
    if (!text[offset])
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s:%" PRId64 ":%" PRId64 ": a NUL byte (offset %" PRId64
                            "): this is not a text file, or it is in UTF-16; convert it to UTF-8",
                            path, line + 1, column, offset);
    return wf_error_set(error, WF_ERR_FORMAT,
                        "%s:%" PRId64 ":%" PRId64 ": not UTF-8: byte 0x%02X (offset %" PRId64 "): %s; convert the file to UTF-8", path,
                        line + 1, column, (unsigned char)text[offset], offset, wf_utf8_fault(text + offset, bytes - offset));
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

int64_t wf_line_ends(const char *text, int64_t bytes)
{
    int64_t count = 0;
    while (bytes > 0) {
        /* In 32 bits: the compiler then counts 16 bytes at once. */
        int64_t piece = bytes < 1 << 14 ? bytes : 1 << 14;
        int32_t sum = 0;
        for (int64_t i = 0; i < piece; i++)
            sum += text[i] == '\n';
        count += sum;
        text += piece;
        bytes -= piece;
    }
    return count;
}
