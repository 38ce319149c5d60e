/* SPDX-License-Identifier: MIT */
/* Views that show elements more than once: wf_expand, ops with .view, and what wf_apply_view refuses. */
#include <weft/gradcheck.h>
#include <weft/nn.h>

#include "ops_tools.h"

START_TEST(values_are_not_copied)
{
    static const wf_mode modes[] = {WF_INFER, WF_GRADIENTS};
    for (int m = 0; m < 2; m++) {
        begin(modes[m]);
        wf_tensor *x = given(NUMBERS(1, 2, 3, 4, 5, 6), WF_SHAPE(2, 1, 3)), *y = wf_expand(x, 2, 2, -1);
        expect("expand", y, NUMBERS(1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6), WF_SHAPE(2, 2, 3));
        wf_array from, to;
        ran(wf_view(x, &from));
        ran(wf_view(y, &to));
        ck_assert(to.data == from.data && to.stride[1] == 0);
        ck_assert_ptr_eq(wf_expand(x, 2, 1, 3), x);
        expect("of a scalar", wf_expand(wf_sum(x), 2, 1), NUMBERS(21, 21), WF_SHAPE(2, 1));
        expect("of a slice", wf_expand(wf_slice(x, 2, 1, 1), 2, 2, 2), NUMBERS(2, 2, 2, 2, 5, 5, 5, 5), WF_SHAPE(2, 2, 2));
        expect("of expand", wf_expand(wf_expand(wf_slice(x, 0, 1, 1), 2, 1, 3), 2, 2, 1, 3), NUMBERS(4, 5, 6, 4, 5, 6, 4, 5, 6, 4, 5, 6),
               WF_SHAPE(2, 2, 1, 3));
        expect("transposed", wf_transpose(wf_slice(y, 0, 1, 1), 1, 2), NUMBERS(4, 4, 5, 5, 6, 6), WF_SHAPE(1, 3, 2));
        wf_tensor *half[2];
        wf_split(wf_reshape(y, 4, 3), 0, 2, half);
        expect("split", half[1], NUMBERS(4, 5, 6, 4, 5, 6), WF_SHAPE(2, 3));
        wf_tensor *ids = wf_expand(wf_ids(tape, I32(1, 0), 1, 2), 2, 2);
        expect("ids", wf_embedding(wf_reshape(x, 2, 3), ids), NUMBERS(4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3), WF_SHAPE(2, 2, 3));
    }
}
END_TEST

START_TEST(shapes_that_do_not_fit)
{
    static const struct {
        wf_shape shape;
        const char *words;
    } wrong[] = {
        {{2, {4, 3}}, "expand(left [2,3]): the operand does not broadcast to [4,3]"},
        {{1, {3}}, "does not broadcast to [3]"},
        {{2, {2, 1}}, "does not broadcast to [2,1]"},
        {{3, {-1, 2, 3}}, "does not broadcast to [-1,2,3]"},
        {{3, {-2, 2, 3}}, "does not broadcast to [-2,2,3]"},
        {{4, {(int64_t)1 << 40, (int64_t)1 << 40, 2, 3}}, "does not broadcast to [1099511627776,"},
        {{7, {1, 1, 1, 1, 2, 3}}, "7 dimensions is out of range, 0 to 6"},
        {{-1, {0}}, "-1 dimensions is out of range, 0 to 6"},
    };
    begin(WF_GRADIENTS);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        begin(WF_GRADIENTS);
        wf_tensor *x = wf_name(normal(1, WF_SHAPE(2, 3)), "left");
        expect_error(wf_expand_to(x, &wrong[i].shape), WF_ERR_SHAPE, wrong[i].words);
    }
}
END_TEST

/* --- gradients ------------------------------------------------------------------------------------------------------- */

enum { FUNCTIONS = 4 };

/* in[0] [3,1], in[1] [4], in[2] [2,3]; ctx: which function. */
static wf_tensor *function(void *ctx, wf_tape *unused, wf_tensor *const in[])
{
    (void)unused;
    wf_tensor *a = wf_expand(in[0], 3, 4), *b = wf_expand(in[1], 3, 4), *c = wf_expand(in[2], 4, 2, 3), *part[2];
    switch (*(const int *)ctx) {
    case 0: /* elementwise */
        return wf_add(wf_mul(a, b), wf_mul(wf_tanh(a), wf_expand(wf_sum(wf_mul(in[2], in[2])), 3, 4)));
    case 1: /* products with repeated rows, columns and matrices */
        return wf_add(wf_matmul(c, a), wf_matmul(wf_slice(c, 0, 1, 1), b));
    case 2: /* views of the result */
        wf_split(c, 0, 2, part);
        wf_tensor *pieces[] = {wf_reshape(wf_transpose(part[0], 1, 2), -1), wf_reshape(wf_slice(a, 1, 1, 3), -1), wf_reshape(b, -1)};
        wf_tensor *all = wf_concat(pieces, 3, 0);
        return wf_mul(all, wf_tanh(all));
    default: /* the result itself, and views repeated twice */
        return wf_add(wf_expand(wf_expand(in[2], 2, 2, 3), 4, 2, 2, 3), wf_expand(wf_add(wf_sum(a), wf_sum(b)), 4, 2, 2, 3));
    }
}

START_TEST(gradients_by_differences)
{
    const wf_shape shapes[] = {{2, {3, 1}}, {1, {4}}, {2, {2, 3}}};
    for (int threads = 1; threads <= 4; threads *= 2) {
        ck_ok(wf_set_threads(threads, error));
        for (int which = 0; which < FUNCTIONS; which++)
            ck_ok(wf_check_function(function, &which, 3, shapes, NULL, NULL, error));
    }
}
END_TEST

enum { B = 48, T = 64, D = 96 };

/* Gradients of queries [T, D], a column [B, T, 1] and a matrix [D, 32], with wf_expand or with a broadcasting op. */
static void large_pass(bool expand, wf_real *out[3])
{
    begin(WF_GRADIENTS);
    wf_tensor *queries = normal(1, WF_SHAPE(T, D)), *column = normal(2, WF_SHAPE(B, T, 1)), *matrix = normal(3, WF_SHAPE(D, 32)),
              *keys = wf_detach(normal(4, WF_SHAPE(B, T, D))), *none = wf_zeros(tape, WF_SHAPE(B, T, D));
    wf_tensor *q = expand ? wf_expand(queries, B, T, D) : wf_add(queries, none);
    wf_tensor *c = expand ? wf_expand(column, B, T, D) : wf_add(column, none);
    wf_tensor *loss = wf_mean(wf_attention(q, keys, keys, .heads = 4));
    loss = wf_add(loss, wf_mean(wf_gelu(wf_matmul(wf_mul(q, keys), matrix))));
    loss = wf_add(loss, wf_mean(wf_gelu(wf_add(wf_matmul(q, matrix), wf_matmul(c, matrix)))));
    loss = wf_add(loss, wf_mean(wf_mul(wf_transpose(q, 0, 1), wf_transpose(c, 0, 1))));
    ran(wf_backward(loss));
    out[0] = gradient_of(queries);
    out[1] = gradient_of(column);
    out[2] = gradient_of(matrix);
}

START_TEST(same_bits_on_any_number_of_threads)
{
    static const char *const what[] = {"queries", "column", "matrix"};
    static const int64_t size[] = {T * D, B * T, D * 32};
    begin(WF_GRADIENTS);
    wf_real *plain[3], *one[3], *more[3];
    ck_ok(wf_set_threads(1, error));
    large_pass(false, plain);
    large_pass(true, one);
    for (int i = 0; i < 3; i++)
        same_numbers(what[i], one[i], plain[i], size[i], sizeof(wf_real) == 8 ? 1e-12 : 1e-4);
    for (int threads = 2; threads <= 4; threads *= 2) {
        ck_ok(wf_set_threads(threads, error));
        for (int round = 0; round < 3; round++) {
            large_pass(true, more);
            for (int i = 0; i < 3; i++) {
                ck_assert_msg(memcmp(more[i], one[i], (size_t)size[i] * sizeof(wf_real)) == 0, "%s: other bits on %d threads", what[i],
                              threads);
                free(more[i]);
            }
        }
    }
    for (int i = 0; i < 3; i++) {
        free(plain[i]);
        free(one[i]);
    }
}
END_TEST

START_TEST(retained_gradients)
{
    begin(WF_GRADIENTS);
    wf_tensor *x = given(NUMBERS(1, 2), WF_SHAPE(2)), *w = given(NUMBERS(1, 2, 3, 4, 5, 6), WF_SHAPE(3, 2));
    wf_tensor *y = wf_retain_grad(wf_expand(x, 3, 2));
    ran(wf_backward(wf_add(wf_sum(wf_mul(y, w)), wf_sum(y))));
    expect_gradient("dy", y, NUMBERS(2, 3, 4, 5, 6, 7));
    expect_gradient("dx", x, NUMBERS(12, 15));
    /* the loss itself */
    begin(WF_GRADIENTS);
    x = given(NUMBERS(1, 2), WF_SHAPE(2));
    ran(wf_backward(wf_expand(x, 5, 2)));
    expect_gradient("dx", x, NUMBERS(5, 5));
}
END_TEST

/* Learned queries: one parameter for each row of a batch. */
START_TEST(a_parameter_for_each_row)
{
    wf_error e = {0};
    wf_registry *registry = wf_registry_new(&e);
    wf_tensor *p = wf_parameter(wf_root(registry), "queries", WF_SHAPE(2, 2), .init = {WF_INIT_NORMAL, 1});
    ck_ok(wf_registry_build(registry, 1, error));
    begin(WF_GRADIENTS);
    for (int pass = 1; pass <= 2; pass++) {
        begin(WF_GRADIENTS);
        wf_tensor *w = given(NUMBERS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), WF_SHAPE(3, 2, 2));
        ran(wf_backward(wf_sum(wf_mul(wf_expand(p, 3, -1, -1), w))));
        same_numbers("queries", wf_registry_grads(registry)->slab, NUMBERS(15 * pass, 18 * pass, 21 * pass, 24 * pass), 4, loose);
    }
    wf_registry_free(registry);
}
END_TEST

/* --- views of others ------------------------------------------------------------------------------------------------- */

/* Rows that share memory cannot have gradients: several threads would add to it at once, and products would overwrite it. */
START_TEST(repeating_views_that_need_gradients)
{
    enum { ROWS = 64, N = 4096 };
    ck_ok(wf_set_threads(4, error));
    begin(WF_GRADIENTS);
    for (int kind = 0; kind < 4; kind++) {
        begin(WF_GRADIENTS);
        wf_tensor *x = wf_name(normal(1, WF_SHAPE(N)), "row"), *copy = wf_detach(x);
        wf_array a;
        ran(wf_view(x, &a));
        wf_array rows = wf_array_expand(&a, &(wf_shape){2, {ROWS, N}}), view = rows;
        if (kind == 1)
            view = wf_array_transpose(rows, 0, 1);
        if (kind == 2) { /* windows */
            view.dim[1] = N - ROWS + 1;
            view.stride[0] = 1;
        }
        if (kind == 3) { /* backwards, and each element in three rows */
            view.dim[1] = N / 2;
            view.stride[0] = N / 6;
            view.dim[0] = 3;
            view.data = (wf_real *)a.data + N / 2;
            view.stride[1] = -1;
        }
        /* any view of a value that needs no gradient is allowed */
        wf_array same = view;
        ck_assert(wf_view(copy, &a) == WF_OK && !wf_is_poison(copy));
        same.data = (char *)a.data + ((char *)view.data - (char *)rows.data);
        ck_assert(!wf_is_poison(wf_sum(wf_apply_view("rows", copy, &same))));
        wf_tensor *y = wf_apply_view("rows", x, &view);
        expect_error(y, WF_ERR_STATE, "rows: the view repeats elements of 'row', which needs a gradient: use wf_expand");
        ck_assert_int_eq(wf_backward(wf_sum(wf_mul(y, y))), WF_ERR_STATE);
    }
    /* views without repeats have gradients */
    begin(WF_GRADIENTS);
    wf_tensor *x = normal(1, WF_SHAPE(6, 4));
    wf_array a, diagonal;
    ran(wf_view(x, &a));
    diagonal = wf_array_transpose(wf_array_slice(a, 1, 0, 2), 0, 1);
    diagonal.stride[0] = 5;
    diagonal.dim[1] = 1;
    wf_tensor *y = wf_apply_view("diagonal", x, &diagonal);
    ran(wf_backward(wf_sum(y)));
    expect_gradient("diagonal", x, (wf_real[24]){[0] = 1, [5] = 1});
    /* a view of a repeated one */
    begin(WF_GRADIENTS);
    x = wf_expand(normal(1, WF_SHAPE(1, 4)), 3, 4);
    ran(wf_view(x, &a));
    a = wf_array_slice(a, 0, 1, 1);
    expect_error(wf_apply_view("row", x, &a), WF_ERR_STATE, "row: 'expand' is a view with repeated elements that needs a gradient");
}
END_TEST

/* y[i, j] = x[i + j], so that dx[n] is the sum of dy[i, j] over i + j = n. */
static wf_status windows_shape(wf_call *c)
{
    if (!wf_has(c, 0) || c->in[0].ndim != 1 || c->in[0].dim[0] < 3)
        return wf_call_fail(c, WF_ERR_SHAPE, "x must be [n] with n >= 3");
    c->out[0] = c->in[0];
    c->out[0].ndim = 2;
    c->out[0].dim[0] = c->in[0].dim[0] - 2;
    c->out[0].dim[1] = 3;
    c->out[0].stride[1] = c->out[0].stride[0];
    return WF_OK;
}

static wf_status windows_backward(wf_call *c)
{
    wf_array dy = wf_call_contiguous(c, &c->dout[0]), dx = wf_grad_new(c, 0);
    if (!dy.data || !dx.data)
        return WF_ERR_MEMORY;
    memset(dx.data, 0, (size_t)dx.dim[0] * sizeof(wf_real));
    for (int64_t i = 0; i < dy.dim[0]; i++)
        for (int64_t j = 0; j < 3; j++)
            ((wf_real *)dx.data)[i + j] += ((const wf_real *)dy.data)[3 * i + j];
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

static const wf_op op_windows = {.name = "windows",
                                 .reads = WF_READS_NOTHING,
                                 .view = true,
                                 .shape = windows_shape,
                                 .backward = windows_backward,
                                 .cases = WF_CASES({.in = {{7}}}, {.in = {{3}}}, {.in = {{50}}})};

/* One element more than there is. */
static wf_status outside_shape(wf_call *c)
{
    c->out[0] = c->in[0];
    c->out[0].dim[0]++;
    return WF_OK;
}

static const wf_op op_outside = {
    .name = "outside", .reads = WF_READS_NOTHING, .view = true, .shape = outside_shape, .backward = windows_backward};

START_TEST(an_op_that_repeats_elements)
{
    ck_ok(wf_check_op(&op_windows, NULL, error));
    begin(WF_GRADIENTS);
    wf_tape_check_finite(tape, true);
    wf_tensor *x = given(NUMBERS(1, 2, 3, 4), WF_SHAPE(4)), *y = wf_apply(&op_windows, NULL, 1, &x);
    expect("windows", y, NUMBERS(1, 2, 3, 2, 3, 4), WF_SHAPE(2, 3));
    expect("their transpose", wf_transpose(y, 0, 1), NUMBERS(1, 2, 2, 3, 3, 4), WF_SHAPE(3, 2));
    ran(wf_backward(wf_sum(wf_transpose(y, 0, 1))));
    expect_gradient("gradient", x, NUMBERS(1, 2, 2, 1));
    begin(WF_GRADIENTS);
    x = given(NUMBERS(1, 2, 3, 4), WF_SHAPE(4));
    expect_error(wf_apply(&op_outside, NULL, 1, &x), WF_ERR_SHAPE, "outside(input [4]): the view is not inside the operand's storage");
}
END_TEST

WF_TEST_MAIN("expand", values_are_not_copied, shapes_that_do_not_fit, gradients_by_differences, same_bits_on_any_number_of_threads,
             retained_gradients, a_parameter_for_each_row, repeating_views_that_need_gradients, an_op_that_repeats_elements)
