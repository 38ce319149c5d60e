/* SPDX-License-Identifier: MIT */
/* Detokenisation: restores ordinary text from the output of models whose tokens are words. */
#ifndef WEFT_DETOKENIZE_H
#define WEFT_DETOKENIZE_H

#include <weft/tokenizer.h>

WF_BEGIN_DECLS

/* Detokenises a line of tokens that are separated by white space, and appends the text to *out. The rules are those of Moses'
 * detokenizer.perl:
 *
 * - Escapes of Moses' tokenizer (&quot; &amp; &#91; ...) and its hyphens ( @-@ ) are restored.
 * - , . ? ! : ; % \ and closing brackets are joined to the word before; currency signs, opening brackets and inverted ? and ! to the word
 *   after.
 * - Quotes open and close in turn: the first is joined to the word after it, the second to the word before it, and so on.
 * - Spaces between Chinese or Japanese words are removed.
 * - With `language` "en" these words are joined to the word before: suffixes such as 's and 're; n't, which other tokenizers than Moses'
 *   split off ("do n't"); and the single ' of "the boys ' room". For other languages, such as "de", and for NULL only the rules above are
 *   used.
 *
 * WF_ERR_FORMAT: the text is not UTF-8 (the message has the position of the byte, from 1). WF_ERR_MEMORY. On an error *out is unchanged. */
WF_API wf_status wf_detokenize(const char *text, int64_t length, const char *language, struct wf_string *out, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
