/* SPDX-License-Identifier: MIT */
/* Generation: the same ids with and without a cache, when the window slides, and on any number of threads; the same bits of logits. */
#include <weft/internal/scratch.h>
#include <weft/search.h>

#include "../models/memory_test.h"

enum { V = 29, MANY = 80 };

static void generate(const wf_model *m, wf_tape *tape, const int32_t *prompt, int64_t length, struct wf_sampler s, bool no_cache,
                     int32_t *out)
{
    int64_t count = -1;
    struct wf_generate_options o = {.sampler = s, .max_tokens = MANY, .no_cache = no_cache};
    ck_ok(wf_generate_with(m, tape, prompt, length, &o, out, &count, error));
    ck_assert_int_eq(count, MANY);
}

static const char *const names[] = {"nanogpt-char-small", "char-rms"};

/* Windows of several sizes, prompts shorter and longer than them, models fresh and trained. */
START_TEST(the_cache_changes_nothing)
{
    static const int64_t contexts[] = {1, 2, 3, 5, 16, 37};
    wf_tape *tape = new_tape();
    int different = 0;
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < 6; i++)
            for (int trained = 0; trained < 2; trained++) {
                struct wf_config c = small_config(names[which], contexts[i], V);
                set_key(&c, "kv_heads", i % 2 ? 2 : 0);
                set_key(&c, "bias", i % 3 == 0);
                wf_model *m = model_of(&c, (uint64_t)i);
                if (trained)
                    train_a_little(m, tape, 5);
                int32_t prompt[50], with[MANY], without[MANY];
                random_ids(prompt, 50, V, (uint64_t)i);
                static const int64_t lengths[] = {1, 4, 16, 50};
                for (int j = 0; j < 4; j++)
                    for (int greedy = 0; greedy < 2; greedy++) {
                        struct wf_sampler s = {.greedy = greedy, .temperature = 1.2, .top_k = 20, .top_p = 0.95, .seed = 7};
                        generate(m, tape, prompt, lengths[j], s, false, with);
                        generate(m, tape, prompt, lengths[j], s, true, without);
                        for (int k = 0; k < MANY; k++)
                            ck_assert_msg(with[k] == without[k], "%s, context %d, prompt %d, greedy %d: token %d", names[which],
                                          (int)contexts[i], (int)lengths[j], greedy, k);
                        for (int k = 1; k < MANY; k++)
                            different += with[k] != with[0];
                    }
                wf_model_free(m);
            }
    ck_assert_int_gt(different, 1000); /* the texts are not constant */
    wf_tape_free(tape);
}
END_TEST

/* A cache has room for the prompt and the new ids, or for a context if that is less. */
struct asked {
    const wf_model *model;
    int64_t capacity;
};
static wf_tensor *next_of(void *ctx, wf_tensor *ids, struct wf_cache *cache)
{
    return wf_model_next(((struct asked *)ctx)->model, ids, cache);
}
static wf_status cache_of(void *ctx, struct wf_cache *cache, int64_t rows, int64_t capacity, wf_error *error)
{
    struct asked *a = ctx;
    a->capacity = capacity;
    return wf_model_cache_with(a->model, cache, rows, &(struct wf_model_cache_options){.capacity = capacity}, error);
}

START_TEST(the_cache_is_no_larger_than_the_text)
{
    static const struct {
        int64_t prompt, more, capacity;
    } cases[] = {{2, 3, 5}, {2, 0, 2}, {10, 6, 16}, {10, 7, 16}, {20, 3, 16}, {2, INT64_MAX, 16}};
    struct wf_config c = small_config(names[0], 16, V);
    struct asked a = {.model = model_of(&c, 1)};
    const struct wf_next next = {.next = next_of, .cache = cache_of, .ctx = &a, .vocab_size = V, .context = 16};
    wf_tape *tape = new_tape();
    int32_t prompt[20], first = 0;
    int64_t count;
    random_ids(prompt, 20, V, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool endless = cases[i].more == INT64_MAX;
        struct wf_generate_options o = {.max_tokens = cases[i].more, .sampler.greedy = true, .end = endless ? &first : NULL};
        if (endless) { /* ends at once */
            int32_t one;
            ck_ok(wf_generate_next(&next, tape, prompt, 2, &(struct wf_generate_options){.max_tokens = 1, .sampler.greedy = true}, &one,
                                   &count, error));
            first = one;
        }
        ck_ok(wf_generate_next(&next, tape, prompt, cases[i].prompt, &o, NULL, &count, error));
        ck_assert_int_eq(a.capacity, cases[i].capacity);
    }
    wf_tape_free(tape);
    wf_model_free((wf_model *)(uintptr_t)a.model);
}
END_TEST

/* The window by the header's definition: each token sees the ids that remain after whole quarters were dropped. */
START_TEST(the_window_slides_by_a_quarter)
{
    static const int64_t contexts[] = {1, 3, 8, 18};
    wf_tape *tape = new_tape();
    for (int i = 0; i < 4; i++) {
        struct wf_config c = small_config("nanogpt-char-small", contexts[i], V);
        wf_model *m = model_of(&c, 3);
        int64_t T = key_of(&c, "context"), quarter = T / 4 > 0 ? T / 4 : 1, length = 11;
        int32_t all[11 + MANY], out[MANY], order[V];
        wf_real logits[V];
        random_ids(all, length, V, 1);
        struct wf_sampler s = {.seed = 5, .temperature = 1};
        generate(m, tape, all, length, s, false, out);
        int64_t start = length > T ? length - T : 0;
        for (int64_t n = length; n < length + MANY; n++) {
            if (n - start > T)
                start += quarter;
            ck_assert(n - start <= T && (n <= T || n - start >= T - quarter + (T > 1 ? 0 : 1)));
            wf_tape_reset(tape, WF_INFER);
            read_values(wf_model_next(m, wf_ids(tape, all + start, 1, n - start), NULL), logits, V);
            ck_ok(wf_sample(&s, logits, V, (uint64_t)n, order, &all[n], error));
            ck_assert_msg(all[n] == out[n - length], "context %d: token %d", (int)T, (int)(n - length));
        }
        wf_model_free(m);
    }
    wf_tape_free(tape);
}
END_TEST

/* The same bits token by token, in pieces and at once, on 1 to 3 threads. */
START_TEST(logits_have_the_same_bits)
{
    enum { T = 64, SMALL = 65 };
    static wf_real first[2][T * SMALL], whole[T * SMALL], piece[T * SMALL], next[SMALL];
    static const int pieces[][4] = {{1, 1, 1, 1}, {64, 0, 0, 0}, {10, 1, 20, 33}, {3, 5, 7, 11}};
    for (int threads = 1; threads <= 3; threads++) {
        ck_ok(wf_set_threads(threads, error));
        for (int which = 0; which < 2; which++) {
            struct wf_config c = preset(names[which]);
            set_key(&c, "vocab_size", SMALL);
            set_key(&c, "context", T);
            wf_model *m = model_of(&c, 1);
            wf_tape *tape = new_tape();
            int32_t ids[T];
            random_ids(ids, T, SMALL, 2);
            wf_tape_reset(tape, WF_INFER);
            read_values(wf_model_logits(m, wf_ids(tape, ids, 1, T), NULL), whole, T * SMALL);
            if (threads == 1)
                memcpy(first[which], whole, sizeof whole);
            ck_assert_int_eq(memcmp(first[which], whole, sizeof whole), 0);
            for (int p = 0; p < 4; p++) {
                struct wf_cache cache;
                ck_ok(wf_model_cache(m, &cache, 1, error));
                wf_tape_reset(tape, WF_INFER);
                for (int at = 0, i = 0; at < T; i++) {
                    int n = pieces[p][i % 4] < T - at ? pieces[p][i % 4] : T - at;
                    if (n == 0)
                        continue;
                    if (i % 3 == 2) { /* now and then the head for the last position only */
                        read_values(wf_model_next(m, wf_ids(tape, ids + at, 1, n), &cache), next, SMALL);
                        ck_assert_int_eq(memcmp(next, whole + (at + n - 1) * SMALL, sizeof next), 0);
                    } else {
                        read_values(wf_model_logits(m, wf_ids(tape, ids + at, 1, n), &cache), piece, n * SMALL);
                        ck_assert_int_eq(memcmp(piece, whole + at * SMALL, (size_t)(n * SMALL) * sizeof *piece), 0);
                    }
                    at += n;
                    ck_assert_int_eq(cache.length[0], at);
                }
                wf_tape_reset(tape, WF_INFER);
                wf_cache_free(&cache);
            }
            wf_tape_free(tape);
            wf_model_free(m);
        }
    }
}
END_TEST

START_TEST(threads_change_nothing)
{
    wf_tape *tape = new_tape();
    for (int which = 0; which < 2; which++) {
        struct wf_config c = preset(names[which]);
        set_key(&c, "vocab_size", V);
        set_key(&c, "context", 32);
        wf_model *m = model_of(&c, 4);
        int32_t prompt[3] = {1, 2, 3}, one[MANY], more[MANY];
        struct wf_sampler s = {.temperature = 1, .seed = 9};
        for (int threads = 1; threads <= 3; threads++) {
            ck_ok(wf_set_threads(threads, error));
            generate(m, tape, prompt, 3, s, false, threads == 1 ? one : more);
            if (threads > 1)
                ck_assert_int_eq(memcmp(one, more, sizeof one), 0);
            generate(m, tape, prompt, 3, s, true, more);
            ck_assert_int_eq(memcmp(one, more, sizeof one), 0);
        }
        wf_model_free(m);
    }
    wf_tape_free(tape);
}
END_TEST

/* A model trained on a melody goes on with it. */
START_TEST(a_trained_model_repeats_its_text)
{
    for (int which = 0; which < 2; which++) {
        struct wf_config c = small_config(names[which], 16, V);
        wf_model *m = model_of(&c, 2);
        wf_tape *tape = new_tape();
        int32_t prompt[4] = {0, 3, 6, 9}, out[MANY];
        train_a_little(m, tape, 80);
        generate(m, tape, prompt, 4, (struct wf_sampler){.greedy = true}, false, out);
        for (int k = 0; k < MANY; k++)
            ck_assert_msg(out[k] == (k + 4) % 7 * 3, "%s: token %d is %d", names[which], k, out[k]);
        wf_tape_free(tape);
        wf_model_free(m);
    }
}
END_TEST

struct listener {
    int32_t heard[MANY];
    int count, enough;
};

static bool listen(void *ctx, int32_t id)
{
    struct listener *l = ctx;
    l->heard[l->count++] = id;
    return l->count < l->enough;
}

START_TEST(callbacks_and_limits)
{
    struct wf_config c = small_config("char-rms", 16, V);
    wf_model *m = model_of(&c, 2);
    wf_tape *tape = new_tape();
    int32_t prompt[2] = {1, 2}, out[MANY], again[MANY];
    int64_t count;
    struct listener l = {.enough = 7};
    struct wf_generate_options o = {.sampler = {.seed = 1}, .max_tokens = MANY, .token = listen, .ctx = &l};
    ck_ok(wf_generate_with(m, tape, prompt, 2, &o, out, &count, error));
    ck_assert_int_eq(count, 7); /* with the id at which it was stopped */
    ck_assert_int_eq(memcmp(out, l.heard, 7 * sizeof *out), 0);
    l = (struct listener){.enough = MANY + 1};
    ck_ok(wf_generate_with(m, tape, prompt, 2, &o, NULL, &count, error));
    ck_assert(count == MANY && l.count == MANY);
    ck_assert_int_eq(memcmp(out, l.heard, 7 * sizeof *out), 0);
    generate(m, tape, prompt, 2, o.sampler, false, again);
    ck_assert_int_eq(memcmp(again, l.heard, sizeof again), 0);
    o = (struct wf_generate_options){.max_tokens = 0};
    ck_ok(wf_generate_with(m, tape, prompt, 2, &o, out, &count, error));
    ck_assert_int_eq(count, 0);

    /* why it ended */
    struct wf_generate_result result = {-1, WF_GENERATE_STOPPED};
    o.result = &result;
    ck_ok(wf_generate_with(m, tape, prompt, 2, &o, out, &count, error));
    ck_assert(result.tokens == 0 && result.end == WF_GENERATE_MAX_TOKENS);
    l = (struct listener){.enough = 3};
    o = (struct wf_generate_options){.sampler = {.seed = 1}, .max_tokens = MANY, .token = listen, .ctx = &l, .result = &result};
    ck_ok(wf_generate_with(m, tape, prompt, 2, &o, NULL, &count, error));
    ck_assert(result.tokens == 3 && result.end == WF_GENERATE_STOPPED);
    int32_t last = l.heard[2];
    int64_t before_it = l.heard[0] == last ? 0 : l.heard[1] == last ? 1 : 2;
    o.token = NULL;
    o.end = &last; /* the first such id ends the text */
    ck_ok(wf_generate_with(m, tape, prompt, 2, &o, out, &count, error));
    ck_assert(result.tokens == before_it && count == before_it && result.end == WF_GENERATE_END_TOKEN);
    const int32_t several[2] = {l.heard[2], l.heard[0]}; /* the second of them comes first */
    o.end = several;
    o.ends = 2;
    ck_ok(wf_generate_with(m, tape, prompt, 2, &o, out, &count, error));
    ck_assert(result.tokens == 0 && result.end == WF_GENERATE_END_TOKEN);
    o.end = NULL;
    ck_ok(wf_generate_with(m, tape, prompt, 2, &o, out, &count, error));
    ck_assert(result.tokens == MANY && result.end == WF_GENERATE_MAX_TOKENS);
    bool high = false;
    for (int i = 0; i < MANY; i++)
        high |= out[i] >= 5;
    o.types = 5; /* of a tokenizer with fewer tokens than the model has rows */
    ck_ok(wf_generate_with(m, tape, prompt, 2, &o, out, &count, error));
    for (int i = 0; i < MANY; i++)
        ck_assert(high && out[i] >= 0 && out[i] < 5);
    o.types = 0;

#define refused(length, status, says) ck_fails(wf_generate_with(m, tape, prompt, length, &o, out, &count, error), status, says)
    refused(0, WF_ERR_ARGUMENT, "prompt is empty");
    o.max_tokens = -1;
    refused(2, WF_ERR_ARGUMENT, "max_tokens");
    o = (struct wf_generate_options){.max_tokens = 3, .sampler = {.top_p = 2}};
    refused(2, WF_ERR_ARGUMENT, "top_p");
    o.sampler.top_p = 1;
    prompt[0] = V;
    refused(2, WF_ERR_ARGUMENT, "id 29 at 0 of the prompt");
    prompt[0] = -1;
    refused(2, WF_ERR_ARGUMENT, "id -1");
    ck_assert_int_eq(count, 0);
    /* weights that are not finite */
    prompt[0] = 1;
    wf_real *values = wf_registry_values(wf_model_registry(m));
    values[3 + 2 * key_of(&c, "d_model")] = (wf_real)(0.0 / 0.0); /* of the embedding of id 2 */
    refused(2, WF_ERR_NUMERIC, "NaN");
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

/* --- text -------------------------------------------------------------------------------------------------------------- */

struct heard {
    char text[4000];
    int64_t length, parts, enough;
};

static bool hear(void *ctx, const char *text, int64_t length)
{
    struct heard *h = ctx;
    ck_assert(length < (int64_t)sizeof h->text - h->length && text[length] == 0);
    memcpy(h->text + h->length, text, (size_t)length);
    h->length += length;
    return ++h->parts != h->enough;
}

static const char story[] = "Die k\xC3\xBChle See \xE2\x80\x94 \xE6\xB5\xB7. Wer ruft? \xC3\x84rger!\n";

/* The written text is the decoded text of prompt and new ids together, up to the end-of-text token. */
START_TEST(text_is_that_of_all_ids)
{
    static const wf_tokenizer_kind kinds[] = {WF_TOKENIZER_CHAR, WF_TOKENIZER_WORD, WF_TOKENIZER_BPE, WF_TOKENIZER_BYTE_BPE};
    wf_tape *tape = new_tape();
    int ended = 0;
    for (int k = 0; k < 4; k++) {
        wf_tokenizer *t;
        struct wf_tokens ids = {0};
        ck_ok(wf_tokenizer_train(story, sizeof story - 1, &t, error, .kind = kinds[k],
                                 .vocab_size = kinds[k] == WF_TOKENIZER_CHAR ? 0 : 300));
        ck_ok(wf_tokenizer_encode(t, story, 14, &ids, error));
        struct wf_config c = small_config("char-rms", 16, wf_tokenizer_vocab_size(t));
        wf_model *m = model_of(&c, 3);
        int32_t eos = wf_tokenizer_special(t, WF_SPECIAL_EOS);
        for (uint64_t seed = 0; seed < 30; seed++) {
            struct wf_generate_options o = {.sampler = {.seed = seed}, .max_tokens = MANY};
            struct heard h = {.enough = -1}, start = {.enough = -1}, some = {.enough = ids.count + 5};
            int32_t all[100];
            int64_t count, cut = 0;
            struct wf_string whole = {0};
            memcpy(all, ids.id, (size_t)ids.count * sizeof *all);
            ck_ok(wf_generate_with(m, tape, ids.id, ids.count, &o, all + ids.count, &count, error));
            while (cut < count && all[ids.count + cut] != eos)
                cut++;
            ended += cut < count;
            o.end = &eos;
            ck_ok(wf_generate_with(m, tape, ids.id, ids.count, &o, NULL, &count, error));
            ck_assert_int_eq(count, cut);
            ck_ok(wf_tokenizer_decode(t, all, ids.count + cut, &whole, error));
            ck_ok(wf_generate_text(m, t, tape, ids.id, ids.count, &o, hear, &h, error));
            ck_assert_int_eq(h.length, whole.length);
            ck_assert_int_eq(memcmp(h.text, whole.data, (size_t)h.length), 0);
            ck_assert_int_eq(h.parts, ids.count + cut + 1); /* one for each token, and one for the text that was held back */
            ck_ok(wf_generate_text(m, t, tape, ids.id, ids.count, &o, hear, &some, error));
            ck_assert(some.length <= h.length && !memcmp(some.text, h.text, (size_t)some.length) && some.parts <= ids.count + 5);
            ck_ok(wf_generate_text(m, t, tape, NULL, 0, &o, hear, &start, error)); /* a text without a prompt */
            wf_string_free(&whole);
        }
        struct wf_config other = small_config("char-rms", 16, V);
        wf_model *small = model_of(&other, 3);
        ck_fails(wf_generate_text(small, t, tape, ids.id, ids.count, &(struct wf_generate_options){.max_tokens = 1}, hear,
                                  &(struct heard){0}, error),
                 WF_ERR_ARGUMENT, "vocabulary size mismatch");
        wf_model_free(small);
        wf_model_free(m);
        wf_tokens_free(&ids);
        wf_tokenizer_free(t);
    }
    ck_assert_int_gt(ended, 10);
    wf_tape_free(tape);
}
END_TEST

/* The number of tokens changes neither the tape's memory nor the number of allocations. */
START_TEST(memory_stays_flat)
{
    struct wf_config c = small_config("nanogpt-char-small", 32, V);
    wf_model *m = model_of(&c, 2);
    wf_tape *tape = new_tape();
    int32_t prompt[1] = {1};
    int64_t count, calls[2];
    size_t peak[2];
    struct wf_generate_options o = {.max_tokens = 100};
    ck_ok(wf_generate_with(m, tape, prompt, 1, &o, NULL, &count, error));
    for (int i = 0; i < 2; i++) {
        o.max_tokens = i ? 2000 : 100;
        int64_t before = wf_alloc_count();
        ck_ok(wf_generate_with(m, tape, prompt, 1, &o, NULL, &count, error));
        calls[i] = wf_alloc_count() - before;
        peak[i] = wf_tape_stats(tape).peak;
    }
    ck_assert_int_eq(calls[0], calls[1]);
    ck_assert_uint_eq(peak[0], peak[1]);
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

static wf_status generate_some(const wf_model *m, wf_tape *tape, wf_error *error)
{
    int32_t prompt[3] = {1, 2, 3}, out[40];
    int64_t count;
    wf_status status = wf_generate_with(m, tape, prompt, 3, &(struct wf_generate_options){.max_tokens = 40}, out, &count, error);
    wf_scratch_drop(); /* a thread may get its scratch memory in any of the calls */
    return status;
}

START_TEST(out_of_memory)
{
    struct wf_config c = small_config("nanogpt-char-small", 16, V);
    wf_model *m = model_of(&c, 2);
    ck_assert_int_gt(sweep_memory(on_new_tape, &(struct tape_sweep){m, generate_some}), 4);
    wf_model_free(m);
}
END_TEST

WF_TEST_MAIN("models/generate", the_cache_changes_nothing, the_cache_is_no_larger_than_the_text, the_window_slides_by_a_quarter,
             logits_have_the_same_bits, threads_change_nothing, a_trained_model_repeats_its_text, callbacks_and_limits,
             text_is_that_of_all_ids, memory_stays_flat, out_of_memory)
