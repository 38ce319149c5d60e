/* SPDX-License-Identifier: MIT */
/* Tokenizers of every kind against the package `tokenizers`: its files, its ids and its texts (tests/golden/make_tokenizers.py). */
#include <jansson.h>

#include "../data/data_test.h"

static const wf_tokenizer_kind kinds[GOLDEN_TOKENIZERS] = {
    WF_TOKENIZER_BPE,      WF_TOKENIZER_BPE,      WF_TOKENIZER_BPE,       WF_TOKENIZER_BPE,       WF_TOKENIZER_BPE,  WF_TOKENIZER_BYTE_BPE,
    WF_TOKENIZER_BYTE_BPE, WF_TOKENIZER_BYTE_BPE, WF_TOKENIZER_WORDPIECE, WF_TOKENIZER_WORDPIECE, WF_TOKENIZER_WORD, WF_TOKENIZER_WORD,
    WF_TOKENIZER_BPE,      WF_TOKENIZER_BPE,      WF_TOKENIZER_BPE,       WF_TOKENIZER_BPE,       WF_TOKENIZER_BPE,  WF_TOKENIZER_BPE,
    WF_TOKENIZER_BPE,      WF_TOKENIZER_BPE,      WF_TOKENIZER_WORDPIECE,
};

static char *file(const char *name, const char *ending, int64_t *bytes)
{
    char *path = wf_format("../tokenizers/%s.%s", name, ending), *data = golden(path, bytes);
    wf_free(path);
    return data;
}

static json_t *json_file(const char *name, const char *ending)
{
    int64_t bytes;
    char *data = file(name, ending, &bytes);
    json_error_t problem;
    json_t *value = json_loadb(data, (size_t)bytes, JSON_ALLOW_NUL, &problem);
    ck_assert_msg(value != NULL, "%s: %s", name, problem.text);
    wf_free(data);
    return value;
}

static void same_ids(const struct wf_tokens *ids, json_t *expected, const char *name, size_t text)
{
    ck_assert_msg(ids->count == (int64_t)json_array_size(expected), "%s, text %zu: %d ids instead of %zu", name, text, (int)ids->count,
                  json_array_size(expected));
    for (int64_t i = 0; i < ids->count; i++)
        ck_assert_msg(ids->id[i] == json_integer_value(json_array_get(expected, (size_t)i)), "%s, text %zu, id %d: %d", name, text, (int)i,
                      (int)ids->id[i]);
}

START_TEST(ids_and_texts)
{
    json_t *texts = json_file("texts", "json");
    for (int k = 0; k < GOLDEN_TOKENIZERS; k++) {
        wf_tokenizer *t = golden_tokenizer(golden_tokenizers[k]);
        json_t *cases = json_file(golden_tokenizers[k], "cases");
        wf_token_cache *small = wf_token_cache_new(t, 4, NULL), *large = wf_token_cache_new(t, 1000, NULL);
        ck_assert_int_eq(wf_tokenizer_kind_of(t), kinds[k]);
        ck_assert_uint_eq(json_array_size(cases), json_array_size(texts));
        for (size_t i = 0; i < json_array_size(texts); i++) {
            json_t *text = json_array_get(texts, i), *ids = json_array_get(json_array_get(cases, i), 0),
                   *back = json_array_get(json_array_get(cases, i), 1);
            const char *data = json_string_value(text);
            int64_t length = (int64_t)json_string_length(text);
            wf_token_cache *const caches[] = {NULL, small, large, large};
            for (int c = 0; c < 4; c++) {
                struct wf_tokens out = {0};
                struct wf_encode_options options = {.specials = true, .cache = caches[c]};
                ck_ok(wf_tokenizer_encode_with(t, data, length, &options, &out, error));
                same_ids(&out, ids, golden_tokenizers[k], i);
                struct wf_string decoded = {0};
                ck_ok(wf_tokenizer_decode(t, out.id, out.count, &decoded, error));
                ck_assert_msg(has_bytes(&decoded, json_string_value(back), (int64_t)json_string_length(back)),
                              "%s, text %zu: \"%s\" instead of \"%s\"", golden_tokenizers[k], i, decoded.data ? decoded.data : "",
                              json_string_value(back));
                wf_string_free(&decoded);
                wf_tokens_free(&out);
            }
        }
        wf_token_cache_free(small);
        wf_token_cache_free(large);
        json_decref(cases);
        wf_tokenizer_free(t);
    }
    json_decref(texts);
}
END_TEST

/* We write what the package writes: the same bytes if its file has line breaks, else the same values. */
START_TEST(files)
{
    for (int k = 0; k < GOLDEN_TOKENIZERS; k++) {
        int64_t bytes;
        char *data = file(golden_tokenizers[k], "json", &bytes);
        wf_tokenizer *t = golden_tokenizer(golden_tokenizers[k]), *again;
        struct wf_string json = {0}, json2 = {0};
        ck_ok(wf_tokenizer_json(t, &json, error));
        if (memchr(data, '\n', (size_t)bytes)) {
            ck_assert_msg(has_bytes(&json, data, bytes), "%s: other bytes", golden_tokenizers[k]);
        } else {
            json_t *a = json_loadb(data, (size_t)bytes, 0, NULL), *b = json_loadb(json.data, (size_t)json.length, 0, NULL);
            ck_assert_msg(json_equal(a, b), "%s: another value", golden_tokenizers[k]);
            json_decref(a);
            json_decref(b);
        }
        ck_ok(wf_tokenizer_parse(json.data, json.length, "again", &again, error));
        ck_ok(wf_tokenizer_json(again, &json2, error));
        ck_assert_str_eq(json.data, json2.data);
        ck_assert_uint_eq(wf_tokenizer_hash(t), wf_tokenizer_hash(again));
        for (int other = 0; other < k; other++) {
            wf_tokenizer *o = golden_tokenizer(golden_tokenizers[other]);
            ck_assert_uint_ne(wf_tokenizer_hash(t), wf_tokenizer_hash(o));
            wf_tokenizer_free(o);
        }
        wf_tokenizer_free(t);
        wf_tokenizer_free(again);
        wf_string_free(&json);
        wf_string_free(&json2);
        wf_free(data);
    }
}
END_TEST

/* Byte BPE gives back any text, specials aside. */
START_TEST(bytes_come_back)
{
    json_t *texts = json_file("texts", "json");
    static const char *const byte_names[] = {"byte_gpt2", "byte_gpt4"};
    for (int k = 0; k < 2; k++) {
        wf_tokenizer *t = golden_tokenizer(byte_names[k]);
        for (size_t i = 0; i < json_array_size(texts); i++) {
            json_t *text = json_array_get(texts, i);
            int64_t length = (int64_t)json_string_length(text);
            struct wf_tokens ids = {0};
            struct wf_string back = {0};
            ck_ok(wf_tokenizer_encode(t, json_string_value(text), length, &ids, error));
            ck_ok(wf_tokenizer_decode_with(t, ids.id, ids.count, &(struct wf_decode_options){.specials = true}, &back, error));
            if (!strstr(json_string_value(text), "<mask>")) /* it takes the spaces before it */
                ck_assert(has_bytes(&back, json_string_value(text), length));
            wf_tokens_free(&ids);
            wf_string_free(&back);
        }
        wf_tokenizer_free(t);
    }
    json_decref(texts);
}
END_TEST

static wf_status load_and_use(void *path, wf_error *error)
{
    static const char text[] = "The m\xC3\xA4n, <s> e\xCC\x81 it's\xC2\xA0 123 standing";
    wf_tokenizer *t = NULL;
    struct wf_tokens ids = {0};
    struct wf_string back = {0}, json = {0};
    wf_status status = wf_tokenizer_load(path, &t, error);
    wf_token_cache *cache = status == WF_OK ? wf_token_cache_new(t, 8, error) : NULL;
    if (status == WF_OK)
        status = error->code;
    for (int i = 0; status == WF_OK && i < 2; i++) {
        struct wf_encode_options options = {.specials = true, .cache = i ? cache : NULL};
        ids.count = 0;
        status = wf_tokenizer_encode_with(t, text, sizeof text - 1, &options, &ids, error);
    }
    if (status == WF_OK)
        status = wf_tokenizer_decode(t, ids.id, ids.count, &back, error);
    if (status == WF_OK)
        status = wf_tokenizer_json(t, &json, error);
    wf_token_cache_free(cache);
    wf_tokenizer_free(t);
    wf_tokens_free(&ids);
    wf_string_free(&back);
    wf_string_free(&json);
    return status;
}

START_TEST(no_memory)
{
    static const char *const small[] = {"word_delimiter", "split_removed", "word", "limited", "byte_gpt4"};
    for (int k = 0; k < 5; k++) {
        char *file = wf_format("../tokenizers/%s.json", small[k]), *path = golden_path(file);
        ck_assert_int_ge(sweep_memory(load_and_use, path), 50);
        wf_free(path);
        wf_free(file);
    }
}
END_TEST

WF_TEST_MAIN("tokenizer_golden", ids_and_texts, files, bytes_come_back, no_memory)
