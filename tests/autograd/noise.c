/* SPDX-License-Identifier: MIT */
/* Random numbers on the tape: against their formula, and how they depend on passes, rows, threads, and checkpoints. */
#include "ops_tools.h"

#include <weft/random.h>

enum { ROWS = 6, D = 1300 };

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Word j of a row, as weft/ops.h says. */
static uint32_t word(uint64_t seed, uint64_t step, uint32_t call, uint64_t row, int64_t j)
{
    uint64_t key = mix(mix(seed + 0x9e3779b97f4a7c15u) ^ step);
    uint32_t out[4];
    wf_philox((const uint32_t[]){(uint32_t)(j / 4), (uint32_t)row, (uint32_t)(row >> 32), call},
              (const uint32_t[]){(uint32_t)key, (uint32_t)(key >> 32)}, out);
    return out[j % 4];
}

START_TEST(formula)
{
    const double bound = sizeof(wf_real) == 8 ? 1e-11 : 2e-6;
    for (int s = 0; s < ISAS; s++) {
        if (!isa_used(s))
            continue;
        begin(WF_TRAIN);
        wf_tape_first_row(tape, 3);
        wf_real *z = value_of(wf_normal(tape, WF_SHAPE(ROWS, D), 2, 0.5)), *u = value_of(wf_uniform(tape, WF_SHAPE(ROWS, D), -1, 3)),
                *b = value_of(wf_bernoulli(tape, WF_SHAPE(ROWS, D), 0.3));
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < D; j++) {
                uint64_t row = 3 + (uint64_t)i;
                double r = sqrt(-2 * log((word(11, 5, 0, row, j / 2 * 2) + 0.5) * 0x1p-32)),
                       angle = 2 * M_PI * word(11, 5, 0, row, j / 2 * 2 + 1) * 0x1p-32,
                       want = 2 + 0.5 * r * (j % 2 ? sin(angle) : cos(angle));
                ck_assert_msg(fabs((double)z[i * D + j] - want) <= 8 * bound, "%s: normal %.12g, not %.12g", wf_isa(), (double)z[i * D + j],
                              want);
                want = -1 + 4 * (word(11, 5, 1, row, j) >> 8) * 0x1p-24;
                ck_assert_msg(fabs((double)u[i * D + j] - want) <= bound && u[i * D + j] >= -1 && u[i * D + j] < 3,
                              "%s: uniform %.12g, not %.12g", wf_isa(), (double)u[i * D + j], want);
                ck_assert(b[i * D + j] == ((word(11, 5, 2, row, j) >> 8) * 0x1p-24 < (double)(wf_real)0.3));
            }
        free(z);
        free(u);
        free(b);
    }
}
END_TEST

START_TEST(moments)
{
    enum { N = 400000 };
    begin(WF_INFER);
    wf_real *z = value_of(wf_normal(tape, WF_SHAPE(N / 1000, 1000), 0, 1)), *u = value_of(wf_uniform(tape, WF_SHAPE(N), 0, 1));
    double sum[5] = {0}, pairs = 0;
    for (int i = 0; i < N; i++) {
        double x = (double)z[i];
        sum[0] += x, sum[1] += x * x, sum[2] += x * x * x * x;
        sum[3] += (double)u[i], sum[4] += (double)u[i] * (double)u[i];
        pairs += i ? x * (double)z[i - 1] : 0;
    }
    /* within 4.5 standard deviations */
    const double s = 4.5 / sqrt(N);
    ck_assert(fabs(sum[0] / N) < s && fabs(sum[1] / N - 1) < s * sqrt(2) && fabs(sum[2] / N - 3) < s * sqrt(96) && fabs(pairs / N) < s);
    ck_assert(fabs(sum[3] / N - 0.5) < s * sqrt(1 / 12.0) && fabs(sum[4] / N - 1 / 3.0) < s * sqrt(4 / 45.0));
    free(z);
    free(u);
}
END_TEST

/* A pass that draws before, in and after a function. */
static wf_tensor *noisy(void *ctx, wf_tensor *x)
{
    (void)ctx;
    wf_shape shape = wf_shape_of(x);
    wf_tensor *z = wf_normal(tape, &shape, 0, 1);
    return wf_tanh(wf_add(wf_mul(x, z), wf_dropout(wf_mul(x, wf_bernoulli(tape, &shape, 0.5)), 0.25)));
}

static void pass(bool checkpoint, int first, int rows, wf_real *y, wf_real *g)
{
    wf_tape_reset(tape, WF_TRAIN, .seed = 3, .step = 7, .first_row = (uint64_t)first, .exact = true);
    wf_tensor *x = wf_slice(normal(1, WF_SHAPE(ROWS, D)), 0, first, rows);
    wf_real *value = value_of(x);
    wf_tensor *leaf = wf_input(tape, value, WF_SHAPE(rows, D), true);
    free(value);
    wf_shape shape = wf_shape_of(x);
    wf_tensor *h = wf_add(leaf, wf_uniform(tape, &shape, -0.1, 0.1));
    h = checkpoint ? wf_checkpoint(noisy, NULL, h) : noisy(NULL, h);
    h = wf_keep(wf_mul(h, wf_normal(tape, &shape, 1, 0.1)));
    ran(wf_backward(wf_sum(h)));
    wf_array view;
    ran(wf_read(h, y + first * D, rows * D));
    ran(wf_grad(leaf, &view));
    memcpy(g + first * D, view.data, (size_t)(rows * D) * sizeof *g);
}

START_TEST(what_they_depend_on)
{
    static wf_real y[ROWS * D], g[ROWS * D], again[ROWS * D], slope[ROWS * D];
    for (int run = 0; run < 6; run++) {
        ck_ok(wf_init(error, .threads = run % 3 == 0 ? 1 : run % 3 == 1 ? 2 : 5));
        begin(WF_INFER);
        pass(run >= 3, 0, ROWS, run ? again : y, run ? slope : g);
        ck_assert(!run || (memcmp(y, again, sizeof y) == 0 && memcmp(g, slope, sizeof g) == 0));
        memset(again, 0, sizeof again);
        pass(false, 0, 2, again, slope); /* the batch in parts */
        pass(true, 2, ROWS - 2, again, slope);
        ck_assert_mem_eq(y, again, sizeof y);
        ck_assert_mem_eq(g, slope, sizeof g);
        finish();
    }
    /* Passes of a training differ; those without gradients repeat, unless the step says otherwise. */
    static wf_real drawn[6][D];
    begin(WF_INFER);
    for (int i = 0; i < 6; i++) {
        wf_tape_reset(tape, i < 3 ? WF_TRAIN : WF_INFER, .seed = 3, .step = i == 5);
        ran(wf_read(wf_normal(tape, WF_SHAPE(D), 0, 1), drawn[i], D));
    }
    ck_assert(memcmp(drawn[0], drawn[1], sizeof *drawn) != 0 && memcmp(drawn[1], drawn[2], sizeof *drawn) != 0);
    ck_assert_mem_eq(drawn[3], drawn[4], sizeof *drawn);
    ck_assert_mem_eq(drawn[3], drawn[0], sizeof *drawn);
    ck_assert(memcmp(drawn[4], drawn[5], sizeof *drawn) != 0);
}
END_TEST

START_TEST(edges_and_errors)
{
    begin(WF_TRAIN);
    expect("deviation 0", wf_normal(tape, WF_SHAPE(3), 2.5, 0), NUMBERS(2.5, 2.5, 2.5), WF_SHAPE(3));
    expect("no width", wf_uniform(tape, WF_SHAPE(3), -1.5, -1.5), NUMBERS(-1.5, -1.5, -1.5), WF_SHAPE(3));
    expect("never", wf_bernoulli(tape, WF_SHAPE(3), 0), NUMBERS(0, 0, 0), WF_SHAPE(3));
    expect("always", wf_bernoulli(tape, WF_SHAPE(3), 1), NUMBERS(1, 1, 1), WF_SHAPE(3));
    expect("empty", wf_normal(tape, WF_SHAPE(0, 3), 0, 1), NUMBERS(0), WF_SHAPE(0, 3));
    ck_assert_int_eq(wf_ndim(wf_normal(tape, &(wf_shape){0}, 0, 1)), 0);
    wf_real *u = value_of(wf_uniform(tape, WF_SHAPE(100000), 16777215, 16777216)); /* floats on either side of every number drawn */
    for (int i = 0; i < 100000; i++)
        ck_assert(u[i] >= 16777215 && u[i] < 16777216);
    free(u);
#define REFUSED(call, code, words)                                                                                                         \
    do {                                                                                                                                   \
        begin(WF_TRAIN);                                                                                                                   \
        expect_error(call, code, words);                                                                                                   \
    } while (0)
    REFUSED(wf_normal(tape, WF_SHAPE(3), 0, -1), WF_ERR_ARGUMENT,
            "noise(): mean = 0 and deviation = -1 must be finite, and the deviation not negative");
    REFUSED(wf_uniform(tape, WF_SHAPE(3), 2, 1), WF_ERR_ARGUMENT, "noise(): low = 2 and high = 1 must be finite, and low at most high");
    REFUSED(wf_normal(tape, WF_SHAPE(3), NAN, 1), WF_ERR_ARGUMENT, "noise(): mean = nan and deviation = 1 must be finite");
    REFUSED(wf_bernoulli(tape, WF_SHAPE(3), 1.5), WF_ERR_ARGUMENT, "wf_bernoulli: p = 1.5 is not in 0 <= p <= 1");
    REFUSED(wf_normal(tape, NULL, 0, 1), WF_ERR_ARGUMENT, "normal: the shape is NULL");
    REFUSED(wf_normal(tape, WF_SHAPE(-1, 3), 0, 1), WF_ERR_SHAPE, "noise(): a result of shape [-1,3] is invalid");
}
END_TEST

WF_TEST_MAIN("noise", formula, moments, what_they_depend_on, edges_and_errors)
