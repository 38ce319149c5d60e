/* SPDX-License-Identifier: MIT */
/* Tokens as people see them, and what a map must be before it is drawn or written. */
#ifndef WEFT_REPORT_LABELS_H
#define WEFT_REPORT_LABELS_H

#include <weft/attention_map.h>

/* The token for people: byte-level pieces as the text that they stand for (a byte that is only part of a character as <E4>), a space as
 * U+2581, line ends and other controls as signs, what is invisible by its number. Valid UTF-8, wf_free; NULL without
 * memory. The id is in the vocabulary. */
char *label_of(const wf_tokenizer *tokenizer, int32_t id) WF_CHECKED;

void labels_free(char **labels, int64_t count); /* NULL is allowed, among them too */

/* The approximate width of the text in a sans-serif font, in sizes of the font; rather too large than too small. */
double label_width(const char *text);

/* The text; if it is wider than `most`, its beginning with "…", cut between visible characters. wf_free; NULL without memory. */
char *label_shorten(const char *text, double most) WF_CHECKED;

/* Appends the text with U+FFFD for each byte that is not UTF-8 and, without `controls`, for each control character: what remains may
 * stand in an SVG and on a terminal. */
void label_clean(struct wf_string *out, const char *text, int64_t length, bool controls);
/* Appends the text with `new` wherever `old` stood. */
void label_replace(struct wf_string *out, const char *text, const char *old, const char *new);

/* Checks a map that the caller may have filled. WF_ERR_ARGUMENT: its kind is none, it has no heads, tokens or weights, or a token has no
 * name (says which); WF_ERR_NUMERIC: a weight that is not finite (says of which head). */
wf_status map_check(const struct wf_attention_map *map, wf_error *error) WF_CHECKED;

#endif
