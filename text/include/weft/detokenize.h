/* SPDX-License-Identifier: MIT */
/* From tokens back to text as people write it, for models whose tokens are words. */
#ifndef WEFT_DETOKENIZE_H
#define WEFT_DETOKENIZE_H

#include <weft/tokenizer.h>

WF_BEGIN_DECLS

/* Appends the text of a line of tokens with white space between them to *out, by the rules of Moses' detokenizer.perl: what Moses'
 * tokenizer escaped (&quot; &amp; &#91; ...) and joined ( @-@ ) is restored; , . ? ! : ; % and closing brackets go to the word before,
 * currency signs and opening brackets to the word after; quotes by turns to the one and the other; Chinese and Japanese words stand
 * together. With `language` "en" 's, 're and the like, the n't of other tokenizers, and the bare ' of "the boys ' room" join the word
 * before too; other languages, such as "de", and NULL have the common rules alone.
 * On an error *out keeps what it had: WF_ERR_FORMAT where the text is not UTF-8 (byte, from 1), WF_ERR_MEMORY. */
WF_API wf_status wf_detokenize(const char *text, int64_t length, const char *language, struct wf_string *out, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
