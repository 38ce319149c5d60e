/* SPDX-License-Identifier: MIT */
/* The pattern of a Split or Replace: a string, or a regular expression in the dialect of Oniguruma, the library of `tokenizers`. PCRE2 does
 * the matching. */
#ifndef WEFT_TEXT_TOKENIZER_PATTERN_H
#define WEFT_TEXT_TOKENIZER_PATTERN_H

#include "internal.h"
#include "scratch.h"

/* The pattern that matches every character, also "\n", which "." leaves out. It is in the files of tokenizers of single characters. */
#define EVERY_CHARACTER "[\\s\\S]"

struct pattern {
    struct pattern *next;
    struct text text; /* the pattern as the file has it */
    bool regex;
    void *code; /* pcre2_code; NULL for a string and for EVERY_CHARACTER */
    bool every; /* the pattern is EVERY_CHARACTER */
};

/* regex.c: translates a pattern of Oniguruma to PCRE2 (with UTF, UCP and MULTILINE), and appends it to *out. The dialects agree on most
 * syntax, but \w, \s, \h, \b and scripts match other sets of characters. WF_ERR_FORMAT: *problem says what has no translation.
 * WF_ERR_MEMORY. */
wf_status regex_translate(const char *text, int64_t length, struct wf_string *out, const char **problem) WF_CHECKED;

/* Sets s->matches to all matches in data[begin .. end-1], in order, as if this range were the whole text. WF_ERR_MEMORY; WF_ERR_CANCELLED;
 * WF_ERR_FORMAT if matching took too long; s->fault is then the offset in `data` at which the search gave up. */
wf_status pattern_find(const struct pattern *pattern, struct scratch *s, const char *data, int64_t begin, int64_t end);
void pattern_free(struct pattern *pattern);
void pattern_free_match(struct scratch *s);

#endif
