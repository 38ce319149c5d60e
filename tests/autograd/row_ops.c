/* SPDX-License-Identifier: MIT */
/* Ops over a dimension: long recurrences, the same bits with any number of threads and alone, mistakes. */
#include "ops_tools.h"

START_TEST(sums_of_many_are_carried_in_double)
{
    enum { N = 200000 };
    begin(WF_GRADIENTS);
    wf_real *x = malloc(N * sizeof *x);
    wf_fill_uniform(x, N, 0, 1, 3, 1);
    wf_tensor *in = given(x, WF_SHAPE(N)), *y = wf_keep(wf_cumsum(in, 0)), *down = wf_cumsum(wf_expand(wf_reshape(in, N, 1), N, 3), 0);
    wf_real *sum = value_of(y), *columns = value_of(down);
    double total = 0;
    for (int i = 0; i < N; i++) {
        total += (double)x[i];
        ck_assert_double_le(fabs((double)sum[i] - total), loose * total);
        ck_assert(columns[3 * i] == sum[i] && columns[3 * i + 2] == sum[i]);
    }
    ran(wf_backward(y)); /* of ones: N, N - 1, ... */
    wf_real *g = gradient_of(in);
    ck_assert(g[0] == N && g[N - 1] == 1 && g[N / 4] == N - N / 4);
    free(g);
    free(sum);
    free(columns);
    free(x);
}
END_TEST

/* The definition, along each dimension, with views as operands. */
START_TEST(a_recurrence_along_each_dimension)
{
    enum { A = 3, B = 6, C = 35 };
    begin(WF_GRADIENTS);
    wf_tensor *a = wf_tanh(normal(1, WF_SHAPE(A, B, C))), *b = normal(2, WF_SHAPE(A, B, C));
    wf_real *x = value_of(a), *y = value_of(b), expected[A * B * C];
    const int stride[] = {B * C, C, 1}, size[] = {A, B, C};
    for (int dim = 0; dim < 3; dim++) {
        for (int i = 0; i < A * B * C; i++)
            expected[i] = y[i] + (i / stride[dim] % size[dim] > 0 ? x[i] * expected[i - stride[dim]] : 0);
        expect("scan", wf_scan(a, b, NULL, dim), expected, WF_SHAPE(A, B, C));
        wf_tensor *turned = wf_scan(wf_transpose(a, 0, 2), wf_transpose(b, 0, 2), NULL, 2 - dim);
        expect("scan of transposes", wf_contiguous(wf_transpose(turned, 0, 2)), expected, WF_SHAPE(A, B, C));
        /* In two parts: the state goes on. */
        wf_tensor *first = wf_scan(wf_slice(a, dim, 0, 2), wf_slice(b, dim, 0, 2), NULL, dim), *last = wf_slice(first, dim, 1, 1);
        wf_shape state = wf_shape_of(last);
        for (int d = dim; d < 2; d++)
            state.dim[d] = state.dim[d + 1];
        state.ndim = 2;
        wf_tensor *second =
            wf_scan(wf_slice(a, dim, 2, size[dim] - 2), wf_slice(b, dim, 2, size[dim] - 2), wf_reshape_to(last, &state), dim);
        expect("scan in two parts", wf_concat((wf_tensor *[]){first, second}, 2, dim), expected, WF_SHAPE(A, B, C));
    }
    free(x);
    free(y);
}
END_TEST

static uint64_t bits(const wf_shape *shape, int dim)
{
    begin(WF_GRADIENTS);
    wf_tensor *x = normal(1, shape), *b = normal(2, shape);
    wf_tensor *y[] = {wf_logsumexp(x, dim, true), wf_log_softmax(x, dim), wf_cumsum(x, dim), wf_scan(wf_tanh(x), b, NULL, dim),
                      wf_l2_normalize(x, 1e-12)};
    uint64_t hash = HASH;
    wf_tensor *loss = NULL;
    for (int k = 0; k < 5; k++) {
        hash = hash_of_value(hash, y[k]);
        wf_tensor *part = wf_sum(wf_mul(y[k], y[k]));
        loss = loss ? wf_add(loss, part) : part;
    }
    ran(wf_backward(loss));
    return hash_of_gradient(hash_of_gradient(hash, x), b);
}

START_TEST(same_bits_with_any_number_of_threads)
{
    begin(WF_GRADIENTS);
    const wf_shape shapes[] = {{2, {300, 130}}, {3, {7, 90, 150}}, {2, {1001, 37}}};
    for (int k = 0; k < 3; k++)
        for (int dim = 0; dim < shapes[k].ndim; dim++) {
            ck_ok(wf_set_threads(1, error));
            uint64_t one = bits(&shapes[k], dim);
            for (int threads = 2; threads <= 5; threads += 3) {
                ck_ok(wf_set_threads(threads, error));
                ck_assert_msg(bits(&shapes[k], dim) == one, "%d threads, shape %d, dimension %d", threads, k, dim);
            }
        }
}
END_TEST

static wf_tensor *decaying(wf_tensor *x, int dim)
{
    return wf_scan(wf_tanh(x), x, NULL, dim);
}

START_TEST(a_row_alone_has_the_same_bits)
{
    enum { ROWS = 13, D = 70 };
    begin(WF_INFER);
    wf_tensor *x = normal(1, WF_SHAPE(ROWS, D));
    wf_tensor *(*const all[])(wf_tensor *, int) = {wf_log_softmax, wf_cumsum, decaying};
    for (int k = 0; k < 3; k++)
        for (int turned = 0; turned < 2; turned++) {
            wf_tensor *in = turned ? wf_transpose(x, 0, 1) : x;
            wf_real *batch = value_of(turned ? wf_transpose(all[k](in, 0), 0, 1) : all[k](in, 1));
            for (int i = 0; i < ROWS; i++) {
                wf_real *own = value_of(all[k](wf_slice(in, turned, i, 1), 1 - turned));
                ck_assert_msg(memcmp(own, batch + i * D, D * sizeof *own) == 0, "op %d, row %d", k, i);
                free(own);
            }
            free(batch);
        }
}
END_TEST

START_TEST(mistakes_are_named)
{
#define REFUSED(call, code, words)                                                                                                         \
    do {                                                                                                                                   \
        begin(WF_GRADIENTS);                                                                                                               \
        wf_tensor *x = wf_name(normal(1, WF_SHAPE(2, 3)), "x"), *y = wf_name(normal(2, WF_SHAPE(3)), "y");                                 \
        (void)x, (void)y;                                                                                                                  \
        expect_error(call, code, words);                                                                                                   \
    } while (0)
    REFUSED(wf_logsumexp(x, 2, false), WF_ERR_SHAPE, "logsumexp(x [2,3]): dimension 2 does not exist");
    REFUSED(wf_log_softmax(x, -3), WF_ERR_SHAPE, "log_softmax(x [2,3]): dimension -3 does not exist");
    REFUSED(wf_cumsum(wf_sum(x), 0), WF_ERR_SHAPE, "cumsum(sum []): dimension 0 does not exist: the operand is a scalar");
    REFUSED(wf_scan(x, y, NULL, 0), WF_ERR_SHAPE, "scan(x [2,3], y [3], none): a and b must have the same shape");
    REFUSED(wf_scan(x, x, y, 1), WF_ERR_SHAPE, "scan(x [2,3], x [2,3], y [3]): the initial state must be [2]");
    REFUSED(wf_l2_normalize(x, -1), WF_ERR_ARGUMENT, "l2_normalize(x [2,3]): eps = -1");
    REFUSED(wf_cosine_similarity(wf_sum(x), x, 1e-8), WF_ERR_SHAPE, "l2_normalize(sum []): the operand is a scalar");
    REFUSED(wf_scan(x, NULL, NULL, 0), WF_ERR_ARGUMENT, "scan(x [2,3], none, none): operand 2 is NULL");
}
END_TEST

WF_TEST_MAIN("row_ops", sums_of_many_are_carried_in_double, a_recurrence_along_each_dimension, same_bits_with_any_number_of_threads,
             a_row_alone_has_the_same_bits, mistakes_are_named)
