/* SPDX-License-Identifier: MIT */
#include "../data/data_test.h"
#include <weft/internal/utf8.h>

static wf_tokenizer *trained(const char *text)
{
    wf_tokenizer *tokenizer;
    ck_ok(wf_tokenizer_train(text, (int64_t)strlen(text), &tokenizer, error));
    return tokenizer;
}

START_TEST(vocabulary_is_sorted_and_distinct)
{
    wf_tokenizer *t = trained("ba\nab\xF0\x9D\x84\x9E \xC3\xA9 e\xCC\x81\xEF\xBF\xBD");
    static const char *const expected[] = {"\n", " ", "a", "b", "e", "\xC3\xA9", "\xCC\x81", "\xEF\xBF\xBD", "\xF0\x9D\x84\x9E"};
    ck_assert_int_eq(wf_tokenizer_vocab_size(t), 9);
    ck_assert_int_eq(wf_tokenizer_kind_of(t), WF_TOKENIZER_CHAR);
    ck_assert_str_eq(wf_tokenizer_kind_name(WF_TOKENIZER_CHAR), "char");
    for (int32_t i = 0; i < 9; i++) {
        int64_t length;
        ck_assert_str_eq(wf_tokenizer_token(t, i, &length), expected[i]);
        ck_assert_int_eq(length, strlen(expected[i]));
        ck_assert_int_eq(wf_tokenizer_id(t, expected[i], length), i);
    }
    ck_assert_ptr_null(wf_tokenizer_token(t, 9, NULL));
    ck_assert_ptr_null(wf_tokenizer_token(t, -1, NULL));
    ck_assert_int_eq(wf_tokenizer_id(t, "c", 1), -1);
    ck_assert_int_eq(wf_tokenizer_id(t, "ab", 2), -1);
    ck_assert_int_eq(wf_tokenizer_id(t, "", 0), -1);
    ck_assert_int_eq(wf_tokenizer_id(t, "\xC3", 1), -1);
    wf_tokenizer_free(t);
    wf_tokenizer_free(NULL);
}
END_TEST

/* All 1,112,063 code points but NUL at once: each is a token, and ids are ranks. */
START_TEST(the_whole_of_unicode)
{
    struct wf_string text = {0};
    struct wf_tokens ids = {0};
    wf_tokenizer *t;
    char *all = wf_alloc(4 * 0x110000);
    int64_t length = 0;
    for (uint32_t point = 0x10FFFF; point > 0; point--)
        if (point < 0xD800 || point > 0xDFFF)
            length += wf_utf8_encode(point, all + length);
    ck_ok(wf_tokenizer_train(all, length, &t, error));
    ck_assert_int_eq(wf_tokenizer_vocab_size(t), 0x110000 - 0x800 - 1);
    ck_ok(wf_tokenizer_encode(t, all, length, &ids, error));
    ck_assert_int_eq(ids.count, wf_tokenizer_vocab_size(t));
    for (int64_t i = 0; i < ids.count; i++)
        if (ids.id[i] != ids.count - 1 - i)
            ck_abort_msg("id %d at %d", (int)ids.id[i], (int)i);
    ck_ok(wf_tokenizer_decode(t, ids.id, ids.count, &text, error));
    ck_assert_int_eq(text.length, length);
    ck_assert_int_eq(memcmp(text.data, all, (size_t)length), 0);
    wf_free(all);
    wf_string_free(&text);
    wf_tokens_free(&ids);
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(appends)
{
    wf_tokenizer *t = trained("abc\r\n");
    struct wf_tokens ids = {0};
    struct wf_string text = {0};
    ck_ok(wf_tokenizer_encode(t, NULL, 0, &ids, error));
    ck_assert_int_eq(ids.count, 0);
    ck_ok(wf_tokenizer_encode(t, "ab", 2, &ids, error));
    ck_ok(wf_tokenizer_encode(t, "\r\nc", 3, &ids, error));
    ck_assert_int_eq(ids.count, 5);
    ck_assert_int_eq(memcmp(ids.id, (int32_t[]){2, 3, 1, 0, 4}, 20), 0);
    ck_ok(wf_tokenizer_decode(t, ids.id, 2, &text, error));
    ck_assert_str_eq(text.data, "ab");
    ck_ok(wf_tokenizer_decode(t, ids.id + 2, 3, &text, error));
    ck_ok(wf_tokenizer_decode(t, ids.id, 0, &text, error));
    ck_assert_str_eq(text.data, "ab\r\nc");
    /* With room there is no allocation. */
    int64_t count = wf_alloc_count();
    for (int i = 0; i < 100; i++) {
        ids.count = text.length = 0;
        ck_ok(wf_tokenizer_encode(t, "abcab", 5, &ids, error));
        ck_ok(wf_tokenizer_decode(t, ids.id, 5, &text, error));
    }
    ck_assert_int_eq(wf_alloc_count(), count);
    wf_tokens_free(&ids);
    wf_string_free(&text);
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(unknown_characters)
{
    wf_tokenizer *t = trained("abc\n\xC3\xA9\xF0\x9F\x98\x80");
    struct wf_tokens ids = {0};
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"d", "line 1, column 1 (offset 0): the character U+0064 'd' is not in the vocabulary of 6 tokens"},
        {"abcz", "line 1, column 4 (offset 3): the character U+007A 'z'"},
        {"a\xC3\xA9\xF0\x9F\x98\x80\nb\xC3\xA9\xC3\xA8q", "line 2, column 3 (offset 11): the character U+00E8 'è'"},
        {"ab\r\n", "line 1, column 3 (offset 2): the character U+000D is not"},
        {"a\xCC\x81", "line 1, column 2 (offset 1): the character U+0301 is not"},
        {"\n\n\xE2\x80\xAE", "line 3, column 1 (offset 2): the character U+202E is not"},
        {"\xF4\x8F\xBF\xBF", "the character U+10FFFF is not"},
        {"a\xC3", "line 1, column 2 (offset 1): not UTF-8: byte 0xC3: a truncated sequence"},
        {"\xC3\xA9\xED\xA0\x80", "line 1, column 2 (offset 2): not UTF-8: byte 0xED: a surrogate"},
    };
    ck_ok(wf_tokenizer_encode(t, "cab", 3, &ids, error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_fails(wf_tokenizer_encode(t, cases[i].text, (int64_t)strlen(cases[i].text), &ids, error), WF_ERR_FORMAT, cases[i].message);
        ck_assert_int_eq(ids.count, 3);
    }
    ck_fails(wf_tokenizer_encode(t, "a\0", 2, &ids, error), WF_ERR_FORMAT, "(offset 1): the character U+0000 is not");
    wf_tokens_free(&ids);
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(ids_outside_the_vocabulary)
{
    wf_tokenizer *t = trained("abc");
    struct wf_string text = {0};
    ck_ok(wf_tokenizer_decode(t, (int32_t[]){2, 0}, 2, &text, error));
    ck_fails(wf_tokenizer_decode(t, (int32_t[]){0, 1, 3}, 3, &text, error), WF_ERR_ARGUMENT,
             "token 3 of 3 is 3, outside the vocabulary 0 .. 2");
    ck_fails(wf_tokenizer_decode(t, (int32_t[]){-1}, 1, &text, error), WF_ERR_ARGUMENT, "is -1");
    ck_assert_str_eq(text.data, "ca");
    wf_string_free(&text);
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(texts_that_make_no_tokenizer)
{
    wf_tokenizer *t;
    ck_fails(wf_tokenizer_train("", 0, &t, error), WF_ERR_FORMAT, "empty");
    ck_assert_ptr_null(t);
    ck_fails(wf_tokenizer_train("ab\xFF", 3, &t, error), WF_ERR_FORMAT, "the text:1:3: not UTF-8: byte 0xFF");
    ck_fails(wf_tokenizer_train("a\0b", 3, &t, error), WF_ERR_FORMAT, "a NUL");
    ck_fails(wf_tokenizer_train("ab", 2, &t, error, .kind = (wf_tokenizer_kind)77), WF_ERR_ARGUMENT, "kind 77");
}
END_TEST

START_TEST(characters_with_specials)
{
    static const char *const specials[] = {"<pad>", "<unk>", "</s>"};
    wf_tokenizer *t, *read;
    ck_ok(wf_tokenizer_train("b\xC3\xA4 a\n", 6, &t, error, .specials = specials, .special_count = 3));
    struct wf_string json = {0}, back = {0};
    ck_ok(wf_tokenizer_json(t, &json, error));
    ck_ok(wf_tokenizer_parse(json.data, json.length, "file", &read, error));
    for (int i = 0; i < 2; i++) {
        const wf_tokenizer *one = i ? read : t;
        struct wf_tokens ids = {0};
        int64_t unknown = 0;
        ck_assert_int_eq(wf_tokenizer_kind_of(one), WF_TOKENIZER_CHAR);
        ck_assert_int_eq(wf_tokenizer_vocab_size(one), 8);
        ck_assert_int_eq(wf_tokenizer_special(one, WF_SPECIAL_EOS), 2);
        ck_ok(wf_tokenizer_encode_with(one, "ab x\xC3\xA4</s>", 10, &(struct wf_encode_options){.unknown = &unknown}, &ids, error));
        ck_assert_int_eq(ids.count, 6);
        ck_assert_int_eq(memcmp(ids.id, (int32_t[]){5, 6, 4, 1, 7, 2}, 24), 0);
        ck_assert_int_eq(unknown, 1);
        back.length = 0;
        ck_ok(wf_tokenizer_decode(one, ids.id, ids.count, &back, error));
        ck_assert_str_eq(back.data, "ab \xC3\xA4");
        wf_tokens_free(&ids);
    }
    ck_assert_uint_eq(wf_tokenizer_hash(t), wf_tokenizer_hash(read));
    wf_string_free(&json);
    wf_string_free(&back);
    wf_tokenizer_free(t);
    wf_tokenizer_free(read);
}
END_TEST

static wf_status train_and_use(void *ctx, wf_error *error)
{
    const char *text = ctx;
    int64_t length = (int64_t)strlen(text);
    wf_tokenizer *t;
    struct wf_tokens ids = {0};
    struct wf_string back = {0};
    wf_status status = wf_tokenizer_train(text, length, &t, error);
    if (status == WF_OK)
        status = wf_tokenizer_encode(t, text, length, &ids, error);
    if (status == WF_OK)
        status = wf_tokenizer_decode(t, ids.id, ids.count, &back, error);
    if (status == WF_OK)
        ck_assert_str_eq(back.data, text);
    wf_string_free(&back);
    wf_tokens_free(&ids);
    wf_tokenizer_free(t);
    return status;
}

START_TEST(no_memory)
{
    ck_assert_int_ge(sweep_memory(train_and_use, "some text, \xC3\xA9 and \xF0\x9F\x98\x80"), 12);
}
END_TEST

WF_TEST_MAIN("tokenizer", vocabulary_is_sorted_and_distinct, the_whole_of_unicode, appends, unknown_characters, ids_outside_the_vocabulary,
             texts_that_make_no_tokenizer, characters_with_specials, no_memory)
