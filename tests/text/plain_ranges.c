/* SPDX-License-Identifier: MIT */
/* Special tokens inside and outside of ranges of plain text. */
#include "../data/data_test.h"

/* Ids: a 0, b 1, < 2, > 3, / 4, blank 5, A 6, the tokens <a> 7 (special), <b> 8 (not special), </A> 9 (special, found after the normalizer)
 */
static wf_tokenizer *made(void)
{
    static const char json[] =
        "{\"version\": \"1.0\", \"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Lowercase\"}, {\"type\": "
        "\"Replace\", \"pattern\": {\"String\": \"aaa\"}, \"content\": \"a\"}]}, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, "
        "\"b\": 1, "
        "\"<\": 2, \">\": 3, \"/\": 4, \" \": 5, \"A\": 6}, \"merges\": []}, \"added_tokens\": ["
#define TOKEN(id, content, normalized, special)                                                                                            \
    "{\"id\": " id ", \"content\": \"" content                                                                                             \
    "\", \"single_word\": false, \"lstrip\": false, \"rstrip\": true, \"normalized\": " normalized ", \"special\": " special "}"
        TOKEN("7", "<a>", "false", "true") ", " TOKEN("8", "<b>", "false", "false") ", " TOKEN("9", "</A>", "true", "true") "]}";
    wf_tokenizer *t = NULL;
    ck_ok(wf_tokenizer_parse(json, (int64_t)strlen(json), "x.json", &t, error));
    return t;
}

static void gives(const char *text, const struct wf_text_range *plain, int64_t plains, const char *expected)
{
    wf_tokenizer *t = made();
    wf_token_cache *cache = wf_token_cache_new(t, 100, NULL);
    for (int k = 0; k < 2; k++) {
        struct wf_tokens ids = {0};
        const struct wf_encode_options o = {.plain = plain, .plains = plains, .cache = k ? cache : NULL};
        char out[256] = "";
        ck_ok(wf_tokenizer_encode_with(t, text, (int64_t)strlen(text), &o, &ids, error));
        for (int64_t i = 0, at = 0; i < ids.count; i++)
            at += snprintf(out + at, sizeof out - (size_t)at, "%s%d", i ? " " : "", (int)ids.id[i]);
        ck_assert_msg(!strcmp(out, expected), "'%s' gives %s instead of %s", text, out, expected);
        wf_tokens_free(&ids);
    }
    wf_token_cache_free(cache);
    wf_tokenizer_free(t);
}

START_TEST(special_tokens_in_ranges)
{
    gives("a<a>b</A>", NULL, 0, "0 7 1 9");
    gives("a<a>b</A>", (struct wf_text_range[]){{0, 9}}, 1, "0 2 0 3 1 2 4 0 3");
    gives("a<a>b</A>", (struct wf_text_range[]){{0, 5}}, 1, "0 2 0 3 1 9");
    gives("a<a>b</A>", (struct wf_text_range[]){{4, 9}}, 1, "0 7 1 2 4 0 3");
    gives("a<a>b</A>", (struct wf_text_range[]){{4, 5}}, 1, "0 7 1 9");
    /* tokens that the file does not mark as special are found everywhere */
    gives("<b><a><b>", (struct wf_text_range[]){{0, 9}}, 1, "8 2 0 3 8");
    /* one byte of the token in a range is enough, on either side; an empty range has none */
    gives("<a><a><a>", (struct wf_text_range[]){{2, 4}}, 1, "2 0 3 2 0 3 7");
    gives("<a><a><a>", (struct wf_text_range[]){{3, 3}}, 1, "7 7 7");
    gives("<a><a><a>", (struct wf_text_range[]){{0, 1}, {8, 9}}, 2, "2 0 3 7 2 0 3");
    /* a token that begins in a range does not hide the one behind the range */
    gives("<<a></A>", (struct wf_text_range[]){{0, 1}}, 1, "2 7 9");
    /* white space that a token strips is stripped in a range too, as without ranges */
    gives("<a>  b", (struct wf_text_range[]){{3, 6}}, 1, "7 1");
}
END_TEST

/* The normalizer makes one a of three before the token that is found after it. */
START_TEST(ranges_count_in_the_callers_text)
{
    gives("aaaaaa</A>", NULL, 0, "0 0 9");
    gives("aaaaaa</A>", (struct wf_text_range[]){{0, 6}}, 1, "0 0 9");
    gives("aaaaaa</A>", (struct wf_text_range[]){{9, 10}}, 1, "0 0 2 4 0 3");
}
END_TEST

WF_TEST_MAIN("plain_ranges", special_tokens_in_ranges, ranges_count_in_the_callers_text)
