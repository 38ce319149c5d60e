/* SPDX-License-Identifier: MIT */
/* A set of pieces: a hash table that finds the id of a piece, and a faster table for pieces of one character. */
#include <string.h>

#include "vocab.h"
#include <weft/internal/grow.h>
#include <weft/internal/hash.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

static struct vocab_slot *find(const struct vocab *v, const char *piece, int64_t length, uint32_t *hash)
{
    *hash = (uint32_t)wf_hash(piece, length, v->key);
    for (uint64_t at = *hash;; at++) {
        struct vocab_slot *slot = v->slot + (at & (uint64_t)(v->slots - 1));
        if (slot->next == 0)
            return slot;
        if (slot->hash == *hash) {
            int64_t other;
            const char *bytes = vocab_piece(v, (int32_t)slot->next - 1, &other);
            if (other == length && !memcmp(bytes, piece, (size_t)length))
                return slot;
        }
    }
}

static bool grow_slots(struct vocab *v)
{
    int64_t slots = v->slots ? 2 * v->slots : 64;
    struct vocab_slot *slot = slots > (int64_t)1 << 32 ? NULL : wf_alloc_zero((size_t)slots, sizeof *slot);
    if (!slot)
        return false;
    for (int64_t i = 0; i < v->slots; i++) {
        uint64_t at = v->slot[i].hash;
        while (v->slot[i].next && slot[at & (uint64_t)(slots - 1)].next)
            at++;
        if (v->slot[i].next)
            slot[at & (uint64_t)(slots - 1)] = v->slot[i];
    }
    if (!v->slots)
        v->key = wf_hash_key();
    wf_free(v->slot);
    v->slot = slot;
    v->slots = slots;
    return true;
}

int32_t vocab_add(struct vocab *v, const char *piece, int64_t length)
{
    if (v->count >= v->slots / 2 && !grow_slots(v))
        return -1;
    uint32_t hash;
    struct vocab_slot *slot = find(v, piece, length, &hash);
    if (slot->next != 0)
        return (int32_t)slot->next - 1;
    if (v->count == INT32_MAX - 1 || !wf_grow(&v->start, &v->start_room, v->count + 2, sizeof *v->start))
        return -1;
    int64_t begin = v->count ? v->start[v->count] : (v->start[0] = 0);
    if (length > INT64_MAX / 2 - begin || !wf_grow(&v->bytes, &v->bytes_room, begin + length + 1, 1))
        return -1;
    memcpy(v->bytes + begin, piece, (size_t)length);
    v->bytes[begin + length] = 0;
    v->start[v->count + 1] = begin + length + 1;
    *slot = (struct vocab_slot){hash, (uint32_t)++v->count};
    return (int32_t)v->count - 1;
}

int32_t vocab_find(const struct vocab *v, const char *piece, int64_t length)
{
    uint32_t hash;
    return v->slot ? (int32_t)find(v, piece, length, &hash)->next - 1 : -1;
}

void vocab_free(struct vocab *v)
{
    wf_free(v->bytes);
    wf_free(v->start);
    wf_free(v->slot);
    *v = (struct vocab){0};
}

bool point_map_build(struct point_map *map, const struct vocab *vocab, int64_t pieces)
{
    int64_t pages = 1;
    memset(map->page, 0, sizeof map->page);
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t id = 0; id < pieces; id++) {
            int64_t length;
            uint32_t point;
            const char *piece = vocab_piece(vocab, id, &length);
            if (length == 0 || length > 4 || wf_utf8_decode(piece, length, &point) != length)
                continue;
            uint16_t *page = map->page + point / POINT_PAGE;
            if (pass == 1)
                map->id[*page * POINT_PAGE + point % POINT_PAGE] = id;
            else if (*page == 0)
                *page = (uint16_t)pages++;
        }
        if (pass == 0) {
            map->id = wf_alloc((size_t)(pages * POINT_PAGE) * sizeof *map->id);
            if (!map->id)
                return false;
            memset(map->id, -1, (size_t)(pages * POINT_PAGE) * sizeof *map->id);
        }
    }
    return true;
}

void point_map_free(struct point_map *map)
{
    wf_free(map->id);
    map->id = NULL;
}
