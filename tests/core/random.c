/* SPDX-License-Identifier: MIT */
#include "check_weft.h"

#include <math.h>

/* kat_vectors of Random123 1.14, philox4x32 with 10 rounds. */
START_TEST(known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[4];
        wf_philox(cases[i].counter, cases[i].key, out);
        ck_assert_mem_eq(out, cases[i].out, sizeof out);
    }
}
END_TEST

START_TEST(stream_is_its_blocks)
{
    const uint64_t seed = 0x299f31d0a4093822, stream = 0x0370734413198a2e;
    const uint32_t key[2] = {0xa4093822, 0x299f31d0};
    wf_rng rng = wf_rng_new(seed, stream);
    for (uint32_t block = 0; block < 10; block++) {
        const uint32_t counter[4] = {block, 0, 0x13198a2e, 0x03707344};
        uint32_t out[4];
        wf_philox(counter, key, out);
        for (int i = 0; i < 4; i++)
            ck_assert_uint_eq(wf_rng_next(&rng), out[i]);
    }
    rng.position = UINT64_C(1) << 40; /* a copy gives the same numbers, at any position */
    wf_rng saved = rng;
    uint32_t a = wf_rng_next(&rng);
    wf_rng_next(&rng);
    ck_assert_uint_eq(wf_rng_next(&saved), a);
    ck_assert_uint_eq(saved.position + 1, rng.position);
}
END_TEST

START_TEST(below)
{
    wf_rng rng = wf_rng_new(5, 6);
    int64_t seen[7] = {0};
    enum { DRAWS = 70000 };
    for (int i = 0; i < DRAWS; i++)
        seen[wf_rng_below(&rng, 7)]++;
    double chi = 0;
    for (int i = 0; i < 7; i++)
        chi += pow((double)seen[i] - DRAWS / 7.0, 2) / (DRAWS / 7.0);
    ck_assert_double_lt(chi, 27); /* 6 degrees of freedom: one in 7,000 */
    ck_assert_uint_eq(wf_rng_below(&rng, 1), 0);
    const uint64_t large[] = {3000000000u, (UINT64_C(1) << 32) + 1, UINT64_C(3) << 61, UINT64_MAX};
    for (size_t k = 0; k < 4; k++) {
        double sum = 0;
        for (int i = 0; i < 20000; i++) {
            uint64_t x = wf_rng_below(&rng, large[k]);
            ck_assert_uint_lt(x, large[k]);
            sum += (double)x / (double)large[k];
        }
        ck_assert_double_eq_tol(sum / 20000, 0.5, 0.01);
    }
    int64_t low = 0;
    for (int i = 0; i < 20000; i++)
        low += wf_rng_below(&rng, UINT64_C(3) << 62) < UINT64_C(1) << 62;
    ck_assert_double_eq_tol((double)low / 20000, 1.0 / 3, 0.015); /* a plain product would give 1/2 or 1/4 */
}
END_TEST

static void moments(const char *what, double (*draw)(wf_rng *), double mean, double variance, double fourth)
{
    wf_rng rng = wf_rng_new(7, 8);
    enum { DRAWS = 200000 };
    double s1 = 0, s2 = 0, s4 = 0, lag = 0, last = 0;
    for (int i = 0; i < DRAWS; i++) {
        double x = draw(&rng) - mean;
        s1 += x;
        s2 += x * x;
        s4 += x * x * x * x;
        lag += x * last;
        last = x;
    }
    double d = sqrt(variance / DRAWS);
    ck_assert_msg(fabs(s1 / DRAWS) < 4 * d, "%s: mean off by %g", what, s1 / DRAWS);
    ck_assert_msg(fabs(s2 / DRAWS / variance - 1) < 0.02, "%s: variance %g", what, s2 / DRAWS);
    ck_assert_msg(fabs(s4 / DRAWS / fourth - 1) < 0.05, "%s: fourth moment %g", what, s4 / DRAWS);
    ck_assert_msg(fabs(lag / DRAWS / variance) < 0.01, "%s: correlation %g", what, lag / DRAWS / variance);
}

START_TEST(distributions)
{
    moments("uniform", wf_rng_uniform, 0.5, 1.0 / 12, 1.0 / 80);
    moments("normal", wf_rng_normal, 0, 1, 3);
}
END_TEST

START_TEST(fills)
{
    enum { N = 20011 };
    wf_real *x = wf_alloc(N * sizeof *x), *y = wf_alloc(N * sizeof *y);
    for (int normal = 0; normal < 2; normal++) {
        void (*fill)(wf_real *, int64_t, double, double, uint64_t, uint64_t) = normal ? wf_fill_normal : wf_fill_uniform;
        ck_ok(wf_set_threads(1, error));
        fill(x, N, 2, 5, 11, 12);
        for (int threads = 2; threads <= 4; threads++) {
            ck_ok(wf_set_threads(threads, error));
            memset(y, 0, N * sizeof *y);
            fill(y, N, 2, 5, 11, 12);
            ck_assert_mem_eq(x, y, N * sizeof *x);
        }
        /* A shorter fill is the beginning of a longer one. */
        for (int64_t n = 0; n < 10; n++) {
            memset(y, 0, 16 * sizeof *y);
            fill(y, n, 2, 5, 11, 12);
            ck_assert_mem_eq(x, y, (size_t)n * sizeof *x);
            ck_assert(y[n] == 0);
        }
        fill(y, N, 2, 5, 11, 13);
        ck_assert_int_ne(memcmp(x, y, N * sizeof *x), 0);
        fill(y, N, 2, 5, 10, 12);
        ck_assert_int_ne(memcmp(x, y, N * sizeof *x), 0);
        double sum = 0, squares = 0;
        for (int i = 0; i < N; i++) {
            ck_assert(normal || (x[i] >= 2 && x[i] <= 5));
            sum += x[i];
            squares += (double)x[i] * (double)x[i];
        }
        double mean = sum / N, variance = squares / N - mean * mean;
        ck_assert_double_eq_tol(mean, normal ? 2 : 3.5, normal ? 0.15 : 0.03);
        ck_assert_double_eq_tol(variance, normal ? 25 : 0.75, normal ? 1 : 0.03);
    }
    wf_free(x);
    wf_free(y);
}
END_TEST

/* FNV-1a, 64 bits: values of its authors' test suite. */
START_TEST(stream_names)
{
    ck_assert_uint_eq(wf_stream_of(""), UINT64_C(0xcbf29ce484222325));
    ck_assert_uint_eq(wf_stream_of("a"), UINT64_C(0xaf63dc4c8601ec8c));
    ck_assert_uint_eq(wf_stream_of("foobar"), UINT64_C(0x85944171f73967e8));
}
END_TEST

WF_TEST_MAIN("random", known_answers, stream_is_its_blocks, below, distributions, fills, stream_names)
