/* SPDX-License-Identifier: MIT */
/* Characters of UTF-8 by RFC 3629 (Unicode 15, table 3-7). wf_utf8_check of <weft/internal/text.h> checks whole texts. */
#ifndef WEFT_INTERNAL_UTF8_H
#define WEFT_INTERNAL_UTF8_H

#include <weft/base.h>

/* Decodes the character at data[0 .. length-1]: its bytes (1 to 4) and the code point; 0 when none starts there. length > 0. */
int wf_utf8_decode(const char *data, int64_t length, uint32_t *point);
/* Writes the character and returns its bytes (1 to 4); the code point must be valid. */
int wf_utf8_encode(uint32_t point, char *out);
/* Why no character starts at data[0], in words: "an overlong form", "a surrogate", ... */
const char *wf_utf8_fault(const char *data, int64_t length);
/* Whether a message can show it by itself: not a control, a format character, a combining mark, a line separator, private
 * or no character at all. */
bool wf_utf8_printable(uint32_t point);
/* "U+00E9 'é'" or "U+000A"; returns text. */
enum { WF_UTF8_NAME = 24 };
char *wf_utf8_name(uint32_t point, char *text, size_t size);

#endif
