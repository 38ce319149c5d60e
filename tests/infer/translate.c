/* SPDX-License-Identifier: MIT */
/* Translations: the same bits beside any other sentences; limits, refusals, memory. */
#include <weft/internal/scratch.h>

#include "../models/memory_test.h"
#include "translate_test.h"

static void translate(const wf_model *m, wf_tape *tape, const struct sentences *s, struct wf_translate_options o,
                      struct wf_translations *out)
{
    ck_ok(wf_translate_with(m, tape, s->ids, s->offsets, s->count, BOS, EOS, &o, out, error));
    ck_assert_int_eq(out->count, s->count);
}

/* Batches of 1, 7 and all, three orders, one thread and two: the same ids, the same bits of the scores. */
START_TEST(neighbours_do_not_matter)
{
    wf_tape *tape = new_tape();
    for (int which = 0; which < 5; which += sampled() ? 2 : 1) {
        struct wf_config c = which < 4 ? pairs_config(names[which], 37) : preset("multi30k");
        set_key(&c, "vocab_size", which < 4 ? 37 : 700);
        set_keys(&c, "max_length=30 positions=0");
        wf_model *m = decided_model(&c, (uint64_t)which, key_of(&c, "tied") ? 1.25 : 2);
        struct sentences s, mixed;
        const int n = which < 4 ? 70 : 20;
        random_sentences(&s, &c, n, 18, (uint64_t)which);
        for (int wide = 0; wide < 2; wide++) {
            struct wf_translations first, t;
            int64_t n_best = wide ? 3 : 1;
            struct wf_translate_options o = {.beam = wide ? 4 : 1, .n_best = n_best, .batch = 1};
            ck_ok(wf_set_threads(1, error));
            translate(m, tape, &s, o, &first);
            for (int round = 0; round < 5; round++) {
                int order[70];
                wf_rng rng = wf_rng_new((uint64_t)round, 5);
                for (int i = 0; i < n; i++) {
                    int64_t at = round % 3 ? (int64_t)wf_rng_below(&rng, (uint64_t)i + 1) : i;
                    order[i] = order[at];
                    order[at] = i;
                }
                reorder(&s, order, &mixed);
                o.batch = round % 2 ? 7 : 64;
                ck_ok(wf_set_threads(1 + round / 2 % 2, error));
                translate(m, tape, &mixed, o, &t);
                for (int i = 0; i < n; i++)
                    for (int64_t k = 0; k < n_best; k++)
                        ck_assert_msg(same_hypothesis(&t.hypothesis[i * n_best + k], &first.hypothesis[order[i] * n_best + k]),
                                      "model %d, beam %d, round %d: hypothesis %d of sentence %d", which, (int)o.beam, round, (int)k,
                                      order[i]);
                wf_translations_free(&t);
            }
            int different = 0;
            for (int i = 1; i < n; i++)
                different += !same_hypothesis(&first.hypothesis[i * n_best], &first.hypothesis[0]);
            ck_assert_int_gt(different, n / 2);
            wf_translations_free(&first);
        }
        wf_model_free(m);
    }
    wf_tape_free(tape);
}
END_TEST

/* A model that never says EOS by itself, or says little else. */
static wf_model *with_end(const struct wf_config *c, double bias)
{
    wf_model *m = decided_model(c, 4, 1.5);
    wf_array view;
    view = view_of(wf_registry_find(wf_model_registry(m), "head.bias"));
    ((wf_real *)view.data)[EOS] = (wf_real)bias;
    return m;
}

START_TEST(limits)
{
    struct wf_config c = pairs_config("seq2seq-tiny", 30);
    c.generation.beam = 3;
    wf_tape *tape = new_tape();
    wf_model *m = with_end(&c, -1000);
    struct sentences s;
    struct wf_translations t;
    random_sentences(&s, &c, 9, 18, 2);
    translate(m, tape, &s, (struct wf_translate_options){.n_best = 3}, &t); /* the model's: source + 6, at most 20 */
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < 3; k++) {
            int64_t length = s.offsets[i + 1] - s.offsets[i] + 6;
            const struct wf_hypothesis *h = &t.hypothesis[i * 3 + k];
            ck_assert_int_eq(h->length, WF_MIN(length, 20));
            ck_assert(!h->finished);
            ck_assert(k == 0 || h->log_probability <= h[-1].log_probability);
            double score = h->log_probability / pow((5.0 + (double)h->length) / 6, 0.6);
            ck_assert_double_eq_tol(h->score, score, 1e-12);
        }
    wf_translations_free(&t);
    for (int most = 1; most < 25; most += 8) {
        translate(m, tape, &s, (struct wf_translate_options){.max_tokens = most, .has_length_penalty = true}, &t);
        for (int i = 0; i < 9; i++) {
            int64_t length = s.offsets[i + 1] - s.offsets[i] + 6;
            ck_assert_int_eq(t.hypothesis[i].length, WF_MIN(length, WF_MIN(most, 20)));
            ck_assert(t.hypothesis[i].score == t.hypothesis[i].log_probability);
        }
        wf_translations_free(&t);
    }
    wf_model_free(m);
    m = with_end(&c, 1000); /* nothing but EOS */
    translate(m, tape, &s, (struct wf_translate_options){.beam = 1}, &t);
    for (int i = 0; i < 9; i++) {
        ck_assert_int_eq(t.hypothesis[i].length, 0);
        ck_assert(t.hypothesis[i].finished);
        ck_assert(fabs(t.hypothesis[i].log_probability) < 1e-6);
    }
    wf_translations_free(&t);
    ck_ok(wf_translate(m, tape, NULL, NULL, 0, BOS, EOS, &t, error)); /* of no sentences: nothing */
    ck_assert_int_eq(t.count, 0);
    wf_translations_free(&t);
    wf_translations_free(&(struct wf_translations){0});
    wf_model_free(m);
    wf_tape_free(tape);
}
END_TEST

static bool after_some(void *ctx)
{
    return --*(int *)ctx < 0;
}

START_TEST(refusals)
{
    struct wf_config c = pairs_config("seq2seq-tiny", 30);
    wf_tape *tape = new_tape();
    wf_model *m = with_end(&c, -1000);
    struct wf_translations t;
    int32_t ids[100] = {0}, offsets[4] = {0, 3, 23, 26};
#define refused(status, text, ...)                                                                                                         \
    do {                                                                                                                                   \
        ck_fails(wf_translate(m, tape, ids, offsets, 3, BOS, EOS, &t, error, __VA_ARGS__), status, text);                                  \
        ck_assert(!t.hypothesis && !t.memory && t.count == 0);                                                                             \
    } while (0)
    refused(WF_ERR_ARGUMENT, "beam: -1", .beam = -1);
    refused(WF_ERR_ARGUMENT, "beam: 5000", .beam = 5000);
    refused(WF_ERR_ARGUMENT, "batch: -3", .batch = -3);
    refused(WF_ERR_ARGUMENT, "max_tokens: -1", .max_tokens = -1);
    refused(WF_ERR_ARGUMENT, "n_best: 4 is out of range: at most the beam, which is 3", .beam = 3, .n_best = 4);
    refused(WF_ERR_ARGUMENT, "n_best: -1", .n_best = -1);
    refused(WF_ERR_ARGUMENT, "length_penalty", .has_length_penalty = true, .length_penalty = NAN);
    refused(WF_ERR_ARGUMENT, "length_penalty", .has_length_penalty = true, .length_penalty = INFINITY);
    refused(WF_ERR_ARGUMENT, "length_penalty: -0.5 is out of range: 0 to 100", .has_length_penalty = true, .length_penalty = -0.5);
    offsets[2] = 24; /* 21 ids */
    refused(WF_ERR_ARGUMENT, "sentence 1 has 21 ids, more than the maximum of 20", .beam = 1);
    offsets[2] = 3;
    refused(WF_ERR_ARGUMENT, "sentence 1 has no ids", .beam = 1);
    offsets[2] = 2;
    refused(WF_ERR_ARGUMENT, "sentence 1 has no ids", .beam = 1);
    offsets[2] = 23;
    ids[24] = 33;
    refused(WF_ERR_ARGUMENT, "sentence 2: id 33 at 1 is not in the vocabulary of 33", .beam = 1);
    ids[24] = -1;
    refused(WF_ERR_ARGUMENT, "sentence 2: id -1", .beam = 1);
    ids[24] = 32;
    ck_fails(wf_translate(m, tape, ids, offsets, 3, 30, EOS, &t, error), WF_ERR_ARGUMENT, "bos: id 30");
    ck_fails(wf_translate(m, tape, ids, offsets, 3, BOS, -1, &t, error), WF_ERR_ARGUMENT, "eos: id -1");
    ck_fails(wf_translate(m, tape, ids, offsets, -1, BOS, EOS, &t, error), WF_ERR_ARGUMENT, "-1 sentences");
    for (int steps = 0; steps < 12; steps += 5) {
        int left = steps;
        refused(WF_ERR_CANCELLED, "cancelled", .beam = 3, .batch = 2, .cancelled = after_some, .ctx = &left);
        ck_assert_int_eq(left, -1);
    }
    ck_ok(wf_translate(m, tape, ids, offsets, 3, BOS, EOS, &t, error, .beam = 3)); /* nothing is left behind */
    wf_translations_free(&t);
    /* weights that are not finite */
    wf_array view;
    view = view_of(wf_registry_find(wf_model_registry(m), "head.bias"));
    for (int i = 0; i < 3; i++) {
        ((wf_real *)view.data)[7] = (wf_real[]){NAN, INFINITY, -INFINITY}[i];
        if (i < 2)
            refused(WF_ERR_NUMERIC, "not finite", .beam = 3);
    }
    ck_ok(wf_translate(m, tape, ids, offsets, 3, BOS, EOS, &t, error, .beam = 3)); /* a token that is impossible */
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < t.hypothesis[i].length; j++)
            ck_assert_int_ne(t.hypothesis[i].ids[j], 7);
    wf_translations_free(&t);
    wf_model_free(m);
    c = small_config("nanogpt-char-small", 16, 30);
    m = model_of(&c, 1);
    refused(WF_ERR_ARGUMENT, "does not translate", .beam = 1);
    wf_model_free(m);
    wf_tape_free(tape);
}
END_TEST

/* A vocabulary with fewer hypotheses than requested, and a model whose caches for its maximum length would be large. */
START_TEST(extremes)
{
    wf_tape *tape = new_tape();
    struct wf_config c = pairs_config("multi30k", 3);
    c.generation.extra_tokens = 1;
    wf_model *m = model_of(&c, 1);
    struct sentences s;
    struct wf_translations t;
    random_sentences(&s, &c, 5, 1, 2); /* at most 1 token: EOS, or one of two others */
    translate(m, tape, &s, (struct wf_translate_options){.beam = 8, .n_best = 8}, &t);
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 8; k++) {
            const struct wf_hypothesis *h = &t.hypothesis[8 * i + k];
            ck_assert(h->finished == (k == 0));
            ck_assert_msg((isinf(h->log_probability) != 0) == (k > 2), "%d %d: %g %d", i, k, h->log_probability, (int)h->length);
            ck_assert_int_eq(h->length, k == 1 || k == 2);
        }
    wf_translations_free(&t);
    wf_model_free(m);
    c = pairs_config("multi30k", 11);
    set_keys(&c, "max_length=300000 positions=0 extra_tokens=0");
    m = model_of(&c, 1);
    random_sentences(&s, &c, 40, 3, 2);
    translate(m, tape, &s, (struct wf_translate_options){.max_tokens = 3, .beam = 4}, &t);
    wf_translations_free(&t);
    wf_model_free(m);
    wf_tape_free(tape);
}
END_TEST

/* The number of steps changes neither the tape's memory nor the number of allocations. */
START_TEST(memory_stays_flat)
{
    struct wf_config c = pairs_config("seq2seq-tiny", 30);
    set_keys(&c, "max_length=200 extra_tokens=0");
    wf_model *m = with_end(&c, -1000);
    wf_tape *tape = new_tape();
    struct sentences s;
    struct wf_translations t;
    int64_t calls[2], live = 0;
    random_sentences(&s, &c, 3, 9, 2);
    for (int warm = 0; warm < 2; warm++)
        for (int i = 0; i < 2; i++) {
            live = wf_alloc_live();
            int64_t before = wf_alloc_count();
            translate(m, tape, &s, (struct wf_translate_options){.max_tokens = i ? 80 : 8, .beam = 4}, &t);
            calls[i] = wf_alloc_count() - before;
            wf_translations_free(&t);
        }
    ck_assert_int_eq(calls[0], calls[1]);
    ck_assert_int_eq(wf_alloc_live(), live);
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

struct work {
    const wf_model *model;
    struct sentences sentences;
};

static wf_status translate_all(void *ctx, wf_error *error)
{
    const struct work *w = ctx;
    const struct sentences *s = &w->sentences;
    struct wf_translations t;
    wf_tape *tape = wf_tape_new(error);
    if (!tape)
        return error->code;
    wf_status status = wf_translate(w->model, tape, s->ids, s->offsets, s->count, BOS, EOS, &t, error, .beam = 4, .n_best = 2, .batch = 4);
    ck_assert(status == WF_OK || (!t.hypothesis && !t.memory));
    wf_tape_free(tape);
    wf_translations_free(&t);
    wf_scratch_drop(); /* a thread may get its scratch memory in any of the calls */
    return status;
}

START_TEST(out_of_memory)
{
    struct wf_config c = pairs_config("multi30k", 20);
    wf_model *m = decided_model(&c, 1, 1.3);
    struct work work = {.model = m};
    random_sentences(&work.sentences, &c, 6, 9, 2);
    ck_assert_int_gt(sweep_memory(translate_all, &work), 4);
    wf_model_free(m);
}
END_TEST

WF_TEST_MAIN("models/translate", neighbours_do_not_matter, limits, refusals, extremes, memory_stays_flat, out_of_memory)
