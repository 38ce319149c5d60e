/* SPDX-License-Identifier: MIT */
/* The BPE model: divides a word into single characters, which bpe_merge.c merges, and reads and writes the merges in the file. */
#include <inttypes.h>
#include <string.h>

#include "bpe_merge.h"
#include "internal.h"
#include "scratch.h"
#include <weft/internal/grow.h>
#include <weft/internal/hash.h>
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>

/* Sets s->piece to a character of a word: with m->prefix before it unless it is the first, with m->suffix after it if it is the last. */
static bool decorate(const struct model *m, struct scratch *s, const char *character, int size, bool first, bool last)
{
    s->piece.length = 0;
    wf_string_add(&s->piece, m->prefix.data, first ? 0 : m->prefix.length);
    wf_string_add(&s->piece, character, size);
    return wf_string_add(&s->piece, m->suffix.data, last ? m->suffix.length : 0);
}

/* Appends the ids of the pieces that stand for these bytes. If the vocabulary lacks one of them, appends nothing and returns false. */
static bool put_bytes(const struct model *m, struct symbol *symbol, int64_t *count, const char *bytes, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
        if (m->byte[(unsigned char)bytes[i]] < 0)
            return false;
    for (int64_t i = 0; i < length; i++)
        symbol[(*count)++].id = m->byte[(unsigned char)bytes[i]];
    return true;
}

/* The position in a word while its characters become pieces. */
struct first {
    const char *word;
    int64_t length; /* number of bytes of the word */
    int64_t at;     /* index of the next byte */
    /* An unknown character was found, but its token is not appended yet: with fuse_unknown, one token stands for a run of them. */
    bool unknown;
};

/* Appends pieces for the next characters of the word until there are `most` pieces. A character that the vocabulary lacks becomes its bytes
 * or the unknown token. */
static wf_status first_pieces(const struct encoding *e, struct first *f, int64_t most, int64_t *count)
{
    const struct model *m = &e->t->model;
    struct scratch *s = e->s;
    for (int64_t next; f->at < f->length && *count < most; f->at = next) {
        int size;
        uint32_t point = wf_utf8_at(f->word, f->at, &size);
        const char *bytes = f->word + f->at;
        int64_t bytes_length = size;
        int32_t id;
        next = f->at + size;
        if (m->prefix.data || m->suffix.data) {
            if (!decorate(m, s, bytes, size, f->at == 0, next == f->length))
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
            if (f->unknown)
                s->symbol[(*count)++].id = m->unknown_id;
            f->unknown = false;
            s->symbol[(*count)++].id = id;
            continue;
        }
        if (m->byte_fallback && put_bytes(m, s->symbol, count, bytes, bytes_length))
            continue;
        if (m->unknown_id < 0) {
            *e->fault = (struct wf_encode_fault){.kind = FAULT_CHARACTER, .offset = f->at, .point = point};
            return WF_ERR_FORMAT;
        }
        if (f->unknown && !m->fuse_unknown)
            s->symbol[(*count)++].id = m->unknown_id;
        f->unknown = true;
    }
    if (f->unknown && f->at == f->length)
        s->symbol[(*count)++].id = m->unknown_id;
    return WF_OK;
}

static wf_status put_pieces(const struct encoding *e, int64_t count)
{
    struct wf_tokens *out = e->out;
    if (!tokens_reserve(out, count))
        return WF_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        out->id[out->count++] = e->s->symbol[i].id;
    return WF_OK;
}

/* Merges a long word in windows. merge_front gives the pieces of a window that are final. The next window begins with the pieces after
 * them, as they were before the merges. */
static wf_status long_word(const struct encoding *e, struct first *f)
{
    struct scratch *s = e->s;
    int64_t window = WORD_WINDOW, count = 0, settled;
    for (;;) {
        wf_status status = first_pieces(e, f, window, &count);
        if (status != WF_OK)
            return status;
        if (f->at == f->length)
            return merge_word(&e->t->model, s, &count) ? put_pieces(e, count) : WF_ERR_MEMORY;
        if (scratch_cancelled(s))
            return WF_ERR_CANCELLED;
        int64_t given = count, left;
        if (!wf_grow(&s->first, &s->first_room, given, sizeof *s->first))
            return WF_ERR_MEMORY;
        for (int64_t i = 0; i < given; i++)
            s->first[i] = s->symbol[i].id;
        if (!merge_front(&e->t->model, s, &count, &settled))
            return WF_ERR_MEMORY;
        if ((status = put_pieces(e, count)) != WF_OK)
            return status;
        left = given - settled;
        if (left > given / 2 && (window *= 2) > WORD_WINDOW_MOST) {
            *e->fault = (struct wf_encode_fault){.kind = FAULT_LENGTH};
            return WF_ERR_FORMAT;
        }
        for (count = 0; count < left; count++)
            s->symbol[count].id = s->first[settled + count];
    }
}

static wf_status bpe(const struct encoding *e, const char *word, int64_t length)
{
    const struct model *m = &e->t->model;
    struct scratch *s = e->s;
    int64_t count = 0;
    struct first f = {.word = word, .length = length};
    int32_t id = m->ignore_merges ? model_id(m, word, length) : -1;
    if (id >= 0)
        return tokens_add(e->out, id);
    if (length > WORD_WINDOW)
        return long_word(e, &f);
    if (!wf_grow(&s->symbol, &s->symbols_room, length + 2, sizeof *s->symbol))
        return WF_ERR_MEMORY;
    wf_status status = first_pieces(e, &f, INT64_MAX, &count);
    if (status != WF_OK)
        return status;
    return merge_word(m, s, &count) ? put_pieces(e, count) : WF_ERR_MEMORY;
}

/* --- reading and writing merges ------------------------------------------------------------------------------------- */

/* Reads a merge: "left right" in files before version 0.20 of `tokenizers`, or ["left", "right"]. */
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

/* Adds a merge; the caller has allocated m->merge for it. */
static void add_merge(struct reader *r, struct model *m, int32_t left, int32_t right, struct wf_string *join)
{
    char quoted[WF_QUOTE_SIZE];
    int64_t a = 0, b = 0;
    const char *first = left < 0 ? "" : vocab_piece(m->vocab, left, &a), *second = right < 0 ? "" : vocab_piece(m->vocab, right, &b);
    int64_t skip =
        b < m->prefix.length ? 0 : m->prefix.length; /* the joined piece does not repeat the prefix with which the second piece begins */
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
        uint64_t at = merge_slot_of(m, merge->left, merge->right);
        while (m->slot[at & m->slot_mask].rank >= 0 &&
               (m->slot[at & m->slot_mask].left != merge->left || m->slot[at & m->slot_mask].right != merge->right))
            at++;
        m->slot[at & m->slot_mask] =
            (struct merge_slot){merge->left, merge->right, rank}; /* if a pair is listed twice, the later rank counts, as in the package */
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
