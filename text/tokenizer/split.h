/* SPDX-License-Identifier: MIT */
/* Dividing words at matches. A behaviour says what happens to the matched text. */
#ifndef WEFT_TEXT_TOKENIZER_SPLIT_H
#define WEFT_TEXT_TOKENIZER_SPLIT_H

#include "internal.h"
#include "scratch.h"

enum behavior { SPLIT_ISOLATED, SPLIT_REMOVED, SPLIT_MERGED_WITH_PREVIOUS, SPLIT_MERGED_WITH_NEXT, SPLIT_CONTIGUOUS };
extern const char *const behavior_names[]; /* names for value_name */

/* Divides one word and appends the resulting words to `out`. A part's cut() may set `behavior` and `invert`, and then calls split_match for
 * each match, in order. */
struct splitter {
    struct spans *out;
    int behavior;
    bool invert;         /* the text between the matches counts as matches, and the matches as text between */
    int64_t first;       /* index in `out` of the first span of this word */
    int64_t at;          /* the text before this offset is done; the text after the last match is added after cut() */
    struct span waiting; /* SPLIT_MERGED_WITH_NEXT: a match that will begin the next span */
    bool waits;          /* `waiting` is set */
    bool was_match;      /* the last range was a match */
    bool failed;         /* there was no memory */
};
void split_match(struct splitter *splitter, int64_t begin, int64_t end);
/* Calls split_match for every occurrence of `mark`, whose length must be above 0. */
void split_at(struct splitter *splitter, const char *data, int64_t begin, int64_t end, const struct text *mark);
/* Rewrites all words of s->words: rewrite() appends the new text of text[word.begin .. word.end-1] to `out`. Both functions return false if
 * an append fails (see flow_put). */
typedef bool rewrite_word(const void *part, struct flow *out, const struct view *text, struct span word);
bool split_rewrite(const void *part, struct scratch *s, rewrite_word *rewrite);

/* Divides all words of s->words by the part's cut(). */
wf_status split_words(const struct part *part, struct scratch *s);

#endif
