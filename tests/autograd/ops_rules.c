/* SPDX-License-Identifier: MIT */
/* Rules that all ops keep: errors name the op, its operands and their shapes; bits depend neither on the number of threads
 * nor, without gradients, on the rows beside a row. */
#include "ops_tools.h"

START_TEST(errors_name_op_operands_and_shapes)
{
    wf_tape *t = tape_in(WF_GRADIENTS);
    const struct {
        wf_status code;
        const char *words;
    } expected[] = {
        {WF_ERR_SHAPE, "add(left [2,3], input [4]): the shapes do not broadcast"},
        {WF_ERR_SHAPE, "matmul(left [2,3], input [4]): both operands need at least two dimensions"},
        {WF_ERR_SHAPE, "matmul(left [2,3], left [2,3]): the first operand has 3 columns, but the second has 2 rows"},
        {WF_ERR_SHAPE, "linear(left [2,3], input [5,4]): the weight [out,in] expects rows of 4, and x [...,in] has rows of 3"},
        {WF_ERR_SHAPE, "linear(left [2,3], left [2,3], input [4]): the bias must be [2]"},
        {WF_ERR_ARGUMENT, "embedding(left [2,3], ids [2,2]): ids[1,0] = 2 is not in 0 .. 1"},
        {WF_ERR_ARGUMENT, "embedding(left [2,3], input [4]): operand 2 has dtype"},
        {WF_ERR_ARGUMENT, "mul(left [2,3], ids [2,2]): operand 2 has dtype I32"},
        {WF_ERR_SHAPE, "layer_norm(left [2,3], input [4], none): the gain must be [3]"},
        {WF_ERR_ARGUMENT, "rms_norm(left [2,3], none): eps = -1"},
        {WF_ERR_SHAPE, "sum_dim(left [2,3]): dimension 2 does not exist: the operand has 2, which count from 0 or from -2"},
        {WF_ERR_SHAPE, "concat(left [2,3], input [4]): the shapes of the parts may differ in dimension 0 only"},
        {WF_ERR_SHAPE, "reshape(left [2,3]): 6 elements cannot be reshaped to [4,-1]"},
        {WF_ERR_SHAPE, "reshape(left [2,3]): [-1,-1] has more than one -1"},
        {WF_ERR_SHAPE, "transpose(left [2,3]): dimensions 0 and 2 do not both exist"},
        {WF_ERR_SHAPE, "slice(left [2,3]): length 2 from start 2 is outside dimension 1, which has size 3"},
        {WF_ERR_SHAPE, "slice(left [2,3]): dimension -3 does not exist"},
        {WF_ERR_SHAPE, "split(left [2,3]): dimension 1 of size 3 cannot be divided into 2 equal parts"},
        {WF_ERR_SHAPE, "softmax(sum []): the operand is a scalar; at least one dimension is required"},
    };
    for (int i = 0; i < (int)(sizeof expected / sizeof *expected); i++) {
        wf_tape_reset(t, WF_GRADIENTS);
        wf_tensor *a = wf_name(normal(t, 1, WF_SHAPE(2, 3)), "left"), *b = normal(t, 2, WF_SHAPE(4)), *w = normal(t, 3, WF_SHAPE(5, 4)),
                  *ids = wf_ids(t, (int32_t[]){0, 1, 2, -1}, 2, 2), *y = NULL, *part[2];
        wf_split(a, 0, 2, part);
        switch (i) {
        case 0:
            y = wf_add(a, b);
            break;
        case 1:
            y = wf_matmul(a, b);
            break;
        case 2:
            y = wf_matmul(a, a);
            break;
        case 3:
            y = wf_linear(a, w, NULL);
            break;
        case 4:
            y = wf_linear(a, a, b);
            break;
        case 5:
            y = wf_embedding(a, ids);
            break;
        case 6:
            y = wf_embedding(a, b);
            break;
        case 7:
            y = wf_mul(a, ids);
            break;
        case 8:
            y = wf_layer_norm(a, b, NULL, 1e-5);
            break;
        case 9:
            y = wf_rms_norm(a, NULL, -1);
            break;
        case 10:
            y = wf_sum_dim(a, 2, false);
            break;
        case 11:
            y = wf_concat((wf_tensor *[]){a, b}, 2, 0);
            break;
        case 12:
            y = wf_reshape(a, 4, -1);
            break;
        case 13:
            y = wf_reshape(a, -1, -1);
            break;
        case 14:
            y = wf_transpose(a, 0, 2);
            break;
        case 15:
            y = wf_slice(a, 1, 2, 2);
            break;
        case 16:
            y = wf_slice(a, -3, 0, 1);
            break;
        case 17:
            wf_split(a, 1, 2, part);
            y = part[1];
            break;
        case 18:
            y = wf_softmax(wf_sum(a));
            break;
        }
        expect_error(y, expected[i].code, expected[i].words);
        ck_assert_ptr_eq(wf_gelu(wf_linear(wf_reshape(y, 1, -1), w, NULL)), y); /* poison stays what it is */
        ck_assert(wf_backward(y) != WF_OK);
    }
    wf_tape_free(t);
}
END_TEST

START_TEST(operands_that_are_missing)
{
    wf_tape *t = tape_in(WF_GRADIENTS);
    expect_error(wf_add(normal(t, 1, WF_SHAPE(2)), NULL), WF_ERR_ARGUMENT, "add(input [2], none): operand 2 is NULL");
    wf_tape_free(t);
}
END_TEST

/* A pass through everything; the bits of the loss and of all gradients. */
static uint64_t bits_of_a_pass(wf_tape *t)
{
    enum { B = 7, T = 100, D = 96, V = 300 };
    wf_tape_reset(t, WF_TRAIN, .seed = 3, .step = 9, .exact = true);
    int32_t id[B * T];
    for (int i = 0; i < B * T; i++)
        id[i] = (i * 37 + i / 5) % V;
    wf_tensor *w = normal(t, 1, WF_SHAPE(V, D)), *w1 = normal(t, 2, WF_SHAPE(2 * D, D)), *b1 = normal(t, 3, WF_SHAPE(2 * D)),
              *w2 = normal(t, 4, WF_SHAPE(D, 2 * D)), *gain = normal(t, 5, WF_SHAPE(D)), *bias = normal(t, 6, WF_SHAPE(D)),
              *ids = wf_ids(t, id, B, T);
    wf_tensor *x = wf_add(wf_embedding(w, ids), wf_slice(wf_embedding(w, ids), 1, 0, 1));
    wf_tensor *h = wf_layer_norm(x, gain, bias, 1e-5);
    h = wf_linear(wf_gelu(wf_linear(h, w1, b1)), w2, NULL);
    x = wf_add(x, wf_dropout(h, 0.1));
    wf_tensor *a = wf_softmax(wf_matmul(x, wf_transpose(x, 1, 2)));
    x = wf_rms_norm(wf_matmul(a, x), gain, 1e-5);
    x = wf_concat((wf_tensor *[]){x, wf_mul(x, wf_mean_dim(x, 1, true))}, 2, 1);
    wf_tensor *two = wf_concat((wf_tensor *[]){wf_slice(x, 1, 0, T), wf_slice(x, 1, T, T)}, 2, 0);
    wf_tensor *ids2 = wf_ids_of(t, id, WF_SHAPE(B, T));
    wf_tensor *loss = wf_add(wf_linear_cross_entropy(wf_slice(two, 0, 0, B), w, NULL, ids2, .label_smoothing = 0.1),
                             wf_cross_entropy(wf_linear(wf_slice(two, 0, B, B), w, NULL), ids2));
    loss = wf_add(loss, wf_mean(wf_div(x, wf_affine(wf_exp(x), 1, 1))));
    ck_assert_msg(wf_backward(loss) == WF_OK, "%s", wf_tape_error(t)->message);
    wf_tensor *leaf[] = {w, w1, b1, w2, gain, bias};
    double value = number(loss);
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof value; i++)
        hash = (hash ^ ((unsigned char *)&value)[i]) * 1099511628211u;
    for (int k = 0; k < 6; k++) {
        wf_real *g = gradient_of(leaf[k]);
        for (size_t i = 0; i < (size_t)count_of(leaf[k]) * sizeof *g; i++)
            hash = (hash ^ ((unsigned char *)g)[i]) * 1099511628211u;
        free(g);
    }
    return hash;
}

START_TEST(same_bits_with_any_number_of_threads)
{
    wf_tape *t = tape_in(WF_TRAIN);
    ck_ok(wf_set_threads(1, error));
    uint64_t one = bits_of_a_pass(t);
    for (int threads = 2; threads <= 4; threads++) {
        ck_ok(wf_set_threads(threads, error));
        ck_assert_msg(bits_of_a_pass(t) == one, "%d threads give other bits", threads);
    }
    wf_tape_free(t);
}
END_TEST

/* Row-wise parts of a model on `rows` of the same numbers. */
static wf_real *through_rows(wf_tape *t, int64_t first, int64_t rows)
{
    enum { D = 48 };
    wf_tape_reset(t, WF_INFER);
    wf_tensor *x = wf_slice(normal(t, 1, WF_SHAPE(130, D)), 0, first, rows);
    wf_tensor *w = normal(t, 2, WF_SHAPE(3 * D, D)), *b = normal(t, 3, WF_SHAPE(3 * D)), *w2 = normal(t, 4, WF_SHAPE(3 * D, D)),
              *gain = normal(t, 5, WF_SHAPE(D));
    wf_tensor *y = wf_layer_norm(x, gain, gain, 1e-5);
    y = wf_matmul(wf_silu(wf_linear(y, w, b)), w2);
    y = wf_rms_norm(wf_add(x, wf_mul(y, wf_sum_dim(y, -1, true))), gain, 1e-5);
    return value_of(wf_softmax(wf_gelu(y)));
}

START_TEST(a_row_alone_has_the_same_bits)
{
    wf_tape *t = tape_in(WF_INFER);
    wf_real *all = through_rows(t, 0, 130);
    static const int64_t range[][2] = {{0, 1}, {77, 1}, {129, 1}, {3, 2}, {64, 5}, {1, 31}, {10, 64}, {1, 129}};
    for (size_t i = 0; i < sizeof range / sizeof *range; i++) {
        wf_real *some = through_rows(t, range[i][0], range[i][1]);
        ck_assert_msg(memcmp(some, all + range[i][0] * 48, (size_t)range[i][1] * 48 * sizeof *some) == 0,
                      "rows %lld + %lld differ from those in the batch", (long long)range[i][0], (long long)range[i][1]);
        free(some);
    }
    free(all);
    wf_tape_free(t);
}
END_TEST

START_TEST(an_empty_batch_passes)
{
    wf_tape *t = tape_in(WF_TRAIN);
    wf_tensor *w = normal(t, 1, WF_SHAPE(5, 4)), *ids = wf_ids(t, (int32_t[]){0}, 0, 3);
    wf_tensor *x = wf_dropout(wf_layer_norm(wf_embedding(w, ids), NULL, NULL, 1e-5), 0.5);
    x = wf_softmax(wf_matmul(wf_gelu(wf_linear(x, w, NULL)), w));
    wf_tensor *loss = wf_add(wf_cross_entropy(wf_linear(x, w, NULL), ids), wf_linear_cross_entropy(x, w, NULL, ids));
    ck_assert_msg(wf_backward(wf_add(loss, wf_mean(x))) == WF_OK, "%s", wf_tape_error(t)->message);
    wf_real *g = gradient_of(w);
    for (int i = 0; i < 20; i++)
        ck_assert(g[i] == 0);
    free(g);
    wf_tape_free(t);
}
END_TEST

WF_TEST_MAIN("ops_rules", errors_name_op_operands_and_shapes, operands_that_are_missing, same_bits_with_any_number_of_threads,
             a_row_alone_has_the_same_bits, an_empty_batch_passes)
