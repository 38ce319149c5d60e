/* SPDX-License-Identifier: MIT */
/* Vocabularies of words against the package `tokenizers`. */
#include "train_test.h"

START_TEST(the_same_as_tokenizers)
{
    static const char *const names[] = {"words", "words-limit", "words-frequency", "words-metaspace", "words-mixed"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        case_check(names[i]);
}
END_TEST

/* By frequency, then by bytes; a special token that is a word of the text keeps its place. */
START_TEST(order)
{
    static const char text[] = "b a b <pad>\nZ \xC3\xA9 a b z\n", wanted[] = "<pad>\n<bos>\n<eos>\nb\na\n<\n>\nZ\npad\nz\n\xC3\xA9\n";
    static const char *const special[] = {"a", "x"};
    wf_tokenizer *t;
    ck_ok(wf_tokenizer_train(text, (int64_t)strlen(text), &t, error, .kind = WF_TOKENIZER_WORD));
    struct wf_string got = listing(t, NULL);
    ck_assert_str_eq(got.data, wanted);
    wf_string_free(&got);
    wf_tokenizer_free(t);
    ck_ok(wf_tokenizer_train(text, (int64_t)strlen(text), &t, error, .kind = WF_TOKENIZER_WORD, .specials = special, .special_count = 2,
                             .vocab_size = 4));
    got = listing(t, NULL);
    ck_assert_str_eq(got.data, "a\nx\nb\n<\n");
    wf_string_free(&got);
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(a_vocabulary_too_small)
{
    wf_tokenizer *t;
    ck_fails(wf_tokenizer_train("a b", 3, &t, error, .kind = WF_TOKENIZER_WORD, .vocab_size = 3), WF_ERR_ARGUMENT, "at least 4");
    ck_fails(wf_tokenizer_train("a b", 3, &t, error, .kind = WF_TOKENIZER_WORD, .min_frequency = 2), WF_ERR_ARGUMENT, "min_frequency");
    ck_ok(wf_tokenizer_train("a b", 3, &t, error, .kind = WF_TOKENIZER_WORD, .vocab_size = 4));
    ck_assert_int_eq(wf_tokenizer_vocab_size(t), 4);
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(many_words)
{
    struct wf_string text = made_up(60000), first = {0};
    for (int threads = 1; threads < 4; threads++) {
        wf_tokenizer *t;
        ck_ok(wf_init(error, .threads = threads));
        ck_ok(wf_tokenizer_train(text.data, text.length, &t, error, .kind = WF_TOKENIZER_WORD));
        ck_assert_int_gt(wf_tokenizer_vocab_size(t), 30000);
        struct wf_string got = listing(t, NULL);
        if (threads == 1)
            first = got;
        else {
            ck_assert(has_bytes(&got, first.data, first.length));
            wf_string_free(&got);
        }
        wf_tokenizer_free(t);
    }
    wf_string_free(&first);
    wf_string_free(&text);
}
END_TEST

WF_TEST_MAIN("data/word_train", the_same_as_tokenizers, order, a_vocabulary_too_small, many_words)
