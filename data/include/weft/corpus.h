/* SPDX-License-Identifier: MIT */
/* A language model's corpus: the ids of a training and of a validation text. */
#ifndef WEFT_CORPUS_H
#define WEFT_CORPUS_H

#include <weft/text.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

struct wf_corpus {
    struct wf_tokens train, valid;
    int64_t train_characters, valid_characters; /* code points: for loss per character */
};

/* Encodes both texts. Without a validation text (NULL) the last tenth of `train` is held out: the training part is its
 * first floor(0.9 n) code points, cut before encoding, so that no token spans both. For tinyshakespeare: 1,003,854 of
 * 1,115,394. Each part must have at least context + 1 tokens (`context` inputs and, one further, their targets); if one has not,
 * the error gives both lengths and what to do (WF_ERR_ARGUMENT). Unknown characters are placed as
 * file:line:byte. On an error *out is empty. Free with wf_corpus_free. */
WF_API wf_status wf_corpus_build(const wf_tokenizer *tokenizer, const struct wf_text *train, const struct wf_text *valid, int64_t context,
                                 struct wf_corpus *out, wf_error *error) WF_CHECKED;
WF_API void wf_corpus_free(struct wf_corpus *corpus); /* leaves it empty */

/* Appends the ids of bytes begin .. end-1 of a text, which must be whole characters; unknown characters are placed as
 * file:line:byte. The tokenizer's truncation and padding don't count. For evaluating a file, and for corpora of other forms. */
WF_API wf_status wf_text_encode(const struct wf_text *text, int64_t begin, int64_t end, const wf_tokenizer *tokenizer,
                                struct wf_tokens *out, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
