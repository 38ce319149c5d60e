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

#endif
