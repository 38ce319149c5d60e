/* SPDX-License-Identifier: MIT */
/* Rules that all ops keep: errors name the op, its operands and their shapes; bits depend neither on the number of threads
 * nor, without gradients, on the rows beside a row. */
#include "ops_tools.h"

START_TEST(errors_name_op_operands_and_shapes)
{
#define REFUSED(call, code, words)                                                                                                         \
    do {                                                                                                                                   \
        begin(WF_GRADIENTS);                                                                                                               \
        wf_tensor *a = wf_name(normal(1, WF_SHAPE(2, 3)), "left"), *b = normal(2, WF_SHAPE(4)), *w = normal(3, WF_SHAPE(5, 4)),            \
                  *ids = wf_ids(tape, I32(0, 1, 2, -1), 2, 2), *part[2];                                                                   \
        (void)a, (void)b, (void)w, (void)ids, (void)part;                                                                                  \
        wf_tensor *y = call;                                                                                                               \
        expect_error(y, code, words);                                                                                                      \
        ck_assert_ptr_eq(wf_gelu(wf_linear(wf_reshape(y, 1, -1), w, NULL)), y); /* poison stays what it is */                              \
        ck_assert(wf_backward(y) != WF_OK);                                                                                                \
    } while (0)
    REFUSED(wf_add(a, b), WF_ERR_SHAPE, "add(left [2,3], input [4]): the shapes do not broadcast");
    REFUSED(wf_matmul(a, b), WF_ERR_SHAPE, "matmul(left [2,3], input [4]): both operands need at least two dimensions");
    REFUSED(wf_matmul(a, a), WF_ERR_SHAPE, "matmul(left [2,3], left [2,3]): the first operand has 3 columns, but the second has 2 rows");
    REFUSED(wf_linear(a, w, NULL), WF_ERR_SHAPE,
            "linear(left [2,3], input [5,4]): the weight [out,in] expects rows of 4, and x [...,in] has rows of 3");
    REFUSED(wf_linear(a, a, b), WF_ERR_SHAPE, "linear(left [2,3], left [2,3], input [4]): the bias must be [2]");
    REFUSED(wf_embedding(a, ids), WF_ERR_ARGUMENT, "embedding(left [2,3], ids [2,2]): ids[1,0] = 2 is not in 0 .. 1");
    REFUSED(wf_embedding(a, b), WF_ERR_ARGUMENT, "embedding(left [2,3], input [4]): operand 2 has dtype");
    REFUSED(wf_mul(a, ids), WF_ERR_ARGUMENT, "mul(left [2,3], ids [2,2]): operand 2 has dtype I32");
    REFUSED(wf_layer_norm(a, b, NULL, 1e-5), WF_ERR_SHAPE, "layer_norm(left [2,3], input [4], none): the weight must be [3]");
    REFUSED(wf_group_norm(a, 2, NULL, NULL, 1e-5), WF_ERR_ARGUMENT,
            "group_norm(left [2,3], none, none): 2 groups do not divide 3 channels");
    REFUSED(wf_group_norm(a, 0, NULL, NULL, 1e-5), WF_ERR_ARGUMENT,
            "group_norm(left [2,3], none, none): 0 groups do not divide 3 channels");
    REFUSED(wf_group_norm(a, 3, b, NULL, 1e-5), WF_ERR_SHAPE, "group_norm(left [2,3], input [4], none): the weight must be [3]");
    REFUSED(wf_group_norm(a, 3, NULL, NULL, -1), WF_ERR_ARGUMENT, "group_norm(left [2,3], none, none): eps = -1");
    REFUSED(wf_group_norm(b, 2, NULL, NULL, 1e-5), WF_ERR_SHAPE, "group_norm(input [4], none, none): x must be [N,C]");
    REFUSED(wf_rms_norm(a, NULL, -1), WF_ERR_ARGUMENT, "rms_norm(left [2,3], none): eps = -1");
    REFUSED(wf_sum_dim(a, 2, false), WF_ERR_SHAPE,
            "sum_dim(left [2,3]): dimension 2 does not exist: the operand has 2, which count from 0 or from -2");
    REFUSED(wf_concat((wf_tensor *[]){a, b}, 2, 0), WF_ERR_SHAPE,
            "concat(left [2,3], input [4]): the shapes of the parts may differ in dimension 0 only");
    REFUSED(wf_reshape(a, 4, -1), WF_ERR_SHAPE, "reshape(left [2,3]): 6 elements cannot be reshaped to [4,-1]");
    REFUSED(wf_reshape(a, -1, -1), WF_ERR_SHAPE, "reshape(left [2,3]): [-1,-1] has more than one -1");
    REFUSED(wf_transpose(a, 0, 2), WF_ERR_SHAPE, "transpose(left [2,3]): dimensions 0 and 2 do not both exist");
    REFUSED(wf_slice(a, 1, 2, 2), WF_ERR_SHAPE, "slice(left [2,3]): length 2 from start 2 is outside dimension 1, which has size 3");
    REFUSED(wf_slice(a, -3, 0, 1), WF_ERR_SHAPE, "slice(left [2,3]): dimension -3 does not exist");
    REFUSED((wf_split(a, 1, 2, part), part[1]), WF_ERR_SHAPE,
            "split(left [2,3]): dimension 1 of size 3 cannot be divided into 2 equal parts");
    REFUSED(wf_softmax(wf_sum(a)), WF_ERR_SHAPE, "softmax(sum []): the operand is a scalar; at least one dimension is required");
}
END_TEST

START_TEST(operands_that_are_missing)
{
    begin(WF_GRADIENTS);
    expect_error(wf_add(normal(1, WF_SHAPE(2)), NULL), WF_ERR_ARGUMENT, "add(input [2], none): operand 2 is NULL");
}
END_TEST

/* A pass through everything; the bits of the loss and of all gradients. */
static uint64_t bits_of_a_pass(void)
{
    enum { B = 7, T = 100, D = 96, V = 300 };
    wf_tape_reset(tape, WF_TRAIN, .seed = 3, .step = 9, .exact = true);
    int32_t id[B * T];
    for (int i = 0; i < B * T; i++)
        id[i] = (i * 37 + i / 5) % V;
    wf_tensor *w = normal(1, WF_SHAPE(V, D)), *w1 = normal(2, WF_SHAPE(2 * D, D)), *b1 = normal(3, WF_SHAPE(2 * D)),
              *w2 = normal(4, WF_SHAPE(D, 2 * D)), *gain = normal(5, WF_SHAPE(D)), *bias = normal(6, WF_SHAPE(D)),
              *ids = wf_ids(tape, id, B, T);
    wf_tensor *x = wf_add(wf_embedding(w, ids), wf_slice(wf_embedding(w, ids), 1, 0, 1));
    wf_tensor *h = wf_layer_norm(x, gain, bias, 1e-5);
    h = wf_linear(wf_gelu(wf_linear(h, w1, b1)), w2, NULL);
    x = wf_add(x, wf_dropout(h, 0.1));
    wf_tensor *a = wf_softmax(wf_matmul(x, wf_transpose(x, 1, 2)));
    x = wf_rms_norm(wf_matmul(a, x), gain, 1e-5);
    x = wf_concat((wf_tensor *[]){x, wf_mul(x, wf_mean_dim(x, 1, true))}, 2, 1);
    wf_tensor *two = wf_concat((wf_tensor *[]){wf_slice(x, 1, 0, T), wf_slice(x, 1, T, T)}, 2, 0);
    wf_tensor *ids2 = wf_ids_of(tape, id, WF_SHAPE(B, T));
    wf_tensor *loss = wf_add(wf_linear_cross_entropy(wf_slice(two, 0, 0, B), w, NULL, ids2, .label_smoothing = 0.1),
                             wf_cross_entropy(wf_linear(wf_slice(two, 0, B, B), w, NULL), ids2));
    loss = wf_add(loss, wf_mean(wf_div(x, wf_affine(wf_exp(x), 1, 1))));
    ran(wf_backward(loss));
    wf_tensor *leaf[] = {w, w1, b1, w2, gain, bias};
    double value = number(loss);
    uint64_t hash = hash_of(HASH, &value, sizeof value);
    for (int k = 0; k < 6; k++)
        hash = hash_of_gradient(hash, leaf[k]);
    return hash;
}

START_TEST(same_bits_with_any_number_of_threads)
{
    begin(WF_TRAIN);
    ck_ok(wf_set_threads(1, error));
    uint64_t one = bits_of_a_pass();
    for (int threads = 2; threads <= 4; threads++) {
        ck_ok(wf_set_threads(threads, error));
        ck_assert_msg(bits_of_a_pass() == one, "%d threads give other bits", threads);
    }
}
END_TEST

/* Row-wise parts of a model on `rows` of the same numbers. */
static wf_real *through_rows(int64_t first, int64_t rows)
{
    enum { D = 48 };
    begin(WF_INFER);
    wf_tensor *x = wf_slice(normal(1, WF_SHAPE(130, D)), 0, first, rows);
    wf_tensor *w = normal(2, WF_SHAPE(3 * D, D)), *b = normal(3, WF_SHAPE(3 * D)), *w2 = normal(4, WF_SHAPE(3 * D, D)),
              *gain = normal(5, WF_SHAPE(D));
    wf_tensor *y = wf_layer_norm(x, gain, gain, 1e-5);
    y = wf_matmul(wf_silu(wf_linear(y, w, b)), w2);
    y = wf_rms_norm(wf_add(x, wf_mul(y, wf_sum_dim(y, -1, true))), gain, 1e-5);
    return value_of(wf_softmax(wf_gelu(y)));
}

START_TEST(a_row_alone_has_the_same_bits)
{
    begin(WF_INFER);
    wf_real *all = through_rows(0, 130);
    static const int64_t range[][2] = {{0, 1}, {77, 1}, {129, 1}, {3, 2}, {64, 5}, {1, 31}, {10, 64}, {1, 129}};
    for (size_t i = 0; i < sizeof range / sizeof *range; i++) {
        wf_real *some = through_rows(range[i][0], range[i][1]);
        ck_assert_msg(memcmp(some, all + range[i][0] * 48, (size_t)range[i][1] * 48 * sizeof *some) == 0,
                      "rows %lld + %lld differ from those in the batch", (long long)range[i][0], (long long)range[i][1]);
        free(some);
    }
    free(all);
}
END_TEST

START_TEST(an_empty_batch_passes)
{
    begin(WF_TRAIN);
    wf_tensor *w = normal(1, WF_SHAPE(5, 4)), *ids = wf_ids(tape, I32(0), 0, 3);
    wf_tensor *x = wf_dropout(wf_layer_norm(wf_embedding(w, ids), NULL, NULL, 1e-5), 0.5);
    x = wf_softmax(wf_matmul(wf_gelu(wf_linear(x, w, NULL)), w));
    wf_tensor *loss = wf_add(wf_cross_entropy(wf_linear(x, w, NULL), ids), wf_linear_cross_entropy(x, w, NULL, ids));
    ran(wf_backward(wf_add(loss, wf_mean(x))));
    expect_gradient("gradient", w, (wf_real[20]){0});
}
END_TEST

WF_TEST_MAIN("ops_rules", errors_name_op_operands_and_shapes, operands_that_are_missing, same_bits_with_any_number_of_threads,
             a_row_alone_has_the_same_bits, an_empty_batch_passes)
