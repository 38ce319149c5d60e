/* SPDX-License-Identifier: MIT */
/* Distinct pieces of text and their ids, 0 to count-1, in the order in which they came. */
#ifndef WEFT_TEXT_TOKENIZER_VOCAB_H
#define WEFT_TEXT_TOKENIZER_VOCAB_H

#include <weft/base.h>

struct vocab {
    char *bytes;    /* a NUL follows each piece */
    int64_t *start; /* [count + 1]; piece i is bytes[start[i] .. start[i+1]-2] */
    int64_t count, start_room, bytes_room;
    struct vocab_slot {
        uint32_t hash, next; /* next: id + 1, 0 for an empty slot */
    } * slot;
    int64_t slots;
    uint64_t key; /* of the hash: random, so that no file can be made whose pieces collide */
};

/* The piece's id, which is new (then id == count before the call) or not. -1 without memory, or with 2^31-1 pieces. */
int32_t vocab_add(struct vocab *vocab, const char *piece, int64_t length);
int32_t vocab_find(const struct vocab *vocab, const char *piece, int64_t length); /* -1: not there */
void vocab_free(struct vocab *vocab);                                             /* leaves it empty */

static inline const char *vocab_piece(const struct vocab *vocab, int32_t id, int64_t *length)
{
    *length = vocab->start[id + 1] - vocab->start[id] - 1;
    return vocab->bytes + vocab->start[id];
}

/* The ids of the pieces that are one character, by pages of code points: real vocabularies touch few of them. */
enum { POINT_LIMIT = 0x110000, POINT_PAGE = 256 };
struct point_map {
    int32_t *id; /* [pages][POINT_PAGE], -1 where there is none; page 0 stands for all that are absent */
    uint16_t page[POINT_LIMIT / POINT_PAGE];
};
bool point_map_build(struct point_map *map, const struct vocab *vocab, int64_t pieces); /* of the first `pieces`; false without memory */
void point_map_free(struct point_map *map);

static inline int32_t point_map_find(const struct point_map *map, uint32_t point)
{
    return map->id[map->page[point / POINT_PAGE] * POINT_PAGE + point % POINT_PAGE];
}

#endif
