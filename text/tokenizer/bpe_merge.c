/* SPDX-License-Identifier: MIT */
/* Byte-pair encoding of a word. The list of merges gives each pair of pieces a rank, its index in the list. As long as some pair of
 * neighbours in the word is in the list, the pair with the lowest rank (the leftmost of equal ones) is merged into one piece.
 *
 * A long word is merged in windows (merge_front). If two pieces of the final result are neighbours, no merge ever crossed the boundary
 * between them, so the text on each side of it can be merged separately. A window may therefore return those of its pieces that are final
 * whatever text follows. To find these pieces, merge_front assumes the worst about the following text. The last piece of the window is
 * called the tail. As soon as the tail is the left piece of a merge that could come next, the tail counts as merged with the following
 * text, and the piece before it becomes the tail.
 *
 * The level of a word is the highest rank merged in it so far. end[k] (`reach.end`) is an upper bound of the levels at which merge k can
 * happen: max(k, end of every merge that makes one of its two pieces). Merge k itself raises a lower level to k. Suppose that it happens
 * at a level L above k. When the word reached level L, the pair of merge k was not there, since merge k would have come first. So one of
 * its two pieces was made at level L, and the end of the merge that made this piece is at least L. The same bound holds for the level of a
 * window, which is never above that of the word. A trainer lists the merges that make a piece before those that use it, and then
 * end[k] = k. */
#include <string.h>

#include "bpe_merge.h"
#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/memory.h>

enum {
    NO_MERGE = INT32_MAX,
    SHORT = 40, /* up to this number of pieces, comparing all pairs for each merge is faster than a heap */
    PASSES = 64 /* maximum number of passes over the merges to find reach.end; the lists of known models need fewer than ten */
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

/* merge_word for few pieces: compares all pairs for each merge. Returns the number of remaining pieces. */
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

/* Entries of the heap are rank << 32 | index of the left piece. */
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

/* --- a word that continues behind the window ----------------------------------------------------------------------- */

/* Sorts the merges by their left piece: sets reach.first and reach.rank. */
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

/* Finds reach.end, the least solution of the equations for end[k] in the head of this file, by repeated passes. */
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
    for (int64_t k = 0; changed && k < m->merges; k++) /* no convergence: this limit is valid for any list */
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

/* The tail: the last piece of a window whose word continues behind it. */
struct tail {
    const struct reach *reach; /* NULL: the window ends the word */
    int32_t place;             /* index of the tail; -1: no piece of the window is final */
    int32_t level;             /* the highest rank merged so far, including possible merges of the tail with the following text */
    int32_t after;             /* the following text begins with this piece; -1: nothing is known of that text */
    int64_t end;               /* pieces from this index on depend on the following text */
};

/* Whether merge k may now join the tail and the following text. If k, end[k] and the level are all equal, merge k may not: its pieces are
 * made at levels below k, but when the level is k, this function is called only if the tail or the piece after it was made at level
 * k. */
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

/* Pushes an entry for the first merge that may join the tail and the following text, if there is one. Instead of the index of a piece the
 * entry has UINT32_MAX, so that it comes after all pairs of the same rank. */
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

/* Called when the tail may be merged with the following text, by a merge of this rank or a higher one. The tail is then not final, and the
 * piece before it becomes the tail. The right neighbour of the new tail is the old tail, or after such a merge a piece that begins with the
 * old tail. */
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

/* --- merging with a heap ------------------------------------------------------------------------------------------- */

/* The heap needs at most 4 * count entries. There are fewer merges than pieces. Each merge removes one entry, and adds at most two for
 * pairs and one for the tail. The tail moves to the left at most once per piece, and each move adds one entry. */
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
        /* Skips an outdated entry: one of its two pieces has changed since the entry was pushed. */
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
