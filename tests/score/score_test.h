/* SPDX-License-Identifier: MIT */
/* Shared by the tests of BLEU and chrF: the golden cases of tests/golden/make_scores.py, and random text. */
#ifndef TESTS_SCORE_TEST_H
#define TESTS_SCORE_TEST_H

#include <jansson.h>
#include <math.h>

#include "../data/data_test.h"
#include <weft/internal/json.h>
#include <weft/random.h>
#include <weft/score.h>

static inline json_t *score_golden(void)
{
    int64_t bytes;
    wf_error problem = {0};
    char *text = golden("../scores/scores.json", &bytes);
    json_t *json = wf_json_parse(text, bytes, "scores.json", &problem);
    ck_assert_msg(json != NULL, "%s", problem.message);
    wf_free(text);
    return json;
}

enum { MOST_LINES = 128, MOST_REFERENCES = 4 };
struct corpus {
    struct wf_segment line[1 + MOST_REFERENCES][MOST_LINES];
    struct wf_segments hypotheses, references[MOST_REFERENCES];
    int64_t count;
};

/* Lines of the golden file, which owns them. null is a missing reference. */
static inline void score_corpus_of(const json_t *golden_file, const char *name, struct corpus *c)
{
    const json_t *text = json_object_get(json_object_get(golden_file, "texts"), name);
    const json_t *references = json_object_get(text, "references");
    ck_assert_msg(text != NULL, "no text %s", name);
    c->count = (int64_t)json_array_size(references);
    for (int64_t f = 0; f <= c->count; f++) {
        const json_t *lines = f ? json_array_get(references, (size_t)f - 1) : json_object_get(text, "hypotheses");
        int64_t n = (int64_t)json_array_size(lines);
        ck_assert_int_le(n, MOST_LINES);
        for (int64_t i = 0; i < n; i++) {
            const json_t *line = json_array_get(lines, (size_t)i);
            c->line[f][i] = (struct wf_segment){json_string_value(line), (int64_t)json_string_length(line)};
        }
        *(f ? &c->references[f - 1] : &c->hypotheses) = (struct wf_segments){c->line[f], n};
    }
}

static inline int score_int(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : (int)json_integer_value(value);
}

/* The line that sacreBLEU prints, with Weft's version instead of its own. */
static inline const char *score_line_of(const json_t *test)
{
    static char line[512];
    const char *theirs = json_string_value(json_object_get(test, "line")), *version = strstr(theirs, "version:"), *rest;
    ck_assert_ptr_nonnull(version);
    rest = strchr(version, ' ');
    snprintf(line, sizeof line, "%.*sversion:weft-%s%s", (int)(version - theirs), theirs, wf_version(), rest);
    return line;
}

static inline void ck_close(double got, double want, const char *what)
{
    ck_assert_msg(fabs(got - want) <= 1e-12 * fmax(1, fabs(want)), "%s: %.17g, not %.17g", what, got, want);
}

static inline struct wf_segment segment(const char *text)
{
    return (struct wf_segment){text, -1};
}

/* Random bytes, or characters of `alphabet`, in text; their number is random too, below size. */
static inline struct wf_segment noise_text(wf_rng *rng, char *text, size_t size, const char *alphabet, size_t bytes)
{
    for (size_t i = 0; i < size;) {
        size_t at = alphabet ? wf_rng_below(rng, bytes) : 0, more = 1;
        while (alphabet && (alphabet[at] & 0xC0) == 0x80)
            at--;
        while (alphabet && at + more < bytes && (alphabet[at + more] & 0xC0) == 0x80)
            more++;
        for (size_t k = 0; k < more && i < size; k++)
            text[i++] = alphabet ? alphabet[at + k] : (char)wf_rng_next(rng);
    }
    return (struct wf_segment){text, (int64_t)wf_rng_below(rng, size)};
}

/* A scorer's score of one hypothesis against one reference. WF_ERR_FORMAT: they are not UTF-8. */
typedef wf_status score_one(void *scorer, struct wf_segment hypothesis, struct wf_segment reference, double *score);

/* Random bytes, and characters of the alphabet: each text is scored or refused as not UTF-8. The score is in its range, and of a text
 * against itself 100, or 0 if nothing in it counts. */
static inline void ck_noise(score_one *score, void *scorer, wf_rng *rng, const char *alphabet)
{
    int64_t scored = 0;
    for (int round = 0; round < 20000; round++) {
        char text[2][24];
        struct wf_segment line[2];
        double value;
        for (int t = 0; t < 2; t++)
            line[t] = noise_text(rng, text[t], sizeof text[t], round & 1 ? NULL : alphabet, strlen(alphabet));
        wf_status status = score(scorer, line[0], line[1], &value);
        ck_assert(status == WF_OK || status == WF_ERR_FORMAT);
        if (status != WF_OK)
            continue;
        scored++;
        ck_assert(value >= 0 && value <= 100 + 1e-9);
        ck_assert_int_eq(score(scorer, line[0], line[0], &value), WF_OK);
        ck_assert(value == 0 || fabs(value - 100) < 1e-9);
    }
    ck_assert_int_gt(scored, 500);
}

/* A scorer allocates nothing in the steady state. */
static inline void ck_steady(score_one *score, void *scorer)
{
    json_t *all = score_golden();
    static struct corpus c;
    int64_t before = 0;
    double value;
    score_corpus_of(all, "plain", &c);
    for (int round = 0; round < 2; round++) {
        before = wf_alloc_count();
        for (int64_t i = 0; i < c.hypotheses.count; i++)
            ck_assert_int_eq(score(scorer, c.line[0][i], c.line[1][i], &value), WF_OK);
    }
    ck_assert_int_eq(wf_alloc_count(), before);
    json_decref(all);
}

#endif
