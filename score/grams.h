/* SPDX-License-Identifier: MIT */
/* Inside the room: counts of n-grams, exact, as a tree: the n-gram a b c is the child c of a b. The tree holds the n-grams of a
 * hypothesis; those of references are only looked up, so that its size depends on the hypothesis alone. */
#ifndef WEFT_DATA_SCORE_GRAMS_H
#define WEFT_DATA_SCORE_GRAMS_H

#include <weft/base.h>

struct gram {
    uint32_t parent, symbol;
    uint32_t reference; /* what `seen` is of */
    int32_t order;
    int64_t count;      /* in the hypothesis */
    int64_t seen, most; /* in the reference, in any of the references */
};
struct gram_slot {
    uint32_t stamp, index; /* of another stamp: empty */
};
struct grams {
    struct gram *gram;
    struct gram_slot *slot;
    int64_t count, capacity, slots; /* slots: a power of two */
    uint32_t stamp;
};

/* Roots of trees that may be in one table. NO_GRAM as a parent has no children. */
enum { GRAM_BYTES = 0xFFFFFFF0u, GRAM_ROOT = 0xFFFFFFF1u, GRAM_WORDS = 0xFFFFFFF2u, NO_GRAM = 0xFFFFFFFFu };

void grams_free(struct grams *g);
void grams_clear(struct grams *g);                                            /* keeps the memory */
uint32_t grams_find(const struct grams *g, uint32_t parent, uint32_t symbol); /* NO_GRAM: not there */
uint32_t grams_add(struct grams *g, uint32_t parent, uint32_t symbol);        /* finds or makes it; NO_GRAM: no memory */

/* Sequences of symbols. */
struct symbols {
    uint32_t *symbol;
    int64_t count, capacity;
};
bool symbols_add(struct symbols *s, uint32_t symbol);
/* Adds a word, whose symbol is its end in the tree of bytes below GRAM_BYTES: a new word is made with `make`, else it is NO_GRAM. */
bool symbols_add_word(struct symbols *s, struct grams *g, const char *word, int64_t length, bool make);
void symbols_free(struct symbols *s);

/* Counts all n-grams of 1 to `order` symbols, below `root`, as the hypothesis's; false without memory. */
bool grams_count(struct grams *g, uint32_t root, const struct symbols *s, int order);
/* Looks those of a reference up: seen and most. matches[n-1] grows by the n-grams that both have. References are told apart by their
 * number, from 1. */
void grams_match(struct grams *g, uint32_t root, const struct symbols *s, int order, uint32_t reference, int64_t *matches);

#endif
