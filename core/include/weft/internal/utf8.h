/* SPDX-License-Identifier: MIT */
/* Functions for single characters of UTF-8, by RFC 3629 (Unicode 15, table 3-7). wf_utf8_check of <weft/internal/text.h> checks whole
 * texts. */
#ifndef WEFT_INTERNAL_UTF8_H
#define WEFT_INTERNAL_UTF8_H

#include <weft/base.h>

/* Decodes the character at data[0 .. length-1], length > 0: writes its code point and returns its number of bytes (1 to 4). Returns 0 if
 * no valid character starts there. */
int wf_utf8_decode(const char *data, int64_t length, uint32_t *point);
/* Returns the code point at data[at] of well-formed text; *size becomes its number of bytes. */
static inline uint32_t wf_utf8_at(const char *data, int64_t at, int *size)
{
    const unsigned char *p = (const unsigned char *)data + at;
    if (p[0] < 0x80) {
        *size = 1;
        return p[0];
    }
    if (p[0] < 0xE0) {
        *size = 2;
        return (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
    }
    if (p[0] < 0xF0) {
        *size = 3;
        return (p[0] & 0xFu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
    }
    *size = 4;
    return (p[0] & 7u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

/* The number of bytes of the character that ends at data[at - 1]; at > 0. */
static inline int wf_utf8_before(const char *data, int64_t at)
{
    int size = 1;
    while (size < at && size < 4 && (data[at - size] & 0xC0) == 0x80)
        size++;
    return size;
}
/* The number of characters of well-formed text. */
static inline int64_t wf_utf8_count(const char *data, int64_t length)
{
    int64_t count = 0;
    for (int64_t i = 0; i < length; i++)
        count += (data[i] & 0xC0) != 0x80;
    return count;
}
/* Writes the character and returns its number of bytes (1 to 4). The code point must be valid. */
int wf_utf8_encode(uint32_t point, char *out);
/* The reason, in words, that no valid character starts at data[0]: "an overlong form", "a surrogate", ... */
const char *wf_utf8_fault(const char *data, int64_t length);
/* Whether a message can show the character as it is. False for a control or format character, a combining mark, a line separator, a
 * private code point, a surrogate, and a code point that ends in FFFE or FFFF, which Unicode never makes a character. */
bool wf_utf8_printable(uint32_t point);
/* Writes the name of a character, "U+00E9 'é'" or "U+000A", and returns text. */
enum { WF_UTF8_NAME = 24 };
char *wf_utf8_name(uint32_t point, char *text, size_t size);

#endif
