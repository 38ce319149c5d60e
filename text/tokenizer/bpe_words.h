/* SPDX-License-Identifier: MIT */
/* The distinct words of a text as pieces of a vocabulary, for the training of byte-pair encodings. */
#ifndef WEFT_TEXT_TOKENIZER_BPE_WORDS_H
#define WEFT_TEXT_TOKENIZER_BPE_WORDS_H

#include "word_counts.h"

struct bpe_words {
    int64_t count;
    int32_t *symbol; /* of all words, end to end */
    int64_t *start;  /* [count] */
    int32_t *length; /* [count], in symbols */
    int64_t *times;  /* [count], how often the text holds the word */
};

/* Adds the characters of all words to the vocabulary, by code point, with those of all bytes where `bytes` is set; words of one
 * character are left out. */
wf_status bpe_words_of(struct bpe_words *out, const struct word_counts *words, bool bytes, struct vocab *pieces,
                       wf_error *error) WF_CHECKED;
void bpe_words_free(struct bpe_words *words);

#endif
