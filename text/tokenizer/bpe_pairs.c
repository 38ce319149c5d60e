/* SPDX-License-Identifier: MIT */
/* The counts of pairs, the heap of candidates and the lists of words that bpe_train.c uses. */
#include <string.h>

#include "bpe_pairs.h"
#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/memory.h>

static const uint64_t empty = UINT64_MAX;

/* --- counts -------------------------------------------------------------------------------------------------------- */

static uint64_t place_of(const struct pairs *p, uint64_t key)
{
    uint64_t h = key * 0x9E3779B97F4A7C15u;
    return (h ^ h >> 32) & (uint64_t)(p->slots - 1);
}

bool pairs_reserve(struct pairs *p, int64_t more)
{
    if (more < p->slots / 2 - p->used)
        return true;
    struct pairs grown = {.slots = p->slots ? p->slots : 4096, .used = p->used};
    while (more >= grown.slots / 2 - p->used) {
        if (grown.slots > PTRDIFF_MAX / 4 / (int64_t)sizeof *grown.slot)
            return false;
        grown.slots *= 2;
    }
    grown.slot = wf_alloc((size_t)grown.slots * sizeof *grown.slot);
    if (!grown.slot)
        return false;
    for (int64_t i = 0; i < grown.slots; i++)
        grown.slot[i].key = empty;
    for (int64_t i = 0; i < p->slots; i++) {
        if (p->slot[i].key == empty)
            continue;
        uint64_t at = place_of(&grown, p->slot[i].key);
        while (grown.slot[at].key != empty)
            at = (at + 1) & (uint64_t)(grown.slots - 1);
        grown.slot[at] = p->slot[i];
    }
    wf_free(p->slot);
    *p = grown;
    return true;
}

struct pair *pairs_get(struct pairs *p, uint64_t key)
{
    uint64_t at = place_of(p, key);
    while (p->slot[at].key != key) {
        if (p->slot[at].key == empty) {
            p->used++;
            p->slot[at] = (struct pair){.key = key, .round = -1, .word = -1, .head = -1};
            break;
        }
        at = (at + 1) & (uint64_t)(p->slots - 1);
    }
    return &p->slot[at];
}

void pairs_free(struct pairs *p)
{
    wf_free(p->slot);
    *p = (struct pairs){0};
}

/* --- lists --------------------------------------------------------------------------------------------------------- */

enum {
    CHUNK = 1 << 18, /* minimum capacity of a chunk, in units of int32_t */
    HEAD = 16        /* size of the head of a chunk, in units of int32_t; the head holds the pointer to the next chunk */
};

static int class_of(int32_t count)
{
    return 32 - __builtin_clz((unsigned)count - 1);
}

bool word_list_new(struct word_lists *lists, int32_t count, struct word_list *out)
{
    *out = (struct word_list){.count = count};
    if (count < 2)
        return true;
    int class = class_of(count);
    int64_t size = (int64_t)1 << class;
    if (lists->spare[class]) {
        out->many = lists->spare[class];
        memcpy(&lists->spare[class], out->many, sizeof(int32_t *));
        return true;
    }
    if (lists->left < size) {
        int64_t words = WF_MAX(size, CHUNK);
        int32_t *chunk = wf_alloc((size_t)(words + HEAD) * sizeof *chunk);
        if (!chunk)
            return false;
        memcpy(chunk, &lists->chunks, sizeof lists->chunks);
        lists->chunks = chunk;
        lists->next = chunk + HEAD;
        lists->left = words;
    }
    out->many = lists->next;
    lists->next += size;
    lists->left -= size;
    return true;
}

void word_list_free(struct word_lists *lists, struct word_list *list)
{
    if (list->count < 2)
        return;
    int class = class_of(list->count);
    memcpy(list->many, &lists->spare[class], sizeof(int32_t *));
    lists->spare[class] = list->many;
}

void word_lists_free(struct word_lists *lists)
{
    for (void *chunk = lists->chunks, *next; chunk; chunk = next) {
        memcpy(&next, chunk, sizeof next);
        wf_free(chunk);
    }
    *lists = (struct word_lists){0};
}

/* --- the heap ------------------------------------------------------------------------------------------------------ */

static bool before(const struct candidate *a, const struct candidate *b)
{
    return a->count != b->count ? a->count > b->count : a->key < b->key;
}

static void sift_down(struct candidates *h, const struct candidate *moved)
{
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && before(&h->item[child + 1], &h->item[child]))
            child++;
        if (!before(&h->item[child], moved))
            break;
        h->item[at] = h->item[child];
    }
    h->item[at] = *moved;
}

bool candidates_push(struct candidates *h, const struct candidate *candidate)
{
    if (!wf_grow(&h->item, &h->capacity, h->count + 1, sizeof *h->item))
        return false;
    int64_t at = h->count++;
    for (int64_t parent; at > 0 && before(candidate, &h->item[parent = (at - 1) / 2]); at = parent)
        h->item[at] = h->item[parent];
    h->item[at] = *candidate;
    return true;
}

struct candidate candidates_pop(struct candidates *h)
{
    struct candidate first = h->item[0], last = h->item[--h->count];
    if (h->count > 0)
        sift_down(h, &last);
    return first;
}

void candidates_recount(struct candidates *h, int64_t count)
{
    struct candidate first = h->item[0];
    first.count = count;
    sift_down(h, &first);
}

void candidates_free(struct candidates *h)
{
    wf_free(h->item);
    *h = (struct candidates){0};
}
