/* SPDX-License-Identifier: MIT */
/* Cutting words at matches: what becomes of the matches is one of five behaviours. */
#ifndef WEFT_TEXT_TOKENIZER_SPLIT_H
#define WEFT_TEXT_TOKENIZER_SPLIT_H

#include "scratch.h"

enum behavior { SPLIT_REMOVED, SPLIT_ISOLATED, SPLIT_MERGED_WITH_PREVIOUS, SPLIT_MERGED_WITH_NEXT, SPLIT_CONTIGUOUS };

/* Cuts one word into the list `out`: split_begin, split_put for stretches that cover the word in order, each a match or not, split_end. */
struct splitter {
    struct spans *out;
    enum behavior behavior;
    int64_t first;       /* of the word's spans */
    struct span waiting; /* a match for the stretch after it */
    bool waits, was_match, failed;
};
void split_begin(struct splitter *splitter, struct spans *out, enum behavior behavior);
void split_put(struct splitter *splitter, int64_t begin, int64_t end, bool match);
bool split_end(struct splitter *splitter); /* false without memory */

/* Cuts all words of s->words: cut puts the stretches of s->words.text.data[begin .. end-1]. */
typedef wf_status cut_word(const void *part, struct scratch *s, struct splitter *splitter, int64_t begin, int64_t end);
wf_status split_words(const void *part, struct scratch *s, enum behavior behavior, cut_word *cut);

/* Cuts at every match of a string, length > 0. */
void split_at(struct splitter *splitter, const char *data, int64_t begin, int64_t end, const char *mark, int64_t length);

extern const char *const behavior_names[]; /* for value_name */

#endif
