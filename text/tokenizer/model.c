/* SPDX-License-Identifier: MIT */
/* The models in the file: vocabulary, merges and settings; and the tables that encoding looks them up in. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pipeline.h"
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

static const char *const type_names[] = {[MODEL_WORD_LEVEL] = "WordLevel", [MODEL_BPE] = "BPE", [MODEL_WORDPIECE] = "WordPiece"};

/* Keys by id: every id of 0 .. count-1 exactly once. */
static wf_status order(json_t *vocab, int64_t count, const char **key, int64_t *bytes, const char *where, wf_error *error)
{
    const char *name;
    json_t *value;
    char quoted[WF_QUOTE_SIZE];
    json_object_foreach(vocab, name, value)
    {
        int64_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id >= count)
            return wf_error_set(error, WF_ERR_FORMAT,
                                "%s: the id of token %s is not an integer in 0 .. %" PRId64 ", one less than the tokens", where,
                                wf_text_quote(name, quoted), count - 1);
        if (key[id])
            return wf_error_set(error, WF_ERR_FORMAT, "%s: the id %" PRId64 " of token %s belongs to another token too", where, id,
                                wf_text_quote(name, quoted));
        key[id] = name;
        *bytes += (int64_t)strlen(name);
    }
    return WF_OK;
}

static wf_status read_vocab(wf_tokenizer *t, json_t *model, int64_t more_pieces, int64_t more_bytes, const char *where, wf_error *error)
{
    json_t *vocab = NULL;
    wf_status status = wf_json_get_object(model, where, "vocab", WF_JSON_REQUIRED, &vocab, error);
    int64_t count = (int64_t)json_object_size(vocab), bytes = more_bytes;
    if (status == WF_OK && count == 0)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: the vocabulary is empty", where);
    if (status != WF_OK)
        return status;
    const char **key = count > INT32_MAX / 2 ? NULL : wf_alloc_zero((size_t)count, sizeof *key);
    if (!key)
        return part_no_memory(where, error);
    status = order(vocab, count, key, &bytes, where, error);
    if (status == WF_OK && !vocab_reserve(&t->vocab, count + more_pieces, bytes))
        status = part_no_memory(where, error);
    for (int64_t i = 0; status == WF_OK && i < count; i++)
        vocab_add(&t->vocab, key[i], (int64_t)strlen(key[i]));
    wf_free(key);
    t->model_size = count;
    return status;
}

static int32_t model_id(const wf_tokenizer *t, const char *piece, int64_t length)
{
    int32_t id = vocab_find(&t->vocab, piece, length);
    return id < t->model_size ? id : -1;
}

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

static wf_status read_merge(wf_tokenizer *t, json_t *value, struct merge *merge, struct wf_string *join, const char *where, wf_error *error)
{
    const char *part[2];
    int64_t length[2], prefix = t->model.prefix ? (int64_t)strlen(t->model.prefix) : 0;
    char quoted[WF_QUOTE_SIZE];
    if (!merge_parts(value, part, length))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: merge %" PRId64 " is neither \"left right\" nor [\"left\", \"right\"]", where,
                            t->model.merges + 1);
    join->length = 0;
    int64_t skip = length[1] >= prefix ? prefix : 0;
    if (!wf_string_add(join, part[0], length[0]) || !wf_string_add(join, part[1] + skip, length[1] - skip))
        return part_no_memory(where, error);
    *merge = (struct merge){model_id(t, part[0], length[0]), model_id(t, part[1], length[1]), model_id(t, join->data, join->length)};
    if (merge->left < 0 || merge->right < 0 || merge->id < 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: merge %" PRId64 " makes %s, of which or of whose parts one is not in the vocabulary",
                            where, t->model.merges + 1, wf_text_quote(join->data, quoted));
    return WF_OK;
}

static wf_status read_merges(wf_tokenizer *t, json_t *model, const char *where, wf_error *error)
{
    json_t *merges = NULL;
    struct wf_string join = {0};
    wf_status status = wf_json_get_array(model, where, "merges", WF_JSON_REQUIRED, &merges, error);
    if (status != WF_OK)
        return status;
    t->model.merge = tokenizer_keep(t, (int64_t)json_array_size(merges), sizeof *t->model.merge);
    if (!t->model.merge)
        return part_no_memory(where, error);
    for (size_t i = 0; status == WF_OK && i < json_array_size(merges); i++) {
        json_t *value = json_array_get(merges, i);
        if (json_is_string(value) && !strncmp(json_string_value(value), "#version", 8))
            continue;
        status = read_merge(t, value, t->model.merge + t->model.merges, &join, where, error);
        t->model.merges += status == WF_OK;
    }
    wf_string_free(&join);
    return status;
}

/* A text that may be absent, kept. */
static wf_status optional_text(wf_tokenizer *t, json_t *model, const char *key, const char *where, const char **out, wf_error *error)
{
    const char *text = NULL;
    wf_status status = wf_json_get_string(model, where, key, WF_JSON_OPTIONAL, &text, error);
    if (status == WF_OK && text && !(*out = tokenizer_keep_text(t, text, (int64_t)strlen(text))))
        status = part_no_memory(where, error);
    return status;
}

static wf_status read_bpe(wf_tokenizer *t, json_t *model, const char *where, wf_error *error)
{
    struct model *m = &t->model;
    json_t *dropout = json_object_get(model, "dropout");
    if (dropout && !json_is_null(dropout))
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s: it asks for dropout of merges, which this version does not have; set \"dropout\" to null", where);
    wf_status status = optional_text(t, model, "unk_token", where, &m->unknown, error);
    if (status == WF_OK)
        status = optional_text(t, model, "continuing_subword_prefix", where, &m->prefix, error);
    if (status == WF_OK)
        status = optional_text(t, model, "end_of_word_suffix", where, &m->suffix, error);
    if (status == WF_OK)
        status = wf_json_get_bool(model, where, "fuse_unk", WF_JSON_OPTIONAL, &m->fuse_unknown, error);
    if (status == WF_OK)
        status = wf_json_get_bool(model, where, "byte_fallback", WF_JSON_OPTIONAL, &m->byte_fallback, error);
    if (status == WF_OK)
        status = wf_json_get_bool(model, where, "ignore_merges", WF_JSON_OPTIONAL, &m->ignore_merges, error);
    return status == WF_OK ? read_merges(t, model, where, error) : status;
}

static wf_status read_wordpiece(wf_tokenizer *t, json_t *model, const char *where, wf_error *error)
{
    wf_status status = part_text(t, model, "unk_token", where, &t->model.unknown, NULL, error);
    if (status == WF_OK)
        status = part_text(t, model, "continuing_subword_prefix", where, &t->model.prefix, NULL, error);
    return status == WF_OK
               ? wf_json_get_int(model, where, "max_input_chars_per_word", WF_JSON_REQUIRED, 0, INT64_MAX, &t->model.most_characters, error)
               : status;
}

static wf_status read_word_level(wf_tokenizer *t, json_t *model, const char *where, wf_error *error)
{
    wf_status status = optional_text(t, model, "unk_token", where, &t->model.unknown, error);
    if (status == WF_OK && !t->model.unknown) /* the package's default */
        t->model.unknown = "<unk>";
    return status;
}

/* Files before 0.9 do not say which model they hold. */
static const char *guess(json_t *model)
{
    return json_object_get(model, "merges") ? "BPE" : json_object_get(model, "continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

wf_status model_read(wf_tokenizer *t, json_t *model, int64_t more_pieces, int64_t more_bytes, const char *where, wf_error *error)
{
    static const char *const of_words[] = {"type", "vocab", "unk_token", NULL};
    static const char *const of_bpe[] = {
        "type",  "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
        "vocab", "merges",  NULL};
    static const char *const of_wordpiece[] = {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab", NULL};
    static const char *const *const keys[] = {of_words, of_bpe, of_wordpiece};
    const char *type = guess(model);
    wf_status status = wf_json_get_string(model, where, "type", WF_JSON_OPTIONAL, &type, error);
    if (status != WF_OK)
        return status;
    int i = 0;
    while (i < 3 && strcmp(type, type_names[i]))
        i++;
    if (i == 3)
        return part_refuse("model", type, where, error);
    t->model.type = (enum model_type)i;
    status = wf_json_only_keys(model, where, keys[i], error);
    if (status == WF_OK)
        status = read_vocab(t, model, more_pieces, more_bytes, where, error);
    if (status != WF_OK)
        return status;
    return i == MODEL_BPE         ? read_bpe(t, model, where, error)
           : i == MODEL_WORDPIECE ? read_wordpiece(t, model, where, error)
                                  : read_word_level(t, model, where, error);
}

static wf_status index_merges(wf_tokenizer *t, const char *where, wf_error *error)
{
    struct model *m = &t->model;
    uint64_t slots = 16;
    while (slots < 2 * (uint64_t)m->merges)
        slots *= 2;
    m->slot_mask = slots - 1;
    m->slot = tokenizer_keep(t, (int64_t)slots, sizeof *m->slot);
    if (!m->slot)
        return part_no_memory(where, error);
    memset(m->slot, -1, (size_t)slots * sizeof *m->slot);
    for (int32_t rank = 0; rank < m->merges; rank++) {
        const struct merge *merge = m->merge + rank;
        uint64_t at = ((uint64_t)(uint32_t)merge->left << 32 | (uint32_t)merge->right) * 0x9E3779B97F4A7C15u >> 20;
        while (m->slot[at & m->slot_mask].rank >= 0 &&
               (m->slot[at & m->slot_mask].left != merge->left || m->slot[at & m->slot_mask].right != merge->right))
            at++;
        m->slot[at & m->slot_mask] = (struct merge_slot){merge->left, merge->right, rank}; /* of two the later counts, as there */
    }
    return WF_OK;
}

wf_status model_index(wf_tokenizer *t, const char *where, wf_error *error)
{
    struct model *m = &t->model;
    m->unknown_id = m->unknown ? model_id(t, m->unknown, (int64_t)strlen(m->unknown)) : -1;
    m->longest = 0;
    for (int32_t id = 0; id < t->model_size; id++) {
        int64_t length;
        vocab_piece(&t->vocab, id, &length);
        m->longest = length > m->longest ? length : m->longest;
    }
    for (int i = 0; i < 256; i++) {
        char name[8];
        m->byte[i] = model_id(t, name, snprintf(name, sizeof name, "<0x%02X>", i));
    }
    if (!point_map_build(&m->points, &t->vocab, t->model_size))
        return part_no_memory(where, error);
    return m->type == MODEL_BPE ? index_merges(t, where, error) : WF_OK;
}

wf_status model_word(const wf_tokenizer *t, struct scratch *s, const char *word, int64_t length, struct wf_tokens *out,
                     struct wf_encode_fault *fault)
{
    if (t->model.type == MODEL_BPE)
        return bpe_word(t, s, word, length, out, fault);
    if (t->model.type == MODEL_WORDPIECE)
        return wordpiece_word(t, s, word, length, out, fault);
    int32_t id = model_id(t, word, length);
    id = id < 0 ? t->model.unknown_id : id;
    if (id < 0) {
        *fault = (struct wf_encode_fault){.kind = FAULT_WORD};
        return WF_ERR_FORMAT;
    }
    if (!tokens_reserve(out, 1))
        return WF_ERR_MEMORY;
    out->id[out->count++] = id;
    return WF_OK;
}

static void write_vocab(const wf_tokenizer *t, struct json_writer *w)
{
    json_open(w, "vocab", '{');
    for (int32_t id = 0; id < t->model_size; id++) {
        int64_t length;
        const char *piece = vocab_piece(&t->vocab, id, &length);
        json_put_entry(w, piece, length, id);
    }
    json_close(w, '}');
}

static void write_merges(const wf_tokenizer *t, struct json_writer *w)
{
    json_open(w, "merges", '[');
    for (int64_t i = 0; i < t->model.merges; i++) {
        json_open(w, NULL, '[');
        json_put_string(w, NULL, vocab_piece(&t->vocab, t->model.merge[i].left, &(int64_t){0}));
        json_put_string(w, NULL, vocab_piece(&t->vocab, t->model.merge[i].right, &(int64_t){0}));
        json_close(w, ']');
    }
    json_close(w, ']');
}

void model_write(const wf_tokenizer *t, struct json_writer *w)
{
    const struct model *m = &t->model;
    json_open(w, "model", '{');
    json_put_string(w, "type", type_names[m->type]);
    if (m->type == MODEL_WORD_LEVEL) {
        write_vocab(t, w);
        json_put_string(w, "unk_token", m->unknown);
    } else if (m->type == MODEL_WORDPIECE) {
        json_put_string(w, "unk_token", m->unknown);
        json_put_string(w, "continuing_subword_prefix", m->prefix);
        json_put_int(w, "max_input_chars_per_word", m->most_characters);
        write_vocab(t, w);
    } else {
        json_put_null(w, "dropout");
        json_put_string(w, "unk_token", m->unknown);
        json_put_string(w, "continuing_subword_prefix", m->prefix);
        json_put_string(w, "end_of_word_suffix", m->suffix);
        json_put_bool(w, "fuse_unk", m->fuse_unknown);
        json_put_bool(w, "byte_fallback", m->byte_fallback);
        json_put_bool(w, "ignore_merges", m->ignore_merges);
        write_vocab(t, w);
        write_merges(t, w);
    }
    json_close(w, '}');
}
