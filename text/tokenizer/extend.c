/* SPDX-License-Identifier: MIT */
/* Adds tokens to a tokenizer, whose own ids stay as they are. */
#include <string.h>

#include "build.h"
#include "internal.h"
#include <weft/internal/json.h>
#include <weft/internal/needs.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

/* Whether the tokenizer encodes the text as one token already. */
static bool is_token(const wf_tokenizer *t, const char *text, int64_t length)
{
    struct wf_tokens ids = {0};
    int64_t unknown = 0;
    const struct wf_encode_options o = {.whole = true, .unknown = &unknown};
    const bool encoded = wf_tokenizer_encode_with(t, text, length, &o, &ids, NULL) == WF_OK;
    const bool one = encoded && ids.count == 1 && unknown == 0;
    wf_tokens_free(&ids);
    return one;
}

static wf_status no_memory(wf_error *error)
{
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for a larger vocabulary");
}

/* Adds a token to the file's JSON: to the vocabulary, or to the added tokens. */
static bool put(json_t *root, bool in_vocabulary, const char *token, int64_t id)
{
    if (in_vocabulary)
        return json_object_set_new(json_object_get(json_object_get(root, "model"), "vocab"), token, json_integer(id)) == 0;
    json_t *added = build_added_token(token, id);
    return added && json_object_set_new(added, "special", json_false()) == 0 &&
           json_array_append_new(json_object_get(root, "added_tokens"), added) == 0;
}

/* Whether a token equals an earlier one of the list. */
static bool is_repeated(const char *const *tokens, int64_t index)
{
    for (int64_t i = 0; i < index; i++)
        if (strcmp(tokens[i], tokens[index]) == 0)
            return true;
    return false;
}

static wf_status check(const char *token, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    const int64_t length = token ? (int64_t)strlen(token) : 0;
    if (length == 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "a token to add is empty");
    if (wf_utf8_check(token, length) >= 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "a token to add is not UTF-8: %s", wf_text_quote(token, quoted));
    return WF_OK;
}

static json_t *json_of(const wf_tokenizer *t, wf_error *error)
{
    struct wf_string text = {0};
    json_t *root = wf_tokenizer_json(t, &text, error) == WF_OK ? wf_json_parse(text.data, text.length, "tokenizer.json", error) : NULL;
    wf_string_free(&text);
    return root;
}

wf_status wf_tokenizer_extend(const wf_tokenizer *tokenizer, const char *const *tokens, int64_t count, bool *added, wf_tokenizer **out,
                              wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = NULL;
    if (wf_needs(error, "tokenizer, tokens", tokenizer, wf_some(tokens, count)))
        return WF_ERR_ARGUMENT;
    json_t *root = json_of(tokenizer, error);
    wf_status status = root ? WF_OK : error ? error->code : WF_ERR_MEMORY;
    int64_t id = tokenizer->vocab.count;
    /* characters of a character tokenizer belong to its vocabulary, unless added tokens have the ids after it */
    const bool characters = tokenizer->kind == WF_TOKENIZER_CHAR && tokenizer->model.size == tokenizer->vocab.count;
    bool only = characters; /* all new tokens so far are in the vocabulary */
    for (int64_t i = 0; status == WF_OK && i < count; i++) {
        if ((status = check(tokens[i], error)) != WF_OK)
            break;
        const int64_t length = (int64_t)strlen(tokens[i]);
        const bool fresh =
            !is_token(tokenizer, tokens[i], length) && vocab_find(&tokenizer->vocab, tokens[i], length) < 0 && !is_repeated(tokens, i);
        only = only && (!fresh || wf_utf8_count(tokens[i], length) == 1);
        if (added)
            added[i] = fresh;
        if (fresh && !put(root, only, tokens[i], id++))
            status = no_memory(error);
    }
    if (status != WF_OK) {
        json_decref(root);
        return status;
    }
    return tokenizer_of(root, NULL, "the larger tokenizer", out, error);
}
