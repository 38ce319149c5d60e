/* SPDX-License-Identifier: MIT */
/* Byte-pair encoding: of all neighbours in a word that the list of merges holds, the pair that stands first in it (of equal ones the
 * leftmost) becomes one piece, until there is none.
 *
 * A long word is merged in windows (merge_front). A cut between two pieces of the result is exact: no merge crossed it, so each side was
 * merged by itself. Which pieces of a window are pieces of the word's result is found by assuming the worst of the text behind it: as soon
 * as the window's last piece is the left of a merge that could be next, it counts as merged with what follows, and the piece before it is
 * the last. `reach.end` bounds when a merge can be next. Let the level of a word be the highest rank merged in it so far. A merge of rank k
 * below the level needs a part that was made since the level was reached, and such a part was made by a merge whose own `end` is at least
 * the level. So with end[k] = max(k, the ends of all merges that make one of its two parts), merge k happens at levels up to end[k] only,
 * and at those of the window too, which are no higher than the word's. In a list that a trainer wrote, parts come before the merges that
 * use them, and end[k] = k. */
#include <string.h>

#include "bpe_merge.h"
#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/memory.h>

enum {
    NO_MERGE = INT32_MAX,
    SHORT = 40, /* pieces: up to here going over all of them beats a heap */
    PASSES = 64 /* over the merges for reach.end; the lists of known models need fewer than ten */
};

static int32_t rank_of(const struct model *m, int32_t left, int32_t right)
{
    for (uint64_t at = merge_slot_of(m, left, right);; at++) {
        const struct merge_slot *slot = m->slot + (at & m->slot_mask);
        if (slot->rank < 0)
            return NO_MERGE;
        if (slot->left == left && slot->right == right)
            return slot->rank;
    }
}

/* Goes over all pairs for each merge. Returns the number of pieces left. */
static int64_t merge_short(const struct model *m, struct symbol *symbol, int64_t count)
{
    for (int64_t i = 0; i + 1 < count; i++)
        symbol[i].rank = rank_of(m, symbol[i].id, symbol[i + 1].id);
    while (count > 1) {
        int64_t best = 0;
        for (int64_t i = 1; i + 1 < count; i++)
            if (symbol[i].rank < symbol[best].rank)
                best = i;
        if (symbol[best].rank == NO_MERGE)
            break;
        symbol[best].id = m->merge[symbol[best].rank].id;
        count--;
        memmove(symbol + best + 1, symbol + best + 2, (size_t)(count - best - 1) * sizeof *symbol);
        if (best + 1 < count)
            symbol[best].rank = rank_of(m, symbol[best].id, symbol[best + 1].id);
        if (best > 0)
            symbol[best - 1].rank = rank_of(m, symbol[best - 1].id, symbol[best].id);
    }
    return count;
}

/* The heap holds rank << 32 | place. */
static void heap_push(struct scratch *s, int64_t *count, uint64_t entry)
{
    int64_t at = (*count)++;
    for (; at > 0 && entry < s->heap[(at - 1) / 2]; at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = entry;
}

static void heap_sift(uint64_t *heap, int64_t at, int64_t count)
{
    uint64_t entry = heap[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && heap[child + 1] < heap[child];
        if (entry <= heap[child])
            break;
        heap[at] = heap[child];
    }
    heap[at] = entry;
}

static uint64_t heap_pop(struct scratch *s, int64_t *count)
{
    uint64_t first = s->heap[0];
    s->heap[0] = s->heap[--*count];
    if (*count > 0)
        heap_sift(s->heap, 0, *count);
    return first;
}

static void heap_pair(const struct model *m, struct scratch *s, int64_t *count, int32_t place)
{
    const struct symbol *left = s->symbol + place;
    int32_t rank = left->next < 0 ? NO_MERGE : rank_of(m, left->id, s->symbol[left->next].id);
    if (rank != NO_MERGE)
        heap_push(s, count, (uint64_t)rank << 32 | (uint32_t)place);
}

/* --- a word that goes on ------------------------------------------------------------------------------------------- */

/* reach.rank: the merges by their left part. */
static void sort_by_left(const struct model *m, struct reach *r)
{
    memset(r->first, 0, (size_t)(m->size + 1) * sizeof *r->first);
    for (int64_t k = 0; k < m->merges; k++)
        r->first[m->merge[k].left]++;
    for (int64_t id = 1; id <= m->size; id++)
        r->first[id] += r->first[id - 1];
    for (int64_t k = m->merges - 1; k >= 0; k--)
        r->rank[--r->first[m->merge[k].left]] = (int32_t)k;
}

/* reach.end, the least solution of its equations. */
static void find_ends(const struct model *m, struct reach *r, int32_t *latest)
{
    bool changed = true;
    for (int64_t id = 0; id < m->size; id++)
        latest[id] = -1;
    for (int pass = 0; changed && pass < PASSES; pass++) {
        changed = false;
        for (int64_t k = 0; k < m->merges; k++) {
            const struct merge *merge = m->merge + k;
            int32_t end = (int32_t)k;
            end = WF_MAX(latest[merge->left], end);
            end = WF_MAX(latest[merge->right], end);
            changed = changed || pass == 0 || end != r->end[k];
            r->end[k] = end;
            latest[merge->id] = WF_MAX(end, latest[merge->id]);
        }
    }
    for (int64_t k = 0; changed && k < m->merges; k++) /* holds for any list */
        r->end[k] = (int32_t)m->merges;
}

static bool find_reach(const struct model *m, struct reach *r)
{
    if (r->model == m)
        return true;
    int32_t *latest = wf_alloc((size_t)m->size * sizeof *latest);
    bool ok = wf_grow(&r->first, &r->first_room, m->size + 1, sizeof *r->first) &&
              wf_grow(&r->rank, &r->rank_room, m->merges, sizeof *r->rank) && wf_grow(&r->end, &r->end_room, m->merges, sizeof *r->end);
    if (ok && latest) {
        sort_by_left(m, r);
        find_ends(m, r, latest);
        r->model = m;
    }
    wf_free(latest);
    return r->model == m;
}

/* The last piece of a window that ends inside a word. */
struct tail {
    const struct reach *reach; /* NULL: the word ends there */
    int32_t place;             /* -1: no piece is settled */
    int32_t level;             /* the highest rank merged so far, maybe with what follows */
    int32_t after;             /* what follows begins with this piece; -1: it is not known */
    int64_t end;               /* pieces from this place on depend on what follows */
};

/* Whether merge k may join the tail and what follows now. Not at the level itself where that is the end too: one of the two pieces was made
 * at that level, and no part of the merge can be. */
static bool may_follow(const struct model *m, const struct tail *t, int32_t k)
{
    int64_t length, begins;
    int32_t right = m->merge[k].right, end = t->reach->end[k];
    if (end < t->level || (end == t->level && k >= t->level))
        return false;
    if (t->after < 0 || right == t->after)
        return true;
    const char *piece = vocab_piece(m->vocab, right, &length), *after = vocab_piece(m->vocab, t->after, &begins);
    return length > begins && !memcmp(piece, after, (size_t)begins);
}

/* The lowest rank with which the last piece may merge with what follows, behind all pairs of that rank. */
static void push_tail(const struct model *m, const struct tail *t, struct scratch *s, int64_t *waiting)
{
    const struct reach *r = t->reach;
    int32_t id = s->symbol[t->place].id;
    for (int32_t i = r->first[id]; i < r->first[id + 1]; i++)
        if (may_follow(m, t, r->rank[i])) {
            heap_push(s, waiting, (uint64_t)r->rank[i] << 32 | UINT32_MAX);
            return;
        }
}

/* The last piece may be merged with what follows, by a merge of this rank or of a higher one. The piece before it can meet another one than
 * it only after that, and one that begins with it. */
static void give_up_tail(const struct model *m, struct tail *t, struct scratch *s, int32_t rank, int64_t *waiting)
{
    t->level = WF_MAX(rank, t->level);
    t->end = t->place;
    t->after = s->symbol[t->place].id;
    t->place = s->symbol[t->place].previous;
    if (t->place >= 0) {
        s->symbol[t->place].next = -1;
        push_tail(m, t, s, waiting);
    }
}

/* --- with a heap --------------------------------------------------------------------------------------------------- */

/* Each merge takes an entry out and puts in at most two and one for the tail, which moves at most once a piece; there are fewer merges than
 * pieces. */
static bool start_heap(const struct model *m, struct scratch *s, int64_t count, int64_t *waiting)
{
    struct symbol *symbol = s->symbol;
    if (!wf_grow(&s->heap, &s->heap_room, 4 * count, sizeof *s->heap))
        return false;
    for (int32_t i = 0; i < count; i++) {
        symbol[i].previous = i - 1;
        symbol[i].next = i + 1 < count ? i + 1 : -1;
    }
    *waiting = 0;
    for (int32_t i = 0; i + 1 < count; i++) {
        int32_t rank = rank_of(m, symbol[i].id, symbol[i + 1].id);
        if (rank != NO_MERGE)
            s->heap[(*waiting)++] = (uint64_t)rank << 32 | (uint32_t)i;
    }
    for (int64_t i = *waiting / 2 - 1; i >= 0; i--)
        heap_sift(s->heap, i, *waiting);
    return true;
}

static bool merge_long(const struct model *m, struct scratch *s, int64_t *count, struct tail *t)
{
    int64_t waiting, kept = 0;
    struct symbol *symbol = s->symbol;
    if (!start_heap(m, s, *count, &waiting))
        return false;
    if (t->reach)
        push_tail(m, t, s, &waiting);
    while (waiting > 0) {
        uint64_t entry = heap_pop(s, &waiting);
        int32_t rank = (int32_t)(entry >> 32);
        if ((entry & UINT32_MAX) == UINT32_MAX) {
            if (t->place >= 0 && m->merge[rank].left == symbol[t->place].id)
                give_up_tail(m, t, s, rank, &waiting);
            continue;
        }
        int32_t place = (int32_t)(entry & UINT32_MAX);
        struct symbol *left = symbol + place;
        /* An entry is stale when one of the two has changed since. */
        if (left->id < 0 || left->next < 0 || rank_of(m, left->id, symbol[left->next].id) != rank)
            continue;
        struct symbol *right = symbol + left->next;
        bool last = left->next == t->place;
        t->level = WF_MAX(rank, t->level);
        left->id = m->merge[rank].id;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0)
            symbol[left->next].previous = place;
        heap_pair(m, s, &waiting, place);
        if (left->previous >= 0)
            heap_pair(m, s, &waiting, left->previous);
        if (last && t->reach) {
            t->place = place;
            push_tail(m, t, s, &waiting);
        }
    }
    for (int32_t i = t->end > 0 ? 0 : -1; i >= 0; i = symbol[i].next)
        symbol[kept++].id = symbol[i].id;
    *count = kept;
    return true;
}

bool merge_word(const struct model *m, struct scratch *s, int64_t *count)
{
    struct tail none = {.place = -1, .end = *count};
    if (m->merges == 0)
        return true;
    if (*count > SHORT)
        return merge_long(m, s, count, &none);
    *count = merge_short(m, s->symbol, *count);
    return true;
}

bool merge_front(const struct model *m, struct scratch *s, int64_t *count, int64_t *settled)
{
    *settled = *count;
    if (m->merges == 0 || *count == 0)
        return true;
    struct tail t = {.reach = &s->reach, .place = (int32_t)*count - 1, .level = -1, .after = -1, .end = *count};
    if (!find_reach(m, &s->reach) || !merge_long(m, s, count, &t))
        return false;
    *settled = t.end;
    return true;
}
