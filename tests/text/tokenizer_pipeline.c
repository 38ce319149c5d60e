/* SPDX-License-Identifier: MIT */
/* Beyond the comparison with the package: places of faults, special tokens of trained tokenizers, caches, threads, very long words, old
 * files. */
#include <jansson.h>

#include "../data/data_test.h"

static wf_status parse(char *json, wf_tokenizer **out, wf_error *error)
{
    return wf_tokenizer_parse(json, (int64_t)strlen(json), "x.json", out, error);
}

/* A tokenizer of these parts, in JSON; NULL: null. */
static wf_tokenizer *made(const char *model, const char *normalizer, const char *pre, const char *added)
{
    char *json = wf_format("{\"version\": \"1.0\", \"model\": %s, \"normalizer\": %s, \"pre_tokenizer\": %s, \"added_tokens\": [%s]}",
                           model, normalizer ? normalizer : "null", pre ? pre : "null", added ? added : "");
    wf_tokenizer *t;
    ck_ok(parse(json, &t, error));
    wf_free(json);
    return t;
}

#define WORDS "{\"type\": \"WordLevel\", \"vocab\": {\"a\": 0, \"b\": 1, \"fi\": 2}, \"unk_token\": \"<unk>\"}"
#define LETTERS "{\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"\xE2\x96\x81\": 2, \"ab\": 3}, \"merges\": [[\"a\", \"b\"]]}"
#define WHITESPACE "{\"type\": \"Whitespace\"}"
#define ADDED_TOKEN(id, content)                                                                                                           \
    "{\"id\": " id ", \"content\": \"" content                                                                                             \
    "\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": true}"
#define METASPACE "{\"type\": \"Metaspace\", \"replacement\": \"\xE2\x96\x81\"}"

START_TEST(places_of_faults)
{
    static const struct {
        const char *model, *normalizer, *pre, *text, *message;
    } cases[] = {
        {WORDS, NULL, WHITESPACE, "a b\n a Xy b", "line 2, column 4 (offset 7): the word \"Xy\" is not in the vocabulary of 3 tokens"},
        {WORDS, "{\"type\": \"Lowercase\"}", WHITESPACE, "A B\nB Xy", "line 2, column 3 (offset 6): the word \"xy\""},
        {WORDS, "{\"type\": \"NFKC\"}", WHITESPACE, "\xEF\xAC\x81 \xEF\xAC\x81 \xEF\xAC\x82",
         "line 1, column 5 (offset 8): the word \"fl\""},
        {WORDS,
         "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Strip\", \"strip_left\": true, \"strip_right\": true}, "
         "{\"type\": \"Replace\", \"pattern\": {\"String\": \"b\"}, \"content\": \"a a a\"}, {\"type\": \"StripAccents\"}]}",
         WHITESPACE, "  b \xC3\xA9", "line 1, column 5 (offset 4): the word \"\xC3\xA9\""},
        {LETTERS, NULL, METASPACE, "ab a\nc", "line 1, column 5 (offset 4): the character U+000A is not"},
        {LETTERS, NULL, METASPACE, "ab abca", "line 1, column 6 (offset 5): the character U+0063 'c'"},
        {LETTERS, "{\"type\": \"Prepend\", \"prepend\": \"b\"}", METASPACE, "ab c",
         "line 1, column 4 (offset 3): the character U+0063 'c'"},
        {LETTERS, NULL, METASPACE, "ab a\xFF", "line 1, column 5 (offset 4): not UTF-8: byte 0xFF"},
        {LETTERS, NULL, "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true}", "ab\n",
         "(offset 2): the byte 0x0A is not"},
        {LETTERS, NULL, "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(?:a|aa)+[bc]\"}, \"behavior\": \"Isolated\", \"invert\": false}",
         "b\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaad",
         "a pattern of the tokenizer takes too long"},
        {LETTERS, "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"(?:a|aa)+[bc]\"}, \"content\": \"a\"}", NULL,
         "b\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaad",
         "a pattern of the tokenizer takes too long"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wf_tokenizer *t = made(cases[i].model, cases[i].normalizer, cases[i].pre, NULL);
        struct wf_tokens ids = {0};
        ck_ok(wf_tokenizer_encode(t, "a", 1, &ids, error));
        int64_t before = ids.count;
        ck_fails(wf_tokenizer_encode(t, cases[i].text, (int64_t)strlen(cases[i].text), &ids, error), WF_ERR_FORMAT, cases[i].message);
        ck_assert_int_eq(ids.count, before);
        wf_tokens_free(&ids);
        wf_tokenizer_free(t);
    }
}
END_TEST

static const char corpus[] = "the man sees the dog\nthe dog sees a man in the sun\na man and a dog run in the sun\n";

START_TEST(trained)
{
    const struct {
        struct wf_tokenizer_options options;
        int32_t special[5];
        const char *back;
    } cases[] = {
        {{.kind = WF_TOKENIZER_BPE, .vocab_size = 40}, {0, 2, 1, 3, -1}, "the man <s> sees"},
        {{.kind = WF_TOKENIZER_BYTE_BPE, .vocab_size = 280}, {0, 2, 1, -1, -1}, "the man <s> sees"},
        {{.kind = WF_TOKENIZER_WORD}, {1, 2, 0, -1, -1}, NULL},
        {{.kind = WF_TOKENIZER_WORD, .specials = (const char *const[]){"[UNK]", "[PAD]", "[MASK]"}, .special_count = 3},
         {-1, -1, 1, 0, 2},
         NULL},
        {{.kind = WF_TOKENIZER_BPE, .vocab_size = 40, .other_pre_tokenizer = true, .pre_tokenizer = WF_WHITESPACE}, {0, 2, 1, 3, -1}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wf_tokenizer *t, *again;
        struct wf_tokens ids = {0};
        struct wf_string json = {0}, text = {0};
        ck_ok(wf_tokenizer_train_with(corpus, sizeof corpus - 1, &cases[i].options, &t, error));
        ck_assert_int_eq(wf_tokenizer_kind_of(t), cases[i].options.kind);
        for (int k = 0; k < 5; k++)
            ck_assert_int_eq(wf_tokenizer_special(t, (enum wf_special)k), cases[i].special[k]);
        ck_ok(wf_tokenizer_json(t, &json, error));
        ck_ok(wf_tokenizer_parse(json.data, json.length, "json", &again, error));
        ck_assert_uint_eq(wf_tokenizer_hash(t), wf_tokenizer_hash(again));
        ck_assert_int_eq(wf_tokenizer_kind_of(again), cases[i].options.kind);
        int32_t bos = cases[i].special[0], eos = cases[i].special[1];
        ck_ok(wf_tokenizer_encode_with(again, "the man", 7, &(struct wf_encode_options){.specials = true}, &ids, error));
        ck_assert(bos < 0 || ids.id[0] == bos);
        ck_assert(eos < 0 || ids.id[ids.count - 1] == eos);
        ck_ok(wf_tokenizer_decode(t, ids.id, ids.count, &text, error));
        if (cases[i].options.kind != WF_TOKENIZER_BPE || !cases[i].options.other_pre_tokenizer)
            ck_assert_str_eq(text.data, "the man");
        if (cases[i].back) { /* a special token in the text is that token */
            int64_t unknown = 0;
            ids.count = text.length = 0;
            struct wf_encode_options options = {.unknown = &unknown};
            ck_ok(wf_tokenizer_encode_with(t, "the man <s> sees", 16, &options, &ids, error));
            ck_ok(wf_tokenizer_decode_with(t, ids.id, ids.count, &(struct wf_decode_options){.specials = true}, &text, error));
            ck_assert_ptr_nonnull(strstr(text.data, "<s>"));
            ck_assert_int_eq(unknown, 0);
        }
        wf_tokens_free(&ids);
        wf_string_free(&text);
        wf_string_free(&json);
        wf_tokenizer_free(t);
        wf_tokenizer_free(again);
    }
}
END_TEST

START_TEST(unknown_tokens)
{
    wf_tokenizer *t = golden_tokenizer("bpe_whitespace");
    struct wf_tokens ids = {0};
    int64_t unknown = 5;
    struct wf_encode_options options = {.specials = true, .unknown = &unknown};
    ck_ok(wf_tokenizer_encode_with(t, "the \xE4\xB8\xAD\xE4\xB8\xAD man \xE4\xB8\xAD", 18, &options, &ids, error));
    ck_assert_int_eq(unknown, 8);
    ck_assert_int_eq(wf_tokenizer_special(t, WF_SPECIAL_UNKNOWN), 3);
    ids.count = 0;
    ck_ok(wf_tokenizer_encode_with(t, "", 0, &options, &ids, error));
    ck_assert_int_eq(ids.count, 2); /* <s> </s> */
    wf_tokens_free(&ids);
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(invalid_options)
{
    wf_tokenizer *t, *other = golden_tokenizer("word");
    struct wf_tokens ids = {0};
    ck_fails(wf_tokenizer_train("ab", 2, &t, error, .kind = WF_TOKENIZER_WORDPIECE), WF_ERR_ARGUMENT, "not trained");
    ck_fails(wf_tokenizer_train("ab", 2, &t, error, .kind = WF_TOKENIZER_BYTE_BPE, .other_pre_tokenizer = true), WF_ERR_ARGUMENT,
             "byte-bpe");
    ck_fails(wf_tokenizer_train("ab", 2, &t, error, .other_pre_tokenizer = true), WF_ERR_ARGUMENT, "char");
    ck_fails(wf_tokenizer_train("ab", 2, &t, error, .special_count = 1), WF_ERR_ARGUMENT, "specials is NULL");
    ck_fails(wf_tokenizer_train("", 0, &t, error, .kind = WF_TOKENIZER_BPE), WF_ERR_FORMAT, "empty");
    ck_fails(wf_tokenizer_train_files(NULL, 0, &t, error, .kind = WF_TOKENIZER_BPE), WF_ERR_ARGUMENT, "no text file");
    ck_fails_null(wf_token_cache_new(other, 0, error), WF_ERR_ARGUMENT, "");
    wf_token_cache *cache = wf_token_cache_new(other, 10, NULL);
    t = golden_tokenizer("never");
    struct wf_encode_options options = {.cache = cache};
    ck_fails(wf_tokenizer_encode_with(t, "a", 1, &options, &ids, error), WF_ERR_ARGUMENT, "another tokenizer");
    wf_tokenizer_kind kind;
    ck_assert(wf_tokenizer_kind_parse("byte-bpe", &kind) && kind == WF_TOKENIZER_BYTE_BPE && !wf_tokenizer_kind_parse("unigram", &kind));
    wf_token_cache_free(cache);
    wf_token_cache_free(NULL);
    wf_tokenizer_free(t);
    wf_tokenizer_free(other);
    wf_tokens_free(&ids);
}
END_TEST

/* With a cache nothing is allocated once all buffers have grown. */
START_TEST(steady_state)
{
    static const char *const files[] = {"bpe_metaspace", "byte_gpt4", "wordpiece", "bpe_fallback", "first"};
    static const char text[] = "The man's e\xCC\x81 \xEF\xAC\x81 12 <s> standing in the windows, "
                               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        wf_tokenizer *t = golden_tokenizer(files[k]);
        wf_token_cache *cache = wf_token_cache_new(t, 100, NULL);
        struct wf_tokens ids = {0};
        struct wf_encode_options options = {.specials = true, .cache = cache};
        int64_t count = 0;
        for (int i = 0; i < 20; i++) {
            if (i == 3)
                count = wf_alloc_count();
            ids.count = 0;
            ck_ok(wf_tokenizer_encode_with(t, text, sizeof text - 1, &options, &ids, error));
        }
        ck_assert_msg(wf_alloc_count() == count, "%s", files[k]);
        wf_tokens_free(&ids);
        wf_token_cache_free(cache);
        wf_tokenizer_free(t);
    }
}
END_TEST

/* By the definition: repeatedly merges the best of all pairs, of equal ones the leftmost. */
static int64_t merge_slowly(json_t *merges, char piece[][64], int64_t count)
{
    for (;;) {
        size_t best = json_array_size(merges);
        int64_t at = -1;
        for (int64_t i = 0; i + 1 < count; i++)
            for (size_t rank = 0; rank < best; rank++) {
                json_t *merge = json_array_get(merges, rank);
                if (!strcmp(json_string_value(json_array_get(merge, 0)), piece[i]) &&
                    !strcmp(json_string_value(json_array_get(merge, 1)), piece[i + 1])) {
                    best = rank;
                    at = i;
                }
            }
        if (at < 0)
            return count;
        size_t length = strlen(piece[at]);
        memmove(piece[at] + length, piece[at + 1], strlen(piece[at + 1]) + 1);
        memmove(piece[at + 1], piece[at + 2], (size_t)(count - at - 2) * 64);
        count--;
    }
}

START_TEST(merges_by_definition)
{
    int64_t bytes;
    char *data = golden("../tokenizers/never.json", &bytes);
    json_t *root = json_loadb(data, (size_t)bytes, 0, NULL), *merges = json_object_get(json_object_get(root, "model"), "merges");
    wf_tokenizer *t = golden_tokenizer("never");
    wf_rng rng = wf_rng_new(3, wf_stream_of("merges"));
    static char piece[300][64];
    for (int round = 0; round < 300; round++) {
        char text[301] = "";
        struct wf_tokens ids = {0};
        int64_t length = 1 + (int64_t)wf_rng_below(&rng, round % 3 ? 45 : 299);
        for (int64_t i = 0; i < length; i++) {
            text[i] = "thenaisdrgo"[wf_rng_below(&rng, round % 2 ? 11 : 4)];
            snprintf(piece[i], 64, "%c", text[i]);
        }
        int64_t count = merge_slowly(merges, piece, length);
        ck_ok(wf_tokenizer_encode(t, text, length, &ids, error));
        ck_assert_int_eq(ids.count, count);
        for (int64_t i = 0; i < count; i++)
            ck_assert_str_eq(wf_tokenizer_token(t, ids.id[i], NULL), piece[i]);
        wf_tokens_free(&ids);
    }
    json_decref(root);
    wf_free(data);
    wf_tokenizer_free(t);
}
END_TEST

/* A quadratic step would not end in time. */
START_TEST(a_megabyte_without_a_space)
{
    static const char *const files[] = {"bpe_metaspace", "byte_gpt2", "wordpiece", "bpe_fallback", "byte_gpt4",
                                        "word",          "first",     "added",     "bpe_suffix"};
    static const char *const units[] = {"a", "the", "\xC3\xBC", "\xCC\x81\xCC\x96", " ", "\xE2\x96\x81", "\xF0\x9F\x98\x80", "<s>",
                                        "<", "'",   "\r"};
    const int64_t most = sampled() ? 1 << 17 : 1 << 20;
    char *text = wf_alloc((size_t)most);
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        wf_tokenizer *t = golden_tokenizer(files[k]);
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            struct wf_tokens ids = {0};
            struct wf_string back = {0};
            int64_t unit = (int64_t)strlen(units[u]), length = (k < 4 && u < 4 ? most : most / 8) / unit * unit;
            for (int64_t i = 0; i < length; i++)
                text[i] = units[u][i % unit];
            ck_ok(wf_tokenizer_encode(t, text, length, &ids, error));
            ck_ok(wf_tokenizer_decode_with(t, ids.id, ids.count, &(struct wf_decode_options){.specials = true}, &back, error));
            if (!strncmp(files[k], "byte", 4))
                ck_assert(has_bytes(&back, text, length));
            wf_tokens_free(&ids);
            wf_string_free(&back);
        }
        wf_tokenizer_free(t);
    }
    wf_free(text);
}
END_TEST

START_TEST(threads_share_a_tokenizer)
{
    static const char *const files[] = {"byte_gpt4", "first", "wordpiece"};
    static const char text[] = "Zwei M\xC3\xA4nner, the man's \xEF\xAC\x81 window 1234";
    for (int k = 0; k < 3; k++) {
        wf_tokenizer *t = golden_tokenizer(files[k]);
        struct wf_tokens expected = {0};
        int bad = 0;
        ck_ok(wf_tokenizer_encode(t, text, sizeof text - 1, &expected, error));
#pragma omp parallel for num_threads(4) reduction(+ : bad)
        for (int i = 0; i < 400; i++) {
            struct wf_tokens ids = {0};
            struct wf_string back = {0};
            bad += wf_tokenizer_encode(t, text, sizeof text - 1, &ids, NULL) != WF_OK || ids.count != expected.count ||
                   memcmp(ids.id, expected.id, (size_t)ids.count * sizeof *ids.id) ||
                   wf_tokenizer_decode(t, ids.id, ids.count, &back, NULL) != WF_OK;
            wf_tokens_free(&ids);
            wf_string_free(&back);
        }
        ck_assert_int_eq(bad, 0);
        wf_tokens_free(&expected);
        wf_tokenizer_free(t);
    }
}
END_TEST

/* Merges as strings, a model without a type, Metaspace with add_prefix_space: the same tokenizers as in today's words. */
START_TEST(old_files)
{
    wf_tokenizer *a = made("{\"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, \"merges\": [\"#version: 0.2\", \"a b\"]}", NULL,
                           "{\"type\": \"Metaspace\", \"replacement\": \"_\", \"add_prefix_space\": false, \"str_rep\": \"_\"}", NULL);
    wf_tokenizer *b =
        made("{\"type\": \"BPE\", \"dropout\": null, \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, \"merges\": [[\"a\", \"b\"]]}", NULL,
             "{\"type\": \"Metaspace\", \"replacement\": \"_\", \"prepend_scheme\": \"never\", \"split\": true}", NULL);
    ck_assert_uint_eq(wf_tokenizer_hash(a), wf_tokenizer_hash(b));
    wf_tokenizer_free(a);
    wf_tokenizer_free(b);
    static const char *const bad[] = {"\"a b c\"", "\"ab\"", "[\"a\"]", "[\"a\", 1]", "7", "[\"a\", \"c\"]", "[\"b\", \"a\"]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *json = wf_format(
            "{\"version\": \"1.0\", \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, \"merges\": [%s]}}", bad[i]);
        ck_fails(parse(json, &a, error), WF_ERR_FORMAT, "x.json: merge 1");
        wf_free(json);
    }
}
END_TEST

/* Corner cases in which other ids would be plausible, too; these are those of the package. */
START_TEST(corners)
{
#define POINTS                                                                                                                             \
    "{\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"\\u0301\": 1, \"\\u08cf\": 2, \"\\u00e1\": 3, \"\\ud806\\udd35\": 4, "                    \
    "\"\\ud806\\udd30\": 5, "                                                                                                              \
    "\"\\ud806\\udd38\": 6}, \"merges\": []}"
#define TWO_MARKS                                                                                                                          \
    "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Metaspace\", \"replacement\": \"\xE2\x96\x81\", \"prepend_scheme\": "       \
    "\"never\"}, {\"type\": \"Metaspace\", \"replacement\": \"b\", \"prepend_scheme\": \"first\", \"split\": false}]}"
#define EMPTY "\"pattern\": {\"String\": \"\"}"
    static const struct {
        const char *model, *normalizer, *pre, *added, *text, *ids;
    } cases[] = {
        /* normal forms are those of Unicode 9 */
        {POINTS, "{\"type\": \"NFC\"}", NULL, NULL, "a\xCC\x81", "3"},
        {POINTS, "{\"type\": \"NFC\"}", NULL, NULL, "a\xE0\xA3\x8F\xCC\x81", "0 2 1"},
        {POINTS, "{\"type\": \"NFD\"}", NULL, NULL, "a\xCC\x81\xE0\xA3\x8F", "0 1 2"},
        {POINTS, "{\"type\": \"NFC\"}", NULL, NULL, "\xF0\x91\xA4\xB5\xF0\x91\xA4\xB0", "4 5"},
        /* only the text begins with a first word, a stretch behind an added token does not */
        {LETTERS, NULL, TWO_MARKS, ADDED_TOKEN("4", "<s>"), "a<s>a a", "1 0 4 0 2 0"},
        {LETTERS, NULL, TWO_MARKS, ADDED_TOKEN("4", "<s>"), "<s>a", "4 0"},
        /* an empty string is around every character */
        {LETTERS, NULL, "{\"type\": \"Split\", " EMPTY ", \"behavior\": \"Isolated\", \"invert\": false}", NULL, "ab", "0 1"},
        {LETTERS, "{\"type\": \"Replace\", " EMPTY ", \"content\": \"\xE2\x96\x81\"}", NULL, NULL, "ab", "2 0 2 1 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wf_tokenizer *t = made(cases[i].model, cases[i].normalizer, cases[i].pre, cases[i].added);
        struct wf_tokens ids = {0};
        char text[128] = "";
        ck_ok(wf_tokenizer_encode(t, cases[i].text, (int64_t)strlen(cases[i].text), &ids, error));
        for (int64_t k = 0, at = 0; k < ids.count; k++)
            at += snprintf(text + at, sizeof text - (size_t)at, "%s%d", k ? " " : "", (int)ids.id[k]);
        ck_assert_msg(!strcmp(text, cases[i].ids), "case %zu: %s", i, text);
        wf_tokens_free(&ids);
        wf_tokenizer_free(t);
    }
}
END_TEST

START_TEST(decoder_corners)
{
    static const struct {
        const char *decoder, *text;
    } cases[] = {
        {"{\"type\": \"BPEDecoder\", \"suffix\": \"\"}", " a b a"},
        {"{\"type\": \"BPEDecoder\", \"suffix\": \"b\"}", "a a"},
        {"{\"type\": \"Replace\", " EMPTY ", \"content\": \"-\"}", "-a-b--a-"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wf_tokenizer *t;
        struct wf_string text = {0};
        char *json = wf_format("{\"version\": \"1.0\", \"model\": %s, \"decoder\": %s}", LETTERS, cases[i].decoder);
        ck_ok(parse(json, &t, error));
        ck_ok(wf_tokenizer_decode(t, (const int32_t[]){3, 0}, 2, &text, error));
        ck_assert_str_eq(text.data, cases[i].text);
        wf_string_free(&text);
        wf_tokenizer_free(t);
        wf_free(json);
    }
}
END_TEST

/* Keys that take one character refuse other texts: splitting at an empty one would never end. */
START_TEST(one_character)
{
    static const char *const parts[][2] = {
        {"\"pre_tokenizer\": {\"type\": \"CharDelimiterSplit\", \"delimiter\": \"", "\"}"},
        {"\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"", "\"}"},
        {"\"decoder\": {\"type\": \"Metaspace\", \"replacement\": \"", "\"}"},
        {"\"decoder\": {\"type\": \"Strip\", \"content\": \"", "\", \"start\": 0, \"stop\": 1}"},
    };
    static const char *const texts[] = {"", "ab", "\xC3\xA9"};
    for (size_t i = 0; i < 4 * 3; i++) {
        wf_tokenizer *t;
        char *json = wf_format("{\"version\": \"1.0\", \"model\": %s, %s%s%s}", LETTERS, parts[i / 3][0], texts[i % 3], parts[i / 3][1]);
        if (i % 3 < 2) {
            ck_fails(parse(json, &t, error), WF_ERR_FORMAT, "one character is expected");
        } else {
            ck_ok(parse(json, &t, error));
            wf_tokenizer_free(t);
        }
        wf_free(json);
    }
}
END_TEST

/* Against the package's ids, by make_tokenizers.py FILE.json TEXT... */
START_TEST(multi30k)
{
    static const struct {
        const char *file;
        int64_t count;
        uint64_t hash;
    } cases[] = {{"train.en", 484199, 0x7EB29FBC06AA393C},
                 {"train.de", 518368, 0x949BD62D0722E269},
                 {"val.en", 17054, 0x2070AFA464D1257D},
                 {"val.de", 18610, 0x01F6D9FF9BD5D85F},
                 {"test_2016_flickr.en", 16566, 0x31AF684AD1FD24F6},
                 {"test_2016_flickr.de", 17325, 0xB41C0C19C685D2DE}};
    char path[4200];
    wf_tokenizer *t;
    wf_error problem = {0};
    if (!shared_folder())
        return;
    snprintf(path, sizeof path, "%s/data/tokenizers/wmt14_en-de_bpe37000.json", shared_folder());
    ck_ok(wf_tokenizer_load(path, &t, error));
    ck_assert_int_eq(wf_tokenizer_kind_of(t), WF_TOKENIZER_BPE);
    ck_assert_int_eq(wf_tokenizer_vocab_size(t), 37000);
    wf_token_cache *cache = wf_token_cache_new(t, 1 << 14, &problem);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct wf_tokens ids = {0};
        struct wf_encode_options options = {.specials = true, .cache = cache};
        int64_t bytes, count = 0;
        uint64_t hash = 0xCBF29CE484222325;
        snprintf(path, sizeof path, "%s/data/multi30k/%s", shared_folder(), cases[k].file);
        char *text = wf_file_load(path, 1 << 24, &bytes, &problem);
        ck_assert_msg(text != NULL, "%s", problem.message);
        for (char *line = text, *end; line < text + bytes; line = end + 1) {
            end = memchr(line, '\n', (size_t)(text + bytes - line));
            end = end ? end : text + bytes;
            ids.count = 0;
            ck_ok(wf_tokenizer_encode_with(t, line, end - line, &options, &ids, error));
            count += ids.count;
            for (int64_t i = 0; i < ids.count * 4; i++)
                hash = (hash ^ ((const unsigned char *)ids.id)[i]) * 0x100000001B3;
        }
        ck_assert_int_eq(count, cases[k].count);
        ck_assert_uint_eq(hash, cases[k].hash);
        wf_tokens_free(&ids);
        wf_free(text);
    }
    wf_token_cache_free(cache);
    wf_tokenizer_free(t);
}
END_TEST

WF_TEST_MAIN("tokenizer_pipeline", places_of_faults, trained, unknown_tokens, invalid_options, steady_state, merges_by_definition,
             a_megabyte_without_a_space, threads_share_a_tokenizer, old_files, corners, decoder_corners, one_character, multi30k)
