/* SPDX-License-Identifier: MIT */
/* Cutting words at matches: what becomes of the matches is one of five behaviours. */
#ifndef WEFT_DATA_TOKENIZER_SPLIT_H
#define WEFT_DATA_TOKENIZER_SPLIT_H

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

#endif
