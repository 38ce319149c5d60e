/* SPDX-License-Identifier: MIT */
/* Views beyond slices: permute, select, squeeze, unsqueeze, flatten, stack; and views of one tensor that overlap. */
#include <weft/gradcheck.h>

#include "ops_tools.h"

START_TEST(views)
{
    static const wf_mode modes[] = {WF_INFER, WF_GRADIENTS};
    for (int m = 0; m < 2; m++) {
        begin(modes[m]);
        wf_tensor *x = given(NUMBERS(1, 2, 3, 4, 5, 6), WF_SHAPE(1, 2, 3));
        expect("permute", wf_permute(x, 2, 0, -2), NUMBERS(1, 4, 2, 5, 3, 6), WF_SHAPE(3, 1, 2));
        expect("permute of permute", wf_permute(wf_permute(x, 2, 0, 1), 1, 2, 0), NUMBERS(1, 2, 3, 4, 5, 6), WF_SHAPE(1, 2, 3));
        expect("permute of a scalar", wf_permute_to(wf_sum(x), &(wf_shape){0}), NUMBERS(21), &(wf_shape){0});
        expect("select", wf_select(x, 1, -1), NUMBERS(4, 5, 6), WF_SHAPE(1, 3));
        expect("select of the last", wf_select(x, -1, 1), NUMBERS(2, 5), WF_SHAPE(1, 2));
        expect("an element", wf_select(wf_select(wf_select(x, 0, 0), 0, 1), 0, 0), NUMBERS(4), &(wf_shape){0});
        expect("unsqueeze", wf_unsqueeze(wf_select(x, 0, 0), -1), NUMBERS(1, 2, 3, 4, 5, 6), WF_SHAPE(2, 3, 1));
        expect("unsqueeze in front", wf_unsqueeze(wf_transpose(x, 1, 2), 0), NUMBERS(1, 4, 2, 5, 3, 6), WF_SHAPE(1, 1, 3, 2));
        expect("squeeze", wf_squeeze(x, 0), NUMBERS(1, 2, 3, 4, 5, 6), WF_SHAPE(2, 3));
        expect("flatten", wf_flatten(x, 0, -1), NUMBERS(1, 2, 3, 4, 5, 6), WF_SHAPE(6));
        expect("flatten two", wf_flatten(x, 0, 1), NUMBERS(1, 2, 3, 4, 5, 6), WF_SHAPE(2, 3));
        expect("flatten what is transposed", wf_flatten(wf_transpose(x, 1, 2), 1, 2), NUMBERS(1, 4, 2, 5, 3, 6), WF_SHAPE(1, 6));
        expect("flatten a scalar", wf_flatten(wf_sum(x), 0, -1), NUMBERS(21), WF_SHAPE(1));
        wf_tensor *a = wf_select(x, 1, 0), *b = wf_select(x, 1, 1), *many[40];
        expect("stack", wf_stack((wf_tensor *[]){a, b}, 2, 0), NUMBERS(1, 2, 3, 4, 5, 6), WF_SHAPE(2, 1, 3));
        expect("stack behind", wf_stack((wf_tensor *[]){a, b}, 2, -1), NUMBERS(1, 4, 2, 5, 3, 6), WF_SHAPE(1, 3, 2));
        for (int i = 0; i < 40; i++)
            many[i] = wf_select(wf_select(b, 0, 0), 0, i % 3);
        wf_tensor *stacked = wf_stack(many, 40, 0);
        wf_real *got = value_of(stacked);
        ck_assert_int_eq(wf_dim(stacked, 0), 40);
        for (int i = 0; i < 40; i++)
            ck_assert(got[i] == 4 + i % 3);
        free(got);
        wf_tensor *none = wf_slice(x, 1, 0, 0);
        expect("empty", wf_permute(none, 1, 2, 0), NUMBERS(0), WF_SHAPE(0, 3, 1));
        expect("select of empty", wf_select(none, 2, 1), NUMBERS(0), WF_SHAPE(1, 0));
        wf_tensor *ids = wf_ids(tape, I32(5, 6, 7, 8), 2, 2);
        expect("ids", wf_to_real(wf_permute(ids, 1, 0)), NUMBERS(5, 7, 6, 8), WF_SHAPE(2, 2));
    }
}
END_TEST

START_TEST(errors)
{
#define REFUSED(call, code, words)                                                                                                         \
    do {                                                                                                                                   \
        begin(WF_GRADIENTS);                                                                                                               \
        wf_tensor *a = wf_name(normal(1, WF_SHAPE(2, 3)), "left"), *b = normal(2, WF_SHAPE(4));                                            \
        (void)a, (void)b;                                                                                                                  \
        expect_error(call, code, words);                                                                                                   \
    } while (0)
    REFUSED(wf_permute(a, 0, 0), WF_ERR_SHAPE, "permute(left [2,3]): the order [0,0] does not name each of the 2 dimensions once");
    REFUSED(wf_permute(a, 1), WF_ERR_SHAPE, "permute(left [2,3]): the order [1] does not name");
    REFUSED(wf_permute(a, 0, 2), WF_ERR_SHAPE, "permute(left [2,3]): the order [0,2] does not name");
    REFUSED(wf_permute_to(a, NULL), WF_ERR_SHAPE, "permute(left [2,3]): the order is NULL");
    REFUSED(wf_select(a, 1, 3), WF_ERR_SHAPE, "select(left [2,3]): index 3 is outside dimension 1, which has size 3");
    REFUSED(wf_select(a, 2, 0), WF_ERR_SHAPE, "select(left [2,3]): dimension 2 does not exist");
    REFUSED(wf_unsqueeze(a, 4), WF_ERR_SHAPE, "unsqueeze(left [2,3]): no dimension can be put at 4");
    REFUSED(wf_squeeze(a, 0), WF_ERR_SHAPE, "squeeze(left [2,3]): dimension 0 has size 2, not 1");
    REFUSED(wf_flatten(a, 1, 0), WF_ERR_SHAPE, "flatten(left [2,3]): dimensions 1 to 0 are not a range");
    REFUSED(wf_stack((wf_tensor *[]){a, b}, 2, 1), WF_ERR_SHAPE, "stack(left [2,3], input [4]): part 2 has another shape than the first");
    REFUSED(wf_stack((wf_tensor *[]){a, NULL}, 2, 0), WF_ERR_ARGUMENT, "stack(left [2,3], none): part 2 is NULL");
    REFUSED(wf_stack(&a, 1, 3), WF_ERR_SHAPE,
            "stack(left [2,3]): dimension 3 does not exist: the result has 3, which count from 0 or from -3");
    REFUSED(wf_concat((wf_tensor *[]){wf_select(b, 0, 0)}, 1, 0), WF_ERR_SHAPE,
            "concat(select []): dimension 0 does not exist: the operand is a scalar; wf_stack joins scalars");
    REFUSED(wf_concat(&a, 0, 0), WF_ERR_ARGUMENT, "concat(): there are no parts to join");
    REFUSED(wf_stack(&a, 0, 0), WF_ERR_ARGUMENT, "stack(): there are no parts to join");
    /* One view that shows an element twice has no place for its gradient. */
    begin(WF_GRADIENTS);
    wf_tensor *x = wf_name(normal(1, WF_SHAPE(8)), "left");
    wf_array windows;
    ran(wf_view(x, &windows));
    windows.ndim = 2, windows.dim[0] = 6, windows.dim[1] = 3, windows.stride[0] = windows.stride[1] = 1;
    expect_error(wf_apply_view("windows", x, &windows), WF_ERR_STATE,
                 "windows: the view repeats elements of 'left', which needs a gradient");
}
END_TEST

/* --- overlapping views ------------------------------------------------------------------------------------------------- */

enum { KINDS = 6 };

/* in[0] [4,6], in[1] [3]; ctx: which. */
static wf_tensor *overlapping(void *ctx, wf_tape *unused, wf_tensor *const in[])
{
    wf_tensor *x = in[0], *w = in[1], *part[6], *sum = NULL;
    (void)unused;
    switch (*(const int *)ctx) {
    case 0: /* a convolution: windows of 3 of 6 columns */
        for (int i = 0; i < 4; i++)
            part[i] = wf_mul(wf_slice(x, 1, i, 3), w);
        return wf_tanh(wf_stack(part, 4, 1));
    case 1: /* the same with the windows joined first, in any order */
        for (int i = 0; i < 4; i++)
            part[i] = wf_slice(x, 1, 3 - i, 3);
        return wf_square(wf_mul(wf_concat(part, 4, 0), w));
    case 2: /* views of views, and the tensor itself, before and after */
        part[0] = wf_slice(wf_slice(x, 0, 0, 3), 1, 1, 4);
        part[1] = wf_slice(wf_permute(wf_slice(x, 1, 2, 4), 1, 0), 1, 1, 3);
        sum = wf_add(wf_sum(wf_square(x)), wf_sum(wf_mul(part[0], wf_permute(part[1], 1, 0))));
        return wf_add(wf_mul(sum, wf_sum(w)), wf_sum(wf_mul(wf_select(x, 0, 1), wf_select(x, 0, 2))));
    case 3: /* a view with itself, shifted */
        return wf_mul(wf_mul(wf_slice(x, 0, 0, 3), wf_slice(x, 0, 1, 3)), wf_sum(w));
    case 4: /* columns of all rows, one at a time, and pairs */
        for (int i = 0; i < 5; i++)
            part[i] = wf_mul(wf_select(x, 1, i), wf_select(x, -1, i + 1));
        return wf_matmul(wf_stack(part, 3, 1), wf_unsqueeze(w, 1));
    default: /* results of ops */
        x = wf_tanh(x);
        return wf_add(wf_mul(wf_slice(x, 1, 0, 3), w), wf_div(wf_slice(x, 1, 1, 3), wf_add_constant(wf_square(wf_slice(x, 1, 2, 3)), 1)));
    }
}

START_TEST(gradients_add_up)
{
    const wf_shape shapes[] = {{2, {4, 6}}, {1, {3}}};
    for (int which = 0; which < KINDS; which++)
        ck_ok(wf_check_function(overlapping, &which, 2, shapes, NULL, NULL, error));
    /* how often an element is shown */
    begin(WF_GRADIENTS);
    wf_tensor *x = normal(1, WF_SHAPE(6)), *part[4];
    for (int i = 0; i < 4; i++)
        part[i] = wf_slice(x, 0, i, 3);
    ran(wf_backward(wf_sum(wf_concat(part, 4, 0))));
    expect_gradient("counts", x, NUMBERS(1, 2, 3, 3, 2, 1));
}
END_TEST

WF_TEST_MAIN("views", views, errors, gradients_add_up)
