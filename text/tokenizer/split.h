/* SPDX-License-Identifier: MIT */
/* Cutting words at matches: what becomes of the matches is one of five behaviours. */
#ifndef WEFT_TEXT_TOKENIZER_SPLIT_H
#define WEFT_TEXT_TOKENIZER_SPLIT_H

#include "internal.h"
#include "scratch.h"

enum behavior { SPLIT_ISOLATED, SPLIT_REMOVED, SPLIT_MERGED_WITH_PREVIOUS, SPLIT_MERGED_WITH_NEXT, SPLIT_CONTIGUOUS };
extern const char *const behavior_names[]; /* for value_name */

/* Cuts one word into the list `out`. A part's cut() sets `behavior` and `invert` where it wants others than 0, and puts stretches that
 * cover the word in order. */
struct splitter {
    struct spans *out;
    int behavior;
    bool invert;         /* matches are what stands between the matches */
    int64_t first;       /* of the word's spans */
    int64_t at;          /* text before this is in `out` or was dropped; the rest follows after cut() */
    struct span waiting; /* a match for the stretch after it */
    bool waits, was_match, failed;
};
void split_match(struct splitter *splitter, int64_t begin, int64_t end);
/* A match at every occurrence of a string, length > 0. */
void split_at(struct splitter *splitter, const char *data, int64_t begin, int64_t end, const struct text *mark);
/* Rewrites all words of s->words: rewrite() puts what becomes of text[word.begin .. word.end-1]; false without memory, here too. */
typedef bool rewrite_word(const void *part, struct flow *out, const struct view *text, struct span word);
bool split_rewrite(const void *part, struct scratch *s, rewrite_word *rewrite);

/* Cuts all words of s->words by the part's cut(). */
wf_status split_words(const struct part *part, struct scratch *s);

#endif
