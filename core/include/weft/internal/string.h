/* SPDX-License-Identifier: MIT */
/* The string builder, with which all code puts text together. If an allocation fails, the string sets `failed` and ignores all later
 * calls, so that the caller checks once, at the end. Each function returns whether all calls so far succeeded. Nothing depends on the
 * locale. */
#ifndef WEFT_INTERNAL_STRING_H
#define WEFT_INTERNAL_STRING_H

#include <string.h>

#include <weft/strings.h>

bool wf_string_reserve(struct wf_string *s, int64_t more); /* allocates space for `more` bytes and a NUL */
bool wf_string_add(struct wf_string *s, const char *data, int64_t length);
static inline bool wf_string_text(struct wf_string *s, const char *text)
{
    return wf_string_add(s, text, (int64_t)strlen(text));
}
static inline bool wf_string_char(struct wf_string *s, char c)
{
    return wf_string_add(s, &c, 1);
}
/* Appends a code point as UTF-8. */
bool wf_string_point(struct wf_string *s, uint32_t point);
/* Appends like printf in the C locale, without a decimal comma. */
bool wf_string_format(struct wf_string *s, const char *format, ...) WF_PRINTF(2, 3);
/* Appends the shortest decimal that reads back as the same double (wf_text_double). */
bool wf_string_double(struct wf_string *s, double value);
/* Appends a JSON string with its quotes, in the shortest form. The text must be UTF-8. */
bool wf_string_json(struct wf_string *s, const char *text, int64_t length);
/* Shortens the string to `length` bytes; its memory stays allocated. */
void wf_string_cut(struct wf_string *s, int64_t length);

#endif
