/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "vocab.h"
#include <weft/internal/hash.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

bool vocab_reserve(struct vocab *v, int64_t pieces, int64_t bytes)
{
    uint64_t slots = 16;
    while (slots < 2 * (uint64_t)pieces)
        slots *= 2;
    *v = (struct vocab){.pieces_room = pieces, .bytes_room = bytes + pieces, .mask = slots - 1};
    v->bytes = wf_alloc((size_t)v->bytes_room + 1);
    v->start = wf_alloc_zero((size_t)pieces + 1, sizeof *v->start);
    v->slot = wf_alloc_zero((size_t)slots, sizeof *v->slot);
    if (v->bytes && v->start && v->slot)
        return true;
    vocab_free(v);
    return false;
}

static struct vocab_slot *find(const struct vocab *v, const char *piece, int64_t length, uint32_t *hash)
{
    *hash = (uint32_t)wf_hash(piece, length, 0);
    for (uint64_t at = *hash & v->mask;; at = (at + 1) & v->mask) {
        struct vocab_slot *slot = v->slot + at;
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

bool vocab_add(struct vocab *v, const char *piece, int64_t length)
{
    uint32_t hash;
    struct vocab_slot *slot = find(v, piece, length, &hash);
    if (slot->next != 0)
        return false;
    memcpy(v->bytes + v->start[v->count], piece, (size_t)length);
    v->bytes[v->start[v->count] + length] = 0;
    v->start[v->count + 1] = v->start[v->count] + length + 1;
    *slot = (struct vocab_slot){hash, (uint32_t)++v->count};
    return true;
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
