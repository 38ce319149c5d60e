/* SPDX-License-Identifier: MIT */
/* tokenizer.json, as the package `tokenizers` reads and writes it (serde_json's layout). The file describes a pipeline;
 * a reader that skipped a part of it would give other ids, so that every part must be one that we do. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tokenizer_internal.h"
#include <weft/file.h>
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

/* Oniguruma, which `tokenizers` runs, knows no (?s): this is its "any character, newlines too". */
#define EVERY_CHARACTER "[\\s\\S]"
/* The model asks for the name of a token for unknown characters. This is none of ours, so that encoding them fails there too. */
#define UNKNOWN "<unk>"

static const int64_t most_bytes = (int64_t)256 << 20;

static bool add_text(struct wf_string *out, const char *text)
{
    return string_add(out, text, (int64_t)strlen(text));
}

/* A JSON string in the shortest form, UTF-8 as it is. */
static bool add_quoted(struct wf_string *out, const char *text, int64_t length)
{
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    bool ok = add_text(out, "\"");
    for (int64_t i = 0; ok && i < length; i++) {
        char escape[8];
        const char *pair = named;
        while (*pair && *pair != text[i])
            pair += 2;
        if (text[i] && *pair)
            ok = string_add(out, (const char[]){'\\', pair[1]}, 2);
        else if ((unsigned char)text[i] < 0x20)
            ok = string_add(out, escape, snprintf(escape, sizeof escape, "\\u%04x", (unsigned)text[i]));
        else
            ok = string_add(out, text + i, 1);
    }
    return ok && add_text(out, "\"");
}

wf_status wf_tokenizer_json(const wf_tokenizer *tokenizer, struct wf_string *out, wf_error *error)
{
    int64_t before = out->length;
    bool ok = add_text(out, "{\n"
                            "  \"version\": \"1.0\",\n"
                            "  \"truncation\": null,\n"
                            "  \"padding\": null,\n"
                            "  \"added_tokens\": [],\n"
                            "  \"normalizer\": null,\n"
                            "  \"pre_tokenizer\": {\n"
                            "    \"type\": \"Split\",\n"
                            "    \"pattern\": {\n"
                            "      \"Regex\": ") &&
              add_quoted(out, EVERY_CHARACTER, sizeof EVERY_CHARACTER - 1) &&
              add_text(out, "\n    },\n"
                            "    \"behavior\": \"Isolated\",\n"
                            "    \"invert\": false\n"
                            "  },\n"
                            "  \"post_processor\": null,\n"
                            "  \"decoder\": {\n"
                            "    \"type\": \"Fuse\"\n"
                            "  },\n"
                            "  \"model\": {\n"
                            "    \"type\": \"WordLevel\",\n"
                            "    \"vocab\": {\n");
    for (int32_t id = 0; ok && id < tokenizer->vocab_size; id++) {
        char number[24];
        int64_t length;
        const char *token = wf_tokenizer_token(tokenizer, id, &length);
        snprintf(number, sizeof number, ": %" PRId32 "%s\n", id, id + 1 < tokenizer->vocab_size ? "," : "");
        ok = add_text(out, "      ") && add_quoted(out, token, length) && add_text(out, number);
    }
    ok = ok && add_text(out, "    },\n    \"unk_token\": \"" UNKNOWN "\"\n  }\n}");
    if (ok)
        return WF_OK;
    out->length = before;
    if (out->data)
        out->data[before] = 0;
    return wf_error_set(error, WF_ERR_MEMORY, "no memory to write a tokenizer of %" PRId64 " tokens", tokenizer->vocab_size);
}

wf_status wf_tokenizer_save(const wf_tokenizer *tokenizer, const char *path, wf_error *error)
{
    struct wf_string text = {0};
    wf_status status = wf_tokenizer_json(tokenizer, &text, error);
    if (status == WF_OK)
        status = wf_file_save(path, text.data, text.length, error);
    wf_string_free(&text);
    return status;
}

static const char advice[] = "this version reads character tokenizers only (a WordLevel model, split at every character)";

/* A part that must be absent, null or an empty array. */
static wf_status refuse(json_t *root, const char *where, const char *part, wf_error *error)
{
    json_t *value = json_object_get(root, part), *type = json_object_get(value, "type");
    char quoted[WF_QUOTE_SIZE];
    if (!value || json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0))
        return WF_OK;
    if (json_is_array(value))
        type = json_object_get(json_array_get(value, 0), "content");
    return wf_error_set(error, WF_ERR_FORMAT, "%s: it asks for %s%s%s; %s", where, part, json_is_string(type) ? " " : "",
                        json_is_string(type) ? wf_text_quote(json_string_value(type), quoted) : "", advice);
}

/* object[key] must be the string `expected`. */
static wf_status require(json_t *object, const char *where, const char *part, const char *key, const char *expected, wf_error *error)
{
    const char *found;
    char quoted[WF_QUOTE_SIZE];
    wf_status status = wf_json_get_string(object, where, key, WF_JSON_REQUIRED, &found, error);
    if (status == WF_OK && strcmp(found, expected) != 0)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: it asks for %s %s where \"%s\" is known; %s", where, part,
                              wf_text_quote(found, quoted), expected, advice);
    return status;
}

/* The parts around the model: nothing before it but the split into characters, nothing after it but the joining. */
static wf_status check_pipeline(json_t *root, const char *where, wf_error *error)
{
    static const char *const refused[] = {"truncation", "padding", "added_tokens", "normalizer", "post_processor"};
    json_t *split = NULL, *pattern = NULL, *decoder = NULL;
    bool invert = false;
    wf_status status = WF_OK;
    for (size_t i = 0; status == WF_OK && i < sizeof refused / sizeof *refused; i++)
        status = refuse(root, where, refused[i], error);
    if (status == WF_OK)
        status = wf_json_get_object(root, where, "pre_tokenizer", WF_JSON_REQUIRED, &split, error);
    if (status == WF_OK)
        status = require(split, where, "pre_tokenizer", "type", "Split", error);
    if (status == WF_OK)
        status = wf_json_only_keys(split, where, (const char *const[]){"type", "pattern", "behavior", "invert", NULL}, error);
    if (status == WF_OK)
        status = wf_json_get_object(split, where, "pattern", WF_JSON_REQUIRED, &pattern, error);
    if (status == WF_OK)
        status = wf_json_only_keys(pattern, where, (const char *const[]){"Regex", NULL}, error);
    if (status == WF_OK)
        status = require(pattern, where, "a split at", "Regex", EVERY_CHARACTER, error);
    if (status == WF_OK)
        status = require(split, where, "the split behavior", "behavior", "Isolated", error);
    if (status == WF_OK)
        status = wf_json_get_bool(split, where, "invert", WF_JSON_OPTIONAL, &invert, error);
    if (status == WF_OK && invert)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: it asks for an inverted split; %s", where, advice);
    if (status == WF_OK)
        status = wf_json_get_object(root, where, "decoder", WF_JSON_REQUIRED, &decoder, error);
    if (status == WF_OK)
        status = require(decoder, where, "decoder", "type", "Fuse", error);
    return status == WF_OK ? wf_json_only_keys(decoder, where, (const char *const[]){"type", NULL}, error) : status;
}

static wf_status read_root(json_t *root, const char *where, wf_tokenizer **out, wf_error *error)
{
    static const char *const keys[] = {"version",       "truncation",     "padding", "added_tokens", "normalizer",
                                       "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    json_t *model = NULL, *vocab = NULL;
    const char *unknown = UNKNOWN;
    char quoted[WF_QUOTE_SIZE];
    if (!json_is_object(root))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: a tokenizer is a JSON object, and this is not", where);
    /* The model first: its name says best what the file is. */
    wf_status status = wf_json_get_object(root, where, "model", WF_JSON_REQUIRED, &model, error);
    if (status == WF_OK)
        status = require(model, where, "model", "type", "WordLevel", error);
    if (status == WF_OK)
        status = require(root, where, "version", "version", "1.0", error);
    if (status == WF_OK)
        status = wf_json_only_keys(root, where, keys, error);
    if (status == WF_OK)
        status = check_pipeline(root, where, error);
    if (status == WF_OK)
        status = wf_json_only_keys(model, where, (const char *const[]){"type", "vocab", "unk_token", NULL}, error);
    if (status == WF_OK)
        status = wf_json_get_string(model, where, "unk_token", WF_JSON_OPTIONAL, &unknown, error);
    if (status == WF_OK)
        status = wf_json_get_object(model, where, "vocab", WF_JSON_REQUIRED, &vocab, error);
    if (status == WF_OK && json_object_get(vocab, unknown))
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: it asks for %s in the place of unknown characters; %s", where,
                              wf_text_quote(unknown, quoted), advice);
    return status == WF_OK ? tokenizer_char.parse(vocab, where, out, error) : status;
}

/* Takes the reference. `failure` is empty or says why there is no root. */
static wf_status finish(json_t *root, const char *where, wf_tokenizer **out, wf_error *failure, wf_error *error)
{
    *out = NULL;
    wf_status status = root ? read_root(root, where, out, failure) : failure->code;
    json_decref(root);
    if (status != WF_OK)
        wf_error_set(error, status, "%s", failure->message);
    return status;
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
