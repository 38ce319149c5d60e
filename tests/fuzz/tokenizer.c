/* SPDX-License-Identifier: MIT */
/* tokenizer.json under libFuzzer. A refusal gives a reason in one line. An accepted file writes one that reads back the same, and encodes
 * and decodes anything, or gives a reason. Also driven by tests/text/tokenizer_file.c. */
#include <string.h>

#include <weft/memory.h>
#include <weft/tokenizer.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void check_message(wf_status status, const wf_error *error)
{
    check((status == WF_OK) == !error->message[0] && status == error->code && !strchr(error->message, '\n'));
    check(status == WF_OK || status == WF_ERR_FORMAT || status == WF_ERR_MEMORY);
}

static void files(const wf_tokenizer *tokenizer)
{
    struct wf_string json = {0}, json2 = {0};
    wf_tokenizer *again;
    wf_error error = {0};
    check(wf_tokenizer_json(tokenizer, &json, &error) == WF_OK);
    check(wf_tokenizer_parse(json.data, json.length, "again", &again, &error) == WF_OK);
    check(wf_tokenizer_json(again, &json2, &error) == WF_OK);
    check(json.length == json2.length && !memcmp(json.data, json2.data, (size_t)json.length));
    check(wf_tokenizer_hash(tokenizer) == wf_tokenizer_hash(again));
    wf_tokenizer_free(again);
    wf_string_free(&json);
    wf_string_free(&json2);
}

/* Ids are the same with a cache, and decode to well-formed text. */
static void encode(const wf_tokenizer *tokenizer, const char *text, int64_t length)
{
    struct wf_tokens ids = {0}, ids2 = {0};
    struct wf_string back = {0};
    wf_error error = {0}, error2 = {0}, error3 = {0};
    wf_token_cache *cache = wf_token_cache_new(tokenizer, 16, &error3);
    struct wf_encode_options plain = {.specials = true}, cached = {.specials = true, .cache = cache};
    wf_status status = wf_tokenizer_encode_with(tokenizer, text, length, &plain, &ids, &error);
    check_message(status, &error);
    check(cache && wf_tokenizer_encode_with(tokenizer, text, length, &cached, &ids2, &error2) == status);
    check(ids.count == ids2.count && (ids.count == 0 || !memcmp(ids.id, ids2.id, (size_t)ids.count * sizeof *ids.id)));
    check(!strcmp(error.message, error2.message));
    if (status == WF_OK)
        check_message(wf_tokenizer_decode(tokenizer, ids.id, ids.count, &back, &error), &error);
    wf_token_cache_free(cache);
    wf_tokens_free(&ids);
    wf_tokens_free(&ids2);
    wf_string_free(&back);
}

/* Characters: every token by itself gives its id back. */
static void characters(const wf_tokenizer *tokenizer)
{
    struct wf_string text = {0};
    struct wf_tokens ids = {0};
    wf_error error = {0};
    for (int32_t id = 0; id < wf_tokenizer_vocab_size(tokenizer); id++)
        check(wf_tokenizer_decode(tokenizer, &id, 1, &text, &error) == WF_OK);
    check(wf_tokenizer_encode(tokenizer, text.data, text.length, &ids, &error) == WF_OK);
    check(ids.count == wf_tokenizer_vocab_size(tokenizer));
    for (int64_t i = 0; i < ids.count; i++)
        check(ids.id[i] == i);
    wf_tokens_free(&ids);
    wf_string_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] =
        "The m\xC3\xA4n's e\xCC\x81\xCC\xA3 12,5 \xE2\x96\x81 <s>\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7\r\n \xEF\xBB\xBF\xC2\xA0"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa [SEP] \xED\x95\x9C\xEF\xBE\xA1";
    wf_tokenizer *tokenizer;
    wf_error error = {0};
    wf_status status = wf_tokenizer_parse((const char *)data, (int64_t)size, "fuzz", &tokenizer, &error);
    check((status == WF_OK) == (tokenizer != NULL));
    check_message(status, &error);
    if (!tokenizer)
        return 0;
    files(tokenizer);
    encode(tokenizer, text, sizeof text - 1);
    encode(tokenizer, (const char *)data, (int64_t)(size < 400 ? size : 400));
    for (int32_t id = 0; id < wf_tokenizer_vocab_size(tokenizer) && id < 400; id++) {
        int64_t length;
        const char *token = wf_tokenizer_token(tokenizer, id, &length);
        check(wf_tokenizer_id(tokenizer, token, length) == (length > 0 ? id : -1));
    }
    if (wf_tokenizer_kind_of(tokenizer) == WF_TOKENIZER_CHAR)
        characters(tokenizer);
    wf_tokenizer_free(tokenizer);
    return 0;
}
