/* SPDX-License-Identifier: MIT */
/* Detokenisation: restores ordinary text from the output of models with word tokens. */
#ifndef WEFT_DETOKENIZE_H
#define WEFT_DETOKENIZE_H

#include <weft/tokenizer.h>

WF_BEGIN_DECLS

/* Detokenises a line of tokens separated by white space, by the rules of Moses' detokenizer.perl, and appends the text to *out. Escapes of
 * Moses' tokenizer (&quot; &amp; &#91; ...) and its hyphens ( @-@ ) are restored. , . ? ! : ; % and closing brackets are attached to the
 * word before, currency signs and opening brackets to the word after, quotes alternately to the word after and the word before; spaces
 * between Chinese or Japanese words are removed. With `language` "en" the suffixes 's, 're and similar, n't as written by other
 * tokenizers, and the single ' of "the boys ' room" are attached to the word before. Other languages, such as "de", and NULL use the
 * common rules only. On an error *out is unchanged: WF_ERR_FORMAT for text that is not UTF-8 (with the byte, from 1), WF_ERR_MEMORY. */
WF_API wf_status wf_detokenize(const char *text, int64_t length, const char *language, struct wf_string *out, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
