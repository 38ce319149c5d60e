/* SPDX-License-Identifier: MIT */
/* tokenizer.json, as the package `tokenizers` reads and writes it. The file describes a pipeline; a reader that skipped a part of it would
 * give other ids, so that every part must be one that we do. */
#include <inttypes.h>
#include <string.h>

#include "pipeline.h"
#include <weft/file.h>
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

static const int64_t most_bytes = (int64_t)256 << 20;

/* What a batch is padded with; a single text only by a fixed length or a multiple. */
static wf_status read_padding(wf_tokenizer *t, json_t *root, const char *where, wf_error *error)
{
    static const char *const keys[] = {"strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token", NULL};
    json_t *padding = NULL, *strategy;
    const char *direction = "Right";
    int64_t id = 0, multiple = 0;
    wf_status status = wf_json_get_object(root, where, "padding", WF_JSON_OPTIONAL, &padding, error);
    if (status != WF_OK || !padding)
        return status;
    strategy = json_object_get(padding, "strategy");
    status = wf_json_only_keys(padding, where, keys, error);
    if (status == WF_OK)
        status = wf_json_get_string(padding, where, "direction", WF_JSON_REQUIRED, &direction, error);
    if (status == WF_OK)
        status = wf_json_get_int(padding, where, "pad_to_multiple_of", WF_JSON_OPTIONAL, 0, 1 << 20, &multiple, error);
    if (status == WF_OK)
        status = wf_json_get_int(padding, where, "pad_id", WF_JSON_REQUIRED, 0, t->vocab.count - 1, &id, error);
    if (status == WF_OK)
        status = wf_json_get_int(padding, where, "pad_type_id", WF_JSON_REQUIRED, 0, UINT32_MAX, &t->padding.type_id, error);
    if (status == WF_OK)
        status = part_text(t, padding, "pad_token", where, &t->padding.token, NULL, error);
    if (status == WF_OK && json_is_object(strategy)) {
        t->padding.fixed = true;
        status = wf_json_only_keys(strategy, where, (const char *const[]){"Fixed", NULL}, error);
        if (status == WF_OK)
            status = wf_json_get_int(strategy, where, "Fixed", WF_JSON_REQUIRED, 0, 1 << 20, &t->padding.length, error);
    } else if (status == WF_OK && (!json_is_string(strategy) || strcmp(json_string_value(strategy), "BatchLongest") != 0)) {
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: the strategy of padding is neither BatchLongest nor Fixed", where);
    }
    t->padding.on = true;
    t->padding.left = !strcmp(direction, "Left");
    if (status == WF_OK && !t->padding.left && strcmp(direction, "Right") != 0)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: the direction of padding is neither Left nor Right", where);
    t->padding.id = (int32_t)id;
    t->padding.multiple = json_is_integer(json_object_get(padding, "pad_to_multiple_of"));
    t->padding.multiple_of = multiple;
    return status;
}

static wf_status read_truncation(wf_tokenizer *t, json_t *root, const char *where, wf_error *error)
{
    static const char *const strategies[] = {"LongestFirst", "OnlyFirst", "OnlySecond"};
    json_t *truncation = NULL;
    const char *direction = "Right", *strategy = NULL;
    wf_status status = wf_json_get_object(root, where, "truncation", WF_JSON_OPTIONAL, &truncation, error);
    if (status != WF_OK || !truncation)
        return status;
    status = wf_json_only_keys(truncation, where, (const char *const[]){"direction", "max_length", "strategy", "stride", NULL}, error);
    if (status == WF_OK)
        status = wf_json_get_string(truncation, where, "direction", WF_JSON_OPTIONAL, &direction, error);
    if (status == WF_OK)
        status = wf_json_get_int(truncation, where, "max_length", WF_JSON_REQUIRED, 0, INT64_MAX, &t->truncation.length, error);
    if (status == WF_OK)
        status = wf_json_get_int(truncation, where, "stride", WF_JSON_REQUIRED, 0, INT64_MAX, &t->truncation.stride, error);
    if (status == WF_OK)
        status = wf_json_get_string(truncation, where, "strategy", WF_JSON_REQUIRED, &strategy, error);
    for (int i = 0; status == WF_OK && i < 3; i++)
        if (!strcmp(strategy, strategies[i]))
            t->truncation.strategy = strategies[i];
    t->truncation.on = true;
    t->truncation.left = !strcmp(direction, "Left");
    if (status == WF_OK && (!t->truncation.strategy || t->truncation.strategy == strategies[2]))
        status = part_refuse("the strategy of truncation", strategy, where, error);
    if (status == WF_OK && !t->truncation.left && strcmp(direction, "Right") != 0)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: the direction of truncation is neither Left nor Right", where);
    return status;
}

static wf_tokenizer_kind kind_of(const wf_tokenizer *t)
{
    bool characters = t->model.type == MODEL_WORD_LEVEL && t->model.unknown_id < 0 && !t->normalizer && !t->template &&
                      t->added_count == 0 && !t->truncation.on && !t->padding.on && pre_tokenizer_is_characters(t->pre_tokenizer) &&
                      decoder_is_fuse(t->decoder);
    for (int32_t id = 0; characters && id < t->vocab.count; id++) {
        int64_t length, points = 0;
        const char *piece = vocab_piece(&t->vocab, id, &length);
        for (int64_t i = 0; i < length; i++)
            points += (piece[i] & 0xC0) != 0x80;
        characters = points == 1;
    }
    if (t->model.type == MODEL_WORDPIECE)
        return WF_TOKENIZER_WORDPIECE;
    if (t->model.type == MODEL_BPE)
        return pre_tokenizer_has_bytes(t->pre_tokenizer) || normalizer_has_bytes(t->normalizer) ? WF_TOKENIZER_BYTE_BPE : WF_TOKENIZER_BPE;
    return characters ? WF_TOKENIZER_CHAR : WF_TOKENIZER_WORD;
}

static wf_status read_parts(wf_tokenizer *t, json_t *root, json_t *model, json_t *added, const char *where, wf_error *error)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < json_array_size(added); i++)
        bytes += (int64_t)json_string_length(json_object_get(json_array_get(added, i), "content"));
    wf_status status = model_read(t, model, (int64_t)json_array_size(added), bytes, where, error);
    if (status == WF_OK)
        status = added_tokens_read(t, added, where, error);
    if (status == WF_OK)
        status = normalizer_read(t, json_object_get(root, "normalizer"), where, &t->normalizer, error);
    if (status == WF_OK)
        status = pre_tokenizer_read(t, json_object_get(root, "pre_tokenizer"), where, &t->pre_tokenizer, error);
    if (status == WF_OK)
        status = template_read(t, json_object_get(root, "post_processor"), where, &t->template, error);
    if (status == WF_OK)
        status = decoder_read(t, json_object_get(root, "decoder"), where, &t->decoder, error);
    if (status == WF_OK)
        status = read_truncation(t, root, where, error);
    if (status == WF_OK)
        status = read_padding(t, root, where, error);
    if (status == WF_OK)
        status = model_index(t, where, error);
    if (status == WF_OK)
        status = added_tokens_index(t, where, error);
    if (status != WF_OK)
        return status;
    t->tracks = pre_tokenizer_needs_origin(t->pre_tokenizer) && (t->normalizer || pre_tokenizer_has_steps(t->pre_tokenizer));
    t->kind = kind_of(t);
    return WF_OK;
}

static wf_status read_root(json_t *root, const char *where, wf_tokenizer *t, wf_error *error)
{
    static const char *const keys[] = {"version",       "truncation",     "padding", "added_tokens", "normalizer",
                                       "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    json_t *model = NULL, *added = NULL;
    const char *version;
    char quoted[WF_QUOTE_SIZE];
    if (!json_is_object(root))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: a tokenizer is a JSON object, and this is not", where);
    wf_status status = wf_json_get_object(root, where, "model", WF_JSON_REQUIRED, &model, error);
    if (status == WF_OK)
        status = wf_json_get_string(root, where, "version", WF_JSON_REQUIRED, &version, error);
    if (status == WF_OK && strcmp(version, "1.0") != 0)
        status =
            wf_error_set(error, WF_ERR_FORMAT, "%s: it asks for version %s where \"1.0\" is known", where, wf_text_quote(version, quoted));
    if (status == WF_OK)
        status = wf_json_only_keys(root, where, keys, error);
    if (status == WF_OK)
        status = wf_json_get_array(root, where, "added_tokens", WF_JSON_OPTIONAL, &added, error);
    return status == WF_OK ? read_parts(t, root, model, added, where, error) : status;
}

/* Takes the reference. `failure` is empty or says why there is no root. */
static wf_status finish(json_t *root, const char *where, wf_tokenizer **out, wf_error *failure, wf_error *error)
{
    wf_tokenizer *t = root ? wf_alloc_zero(1, sizeof *t) : NULL;
    *out = NULL;
    wf_status status = failure->code;
    if (root)
        status = t ? read_root(root, where, t, failure) : part_no_memory(where, failure);
    json_decref(root);
    if (status == WF_OK) {
        *out = t;
        return WF_OK;
    }
    wf_tokenizer_free(t);
    return wf_error_set(error, status, "%s", failure->message);
}

wf_status wf_tokenizer_load(const char *path, wf_tokenizer **out, wf_error *error)
{
    wf_error failure = {0};
    return finish(wf_json_load(path, most_bytes, &failure), path, out, &failure, error);
}

wf_status wf_tokenizer_parse(const char *json, int64_t length, const char *name, wf_tokenizer **out, wf_error *error)
{
    wf_error failure = {0};
    return finish(wf_json_parse(json, length, name, &failure), name, out, &failure, error);
}

static void write_file(const wf_tokenizer *t, struct json_writer *w)
{
    json_open(w, NULL, '{');
    json_put_string(w, "version", "1.0");
    if (t->truncation.on) {
        json_open(w, "truncation", '{');
        json_put_string(w, "direction", t->truncation.left ? "Left" : "Right");
        json_put_int(w, "max_length", t->truncation.length);
        json_put_string(w, "strategy", t->truncation.strategy);
        json_put_int(w, "stride", t->truncation.stride);
        json_close(w, '}');
    } else {
        json_put_null(w, "truncation");
    }
    if (t->padding.on) {
        json_open(w, "padding", '{');
        if (t->padding.fixed) {
            json_open(w, "strategy", '{');
            json_put_int(w, "Fixed", t->padding.length);
            json_close(w, '}');
        } else {
            json_put_string(w, "strategy", "BatchLongest");
        }
        json_put_string(w, "direction", t->padding.left ? "Left" : "Right");
        if (t->padding.multiple)
            json_put_int(w, "pad_to_multiple_of", t->padding.multiple_of);
        else
            json_put_null(w, "pad_to_multiple_of");
        json_put_int(w, "pad_id", t->padding.id);
        json_put_int(w, "pad_type_id", t->padding.type_id);
        json_put_string(w, "pad_token", t->padding.token);
        json_close(w, '}');
    } else {
        json_put_null(w, "padding");
    }
    added_tokens_write(t, w);
    normalizer_write(t->normalizer, "normalizer", w);
    pre_tokenizer_write(t->pre_tokenizer, "pre_tokenizer", w);
    template_write(t->template, "post_processor", w);
    decoder_write(t->decoder, "decoder", w);
    model_write(t, w);
    json_close(w, '}');
}

wf_status wf_tokenizer_json(const wf_tokenizer *t, struct wf_string *out, wf_error *error)
{
    int64_t before = out->length;
    struct json_writer w = {.out = out};
    write_file(t, &w);
    if (!w.failed)
        return WF_OK;
    out->length = before;
    if (out->data)
        out->data[before] = 0;
    return wf_error_set(error, WF_ERR_MEMORY, "no memory to write a tokenizer of %" PRId64 " tokens", t->vocab.count);
}

uint64_t wf_tokenizer_hash(const wf_tokenizer *t)
{
    struct json_writer w = {.hash = 0};
    write_file(t, &w);
    return w.hash;
}

wf_status wf_tokenizer_save(const wf_tokenizer *t, const char *path, wf_error *error)
{
    struct wf_string text = {0};
    wf_status status = wf_tokenizer_json(t, &text, error);
    if (status == WF_OK)
        status = wf_file_save(path, text.data, text.length, error);
    wf_string_free(&text);
    return status;
}
