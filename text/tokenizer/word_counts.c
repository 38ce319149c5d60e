/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "word_counts.h"
#include <weft/internal/hash.h>
#include <weft/memory.h>

enum { FIRST_SLOTS = 1024, FIRST_WORDS = 512, FIRST_BYTES = 8192 };

static bool grow_slots(struct word_counts *c)
{
    int64_t slots = c->slots ? c->slots * 2 : FIRST_SLOTS;
    uint64_t *slot = wf_alloc_zero((size_t)slots, sizeof *slot);
    if (!slot)
        return false;
    for (int64_t i = 0; i < c->count; i++) {
        uint64_t h = wf_hash(c->bytes + c->start[i], c->start[i + 1] - c->start[i], 0);
        uint64_t at = h & (uint64_t)(slots - 1);
        while (slot[at])
            at = (at + 1) & (uint64_t)(slots - 1);
        slot[at] = (h & 0xFFFFFFFF00000000u) | (uint64_t)(i + 1);
    }
    wf_free(c->slot);
    c->slot = slot;
    c->slots = slots;
    return true;
}

/* Room for one more piece; a block that could grow does so before another fails, so that all stays whole. */
static bool reserve(struct word_counts *c, int64_t length)
{
    if (c->count >= INT32_MAX - 1 || length > PTRDIFF_MAX / 4 - c->used)
        return false;
    if (length >= c->room - c->used) { /* a NUL follows the last piece */
        int64_t room = (c->room ? c->room * 2 : FIRST_BYTES) + length;
        char *bytes = wf_realloc(c->bytes, (size_t)room);
        if (!bytes)
            return false;
        c->bytes = bytes;
        c->room = room;
    }
    if (c->count == c->capacity) {
        int64_t capacity = c->capacity ? c->capacity * 2 : FIRST_WORDS;
        int64_t *start = wf_realloc(c->start, (size_t)(capacity + 1) * sizeof *start);
        if (!start)
            return false;
        c->start = start;
        int64_t *times = wf_realloc(c->times, (size_t)capacity * sizeof *times);
        if (!times)
            return false;
        c->times = times;
        c->capacity = capacity;
        c->start[c->count] = c->used;
    }
    return c->slots / 2 > c->count || grow_slots(c);
}

int64_t word_counts_add(struct word_counts *c, const char *piece, int64_t length, int64_t times)
{
    uint64_t h = wf_hash(piece, length, 0), at = 0, mask = (uint64_t)c->slots - 1;
    if (c->slots) {
        for (at = h & mask; c->slot[at]; at = (at + 1) & mask) {
            if ((c->slot[at] ^ h) >> 32)
                continue;
            int64_t i = (int64_t)(c->slot[at] & 0xFFFFFFFFu) - 1;
            if (c->start[i + 1] - c->start[i] == length && memcmp(c->bytes + c->start[i], piece, (size_t)length) == 0) {
                c->times[i] += times;
                return i;
            }
        }
    }
    int64_t slots = c->slots, i = c->count;
    if (!reserve(c, length))
        return -1;
    if (slots != c->slots) {
        mask = (uint64_t)c->slots - 1;
        for (at = h & mask; c->slot[at];)
            at = (at + 1) & mask;
    }
    memcpy(c->bytes + c->used, piece, (size_t)length);
    c->used += length;
    c->bytes[c->used] = 0;
    c->times[i] = times;
    c->start[++c->count] = c->used;
    c->slot[at] = (h & 0xFFFFFFFF00000000u) | (uint64_t)(i + 1);
    return i;
}

void word_counts_free(struct word_counts *c)
{
    wf_free(c->bytes);
    wf_free(c->start);
    wf_free(c->times);
    wf_free(c->slot);
    *c = (struct word_counts){0};
}
