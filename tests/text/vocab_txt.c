/* SPDX-License-Identifier: MIT */
/* BERT's vocab.txt: the ids of `tokenizers`' BertWordPieceTokenizer (tests/golden/make_bert.py), invalid and damaged files. */
#include <weft/internal/json.h>

#include "../data/data_test.h"

static const char *golden_file(const char *name)
{
    static char text[4096];
    const char *root = getenv("WEFT_SOURCE_ROOT");
    snprintf(text, sizeof text, "%s/tests/golden/%s", root ? root : ".", name);
    return text;
}

static void ck_ids(const wf_tokenizer *t, const json_t *text, const json_t *want, bool specials)
{
    struct wf_tokens ids = {0};
    struct wf_encode_options o = {.specials = specials};
    ck_ok(wf_tokenizer_encode_with(t, json_string_value(text), (int64_t)json_string_length(text), &o, &ids, error));
    ck_assert_msg(ids.count == (int64_t)json_array_size(want), "%s: %lld ids", json_string_value(text), (long long)ids.count);
    for (int64_t i = 0; i < ids.count; i++)
        ck_assert_msg(ids.id[i] == json_integer_value(json_array_get(want, (size_t)i)), "%s: id %lld", json_string_value(text),
                      (long long)i);
    wf_tokens_free(&ids);
}

START_TEST(ids_are_those_of_the_package)
{
    static const struct wf_vocab_options options[] = {
        {0},
        {.cased = true},
        {.cased = true, .accents = WF_ACCENTS_STRIP},
        {.accents = WF_ACCENTS_KEEP},
        {.whole_scripts = true},
        {.unknown = "[unused0]", .begin = "the", .end = "dog", .pad = "ein", .mask = "rain"},
    };
    wf_error problem = {0};
    json_t *cases = wf_json_load(golden_file("data/vocab_txt.json"), 1 << 20, &problem), *one, *text;
    size_t i, j;
    ck_assert_msg(cases != NULL, "%s", problem.message);
    ck_assert_uint_eq(json_array_size(cases), sizeof options / sizeof *options);
    json_array_foreach(cases, i, one)
    {
        wf_tokenizer *t;
        ck_ok(wf_tokenizer_load_vocab_with(golden_file("bert/vocab.txt"), &options[i], &t, error));
        ck_assert_int_eq(wf_tokenizer_kind_of(t), WF_TOKENIZER_WORDPIECE);
        ck_assert_int_eq(wf_tokenizer_vocab_size(t), 42);
        json_array_foreach(json_object_get(one, "texts"), j, text)
        {
            ck_ids(t, json_object_get(text, "text"), json_object_get(text, "plain"), false);
            ck_ids(t, json_object_get(text, "text"), json_object_get(text, "specials"), true);
        }
        wf_tokenizer_free(t);
    }
    json_decref(cases);
}
END_TEST

/* Line ends of DOS, none at the end, white space after a token; and what is saved as tokenizer.json is the same tokenizer. */
START_TEST(lines)
{
    static const char text[] = "\xef\xbb\xbf[UNK]\r\n[CLS] \n[SEP]\t\xe3\x80\x80\n##s\nca fe\n\xe4\xb8\xad";
    wf_tokenizer *t, *again;
    struct wf_string json = {0};
    const char *path = text_file("vocab.txt", text);
    ck_ok(wf_tokenizer_load_vocab(path, &t, error));
    ck_assert_int_eq(wf_tokenizer_vocab_size(t), 6);
    ck_assert_str_eq(wf_tokenizer_token(t, 0, NULL), "[UNK]");
    ck_assert_str_eq(wf_tokenizer_token(t, 2, NULL), "[SEP]");
    ck_assert_str_eq(wf_tokenizer_token(t, 4, NULL), "ca fe");
    ck_assert_str_eq(wf_tokenizer_token(t, 5, NULL), "\xe4\xb8\xad");
    ck_assert_int_eq(wf_tokenizer_special(t, WF_SPECIAL_BOS), 1);
    ck_assert_int_eq(wf_tokenizer_special(t, WF_SPECIAL_EOS), 2);
    ck_assert_int_eq(wf_tokenizer_special(t, WF_SPECIAL_MASK), -1);
    ck_ok(wf_tokenizer_json(t, &json, error));
    ck_ok(wf_tokenizer_parse(json.data, json.length, "again", &again, error));
    ck_assert(wf_tokenizer_hash(t) == wf_tokenizer_hash(again));
    wf_string_free(&json);
    wf_tokenizer_free(t);
    wf_tokenizer_free(again);
}
END_TEST

START_TEST(invalid_files)
{
#define BAD(text, say)                                                                                                                     \
    {                                                                                                                                      \
        text, sizeof text - 1, say                                                                                                         \
    }
    static const struct {
        const char *text;
        int64_t length;
        const char *message;
    } bad[] = {BAD("", "the vocabulary is empty"),
               BAD("[UNK]\n[CLS]\n\n[SEP]\n", ":3: an empty line"),
               BAD("[UNK]\n[CLS]\n[SEP]\n  \n", ":4: an empty line"),
               BAD("[UNK]\n[CLS]\n[SEP]\na\nb\na\n", ":6: the token \"a\" is listed twice, also in line 4"),
               BAD("[UNK]\n[CLS]\n[SEP]\na\xff\n", ":4:2: not UTF-8: byte 0xFF"),
               BAD("[UNK]\n[CLS]\n[SEP]\na\0b\n", ":4:2: a NUL byte"),
               BAD("[CLS]\n[SEP]\na\n", "has no \"[UNK]\", the unknown token"),
               BAD("[UNK]\n[SEP]\na\n", "has no \"[CLS]\""),
               BAD("[UNK]\n[CLS]\na\n", "has no \"[SEP]\"")};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wf_tokenizer *t = (wf_tokenizer *)bad;
        const char *path = test_file("vocab.txt", bad[i].text, (size_t)bad[i].length);
        ck_fails(wf_tokenizer_load_vocab(path, &t, error), WF_ERR_FORMAT, bad[i].message);
        ck_fails(wf_tokenizer_load_vocab(path, &t, error), WF_ERR_FORMAT, path);
        ck_assert_ptr_null(t);
    }
    wf_tokenizer *t;
    ck_assert_int_eq(wf_tokenizer_load_vocab(test_file("none", NULL, 0), &t, NULL), WF_ERR_IO);
}
END_TEST

/* Bytes changed, put in and cut: a tokenizer or an error with a message, and nothing is lost. */
START_TEST(damage)
{
    wf_error e = {0};
    int64_t bytes, live = wf_alloc_live();
    int good = 0, refused = 0;
    char *text = wf_file_load(golden_file("bert/vocab.txt"), 1 << 20, &bytes, &e), copy[512];
    wf_rng rng = wf_rng_new(9, 1);
    ck_assert_int_lt(bytes, 500);
    for (int i = 0; i < 400; i++) {
        wf_tokenizer *t;
        int64_t length = wf_rng_below(&rng, 4) ? bytes : (int64_t)wf_rng_below(&rng, (uint64_t)bytes);
        memcpy(copy, text, (size_t)length);
        for (uint64_t n = wf_rng_below(&rng, 3); length > 0 && n > 0; n--)
            copy[wf_rng_below(&rng, (uint64_t)length)] = (char)wf_rng_below(&rng, 256);
        const char *path = test_file("vocab.txt", copy, (size_t)length);
        wf_error problem = {0};
        if (wf_tokenizer_load_vocab(path, &t, &problem) == WF_OK) {
            struct wf_tokens ids = {0};
            ck_ok(wf_tokenizer_encode(t, "the dog's caf\xc3\xa9", 15, &ids, error));
            wf_tokens_free(&ids);
            wf_tokenizer_free(t);
            good++;
        } else {
            ck_assert_msg(problem.message[0] && !strchr(problem.message, '\n'), "%s", problem.message);
            refused++;
        }
    }
    ck_assert(good > 20 && refused > 20);
    wf_free(text);
    ck_assert_int_eq(wf_alloc_live(), live);
}
END_TEST

/* The options of encoding that put the file's truncation and padding aside, and lose ids for a length of the caller's. */
START_TEST(most_and_whole)
{
    wf_tokenizer *t;
    ck_ok(wf_tokenizer_load_vocab(golden_file("bert/vocab.txt"), &t, error));
    static const char text[] = "the dog sleeps under the table";
    static const int32_t all[] = {2, 5, 6, 7, 8, 5, 9, 3}; /* [CLS] ... [SEP] */
    for (int64_t most = 0; most < 12; most++) {
        struct wf_tokens ids = {0};
        int64_t cut = 100, want = most == 0 || most > 8 ? 8 : most < 2 ? 2 : most;
        struct wf_encode_options o = {.specials = true, .whole = most % 2, .most = most, .cut = &cut};
        ck_ok(wf_tokenizer_encode_with(t, text, sizeof text - 1, &o, &ids, error));
        ck_assert_int_eq(ids.count, want);
        ck_assert_int_eq(cut, 100 + 8 - want);
        for (int64_t i = 0; i < want; i++)
            ck_assert_int_eq(ids.id[i], i == want - 1 ? 3 : all[i]); /* the marks stay */
        wf_tokens_free(&ids);
    }
    wf_tokenizer_free(t);
    ck_ok(wf_tokenizer_train("abc", 3, &t, error)); /* of characters */
    struct wf_tokens ids = {0};
    ck_ok(wf_tokenizer_encode_with(t, "abcab", 5, &(struct wf_encode_options){.most = 3}, &ids, error));
    ck_assert_int_eq(ids.count, 3);
    wf_tokens_free(&ids);
    wf_tokenizer_free(t);
}
END_TEST

WF_TEST_MAIN("data/vocab_txt", ids_are_those_of_the_package, lines, invalid_files, damage, most_and_whole)
