/* SPDX-License-Identifier: MIT */
/* The tree of n-grams (grams.h), stored as an array with a hash table from parent and symbol to the n-gram. */
#include <string.h>

#include <weft/internal/grow.h>
#include <weft/memory.h>

#include "grams.h"

void grams_free(struct grams *g)
{
    wf_free(g->gram);
    wf_free(g->slot);
    *g = (struct grams){0};
}

/* Raises the stamp, because entries with an older stamp count as empty. The table itself is written only when the stamp overflows. */
void grams_clear(struct grams *g)
{
    g->count = 0;
    if (++g->stamp == 0) {
        if (g->slots)
            memset(g->slot, 0, (size_t)g->slots * sizeof *g->slot);
        g->stamp = 1;
    }
}

static int64_t place(const struct grams *g, uint32_t parent, uint32_t symbol)
{
    uint64_t h = ((uint64_t)parent << 32 | symbol) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
    h *= 0xBF58476D1CE4E5B9u;
    return (int64_t)((h ^ h >> 32) & (uint64_t)(g->slots - 1));
}

/* The entry of an n-gram, or the empty entry where it must be inserted. */
static struct gram_slot *slot_of(const struct grams *g, uint32_t parent, uint32_t symbol)
{
    for (int64_t i = place(g, parent, symbol);; i = (i + 1) & (g->slots - 1)) {
        struct gram_slot *slot = &g->slot[i];
        if (slot->stamp != g->stamp || (g->gram[slot->index].parent == parent && g->gram[slot->index].symbol == symbol))
            return slot;
    }
}

uint32_t grams_find(const struct grams *g, uint32_t parent, uint32_t symbol)
{
    if (g->count == 0 || parent == NO_GRAM)
        return NO_GRAM;
    const struct gram_slot *slot = slot_of(g, parent, symbol);
    return slot->stamp == g->stamp ? slot->index : NO_GRAM;
}

/* Makes room for one more n-gram. `capacity` is a power of two, and `slots` is twice the capacity. */
static bool grow(struct grams *g)
{
    if (g->count >= GRAM_BYTES / 2 || !wf_grow(&g->gram, &g->capacity, g->count + 1, sizeof *g->gram))
        return false;
    if (g->slots == 2 * g->capacity)
        return true;
    struct gram_slot *slot = wf_alloc_zero((size_t)(2 * g->capacity), sizeof *slot);
    if (!slot)
        return false;
    wf_free(g->slot);
    g->slot = slot;
    g->slots = 2 * g->capacity;
    g->stamp = 1;
    for (int64_t i = 0; i < g->count; i++)
        *slot_of(g, g->gram[i].parent, g->gram[i].symbol) = (struct gram_slot){g->stamp, (uint32_t)i};
    return true;
}

uint32_t grams_add(struct grams *g, uint32_t parent, uint32_t symbol)
{
    uint32_t found = grams_find(g, parent, symbol);
    if (found != NO_GRAM)
        return found;
    if ((g->count == g->capacity || g->slots < 2 * g->capacity) && !grow(g))
        return NO_GRAM;
    g->gram[g->count] = (struct gram){.parent = parent, .symbol = symbol};
    *slot_of(g, parent, symbol) = (struct gram_slot){g->stamp, (uint32_t)g->count};
    return (uint32_t)g->count++;
}

/* Packs the first bytes of a word, three or as many as there are, into a symbol, with the number of these bytes. */
static uint32_t bite(const char *word, int64_t length)
{
    const unsigned char *p = (const unsigned char *)word;
    if (length >= 3)
        return 3u << 24 | (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
    return length == 2 ? 2u << 24 | (uint32_t)p[0] << 8 | p[1] : 1u << 24 | p[0];
}

/* --- sequences ------------------------------------------------------------------------------------------------------- */

bool symbols_add(struct symbols *s, uint32_t symbol)
{
    if (!wf_grow(&s->symbol, &s->capacity, s->count + 1, sizeof *s->symbol))
        return false;
    s->symbol[s->count++] = symbol;
    return true;
}

bool symbols_add_word(struct symbols *s, struct grams *g, const char *word, int64_t length, bool make)
{
    uint32_t node = GRAM_BYTES;
    for (; length > 0 && node != NO_GRAM; word += 3, length -= 3)
        node = make ? grams_add(g, node, bite(word, length)) : grams_find(g, node, bite(word, length));
    return !(make && node == NO_GRAM) && symbols_add(s, node);
}

void symbols_free(struct symbols *s)
{
    wf_free(s->symbol);
    *s = (struct symbols){0};
}

bool grams_count(struct grams *g, uint32_t root, const struct symbols *s, int order)
{
    for (int64_t i = 0; i < s->count; i++) {
        uint32_t node = root;
        for (int n = 0; n < order && i + n < s->count; n++) {
            if ((node = grams_add(g, node, s->symbol[i + n])) == NO_GRAM)
                return false;
            g->gram[node].order = n + 1;
            g->gram[node].count++;
        }
    }
    return true;
}

void grams_match(struct grams *g, uint32_t root, const struct symbols *s, int order, uint32_t reference, int64_t *matches)
{
    for (int64_t i = 0; i < s->count; i++) {
        uint32_t node = root;
        for (int n = 0; n < order && i + n < s->count; n++) {
            if (s->symbol[i + n] == NO_GRAM || (node = grams_find(g, node, s->symbol[i + n])) == NO_GRAM)
                break; /* the hypothesis lacks this n-gram, so it also lacks all longer n-grams that begin with it */
            struct gram *gram = &g->gram[node];
            if (gram->reference != reference)
                gram->seen = 0;
            gram->reference = reference;
            gram->seen++;
            if (gram->seen > gram->most)
                gram->most = gram->seen;
            matches[n] += gram->seen <= gram->count;
        }
    }
}
