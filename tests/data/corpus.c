/* SPDX-License-Identifier: MIT */
#include "data_test.h"

static struct wf_text text_of(const char *data, const char *name)
{
    struct wf_text text;
    ck_ok(wf_text_of(data, (int64_t)strlen(data), name, &text, error));
    return text;
}

static wf_tokenizer *trained(const struct wf_text *text)
{
    wf_tokenizer *tokenizer;
    ck_ok(wf_tokenizer_train(text->data, text->length, &tokenizer, error));
    return tokenizer;
}

/* For every length: the parts are floor(0.9 n) and the rest, and together they are the text. Characters of 1 to 4 bytes. */
START_TEST(holds_out_the_last_tenth)
{
    static const char *const characters[] = {"a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    for (int n = 2; n < 200; n++) {
        char data[1000] = "";
        for (int i = 0; i < n; i++)
            strcat(data, characters[(i * i + i / 3) % 4]);
        struct wf_text text = text_of(data, "text");
        wf_tokenizer *t = trained(&text);
        struct wf_tokens all = {0};
        struct wf_corpus corpus;
        int64_t kept = n * 9 / 10;
        ck_assert_int_eq(kept, (int64_t)(0.9 * n));
        ck_ok(wf_text_encode(&text, 0, text.length, t, &all, error));
        ck_assert_int_eq(all.count, n);
        wf_error problem = {0};
        wf_status status = wf_corpus_build(t, &text, NULL, 1, &corpus, &problem);
        if (kept < 2 || n - kept < 2) {
            ck_assert_int_eq(status, WF_ERR_ARGUMENT);
            ck_assert_ptr_null(corpus.train.id);
        } else {
            ck_assert_int_eq(status, WF_OK);
            ck_assert_int_eq(corpus.train.count, kept);
            ck_assert_int_eq(corpus.train_characters, kept);
            ck_assert_int_eq(corpus.valid.count, n - kept);
            ck_assert_int_eq(corpus.valid_characters, n - kept);
            ck_assert_int_eq(memcmp(all.id, corpus.train.id, (size_t)kept * 4), 0);
            ck_assert_int_eq(memcmp(all.id + kept, corpus.valid.id, (size_t)(n - kept) * 4), 0);
        }
        wf_corpus_free(&corpus);
        wf_tokens_free(&all);
        wf_tokenizer_free(t);
        wf_text_free(&text);
    }
}
END_TEST

START_TEST(takes_a_validation_text)
{
    struct wf_text train = text_of("abcabcabc\n", "train.txt"), valid = text_of("cab\nb", "valid.txt");
    wf_tokenizer *t = trained(&train);
    struct wf_corpus corpus;
    ck_ok(wf_corpus_build(t, &train, &valid, 4, &corpus, error));
    ck_assert_int_eq(corpus.train.count, 10);
    ck_assert_int_eq(corpus.valid.count, 5);
    ck_assert_int_eq(memcmp(corpus.valid.id, (int32_t[]){3, 1, 2, 0, 2}, 20), 0);
    wf_corpus_free(&corpus);
    wf_corpus_free(&corpus);
    wf_tokenizer_free(t);
    wf_text_free(&train);
    wf_text_free(&valid);
}
END_TEST

START_TEST(parts_that_are_too_short)
{
    struct wf_text train = text_of("abcabcabcabcabcabcab", "train.txt"), valid = text_of("abcab", "valid.txt");
    wf_tokenizer *t = trained(&train);
    struct wf_corpus corpus;
    ck_fails(wf_corpus_build(t, &train, NULL, 18, &corpus, error), WF_ERR_ARGUMENT,
             "the training part has 18 tokens, and a context of 18 needs at least 19; use a longer text or a smaller context");
    ck_fails(wf_corpus_build(t, &train, NULL, 2, &corpus, error), WF_ERR_ARGUMENT,
             "the validation part has 2 tokens, and a context of 2 needs at least 3; use a longer text or a smaller context, or give a "
             "validation");
    ck_ok(wf_corpus_build(t, &train, NULL, 1, &corpus, error));
    wf_corpus_free(&corpus);
    ck_fails(wf_corpus_build(t, &train, &valid, 5, &corpus, error), WF_ERR_ARGUMENT, "the validation part has 5 tokens");
    ck_ok(wf_corpus_build(t, &train, &valid, 4, &corpus, error));
    wf_corpus_free(&corpus);
    ck_fails(wf_corpus_build(t, &train, &valid, 20, &corpus, error), WF_ERR_ARGUMENT, "the training part has 20 tokens");
    ck_fails(wf_corpus_build(t, &train, &valid, 0, &corpus, error), WF_ERR_ARGUMENT, "context of 0");
    wf_tokenizer_free(t);
    wf_text_free(&train);
    wf_text_free(&valid);
}
END_TEST

/* What a tokenizer's file says for batches of sentences, as BERT's do (128 ids, padded to 128), is not for a text. */
START_TEST(cuts_and_pads_nothing)
{
    static const char *const padding =
        "{\"strategy\": {\"Fixed\": 400}, \"direction\": \"Right\", \"pad_to_multiple_of\": null, \"pad_id\": 0, "
        "\"pad_type_id\": 0, \"pad_token\": \"<pad>\"}";
    static const char *const cut = "{\"direction\": \"Right\", \"max_length\": 3, \"strategy\": \"LongestFirst\", \"stride\": 0}";
    static const char *const kinds[] = {"of characters", "of words"};
    char data[400] = "";
    for (int i = 0; i < 100; i++)
        strcat(data, i % 7 ? "b " : "a ");
    struct wf_text text = text_of(data, "text");
    for (int kind = 0; kind < 2; kind++)
        for (int what = 0; what < 2; what++) {
            wf_tokenizer *plain;
            struct wf_tokens ids = {0};
            struct wf_corpus corpus;
            ck_ok(wf_tokenizer_train(text.data, text.length, &plain, error, .kind = kind ? WF_TOKENIZER_WORD : WF_TOKENIZER_CHAR));
            wf_tokenizer *t = tokenizer_with(plain, what ? "padding" : "truncation", what ? padding : cut);
            ck_ok(wf_text_encode(&text, 0, text.length, t, &ids, error));
            ck_assert_msg(ids.count == (kind ? 100 : 200), "%s: %d ids", kinds[kind], (int)ids.count);
            ck_ok(wf_corpus_build(t, &text, NULL, 1, &corpus, error));
            ck_assert_int_eq(corpus.train.count + corpus.valid.count, ids.count);
            wf_corpus_free(&corpus);
            wf_tokens_free(&ids);
            wf_tokenizer_free(t);
            wf_tokenizer_free(plain);
        }
    wf_text_free(&text);
}
END_TEST

START_TEST(unknown_characters_are_placed_in_their_file)
{
    struct wf_text train = text_of("abc\n", "train.txt"), valid = text_of("abc\nab\xC3\xA9q", "valid.txt");
    wf_tokenizer *t = trained(&train);
    struct wf_corpus corpus;
    ck_fails(wf_corpus_build(t, &train, &valid, 1, &corpus, error), WF_ERR_FORMAT,
             "valid.txt:2:3: the character U+00E9 'é' is not in the vocabulary of 4 tokens");
    struct wf_tokens ids = {0};
    ck_ok(wf_text_encode(&valid, 4, 6, t, &ids, error));
    ck_assert_int_eq(ids.count, 2);
    ck_fails(wf_text_encode(&valid, 6, valid.length, t, &ids, error), WF_ERR_FORMAT, "valid.txt:2:3: ");
    ck_fails(wf_text_encode(&valid, 8, valid.length, t, &ids, error), WF_ERR_FORMAT, "valid.txt:2:5: the character U+0071 'q'");
    ck_assert_int_eq(ids.count, 2);
    wf_tokens_free(&ids);
    wf_tokenizer_free(t);
    wf_text_free(&train);
    wf_text_free(&valid);
}
END_TEST

START_TEST(tinyshakespeare)
{
    char path[4200];
    if (!shared_folder())
        return;
    snprintf(path, sizeof path, "%s/data/tinyshakespeare/input.txt", shared_folder());
    struct wf_text text;
    struct wf_corpus corpus;
    struct wf_string back = {0};
    ck_ok(wf_text_read((const char *[]){path}, 1, &text, error));
    ck_assert_int_eq(text.characters, 1115394);
    wf_tokenizer *t = trained(&text);
    ck_assert_int_eq(wf_tokenizer_vocab_size(t), 65);
    ck_ok(wf_corpus_build(t, &text, NULL, 256, &corpus, error));
    ck_assert_int_eq(corpus.train.count, 1003854);
    ck_assert_int_eq(corpus.valid.count, 111540);
    /* "First Citizen:": ids as in nanoGPT, whose vocabulary is sorted too. */
    ck_assert_int_eq(memcmp(corpus.train.id, (int32_t[]){18, 47, 56, 57, 58, 1, 15, 47, 58, 47, 64, 43, 52, 10}, 14 * 4), 0);
    ck_ok(wf_tokenizer_decode(t, corpus.train.id, corpus.train.count, &back, error));
    ck_ok(wf_tokenizer_decode(t, corpus.valid.id, corpus.valid.count, &back, error));
    ck_assert(back.length == text.length && !memcmp(back.data, text.data, (size_t)text.length));
    wf_string_free(&back);
    wf_corpus_free(&corpus);
    wf_tokenizer_free(t);
    wf_text_free(&text);
}
END_TEST

static wf_status build(void *ctx, wf_error *error)
{
    struct wf_text *text = ctx;
    wf_tokenizer *t;
    struct wf_corpus corpus = {0};
    wf_status status = wf_tokenizer_train(text->data, text->length, &t, error);
    if (status == WF_OK)
        status = wf_corpus_build(t, text, NULL, 2, &corpus, error);
    wf_corpus_free(&corpus);
    wf_tokenizer_free(t);
    return status;
}

START_TEST(no_memory)
{
    struct wf_text text = text_of("thirty characters of some text", "text");
    ck_assert_int_eq(sweep_memory(build, &text), 12);
    wf_text_free(&text);
}
END_TEST

WF_TEST_MAIN("corpus", holds_out_the_last_tenth, takes_a_validation_text, parts_that_are_too_short, cuts_and_pads_nothing,
             unknown_characters_are_placed_in_their_file, tinyshakespeare, no_memory)
