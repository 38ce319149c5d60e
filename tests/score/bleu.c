/* SPDX-License-Identifier: MIT */
/* BLEU against sacreBLEU's figures, and errors. */
#include "score_test.h"

static struct wf_bleu_options options_of(const json_t *test)
{
    struct wf_bleu_options o = {.lowercase = score_int(test, "lowercase"), .effective_order = score_int(test, "effective_order")};
    const char *tokenize = json_string_value(json_object_get(test, "tokenize")),
               *smooth = json_string_value(json_object_get(test, "smooth_method"));
    ck_assert(!tokenize || wf_bleu_tokenizer_parse(tokenize, &o.tokenizer));
    ck_assert(!smooth || wf_bleu_smooth_parse(smooth, &o.smooth));
    o.smooth_value = json_number_value(json_object_get(test, "smooth_value"));
    return o;
}

START_TEST(equals_sacrebleu)
{
    json_t *all = score_golden(), *test;
    size_t i;
    int64_t count = 0;
    static struct corpus c;
    json_array_foreach(json_object_get(all, "cases"), i, test)
    {
        if (strcmp(json_string_value(json_object_get(test, "metric")), "bleu") != 0)
            continue;
        struct wf_bleu_options o = options_of(test);
        struct wf_bleu_score s;
        char line[512];
        score_corpus_of(all, json_string_value(json_object_get(test, "text")), &c);
        ck_ok(wf_bleu_corpus(c.hypotheses, c.references, c.count, &o, &s, error));
        const char *want = score_line_of(test);
        ck_assert_str_eq(wf_bleu_line(&s, true, 2, line, sizeof line), want);
        ck_close(s.score, json_number_value(json_object_get(test, "score")), want);
        ck_close(s.brevity_penalty, json_number_value(json_object_get(test, "bp")), want);
        for (size_t n = 0; n < WF_BLEU_ORDER; n++) {
            ck_close(s.precisions[n], json_number_value(json_array_get(json_object_get(test, "precisions"), n)), want);
            ck_assert_int_eq(s.matches[n], json_integer_value(json_array_get(json_object_get(test, "matches"), n)));
            ck_assert_int_eq(s.totals[n], json_integer_value(json_array_get(json_object_get(test, "totals"), n)));
        }
        count++;
    }
    ck_assert_int_gt(count, 200);
    json_decref(all);
}
END_TEST

/* A scorer that is reset gives the same result for single sentences as a new one, in any order. */
START_TEST(reset_forgets_everything)
{
    json_t *all = score_golden();
    static struct corpus c;
    const struct wf_bleu_options o = {.effective_order = true, .lowercase = true};
    struct wf_bleu_score again, fresh;
    wf_bleu *bleu;
    score_corpus_of(all, "hostile", &c);
    ck_ok(wf_bleu_new(&o, &bleu, error));
    for (int64_t i = c.hypotheses.count - 1; i >= 0; i--) {
        wf_bleu_reset(bleu);
        ck_ok(wf_bleu_add(bleu, c.line[0][i], &c.line[1][i], 1, error));
        ck_ok(wf_bleu_result(bleu, &again, error));
        ck_ok(wf_bleu_corpus((struct wf_segments){&c.line[0][i], 1}, &(struct wf_segments){&c.line[1][i], 1}, 1, &o, &fresh, error));
        ck_assert_int_eq(memcmp(&again, &fresh, sizeof fresh), 0);
    }
    wf_bleu_free(bleu);
    json_decref(all);
}
END_TEST

START_TEST(counts_go_on)
{
    struct wf_bleu_score s;
    wf_bleu *bleu;
    struct wf_segment two[2] = {segment("a b c d e f"), segment("a b x d")};
    ck_ok(wf_bleu_new(NULL, &bleu, error));
    ck_fails(wf_bleu_result(bleu, &s, error), WF_ERR_STATE, "no segments");
    ck_ok(wf_bleu_add(bleu, segment("a b c d"), two, 2, error));
    ck_ok(wf_bleu_result(bleu, &s, error));
    ck_assert_double_eq_tol(s.score, 100, 1e-9);
    ck_assert_int_eq(s.reference_length, 4); /* the closest of 6 and 4 */
    ck_ok(wf_bleu_add(bleu, segment("a b c d e"), two, 2, error));
    ck_ok(wf_bleu_result(bleu, &s, error));
    ck_assert_int_eq(s.reference_length, 8); /* 6 and 4 are as close: the shorter */
    ck_assert_int_eq(s.segments, 2);
    ck_assert_ptr_nonnull(strstr(s.signature, "nrefs:2|"));
    ck_ok(wf_bleu_add(bleu, segment("a b"), two, 1, error));
    ck_ok(wf_bleu_result(bleu, &s, error));
    ck_assert_ptr_nonnull(strstr(s.signature, "nrefs:var|"));
    wf_bleu_reset(bleu);
    ck_ok(wf_bleu_add(bleu, (struct wf_segment){"\0a", 2}, &(struct wf_segment){"a", 1}, 1, error)); /* a NUL is a character */
    ck_ok(wf_bleu_result(bleu, &s, error));
    ck_assert_int_eq(s.matches[0], 0);
    wf_bleu_free(bleu);
}
END_TEST

START_TEST(refusals)
{
    wf_bleu *bleu;
    struct wf_bleu_score s;
    struct wf_segment r = segment("a b"), none = {0}, three[3] = {r, r, r};
    ck_fails(wf_bleu_new(&(struct wf_bleu_options){.smooth_value = -1}, &bleu, error), WF_ERR_ARGUMENT, "smooth_value");
    ck_fails(wf_bleu_new(&(struct wf_bleu_options){.smooth_value = NAN}, &bleu, error), WF_ERR_ARGUMENT, "smooth_value");
    ck_fails(wf_bleu_new(&(struct wf_bleu_options){.tokenizer = 9}, &bleu, error), WF_ERR_ARGUMENT, "9");
    ck_ok(wf_bleu_new(NULL, &bleu, error));
    ck_ok(wf_bleu_add(bleu, r, &r, 1, error));
    ck_fails(wf_bleu_add(bleu, segment("ab\xFFz"), &r, 1, error), WF_ERR_FORMAT, "hypothesis 2, byte 3: not UTF-8: byte 0xFF");
    struct wf_segment cut = segment("abc\xC3"), pair[2] = {r, cut};
    ck_fails(wf_bleu_add(bleu, r, pair, 2, error), WF_ERR_FORMAT, "reference of segment 2, byte 4");
    ck_fails(wf_bleu_add(bleu, none, &r, 1, error), WF_ERR_ARGUMENT, "no hypothesis");
    ck_fails(wf_bleu_add(bleu, r, &none, 1, error), WF_ERR_ARGUMENT, "no reference");
    ck_fails(wf_bleu_add(bleu, r, NULL, 0, error), WF_ERR_ARGUMENT, "no reference");
    ck_ok(wf_bleu_result(bleu, &s, error));
    ck_assert_int_eq(s.segments, 1); /* refused segments are not counted */
    ck_assert_int_eq(s.totals[0], 2);
    wf_bleu_free(bleu);
    wf_bleu_free(NULL);
    struct wf_segments references[2] = {{three, 3}, {three, 2}};
    ck_fails(wf_bleu_corpus((struct wf_segments){three, 3}, references, 2, NULL, &s, error), WF_ERR_FORMAT,
             "3 hypotheses, but 2 lines of reference 2");
    ck_fails(wf_bleu_corpus((struct wf_segments){three, 0}, references, 0, NULL, &s, error), WF_ERR_STATE, "no segments");
    enum wf_bleu_smooth smooth = WF_SMOOTH_NONE;
    ck_assert(!wf_bleu_smooth_parse("expo", &smooth) && smooth == WF_SMOOTH_NONE);
    ck_assert_str_eq(wf_bleu_smooth_name(WF_SMOOTH_ADD_K), "add-k");
    ck_assert_str_eq(wf_bleu_tokenizer_name(WF_BLEU_CHAR), "char");
}
END_TEST

static wf_status score_alone(void *bleu, struct wf_segment hypothesis, struct wf_segment reference, double *score)
{
    struct wf_bleu_score s;
    wf_bleu_reset(bleu);
    wf_status status = wf_bleu_add(bleu, hypothesis, &reference, 1, NULL);
    if (status != WF_OK)
        return status;
    ck_ok(wf_bleu_result(bleu, &s, error));
    ck_assert(reference.text != hypothesis.text || (s.score == 0) == (s.hypothesis_length == 0));
    *score = s.score;
    return WF_OK;
}

START_TEST(noise)
{
    static const char alphabet[] = "aAbB.,-- 019&;qut<\n\t\"'\xC3\xA9\xCE\xA3\xE2\x80\x9E\xF0\x9F\x98\x80\xCC\x81\xFF";
    wf_rng rng = wf_rng_new(4, 0);
    for (int tokenizer = WF_BLEU_13A; tokenizer <= WF_BLEU_CHAR; tokenizer++) {
        const struct wf_bleu_options o = {.tokenizer = tokenizer, .smooth = tokenizer, .lowercase = tokenizer & 1, .effective_order = true};
        wf_bleu *bleu;
        ck_ok(wf_bleu_new(&o, &bleu, error));
        ck_noise(score_alone, bleu, &rng, alphabet);
        wf_bleu_free(bleu);
    }
}
END_TEST

static wf_status score_all(void *ctx, wf_error *error)
{
    const struct corpus *c = ctx;
    struct wf_bleu_score s;
    for (int tokenizer = WF_BLEU_13A; tokenizer <= WF_BLEU_CHAR; tokenizer++) {
        const struct wf_bleu_options o = {.tokenizer = tokenizer, .lowercase = true};
        wf_status status = wf_bleu_corpus(c->hypotheses, c->references, c->count, &o, &s, error);
        if (status != WF_OK)
            return status;
    }
    return WF_OK;
}

START_TEST(memory_runs_out)
{
    json_t *all = score_golden();
    static struct corpus c;
    score_corpus_of(all, "plain", &c);
    ck_assert_int_gt(sweep_memory(score_all, &c), 20);
    json_decref(all);
}
END_TEST

START_TEST(steady_state)
{
    wf_bleu *bleu;
    ck_ok(wf_bleu_new(&(struct wf_bleu_options){.lowercase = true}, &bleu, error));
    ck_steady(score_alone, bleu);
    wf_bleu_free(bleu);
}
END_TEST

/* --- files ----------------------------------------------------------------------------------------------------------- */

static wf_status score_file(const char *hypotheses, const char *reference, struct wf_bleu_score *s, wf_error *error)
{
    char h[256], r[256];
    snprintf(h, sizeof h, "%s", test_file("h", hypotheses, strlen(hypotheses)));
    snprintf(r, sizeof r, "%s", test_file("r", reference, strlen(reference)));
    const char *paths[1] = {r};
    wf_bleu *bleu;
    wf_status status = wf_bleu_new(NULL, &bleu, error);
    if (status == WF_OK)
        status = wf_score_files(h, paths, 1, bleu, NULL, error);
    if (status == WF_OK)
        status = wf_bleu_result(bleu, s, error);
    wf_bleu_free(bleu);
    return status;
}

START_TEST(files)
{
    struct wf_bleu_score s, t;
    ck_ok(score_file("a b c d\ne f g h .\n", "a b c d\ne f g h .\n", &s, error));
    ck_assert_double_eq_tol(s.score, 100, 1e-9);
    ck_assert_int_eq(s.segments, 2);
    ck_assert_int_eq(s.pre_tokenized, 1);
    ck_ok(score_file("a b c d\r\ne f g h .", "a b c d \t\ne f g h .\xC2\xA0\r\n", &t, error)); /* line ends of all kinds, none at the end */
    ck_assert_int_eq(memcmp(&s, &t, sizeof s), 0);
    ck_ok(score_file("\n", "\n", &s, error));
    ck_assert_int_eq(s.segments, 1);
    ck_fails(score_file("a\nb\nc\nd\n", "a\nb\n", &s, error), WF_ERR_FORMAT, "/h has 4 lines of hypotheses, ");
    ck_fails(score_file("a\nb\nc\nd\n", "a\nb\n", &s, error), WF_ERR_FORMAT, "/r has 2 of references");
    ck_fails(score_file("a", "a\nb\n\n", &s, error), WF_ERR_FORMAT, "has 1 line of hypotheses");
    ck_fails(score_file("a", "a\nb\n\n", &s, error), WF_ERR_FORMAT, "has 3 of references");
    ck_fails(score_file("", "", &s, error), WF_ERR_FORMAT, "no lines");
    ck_fails(score_file("a\nb \xFE\n", "a\nb\n", &s, error), WF_ERR_FORMAT, "/h:2:3: not UTF-8: byte 0xFE");
    ck_fails(score_file("a\nb\n", "a\n\xE2\x82\n", &s, error), WF_ERR_FORMAT, "/r:2:1: not UTF-8");
    const char *missing[1] = {"/no/such.txt"}, *folder[1] = {"/"};
    ck_fails(wf_score_files("/no/hyp.txt", missing, 1, NULL, NULL, error), WF_ERR_IO, "/no/such.txt: cannot be opened: No such file");
    ck_fails(wf_score_files("/dev/null", folder, 1, NULL, NULL, error), WF_ERR_IO, "/: is a folder");
    ck_fails(wf_score_files("/dev/null", NULL, 0, NULL, NULL, error), WF_ERR_ARGUMENT, "no file of references");
}
END_TEST

/* A line longer than any buffer, and without words. */
START_TEST(long_lines)
{
    int64_t bytes = 300000;
    char *text = wf_alloc((size_t)bytes + 1);
    struct wf_bleu_score s;
    for (int64_t i = 0; i < bytes; i++)
        text[i] = i % 7 == 6 ? ' ' : (char)('a' + (i * i / 7) % 26);
    text[bytes] = 0;
    ck_ok(score_file(text, text, &s, error));
    ck_assert_double_eq_tol(s.score, 100, 1e-9);
    ck_assert_int_eq(s.totals[0], (bytes + 6) / 7);
    memset(text, 'x', (size_t)bytes);
    ck_ok(score_file(text, text, &s, error));
    ck_assert_int_eq(s.totals[0], 1);
    wf_free(text);
}
END_TEST

static wf_status files_body(void *ctx, wf_error *error)
{
    return score_file(ctx, ctx, &(struct wf_bleu_score){0}, error);
}

START_TEST(memory_runs_out_on_files)
{
    ck_assert_int_gt(sweep_memory(files_body, "a b c d e\nf g h\n"), 5);
}
END_TEST

WF_TEST_MAIN("bleu", equals_sacrebleu, reset_forgets_everything, counts_go_on, refusals, noise, memory_runs_out, steady_state, files,
             long_lines, memory_runs_out_on_files)
