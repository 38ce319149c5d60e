/* SPDX-License-Identifier: MIT */
/* Oniguruma's regular expressions as PCRE2's. */
#ifndef WEFT_DATA_TOKENIZER_REGEX_H
#define WEFT_DATA_TOKENIZER_REGEX_H

#include <weft/tokenizer.h>

/* Appends to *out the pattern that means the same to PCRE2 with UTF, UCP and MULTILINE: the dialects agree on most, but \w, \s, \h, \b and
 * scripts are other sets. WF_ERR_FORMAT leaves in *problem what has no translation; WF_ERR_MEMORY. */
wf_status regex_translate(const char *text, int64_t length, struct wf_string *out, const char **problem) WF_CHECKED;

#endif
