/* SPDX-License-Identifier: MIT */
/* Exact counts of n-grams, for BLEU and chrF. The n-grams form a tree: "a b c" is a child of "a b", for the symbol c. The tree holds the
 * n-grams of a hypothesis. The n-grams of references are only looked up, so the size of the tree depends on the hypothesis alone. */
#ifndef WEFT_DATA_SCORE_GRAMS_H
#define WEFT_DATA_SCORE_GRAMS_H

#include <weft/base.h>

struct gram {
    uint32_t parent;    /* index of the n-gram without its last symbol, or the root of a tree */
    uint32_t symbol;    /* the last symbol */
    uint32_t reference; /* number of the reference to which `seen` belongs */
    int32_t order;      /* number of symbols; 0 for an n-gram below GRAM_BYTES, which is a part of a word */
    int64_t count;      /* occurrences in the hypothesis */
    int64_t seen;       /* occurrences in the reference with the number `reference` */
    int64_t most;       /* maximum of `seen` over the references */
};
/* An entry of the hash table from (parent, symbol) to an n-gram. */
struct gram_slot {
    uint32_t stamp; /* the entry is empty if this is not the stamp of struct grams */
    uint32_t index; /* index of the n-gram */
};
struct grams {
    struct gram *gram;
    struct gram_slot *slot;
    int64_t count;    /* number of n-grams */
    int64_t capacity; /* number of n-grams that fit into `gram` */
    int64_t slots;    /* number of entries in `slot`, a power of two */
    uint32_t stamp;
};

/* Values of `parent` that stand for the roots of three trees, which can all be in one struct grams. NO_GRAM means that there is no n-gram,
 * and never has children. */
enum { GRAM_BYTES = 0xFFFFFFF0u, GRAM_ROOT = 0xFFFFFFF1u, GRAM_WORDS = 0xFFFFFFF2u, NO_GRAM = 0xFFFFFFFFu };

void grams_free(struct grams *g);
/* Removes all n-grams, but keeps the memory. */
void grams_clear(struct grams *g);
/* The index of an n-gram; NO_GRAM if the tree does not contain it. */
uint32_t grams_find(const struct grams *g, uint32_t parent, uint32_t symbol);
/* The index of an n-gram, which is added if the tree does not contain it; NO_GRAM without memory. */
uint32_t grams_add(struct grams *g, uint32_t parent, uint32_t symbol);

/* A sequence of symbols, which are code points of characters or numbers of words. */
struct symbols {
    uint32_t *symbol;
    int64_t count, capacity;
};
bool symbols_add(struct symbols *s, uint32_t symbol);
/* Appends the number of a word to `s`. The tree below GRAM_BYTES holds the bytes of all words, up to three in a symbol, and the number
 * of a word is the index of the n-gram in this tree that consists of all its bytes. With `make`, a word that is not in the tree is
 * added; without `make`, the number of such a word is NO_GRAM. False without memory. */
bool symbols_add_word(struct symbols *s, struct grams *g, const char *word, int64_t length, bool make);
void symbols_free(struct symbols *s);

/* Adds below `root` all n-grams of 1 to `order` symbols of the hypothesis, and counts them in `count`. False without memory. */
bool grams_count(struct grams *g, uint32_t root, const struct symbols *s, int order);
/* Looks up the n-grams of a reference and counts them in `seen` and `most`. Adds to matches[n-1] the number of n-grams of order n that
 * hypothesis and reference share. `reference` is the number of the reference, from 1. */
void grams_match(struct grams *g, uint32_t root, const struct symbols *s, int order, uint32_t reference, int64_t *matches);

#endif
