/* SPDX-License-Identifier: MIT */
/* Losses of elements and of rows: infinities, views, a weight for each row, mistakes. */
#include "ops_tools.h"

START_TEST(terms_with_probability_zero_are_zero)
{
    begin(WF_GRADIENTS);
    const wf_real inf = (wf_real)INFINITY;
    wf_tensor *x = given(NUMBERS(inf, -inf, 0), WF_SHAPE(3)), *y = given(NUMBERS(1, 0, 0.5), WF_SHAPE(3));
    wf_tensor *loss = wf_keep(wf_bce_with_logits(x, y, .reduction = WF_REDUCE_NONE));
    expect("bce", loss, NUMBERS(0, 0, (wf_real)log(2)), WF_SHAPE(3));
    ran(wf_backward(loss));
    expect_gradient("slopes", x, NUMBERS(0, 0, 0));
    begin(WF_GRADIENTS);
    x = given(NUMBERS(-inf, 0), WF_SHAPE(2)), y = given(NUMBERS(0, 1), WF_SHAPE(2));
    loss = wf_keep(wf_kl_div(x, y, .reduction = WF_REDUCE_SUM));
    ck_assert(number(loss) == 0 && wf_backward(loss) == WF_OK);
    expect_gradient("slopes", x, NUMBERS(0, -1));
    begin(WF_GRADIENTS);
    x = given(NUMBERS(-inf, 0), WF_SHAPE(2)), y = given(NUMBERS(-inf, 0), WF_SHAPE(2));
    ck_assert(number(wf_kl_div(x, y, .reduction = WF_REDUCE_SUM, .log_target = true)) == 0);
    wf_tensor *far = given(NUMBERS(-inf), WF_SHAPE(1)), *sure = given(NUMBERS(1), WF_SHAPE(1));
    ck_assert(isinf(number(wf_kl_div(far, sure))));
    ck_assert(isnan(number(wf_mse(given(NUMBERS((wf_real)NAN), WF_SHAPE(1)), sure, WF_REDUCE_MEAN))));
    ck_assert(number(wf_mse(wf_zeros(tape, WF_SHAPE(0, 3)), wf_zeros(tape, WF_SHAPE(0, 3)), WF_REDUCE_MEAN)) == 0);
}
END_TEST

/* The policy gradient: each row's loss times a constant, summed, against the loss of a row alone. */
START_TEST(rows_weighted_by_advantages)
{
    enum { N = 140, D = 6, V = 17001 }; /* several chunks of logits in the fused op */
    begin(WF_GRADIENTS);
    wf_real advantage[N], *got[2][3];
    int32_t id[N];
    wf_fill_normal(advantage, N, 0, 1, 5, 1);
    for (int i = 0; i < N; i++)
        id[i] = (i * 701 + 3) % V;
    for (int fused = 0; fused < 2; fused++) {
        begin(WF_GRADIENTS);
        wf_tensor *x = normal(1, WF_SHAPE(N, D)), *w = normal(2, WF_SHAPE(V, D)), *b = normal(3, WF_SHAPE(V)),
                  *ids = wf_ids_of(tape, id, WF_SHAPE(N)), *rows, *plain;
        const struct wf_cross_entropy_options o = {.reduction = WF_REDUCE_NONE, .label_smoothing = 0.1, .plain = &plain};
        if (fused) /* a reshaped target, and rows as a batch */
            rows = wf_reshape(wf_linear_cross_entropy_with(wf_reshape(x, 4, 35, D), w, b, wf_reshape(ids, 4, 35), &o), N);
        else
            rows = wf_cross_entropy_with(wf_linear(x, w, b), ids, &o);
        ck_assert_int_eq(count_of(plain), N);
        wf_tensor *loss = wf_sum(wf_mul(rows, wf_input(tape, advantage, WF_SHAPE(N), false)));
        ran(wf_backward(loss));
        wf_tensor *leaf[] = {x, w, b};
        for (int k = 0; k < 3; k++)
            got[fused][k] = gradient_of(leaf[k]);
    }
    const int64_t size[] = {N * D, V * D, V};
    for (int k = 0; k < 3; k++)
        same_numbers("fused", got[1][k], got[0][k], size[k], 20 * loose);
    /* A row alone. */
    begin(WF_GRADIENTS);
    wf_tensor *x = normal(1, WF_SHAPE(N, D)), *z = wf_linear(wf_slice(x, 0, 77, 1), normal(2, WF_SHAPE(V, D)), normal(3, WF_SHAPE(V)));
    wf_tensor *loss = wf_scale(wf_cross_entropy(z, wf_ids_of(tape, id + 77, WF_SHAPE(1)), .label_smoothing = 0.1), (double)advantage[77]);
    ran(wf_backward(loss));
    wf_real *g = gradient_of(x);
    same_numbers("a row alone", got[0][0] + 77 * D, g + 77 * D, D, 20 * loose);
    free(g);
    for (int k = 0; k < 6; k++)
        free(got[k % 2][k / 2]);
}
END_TEST

START_TEST(views_are_operands_too)
{
    begin(WF_GRADIENTS);
    wf_tensor *x = given(NUMBERS(1, 2, 3, 4, 5, 6), WF_SHAPE(2, 3)), *y = given(NUMBERS(0, 1, 0, 1, 1, 0), WF_SHAPE(3, 2));
    wf_tensor *loss = wf_mse(wf_transpose(x, 0, 1), y, WF_REDUCE_NONE);
    expect("mse", loss, NUMBERS(1, 9, 4, 16, 4, 36), WF_SHAPE(3, 2));
    expect("mse of an expanded target", wf_mse(x, wf_expand(given(NUMBERS(1, 2, 3), WF_SHAPE(3)), 2, 3), WF_REDUCE_SUM), NUMBERS(27),
           &(wf_shape){0});
}
END_TEST

START_TEST(sums_over_many_blocks)
{
    enum { N = 30008 };
    begin(WF_GRADIENTS);
    wf_tensor *x = normal(1, WF_SHAPE(N)), *y = wf_sigmoid(normal(2, WF_SHAPE(N)));
    wf_real *a = value_of(x), *b = value_of(y);
    double squares = 0, binary = 0, normal_divergence = 0;
    for (int i = 0; i < N; i++) {
        double v = (double)a[i], p = (double)b[i];
        squares += (v - p) * (v - p);
        binary += log1p(exp(v)) - p * v;
        normal_divergence += (v * v + exp(p) - 1 - p) / 2;
    }
    ck_assert_double_le(fabs(number(wf_mse(x, y, WF_REDUCE_SUM)) - squares), loose * squares);
    ck_assert_double_le(fabs(number(wf_mse(x, y, WF_REDUCE_MEAN)) - squares / N), loose * squares / N);
    ck_assert_double_le(fabs(number(wf_bce_with_logits(x, y)) - binary / N), loose * binary / N);
    ck_assert_double_le(fabs(number(wf_kl_normal(wf_reshape(x, 8, N / 8), wf_reshape(y, 8, N / 8), WF_REDUCE_SUM)) - normal_divergence),
                        loose * normal_divergence);
    free(a);
    free(b);
}
END_TEST

static uint64_t bits(void)
{
    enum { N = 400, V = 90 };
    begin(WF_GRADIENTS);
    int32_t id[N];
    for (int i = 0; i < N; i++)
        id[i] = i * 37 % V;
    wf_tensor *x = normal(1, WF_SHAPE(N, V)), *y = wf_sigmoid(normal(2, WF_SHAPE(N, V))), *w = normal(3, WF_SHAPE(V, V)),
              *ids = wf_ids_of(tape, id, WF_SHAPE(N)), *weights = wf_sigmoid(normal(4, WF_SHAPE(V)));
    wf_tensor *loss = wf_add(wf_mse(x, y, WF_REDUCE_MEAN), wf_bce_with_logits(x, y, .positive_weight = weights));
    loss = wf_add(loss, wf_kl_div(wf_log_softmax(x, 1), y, .reduction = WF_REDUCE_BATCH_MEAN));
    loss = wf_add(loss, wf_kl_normal(x, y, WF_REDUCE_BATCH_MEAN));
    loss = wf_add(loss, wf_mean(wf_cross_entropy(x, ids, .reduction = WF_REDUCE_NONE, .class_weights = weights, .label_smoothing = 0.1)));
    loss = wf_add(loss, wf_mean(wf_linear_cross_entropy(x, w, NULL, ids, .reduction = WF_REDUCE_NONE, .class_weights = weights)));
    loss = wf_add(loss, wf_linear_cross_entropy(x, w, NULL, ids, .class_weights = weights, .label_smoothing = 0.1));
    ran(wf_backward(loss));
    double value = number(loss);
    return hash_of_gradient(hash_of_gradient(hash_of(HASH, &value, sizeof value), x), w);
}

START_TEST(same_bits_with_any_number_of_threads)
{
    begin(WF_GRADIENTS);
    ck_ok(wf_set_threads(1, error));
    uint64_t one = bits();
    for (int threads = 2; threads <= 5; threads += 3) {
        ck_ok(wf_set_threads(threads, error));
        ck_assert_msg(bits() == one, "%d threads give other bits", threads);
    }
}
END_TEST

START_TEST(mistakes_are_named)
{
#define REFUSED(call, code, words)                                                                                                         \
    do {                                                                                                                                   \
        begin(WF_GRADIENTS);                                                                                                               \
        wf_tensor *x = wf_name(given(NUMBERS(0, -2, 1, 1, 0, 1), WF_SHAPE(2, 3)), "x"), *y = wf_name(normal(2, WF_SHAPE(3)), "y"),         \
                  *w = wf_name(given(NUMBERS(1, 0, 2, 1), WF_SHAPE(4)), "w"),                                                              \
                  *minus = wf_name(given(NUMBERS(1, 1, -1), WF_SHAPE(3)), "bad"), *half = wf_name(wf_affine(x, 0, 0.5), "half"),           \
                  *ids = wf_ids_of(tape, I32(0, 2), WF_SHAPE(2));                                                                          \
        (void)y, (void)w, (void)minus, (void)half, (void)ids;                                                                              \
        expect_error(call, code, words);                                                                                                   \
    } while (0)
    REFUSED(wf_mse(x, y, WF_REDUCE_MEAN), WF_ERR_SHAPE, "mse(x [2,3], y [3]): the first two operands must have the same shape");
    REFUSED(wf_bce_with_logits(x, x), WF_ERR_ARGUMENT, "bce_with_logits(x [2,3], x [2,3], none): targets[0,1] = -2 is not in 0 .. 1");
    REFUSED(wf_bce_with_logits(half, half, .positive_weight = w), WF_ERR_SHAPE,
            "bce_with_logits(half [2,3], half [2,3], w [4]): the positive weight does not broadcast");
    REFUSED(wf_kl_div(x, NULL), WF_ERR_ARGUMENT, "kl_div(x [2,3], none): operand 2 is NULL: target is required");
    REFUSED(wf_mse(x, x, (enum wf_reduction)9), WF_ERR_ARGUMENT, "mse(x [2,3], x [2,3]): the reduction 9 is unknown");
    REFUSED(wf_kl_normal(wf_sum(x), wf_sum(x), WF_REDUCE_BATCH_MEAN), WF_ERR_SHAPE, "the mean over a batch takes at least one dimension");
    REFUSED(wf_cross_entropy(x, ids, .class_weights = w), WF_ERR_SHAPE,
            "cross_entropy(x [2,3], ids [2]): there are 4 class weights for 3 classes");
    REFUSED(wf_cross_entropy(x, ids, .class_weights = x), WF_ERR_SHAPE, "cross_entropy: the class weights 'x' must be a vector of reals");
    REFUSED(wf_cross_entropy(x, ids, .class_weights = minus), WF_ERR_ARGUMENT,
            "cross_entropy: the class weights 'bad' have -1 at [2]: a weight is finite and not negative");
    REFUSED(wf_cross_entropy(x, ids, .normalizer = 7, .reduction = WF_REDUCE_SUM), WF_ERR_ARGUMENT,
            "cross_entropy(x [2,3], ids [2]): normalizer = 7 is of the mean");
    REFUSED(wf_cross_entropy(x, ids, .reduction = WF_REDUCE_BATCH_MEAN), WF_ERR_ARGUMENT,
            "cross_entropy(x [2,3], ids [2]): reduction 3: cross-entropy has a mean");
    REFUSED(wf_linear_cross_entropy(x, x, NULL, ids, .reduction = WF_REDUCE_NONE), WF_ERR_ARGUMENT,
            "linear_cross_entropy(x [2,3], x [2,3], none, ids [2]): targets[1] = 2 is not in 0 .. 1");
    REFUSED(wf_linear_cross_entropy(x, x, NULL, wf_ids_of(tape, I32(0, 1), WF_SHAPE(2)), .class_weights = w), WF_ERR_SHAPE,
            "linear_cross_entropy(x [2,3], x [2,3], none, ids [2]): there are 4 class weights for 2 classes");
}
END_TEST

WF_TEST_MAIN("losses_by_row", terms_with_probability_zero_are_zero, rows_weighted_by_advantages, views_are_operands_too,
             sums_over_many_blocks, same_bits_with_any_number_of_threads, mistakes_are_named)
