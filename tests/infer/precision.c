/* SPDX-License-Identifier: MIT */
/* The precision of a model, or of a struct wf_next, reaches the passes of generation and search: in bf16 they give other logits than in
 * float. For evaluation, attention maps and sentence vectors see tests/cli/precision.sh. */
#include <weft/generate.h>
#include <weft/search.h>

#include "../models/tape_values.h"
#include "translate_test.h"

enum { V = 29, CONTEXT = 12, TOKENS = 3 };

static wf_model *language_model(enum wf_precision precision)
{
    struct wf_config c = preset("char-rms");
    set_key(&c, "vocab_size", V);
    set_key(&c, "context", CONTEXT);
    wf_model *m = model_of(&c, 5);
    ck_ok(wf_model_set_precision(m, precision, error));
    return m;
}

/* The logits of each call, of a model whose precision `wf_next` states. */
struct recorder {
    struct wf_next model;
    double sum;
};

static wf_tensor *recorded_next(void *ctx, wf_tensor *ids, struct wf_cache *cache)
{
    struct recorder *r = ctx;
    wf_real logits[V];
    wf_tensor *x = r->model.next(r->model.ctx, ids, cache);
    read_values(x, logits, V);
    for (int i = 0; i < V; i++)
        r->sum += fabs((double)logits[i]) * (i + 1);
    return x;
}

static wf_status recorded_cache(void *ctx, struct wf_cache *cache, int64_t rows, int64_t capacity, wf_error *error)
{
    const struct recorder *r = ctx;
    return r->model.cache(r->model.ctx, cache, rows, capacity, error);
}

/* A number that tells the logits of a generation of TOKENS ids. */
static double generated(enum wf_precision precision)
{
    wf_model *m = language_model(precision);
    wf_tape *tape = new_tape();
    struct recorder r = {.model = wf_next_of(m)};
    ck_assert_int_eq(r.model.precision, precision);
    struct wf_next next = r.model;
    next.next = recorded_next, next.cache = recorded_cache, next.ctx = &r;
    int32_t out[TOKENS];
    int64_t count;
    ck_ok(wf_generate_next(&next, tape, (int32_t[]){3, 1, 4}, 3, &(struct wf_generate_options){.max_tokens = TOKENS}, out, &count, error));
    ck_assert_int_eq(count, TOKENS);
    wf_tape_free(tape);
    wf_model_free(m);
    return r.sum;
}

static double searched(enum wf_precision precision)
{
    wf_model *m = language_model(precision);
    wf_tape *tape = new_tape();
    const struct wf_next next = wf_next_of(m);
    struct wf_hypotheses found;
    ck_ok(wf_beam_search(&next, tape, ((int32_t[]){3, 1, 4}), 3, &found, error, .max_tokens = TOKENS));
    const double score = found.hypothesis[0].log_probability;
    wf_hypotheses_free(&found);
    wf_tape_free(tape);
    wf_model_free(m);
    return score;
}

static double translated(enum wf_precision precision)
{
    const struct wf_config c = pairs_config("multi30k", V);
    wf_model *m = model_of(&c, 5);
    wf_tape *tape = new_tape();
    struct wf_translations t = {0};
    ck_ok(wf_model_set_precision(m, precision, error));
    ck_ok(wf_translate(m, tape, ((int32_t[]){3, 7, 9, 5}), ((int32_t[]){0, 4}), 1, BOS, EOS, &t, error, .beam = 4));
    const double score = t.hypothesis[0].log_probability;
    wf_translations_free(&t);
    wf_tape_free(tape);
    wf_model_free(m);
    return score;
}

static void compare(double (*use)(enum wf_precision precision))
{
    const double exact = use(WF_PRECISION_REAL), rounded = use(WF_PRECISION_BF16), apart = fabs(rounded - exact) / fabs(exact);
    ck_assert_msg(apart > 1e-6 && apart < 0.05, "float gives %.12g, bf16 %.12g", exact, rounded);
}

START_TEST(generation)
{
    compare(generated);
}
END_TEST

START_TEST(beam_search)
{
    compare(searched);
}
END_TEST

START_TEST(translation)
{
    compare(translated);
}
END_TEST

WF_TEST_MAIN("precision", generation, beam_search, translation)
