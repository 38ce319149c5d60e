/* SPDX-License-Identifier: MIT */
/* Beam search against a plain search by the header's definition: no cache, no batch, the whole target through the model for every
 * hypothesis at every step, all continuations sorted. And against the list of all hypotheses. */
#include "decoder_test.h"
#include "translate_test.h"
#include <weft/family.h>

enum { MOST_HYPS = 128 };

struct hyp {
    int32_t ids[MOST_IDS];
    int length; /* without EOS */
    double total, score;
    bool finished;
};
struct found {
    struct hyp hyp[MOST_HYPS];
    int count;
};

/* log-probabilities of what may follow BOS ids[length], by one forward pass over all of it. */
static void next_of(const wf_model *m, wf_tape *tape, const int32_t *source, int source_length, const int32_t *ids, int length, double *out)
{
    int64_t types = key_of(wf_model_config(m), "vocab_size");
    int32_t source_offsets[2] = {0, source_length}, target_offsets[2] = {0, length + 1}, input[MOST_IDS + 1], target[MOST_IDS + 1] = {0};
    input[0] = BOS;
    if (length > 0)
        memcpy(input + 1, ids, (size_t)length * sizeof *ids);
    struct wf_pairs pairs = {
        .count = 1, .source = source, .source_offsets = source_offsets, .input = input, .target = target, .target_offsets = target_offsets};
    wf_real *logits = wf_alloc((size_t)((length + 1) * types) * sizeof *logits), *last = logits + length * types;
    wf_tape_reset(tape, WF_INFER);
    read_values(wf_pairs_logits(m, tape, &pairs, NULL), logits, (length + 1) * types);
    double most = last[0], sum = 0;
    for (int64_t i = 0; i < types; i++)
        most = WF_MAX(last[i], most);
    for (int64_t i = 0; i < types; i++)
        sum += exp(last[i] - most);
    for (int64_t i = 0; i < types; i++)
        out[i] = last[i] - most - log(sum);
    wf_free(logits);
}

static double scored(double total, int length, double a)
{
    return total / pow((5.0 + length) / 6, a);
}

struct choice {
    double total;
    int row, id;
};

static int by_total(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    return x->row != y->row ? x->row - y->row : x->id - y->id;
}

static int by_score(const void *a, const void *b)
{
    const struct hyp *x = a, *y = b;
    if (x->finished != y->finished)
        return x->finished ? -1 : 1;
    return x->score < y->score ? 1 : x->score > y->score ? -1 : 0;
}

/* All finished hypotheses, the best first, then the active ones. */
static void reference(const wf_model *m, wf_tape *tape, const int32_t *source, int length, int beam, double a, int limit, struct found *out)
{
    static struct hyp live[MOST_HYPS], next[MOST_HYPS];
    int types = (int)key_of(wf_model_config(m), "vocab_size"), alive = 1, ended = 0;
    struct choice *choices = wf_alloc((size_t)(MOST_HYPS * types) * sizeof *choices);
    double *p = wf_alloc((size_t)types * sizeof *p);
    out->count = 0;
    live[0] = (struct hyp){.total = 0};
    for (int step = 1; step <= limit; step++) {
        int n = 0, now = 0;
        for (int i = 0; i < alive; i++) {
            next_of(m, tape, source, length, live[i].ids, live[i].length, p);
            for (int j = 0; j < types; j++)
                choices[n++] = (struct choice){live[i].total + p[j], i, j};
        }
        qsort(choices, (size_t)n, sizeof *choices, by_total);
        for (int i = 0; i < n && i < (beam == 1 ? 1 : 2 * beam); i++) {
            struct hyp h = live[choices[i].row];
            h.total = choices[i].total;
            if (choices[i].id == EOS) {
                h.finished = true;
                h.score = scored(h.total, step, a);
                ended++;
                ck_assert_int_lt(out->count, MOST_HYPS);
                out->hyp[out->count++] = h;
            } else if (now < beam) {
                h.ids[h.length++] = choices[i].id;
                h.score = scored(h.total, step, a);
                next[now++] = h;
            }
        }
        memcpy(live, next, (size_t)now * sizeof *live);
        alive = now;
        double best = -INFINITY;
        for (int i = 0; i < out->count; i++)
            best = WF_MAX(out->hyp[i].score, best);
        if (!alive || (ended >= beam && best >= scored(live[0].total, limit, a)))
            break;
    }
    for (int i = 0; i < alive && out->count < MOST_HYPS; i++)
        out->hyp[out->count++] = live[i];
    qsort(out->hyp, (size_t)out->count, sizeof *out->hyp, by_score);
    wf_free(choices);
    wf_free(p);
}

static bool same_ids(const struct wf_hypothesis *got, const struct hyp *wanted)
{
    return got->length == wanted->length && got->finished == wanted->finished &&
           (got->length == 0 || memcmp(got->ids, wanted->ids, (size_t)got->length * sizeof *got->ids) == 0);
}

static const double tolerance = sizeof(wf_real) == 8 ? 1e-9 : 1e-4;

/* In float, rounding may turn a choice between two hypotheses that are equally good. */
static int compare(const struct wf_hypothesis *got, const struct found *wanted, int n_best, const char *what)
{
    int other = 0;
    for (int k = 0; k < n_best; k++) {
        if (k >= wanted->count) {
            ck_assert_msg(isinf(got[k].log_probability), "%s: %d is one too many", what, k);
            continue;
        }
        const struct hyp *h = &wanted->hyp[k];
        bool same = same_ids(&got[k], h);
        other += !same;
        ck_assert_msg(sizeof(wf_real) == 4 || same, "%s: hypothesis %d has other ids", what, k);
        ck_assert_msg(!same || (fabs(got[k].score - h->score) < tolerance && fabs(got[k].log_probability - h->total) < 10 * tolerance),
                      "%s: hypothesis %d scores %.12g, not %.12g", what, k, got[k].score, h->score);
    }
    return other;
}

START_TEST(equals_a_search_without_a_cache)
{
    static const int beams[] = {1, 2, 4, 5};
    static struct found wanted;
    wf_tape *tape = new_tape(), *own = new_tape();
    int other = 0, all = 0, unfinished = 0, early = 0;
    for (int which = 0; which < 4; which++)
        for (int round = 0; round < 4; round++) {
            struct wf_config c = pairs_config(names[which], round == 3 ? 6 : 23);
            set_key(&c, "encoder_layers", 1 + round % 2);
            set_key(&c, "decoder_layers", 1 + round % 3);
            set_key(&c, "norm", round == 2 ? WF_NORM_POST : key_of(&c, "norm"));
            wf_model *m = decided_model(&c, (uint64_t)(which + 10 * round), key_of(&c, "tied") ? 1.3 : 2.2);
            struct sentences s;
            random_sentences(&s, &c, 5, 9, (uint64_t)round);
            for (int b = 0; b < 4; b++) {
                struct wf_translations t;
                int beam = beams[b], n_best = beam > 2 ? beam - 1 : 1;
                double a = round % 2 ? 0.6 : WF_MAX(1.5 - b, 0);
                ck_ok(wf_translate(m, tape, s.ids, s.offsets, s.count, BOS, EOS, &t, error, .beam = beam, .has_length_penalty = true,
                                   .length_penalty = a, .n_best = n_best));
                ck_assert_int_eq(t.count, s.count);
                ck_assert_int_eq(t.n_best, n_best);
                for (int i = 0; i < s.count; i++) {
                    char what[100];
                    int length = s.offsets[i + 1] - s.offsets[i], limit = length - key_of(&c, "source_bos") - key_of(&c, "source_eos");
                    limit = WF_MIN(WF_MAX(limit, 0) + 6, 20);
                    snprintf(what, sizeof what, "%s, round %d, beam %d, sentence %d", names[which], round, beam, i);
                    reference(m, own, s.ids + s.offsets[i], length, beam, a, limit, &wanted);
                    other += compare(t.hypothesis + i * n_best, &wanted, n_best, what);
                    all += n_best;
                    unfinished += !t.hypothesis[i * n_best].finished;
                    early += t.hypothesis[i * n_best].finished && t.hypothesis[i * n_best].length + 1 < limit;
                }
                wf_translations_free(&t);
            }
            wf_model_free(m);
        }
    ck_assert_int_lt(other * 20, all);
    ck_assert_int_gt(unfinished, 5); /* the cases hold both kinds */
    ck_assert_int_gt(early, 50);
    wf_tape_free(tape);
    wf_tape_free(own);
}
END_TEST

/* All sequences of up to `limit` tokens that end with EOS. */
static void enumerate(const wf_model *m, wf_tape *tape, const int32_t *source, int length, double a, int limit, struct hyp *h,
                      struct found *out)
{
    int types = (int)key_of(wf_model_config(m), "vocab_size");
    double p[8];
    next_of(m, tape, source, length, h->ids, h->length, p);
    for (int j = 0; j < types; j++) {
        struct hyp longer = *h;
        longer.total += p[j];
        longer.score = scored(longer.total, h->length + 1, a);
        if (j == EOS) {
            longer.finished = true;
            out->hyp[out->count++] = longer;
        } else if (h->length + 1 < limit) {
            longer.ids[longer.length++] = j;
            enumerate(m, tape, source, length, a, limit, &longer, out);
        }
    }
}

/* A beam as wide as the number of hypotheses finds the best ones. */
START_TEST(a_wide_beam_finds_everything)
{
    static struct found wanted;
    wf_tape *tape = new_tape(), *own = new_tape();
    int other = 0;
    for (int round = 0; round < 6; round++) {
        struct wf_config c = pairs_config(names[round % 4], 4);
        wf_model *m = decided_model(&c, (uint64_t)round, 1.2);
        struct sentences s;
        struct wf_translations t;
        random_sentences(&s, &c, 3, 5, (uint64_t)round);
        ck_ok(wf_translate(m, tape, s.ids, s.offsets, s.count, BOS, EOS, &t, error, .beam = 81, .n_best = 41, .max_tokens = 4));
        for (int i = 0; i < s.count; i++) {
            struct hyp nothing = {.total = 0};
            wanted.count = 0;
            enumerate(m, own, s.ids + s.offsets[i], s.offsets[i + 1] - s.offsets[i], 0.6, 4, &nothing, &wanted);
            ck_assert_int_eq(wanted.count, 1 + 3 + 9 + 27);
            qsort(wanted.hyp, (size_t)wanted.count, sizeof *wanted.hyp, by_score);
            other += compare(t.hypothesis + i * 41, &wanted, 40, "all there are");
            ck_assert(!t.hypothesis[i * 41 + 40].finished); /* cut by the limit */
        }
        wf_translations_free(&t);
        wf_model_free(m);
    }
    ck_assert_int_lt(other, 30);
    wf_tape_free(tape);
    wf_tape_free(own);
}
END_TEST

/* Each token of greedy search is the likeliest. */
START_TEST(greedy_takes_the_likeliest)
{
    wf_tape *tape = new_tape(), *own = new_tape();
    for (int which = 0; which < 4; which++) {
        struct wf_config c = pairs_config(names[which], 17);
        wf_model *m = decided_model(&c, (uint64_t)which, 1.5);
        struct sentences s;
        struct wf_translations t;
        random_sentences(&s, &c, 8, 9, 3);
        ck_ok(wf_translate(m, tape, s.ids, s.offsets, s.count, BOS, EOS, &t, error, .beam = 1));
        for (int i = 0; i < s.count; i++) {
            const struct wf_hypothesis *h = &t.hypothesis[i];
            for (int j = 0; j < h->length + h->finished; j++) {
                double p[17];
                int32_t id = j < h->length ? h->ids[j] : EOS;
                next_of(m, own, s.ids + s.offsets[i], s.offsets[i + 1] - s.offsets[i], h->ids, j, p);
                for (int k = 0; k < 17; k++)
                    ck_assert_msg(p[k] <= p[id] + 1e-5, "%s: sentence %d, token %d: %d is likelier than %d", names[which], i, j, k, id);
            }
        }
        wf_translations_free(&t);
        wf_model_free(m);
    }
    wf_tape_free(tape);
    wf_tape_free(own);
}
END_TEST

/* --- a family from outside that makes its cache ---------------------------------------------------------------------- */

/* Two attentions in the one layer of the decoder, with narrow keys and wide values: a cache by Weft's rules would have no room for them. */
struct narrow_config {
    int64_t d_model, layers, max_length, vocab_size;
};
#define NUMBER(...) WF_NUMBER_KEY(struct narrow_config, __VA_ARGS__)
static const struct wf_key narrow_keys[] = {
    NUMBER(d_model, "24", 1, 1024, "model width", .role = WF_KEY_WIDTH),
    NUMBER(layers, "1", 1, 1, "decoder layers", .role = WF_KEY_LAYERS),
    NUMBER(max_length, "20", 2, 1024, "longest sentence in tokens", .role = WF_KEY_CONTEXT),
    NUMBER(vocab_size, "23", 0, 1024, "vocabulary size", .role = WF_KEY_VOCAB),
};
struct narrow {
    struct wf_embedding source, target;
    struct wf_mha first, second, cross;
    struct wf_linear head;
};
static int narrow_wrong; /* 1: makes one row; 2: fails */

static void narrow_init(wf_scope s, void *model, const void *config)
{
    const struct narrow_config *c = config;
    struct narrow *m = model;
    wf_embedding_init(wf_sub(s, "source"), &m->source, c->vocab_size, c->d_model);
    wf_embedding_init(wf_sub(s, "target"), &m->target, c->vocab_size, c->d_model);
    wf_mha_init(wf_sub(s, "first"), &m->first, c->d_model, 2, .kv_heads = 1, .d_key = 4, .d_value = 10, .rope = true);
    wf_mha_init(wf_sub(s, "second"), &m->second, c->d_model, 4, .kv_heads = 2, .d_key = 2, .d_value = 5, .rope = true);
    wf_mha_init(wf_sub(s, "cross"), &m->cross, c->d_model, 3, .cross = true);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->d_model, c->vocab_size);
}

static wf_tensor *narrow_encode(const void *model, wf_tensor *ids, const struct wf_packed *source, wf_tensor **weights)
{
    (void)source, (void)weights;
    return wf_embedding_forward(&((const struct narrow *)model)->source, ids); /* [M] -> [M,d] */
}

static wf_tensor *narrow_memory(const void *model, int64_t layer, wf_tensor *memory)
{
    (void)layer;
    return wf_mha_memory(&((const struct narrow *)model)->cross, memory);
}

static wf_tensor *narrow_decode(const void *model, wf_tensor *ids, const struct wf_decoding *d)
{
    const struct narrow *m = model;
    const struct wf_mha *self[] = {&m->first, &m->second};
    wf_tensor *x = wf_embedding_forward(&m->target, ids); /* [N,d], or [R,T,d] */
    for (int i = 0; i < 2; i++)
        x = wf_mha_forward(self[i], x, .causal = true, .packed = d->cache ? (struct wf_packed){0} : d->target,
                           .cache = d->cache ? &d->cache->layer[i] : NULL, .residual = x);
    return attend_to_sources(&m->cross, x, d);
}

static wf_status narrow_cache(const void *model, struct wf_cache *cache, int64_t rows, int64_t capacity, wf_error *error)
{
    (void)model;
    if (narrow_wrong == 2)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a narrow cache");
    return wf_cache_init(cache, 2, narrow_wrong == 1 ? 1 : rows, capacity, 4, 10, error);
}

static const struct wf_family narrow = {
    .abi = WF_FAMILY_ABI,
    .name = "narrow",
    .kind = WF_MODEL_PAIRS,
    .config_size = sizeof(struct narrow_config),
    .keys = WF_ROWS(narrow_keys),
    .size = sizeof(struct narrow),
    .init = narrow_init,
    .head = WF_HEAD_AT(struct narrow, head),
    .encode = narrow_encode,
    .memory = narrow_memory,
    .decode = narrow_decode,
    .cache = narrow_cache,
};

START_TEST(a_family_makes_its_cache)
{
    static struct found wanted;
    struct wf_config c;
    struct sentences s;
    struct wf_translations t;
    ck_ok(wf_family_register(&narrow, error));
    ck_ok(wf_config_defaults(&c, "narrow", error));
    wf_config_set_vocab(&c, 23, 23);
    c.generation.extra_tokens = 6;
    wf_model *m = decided_model(&c, 4, 1.7);
    wf_tape *tape = new_tape(), *own = new_tape();
    struct wf_cache cache;
    ck_ok(wf_model_cache(m, &cache, 3, error));
    ck_assert(cache.layers == 2 && cache.rows == 3 && cache.capacity == 20 && cache.key_width == 4);
    wf_cache_free(&cache);
    ck_ok(wf_model_cache_with(m, &cache, 1, &(struct wf_model_cache_options){.capacity = 5}, error));
    ck_assert_int_eq(cache.capacity, 5);
    wf_cache_free(&cache);
    random_sentences(&s, &c, 6, 9, 8);
    int other = 0;
    for (int beam = 1; beam <= 4; beam++) {
        ck_ok(wf_translate(m, tape, s.ids, s.offsets, s.count, BOS, EOS, &t, error, .beam = beam, .n_best = beam,
                           .has_length_penalty = true, .length_penalty = 0.6));
        for (int i = 0; i < s.count; i++) {
            int length = s.offsets[i + 1] - s.offsets[i];
            reference(m, own, s.ids + s.offsets[i], length, beam, 0.6, length + 6, &wanted);
            other += compare(t.hypothesis + i * beam, &wanted, beam, "narrow");
        }
        wf_translations_free(&t);
    }
    ck_assert_int_lt(other, 4);
    narrow_wrong = 1;
    ck_fails(wf_translate(m, tape, s.ids, s.offsets, s.count, BOS, EOS, &t, error, .beam = 2), WF_ERR_ARGUMENT,
             "family narrow: its cache has 1 rows of 15 tokens, not 12 of 15");
    narrow_wrong = 2;
    ck_fails(wf_translate(m, tape, s.ids, s.offsets, s.count, BOS, EOS, &t, error), WF_ERR_MEMORY, "no memory for a narrow cache");
    narrow_wrong = 0;
    wf_tape_free(tape);
    wf_tape_free(own);
    wf_model_free(m);
}
END_TEST

WF_TEST_MAIN("models/beam", equals_a_search_without_a_cache, a_wide_beam_finds_everything, greedy_takes_the_likeliest,
             a_family_makes_its_cache)
