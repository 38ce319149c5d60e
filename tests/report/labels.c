/* SPDX-License-Identifier: MIT */
/* Tokens as people see them: of each kind of tokenizer; how wide, and cut where they are too long. */
#include <check_weft.h>

#include "../../report/labels.h"
#include "../data/data_test.h"
#include <weft/memory.h>

static wf_tokenizer *train(const char *text, wf_tokenizer_kind kind, int64_t types, const char *const *specials, int64_t special_count)
{
    wf_tokenizer *t = NULL;
    ck_ok(wf_tokenizer_train(text, (int64_t)strlen(text), &t, error, .kind = kind, .vocab_size = types, .specials = specials,
                             .special_count = special_count));
    return t;
}

/* Labels of the tokens of a text. */
static void labelled(const wf_tokenizer *tokenizer, const char *text, const char *wanted)
{
    struct wf_tokens ids = {0};
    char all[2048] = "";
    ck_ok(wf_tokenizer_encode(tokenizer, text, (int64_t)strlen(text), &ids, error));
    for (int64_t i = 0; i < ids.count; i++) {
        char *label = label_of(tokenizer, ids.id[i]);
        ck_assert_ptr_nonnull(label);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i > 0 ? "|" : "", label);
        wf_free(label);
    }
    ck_assert_str_eq(all, wanted);
    wf_tokens_free(&ids);
}

/* Blanks, controls, marks that need something to stand on, what is invisible, from right to left, far planes. */
START_TEST(of_characters)
{
    const char *text = "a b\n\tc\re\xcc\x81\xc2\xa0\xe2\x80\x8b\xe2\x80\xae\xd7\xa9日😀\xe3\x85\xa4_▁\u115F\u1160\u2800\uFFA0\u200C\u200D";
    wf_tokenizer *t = train(text, WF_TOKENIZER_CHAR, 0, NULL, 0);
    labelled(
        t, text,
        "a|▁|b|⏎|⇥|c|␍|e|◌\xcc\x81|<U+00A0>|<U+200B>|<U+202E>|ש|日|😀|<U+3164>|_|▁|<U+115F>|<U+1160>|<U+2800>|<U+FFA0>|<U+200C>|<U+200D>");
    wf_tokenizer_free(t);
}
END_TEST

/* Joiners stay where they join, as in Persian words, not at a word's ends. */
START_TEST(of_words)
{
    const char *text = "می\u200Cخواهم \u200Dab ab\u200C e\u0301";
    wf_tokenizer *t = train(text, WF_TOKENIZER_WORD, 0, NULL, 0);
    labelled(t, text, "می\u200Cخواهم|<U+200D>ab|ab<U+200C>|e\u0301");
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(of_bytes)
{
    /* 256 of them and marks, hardly any merges */
    wf_tokenizer *t = train("the the the the then", WF_TOKENIZER_BYTE_BPE, 280, NULL, 0);
    labelled(t, "the ä", "the|▁|<C3>|<A4>");
    labelled(t, "\xc3\xa0\xc3\xad", "<C3>|<A0>|<C3>|<AD>");
    labelled(t, "x\x01\n\x7f</s>", "x|␁|⏎|␡|</s>");
    wf_tokenizer_free(t);
    /* whole characters of pieces come back as text */
    t = train("größe größe größe größe 日本 日本 日本 日本", WF_TOKENIZER_BYTE_BPE, 280, NULL, 0);
    labelled(t, "größe größe 日本", "größe|▁größe|▁日本");
    wf_tokenizer_free(t);
    /* what is in the vocabulary as it is said is not taken for bytes */
    t = train("the the", WF_TOKENIZER_BYTE_BPE, 280, (const char *const[]){"<é>", "<Ġ>"}, 2);
    labelled(t, "<é>é<Ġ>", "<é>|<C3>|<A9>|<Ġ>");
    /* nor where the file pads what is alone */
    wf_tokenizer *padded = tokenizer_with(t, "padding",
                                          "{\"strategy\": {\"Fixed\": 9}, \"direction\": \"Right\", \"pad_to_multiple_of\": null, "
                                          "\"pad_id\": 0, \"pad_type_id\": 0, \"pad_token\": \"<pad>\"}");
    char *label = label_of(padded, wf_tokenizer_id(padded, "<é>", (int64_t)strlen("<é>")));
    ck_assert_str_eq(label, "<é>");
    wf_free(label);
    wf_tokenizer_free(padded);
    wf_tokenizer_free(t);
}
END_TEST

static void shortened(const char *text, double most, const char *wanted)
{
    char *label = label_shorten(text, most);
    ck_assert_ptr_nonnull(label);
    ck_assert_str_eq(label, wanted);
    wf_free(label);
}

START_TEST(cut_between_characters)
{
    ck_assert_double_eq(label_width(""), 0);
    ck_assert_double_eq(label_width("WWW"), 3);
    ck_assert_double_gt(label_width("日本"), label_width("ab"));
    ck_assert_double_eq(label_width("e\u0301"), label_width("e"));
    /* no less than DejaVu Sans, the first of the pictures' fonts: the marks of our own tokenizers, and Latin capitals */
    ck_assert_double_ge(label_width("<s>"), 2.20);
    ck_assert_double_ge(label_width("<unk>"), 3.52);
    ck_assert_double_ge(label_width("#&+=^~"), 4.97);
    ck_assert_double_ge(label_width("ÄÖÜÑÓĐ"), 4.52);
    shortened("WWW", 3, "WWW");
    shortened("WWWW", 3, "WW…");
    shortened("WWe\u0301\u0301\u0301WWWW", 3.7, "WWe\u0301\u0301\u0301…");
    shortened("👩\u200D👩\u200D👧👩\u200D👩\u200D👧W", 5, "👩\u200D👩\u200D👧…");
    shortened("👩\u200D👩\u200D👧WWWWW", 2, "👩\u200D👩\u200D👧…"); /* at least one */
}
END_TEST

WF_TEST_MAIN("labels", of_characters, of_words, of_bytes, cut_between_characters)
