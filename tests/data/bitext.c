/* SPDX-License-Identifier: MIT */
#include <sys/stat.h>

#include "bitext_test.h"

static void ck_text(const wf_bitext *b, int64_t pair, int side, const char *expected)
{
    struct wf_string text = {0};
    ck_ok(wf_bitext_text(b, pair, side, &text, error));
    ck_assert_msg(has_bytes(&text, expected, (int64_t)strlen(expected)), "pair %d, side %d: \"%.*s\"", (int)pair, side, (int)text.length,
                  text.data);
    wf_string_free(&text);
}

#define REFUSED(source, target, words) ck_fails(open_texts(TEXTS(source, target), &options, &b, error), WF_ERR_FORMAT, words)

/* Only "\n" ends a line; white space at the edges goes, inside it stays; no last line end is needed; a mark in front goes. */
START_TEST(lines_are_aligned)
{
    wf_tokenizer *t = words(true);
    const struct wf_bitext_options options = {.source = t, .target = t};
    wf_bitext *b;
    /* U+2028, U+2029, U+0085, form feed, vertical tab, FS, a lone CR, NBSP and a tab inside; NBSP, U+3000, U+2003 at edges. */
    ck_ok(open_texts(TEXTS("\xEF\xBB\xBFw0\xE2\x80\xA8w1\xE2\x80\xA9w2\r\n"
                           "\xC2\xA0 w1\xC2\x85w2 \xE3\x80\x80\t\r\n"
                           "w2\x0C\x0Bw3\x1Cw4\rw5\n"
                           "\xE2\x80\x83w3\xC2\xA0w4\tw5  w6\xC2\xA0\n"
                           "w9",
                           "w1\nw2\r\r\n\r\n"
                           "\xEF\xBB\xBFw3\n"
                           "w4\n"),
                     &options, &b, error));
    const struct wf_bitext_survey *s = wf_bitext_survey(b);
    ck_assert_int_eq(s->lines, 5);
    ck_assert_int_eq(s->used, 4);
    ck_assert_int_eq(s->empty_target, 1);
    ck_text(b, 0, 0, "w0\xE2\x80\xA8w1\xE2\x80\xA9w2");
    ck_text(b, 0, 1, "w1");
    ck_text(b, 1, 0, "w1\xC2\x85w2");
    ck_text(b, 1, 1, "w2");
    ck_text(b, 2, 0, "w3\xC2\xA0w4\tw5  w6");
    ck_text(b, 2, 1, "\xEF\xBB\xBFw3"); /* further on, a mark is a character */
    ck_text(b, 3, 0, "w9");
    ck_text(b, 3, 1, "w4");
    wf_bitext_close(b);
    wf_bitext_close(NULL);
    wf_tokenizer_free(t);
}
END_TEST

/* Each line counts once, by its reason; what the used pairs hold, by hand. */
START_TEST(counts_by_reason)
{
    wf_tokenizer *t = words(true);
    const struct wf_bitext_options options = {.source = t, .target = t, .source_bos = true, .source_eos = true, .max_length = 5};
    wf_bitext *b;
    ck_ok(open_texts(TEXTS("w1 w2 w3\n"
                           "\n"
                           "w1\n"
                           " \xC2\xA0 \n"
                           "w1 w2 w3 w4\n" /* 4 and two marks */
                           "w1 zz\n"
                           "w1 w2 w3 w4 w5 w6 w7\n"
                           "\n"
                           "w1 zz zz zz zz\n",
                           "w1 w2 w3 w4\n" /* 4 and one mark */
                           "w1\n"
                           "\t\r\n"
                           "\n"
                           "w1\n"
                           "w1 w2 w3 w4 w5\n"
                           "w1 w2 w3 w4 w5 w6\n"
                           "w1 w2 w3 w4 w5 w6 w7 w8\n"
                           "w1\n"),
                     &options, &b, error));
    const struct wf_bitext_survey *s = wf_bitext_survey(b);
    ck_assert_int_eq(s->lines, 9);
    ck_assert_int_eq(s->used, 1);
    ck_assert_int_eq(s->empty_source, 2);
    ck_assert_int_eq(s->empty_target, 1);
    ck_assert_int_eq(s->empty_both, 1);
    ck_assert_int_eq(s->long_source, 2);
    ck_assert_int_eq(s->long_target, 1);
    ck_assert_int_eq(s->long_both, 1);
    ck_assert_int_eq(s->source_tokens, 5);
    ck_assert_int_eq(s->target_tokens, 5);
    ck_assert_int_eq(s->source_unknown, 0);
    ck_assert_int_eq(s->longest_source, 9);
    ck_assert_int_eq(s->longest_target, 9);
    ck_assert_int_eq(s->max_length, 5);
    ck_assert(!s->cached);
    int64_t source, target;
    wf_bitext_lengths(b, 0, &source, &target);
    ck_assert(source == 5 && target == 5);
    char text[400];
    ck_assert_str_eq(wf_bitext_describe(s, text, sizeof text),
                     "1 pair, 5 + 5 tokens; 8 skipped: 2 empty source, 1 empty target, 1 empty on both sides, 2 source longer than 5, "
                     "1 target longer than 5, 1 both longer than 5");
    char cut[12];
    ck_assert_str_eq(wf_bitext_describe(s, cut, sizeof cut), "1 pair, 5 +");
    wf_bitext_close(b);

    const struct wf_bitext_options bare = {.source = t, .target = t};
    ck_ok(open_texts(TEXTS("w1 zz\nzz\n", "w1\nzz zz w3\n"), &bare, &b, error));
    s = wf_bitext_survey(b);
    ck_assert(s->used == 2 && s->source_tokens == 3 && s->target_tokens == 6 && s->source_unknown == 2 && s->target_unknown == 2);
    ck_assert_str_eq(wf_bitext_describe(s, text, sizeof text), "2 pairs, 3 + 6 tokens (2 + 2 unknown)");
    wf_bitext_close(b);

    REFUSED("\nw1 w2 w3 w4 w5 w6\n", "w1\nw1\n",
            "b.de: no pair of lines can be used: 0 pairs; 2 skipped: 1 empty source, 1 source longer than 5");
    const struct wf_bitext_survey large = {.lines = 29012,
                                           .used = 29000,
                                           .source_tokens = 1234567,
                                           .target_tokens = 999,
                                           .empty_source = 3,
                                           .long_source = 9,
                                           .max_length = 512};
    ck_assert_str_eq(wf_bitext_describe(&large, text, sizeof text),
                     "29,000 pairs, 1,234,567 + 999 tokens; 12 skipped: 3 empty source, 9 source longer than 512");
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(files_that_do_not_pair_up)
{
    wf_tokenizer *t = words(false);
    const struct wf_bitext_options options = {.source = t, .target = t};
    wf_bitext *b;
    REFUSED("w1\nw2\nw3", "w1\nw2\n", "a.en has 3 lines and ");
    REFUSED("w1\nw2\nw3", "w1\nw2\n", "b.de has 2; ");
    REFUSED("w1\n", "w1\n\n", "has 1 line and ");
    ck_ok(open_texts(TEXTS("w1\nw2", "w1\nw2\n"), &options, &b, error));
    wf_bitext_close(b);
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(bytes_that_are_no_text)
{
    wf_tokenizer *t = words(true);
    const struct wf_bitext_options options = {.source = t, .target = t};
    wf_bitext *b;
    REFUSED("w1\nw2 \xFF w3\nw\xC0\n", "\xFF\n2\n3\n", "a.en:2:4: not UTF-8: byte 0xFF");
    REFUSED("w1\nw2\n", "w1\nw2 \xE2\x82\n", "b.de:2:4: not UTF-8: byte 0xE2: a truncated sequence");
    REFUSED("w1\nw2\n", "w1\nw2 \xE2\x82", "b.de:2:4: not UTF-8: byte 0xE2");
    REFUSED("\xEF\xBB\xBF\xED\xA0\x80\n", "w1\n", "a.en:1:4: not UTF-8: byte 0xED: a surrogate");
    REFUSED(" \xA0\n", "w1\n", "a.en:1:2: not UTF-8: byte 0xA0");
    REFUSED("w1\nw2 w\0\n", "w1\nw2\n", "a.en:2:5: a NUL byte");
    REFUSED("\xFF\xFEw\0\n", "w1\n", "this is UTF-16");
    REFUSED("", "w1\n", "a.en: the file is empty");
    REFUSED("w1\n", "\xEF\xBB\xBF", "b.de: the file is empty");
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(files_that_are_no_files)
{
    wf_tokenizer *t = words(true);
    const struct wf_bitext_options options = {.source = t, .target = t};
    wf_bitext *b;
    char *good = text_file("good", "w1\n"), *pipe = test_file("pipe", NULL, 0);
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    ck_fails(wf_bitext_open(good, "/no/such/file", &options, &b, error), WF_ERR_IO, "/no/such/file: cannot be opened: No such file");
    ck_fails(wf_bitext_open("/tmp", good, &options, &b, error), WF_ERR_IO, "/tmp: is a folder");
    ck_fails(wf_bitext_open(pipe, good, &options, &b, error), WF_ERR_IO, "pipe: is a device or a pipe");
    ck_fails(wf_bitext_open(good, "/dev/null", &options, &b, error), WF_ERR_IO, "/dev/null: is a device or a pipe");
    ck_assert_ptr_null(b);
    ck_ok(wf_bitext_open(good, good, &options, &b, error)); /* one file on both sides is fine */
    wf_bitext_close(b);
    struct wf_bitext_options negative = options;
    negative.max_length = -1;
    ck_fails(wf_bitext_open(good, good, &negative, &b, error), WF_ERR_ARGUMENT, "max_length -1 is out of range");
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(marks_that_a_tokenizer_lacks)
{
    wf_tokenizer *t = words(false), *bare;
    wf_bitext *b;
    ck_ok(wf_tokenizer_train("w 0123456789", 12, &bare, error)); /* char: has none */
    const struct wf_bitext_options target = {.source = t, .target = bare}, source = {.source = bare, .target = t},
                                   eos = {.source = bare, .target = t, .source_eos = true},
                                   bos = {.source = bare, .target = t, .source_bos = true};
    ck_fails(open_texts(TEXTS("w1\n", "w1\n"), &target, &b, error), WF_ERR_ARGUMENT, "b.de: its tokenizer has no token for the start");
    ck_fails(open_texts(TEXTS("w1\n", "w1\n"), &eos, &b, error), WF_ERR_ARGUMENT, "a.en: its tokenizer has no token for the end");
    ck_fails(open_texts(TEXTS("w1\n", "w1\n"), &bos, &b, error), WF_ERR_ARGUMENT, "a.en: its tokenizer has no token for the start");
    ck_ok(open_texts(TEXTS("w1 w2\n", "w1\n"), &source, &b, error));
    ck_assert_int_eq(wf_bitext_survey(b)->source_tokens, 5);
    wf_bitext_close(b);
    wf_tokenizer_free(bare);
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(tokenizers_that_change_sentences)
{
    static const char *const padding = "{\"strategy\": %s, \"direction\": \"Right\", \"pad_to_multiple_of\": %s, \"pad_id\": 1, "
                                       "\"pad_type_id\": 0, \"pad_token\": \"<pad>\"}";
    static const char *const cut = "{\"direction\": \"Right\", \"max_length\": 3, \"strategy\": \"LongestFirst\", \"stride\": 0}";
    wf_tokenizer *plain = words(true);
    for (int what = 0; what < 4; what++) {
        char *text = what == 0   ? wf_format("%s", cut)
                     : what == 1 ? wf_format(padding, "{\"Fixed\": 9}", "null")
                     : what == 2 ? wf_format(padding, "\"BatchLongest\"", "8")
                                 : wf_format(padding, "\"BatchLongest\"", "null");
        wf_tokenizer *t = tokenizer_with(plain, what == 0 ? "truncation" : "padding", text);
        const struct wf_bitext_options source = {.source = t, .target = plain}, target = {.source = plain, .target = t};
        wf_bitext *b;
        if (what < 3) {
            ck_fails(open_texts(TEXTS("w1 w2 w3 w4\n", "w1\n"), &source, &b, error), WF_ERR_ARGUMENT,
                     what == 0 ? "a.en: its tokenizer truncates sentences to 3 tokens" : "a.en: its tokenizer pads each sentence");
            ck_fails(open_texts(TEXTS("w1\n", "w1 w2 w3 w4\n"), &target, &b, error), WF_ERR_ARGUMENT, "b.de: its tokenizer ");
        } else { /* the longest of a batch of one is itself */
            ck_ok(open_texts(TEXTS("w1 w2 w3 w4\n", "w1\n"), &source, &b, error));
            ck_assert_int_eq(wf_bitext_survey(b)->source_tokens, 4);
            wf_bitext_close(b);
        }
        wf_tokenizer_free(t);
        wf_free(text);
    }
    wf_tokenizer_free(plain);
}
END_TEST

START_TEST(words_that_the_vocabulary_lacks)
{
    wf_tokenizer *t = words(false);
    const struct wf_bitext_options options = {.source = t, .target = t};
    wf_bitext *b;
    REFUSED("w1\nw2\n w3 zebra\nzzz\n", "w1\nw2\nw3\nw4\n", "a.en:3:5: ");
    REFUSED("w1\nw2\n w3 zebra\nzzz\n", "w1\nw2\nw3\nw4\n", "zebra");
    REFUSED("w1\nw2\n", "w1\nw2 w3 yak\n", "b.de:2:7: ");
    REFUSED("\xEF\xBB\xBFw1 q\n", "w1\n", "a.en:1:7: ");
    wf_tokenizer_free(t);
}
END_TEST

WF_TEST_MAIN("bitext", lines_are_aligned, counts_by_reason, files_that_do_not_pair_up, bytes_that_are_no_text, files_that_are_no_files,
             marks_that_a_tokenizer_lacks, tokenizers_that_change_sentences, words_that_the_vocabulary_lacks)
