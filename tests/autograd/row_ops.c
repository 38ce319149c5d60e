/* SPDX-License-Identifier: MIT */
/* Ops over a dimension: long recurrences, the same bits with any number of threads and alone, mistakes. */
#include "ops_tools.h"

START_TEST(sums_of_many_are_carried_in_double)
{
    enum { N = 200000 };
    wf_tape *t = tape_in(WF_GRADIENTS);
    wf_real *x = malloc(N * sizeof *x);
    wf_fill_uniform(x, N, 0, 1, 3, 1);
    wf_tensor *in = given(t, x, WF_SHAPE(N)), *y = wf_keep(wf_cumsum(in, 0)), *down = wf_cumsum(wf_expand(wf_reshape(in, N, 1), N, 3), 0);
    wf_real *sum = value_of(y), *columns = value_of(down);
    double total = 0;
    for (int i = 0; i < N; i++) {
        total += (double)x[i];
        ck_assert_double_le(fabs((double)sum[i] - total), loose * total);
        ck_assert(columns[3 * i] == sum[i] && columns[3 * i + 2] == sum[i]);
    }
    ck_assert_int_eq(wf_backward(y), WF_OK); /* of ones: N, N - 1, ... */
    wf_real *g = gradient_of(in);
    ck_assert(g[0] == N && g[N - 1] == 1 && g[N / 4] == N - N / 4);
    free(g);
    free(sum);
    free(columns);
    free(x);
    wf_tape_free(t);
}
END_TEST

/* The definition, along each dimension, with views as operands. */
START_TEST(a_recurrence_along_each_dimension)
{
    enum { A = 3, B = 6, C = 35 };
    wf_tape *t = tape_in(WF_GRADIENTS);
    wf_tensor *a = wf_tanh(normal(t, 1, WF_SHAPE(A, B, C))), *b = normal(t, 2, WF_SHAPE(A, B, C));
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
    wf_tape_free(t);
}
END_TEST

static uint64_t hash_of(uint64_t hash, const wf_real *x, int64_t n)
{
    for (size_t i = 0; i < (size_t)n * sizeof *x; i++)
        hash = (hash ^ ((const unsigned char *)x)[i]) * 1099511628211u;
    return hash;
}

static uint64_t bits(wf_tape *t, const wf_shape *shape, int dim)
{
    wf_tape_reset(t, WF_GRADIENTS);
    wf_tensor *x = normal(t, 1, shape), *b = normal(t, 2, shape);
    wf_tensor *y[] = {wf_logsumexp(x, dim, true), wf_log_softmax(x, dim), wf_cumsum(x, dim), wf_scan(wf_tanh(x), b, NULL, dim),
                      wf_l2_normalize(x, 1e-12)};
    uint64_t hash = 14695981039346656037u;
    wf_tensor *loss = NULL;
    for (int k = 0; k < 5; k++) {
        wf_real *v = value_of(y[k]);
        hash = hash_of(hash, v, count_of(y[k]));
        free(v);
        wf_tensor *part = wf_sum(wf_mul(y[k], y[k]));
        loss = loss ? wf_add(loss, part) : part;
    }
    ck_assert_msg(wf_backward(loss) == WF_OK, "%s", trouble(loss));
    wf_real *g = gradient_of(x), *h = gradient_of(b);
    hash = hash_of(hash_of(hash, g, count_of(x)), h, count_of(b));
    free(g);
    free(h);
    return hash;
}

START_TEST(same_bits_with_any_number_of_threads)
{
    wf_tape *t = tape_in(WF_GRADIENTS);
    const wf_shape shapes[] = {{2, {300, 130}}, {3, {7, 90, 150}}, {2, {1001, 37}}};
    for (int k = 0; k < 3; k++)
        for (int dim = 0; dim < shapes[k].ndim; dim++) {
            ck_ok(wf_set_threads(1, error));
            uint64_t one = bits(t, &shapes[k], dim);
            for (int threads = 2; threads <= 5; threads += 3) {
                ck_ok(wf_set_threads(threads, error));
                ck_assert_msg(bits(t, &shapes[k], dim) == one, "%d threads, shape %d, dimension %d", threads, k, dim);
            }
        }
    wf_tape_free(t);
}
END_TEST

static wf_tensor *decaying(wf_tensor *x, int dim)
{
    return wf_scan(wf_tanh(x), x, NULL, dim);
}

START_TEST(a_row_alone_has_the_same_bits)
{
    enum { ROWS = 13, D = 70 };
    wf_tape *t = tape_in(WF_INFER);
    wf_tensor *x = normal(t, 1, WF_SHAPE(ROWS, D));
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
    wf_tape_free(t);
}
END_TEST

START_TEST(mistakes_are_named)
{
    wf_tape *t = tape_in(WF_GRADIENTS);
    static const char *const words[] = {"logsumexp(x [2,3]): dimension 2 does not exist",
                                        "log_softmax(x [2,3]): dimension -3 does not exist",
                                        "cumsum(sum []): dimension 0 does not exist: the operand is a scalar",
                                        "scan(x [2,3], y [3], none): a and b must have the same shape",
                                        "scan(x [2,3], x [2,3], y [3]): the initial state must be [2]",
                                        "l2_normalize(x [2,3]): eps = -1",
                                        "l2_normalize(sum []): the operand is a scalar",
                                        "scan(x [2,3], none, none): operand 2 is NULL"};
    for (int i = 0; i < 8; i++) {
        wf_tape_reset(t, WF_GRADIENTS);
        wf_tensor *x = wf_name(normal(t, 1, WF_SHAPE(2, 3)), "x"), *y = wf_name(normal(t, 2, WF_SHAPE(3)), "y"), *bad = NULL;
        switch (i) {
        case 0:
            bad = wf_logsumexp(x, 2, false);
            break;
        case 1:
            bad = wf_log_softmax(x, -3);
            break;
        case 2:
            bad = wf_cumsum(wf_sum(x), 0);
            break;
        case 3:
            bad = wf_scan(x, y, NULL, 0);
            break;
        case 4:
            bad = wf_scan(x, x, y, 1);
            break;
        case 5:
            bad = wf_l2_normalize(x, -1);
            break;
        case 6:
            bad = wf_cosine_similarity(wf_sum(x), x, 1e-8);
            break;
        case 7:
            bad = wf_scan(x, NULL, NULL, 0);
            break;
        }
        expect_error(bad, i < 5 || i == 6 ? WF_ERR_SHAPE : WF_ERR_ARGUMENT, words[i]);
    }
    wf_tape_free(t);
}
END_TEST

WF_TEST_MAIN("row_ops", sums_of_many_are_carried_in_double, a_recurrence_along_each_dimension, same_bits_with_any_number_of_threads,
             a_row_alone_has_the_same_bits, mistakes_are_named)
