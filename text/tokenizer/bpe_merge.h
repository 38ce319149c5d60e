/* SPDX-License-Identifier: MIT */
/* The merges of byte-pair encoding, in a whole word or at the start of a long one. */
#ifndef WEFT_TEXT_TOKENIZER_BPE_MERGE_H
#define WEFT_TEXT_TOKENIZER_BPE_MERGE_H

#include "internal.h"
#include "scratch.h"

struct symbol {
    int32_t id;       /* id of the piece; -1: it was merged into the piece before it */
    int32_t previous; /* index of the left neighbour; -1: none */
    int32_t next;     /* index of the right neighbour; -1: none */
    int32_t rank;     /* rank of the merge with the right neighbour; set only for short words */
};

/* The slot at which the search for a pair begins. The factor slot_key is random, so that nobody can make a file whose pairs collide. */
static inline uint64_t merge_slot_of(const struct model *m, int32_t left, int32_t right)
{
    return (((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * m->slot_key) >> m->slot_shift;
}

/* Merges the pieces s->symbol[0 .. *count-1] of a whole word, and sets *count to the number of resulting pieces. False if there is no
 * memory. */
bool merge_word(const struct model *m, struct scratch *s, int64_t *count);

/* merge_word for a word that continues after these pieces. Afterwards s->symbol[0 .. *count-1] are pieces of the whole word's result,
 * however the word continues. They were made from the first *settled of the given pieces. *count and *settled may become 0. False if
 * there is no memory. */
bool merge_front(const struct model *m, struct scratch *s, int64_t *count, int64_t *settled);

#endif
