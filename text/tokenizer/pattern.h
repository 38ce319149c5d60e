/* SPDX-License-Identifier: MIT */
/* The pattern of Split and Replace: a string, or a regular expression in Oniguruma's dialect, which `tokenizers` runs, by PCRE2. */
#ifndef WEFT_TEXT_TOKENIZER_PATTERN_H
#define WEFT_TEXT_TOKENIZER_PATTERN_H

#include "internal.h"
#include "scratch.h"

/* Every character is a match. Oniguruma, which `tokenizers` runs, knows no (?s). */
#define EVERY_CHARACTER "[\\s\\S]"

struct pattern {
    struct pattern *next;
    struct text text; /* as in the file */
    bool regex;
    void *code; /* pcre2_code; NULL for a string */
    bool every; /* EVERY_CHARACTER */
};

/* regex.c: appends to *out the pattern that means the same to PCRE2 with UTF, UCP and MULTILINE: the dialects agree on most, but \w, \s,
 * \h, \b and scripts are other sets. WF_ERR_FORMAT leaves in *problem what has no translation; WF_ERR_MEMORY. */
wf_status regex_translate(const char *text, int64_t length, struct wf_string *out, const char **problem) WF_CHECKED;

/* All matches in data[begin .. end-1], as if that were the whole text, in order, into s->matches. WF_ERR_MEMORY, or WF_ERR_FORMAT when
 * matching took too long: s->fault says where. */
wf_status pattern_find(const struct pattern *pattern, struct scratch *s, const char *data, int64_t begin, int64_t end);
void pattern_free(struct pattern *pattern);
void pattern_free_match(struct scratch *s);

#endif
