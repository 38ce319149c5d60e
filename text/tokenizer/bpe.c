/* SPDX-License-Identifier: MIT */
/* Byte-pair encoding: of all neighbours in a word that the list of merges holds, the pair that stands first in it (of equal ones the
 * leftmost) becomes one piece, until there is none. */
#include <inttypes.h>
#include <string.h>

#include "internal.h"
#include "scratch.h"
#include <weft/internal/grow.h>
#include <weft/internal/hash.h>
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>

struct symbol {
    int32_t id, previous, next; /* the neighbours' places, -1 at the ends; id -1: it was merged away */
    int32_t rank;               /* of the pair with the next one, in the short way */
};

enum {
    NO_MERGE = INT32_MAX,
    SHORT = 40 /* pieces: up to here going over all of them beats a heap */
};

/* Where a pair's slot is looked for. With a random factor nobody can make pairs that collide. */
static inline uint64_t slot_of(const struct model *m, int32_t left, int32_t right)
{
    return (((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * m->slot_key) >> m->slot_shift;
}

static int32_t rank_of(const struct model *m, int32_t left, int32_t right)
{
    for (uint64_t at = slot_of(m, left, right);; at++) {
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
    if (!wf_grow(&s->heap, &s->heap_room, 2 * *count, sizeof *s->heap))
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

/* Makes s->piece of a character: with the prefix of continued words and the suffix of ended ones. */
static bool decorate(const struct model *m, struct scratch *s, const char *character, int size, bool first, bool last)
{
    s->piece.length = 0;
    wf_string_add(&s->piece, m->prefix.data, first ? 0 : m->prefix.length);
    wf_string_add(&s->piece, character, size);
    return wf_string_add(&s->piece, m->suffix.data, last ? m->suffix.length : 0);
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
static wf_status first_pieces(const struct encoding *e, const char *word, int64_t length, int64_t *count)
{
    const struct model *m = &e->t->model;
    struct scratch *s = e->s;
    bool unknown = false; /* one waits: fused with the next, or put before the next known piece */
    for (int64_t at = 0, next; at < length; at = next) {
        int size;
        uint32_t point = wf_utf8_at(word, at, &size);
        const char *bytes = word + at;
        int64_t bytes_length = size;
        int32_t id;
        next = at + size;
        if (m->prefix.data || m->suffix.data) {
            if (!decorate(m, s, word + at, size, at == 0, next == length))
                return WF_ERR_MEMORY;
            bytes = s->piece.data;
            bytes_length = s->piece.length;
            id = model_id(m, bytes, bytes_length);
        } else {
            id = point_map_find(&m->points, point);
        }
        if (!wf_grow(&s->symbol, &s->symbols_room, *count + bytes_length + 2, sizeof *s->symbol))
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
            *e->fault = (struct wf_encode_fault){.kind = FAULT_CHARACTER, .offset = at, .point = point};
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

static wf_status bpe(const struct encoding *e, const char *word, int64_t length)
{
    const struct model *m = &e->t->model;
    struct scratch *s = e->s;
    struct wf_tokens *out = e->out;
    int64_t count = 0;
    int32_t id = m->ignore_merges ? model_id(m, word, length) : -1;
    if (id >= 0)
        return tokens_add(out, id);
    if (length > WORD_MOST) { /* places are 32 bits */
        *e->fault = (struct wf_encode_fault){.kind = FAULT_LENGTH};
        return WF_ERR_FORMAT;
    }
    if (!wf_grow(&s->symbol, &s->symbols_room, length + 2, sizeof *s->symbol))
        return WF_ERR_MEMORY;
    wf_status status = first_pieces(e, word, length, &count);
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

/* --- in the file --------------------------------------------------------------------------------------------------- */

/* "left right", as before version 0.20, or ["left", "right"]. */
static bool merge_parts(json_t *value, const char *part[2], int64_t length[2])
{
    if (json_is_array(value) && json_array_size(value) == 2) {
        for (size_t i = 0; i < 2; i++) {
            json_t *text = json_array_get(value, i);
            if (!json_is_string(text))
                return false;
            part[i] = json_string_value(text);
            length[i] = (int64_t)json_string_length(text);
        }
        return true;
    }
    const char *text = json_string_value(value), *space = text ? strchr(text, ' ') : NULL;
    if (!space || strchr(space + 1, ' '))
        return false;
    part[0] = text;
    length[0] = space - text;
    part[1] = space + 1;
    length[1] = (int64_t)strlen(space + 1);
    return true;
}

/* Adds a merge, for which there is room. */
static void add_merge(struct reader *r, struct model *m, int32_t left, int32_t right, struct wf_string *join)
{
    char quoted[WF_QUOTE_SIZE];
    int64_t a = 0, b = 0;
    const char *first = left < 0 ? "" : vocab_piece(m->vocab, left, &a), *second = right < 0 ? "" : vocab_piece(m->vocab, right, &b);
    int64_t skip = b < m->prefix.length ? 0 : m->prefix.length; /* not part of the join */
    join->length = 0;
    wf_string_add(join, first, a);
    if (!wf_string_add(join, second + skip, b - skip)) {
        reader_no_memory(r);
        return;
    }
    int32_t id = left < 0 || right < 0 ? -1 : model_id(m, join->data, join->length);
    if (id < 0)
        reader_refuse(r, "merge %" PRId64 " makes %s: it or one of its two parts is not in the vocabulary", m->merges + 1,
                      wf_text_quote(join->data, quoted));
    m->merge[m->merges++] = (struct merge){left, right, id};
}

static void read_merge(struct reader *r, struct model *m, json_t *value, struct wf_string *join)
{
    const char *part[2];
    int64_t length[2];
    if (json_is_string(value) && !strncmp(json_string_value(value), "#version", 8))
        return;
    if (merge_parts(value, part, length))
        add_merge(r, m, model_id(m, part[0], length[0]), model_id(m, part[1], length[1]), join);
    else
        reader_refuse(r, "merge %" PRId64 " is neither \"left right\" nor [\"left\", \"right\"]", m->merges + 1);
}

static void read_merges(struct reader *r, const struct key *key, json_t *object, void *field)
{
    struct model *m = field;
    struct wf_string join = {0};
    const struct tokenizer_table *table = r->table;
    json_t *merges = table ? NULL : reader_array(r, object, key->name);
    int64_t count = table ? table->merges : (int64_t)json_array_size(merges);
    m->merge = reader_keep(r, count, sizeof *m->merge);
    for (int64_t i = 0; i < count && !reader_failed(r); i++)
        if (table)
            add_merge(r, m, table->merge[i].left, table->merge[i].right, &join);
        else
            read_merge(r, m, json_array_get(merges, (size_t)i), &join);
    wf_string_free(&join);
}

static json_t *write_merges(const void *field)
{
    const struct model *m = field;
    json_t *array = json_array();
    int64_t length;
    for (const struct merge *pair = m->merge; pair < m->merge + m->merges; pair++)
        json_array_append_new(array,
                              json_pack("[s, s]", vocab_piece(m->vocab, pair->left, &length), vocab_piece(m->vocab, pair->right, &length)));
    return array;
}

static uint64_t hash_merges(const void *field, uint64_t hash)
{
    const struct model *m = field;
    return wf_hash(m->merge, m->merges * (int64_t)sizeof *m->merge, hash);
}

static const struct key_kind value_merges = {KIND_OWN, read_merges, write_merges, hash_merges};

static void read_dropout(struct reader *r, const struct key *key, json_t *object, void *field)
{
    json_t *dropout = json_object_get(object, key->name);
    (void)field;
    if (dropout && !json_is_null(dropout))
        reader_refuse(r, "dropout of merges is not supported by this version; set \"dropout\" to null");
}

static const struct key_kind value_dropout = {KIND_OWN, read_dropout};

static void ready(struct reader *r, void *part)
{
    struct model *m = part;
    m->slot_shift = 60;
    while (m->slot_shift > 1 && (uint64_t)1 << (64 - m->slot_shift) < 2 * (uint64_t)m->merges)
        m->slot_shift--;
    m->slot_mask = ((uint64_t)1 << (64 - m->slot_shift)) - 1;
    m->slot_key = wf_hash_key() | 1;
    m->slot = reader_keep(r, (int64_t)m->slot_mask + 1, sizeof *m->slot);
    if (!m->slot)
        return;
    memset(m->slot, -1, (size_t)(m->slot_mask + 1) * sizeof *m->slot);
    for (int32_t rank = 0; rank < m->merges; rank++) {
        const struct merge *merge = m->merge + rank;
        uint64_t at = slot_of(m, merge->left, merge->right);
        while (m->slot[at & m->slot_mask].rank >= 0 &&
               (m->slot[at & m->slot_mask].left != merge->left || m->slot[at & m->slot_mask].right != merge->right))
            at++;
        m->slot[at & m->slot_mask] = (struct merge_slot){merge->left, merge->right, rank}; /* of two the later counts, as there */
    }
    model_index(r);
}

const struct part_type model_bpe = {
    "BPE", PART_MODEL,
    .keys = KEYS({"dropout", &value_dropout}, {"unk_token", &value_text, offsetof(struct model, unknown), .optional = true},
                 {"continuing_subword_prefix", &value_text, offsetof(struct model, prefix), .optional = true},
                 {"end_of_word_suffix", &value_text, offsetof(struct model, suffix), .optional = true},
                 {"fuse_unk", &value_bool, offsetof(struct model, fuse_unknown), .optional = true},
                 {"byte_fallback", &value_bool, offsetof(struct model, byte_fallback), .optional = true},
                 {"ignore_merges", &value_bool, offsetof(struct model, ignore_merges), .optional = true}, {"vocab", &value_vocab},
                 {"merges", &value_merges}),
    .ready = ready, .word = bpe};
