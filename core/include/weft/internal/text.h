/* SPDX-License-Identifier: MIT */
/* Text for readers of files: UTF-8, names in messages, numbers without a locale. */
#ifndef WEFT_INTERNAL_TEXT_H
#define WEFT_INTERNAL_TEXT_H

#include <weft/base.h>

/* The offset of the first byte that does not belong to well-formed UTF-8 (RFC 3629: no surrogates, nothing overlong, nothing above
 * U+10FFFF), or -1 when all is well. A character cut off at the end is reported at its first byte. */
int64_t wf_utf8_check(const char *text, int64_t bytes);

/* Writes `text` between double quotes for a message: control characters, quotes and bytes that aren't UTF-8 as \xNN, and what
 * does not fit cut at a whole character, as "...". Returns out. */
enum { WF_QUOTE_SIZE = 160 };
char *wf_text_quote(const char *text, char out[WF_QUOTE_SIZE]);

/* The shortest decimal that reads back as the same double ("0.1", "1e-05", "3.0": always with a point or an exponent), the same
 * in every locale. The value must be finite. Returns out. */
enum { WF_NUMBER_SIZE = 32 };
char *wf_text_double(double value, char out[WF_NUMBER_SIZE]);

/* "28,988": for people, the same in every locale. Returns out. */
char *wf_text_count(int64_t count, char out[WF_NUMBER_SIZE]);

/* Reads all of `text` as a finite number in C's notation, whatever the locale; false when it is not one. */
bool wf_text_to_double(const char *text, double *value);

/* Reads all of `text` as a time in whole seconds: "90", "1:30", "3:55:00" or "1-03:55:00", where only the first number may be above 59
 * (23 for hours after days) and the others have two digits; false when it is none of these, or longer than 10,000 days. */
bool wf_text_to_seconds(const char *text, int64_t *seconds);
/* "1:30", "3:55:00", "1-03:55:00": the seconds, at least 0, rounded up. Returns out. */
char *wf_text_seconds(double seconds, char out[WF_NUMBER_SIZE]);

/* The candidate that is nearest to `text` by edit distance, NULL if none is near: for "did you mean ...?". */
const char *wf_nearest(const char *text, const char *const *candidates, int count);

#endif
