/* SPDX-License-Identifier: MIT */
/* The vocabulary in the file and the tables to look it up, for all models; and the WordLevel model, which needs nothing else. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include <weft/internal/hash.h>
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

/* Sorts the vocabulary's keys by id. Every id from 0 to count-1 must occur exactly once. */
static void order(struct reader *r, json_t *vocab, int64_t count, const char **piece)
{
    const char *name;
    json_t *value;
    char quoted[WF_QUOTE_SIZE];
    json_object_foreach(vocab, name, value)
    {
        int64_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id >= count)
            reader_refuse(r, "the id of token %s is not an integer from 0 to %" PRId64 ", the last of the vocabulary",
                          wf_text_quote(name, quoted), count - 1);
        else if (piece[id])
            reader_refuse(r, "the id %" PRId64 " of token %s is the id of another token too", id, wf_text_quote(name, quoted));
        else
            piece[id] = name;
        if (reader_failed(r))
            break;
    }
}

static void read_vocab(struct reader *r, const struct key *key, json_t *object, void *field)
{
    struct vocab *out = &r->t->vocab;
    struct model *m = field;
    m->vocab = out;
    if (r->table) {
        *out = r->table->pieces;
        r->table->pieces = (struct vocab){0};
    } else {
        json_t *vocab = reader_object(r, object, key->name);
        int64_t count = (int64_t)json_object_size(vocab);
        const char **piece = count > INT32_MAX / 2 ? NULL : wf_alloc_zero((size_t)count, sizeof *piece);
        if (vocab && count == 0)
            reader_refuse(r, "the vocabulary is empty");
        else if (!piece)
            reader_no_memory(r);
        else
            order(r, vocab, count, piece);
        for (int64_t i = 0; i < count && !reader_failed(r); i++)
            if (vocab_add(out, piece[i], (int64_t)strlen(piece[i])) < 0)
                reader_no_memory(r);
        wf_free(piece);
    }
    m->size = out->count;
}

static json_t *write_vocab(const void *field)
{
    const struct model *m = field;
    json_t *object = json_object();
    for (int32_t id = 0; id < m->size; id++) {
        int64_t length;
        const char *piece = vocab_piece(m->vocab, id, &length);
        json_object_setn_new(object, piece, (size_t)length, json_integer(id));
    }
    return object;
}

static uint64_t hash_vocab(const void *field, uint64_t hash)
{
    const struct model *m = field;
    return wf_hash(m->vocab->bytes, m->vocab->start[m->size], hash); /* the NULs are hashed too: they separate the pieces */
}

const struct key_kind value_vocab = {KIND_OWN, read_vocab, write_vocab, hash_vocab};

int32_t model_id(const struct model *m, const char *piece, int64_t length)
{
    int32_t id = vocab_find(m->vocab, piece, length);
    return id < m->size ? id : -1;
}

void model_index(struct reader *r)
{
    struct model *m = &r->t->model;
    m->unknown_id = m->unknown.data ? model_id(m, m->unknown.data, m->unknown.length) : -1;
    for (int i = 0; i < 256; i++) {
        char name[8];
        m->byte[i] = model_id(m, name, snprintf(name, sizeof name, "<0x%02X>", i));
    }
    if (!point_map_build(&m->points, m->vocab, m->size))
        reader_no_memory(r);
}

/* Guesses the type of a model: files before version 0.9 of `tokenizers` do not name it. */
static const char *guess(json_t *model)
{
    return json_object_get(model, "merges") ? "BPE" : json_object_get(model, "continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

void model_read(struct reader *r, json_t *object)
{
    struct model *m = &r->t->model;
    m->part.type = part_type_of(r, PART_MODEL, object, guess(object));
    if (m->part.type)
        keys_read(r, m->part.type->keys, true, object, m);
    if (!reader_failed(r))
        m->part.type->ready(r, m);
}

/* --- WordLevel ----------------------------------------------------------------------------------------------------- */

static void ready(struct reader *r, void *part)
{
    struct model *m = part;
    if (!m->unknown.data) /* the default of Hugging Face's package tokenizers */
        m->unknown = (struct text){"<unk>", 5};
    model_index(r);
}

wf_status model_unknown(const struct encoding *e)
{
    if (e->t->model.unknown_id >= 0)
        return tokens_add(e->out, e->t->model.unknown_id);
    *e->fault = (struct wf_encode_fault){.kind = FAULT_WORD};
    return WF_ERR_FORMAT;
}

static wf_status word_level(const struct encoding *e, const char *word, int64_t length)
{
    int32_t id = model_id(&e->t->model, word, length);
    return id < 0 ? model_unknown(e) : tokens_add(e->out, id);
}

const struct part_type model_word_level = {
    "WordLevel", PART_MODEL,
    .keys = KEYS({"vocab", &value_vocab}, {"unk_token", &value_text, offsetof(struct model, unknown), .optional = true}), .ready = ready,
    .word = word_level};
