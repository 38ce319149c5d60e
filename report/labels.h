/* SPDX-License-Identifier: MIT */
/* Labels of tokens for people, clean text for pictures, and the check of an attention map. */
#ifndef WEFT_REPORT_LABELS_H
#define WEFT_REPORT_LABELS_H

#include <weft/attention_map.h>

/* The label of a token, as valid UTF-8. Bytes of a byte-level tokenizer are decoded; a byte that is only part of a character is shown as
 * <E4>, a space as U+2581, a line end or another control character as a symbol, and an invisible character as <U+200B>. The id must be in
 * the vocabulary. Free the label with wf_free. NULL without memory. */
char *label_of(const wf_tokenizer *tokenizer, int32_t id) WF_CHECKED;

void labels_free(char **labels, int64_t count); /* the array and its elements may be NULL */

/* The approximate width of the text in a sans-serif font, as a multiple of the font's size. It is more often too large than too small. */
double label_width(const char *text);

/* A copy of the text. If the text is wider than `most`, the copy is its beginning, cut between visible characters, and "…". Free it
 * with wf_free. NULL without memory. */
char *label_shorten(const char *text, double most) WF_CHECKED;

/* Appends the text. Bytes that are not UTF-8 become U+FFFD, and so do control characters unless `controls` is set. Without controls the
 * result is safe in an SVG and on a terminal. */
void label_clean(struct wf_string *out, const char *text, int64_t length, bool controls);
/* Appends the text with each `old` replaced by `new`. */
void label_replace(struct wf_string *out, const char *text, const char *old, const char *new);

/* Checks a map, which a program may have filled itself. WF_ERR_ARGUMENT: the kind is invalid, there are no heads, tokens or weights, or a
 * token has no name. WF_ERR_NUMERIC: a weight is not finite. The message names the token or the head. */
wf_status map_check(const struct wf_attention_map *map, wf_error *error) WF_CHECKED;

#endif
