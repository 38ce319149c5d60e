/* SPDX-License-Identifier: MIT */
/* Generation and beam search with a program's own forward, from <weft/weft.h> alone. */
#include <math.h>
#include <weft/weft.h>

#include "check_weft.h"

enum { V = 5, D = 16, CONTEXT = 12 };

/* A model of one attention that is no family of Weft. */
struct own {
    wf_registry *registry;
    struct wf_embedding embed;
    struct wf_mha attn;
    struct wf_linear head;
    int wrong; /* 1: forgets the cache; 2: logits of another shape; 3: NULL; 4: on another tape; 5: ids */
    wf_tape *other;
};

static void own_make(struct own *m, uint64_t seed)
{
    *m = (struct own){0};
    m->registry = wf_registry_new(NULL);
    ck_assert_ptr_nonnull(m->registry);
    wf_scope s = wf_root(m->registry);
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, V, D);
    wf_mha_init(wf_sub(s, "attn"), &m->attn, D, 2, .rope = true);
    wf_linear_init(wf_sub(s, "head"), &m->head, D, V);
    ck_ok(wf_registry_build(m->registry, seed, error));
}

static wf_tensor *own_next(void *ctx, wf_tensor *ids, struct wf_cache *cache)
{
    const struct own *m = ctx;
    wf_tensor *x = wf_embedding_forward(&m->embed, ids); /* [R,T] -> [R,T,d] */
    x = wf_mha_forward(&m->attn, x, .causal = true, .cache = cache ? &cache->layer[0] : NULL, .residual = x);
    if (cache && m->wrong != 1)
        wf_cache_advance(cache, wf_dim(ids, 1));
    if (m->wrong == 3)
        return NULL;
    if (m->wrong == 4)
        return wf_input(m->other, (wf_real[V]){0}, WF_SHAPE(1, V), false);
    if (m->wrong == 5)
        return wf_ids_of(wf_tape_of(ids), (int32_t[V]){0}, WF_SHAPE(1, V));
    x = wf_scale(wf_linear_forward(&m->head, x), 3); /* [R,T,V] */
    return m->wrong == 2 ? x : wf_reshape(wf_slice(x, 1, -1, 1), wf_dim(x, 0), V);
}

static wf_status own_cache(void *ctx, struct wf_cache *cache, int64_t rows, int64_t capacity, wf_error *error)
{
    (void)ctx;
    return wf_cache_init(cache, 1, rows, capacity, D, D, error);
}

static struct wf_next next_of(struct own *m)
{
    return (struct wf_next){.next = own_next, .cache = own_cache, .ctx = m, .vocab_size = V, .context = CONTEXT};
}

START_TEST(generates_with_and_without_a_cache)
{
    struct own m;
    own_make(&m, 3);
    wf_tape *tape = wf_tape_new(NULL);
    struct wf_next next = next_of(&m), bare = next;
    bare.cache = NULL;
    const int32_t prompt[] = {1, 4, 2};
    int32_t a[30], b[30];
    int64_t count, again;
    for (int greedy = 0; greedy < 2; greedy++) {
        const struct wf_generate_options o = {.sampler = {.greedy = greedy, .seed = 5}, .max_tokens = 30}; /* beyond the context */
        ck_ok(wf_generate_next(&next, tape, prompt, 3, &o, a, &count, error));
        ck_ok(wf_generate_next(&bare, tape, prompt, 3, &o, b, &again, error));
        ck_assert(count == 30 && again == 30);
        ck_assert_mem_eq(a, b, sizeof a);
    }
    wf_tape_free(tape);
    wf_registry_free(m.registry);
}
END_TEST

/* The log-probability of ids[length] after the prompt, from one forward of all. */
static double score(struct own *m, wf_tape *tape, const int32_t *ids, int prompt, int length)
{
    wf_real x[CONTEXT * V];
    double sum = 0;
    wf_tape_reset(tape, WF_INFER);
    wf_tensor *h = wf_embedding_forward(&m->embed, wf_ids(tape, ids, 1, prompt + length - 1));
    h = wf_mha_forward(&m->attn, h, .causal = true, .residual = h);
    ck_assert_int_eq(wf_read(wf_scale(wf_linear_forward(&m->head, h), 3), x, (prompt + length - 1) * V), WF_OK);
    for (int t = prompt - 1; t < prompt + length - 1; t++) {
        double all = 0;
        for (int v = 0; v < V; v++)
            all += exp((double)x[t * V + v]);
        sum += (double)x[t * V + ids[t + 1]] - log(all);
    }
    return sum;
}

/* With a beam as wide as the number of hypotheses the search finds the best of all: three tokens, or an end before. */
START_TEST(beam_search_finds_the_best)
{
    wf_tape *tape = wf_tape_new(NULL);
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct own m;
        own_make(&m, seed);
        const struct wf_next next = next_of(&m);
        int32_t ids[6] = {(int32_t)(seed % V), 3, 0}, best[3] = {0}, end = 0;
        double top = -INFINITY;
        int top_length = 0;
        for (int code = 0; code < V * V * V; code++) {
            const int32_t tail[3] = {code % V, code / V % V, code / (V * V)};
            int length = tail[0] == end ? 1 : tail[1] == end ? 2 : 3;
            memcpy(ids + 2, tail, sizeof tail);
            double value = score(&m, tape, ids, 2, length) / pow((5 + length) / 6.0, 0.7);
            bool finished = tail[length - 1] == end;
            if (finished && value > top) {
                top = value;
                top_length = length;
                memcpy(best, tail, sizeof best);
            }
        }
        struct wf_hypotheses found;
        ck_ok(wf_beam_search(&next, tape, ids, 2, &found, error, .beam = 64, .n_best = 5, .max_tokens = 3, .length_penalty = 0.7,
                             .end = &end));
        ck_assert_int_eq(found.count, 5);
        const struct wf_hypothesis *h = found.hypothesis;
        ck_assert(h->finished && h->length == top_length - 1);
        ck_assert_mem_eq(h->ids, best, (size_t)h->length * sizeof *best);
        ck_assert(fabs(h->score - top) < 1e-4);
        for (int k = 1; k < 5; k++)
            ck_assert(h[k].score <= h[k - 1].score || (h[k - 1].finished && !h[k].finished));
        wf_hypotheses_free(&found);

        /* greedy is what the generator does */
        int32_t out[4];
        int64_t count;
        const struct wf_generate_options o = {.sampler.greedy = true, .max_tokens = 4};
        ck_ok(wf_generate_next(&next, tape, ids, 2, &o, out, &count, error));
        ck_ok(wf_beam_search(&next, tape, ids, 2, &found, error, .beam = 1, .max_tokens = 4));
        ck_assert(found.count == 1 && found.hypothesis->length == 4 && !found.hypothesis->finished);
        ck_assert_mem_eq(found.hypothesis->ids, out, sizeof out);
        wf_hypotheses_free(&found);
        ck_ok(wf_beam_search(&next, tape, ids, 2, &found, error)); /* fills the context */
        ck_assert(found.count == 1 && found.hypothesis->length == CONTEXT - 2);
        wf_hypotheses_free(&found);
        wf_registry_free(m.registry);
    }
    wf_tape_free(tape);
}
END_TEST

/* A recurrent model, whose cache holds a state for each row: h_t = sigmoid(x_t) h_(t-1) + x_t. */
static wf_tensor *recurrent_next(void *ctx, wf_tensor *ids, struct wf_cache *cache)
{
    const struct own *m = ctx;
    struct wf_kv *kv = cache ? &cache->layer[0] : NULL;
    wf_tensor *x = wf_embedding_forward(&m->embed, ids); /* [R,T,d] */
    wf_tensor *last = wf_select(wf_scan(wf_sigmoid(x), x, wf_kv_state(kv, x, D), 1), 1, -1);
    wf_kv_set_state(kv, last);
    if (cache)
        wf_cache_advance(cache, wf_dim(ids, 1));
    return wf_linear_forward(&m->head, last); /* [R,V] */
}

static wf_status recurrent_cache(void *ctx, struct wf_cache *cache, int64_t rows, int64_t capacity, wf_error *error)
{
    (void)ctx, (void)capacity;
    return wf_cache_init_states(cache, 1, rows, D, error);
}

/* A beam copies, drops and reorders the states: each hypothesis has the probability that a forward of all its ids gives. */
START_TEST(states_follow_the_beam)
{
    enum { PROMPT = 3, MORE = 6 };
    struct own m;
    own_make(&m, 7);
    wf_tape *tape = wf_tape_new(NULL);
    const struct wf_next next = {.next = recurrent_next, .cache = recurrent_cache, .ctx = &m, .vocab_size = V, .context = CONTEXT};
    struct wf_next bare = next;
    bare.cache = NULL;
    int32_t ids[PROMPT + MORE] = {1, 4, 2}, a[30], b[30];
    int64_t count, again;
    const struct wf_generate_options o = {.sampler.seed = 5, .max_tokens = 30}; /* beyond the context */
    ck_ok(wf_generate_next(&next, tape, ids, PROMPT, &o, a, &count, error));
    ck_ok(wf_generate_next(&bare, tape, ids, PROMPT, &o, b, &again, error));
    ck_assert(count == 30 && again == 30);
    ck_assert_mem_eq(a, b, sizeof a);
    struct wf_hypotheses found;
    ck_ok(wf_beam_search(&next, tape, ids, PROMPT, &found, error, .beam = 6, .n_best = 6, .max_tokens = MORE));
    ck_assert_int_eq(found.count, 6);
    for (int k = 0; k < 6; k++) {
        const struct wf_hypothesis *h = &found.hypothesis[k];
        double sum = 0;
        ck_assert_int_eq(h->length, MORE);
        memcpy(ids + PROMPT, h->ids, sizeof *ids * MORE);
        for (int t = PROMPT; t < PROMPT + MORE; t++) {
            wf_real x[V];
            double all = 0;
            wf_tape_reset(tape, WF_INFER);
            ck_assert_int_eq(wf_read(recurrent_next(&m, wf_ids(tape, ids, 1, t), NULL), x, V), WF_OK);
            for (int v = 0; v < V; v++)
                all += exp((double)x[v]);
            sum += (double)x[ids[t]] - log(all);
        }
        ck_assert_msg(fabs(h->log_probability - sum) < 1e-4, "hypothesis %d: %g, not %g", k, h->log_probability, sum);
    }
    wf_hypotheses_free(&found);
    wf_tape_free(tape);
    wf_registry_free(m.registry);
}
END_TEST

static bool at_once(void *ctx)
{
    (void)ctx;
    return true;
}

START_TEST(mistakes_are_named)
{
    struct own m;
    own_make(&m, 1);
    wf_tape *tape = wf_tape_new(NULL);
    const struct wf_next good = next_of(&m);
    struct wf_next next = good;
    struct wf_hypotheses found;
    const int32_t prompt[CONTEXT] = {1, 2}, bad[] = {1, V};
    const struct wf_generate_options o = {.sampler.greedy = true, .max_tokens = 3};
    int32_t out[3], end = V;
    int64_t count;
    static const struct {
        wf_status status;
        const char *says;
    } wrong[] = {{WF_ERR_STATE, "next left 0 ids in the cache, not 2: call wf_cache_advance once, after all layers"},
                 {WF_ERR_SHAPE, "next returned logits [1,2,5], not [1,5]"},
                 {WF_ERR_ARGUMENT, "next returned NULL, not logits"},
                 {WF_ERR_STATE, "next returned logits that are not on the tape of its ids"},
                 {WF_ERR_ARGUMENT, "next returned ids or a mask, not logits"}};
    m.other = wf_tape_new(NULL);
    wf_tape_reset(m.other, WF_INFER);
    for (m.wrong = 1; m.wrong <= 5; m.wrong++) {
        ck_assert_int_ne(wf_generate_next(&good, tape, prompt, 2, &o, out, &count, NULL), WF_OK);
        const wf_status status = wrong[m.wrong - 1].status;
        ck_fails(wf_generate_next(&good, tape, prompt, 2, &o, out, &count, error), status, wrong[m.wrong - 1].says);
        ck_fails(wf_beam_search(&good, tape, prompt, 2, &found, error), status, wrong[m.wrong - 1].says);
        ck_assert(found.count == 0 && !found.hypothesis);
    }
    m.wrong = 0;
    wf_tape_free(m.other);
    ck_fails(wf_generate_next(&good, tape, prompt, 0, &o, out, &count, error), WF_ERR_ARGUMENT, "the prompt is empty");
    ck_fails(wf_generate_next(&good, tape, bad, 2, &o, out, &count, error), WF_ERR_ARGUMENT, "id 5 at 1 of the prompt");
    next.vocab_size = 0;
    ck_fails(wf_generate_next(&next, tape, prompt, 2, &o, out, &count, error), WF_ERR_ARGUMENT, "vocab_size = 0");
    next = good, next.cache = NULL;
    ck_fails(wf_beam_search(&next, tape, prompt, 2, &found, error), WF_ERR_ARGUMENT, "beam search needs a cache");
    ck_fails(wf_beam_search(&good, tape, prompt, 2, &found, error, .beam = 2000), WF_ERR_ARGUMENT, "beam: 2000");
    ck_fails(wf_beam_search(&good, tape, prompt, 2, &found, error, .beam = 2, .n_best = 3), WF_ERR_ARGUMENT, "n_best: 3");
    ck_fails(wf_beam_search(&good, tape, prompt, 2, &found, error, .end = &end), WF_ERR_ARGUMENT, "end: id 5");
    ck_fails(wf_beam_search(&good, tape, prompt, CONTEXT, &found, error), WF_ERR_ARGUMENT, "no room for more");
    ck_fails(wf_beam_search(&good, tape, prompt, 2, &found, error, .length_penalty = -1), WF_ERR_ARGUMENT, "length_penalty: -1");
    ck_fails(wf_beam_search(&good, tape, prompt, 2, &found, error, .cancelled = at_once), WF_ERR_CANCELLED, "the search was cancelled");
    wf_tape_free(tape);
    wf_registry_free(m.registry);
}
END_TEST

/* The zoo's language models through the same functions. */
START_TEST(models_of_the_zoo)
{
    struct wf_config c;
    ck_ok(wf_config_preset(&c, "char-rms", error));
    ck_ok(wf_config_set_all(&c, "d_model=16 d_ff=16 heads=2 context=10", error));
    wf_config_set_vocab(&c, V, 0);
    wf_model *model = wf_model_new(&c, NULL);
    wf_tape *tape = wf_tape_new(NULL);
    ck_ok(wf_registry_build(wf_model_registry(model), 1, error));
    const struct wf_next next = wf_next_of(model);
    const struct wf_generate_options o = {.sampler.seed = 2, .max_tokens = 25};
    const int32_t prompt[] = {1, 2};
    int32_t a[25], b[25];
    int64_t count;
    ck_ok(wf_generate_next(&next, tape, prompt, 2, &o, a, &count, error));
    ck_ok(wf_generate_with(model, tape, prompt, 2, &o, b, &count, error));
    ck_assert_mem_eq(a, b, sizeof a);
    struct wf_hypotheses found;
    ck_ok(wf_beam_search(&next, tape, prompt, 2, &found, error, .max_tokens = 5, .n_best = 4));
    ck_assert_int_eq(found.count, 4);
    wf_hypotheses_free(&found);
    wf_tape_free(tape);
    wf_model_free(model);
}
END_TEST

WF_TEST_MAIN("infer/search", generates_with_and_without_a_cache, beam_search_finds_the_best, states_follow_the_beam, mistakes_are_named,
             models_of_the_zoo)
