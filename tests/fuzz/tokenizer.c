/* SPDX-License-Identifier: MIT */
/* libFuzzer entry for tokenizer.json: clang -fsanitize=fuzzer,address,undefined with the sources of core, io and data. What is
 * refused must say why in one line; what is accepted must round-trip. tests/data/tokenizer_file.c drives it too. */
#include <string.h>

#include <weft/memory.h>
#include <weft/tokenizer.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void round_trip(const wf_tokenizer *tokenizer)
{
    struct wf_string json = {0}, json2 = {0}, text = {0};
    struct wf_tokens ids = {0};
    wf_tokenizer *again;
    wf_error error = {0};
    check(wf_tokenizer_json(tokenizer, &json, &error) == WF_OK);
    check(wf_tokenizer_parse(json.data, json.length, "again", &again, &error) == WF_OK);
    check(wf_tokenizer_json(again, &json2, &error) == WF_OK);
    check(json.length == json2.length && !memcmp(json.data, json2.data, (size_t)json.length));
    for (int32_t id = 0; id < wf_tokenizer_vocab_size(tokenizer); id++)
        check(wf_tokenizer_decode(tokenizer, &id, 1, &text, &error) == WF_OK);
    check(wf_tokenizer_encode(tokenizer, text.data, text.length, &ids, &error) == WF_OK);
    check(ids.count == wf_tokenizer_vocab_size(tokenizer));
    for (int64_t i = 0; i < ids.count; i++)
        check(ids.id[i] == i);
    wf_tokenizer_free(again);
    wf_tokens_free(&ids);
    wf_string_free(&text);
    wf_string_free(&json);
    wf_string_free(&json2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    wf_tokenizer *tokenizer;
    wf_error error = {0};
    wf_status status = wf_tokenizer_parse((const char *)data, (int64_t)size, "fuzz", &tokenizer, &error);
    check((status == WF_OK) == (tokenizer != NULL) && (status == WF_OK) == !error.message[0] && !strchr(error.message, '\n'));
    if (tokenizer)
        round_trip(tokenizer);
    wf_tokenizer_free(tokenizer);
    return 0;
}
