/* SPDX-License-Identifier: MIT */
/* The generator: each text is the one that it is alone, whatever shares the batch, however prompts are cut, and with a draft. */
#include <math.h>
#include <string.h>

#include <weft/generator.h>
#include <weft/internal/scratch.h>

#include "../models/memory_test.h"

enum { V = 29, MOST = 60, TEXTS = 24 };

static const char *const names[] = {"nanogpt-char-small", "char-rms"};

/* A text that a generator makes. */
struct job {
    int32_t prompt[40], out[MOST];
    int64_t length, count, most;
    double log_probability;
    struct wf_generate_options options;
    struct wf_generate_result result;
    int done;
};

static bool take(void *ctx, int32_t id)
{
    struct job *j = ctx;
    ck_assert_int_lt(j->count, MOST);
    j->out[j->count++] = id;
    return true;
}

static void score(void *ctx, const struct wf_token_score *s)
{
    struct job *j = ctx;
    j->log_probability += s->log_probability;
    ck_assert_int_eq(s->tops, 3);
    ck_assert(s->top_log_probability[0] >= s->log_probability && s->top_log_probability[1] >= s->top_log_probability[2]);
}

static void end(void *ctx, const struct wf_generate_result *result)
{
    struct job *j = ctx;
    j->done++;
    ck_assert_int_eq(result->tokens, j->count);
}

static wf_generator *generator(const struct wf_next *model, wf_tape *tape, const struct wf_generator_options *options)
{
    wf_error failed = {0};
    wf_generator *g = wf_generator_new(model, tape, options, &failed);
    ck_assert_msg(g != NULL, "%s", failed.message);
    return g;
}

static void make_jobs(struct job *job, uint64_t seed)
{
    static const int32_t ends[] = {3, 11};
    for (int i = 0; i < TEXTS; i++) {
        int32_t lengths[3];
        random_ids(lengths, 3, 40, seed + 100 * (uint64_t)i);
        job[i] = (struct job){.length = 1 + lengths[0], .most = lengths[1] * 3 / 2};
        random_ids(job[i].prompt, job[i].length, V, seed + (uint64_t)i);
        job[i].options = (struct wf_generate_options){
            .sampler = {.seed = (uint64_t)i,
                        .temperature = 0.9,
                        .top_k = i % 3 == 0 ? 12 : 0,
                        .min_p = i % 4 == 1 ? 0.05 : 0,
                        .repetition_penalty = i % 5 == 2 ? 1.3 : 0,
                        .presence_penalty = i % 6 == 1 ? 0.5 : 0,
                        .frequency_penalty = i % 6 == 4 ? 0.2 : 0,
                        .greedy = i % 7 == 0},
            .max_tokens = job[i].most,
            .end = i % 2 ? ends : NULL,
            .ends = i % 4 == 1 ? 2 : 1,
            .token = take,
            .ctx = &job[i],
            .scored = score,
            .scored_ctx = &job[i],
            .tops = 3,
            .done = end,
            .result = &job[i].result,
        };
    }
}

static void run_all(wf_generator *g, struct job *job, int64_t rows)
{
    int next = 0;
    while (next < TEXTS || wf_generator_active(g) > 0) {
        for (; next < TEXTS && wf_generator_active(g) < rows; next++)
            ck_ok(wf_generator_add(g, job[next].prompt, job[next].length, &job[next].options, error));
        if (next < TEXTS)
            ck_fails(wf_generator_add(g, job[0].prompt, 1, &job[0].options, error), WF_ERR_STATE, "rows of the generator are taken");
        ck_ok(wf_generator_step(g, error));
    }
}

static void same(const struct job *a, const struct job *b, const char *what)
{
    for (int i = 0; i < TEXTS; i++) {
        ck_assert_msg(a[i].count == b[i].count && !memcmp(a[i].out, b[i].out, (size_t)a[i].count * sizeof *a[i].out),
                      "%s: text %d: %d and %d ids", what, i, (int)a[i].count, (int)b[i].count);
        ck_assert_int_eq(a[i].result.end, b[i].result.end);
        ck_assert_int_eq(a[i].result.tokens, b[i].count);
        ck_assert_int_eq(b[i].done, 1);
        ck_assert(a[i].log_probability == b[i].log_probability); /* to the bit */
    }
}

/* Alone and without a cache, by wf_generate_with. */
static void run_alone(const wf_model *m, wf_tape *tape, struct job *job)
{
    for (int i = 0; i < TEXTS; i++) {
        int64_t count;
        struct wf_generate_options o = job[i].options;
        o.no_cache = true;
        ck_ok(wf_generate_with(m, tape, job[i].prompt, job[i].length, &o, NULL, &count, error));
        ck_assert_int_eq(job[i].done, 0); /* wf_generate_with does not call it */
        job[i].done = 1;
        ck_assert_int_eq(count, job[i].count);
    }
}

START_TEST(a_text_is_the_one_that_it_is_alone)
{
    static const struct wf_generator_options options[] = {
        {.rows = 1},  {.rows = 2, .chunk = 3},      {.rows = 5, .chunk = 1}, {.rows = 7, .chunk = 8},
        {.rows = 30}, {.rows = 3, .no_cache = true}};
    static const int contexts[] = {3, 16, 37, 128};
    static struct job alone[TEXTS], batch[TEXTS];
    wf_tape *tape = new_tape();
    int ends[5] = {0};
    for (int which = 0; which < 2; which++)
        for (int c = 0; c < 4; c++) {
            struct wf_config config = small_config(names[which], contexts[c], V);
            wf_model *m = model_of(&config, (uint64_t)c);
            train_a_little(m, tape, 5);
            make_jobs(alone, (uint64_t)c);
            run_alone(m, tape, alone);
            const struct wf_next next = wf_next_of(m);
            for (size_t o = 0; o < sizeof options / sizeof *options; o++) {
                make_jobs(batch, (uint64_t)c);
                wf_generator *g = generator(&next, tape, &options[o]);
                run_all(g, batch, options[o].rows);
                wf_generator_free(g);
                same(alone, batch, names[which]);
            }
            for (int i = 0; i < TEXTS; i++)
                ends[alone[i].result.end]++;
            wf_model_free(m);
        }
    ck_assert_int_gt(ends[WF_GENERATE_MAX_TOKENS], 20);
    ck_assert_int_gt(ends[WF_GENERATE_END_TOKEN], 20);
    wf_tape_free(tape);
}
END_TEST

/* With a draft that is right often (the model itself), sometimes (trained alike) and hardly ever (random). */
START_TEST(a_draft_changes_no_text)
{
    static struct job alone[TEXTS], drafted[TEXTS];
    static const int contexts[] = {5, 16, 64};
    wf_tape *tape = new_tape();
    double share[3] = {0};
    for (int c = 0; c < 3; c++) {
        struct wf_config config = small_config(names[0], contexts[c], V), small = small_config(names[1], c == 1 ? 9 : contexts[c], V);
        wf_model *m = model_of(&config, 1), *d[3] = {m, model_of(&small, 2), model_of(&small, 3)};
        train_a_little(m, tape, 30);
        train_a_little(d[1], tape, 30);
        make_jobs(alone, (uint64_t)c);
        run_alone(m, tape, alone);
        for (int k = 0; k < 3; k++)
            for (int guesses = 0; guesses < 4; guesses++) {
                const struct wf_next next = wf_next_of(m), draft = wf_next_of(d[k]);
                make_jobs(drafted, (uint64_t)c);
                wf_generator *g = generator(&next, tape, &(struct wf_generator_options){.draft = &draft, .guesses = guesses, .chunk = 7});
                run_all(g, drafted, 1);
                const struct wf_generator_counts n = wf_generator_counts(g);
                ck_assert(n.guesses > 0 && n.right <= n.guesses && n.tokens > 0);
                share[k] += (double)n.right / (double)n.guesses / 12;
                if (k == 0 && guesses == 3 && contexts[c] == 64)
                    ck_assert_int_lt(n.passes, n.tokens * 2 / 3);
                wf_generator_free(g);
                same(alone, drafted, "a draft");
            }
        for (int k = 1; k < 3; k++)
            wf_model_free(d[k]);
        wf_model_free(m);
    }
    ck_assert_msg(share[0] > 0.9 && share[0] > share[1] && share[1] > share[2], "right: %g %g %g", share[0], share[1], share[2]);
    wf_tape_free(tape);
}
END_TEST

/* A later prompt that begins like an earlier text is not computed again, and nothing changes. */
START_TEST(what_the_cache_has_is_kept)
{
    struct wf_config config = small_config(names[0], 64, V);
    wf_model *m = model_of(&config, 1);
    wf_tape *tape = new_tape();
    const struct wf_next next = wf_next_of(m);
    wf_generator *g = generator(&next, tape, NULL);
    int32_t ids[60], kept[10], alone[10];
    int64_t count;
    random_ids(ids, 60, V, 4);
    int64_t reused = 0;
    for (int length = 10; length < 60; length += 10)
        for (int seed = 0; seed < 3; seed++) {
            struct wf_generate_options o = {.max_tokens = 10, .sampler = {.seed = (uint64_t)seed}, .generator = g};
            ck_ok(wf_generate_with(m, tape, ids, length, &o, kept, &count, error));
            const int64_t now = wf_generator_counts(g).reused - reused;
            reused += now;
            ck_assert_int_eq(now, seed > 0 ? length - 1 : length - 10);
            wf_tape *other = new_tape();
            o.generator = NULL;
            ck_ok(wf_generate_with(m, other, ids, length, &o, alone, &count, error));
            ck_assert_mem_eq(kept, alone, sizeof alone);
            wf_tape_free(other);
            ids[length] = (alone[0] + 1) % V; /* the next prompt is not what this text went on with */
        }
    wf_generator_free(g);
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

START_TEST(wrong_options_are_refused)
{
    struct wf_config config = small_config(names[0], 16, V), other = small_config(names[0], 16, V + 1);
    wf_model *m = model_of(&config, 1), *o = model_of(&other, 1);
    wf_tape *tape = new_tape();
    const struct wf_next next = wf_next_of(m), draft = wf_next_of(o);
    struct wf_next bare = next;
    bare.all = NULL;
    const struct {
        const struct wf_next *model;
        struct wf_generator_options options;
        const char *says;
    } cases[] = {{&next, {.rows = -1}, "rows: -1"},
                 {&next, {.rows = 5000}, "rows: 5000"},
                 {&next, {.chunk = -1}, "chunk: -1"},
                 {&next, {.guesses = 65}, "guesses: 65"},
                 {&next, {.draft = &next, .rows = 2}, "one text at a time"},
                 {&bare, {.draft = &next}, ".all"},
                 {&next, {.draft = &next, .no_cache = true}, "needs a cache"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wf_error failed = {0};
        ck_assert_ptr_null(wf_generator_new(cases[i].model, tape, &cases[i].options, &failed));
        ck_assert_msg(failed.code == WF_ERR_ARGUMENT && strstr(failed.message, cases[i].says) != NULL, "%s", failed.message);
    }
    /* the draft has a row more, which is never chosen; the other way round a row is missing */
    wf_generator *g = generator(&next, tape, &(struct wf_generator_options){.draft = &draft});
    ck_ok(wf_generator_add(g, (int32_t[]){1}, 1, &(struct wf_generate_options){.max_tokens = 3}, error));
    while (wf_generator_active(g) > 0)
        ck_ok(wf_generator_step(g, error));
    wf_generator_free(g);
    g = generator(&draft, tape, &(struct wf_generator_options){.draft = &next});
    ck_fails(wf_generator_add(g, (int32_t[]){1}, 1, &(struct wf_generate_options){.max_tokens = 3}, error), WF_ERR_ARGUMENT,
             "a vocabulary of");
    ck_ok(wf_generator_add(g, (int32_t[]){1}, 1, &(struct wf_generate_options){.max_tokens = 3, .types = V}, error));
    wf_generator_free(g);
    g = generator(&next, tape, NULL);
    ck_fails(wf_generator_add(g, (int32_t[]){V}, 1, &(struct wf_generate_options){.max_tokens = 1}, error), WF_ERR_ARGUMENT, "vocabulary");
    struct wf_generate_options bad = {.max_tokens = 1, .sampler.min_p = 1.5};
    ck_ok(wf_generator_add(g, (int32_t[]){1}, 1, &bad, error));
    ck_fails(wf_generator_step(g, error), WF_ERR_ARGUMENT, "min_p");
    ck_fails(wf_generator_step(g, error), WF_ERR_ARGUMENT, "min_p"); /* the first error stays */
    wf_generator_free(g);
    wf_generator_free(NULL);
    wf_tape_free(tape);
    wf_model_free(m);
    wf_model_free(o);
}
END_TEST

/* A callback cannot add a text: the step that calls it goes on with the rows as they were. */
struct adding {
    wf_generator *g;
    wf_status status;
    char message[1024];
};

static void add_within(void *ctx, const struct wf_generate_result *result)
{
    struct adding *a = ctx;
    wf_error failed = {0};
    (void)result;
    a->status = wf_generator_add(a->g, (int32_t[]){1}, 1, &(struct wf_generate_options){.max_tokens = 1}, &failed);
    snprintf(a->message, sizeof a->message, "%s", failed.message);
}

START_TEST(texts_are_added_between_steps)
{
    struct wf_config config = small_config(names[0], 8, V);
    wf_model *m = model_of(&config, 1);
    wf_tape *tape = new_tape();
    const struct wf_next next = wf_next_of(m);
    struct adding a = {.g = generator(&next, tape, NULL)};
    ck_ok(wf_generator_add(a.g, (int32_t[]){1}, 1, &(struct wf_generate_options){.max_tokens = 3, .done = add_within, .ctx = &a}, error));
    while (wf_generator_active(a.g) > 0)
        ck_ok(wf_generator_step(a.g, error));
    ck_assert_int_eq(a.status, WF_ERR_STATE);
    ck_assert_msg(strstr(a.message, "between the steps") != NULL, "%s", a.message);
    ck_ok(wf_generator_add(a.g, (int32_t[]){1}, 1, &(struct wf_generate_options){.max_tokens = 1}, error));
    wf_generator_free(a.g);
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

static struct job memory_job[3];

static wf_status generate_three(const wf_model *m, wf_tape *tape, wf_error *error)
{
    const struct wf_next next = wf_next_of(m);
    wf_generator *g = wf_generator_new(&next, tape, &(struct wf_generator_options){.rows = 2}, error);
    wf_status status = g ? WF_OK : WF_ERR_MEMORY;
    for (int i = 0; status == WF_OK && i < 3; i++) { /* the third text makes the cache grow */
        memory_job[i] = (struct job){.prompt = {1, 2, 3}, .length = 3};
        memory_job[i].options = (struct wf_generate_options){.max_tokens = 4 + 3 * i, .token = take, .ctx = &memory_job[i]};
        status = wf_generator_add(g, memory_job[i].prompt, 3, &memory_job[i].options, error);
        while (status == WF_OK && i > 0 && wf_generator_active(g) > (i == 2 ? 0 : 1))
            status = wf_generator_step(g, error);
    }
    wf_generator_free(g);
    wf_scratch_drop(); /* a thread may get its scratch memory in any of the calls */
    return status;
}

START_TEST(out_of_memory)
{
    struct wf_config c = small_config(names[0], 16, V);
    wf_model *m = model_of(&c, 2);
    ck_assert_int_gt(sweep_memory(on_new_tape, &(struct tape_sweep){m, generate_three}), 10);
    wf_model_free(m);
}
END_TEST

WF_TEST_MAIN("infer/generator", a_text_is_the_one_that_it_is_alone, a_draft_changes_no_text, what_the_cache_has_is_kept,
             wrong_options_are_refused, texts_are_added_between_steps, out_of_memory)
