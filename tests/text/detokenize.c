/* SPDX-License-Identifier: MIT */
/* Detokenising against Moses's rules. */
#include "../score/score_test.h"
#include <weft/detokenize.h>

/* language, tokens and the text that the package sacremoses makes of them */
START_TEST(equals_moses)
{
    int64_t bytes, count = 0;
    char *all = golden("../scores/detokenized.txt", &bytes);
    for (char *line = all, *next; *line; line = next) {
        char *end = strchr(line, '\n');
        next = end + 1;
        *end = 0;
        char *tokens = strchr(line, '\t'), *text = strchr(tokens + 1, '\t');
        *tokens++ = *text++ = 0;
        struct wf_string out = {0};
        ck_ok(wf_detokenize(tokens, (int64_t)strlen(tokens), line, &out, error));
        ck_assert_msg(strcmp(out.data, text) == 0, "%s \"%s\": \"%s\", not \"%s\"", line, tokens, out.data, text);
        wf_string_free(&out);
        count++;
    }
    ck_assert_int_gt(count, 60);
    wf_free(all);
}
END_TEST

static void expect(const char *language, const char *tokens, const char *text)
{
    struct wf_string out = {0};
    ck_ok(wf_detokenize(tokens, (int64_t)strlen(tokens), language, &out, error));
    ck_assert_str_eq(out.data, text);
    wf_string_free(&out);
}

/* Rules of detokenizer.perl that sacremoses lacks, and our own. */
START_TEST(rules)
{
    expect("en", "it 's , 'said he", "it's, 'said he"); /* ' joins to a letter or digit only */
    expect("de", "it 's", "it 's");
    expect(NULL, "it 's", "it 's");
    expect("en", "I do n't know", "I don't know");
    expect("en", "( n't", "(n't");
    expect("en", "한국어 는 어렵다 . 東京 は", "한국어 는 어렵다. 東京は"); /* Korean has spaces */
    expect("xx", "a\tb\nc \r d", "a b c d");
    expect("en", "", "");
    expect("en", " ", "");
}
END_TEST

START_TEST(appends_and_refuses)
{
    struct wf_string out = {0};
    ck_ok(wf_detokenize("a .", 3, "en", &out, error));
    ck_ok(wf_detokenize("( b )", 5, "en", &out, error));
    ck_assert_str_eq(out.data, "a.(b)");
    ck_fails(wf_detokenize("ab\x80", 3, "en", &out, error), WF_ERR_FORMAT, "not UTF-8 at byte 3");
    ck_assert_str_eq(out.data, "a.(b)");
    wf_string_free(&out);
}
END_TEST

static wf_status detokenize_all(void *ctx, wf_error *error)
{
    struct wf_string out = {0};
    wf_status status = wf_detokenize(ctx, (int64_t)strlen(ctx), "en", &out, error);
    wf_string_free(&out);
    return status;
}

START_TEST(memory_runs_out)
{
    char tokens[4000] = "";
    for (int i = 0; i < 250; i++)
        strcat(tokens, i % 5 == 0 ? "' \" " : "word &amp; ");
    ck_assert_int_gt(sweep_memory(detokenize_all, tokens), 5);
}
END_TEST

/* The text keeps every sign of the tokens, in order, and depends on nothing else; each kind of noise in each language. */
START_TEST(noise)
{
    static const char *const languages[] = {"en", "de", "fr"};
    static const char alphabet[] = "aAsz'\"`.,!%([)] \t  \xE2\x80\x9E\xE4\xB8\xAD\xC2\xA3-li019";
    wf_rng rng = wf_rng_new(4, 0);
    int64_t made = 0;
    for (int round = 0; round < 40000; round++) {
        char text[40], kept[40], got[200];
        int64_t k = 0, g = 0;
        struct wf_segment line = noise_text(&rng, text, sizeof text, round % 4 == 0 ? NULL : alphabet, sizeof alphabet - 1);
        struct wf_string out = {0};
        wf_error problem = {0};
        wf_status status = wf_detokenize(text, line.length, languages[round % 3], &out, &problem);
        ck_assert(status == WF_OK || status == WF_ERR_FORMAT);
        if (status == WF_OK && round % 4 != 0) {
            for (int64_t i = 0; i < line.length; i++)
                if (text[i] != ' ' && text[i] != '\t')
                    kept[k++] = text[i];
            for (int64_t i = 0; i < out.length; i++)
                if (out.data[i] != ' ')
                    got[g++] = out.data[i];
            ck_assert(g == k && memcmp(got, kept, (size_t)k) == 0);
            ck_assert(out.length == 0 || (out.data[0] != ' ' && out.data[out.length - 1] != ' '));
            ck_assert(!strstr(out.data, "  "));
            made++;
        }
        wf_string_free(&out);
    }
    ck_assert_int_gt(made, 1000);
}
END_TEST

WF_TEST_MAIN("detokenize", equals_moses, rules, appends_and_refuses, memory_runs_out, noise)
