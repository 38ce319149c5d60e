/* SPDX-License-Identifier: MIT */
/* Reads and writes tokenizer.json, as the package `tokenizers` does. A reader that skipped an unknown part of the pipeline would give other
 * ids. So a file with an unknown part is an error. */
#include <inttypes.h>
#include <string.h>

#include "build.h"
#include "internal.h"
#include <weft/file.h>
#include <weft/internal/json.h>
#include <weft/internal/needs.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

static const int64_t most_bytes = (int64_t)256 << 20;
/* How often a post-processor may repeat the text, and how many special tokens it may add. Those in use have the text once. */
enum { MOST_TIMES = 16, MOST_SPECIALS = 65536 };

/* --- truncation and padding ---------------------------------------------------------------------------------------- */

static const char *const directions[] = {[DIRECTION_RIGHT] = "Right", [DIRECTION_LEFT] = "Left", NULL};
static const char *const strategies[] = {"LongestFirst", "OnlyFirst", NULL}; /* both strategies are the same for a single text */

/* The strategy of padding: "BatchLongest" or {"Fixed": length}. */
static void read_strategy(struct reader *r, const struct key *key, json_t *object, void *field)
{
    json_t *strategy = json_object_get(object, key->name);
    *(int64_t *)field = -1;
    if (json_is_object(strategy))
        keys_read(r, KEYS({"Fixed", &value_count, .most = 1 << 20}), false, strategy, field);
    else if (!json_is_string(strategy) || strcmp(json_string_value(strategy), "BatchLongest") != 0)
        reader_refuse(r, "the strategy of padding is neither BatchLongest nor Fixed");
}

static json_t *write_strategy(const void *field)
{
    int64_t fixed = *(const int64_t *)field;
    return fixed < 0 ? json_string("BatchLongest") : json_pack("{s:I}", "Fixed", (json_int_t)fixed);
}

static uint64_t hash_strategy(const void *field, uint64_t hash)
{
    return number_hash(*(const int64_t *)field, hash);
}

static const struct key_kind value_strategy = {KIND_OWN, read_strategy, write_strategy, hash_strategy};

static const struct key truncation_keys[] = {
    {"direction", &value_name, offsetof(struct truncation, direction), .optional = true, .names = directions},
    {"max_length", &value_count, offsetof(struct truncation, length)},
    {"strategy", &value_name, offsetof(struct truncation, strategy), .names = strategies},
    {"stride", &value_count, offsetof(struct truncation, stride)},
    {0}};
static const struct key padding_keys[] = {
    {"strategy", &value_strategy, offsetof(struct padding, fixed)},
    {"direction", &value_name, offsetof(struct padding, direction), .names = directions},
    {"pad_to_multiple_of", &value_count, offsetof(struct padding, multiple_of), .optional = true, .otherwise = -1, .most = 1 << 20},
    {"pad_id", &value_id, offsetof(struct padding, id)},
    {"pad_type_id", &value_count, offsetof(struct padding, type_id), .most = UINT32_MAX},
    {"pad_token", &value_text, offsetof(struct padding, token)},
    {0}};

static bool read_section(struct reader *r, json_t *root, const char *name, const struct key *keys, void *out)
{
    json_t *object = json_object_get(root, name);
    bool on = object && !json_is_null(object);
    if (on)
        keys_read(r, keys, false, reader_object(r, root, name), out);
    return on;
}

static json_t *write_section(const struct key *keys, bool on, const void *from)
{
    json_t *object = on ? json_object() : json_null();
    if (on)
        keys_write(keys, from, object);
    return object;
}

/* --- the file ------------------------------------------------------------------------------------------------------ */

static wf_tokenizer_kind kind_of(wf_tokenizer *t)
{
    if (t->model.part.type == &model_wordpiece)
        return WF_TOKENIZER_WORDPIECE;
    if (t->model.part.type == &model_bpe)
        return part_has(t->pre_tokenizer, &pre_byte_level) || part_has(t->normalizer, &normalizer_byte_level) ? WF_TOKENIZER_BYTE_BPE
                                                                                                              : WF_TOKENIZER_BPE;
    bool characters = pre_split_is_characters(t->pre_tokenizer) && !t->normalizer && t->decoder && t->decoder->type == &decoder_fuse;
    int64_t longer = 0, length;
    for (int32_t id = 0; characters && id < t->vocab.count; id++) {
        const char *piece = vocab_piece(&t->vocab, id, &length);
        longer += wf_utf8_count(piece, length) != 1;
    }
    for (int64_t i = 0; i < t->added_count; i++)
        longer -= wf_utf8_count(t->added[i].content.data, t->added[i].content.length) != 1;
    characters = characters && longer == 0;
    t->plain = characters && t->model.unknown_id < 0 && !t->post_processor && t->added_count == 0 && !t->truncation.on && !t->padding.on;
    return characters ? WF_TOKENIZER_CHAR : WF_TOKENIZER_WORD;
}

static void check_growth(struct reader *r)
{
    int64_t times = 1, added = 0;
    part_grows(r->t->post_processor, &times, &added);
    r->t->specials = added;
    if (times > MOST_TIMES || added > MOST_SPECIALS)
        reader_refuse(r,
                      "the post_processor repeats a text %" PRId64 " times and adds %" PRId64
                      " special tokens; at most %d times and %d tokens are possible",
                      times, added, MOST_TIMES, MOST_SPECIALS);
}

static void read_root(struct reader *r, json_t *root)
{
    static const char *const keys[] = {"version",       "truncation",     "padding", "added_tokens", "normalizer",
                                       "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    struct wf_json_reader in = {.object = root, .where = r->where, .error = r->error};
    wf_tokenizer *t = r->t;
    const char *version = "1.0";
    char quoted[WF_QUOTE_SIZE];
    if (!json_is_object(root)) {
        reader_refuse(r, "a tokenizer must be a JSON object");
        return;
    }
    json_t *model = reader_object(r, root, "model");
    wf_json_read_string(&in, "version", WF_JSON_REQUIRED, &version);
    if (strcmp(version, "1.0") != 0)
        reader_refuse(r, "version %s is not supported; \"1.0\" is", wf_text_quote(version, quoted));
    if (wf_json_only_keys(root, r->where, keys, r->error) != WF_OK)
        return;
    model_read(r, model);
    added_tokens_read(r, root);
    t->normalizer = part_read(r, PART_NORMALIZER, json_object_get(root, "normalizer"));
    t->pre_tokenizer = part_read(r, PART_PRE_TOKENIZER, json_object_get(root, "pre_tokenizer"));
    t->post_processor = part_read(r, PART_POST_PROCESSOR, json_object_get(root, "post_processor"));
    t->decoder = part_read(r, PART_DECODER, json_object_get(root, "decoder"));
    check_growth(r);
    t->truncation.on = read_section(r, root, "truncation", truncation_keys, &t->truncation);
    t->padding.on = read_section(r, root, "padding", padding_keys, &t->padding);
    if (t->padding.on && t->padding.id >= t->vocab.count)
        reader_refuse(r, "key \"pad_id\": %" PRId32 " is outside the vocabulary 0 .. %" PRId64, t->padding.id, t->vocab.count - 1);
    if (reader_failed(r))
        return;
    added_tokens_index(r);
    t->tracks = t->marks_first && (t->normalizer || t->pre_tokenizer->type == &pre_sequence);
    t->kind = kind_of(t);
}

wf_status tokenizer_of(json_t *root, struct tokenizer_table *table, const char *where, wf_tokenizer **out, wf_error *error)
{
    wf_error failure = {0};
    struct reader r = {.t = wf_alloc_zero(1, sizeof *r.t), .where = where, .error = &failure, .table = table};
    if (r.t)
        read_root(&r, root);
    else
        reader_no_memory(&r);
    json_decref(root);
    if (reader_failed(&r)) {
        wf_tokenizer_free(r.t);
        r.t = NULL;
    }
    *out = r.t;
    return r.t ? WF_OK : wf_error_set(error, failure.code, "%s", failure.message);
}

wf_status wf_tokenizer_load(const char *path, wf_tokenizer **out, wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = NULL;
    if (wf_needs(error, "path", path))
        return WF_ERR_ARGUMENT;
    wf_error failure = {0};
    json_t *root = wf_json_load(path, most_bytes, &failure);
    return root ? tokenizer_of(root, NULL, path, out, error) : wf_error_set(error, failure.code, "%s", failure.message);
}

wf_status wf_tokenizer_parse(const char *json, int64_t length, const char *name, wf_tokenizer **out, wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = NULL;
    if (wf_needs(error, "json", json))
        return WF_ERR_ARGUMENT;
    wf_error failure = {0};
    json_t *root = wf_json_parse(json, length, name, &failure);
    return root ? tokenizer_of(root, NULL, name, out, error) : wf_error_set(error, failure.code, "%s", failure.message);
}

wf_status wf_tokenizer_json(const wf_tokenizer *t, struct wf_string *out, wf_error *error)
{
    if (wf_needs(error, "tokenizer, out", t, out))
        return WF_ERR_ARGUMENT;
    wf_json_init();
    wf_json_memory_clear();
    json_t *root = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "version", "1.0", "truncation",
                             write_section(truncation_keys, t->truncation.on, &t->truncation), "padding",
                             write_section(padding_keys, t->padding.on, &t->padding), "added_tokens", added_tokens_write(t), "normalizer",
                             part_write(t->normalizer), "pre_tokenizer", part_write(t->pre_tokenizer), "post_processor",
                             part_write(t->post_processor), "decoder", part_write(t->decoder), "model", part_write(&t->model.part));
    int64_t bytes = 0, before = out->length;
    char *text = wf_json_memory_failed() ? NULL : wf_json_text(root, 2, &bytes, NULL);
    json_decref(root);
    bool written = text && wf_string_add(out, text, bytes - 1); /* the package writes no newline at the end */
    wf_free(text);
    if (written)
        return WF_OK;
    wf_string_cut(out, before);
    return wf_error_set(error, WF_ERR_MEMORY, "no memory to write a tokenizer of %" PRId64 " tokens", t->vocab.count);
}

uint64_t wf_tokenizer_hash(const wf_tokenizer *t)
{
    if (!t)
        return 0;
    uint64_t hash =
        keys_hash(t->model.part.type->keys, &t->model,
                  part_hash(&t->model.part, 0)); /* the model's keys are hashed twice; this must stay, because files hold such hashes */
    hash = added_tokens_hash(t, hash);
    hash = part_hash(t->decoder, part_hash(t->post_processor, part_hash(t->pre_tokenizer, part_hash(t->normalizer, hash))));
    hash = t->truncation.on ? keys_hash(truncation_keys, &t->truncation, hash) : hash;
    return t->padding.on ? keys_hash(padding_keys, &t->padding, hash) : hash;
}

wf_status wf_tokenizer_save(const wf_tokenizer *t, const char *path, wf_error *error)
{
    if (wf_needs(error, "tokenizer, path", t, path))
        return WF_ERR_ARGUMENT;
    struct wf_string text = {0};
    wf_status status = wf_tokenizer_json(t, &text, error);
    if (status == WF_OK)
        status = wf_file_save(path, text.data, text.length, error);
    wf_string_free(&text);
    return status;
}
