/* SPDX-License-Identifier: MIT */
/* Words without end, such as base64: their ids are those of the package `tokenizers` (make_tokenizers.py, long.hashes), memory is bounded,
 * and the caller can stop in the middle. */
#include "../data/data_test.h"

enum { LENGTH = 200000 };

static char *word(const char *kind)
{
    static const char alphabet[] = "eeeeaaatnnirsdhlouwgQ7";
    char *text = wf_alloc(LENGTH + 1);
    uint32_t x = 1;
    for (int i = 0; i < LENGTH; i++) {
        x = (x * 1103515245u + 12345u) & 0x7FFFFFFF;
        text[i] = kind[0] == 'r' ? 'a' : kind[0] == 'p' ? "standing"[i % 8] : alphabet[(x >> 16) % (sizeof alphabet - 1)];
    }
    text[LENGTH] = 0;
    return text;
}

static uint64_t fnv(const struct wf_tokens *ids)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (int64_t i = 0; i < 4 * ids->count; i++)
        h = (h ^ ((const unsigned char *)ids->id)[i]) * 0x100000001B3u;
    return h;
}

START_TEST(the_ids_of_tokenizers)
{
    int64_t bytes;
    char *rows = golden("../tokenizers/long.hashes", &bytes);
    int count = 0;
    for (char *row = rows; *row; row = strchr(row, '\n') + 1, count++) {
        char name[32], kind[32];
        int64_t length;
        unsigned long hash;
        struct wf_tokens ids = {0};
        ck_assert_int_eq(sscanf(row, "%31s %31s %ld %lx", name, kind, &length, &hash), 4);
        wf_tokenizer *t = golden_tokenizer(name);
        char *text = word(kind);
        ck_ok(wf_tokenizer_encode(t, text, LENGTH, &ids, error));
        ck_assert_msg(ids.count == length, "%s, %s: %ld ids, not %ld", name, kind, ids.count, length);
        ck_assert_msg(fnv(&ids) == hash, "%s, %s: other ids", name, kind);
        wf_tokens_free(&ids);
        wf_free(text);
        wf_tokenizer_free(t);
    }
    ck_assert_int_ge(count, 30);
    wf_free(rows);
}
END_TEST

/* An unknown character behind many windows has its place. */
START_TEST(the_place_of_a_fault)
{
    wf_tokenizer *t;
    struct wf_tokens ids = {0};
    char *text = word("mixed");
    ck_ok(wf_tokenizer_train(text, LENGTH, &t, error, .kind = WF_TOKENIZER_BPE, .vocab_size = 60, .specials = (const char *[]){"<s>"},
                             .special_count = 1));
    text[LENGTH - 10] = 'Z';
    ck_fails(wf_tokenizer_encode(t, text, LENGTH, &ids, error), WF_ERR_FORMAT,
             "line 1, column 199991 (offset 199990): the character U+005A");
    ck_assert_int_eq(ids.count, 0);
    wf_tokens_free(&ids);
    wf_free(text);
    wf_tokenizer_free(t);
}
END_TEST

static int calls, most_calls;

static bool cancelled(void *ctx)
{
    (void)ctx;
    return ++calls > most_calls;
}

START_TEST(encoding_can_be_stopped)
{
    static const char *const names[] = {"bpe_whitespace", "byte_gpt2", "never", "bpe_fallback"};
    enum { LONG = 12 * LENGTH };
    char *text = wf_alloc(LONG);
    memset(text, 'a', LONG);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        wf_tokenizer *t = golden_tokenizer(names[i]);
        const struct wf_encode_options o = {.cancelled = cancelled};
        struct wf_tokens ids = {0};
        calls = 0;
        most_calls = INT32_MAX;
        ck_ok(wf_tokenizer_encode_with(t, text, LONG, &o, &ids, error));
        ck_assert_int_ge(calls, 20);
        for (int all = calls, at = 0; at < all; at = 2 * at + 1) { /* at some of the calls */
            ids.count = 7;
            calls = 0;
            most_calls = at;
            ck_fails(wf_tokenizer_encode_with(t, text, LONG, &o, &ids, error), WF_ERR_CANCELLED, "encoding was cancelled");
            ck_assert_int_eq(calls, at + 1);
            ck_assert_int_eq(ids.count, 7);
        }
        wf_tokens_free(&ids);
        wf_tokenizer_free(t);
    }
    wf_free(text);
}
END_TEST

/* A line of 10 MB, which comes in blocks: a cut before a space changes nothing. */
START_TEST(a_long_line_of_words)
{
    enum { BYTES = 10000000 };
    char *text = wf_alloc(BYTES);
    struct wf_string json[2] = {{0}};
    int64_t long_words = 0;
    for (int i = 0; i < BYTES; i++)
        text[i] = "one word, and  more of them; "[i % 29];
    for (int k = 0; k < 2; k++) {
        wf_tokenizer *t;
        ck_ok(wf_tokenizer_train(text, BYTES, &t, error, .kind = WF_TOKENIZER_BPE, .vocab_size = 60, .long_words = &long_words));
        ck_ok(wf_tokenizer_json(t, &json[k], error));
        wf_tokenizer_free(t);
        for (int i = 28; i < BYTES; i += 29) /* the same words by lines */
            text[i] = '\n';
    }
    ck_assert_int_eq(long_words, 0);
    ck_assert_str_eq(json[0].data, json[1].data);
    wf_string_free(&json[0]);
    wf_string_free(&json[1]);
    wf_free(text);
}
END_TEST

START_TEST(training_cuts_them)
{
    enum { LONG = 3 << 20 };
    wf_tokenizer *t;
    int64_t long_words = 0;
    char *text = wf_alloc(LONG);
    for (int64_t i = 0; i < LONG; i++)
        text[i] = (char)('a' + i * i % 1000003 % 26);
    text[10] = ' ';
    for (int kind = WF_TOKENIZER_WORD; kind <= WF_TOKENIZER_BYTE_BPE; kind++) {
        ck_ok(wf_tokenizer_train(text, LONG, &t, error, .kind = (wf_tokenizer_kind)kind, .vocab_size = 300, .long_words = &long_words));
        ck_assert_int_eq(long_words, kind);
        if (kind == WF_TOKENIZER_WORD) /* three special tokens and the word of ten letters */
            ck_assert_int_eq(wf_tokenizer_vocab_size(t), 4);
        else
            ck_assert_int_eq(wf_tokenizer_vocab_size(t), 300);
        wf_tokenizer_free(t);
    }
    ck_fails(wf_tokenizer_train(text + 11, LONG - 11, &t, error, .kind = WF_TOKENIZER_WORD), WF_ERR_FORMAT,
             "the text: no words in it of at most 2 MiB");
    wf_free(text);
}
END_TEST

/* A file of one long line with a bad byte near its end: the message has its place although the line comes in blocks. */
START_TEST(places_in_a_long_line)
{
    enum { BYTES = 9000000 };
    wf_tokenizer *t;
    char *text = wf_alloc(BYTES);
    memset(text, 'a', BYTES);
    memcpy(text, "\xEF\xBB\xBF", 3);
    text[BYTES - 5] = (char)0xFF;
    const char *path = test_file("long.txt", text, BYTES);
    ck_fails(wf_tokenizer_train_files(&path, 1, &t, error, .kind = WF_TOKENIZER_BPE), WF_ERR_FORMAT, "long.txt:1:8999996: not UTF-8");
    ck_fails(wf_tokenizer_train_files(&path, 1, &t, error, .kind = WF_TOKENIZER_CHAR), WF_ERR_FORMAT, "long.txt:1:8999996: not UTF-8");
    wf_free(text);
}
END_TEST

static bool stop_merging(void *ctx, const struct wf_tokenizer_progress *p)
{
    int *calls_there = ctx;
    *calls_there += p->phase[0] == 'm';
    return *calls_there == 0;
}

/* The first call in the phase "merging" comes before anything was merged. */
START_TEST(training_can_be_stopped)
{
    enum { LONG = 6000000 };
    wf_tokenizer *t;
    int calls_there = 0;
    char *text = wf_alloc(LONG);
    uint32_t x = 1;
    for (int i = 0; i < LONG; i++) {
        x = (x * 1103515245u + 12345u) & 0x7FFFFFFF;
        text[i] = (char)('a' + (x >> 16) % 26);
    }
    ck_fails(wf_tokenizer_train(text, LONG, &t, error, .kind = WF_TOKENIZER_BPE, .vocab_size = 1000, .progress = stop_merging,
                                .ctx = &calls_there),
             WF_ERR_CANCELLED, "was stopped");
    ck_assert_int_eq(calls_there, 1);
    wf_free(text);
}
END_TEST

WF_TEST_MAIN("text/long_words", the_ids_of_tokenizers, the_place_of_a_fault, encoding_can_be_stopped, a_long_line_of_words,
             training_cuts_them, places_in_a_long_line, training_can_be_stopped)
