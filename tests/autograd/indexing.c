/* SPDX-License-Identifier: MIT */
/* index_select, index_add, gather and scatter_add against loops over the definition, on views too, and with ids that repeat. */
#include "ops_tools.h"

/* Ids of a count, not in order, all below limit. */
static int32_t *some_ids(int64_t n, int64_t limit, uint64_t stream)
{
    int32_t *id = malloc((size_t)(n + 1) * sizeof *id);
    wf_rng rng = wf_rng_new(5, stream);
    for (int64_t i = 0; i < n; i++)
        id[i] = (int32_t)wf_rng_below(&rng, (uint64_t)limit);
    return id;
}

enum { A = 3, V = 7, B = 20, N = 11 };

/* x [A,V,B] as it is, and as a transpose or a slice of something else. */
static wf_tensor *in_layout(const wf_real *x, int layout)
{
    wf_tensor *whole;
    wf_real *moved = malloc((size_t)A * V * (B + 4) * sizeof *moved);
    for (int i = 0; i < A * V * B; i++) {
        int a = i / (V * B), v = i / B % V, b = i % B;
        moved[layout == 1 ? (b * V + v) * A + a : (a * V + v) * (B + 4) + b + 3] = x[i];
    }
    for (int i = 0; layout == 2 && i < A * V * (B + 4); i++)
        if (i % (B + 4) < 3 || i % (B + 4) == B + 3)
            moved[i] = (wf_real)NAN;
    if (layout == 0)
        whole = wf_input(tape, x, WF_SHAPE(A, V, B), true);
    else if (layout == 1)
        whole = wf_transpose(wf_input(tape, moved, WF_SHAPE(B, V, A), true), 0, 2);
    else
        whole = wf_slice(wf_input(tape, moved, WF_SHAPE(A, V, B + 4), true), 2, 3, B);
    free(moved);
    return whole;
}

START_TEST(slices_of_a_dimension)
{
    begin(WF_GRADIENTS);
    wf_real x[A * V * B], expected[A * N * B], sums[A * V * B], source[A * N * B];
    wf_fill_normal(x, A * V * B, 0, 1, 3, 1);
    wf_fill_normal(source, A * N * B, 0, 1, 3, 2);
    int32_t *id = some_ids(N, V - 1, 1); /* one of the middle dimension is never used */
    memcpy(sums, x, sizeof x);
    for (int i = 0; i < A * N * B; i++) {
        int a = i / (N * B), n = i / B % N, b = i % B;
        expected[i] = x[(a * V + id[n]) * B + b];
        sums[(a * V + id[n]) * B + b] += source[i];
    }
    for (int layout = 0; layout < 3; layout++) {
        begin(WF_GRADIENTS);
        wf_tensor *a = in_layout(x, layout), *ids = wf_ids_of(tape, id, WF_SHAPE(N)), *s = given(source, WF_SHAPE(A, N, B));
        expect("index_select", wf_index_select(a, 1, ids), expected, WF_SHAPE(A, N, B));
        expect("from the end", wf_index_select(a, -2, ids), expected, WF_SHAPE(A, N, B));
        expect("index_add", wf_index_add(a, 1, ids, s), sums, WF_SHAPE(A, V, B));
        wf_tensor *turned = wf_contiguous(wf_transpose(wf_index_select(wf_transpose(a, 0, 1), 0, ids), 0, 1));
        expect("of a transpose", turned, expected, WF_SHAPE(A, N, B));
        wf_tensor *last = wf_index_select(wf_transpose(a, 1, 2), 2, ids);
        expect("of the last dimension", wf_contiguous(wf_transpose(last, 1, 2)), expected, WF_SHAPE(A, N, B));
    }
    free(id);
}
END_TEST

START_TEST(elements_of_a_dimension)
{
    begin(WF_GRADIENTS);
    enum { A2 = 2, B2 = 13 }; /* less than x has */
    wf_real x[A * V * B], expected[A2 * N * B2], source[A2 * N * B2], sums[A * V * B];
    wf_fill_normal(x, A * V * B, 0, 1, 3, 1);
    wf_fill_normal(source, A2 * N * B2, 0, 1, 3, 2);
    int32_t *id = some_ids(A2 * N * B2, V, 2), *turned = malloc(A2 * N * B2 * sizeof *turned);
    memcpy(sums, x, sizeof x);
    for (int i = 0; i < A2 * N * B2; i++) {
        int a = i / (N * B2), n = i / B2 % N, b = i % B2;
        turned[(b * N + n) * A2 + a] = id[i];
        expected[i] = x[(a * V + id[i]) * B + b];
        sums[(a * V + id[i]) * B + b] += source[i];
    }
    for (int layout = 0; layout < 3; layout++)
        for (int ids_layout = 0; ids_layout < 2; ids_layout++) {
            begin(WF_GRADIENTS);
            wf_tensor *a = in_layout(x, layout), *s = given(source, WF_SHAPE(A2, N, B2));
            wf_tensor *ids =
                ids_layout ? wf_transpose(wf_ids_of(tape, turned, WF_SHAPE(B2, N, A2)), 0, 2) : wf_ids_of(tape, id, WF_SHAPE(A2, N, B2));
            expect("gather", wf_gather(a, 1, ids), expected, WF_SHAPE(A2, N, B2));
            expect("scatter_add", wf_scatter_add(a, -2, ids, s), sums, WF_SHAPE(A, V, B));
            wf_tensor *last = wf_gather(wf_transpose(a, 1, 2), -1, wf_transpose(ids, 1, 2));
            expect("of the last dimension", wf_contiguous(wf_transpose(last, 1, 2)), expected, WF_SHAPE(A2, N, B2));
            wf_tensor *first = wf_gather(wf_transpose(a, 0, 1), 0, wf_transpose(ids, 0, 1));
            expect("of the first", wf_contiguous(wf_transpose(first, 0, 1)), expected, WF_SHAPE(A2, N, B2));
        }
    free(id);
    free(turned);
}
END_TEST

/* Values and gradients of both kinds, by a hash. Numbers whose sums depend on the order. */
static uint64_t bits(int64_t planes, int64_t limit, int64_t d, int64_t n, int dim)
{
    begin(WF_GRADIENTS);
    const wf_shape shape = dim == 2 ? (wf_shape){3, {planes, d, limit}} : (wf_shape){3, {planes, limit, d}};
    wf_shape moved = shape;
    moved.dim[dim] = n;
    int32_t *id = some_ids(n, limit, 3), *each = some_ids(planes * n * d, limit, 4);
    wf_tensor *x = normal(1, &shape), *s = normal(2, &moved), *ids = wf_ids_of(tape, id, WF_SHAPE(n)), *all = wf_ids_of(tape, each, &moved);
    wf_tensor *y[] = {wf_index_select(x, dim, ids), wf_index_add(x, dim, ids, s), wf_gather(x, dim, all), wf_scatter_add(x, dim, all, s)};
    uint64_t hash = HASH;
    wf_tensor *loss = NULL;
    for (int k = 0; k < 4; k++) {
        hash = hash_of_value(hash, y[k]);
        wf_tensor *part = wf_sum(wf_mul(y[k], y[k]));
        loss = loss ? wf_add(loss, part) : part;
    }
    ran(wf_backward(loss));
    free(id);
    free(each);
    return hash_of_gradient(hash_of_gradient(hash, x), s);
}

START_TEST(repeated_ids_have_the_same_bits_with_any_threads)
{
    static const struct {
        int64_t planes, limit, d, n;
    } sizes[] = {{1, 5, 600, 2000}, {1, 3, 4, 30000}, {200, 6, 3, 300}, {17, 90, 70, 100}, {1, 1, 1, 9000}};
    begin(WF_GRADIENTS);
    for (int k = 0; k < 5; k++)
        for (int dim = 1; dim < 3; dim++) {
            ck_ok(wf_set_threads(1, error));
            uint64_t one = bits(sizes[k].planes, sizes[k].limit, sizes[k].d, sizes[k].n, dim);
            for (int threads = 2; threads <= 5; threads += 3) {
                ck_ok(wf_set_threads(threads, error));
                ck_assert_msg(bits(sizes[k].planes, sizes[k].limit, sizes[k].d, sizes[k].n, dim) == one,
                              "%d threads give other bits for sizes %d along dimension %d", threads, k, dim);
            }
        }
}
END_TEST

START_TEST(sums_are_in_the_order_of_the_ids)
{
    begin(WF_GRADIENTS);
    wf_real big = sizeof(wf_real) == 4 ? (wf_real)16777216 : (wf_real)9007199254740992; /* big + 1 = big */
    wf_tensor *s = given(NUMBERS(big, 1, 1, -big), WF_SHAPE(4, 1)), *zero = wf_zeros(tape, WF_SHAPE(1, 1));
    wf_real in_order = ((big + 1) + 1) - big;
    expect("index_add", wf_index_add(zero, 0, wf_ids_of(tape, I32(0, 0, 0, 0), WF_SHAPE(4)), s), &in_order, WF_SHAPE(1, 1));
    expect("scatter_add", wf_scatter_add(zero, 0, wf_ids_of(tape, I32(0, 0, 0, 0), WF_SHAPE(4, 1)), s), &in_order, WF_SHAPE(1, 1));
}
END_TEST

START_TEST(what_is_not_read_may_be_nan)
{
    begin(WF_GRADIENTS);
    wf_real nan = (wf_real)NAN, inf = (wf_real)INFINITY;
    wf_tensor *x = given(NUMBERS(nan, 2, inf, 4), WF_SHAPE(2, 2));
    expect("gather", wf_gather(x, 1, wf_ids(tape, I32(1, 1), 2, 1)), NUMBERS(2, 4), WF_SHAPE(2, 1));
    wf_real *y = value_of(wf_index_select(x, 1, wf_ids_of(tape, I32(0), WF_SHAPE(1))));
    ck_assert(isnan(y[0]) && isinf(y[1]));
    free(y);
}
END_TEST

START_TEST(mistakes_are_named)
{
#define REFUSED(call, code, words)                                                                                                         \
    do {                                                                                                                                   \
        begin(WF_GRADIENTS);                                                                                                               \
        wf_tensor *a = wf_name(normal(1, WF_SHAPE(2, 3)), "left"), *none = wf_name(normal(1, WF_SHAPE(2, 0)), "left");                     \
        const int32_t id[] = {0, 3, -1, 1, 4, 0};                                                                                          \
        (void)a, (void)none, (void)id;                                                                                                     \
        expect_error(call, code, words);                                                                                                   \
    } while (0)
    REFUSED(wf_index_select(a, 1, wf_ids_of(tape, id, WF_SHAPE(2))), WF_ERR_ARGUMENT,
            "index_select(left [2,3], ids [2]): ids[1] = 3 is not in 0 .. 2");
    REFUSED(wf_index_select(a, 0, wf_ids_of(tape, I32(1, -1), WF_SHAPE(2))), WF_ERR_ARGUMENT,
            "index_select(left [2,3], ids [2]): ids[1] = -1 is not in 0 .. 1");
    REFUSED(wf_index_select(a, 0, wf_ids_of(tape, id, WF_SHAPE(1, 2))), WF_ERR_SHAPE,
            "index_select(left [2,3], ids [1,2]): the ids must be a vector");
    REFUSED(wf_index_select(a, 2, wf_ids_of(tape, id, WF_SHAPE(2))), WF_ERR_SHAPE,
            "index_select(left [2,3], ids [2]): dimension 2 does not exist");
    REFUSED(wf_index_select(a, 0, a), WF_ERR_ARGUMENT, "index_select(left [2,3], left [2,3]): operand 2 has dtype");
    REFUSED(wf_index_add(a, 1, wf_ids_of(tape, id, WF_SHAPE(2)), a), WF_ERR_SHAPE,
            "index_add(left [2,3], ids [2], left [2,3]): the source must be [2,2]: a slice for each id");
    REFUSED(wf_gather(a, 1, wf_ids_of(tape, I32(0, 1, 4, 9), WF_SHAPE(2, 2))), WF_ERR_ARGUMENT,
            "gather(left [2,3], ids [2,2]): ids[1,0] = 4 is not in 0 .. 2");
    REFUSED(wf_gather(a, 1, wf_ids_of(tape, id, WF_SHAPE(2))), WF_ERR_SHAPE,
            "gather(left [2,3], ids [2]): the ids must have as many dimensions as x");
    REFUSED(wf_gather(a, 1, wf_ids_of(tape, id, WF_SHAPE(3, 1))), WF_ERR_SHAPE,
            "gather(left [2,3], ids [3,1]): the ids must have as many dimensions as x, and may be larger in dimension 1 only");
    REFUSED(wf_scatter_add(a, 1, wf_ids_of(tape, id, WF_SHAPE(1, 2)), a), WF_ERR_SHAPE,
            "scatter_add(left [2,3], ids [1,2], left [2,3]): the source must have the shape of the ids");
    REFUSED(wf_scatter_add(a, 1, wf_ids_of(tape, id, WF_SHAPE(1, 2)), NULL), WF_ERR_ARGUMENT,
            "scatter_add(left [2,3], ids [1,2], none): operand 3 is NULL");
    REFUSED(wf_index_select(none, 1, wf_ids_of(tape, id, WF_SHAPE(1))), WF_ERR_ARGUMENT,
            "index_select(left [2,0], ids [1]): ids[0] = 0, but there is nothing to choose from: the size is 0");
}
END_TEST

WF_TEST_MAIN("indexing", slices_of_a_dimension, elements_of_a_dimension, repeated_ids_have_the_same_bits_with_any_threads,
             sums_are_in_the_order_of_the_ids, what_is_not_read_may_be_nan, mistakes_are_named)
