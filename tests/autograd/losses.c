/* SPDX-License-Identifier: MIT */
/* Cross-entropy, alone and fused with the product before it. */
#include <weft/nn.h>

#include "ops_tools.h"

/* The mean over the targets that count, by the definition. */
static double plain_loss(int64_t n, int64_t v, const wf_real *z, const int32_t *target, int32_t ignore, double e, double *unsmoothed)
{
    double sum = 0, plain = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (target[i] == ignore)
            continue;
        double top = -INFINITY, total = 0, mean = 0;
        for (int64_t j = 0; j < v; j++)
            top = fmax(top, (double)z[i * v + j]);
        for (int64_t j = 0; j < v; j++)
            total += exp((double)z[i * v + j] - top), mean += (double)z[i * v + j] / (double)v;
        double lse = top + log(total);
        plain += lse - (double)z[i * v + target[i]];
        sum += (1 - e) * (lse - (double)z[i * v + target[i]]) + e * (lse - mean);
        count++;
    }
    *unsmoothed = plain / (double)(count ? count : 1);
    return sum / (double)(count ? count : 1);
}

enum { N = 140, V = 19 };

static void some_targets(int32_t *target, int64_t n, int64_t v)
{
    for (int64_t i = 0; i < n; i++)
        target[i] = (int32_t)((i * 7 + i / 3) % v);
}

START_TEST(by_the_definition)
{
    begin(WF_GRADIENTS);
    int32_t target[N];
    some_targets(target, N, V);
    wf_tensor *z = wf_scale(normal(1, WF_SHAPE(20, 7, V)), 5), *ids = wf_ids(tape, target, 20, 7), *plain;
    wf_real *x = value_of(z);
    double unsmoothed, loss = plain_loss(N, V, x, target, -1, 0, &unsmoothed), close = 10 * loose;
    ck_assert_double_le(fabs(number(wf_cross_entropy(z, ids)) - loss), close * loss);
    loss = plain_loss(N, V, x, target, 3, 0.1, &unsmoothed);
    wf_tensor *smoothed = wf_cross_entropy(z, ids, .label_smoothing = 0.1, .has_ignore = true, .ignore = 3, .plain = &plain);
    ck_assert_double_le(fabs(number(smoothed) - loss), close * loss);
    ck_assert_double_le(fabs(number(plain) - unsmoothed), close * unsmoothed);
    int counted = 0;
    for (int i = 0; i < N; i++)
        counted += target[i] != 3;
    double divided = number(wf_cross_entropy(z, ids, .label_smoothing = 0.1, .has_ignore = true, .ignore = 3, .normalizer = 1000));
    ck_assert_double_le(fabs(divided - loss * counted / 1000), close * loss);
    ran(wf_backward(smoothed)); /* the plain loss is a constant beside it */
    free(x);
}
END_TEST

START_TEST(nothing_counts)
{
    begin(WF_GRADIENTS);
    int32_t target[6] = {-100, -100, -100, -100, -100, -100};
    wf_tensor *z = normal(1, WF_SHAPE(6, 5)), *x = normal(2, WF_SHAPE(6, 4)), *w = normal(3, WF_SHAPE(5, 4)),
              *ids = wf_ids_of(tape, target, WF_SHAPE(6)), *plain;
    wf_tensor *loss = wf_add(wf_cross_entropy(z, ids, .has_ignore = true, .ignore = -100, .plain = &plain),
                             wf_linear_cross_entropy(x, w, NULL, ids, .has_ignore = true, .ignore = -100));
    ck_assert(number(loss) == 0 && number(plain) == 0);
    ran(wf_backward(loss));
    wf_tensor *all[] = {z, x, w};
    for (int i = 0; i < 3; i++) {
        wf_real *g = gradient_of(all[i]);
        for (int64_t j = 0; j < count_of(all[i]); j++)
            ck_assert(g[j] == 0);
        free(g);
    }
}
END_TEST

/* The fused op against linear and cross_entropy: loss and gradients, for an upstream gradient of 1 and another, and with softcap > 0
 * of capped logits. */
static void fused_equals_apart(int64_t n, int64_t d, int64_t v, bool with_bias, double upstream, double softcap)
{
    int32_t *target = malloc((size_t)n * sizeof *target);
    some_targets(target, n, v);
    wf_real *result[2][3];
    double loss[2], plain_value[2];
    begin(WF_GRADIENTS);
    for (int fused = 0; fused < 2; fused++) {
        begin(WF_GRADIENTS);
        wf_tensor *in[3] = {normal(1, WF_SHAPE(n, d)), normal(2, WF_SHAPE(v, d)), with_bias ? normal(3, WF_SHAPE(v)) : NULL};
        wf_tensor *ids = wf_ids_of(tape, target, WF_SHAPE(n)), *plain, *y;
        struct wf_cross_entropy_options o = {.label_smoothing = 0.1, .has_ignore = true, .ignore = 2, .plain = &plain};
        wf_tensor *logits = fused ? NULL : wf_linear(in[0], in[1], in[2]);
        o.softcap = fused ? softcap : 0;
        if (fused)
            y = wf_linear_cross_entropy_with(in[0], in[1], in[2], ids, &o);
        else
            y = wf_cross_entropy_with(softcap > 0 ? wf_softcap(logits, softcap) : logits, ids, &o);
        loss[fused] = number(y);
        plain_value[fused] = number(plain);
        ran(wf_backward(upstream == 1 ? y : wf_scale(y, upstream)));
        for (int i = 0; i < 3; i++)
            result[fused][i] = in[i] ? gradient_of(in[i]) : NULL;
    }
    ck_assert_double_le(fabs(loss[0] - loss[1]), 10 * loose * loss[0]);
    ck_assert_double_le(fabs(plain_value[0] - plain_value[1]), 10 * loose * loss[0]);
    int64_t size[3] = {n * d, v * d, v};
    for (int i = 0; i < 3; i++) {
        if (result[0][i])
            same_numbers("fused", result[1][i], result[0][i], size[i], 20 * loose);
        free(result[0][i]);
        free(result[1][i]);
    }
    free(target);
}

START_TEST(fused_in_one_chunk)
{
    fused_equals_apart(50, 7, 11, true, 1, 0);
    fused_equals_apart(50, 7, 11, false, -2.5, 0);
    fused_equals_apart(50, 7, 11, true, 0, 0);
    fused_equals_apart(50, 7, 11, true, -2.5, 2);
}
END_TEST

START_TEST(fused_in_several_chunks)
{
    fused_equals_apart(300, 3, 17001, true, 1, 0);
    fused_equals_apart(257, 2, 17001, true, 0.5, 0);
    fused_equals_apart(257, 2, 17001, true, 0.5, 1);
}
END_TEST

/* Too many rows for a chunk, but few enough for a chunk and the gradient of the weight. */
START_TEST(fused_keeps_the_gradient_of_logits)
{
    fused_equals_apart(150, 80, 17001, true, 1, 0);
    fused_equals_apart(150, 80, 17001, true, 0.5, 0);
    fused_equals_apart(150, 80, 17001, false, -3, 0);
}
END_TEST

/* The peak of the tape's memory, which does not include a parameter's gradient. */
static size_t peak_of_training(int64_t rows, int64_t d, int64_t classes, double scale)
{
    wf_error e = {0};
    wf_registry *registry = wf_registry_new(&e);
    ck_assert(registry != NULL);
    wf_tensor *weight = wf_parameter(wf_root(registry), "w", WF_SHAPE(classes, d), .init = {WF_INIT_NORMAL, 0.1});
    ck_ok(wf_registry_build(registry, 1, error));
    begin(WF_TRAIN);
    int32_t *target = calloc((size_t)rows, sizeof *target);
    wf_tensor *loss = wf_linear_cross_entropy(normal(1, WF_SHAPE(rows, d)), weight, NULL, wf_ids_of(tape, target, WF_SHAPE(rows)));
    ran(wf_backward(scale == 1 ? loss : wf_scale(loss, scale)));
    size_t peak = wf_tape_stats(tape).peak;
    free(target);
    finish();
    wf_registry_free(registry);
    return peak;
}

/* Of few rows all logits are held; of many a chunk of some 128 rows and a gradient of the weight. So too with an upstream gradient other
 * than 1. */
START_TEST(fused_peak)
{
    enum { CLASSES = 20000, D = 100, REST = 30 };
    const size_t row = CLASSES * sizeof(wf_real);
    for (double scale = 1; scale > 0.1; scale /= 4) {
        static const struct {
            int64_t rows, held;
        } cases[] = {{128, 128}, {190, 190}, {1000, 125 + D}};
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const size_t peak = peak_of_training(cases[i].rows, D, CLASSES, scale);
            ck_assert_uint_lt(peak, (size_t)(cases[i].held + REST) * row);
            ck_assert_uint_ge(peak, (size_t)cases[i].held * row);
        }
    }
}
END_TEST

START_TEST(fused_does_not_hold_all_logits)
{
    begin(WF_INFER);
    enum { ROWS = 1024, CLASSES = 20000 };
    int32_t *target = calloc(ROWS, sizeof *target);
    wf_tensor *x = normal(1, WF_SHAPE(ROWS, 2)), *w = normal(2, WF_SHAPE(CLASSES, 2));
    number(wf_linear_cross_entropy(x, w, NULL, wf_ids_of(tape, target, WF_SHAPE(ROWS))));
    ck_assert_uint_lt(wf_tape_stats(tape).peak, (size_t)ROWS * CLASSES * sizeof(wf_real) / 4);
    free(target);
}
END_TEST

/* A long batch with a large vocabulary: 26 chunks of 128 rows. All logits are equal, so that the loss is log V. */
START_TEST(fused_in_many_chunks)
{
    enum { ROWS = 3300, CLASSES = 11008 };
    int32_t *target = calloc(ROWS, sizeof *target);
    begin(WF_GRADIENTS);
    wf_tensor *loss = wf_linear_cross_entropy(normal(1, WF_SHAPE(ROWS, 2)), wf_scale(normal(2, WF_SHAPE(CLASSES, 2)), 0), NULL,
                                              wf_ids_of(tape, target, WF_SHAPE(ROWS)));
    double value;
    ran(wf_backward(loss));
    ck_assert(wf_item(loss, &value) == WF_OK && fabs(value - log(CLASSES)) < 1e-4);
    free(target);
}
END_TEST

START_TEST(targets_out_of_range)
{
    begin(WF_GRADIENTS);
    wf_tensor *z = wf_name(normal(1, WF_SHAPE(2, 3, 5)), "logits");
    expect_error(wf_cross_entropy(z, wf_ids(tape, I32(0, 1, 4, 3, 5, 9), 2, 3)), WF_ERR_ARGUMENT,
                 "cross_entropy(logits [2,3,5], ids [2,3]): targets[1,1] = 5 is not in 0 .. 4");
    begin(WF_GRADIENTS);
    z = normal(1, WF_SHAPE(6, 5));
    wf_tensor *ids = wf_ids_of(tape, I32(0, 1, 4, -1, -100, 2), WF_SHAPE(6));
    expect_error(wf_linear_cross_entropy(z, normal(2, WF_SHAPE(7, 5)), NULL, ids, .has_ignore = true, .ignore = -100), WF_ERR_ARGUMENT,
                 "targets[3] = -1 is not in 0 .. 6");
    begin(WF_GRADIENTS);
    z = normal(1, WF_SHAPE(6, 5));
    expect_error(wf_cross_entropy(z, wf_ids(tape, I32(0, 1, 2, 3, 4, 0), 2, 3)), WF_ERR_SHAPE, "ids [2,3]");
    begin(WF_GRADIENTS);
    z = normal(1, WF_SHAPE(1, 5));
    expect_error(wf_cross_entropy(z, wf_ids_of(tape, I32(0), WF_SHAPE(1)), .label_smoothing = 1.5), WF_ERR_ARGUMENT,
                 "label_smoothing = 1.5");
}
END_TEST

WF_TEST_MAIN("losses", by_the_definition, nothing_counts, fused_in_one_chunk, fused_in_several_chunks, fused_keeps_the_gradient_of_logits,
             fused_peak, fused_does_not_hold_all_logits, fused_in_many_chunks, targets_out_of_range)
