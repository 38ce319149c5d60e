/* SPDX-License-Identifier: MIT */
/* Data structures for training byte-pair encodings: counts of pairs, a heap of candidates, lists of the words that hold a pair. */
#ifndef WEFT_DATA_TOKENIZER_BPE_PAIRS_H
#define WEFT_DATA_TOKENIZER_BPE_PAIRS_H

#include <weft/error.h>

/* A pair of pieces: left << 32 | right, so that the order of keys is that of pairs. */
static inline uint64_t pair_key(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

struct pair {
    uint64_t key;
    int64_t count; /* how often it stands in the text */
    /* Since round `round`: words in which it came up (the last one was `word`), as a chain in the caller's list. */
    int32_t round, word, head, words;
};
struct pairs {
    struct pair *slot; /* open addressing; a key of all ones is empty */
    int64_t slots, used;
};
/* Room for `more` pairs, so that as many calls of pairs_get cannot fail. */
bool pairs_reserve(struct pairs *pairs, int64_t more);
/* The pair, new with a count of 0 where it is not there; valid until the next reserve. */
struct pair *pairs_get(struct pairs *pairs, uint64_t key);

/* Lists of words, of any length; those of length 1 need no memory. Freed lists are used again. */
struct word_list {
    union {
        int32_t one;
        int32_t *many;
    };
    int32_t count;
};
enum { WORD_LIST_CLASSES = 32 };
struct word_lists {
    void *chunks;  /* all memory, a chain */
    int32_t *next; /* what is left of the newest chunk */
    int64_t left;
    int32_t *spare[WORD_LIST_CLASSES]; /* freed lists of 2^class words, a chain each */
};
/* A list of `count` words, to be filled through word_list_items; false without memory. */
bool word_list_new(struct word_lists *lists, int32_t count, struct word_list *out);
void word_list_free(struct word_lists *lists, struct word_list *list);
static inline int32_t *word_list_items(struct word_list *list)
{
    return list->count == 1 ? &list->one : list->many;
}

/* The heap: highest count first, then the smallest pair. A candidate's count may be out of date; its words are those in which its
 * pair came up in one round. */
struct candidate {
    int64_t count;
    uint64_t key;
    struct word_list words;
};
struct candidates {
    struct candidate *item;
    int64_t count, capacity;
};
bool candidates_push(struct candidates *heap, const struct candidate *candidate);
/* The first one; heap->count must be positive. */
struct candidate candidates_pop(struct candidates *heap);
/* Gives the first one another count, and its new place. */
void candidates_recount(struct candidates *heap, int64_t count);

void pairs_free(struct pairs *pairs);
void word_lists_free(struct word_lists *lists);
void candidates_free(struct candidates *heap);

#endif
