/* SPDX-License-Identifier: MIT */
/* Byte-pair encoding: of all neighbours in a word that the list of merges holds, the pair that stands first in it (of equal ones the
 * leftmost) becomes one piece, until there is none. */
#include <string.h>

#include "internal.h"
#include "scratch.h"
#include "unicode.h"

struct symbol {
    int32_t id, previous, next; /* the neighbours' places, -1 at the ends; id -1: it was merged away */
    int32_t rank;               /* of the pair with the next one, in the short way */
};

enum {
    NO_MERGE = INT32_MAX,
    SHORT = 40 /* pieces: up to here going over all of them beats a heap */
};

static int32_t rank_of(const struct model *m, int32_t left, int32_t right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    for (uint64_t at = pair * 0x9E3779B97F4A7C15u >> 20;; at++) {
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

static bool merge_long(const struct model *m, struct scratch *s, int64_t *count)
{
    int64_t waiting = 0, kept = 0;
    struct symbol *symbol = s->symbol;
    /* Each merge takes an entry out and puts at most two in, and there are fewer merges than pieces. */
    if (!scratch_room(&s->heap, &s->heap_room, 2 * *count, sizeof *s->heap))
        return false;
    for (int32_t i = 0; i < *count; i++) {
        symbol[i].previous = i - 1;
        symbol[i].next = i + 1 < *count ? i + 1 : -1;
    }
    for (int32_t i = 0; i + 1 < *count; i++) {
        int32_t rank = rank_of(m, symbol[i].id, symbol[i + 1].id);
        if (rank != NO_MERGE)
            s->heap[waiting++] = (uint64_t)rank << 32 | (uint32_t)i;
    }
    for (int64_t i = waiting / 2 - 1; i >= 0; i--)
        heap_sift(s->heap, i, waiting);
    while (waiting > 0) {
        uint64_t entry = heap_pop(s, &waiting);
        int32_t place = (int32_t)(entry & UINT32_MAX), rank = (int32_t)(entry >> 32);
        struct symbol *left = symbol + place;
        /* An entry is stale when one of the two has changed since. */
        if (left->id < 0 || left->next < 0 || rank_of(m, left->id, symbol[left->next].id) != rank)
            continue;
        struct symbol *right = symbol + left->next;
        left->id = m->merge[rank].id;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0)
            symbol[left->next].previous = place;
        heap_pair(m, s, &waiting, place);
        if (left->previous >= 0)
            heap_pair(m, s, &waiting, left->previous);
    }
    for (int32_t i = 0; i >= 0; i = symbol[i].next)
        symbol[kept++].id = symbol[i].id;
    *count = kept;
    return true;
}

/* The id of a character with the prefix of continued words and the suffix of ended ones; -1: not there. */
static wf_status decorated(const wf_tokenizer *t, struct scratch *s, const char *character, int size, bool first, bool last, int32_t *id)
{
    const struct model *m = &t->model;
    s->piece.length = 0;
    if (m->prefix && !first && !wf_string_add(&s->piece, m->prefix, (int64_t)strlen(m->prefix)))
        return WF_ERR_MEMORY;
    if (!wf_string_add(&s->piece, character, size) || (m->suffix && last && !wf_string_add(&s->piece, m->suffix, (int64_t)strlen(m->suffix))))
        return WF_ERR_MEMORY;
    *id = vocab_find(&t->vocab, s->piece.data, s->piece.length);
    if (*id >= t->model_size)
        *id = -1;
    return WF_OK;
}

/* Appends the ids of the piece's bytes, if the vocabulary has all of them. */
static bool put_bytes(const struct model *m, struct symbol *symbol, int64_t *count, const char *bytes, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
        if (m->byte[(unsigned char)bytes[i]] < 0)
            return false;
    for (int64_t i = 0; i < length; i++)
        symbol[(*count)++].id = m->byte[(unsigned char)bytes[i]];
    return true;
}

/* The word's characters as pieces: what the vocabulary lacks becomes bytes or the unknown token. */
static wf_status first_pieces(const wf_tokenizer *t, struct scratch *s, const char *word, int64_t length, int64_t *count,
                              struct wf_encode_fault *fault)
{
    const struct model *m = &t->model;
    bool unknown = false; /* one waits: fused with the next, or put before the next known piece */
    for (int64_t at = 0, next; at < length; at = next) {
        int size;
        uint32_t point = unicode_at(word, at, &size);
        const char *bytes = word + at;
        int64_t bytes_length = size;
        int32_t id;
        next = at + size;
        if (m->prefix || m->suffix) {
            if (decorated(t, s, word + at, size, at == 0, next == length, &id) != WF_OK)
                return WF_ERR_MEMORY;
            bytes = s->piece.data;
            bytes_length = s->piece.length;
        } else {
            id = point_map_find(&m->points, point);
        }
        if (!scratch_room(&s->symbol, &s->symbols_room, *count + bytes_length + 2, sizeof *s->symbol))
            return WF_ERR_MEMORY;
        if (id >= 0) {
            if (unknown)
                s->symbol[(*count)++].id = m->unknown_id;
            unknown = false;
            s->symbol[(*count)++].id = id;
            continue;
        }
        if (m->byte_fallback && put_bytes(m, s->symbol, count, bytes, bytes_length))
            continue;
        if (m->unknown_id < 0) {
            *fault = (struct wf_encode_fault){.kind = FAULT_CHARACTER, .offset = at, .point = point};
            return WF_ERR_FORMAT;
        }
        if (unknown && !m->fuse_unknown)
            s->symbol[(*count)++].id = m->unknown_id;
        unknown = true;
    }
    if (unknown)
        s->symbol[(*count)++].id = m->unknown_id;
    return WF_OK;
}

wf_status bpe_word(const wf_tokenizer *t, struct scratch *s, const char *word, int64_t length, struct wf_tokens *out,
                   struct wf_encode_fault *fault)
{
    const struct model *m = &t->model;
    int64_t count = 0;
    if (m->ignore_merges) {
        int32_t id = vocab_find(&t->vocab, word, length);
        if (id >= 0 && id < t->model_size) {
            if (!tokens_reserve(out, 1))
                return WF_ERR_MEMORY;
            out->id[out->count++] = id;
            return WF_OK;
        }
    }
    if (length > INT32_MAX / 8) /* places are 32 bits */
        return WF_ERR_MEMORY;
    if (!scratch_room(&s->symbol, &s->symbols_room, length + 2, sizeof *s->symbol))
        return WF_ERR_MEMORY;
    wf_status status = first_pieces(t, s, word, length, &count, fault);
    if (status != WF_OK)
        return status;
    if (m->merges > 0 && count <= SHORT)
        count = merge_short(m, s->symbol, count);
    else if (m->merges > 0 && !merge_long(m, s, &count))
        return WF_ERR_MEMORY;
    if (!tokens_reserve(out, count))
        return WF_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        out->id[out->count++] = s->symbol[i].id;
    return WF_OK;
}
