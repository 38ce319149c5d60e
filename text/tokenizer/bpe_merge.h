/* SPDX-License-Identifier: MIT */
/* The merges of byte-pair encoding in a word, or in the front of one. */
#ifndef WEFT_TEXT_TOKENIZER_BPE_MERGE_H
#define WEFT_TEXT_TOKENIZER_BPE_MERGE_H

#include "internal.h"
#include "scratch.h"

struct symbol {
    int32_t id, previous, next; /* the neighbours' places, -1 at the ends; id -1: it was merged away */
    int32_t rank;               /* of the pair with the next one, in the short way */
};

/* The slot of a pair is looked for from here on. The factor is random, so that no file can be made whose pairs collide. */
static inline uint64_t merge_slot_of(const struct model *m, int32_t left, int32_t right)
{
    return (((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * m->slot_key) >> m->slot_shift;
}

/* Merges the pieces s->symbol[0 .. *count-1] of a whole word. False without memory. */
bool merge_word(const struct model *m, struct scratch *s, int64_t *count);

/* The same when further pieces of the word follow. Afterwards the first *count of s->symbol are final: no continuation changes them. They
 * are made of the first *settled of the given pieces. Both may be 0. False without memory. */
bool merge_front(const struct model *m, struct scratch *s, int64_t *count, int64_t *settled);

#endif
