/* SPDX-License-Identifier: MIT */
/* Functions for text in files and messages: checks of UTF-8, quotes, and numbers that do not depend on the locale. */
#ifndef WEFT_INTERNAL_TEXT_H
#define WEFT_INTERNAL_TEXT_H

#include <weft/base.h>

/* The offset of the first byte that does not belong to well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms, no points above
 * U+10FFFF), or -1 if all bytes do. A character that is incomplete at the end is reported at its first byte. */
int64_t wf_utf8_check(const char *text, int64_t bytes);

/* Writes `text` between double quotes for a message. Control characters, quotes and bytes that are not UTF-8 become \xNN. Text that does
 * not fit is cut after a whole character and ends with "...". Returns out. */
enum { WF_QUOTE_SIZE = 160 };
char *wf_text_quote(const char *text, char out[WF_QUOTE_SIZE]);

/* Writes the shortest decimal that reads back as the same double, in the same form in every locale. It always has a point or an
 * exponent: "0.1", "1e-05", "3.0". The value must be finite. Returns out. */
enum { WF_NUMBER_SIZE = 32 };
char *wf_text_double(double value, char out[WF_NUMBER_SIZE]);

/* Writes the number for people, with commas: "28,988". The text is the same in every locale. Returns out. */
char *wf_text_count(int64_t count, char out[WF_NUMBER_SIZE]);

/* Writes a number of bytes for people, with three digits: "45.0 KiB", "513 MiB", "1.21 GiB". Returns out. */
char *wf_text_bytes(int64_t bytes, char out[WF_NUMBER_SIZE]);

/* Reads all of `text` as a finite number in C's notation, in any locale. Returns false if it is not such a number. */
bool wf_text_to_double(const char *text, double *value);

/* Reads all of `text` as a time in whole seconds: "90", "1:30", "3:55:00" or "1-03:55:00". Each number after the first has two digits
 * and is at most 59; the hours after days are at most 23. Returns false for any other text, and for more than 10,000 days. */
bool wf_text_to_seconds(const char *text, int64_t *seconds);
/* Writes the seconds, at least 0 and rounded up, as "1:30", "3:55:00" or "1-03:55:00". Returns out. */
char *wf_text_seconds(double seconds, char out[WF_NUMBER_SIZE]);

/* The candidate that is nearest to `text` by edit distance, for "did you mean ...?"; NULL if no candidate is near. */
const char *wf_nearest(const char *text, const char *const *candidates, int count);

#endif
