/* SPDX-License-Identifier: MIT */
/* Data structures for training byte-pair encodings: counts of pairs, a heap of candidates for the next merge, and lists of words. */
#ifndef WEFT_TEXT_TOKENIZER_BPE_PAIRS_H
#define WEFT_TEXT_TOKENIZER_BPE_PAIRS_H

#include <weft/error.h>

/* The key of a pair of pieces: left << 32 | right. Keys are ordered by the left id and then by the right id. */
static inline uint64_t pair_key(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

struct pair {
    uint64_t key;
    int64_t count; /* number of occurrences of the pair in the text */
    /* `round` is the latest round in which the pair arose; the other three members describe the words in which it arose in that round.
     * bpe_train.c explains rounds, and keeps these words as a linked list of events. */
    int32_t round;
    int32_t word;  /* the last of these words */
    int32_t head;  /* index of the last event */
    int32_t words; /* number of events */
};
struct pairs {
    struct pair *slot; /* hash table with open addressing; a key of all ones marks an empty slot */
    int64_t slots, used;
};
/* Allocates memory for `more` pairs, so that the next `more` calls of pairs_get cannot fail. */
bool pairs_reserve(struct pairs *pairs, int64_t more);
/* The pair with this key. If there is none, adds it with a count of 0. The pointer is valid until the next pairs_reserve. */
struct pair *pairs_get(struct pairs *pairs, uint64_t key);

/* A list of words, which are given by their indices. One word is stored in the struct itself; several are in memory of their own, which is
 * reused after the list is freed. */
struct word_list {
    union {
        int32_t one;
        int32_t *many;
    };
    int32_t count;
};
enum { WORD_LIST_CLASSES = 32 };
struct word_lists {
    void *chunks;                      /* all chunks of memory, as a linked list */
    int32_t *next;                     /* the unused memory of the newest chunk */
    int64_t left;                      /* number of words that fit into this memory */
    int32_t *spare[WORD_LIST_CLASSES]; /* freed lists of 2^class words, as a linked list for each class */
};
/* Makes a list of `count` words, which the caller fills through word_list_items. False if there is no memory. */
bool word_list_new(struct word_lists *lists, int32_t count, struct word_list *out);
void word_list_free(struct word_lists *lists, struct word_list *list);
static inline int32_t *word_list_items(struct word_list *list)
{
    return list->count == 1 ? &list->one : list->many;
}

/* A candidate for a merge. The heap is ordered by descending count, then by ascending key. `count` is that of an earlier time: merges since
 * then may have lowered the count of the pair. `words` are the words in which the pair arose in one round. */
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
/* Removes and returns the first candidate; heap->count must be positive. */
struct candidate candidates_pop(struct candidates *heap);
/* Changes the count of the first candidate, and moves the candidate to its new position. */
void candidates_recount(struct candidates *heap, int64_t count);

void pairs_free(struct pairs *pairs);
void word_lists_free(struct word_lists *lists);
void candidates_free(struct candidates *heap);

#endif
