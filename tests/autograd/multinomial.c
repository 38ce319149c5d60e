/* SPDX-License-Identifier: MIT */
/* multinomial: frequencies, draws without replacement, and how the ids depend on seeds, rows, threads and precision. dropout_shared: whole
 * rows and channels. */
#include "ops_tools.h"

enum { ROWS = 40, DRAWS = 500, N = 5 };
static const wf_real weights[N] = {1, 0, 3, 2, 2};

static void ids_of(wf_tensor *x, int32_t *id, int64_t n)
{
    ran(wf_read_ids(x, id, n));
}

START_TEST(frequencies)
{
    static int32_t id[ROWS * DRAWS];
    begin(WF_INFER);
    wf_tensor *w = wf_expand(wf_input(tape, weights, WF_SHAPE(1, N), false), ROWS, N);
    ids_of(wf_multinomial(w, DRAWS, true), id, ROWS * DRAWS);
    int count[N] = {0}, pairs = 0;
    for (int i = 0; i < ROWS * DRAWS; i++) {
        ck_assert(id[i] >= 0 && id[i] < N);
        count[id[i]]++;
        pairs += i > 0 && id[i] == id[i - 1];
    }
    for (int k = 0; k < N; k++) { /* within 4.5 standard deviations */
        const double p = (double)weights[k] / 8, n = ROWS * DRAWS;
        ck_assert_msg(fabs(count[k] - p * n) <= 4.5 * sqrt(n * p * (1 - p)), "%d is drawn %d times", k, count[k]);
    }
    const double same = (1 + 9 + 4 + 4) / 64.0, n = ROWS * DRAWS;
    ck_assert(fabs(pairs - same * n) < 4.5 * sqrt(n * same));
}
END_TEST

/* The first draw has the weights' frequencies, and so has the second among the rest. */
START_TEST(without_replacement)
{
    enum { MANY = 20000 };
    static int32_t id[MANY * 4];
    begin(WF_INFER);
    wf_tensor *w = wf_expand(wf_input(tape, weights, WF_SHAPE(1, N), false), MANY, N);
    ids_of(wf_multinomial(w, 4, false), id, MANY * 4);
    int first[N] = {0}, after_two[N] = {0}, twos = 0;
    for (int i = 0; i < MANY; i++) {
        unsigned seen = 0;
        for (int k = 0; k < 4; k++)
            seen |= 1u << id[4 * i + k];
        ck_assert_uint_eq(seen, 1 | 4 | 8 | 16); /* each once, and never the one with weight 0 */
        first[id[4 * i]]++;
        if (id[4 * i] == 2)
            twos++, after_two[id[4 * i + 1]]++;
    }
    for (int k = 0; k < N; k++) {
        const double p = (double)weights[k] / 8, q = k == 2 ? 0 : (double)weights[k] / 5;
        ck_assert(fabs(first[k] - p * MANY) <= 4.5 * sqrt(MANY * p * (1 - p)));
        ck_assert(fabs(after_two[k] - q * twos) <= 4.5 * sqrt(twos * q * (1 - q)));
    }
}
END_TEST

/* A batch in two halves, any number of threads, and a vector. Another call and another seed draw other ids. */
START_TEST(what_they_depend_on)
{
    enum { B = 8 };
    int32_t all[B * 6], part[B * 6], other[B * 6];
    for (int replacement = 0; replacement < 2; replacement++)
        for (int threads = 1; threads <= 3; threads += 2) {
            ck_ok(wf_init(error, .threads = threads));
            begin(WF_INFER);
            wf_tape_reset(tape, WF_TRAIN, .seed = 7, .exact = true);
            wf_tensor *w = wf_expand(wf_input(tape, (wf_real[]){1, 2, 3, 4, 5, 6, 7, 8}, WF_SHAPE(1, 8), false), B, 8);
            ids_of(wf_multinomial(w, 6, replacement), all, B * 6);
            ids_of(wf_multinomial(w, 6, replacement), other, B * 6);
            ck_assert(memcmp(all, other, sizeof all) != 0);
            for (int half = 0; half < 2; half++) {
                wf_tape_reset(tape, WF_TRAIN, .seed = 7, .exact = true, .first_row = half * B / 2);
                w = wf_expand(wf_input(tape, (wf_real[]){1, 2, 3, 4, 5, 6, 7, 8}, WF_SHAPE(1, 8), false), B / 2, 8);
                ids_of(wf_multinomial(w, 6, replacement), part + half * B / 2 * 6, B / 2 * 6);
            }
            ck_assert_mem_eq(all, part, sizeof all);
            wf_tape_reset(tape, WF_TRAIN, .seed = 8, .exact = true);
            w = wf_expand(wf_input(tape, (wf_real[]){1, 2, 3, 4, 5, 6, 7, 8}, WF_SHAPE(1, 8), false), B, 8);
            ids_of(wf_multinomial(w, 6, replacement), other, B * 6);
            ck_assert(memcmp(all, other, sizeof all) != 0);
        }
    begin(WF_INFER);
    int32_t one;
    ids_of(wf_multinomial(wf_input(tape, (wf_real[]){0, 0, 5}, WF_SHAPE(3), false), 1, false), &one, 1);
    ck_assert_int_eq(one, 2);
    ck_assert_int_eq(wf_dim(wf_multinomial(wf_input(tape, (wf_real[]){0, 0}, WF_SHAPE(2), false), 0, true), 0), 0);
}
END_TEST

/* All elements of a row (a channel) are dropped together, or divided by 1 - p; the gradient has the same mask. */
START_TEST(whole_rows_and_channels)
{
    enum { B = 6, C = 40, L = 7 };
    const struct {
        wf_shape mask;
        int b, c, l; /* 1 where the mask does not change along this dimension */
    } list[] = {{{3, {B, C, 1}}, 0, 0, 1}, {{3, {B, 1, L}}, 0, 1, 0}, {{3, {B, 1, 1}}, 0, 1, 1}, {{2, {C, 1}}, 1, 0, 1}};
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        begin(WF_TRAIN);
        wf_tensor *x = normal(1, WF_SHAPE(B, C, L)), *y = wf_keep(wf_dropout_shared(x, 0.25, &list[k].mask));
        ran(wf_backward(wf_sum(y)));
        wf_real *from = value_of(x), *to = value_of(y), *g = gradient_of(x);
        int dropped = 0;
        for (int i = 0; i < B * C * L; i++) {
            const int b = i / (C * L), c = i / L % C, l = i % L,
                      first = ((list[k].b ? 0 : b) * C + (list[k].c ? 0 : c)) * L + (list[k].l ? 0 : l);
            ck_assert(g[i] == 0 || fabs((double)g[i] - 4 / 3.0) < 1e-6);
            ck_assert(g[i] == g[first]);
            ck_assert(to[i] == from[i] * g[i]);
            dropped += g[i] == 0;
        }
        if (k == 0)
            ck_assert(dropped > 0.1 * B * C * L && dropped < 0.4 * B * C * L);
        free(from), free(to), free(g);
    }
    begin(WF_GRADIENTS);
    wf_tensor *x = normal(1, WF_SHAPE(2, 3));
    ck_assert(wf_dropout_shared(x, 0.5, WF_SHAPE(2, 1)) == x);
    begin(WF_TRAIN);
    x = normal(1, WF_SHAPE(2, 3));
    ck_assert(wf_dropout_shared(x, 0, WF_SHAPE(2, 1)) == x);
    expect_error(wf_dropout_shared(x, 0.5, WF_SHAPE(2, 2)), WF_ERR_SHAPE, "a mask of the shape [2,2] does not broadcast to x");
    begin(WF_TRAIN);
    x = normal(1, WF_SHAPE(2, 3));
    expect_error(wf_dropout_shared(x, 1.5, WF_SHAPE(2, 1)), WF_ERR_ARGUMENT, "p = 1.5 is not in 0 <= p <= 1");
}
END_TEST

WF_TEST_MAIN("multinomial", frequencies, without_replacement, what_they_depend_on, whole_rows_and_channels)
