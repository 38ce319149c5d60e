/* SPDX-License-Identifier: MIT */
/* chrF against sacreBLEU's figures, and errors. */
#include "score_test.h"

START_TEST(equals_sacrebleu)
{
    json_t *all = score_golden(), *test;
    size_t i;
    int64_t count = 0;
    static struct corpus c;
    json_array_foreach(json_object_get(all, "cases"), i, test)
    {
        if (strcmp(json_string_value(json_object_get(test, "metric")), "chrf") != 0)
            continue;
        struct wf_chrf_options o = {score_int(test, "char_order"), score_int(test, "word_order"), score_int(test, "beta"),
                                    score_int(test, "lowercase"),  score_int(test, "whitespace"), score_int(test, "eps_smoothing")};
        struct wf_chrf_score s;
        char line[512];
        score_corpus_of(all, json_string_value(json_object_get(test, "text")), &c);
        ck_ok(wf_chrf_corpus(c.hypotheses, c.references, c.count, &o, &s, error));
        const char *want = score_line_of(test);
        ck_assert_str_eq(wf_chrf_line(&s, true, 2, line, sizeof line), want);
        ck_close(s.score, json_number_value(json_object_get(test, "score")), want);
        count++;
    }
    ck_assert_int_gt(count, 150);
    json_decref(all);
}
END_TEST

START_TEST(reset_forgets_everything)
{
    json_t *all = score_golden();
    static struct corpus c;
    const struct wf_chrf_options o = {.word_order = 2, .whitespace = true};
    struct wf_chrf_score again, fresh;
    wf_chrf *chrf;
    score_corpus_of(all, "hostile", &c);
    ck_ok(wf_chrf_new(&o, &chrf, error));
    for (int64_t i = c.hypotheses.count - 1; i >= 0; i--) {
        wf_chrf_reset(chrf);
        ck_ok(wf_chrf_add(chrf, c.line[0][i], &c.line[1][i], 1, error));
        ck_ok(wf_chrf_result(chrf, &again, error));
        ck_ok(wf_chrf_corpus((struct wf_segments){&c.line[0][i], 1}, &(struct wf_segments){&c.line[1][i], 1}, 1, &o, &fresh, error));
        ck_assert_int_eq(memcmp(&again, &fresh, sizeof fresh), 0);
    }
    wf_chrf_free(chrf);
    json_decref(all);
}
END_TEST

START_TEST(refusals)
{
    wf_chrf *chrf;
    struct wf_chrf_score s;
    struct wf_segment r = segment("a b"), none = {0};
    char line[256];
    ck_fails(wf_chrf_new(&(struct wf_chrf_options){.char_order = -1}, &chrf, error), WF_ERR_ARGUMENT, "char_order is -1");
    ck_fails(wf_chrf_new(&(struct wf_chrf_options){.word_order = WF_CHRF_MAX_ORDER + 1}, &chrf, error), WF_ERR_ARGUMENT, "word_order 33");
    ck_fails(wf_chrf_new(&(struct wf_chrf_options){.beta = 1001}, &chrf, error), WF_ERR_ARGUMENT, "1001");
    ck_ok(wf_chrf_new(&(struct wf_chrf_options){.char_order = WF_CHRF_MAX_ORDER, .word_order = WF_CHRF_MAX_ORDER, .beta = 1000}, &chrf,
                      error));
    ck_fails(wf_chrf_result(chrf, &s, error), WF_ERR_STATE, "no segments");
    ck_ok(wf_chrf_add(chrf, r, &r, 1, error));
    ck_fails(wf_chrf_add(chrf, segment("\xC0\x80"), &r, 1, error), WF_ERR_FORMAT, "hypothesis 2, byte 1: not UTF-8");
    ck_fails(wf_chrf_add(chrf, none, &r, 1, error), WF_ERR_ARGUMENT, "no hypothesis");
    ck_fails(wf_chrf_add(chrf, r, &none, 1, error), WF_ERR_ARGUMENT, "no reference");
    ck_ok(wf_chrf_result(chrf, &s, error));
    ck_assert_int_eq(s.segments, 1);
    ck_assert_int_eq(strlen(s.name), strlen("chrF1000") + WF_CHRF_MAX_ORDER);
    wf_chrf_free(chrf);
    wf_chrf_free(NULL);
    ck_ok(wf_chrf_corpus((struct wf_segments){&r, 1}, &(struct wf_segments){&r, 1}, 1, NULL, &s, error));
    ck_assert_str_eq(wf_chrf_line(&s, false, 1, line, sizeof line), "chrF2 = 100.0");
    ck_fails(wf_chrf_corpus((struct wf_segments){&r, 1}, &(struct wf_segments){&r, 0}, 1, NULL, &s, error), WF_ERR_FORMAT,
             "1 hypotheses, but 0 lines of reference 1");
}
END_TEST

static wf_status score_alone(void *chrf, struct wf_segment hypothesis, struct wf_segment reference, double *score)
{
    struct wf_chrf_score s;
    wf_chrf_reset(chrf);
    wf_status status = wf_chrf_add(chrf, hypothesis, &reference, 1, NULL);
    if (status != WF_OK)
        return status;
    ck_ok(wf_chrf_result(chrf, &s, error));
    *score = s.score;
    return WF_OK;
}

START_TEST(noise)
{
    static const char alphabet[] = "aAbB.,-- (!)\n\t\"'\xC3\xA9\xCE\xA3\xE2\x80\x9E\xF0\x9F\x98\x80\xCC\x81\xFF";
    wf_rng rng = wf_rng_new(4, 0);
    for (int k = 0; k < 4; k++) {
        const struct wf_chrf_options o = {.word_order = k, .lowercase = k & 1, .whitespace = k > 1};
        wf_chrf *chrf;
        ck_ok(wf_chrf_new(&o, &chrf, error));
        ck_noise(score_alone, chrf, &rng, alphabet);
        wf_chrf_free(chrf);
    }
}
END_TEST

static wf_status score_all(void *ctx, wf_error *error)
{
    const struct corpus *c = ctx;
    struct wf_chrf_score s;
    return wf_chrf_corpus(c->hypotheses, c->references, c->count, &(struct wf_chrf_options){.word_order = 2, .lowercase = true}, &s, error);
}

START_TEST(memory_runs_out)
{
    json_t *all = score_golden();
    static struct corpus c;
    score_corpus_of(all, "plain", &c);
    ck_assert_int_gt(sweep_memory(score_all, &c), 8);
    json_decref(all);
}
END_TEST

START_TEST(steady_state)
{
    wf_chrf *chrf;
    ck_ok(wf_chrf_new(&(struct wf_chrf_options){.lowercase = true, .word_order = 2}, &chrf, error));
    ck_steady(score_alone, chrf);
    wf_chrf_free(chrf);
}
END_TEST

WF_TEST_MAIN("chrf", equals_sacrebleu, reset_forgets_everything, refusals, noise, memory_runs_out, steady_state)
