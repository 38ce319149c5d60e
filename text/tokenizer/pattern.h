/* SPDX-License-Identifier: MIT */
/* What Split and Replace look for: a string, or a regular expression in Oniguruma's dialect, which `tokenizers` runs, by PCRE2. */
#ifndef WEFT_DATA_TOKENIZER_PATTERN_H
#define WEFT_DATA_TOKENIZER_PATTERN_H

#include "internal.h"
#include "json_write.h"
#include "scratch.h"

struct pattern {
    struct pattern *next;
    const char *text; /* as in the file */
    int64_t length;
    bool regex;
    void *code; /* pcre2_code; NULL for a string */
    bool every; /* [\s\S]: every character is a match */
};

/* Reads {"String": ...} or {"Regex": ...} or, where `plain` allows it, a string. What PCRE2 cannot say the same way is refused. */
wf_status pattern_read(wf_tokenizer *tokenizer, json_t *value, bool plain, const char *where, struct pattern **out, wf_error *error);
/* [\\s\\S]: any character. Oniguruma, which `tokenizers` runs, knows no (?s). */
void pattern_of_characters(struct pattern *out);
void pattern_write(const struct pattern *pattern, struct json_writer *w);
/* All matches in data[begin .. end-1], which stands for a text of its own, in order, into s->matches. WF_ERR_MEMORY, or WF_ERR_FORMAT when
 * matching took too long: s->fault says where. */
wf_status pattern_find(const struct pattern *pattern, struct scratch *s, const char *data, int64_t begin, int64_t end);
void pattern_free(struct pattern *pattern);
void pattern_free_match(struct scratch *s);

#endif
