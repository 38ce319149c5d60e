/* SPDX-License-Identifier: MIT */
/* A set of distinct pieces of text. Their ids are 0 to count-1, in the order in which they were added. */
#ifndef WEFT_TEXT_TOKENIZER_VOCAB_H
#define WEFT_TEXT_TOKENIZER_VOCAB_H

#include <weft/base.h>

struct vocab {
    char *bytes;    /* a NUL follows each piece */
    int64_t *start; /* [count + 1]: piece i is bytes[start[i] .. start[i+1]-2] */
    int64_t count, start_room, bytes_room;
    struct vocab_slot {
        uint32_t hash;
        uint32_t next; /* id + 1 of the piece; 0: empty slot */
    } * slot;          /* hash table with open addressing */
    int64_t slots;
    uint64_t key; /* random key of the hash, so that nobody can make a file whose pieces collide */
};

/* Adds the piece unless it is there, and returns its id. A new piece has the id that was `count` before the call. -1: there is no memory,
 * or there are already 2^31 - 2 pieces. */
int32_t vocab_add(struct vocab *vocab, const char *piece, int64_t length);
int32_t vocab_find(const struct vocab *vocab, const char *piece, int64_t length); /* the id of the piece; -1: not there */
void vocab_free(struct vocab *vocab);                                             /* frees the memory and leaves *vocab empty */

static inline const char *vocab_piece(const struct vocab *vocab, int32_t id, int64_t *length)
{
    *length = vocab->start[id + 1] - vocab->start[id] - 1;
    return vocab->bytes + vocab->start[id];
}

/* The ids of pieces of one character, in pages of code points. Real vocabularies use few pages. */
enum { POINT_LIMIT = 0x110000, POINT_PAGE = 256 };
struct point_map {
    int32_t *id; /* [pages][POINT_PAGE]: ids, -1 for none; page 0 is shared by all pages without pieces */
    uint16_t page[POINT_LIMIT / POINT_PAGE];
};
bool point_map_build(struct point_map *map, const struct vocab *vocab,
                     int64_t pieces); /* uses the first `pieces` pieces; false: no memory */
void point_map_free(struct point_map *map);

static inline int32_t point_map_find(const struct point_map *map, uint32_t point)
{
    return map->id[map->page[point / POINT_PAGE] * POINT_PAGE + point % POINT_PAGE];
}

#endif
