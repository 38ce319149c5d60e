/* SPDX-License-Identifier: MIT */
/* Sampling: against the expected distribution, and at its edges. */
#include <math.h>

#include "../models/models_test.h"

enum { N = 65 };
static int32_t order[70000];

static int32_t draw(const struct wf_sampler *s, const wf_real *logits, int64_t n, uint64_t position)
{
    int32_t id = -1;
    ck_ok(wf_sample(s, logits, n, position, order, &id, error));
    ck_assert(id >= 0 && id < n);
    return id;
}

/* The probabilities by the definition, with a plain sort. */
static void expected(const struct wf_sampler *s, const wf_real *logits, int n, double *p)
{
    int rank[N];
    double t = s->temperature > 0 ? s->temperature : 1, sum = 0, cut = s->top_p > 0 ? s->top_p : 1, have = 0;
    int k = s->top_k > 0 && s->top_k < n ? (int)s->top_k : n;
    for (int i = 0; i < n; i++) {
        rank[i] = 0;
        for (int j = 0; j < n; j++)
            rank[i] += logits[j] > logits[i] || (logits[j] == logits[i] && j < i);
    }
    for (int i = 0; i < n; i++) {
        p[i] = rank[i] < k ? exp((double)logits[i] / t) : 0;
        sum += p[i];
    }
    for (int r = 0; r < n; r++)
        for (int i = 0; i < n; i++)
            if (rank[i] == r) {
                if (have >= cut * sum)
                    p[i] = 0;
                have += p[i];
            }
    double most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, p[i]);
    sum = 0;
    for (int i = 0; i < n; i++)
        sum += p[i] = p[i] < s->min_p * most ? 0 : p[i];
    for (int i = 0; i < n; i++)
        p[i] /= sum;
}

/* Pearson's statistic over cells with enough expected draws; the others count as one cell. The bound is about 5 standard deviations. */
static void follows(const struct wf_sampler *s, const wf_real *logits, int draws)
{
    double p[N], chi = 0, rest = 0, rest_seen = 0;
    int seen[N] = {0}, cells = 0;
    expected(s, logits, N, p);
    for (int i = 0; i < draws; i++)
        seen[draw(s, logits, N, (uint64_t)i)]++;
    for (int i = 0; i < N; i++) {
        if (p[i] == 0)
            ck_assert_msg(seen[i] == 0, "id %d was drawn %d times and has no probability", i, seen[i]);
        if (p[i] * draws < 8) {
            rest += p[i] * draws;
            rest_seen += seen[i];
            continue;
        }
        chi += pow(seen[i] - p[i] * draws, 2) / (p[i] * draws);
        cells++;
    }
    if (rest >= 8) {
        chi += pow(rest_seen - rest, 2) / rest;
        cells++;
    }
    ck_assert_msg(chi < cells - 1 + 5 * sqrt(2.0 * cells) + 3, "chi-square %g over %d cells (k %d p %g t %g)", chi, cells, (int)s->top_k,
                  s->top_p, s->temperature);
    ck_assert_int_gt(cells, 1);
}

START_TEST(draws_follow_the_distribution)
{
    static const struct wf_sampler samplers[] = {
        {.temperature = 0},
        {.temperature = 0.8, .top_k = 200},
        {.min_p = 0.1},
        {.min_p = 0.2, .top_k = 40, .top_p = 0.97, .temperature = 1.3},
        {.temperature = 1, .top_k = 4},
        {.temperature = 2, .top_k = 10},
        {.temperature = 1, .top_p = 0.9},
        {.temperature = 1.5, .top_p = 0.5},
        {.temperature = 0.7, .top_k = 20, .top_p = 0.8},
        {.temperature = 5, .top_k = 64, .top_p = 0.99},
        {.temperature = 1, .top_p = 1, .top_k = N},
    };
    wf_real logits[N];
    wf_fill_normal(logits, N, 0, 1.5, 3, 4);
    logits[7] = logits[9];
    logits[20] = -INFINITY;
    for (int i = 0; i < (int)(sizeof samplers / sizeof *samplers); i++)
        for (uint64_t seed = 1; seed <= 2; seed++) {
            struct wf_sampler s = samplers[i];
            s.seed = seed;
            follows(&s, logits, 20000);
        }
}
END_TEST

/* A wrong temperature does not pass. */
START_TEST(the_test_sees_a_wrong_distribution)
{
    wf_real logits[N], warmer[N];
    double p[N], chi = 0;
    int seen[N] = {0};
    struct wf_sampler s = {.temperature = 1, .seed = 1};
    wf_fill_normal(logits, N, 0, 1.5, 3, 4);
    for (int i = 0; i < N; i++)
        warmer[i] = logits[i] * (wf_real)0.9;
    expected(&s, logits, N, p);
    for (int i = 0; i < 20000; i++)
        seen[draw(&s, warmer, N, (uint64_t)i)]++;
    for (int i = 0; i < N; i++)
        chi += pow(seen[i] - p[i] * 20000, 2) / (p[i] * 20000);
    ck_assert_msg(chi > N - 1 + 5 * sqrt(2.0 * N), "chi-square %g", chi);
}
END_TEST

START_TEST(draws_depend_on_seed_and_position_alone)
{
    wf_real logits[N] = {0};
    int same = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        struct wf_sampler a = {.seed = 1}, b = {.seed = 2};
        int32_t x = draw(&a, logits, N, i);
        ck_assert_int_eq(x, draw(&a, logits, N, i));
        same += x == draw(&b, logits, N, i);
    }
    ck_assert_int_lt(same, 60); /* 1000 / 65 = 15 by chance */
}
END_TEST

START_TEST(greedy)
{
    wf_real logits[N];
    struct wf_sampler g = {.greedy = true, .top_k = 3, .temperature = 9}, one = {.top_k = 1, .temperature = 9},
                      cold = {.temperature = 1e-300}, narrow = {.top_p = 1e-300, .temperature = 3};
    for (uint64_t seed = 0; seed < 50; seed++) {
        wf_fill_normal(logits, N, 0, 1, seed, 0);
        if (seed % 2)
            logits[60] = logits[5] = logits[33] = 10; /* of equal ones the first */
        int best = 0;
        for (int i = 1; i < N; i++)
            if (logits[i] > logits[best])
                best = i;
        ck_assert_int_eq(draw(&g, logits, N, seed), best);
        ck_assert_int_eq(draw(&one, logits, N, seed), best);
        ck_assert_int_eq(draw(&narrow, logits, N, seed), best);
        if (seed % 2 == 0)
            ck_assert_int_eq(draw(&cold, logits, N, seed), best);
    }
}
END_TEST

START_TEST(edges)
{
    wf_real logits[N];
    struct wf_sampler s = {.temperature = 1};
    /* one token */
    logits[0] = -4;
    ck_assert_int_eq(draw(&s, logits, 1, 0), 0);
    /* equal logits: uniform for any value; k of them are the first k */
    for (int scale = 0; scale < 3; scale++) {
        int seen[N] = {0};
        for (int i = 0; i < N; i++)
            logits[i] = scale == 0 ? 0 : scale == 1 ? (wf_real)1e30 : (wf_real)-1e30;
        struct wf_sampler k = {.top_k = 5, .seed = 3};
        for (uint64_t i = 0; i < 2000; i++)
            seen[draw(&k, logits, N, i)]++;
        for (int i = 0; i < N; i++)
            ck_assert(i < 5 ? seen[i] > 300 : seen[i] == 0);
    }
    /* only two can be drawn */
    for (int i = 0; i < N; i++)
        logits[i] = -INFINITY;
    logits[11] = 2;
    logits[12] = 2;
    struct wf_sampler hot = {.temperature = 1e6, .seed = 5}, hot_k = {.temperature = 1e6, .top_k = 30, .top_p = 0.999};
    for (uint64_t i = 0; i < 500; i++) {
        int32_t id = draw(&hot, logits, N, i);
        ck_assert(id == 11 || id == 12);
        id = draw(&hot_k, logits, N, i);
        ck_assert(id == 11 || id == 12);
    }
    /* an infinite logit takes all */
    logits[3] = INFINITY;
    ck_assert_int_eq(draw(&hot, logits, N, 1), 3);
    /* a nucleus of p = 0.5 of four equal ones is two of them */
    wf_real four[4] = {1, 1, 1, 1};
    struct wf_sampler half = {.top_p = 0.5};
    for (uint64_t i = 0; i < 200; i++)
        ck_assert_int_lt(draw(&half, four, 4, i), 2);
}
END_TEST

START_TEST(a_large_vocabulary)
{
    enum { LARGE = 70000 };
    wf_real *logits = wf_alloc(LARGE * sizeof *logits);
    wf_fill_normal(logits, LARGE, 0, 3, 1, 1);
    /* One of the k largest, for top_k and for top_p. */
    struct wf_sampler k = {.top_k = 50, .seed = 1}, p = {.top_p = 0.3, .seed = 1};
    for (uint64_t i = 0; i < 20; i++) {
        int32_t id = draw(&k, logits, LARGE, i);
        int64_t larger = 0;
        for (int64_t j = 0; j < LARGE; j++)
            larger += logits[j] > logits[id];
        ck_assert_int_lt(larger, 50);
        id = draw(&p, logits, LARGE, i);
        double all = 0, more = 0;
        for (int64_t j = 0; j < LARGE; j++) {
            all += exp((double)logits[j]);
            more += logits[j] > logits[id] ? exp((double)logits[j]) : 0;
        }
        ck_assert(more < 0.3 * all);
    }
    wf_free(logits);
}
END_TEST

START_TEST(refusals)
{
    wf_real logits[N] = {0};
    struct wf_sampler s = {.temperature = 1};
    int32_t id = 77;
    for (int i = 0; i < N; i += 32) {
        logits[i] = NAN;
        ck_fails(wf_sample(&s, logits, N, 0, order, &id, error), WF_ERR_NUMERIC, "NaN");
        s.greedy = !s.greedy;
        ck_fails(wf_sample(&s, logits, N, 0, order, &id, error), WF_ERR_NUMERIC, "NaN");
        logits[i] = 0;
    }
    for (int i = 0; i < N; i++)
        logits[i] = -INFINITY;
    ck_fails(wf_sample(&s, logits, N, 0, order, &id, error), WF_ERR_NUMERIC, "finite");
    logits[4] = INFINITY;
    ck_fails(wf_sample(&s, logits, N, 0, order, &id, error), WF_ERR_NUMERIC, "finite");
    logits[5] = 0;
    ck_fails(wf_sample(&s, logits, 0, 0, order, &id, error), WF_ERR_ARGUMENT, "no logits");
    static const double temperatures[] = {-1, NAN, INFINITY}, ps[] = {-0.1, 1.1, NAN};
    for (int i = 0; i < 3; i++) {
        s = (struct wf_sampler){.temperature = temperatures[i]};
        ck_fails(wf_sample(&s, logits, N, 0, order, &id, error), WF_ERR_ARGUMENT, "temperature");
        s = (struct wf_sampler){.top_p = ps[i]};
        ck_fails(wf_sample(&s, logits, N, 0, order, &id, error), WF_ERR_ARGUMENT, "top_p");
        s = (struct wf_sampler){.min_p = ps[i]};
        ck_fails(wf_sample(&s, logits, N, 0, order, &id, error), WF_ERR_ARGUMENT, "min_p");
        s = (struct wf_sampler){.repetition_penalty = temperatures[i]};
        ck_fails(wf_penalize(&s, logits, N, NULL, 0, 0, order, error), WF_ERR_ARGUMENT, "repetition_penalty");
        s = (struct wf_sampler){.presence_penalty = i ? temperatures[i] : NAN};
        ck_fails(wf_penalize(&s, logits, N, NULL, 0, 0, order, error), WF_ERR_ARGUMENT, "presence_penalty");
    }
    s = (struct wf_sampler){.top_k = -1};
    ck_fails(wf_sample(&s, logits, N, 0, order, &id, error), WF_ERR_ARGUMENT, "top_k");
    ck_assert_int_eq(id, 77);
}
END_TEST

/* By the definition, id by id. Ids beyond the logits count for nothing. */
START_TEST(penalties)
{
    const struct wf_sampler s = {.repetition_penalty = 1.25, .presence_penalty = 0.5, .frequency_penalty = 0.125};
    const int32_t ids[] = {1, 2, 2, 70, 3, 2, 3, 3, 4, 70}; /* five of the prompt, five new ones */
    wf_real logits[6] = {1, 2, -2, 4, 0, -1};
    const double expect[6] = {1, 2 / 1.25, -2 * 1.25 - 0.5 - 0.125, 4 / 1.25 - 0.5 - 2 * 0.125, -0.5 - 0.125, -1};
    ck_ok(wf_penalize(&s, logits, 6, ids, 10, 5, order, error));
    for (int i = 0; i < 6; i++)
        ck_assert_msg(fabs((double)logits[i] - expect[i]) < 1e-6, "logit %d: %g, not %g", i, (double)logits[i], expect[i]);
    wf_real same[6] = {1, 2, -2, 4, 0, -1};
    ck_ok(wf_penalize(&(struct wf_sampler){0}, same, 6, ids, 10, 5, order, error));
    ck_assert(same[1] == 2 && same[2] == -2 && same[3] == 4);
}
END_TEST

WF_TEST_MAIN("models/sample", penalties, draws_follow_the_distribution, the_test_sees_a_wrong_distribution,
             draws_depend_on_seed_and_position_alone, greedy, edges, a_large_vocabulary, refusals)
