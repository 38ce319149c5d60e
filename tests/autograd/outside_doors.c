/* SPDX-License-Identifier: MIT */
/* Ops of other programs that keep no rule: each is one line on the tape, and none is a crash, a write outside or a result in silence. */
#include <weft/ops.h>

#include "copy_op.h"
#include "doors_test.h"

START_TEST(more_operands_or_results_than_an_op_has)
{
    enum { MANY = 200 };
    static const wf_op op = {.name = "many", .shape = like_first, .forward = copy_first};
    begin(WF_TRAIN);
    wf_tensor *in[MANY], *out[MANY];
    for (int outputs = 0; outputs <= MANY; outputs += MANY / 4) {
        for (int i = 0; i < MANY; i++)
            in[i] = wf_zeros(tape, WF_SHAPE(2));
        wf_apply_multi(&op, NULL, 1, in, outputs, out);
        for (int j = 0; j < outputs; j++)
            ck_assert(wf_is_poison(out[j]));
        refused_once(WF_ERR_ARGUMENT, "many: an op has 0 to 8 operands and 1 to 4 results, not 1 and ");
    }
    for (int i = 0; i < MANY; i++)
        in[i] = wf_zeros(tape, WF_SHAPE(2));
    ck_refused(wf_apply(&op, NULL, MANY, in), WF_ERR_ARGUMENT, "8 operands");
    wf_tape_use(tape);
    ck_refused(wf_apply(&op, NULL, -1, in), WF_ERR_ARGUMENT, "8 operands and 1 to 4 results, not -1 and 1");
    for (int i = 0; i < 9; i++)
        in[i] = wf_zeros(tape, WF_SHAPE(2));
    ck_refused(wf_apply(&op, NULL, 9, in), WF_ERR_ARGUMENT, "8 operands and 1 to 4 results, not 9 and 1");
    for (int i = 0; i < 8; i++)
        in[i] = wf_zeros(tape, WF_SHAPE(2));
    ck_assert(!wf_is_poison(wf_apply(&op, NULL, 8, in)));
}
END_TEST

static wf_status negative_size(wf_call *c)
{
    c->out[0] = wf_call_shape(WF_REAL, &(wf_shape){1, {-4}});
    return WF_OK;
}

static wf_status seven_dims(wf_call *c)
{
    c->out[0] = wf_call_shape(WF_REAL, &(wf_shape){7, {1, 1, 1, 1, 1, 1}});
    return WF_OK;
}

static wf_status huge_temporary(wf_call *c)
{
    wf_array a = wf_call_temp(c, WF_REAL, &(wf_shape){2, {(int64_t)1 << 31, (int64_t)1 << 31}});
    return a.data ? WF_OK : WF_ERR_MEMORY;
}

START_TEST(incomplete_descriptors)
{
    static const struct {
        wf_op op;
        wf_status code;
        const char *words;
    } wrong[] = {
        {{.name = "no_forward", .shape = like_first}, WF_ERR_ARGUMENT, "no_forward: the op's descriptor lacks"},
        {{.name = "no_shape", .forward = copy_first}, WF_ERR_ARGUMENT, "no_shape: the op's descriptor lacks"},
        {{.name = "attributes", .attr_size = 64, .shape = like_first, .forward = copy_first}, WF_ERR_ARGUMENT, "attr is NULL"},
        {{.name = "seven", .shape = seven_dims, .forward = copy_first},
         WF_ERR_SHAPE,
         "seven(zeros [2]): the op's shape function does not set each of the 1 results"},
        {{.name = "negative", .shape = negative_size, .forward = copy_first},
         WF_ERR_SHAPE,
         "negative(zeros [2]): a result of shape [-4] is invalid"},
        {{.name = "temporary", .shape = like_first, .forward = huge_temporary},
         WF_ERR_SHAPE,
         "temporary(zeros [2]): a temporary array is invalid or too large"},
    };
    static const wf_op one_of_two = {.name = "one_of_two", .outputs = 2, .shape = like_first, .forward = copy_first};
    begin(WF_INFER);
    wf_tensor *x = wf_zeros(tape, WF_SHAPE(2)), *out[2];
    wf_apply_multi(&one_of_two, NULL, 1, &x, 2, out);
    ck_assert(wf_is_poison(out[0]) && wf_is_poison(out[1]));
    refused_once(WF_ERR_SHAPE, "one_of_two(zeros [2]): the op's shape function does not set each of the 2 results to 0 to 6 dimensions");
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        x = wf_zeros(tape, WF_SHAPE(2));
        ck_refused(wf_apply(&wrong[k].op, NULL, 1, &x), wrong[k].code, wrong[k].words);
    }
}
END_TEST

static wf_status give_all(wf_call *c)
{
    for (int i = 0; i < 2; i++)
        wf_grad_give(c, i, &c->dout[0]);
    return WF_OK;
}

static wf_status into_all(wf_call *c)
{
    for (int i = 0; i < 2; i++) {
        bool add;
        wf_array g = wf_grad_into(c, i, &add);
        if (g.data)
            wf_array_copy(&g, &c->dout[0]);
    }
    return WF_OK;
}

static wf_status of_a_ninth(wf_call *c)
{
    wf_array g = wf_grad_new(c, 1000000);
    wf_grad_give(c, 1000000, &g);
    return WF_OK;
}

/* A backward that does not ask which operands need a gradient. */
START_TEST(gradients_that_nobody_needs)
{
    static wf_status (*const backward[])(wf_call *) = {give_all, into_all, of_a_ninth};
    begin(WF_GRADIENTS);
    for (int b = 0; b < 3; b++)
        for (int absent = 0; absent < 2; absent++) {
            const wf_op op = {.name = "gives", .shape = like_first, .forward = copy_first, .backward = backward[b]};
            wf_real v[2] = {1, 2};
            wf_tensor *in[] = {wf_input(tape, v, WF_SHAPE(2), true), absent ? NULL : wf_input(tape, v, WF_SHAPE(2), false)};
            ck_assert_int_eq(wf_backward(wf_apply(&op, NULL, 2, in)), WF_ERR_ARGUMENT);
            refused_once(WF_ERR_ARGUMENT, "which needs none: it must ask c->need first");
        }
}
END_TEST

static const wf_array *ill_fitting;

static wf_status give_ill_fitting(wf_call *c)
{
    wf_grad_give(c, 0, ill_fitting);
    return WF_OK;
}

/* A gradient that is neither of the operand's shape, nor of one that it broadcasts to, nor of reals. */
START_TEST(gradients_that_do_not_fit)
{
    static wf_real numbers[24];
    const wf_array bad[] = {
        wf_array_contiguous(numbers, WF_REAL, WF_SHAPE(5)),    wf_array_contiguous(numbers, WF_REAL, WF_SHAPE(3, 6)),
        wf_array_contiguous(numbers, WF_REAL, WF_SHAPE(24)),   wf_array_contiguous(numbers, WF_REAL, WF_SHAPE(0)),
        wf_array_contiguous(numbers, WF_BOOL, WF_SHAPE(4, 6)), wf_array_contiguous(numbers, WF_BOOL, WF_SHAPE(2, 4, 6))};
    const wf_op op = {.name = "gives", .shape = like_first, .forward = copy_first, .backward = give_ill_fitting};
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++) {
        wf_tensor *x = wf_input(begin(WF_GRADIENTS), numbers, WF_SHAPE(4, 6), true);
        ill_fitting = &bad[i];
        ck_assert_int_eq(wf_backward(wf_apply(&op, NULL, 1, &x)), WF_ERR_SHAPE);
        refused_once(WF_ERR_SHAPE, "the backward gives operand 1, of shape [4,6], a gradient of shape");
    }
}
END_TEST

START_TEST(views_outside)
{
    wf_real v[12] = {0};
    for (int k = 0; k < 8; k++) {
        begin(WF_TRAIN);
        wf_tensor *x = wf_input(tape, v, WF_SHAPE(3, 4), true);
        wf_array a;
        ran(wf_view(x, &a));
        switch (k) {
        case 0:
            a.dim[0] = 4;
            break;
        case 1:
            a.data = (wf_real *)a.data + 1;
            break;
        case 2:
            a.data = (wf_real *)a.data - 1;
            break;
        case 3:
            a.stride[0] = 100;
            break;
        case 4:
            a.stride[1] = -1;
            break;
        case 5:
            a.dtype = WF_I8;
            break;
        case 6:
            a.ndim = 7;
            break;
        case 7:
            a.dim[1] = -4;
            break;
        }
        ck_refused(wf_apply_view("window", x, &a), WF_ERR_SHAPE, "window: the view of 'input' is not inside its storage");
    }
    static const wf_op nowhere = {.name = "nowhere", .view = true, .shape = like_first};
    wf_tensor *x = wf_input(tape, v, WF_SHAPE(3, 4), true);
    ck_refused(wf_apply(&nowhere, NULL, 1, &x), WF_ERR_SHAPE, "nowhere(input [3,4]): the view is not inside the operand's storage");
    x = wf_input(tape, v, WF_SHAPE(3, 4), true);
    wf_array a;
    ran(wf_view(x, &a));
    a.data = (wf_real *)a.data + 11; /* backwards */
    a.stride[0] = -4, a.stride[1] = -1;
    ck_assert(!wf_is_poison(wf_apply_view("backwards", x, &a)));
}
END_TEST

/* The header asks a shape function for dtype and dims; strides are not its business. */
static wf_status twice_shape(wf_call *c)
{
    wf_array *y = &c->out[0];
    y->dtype = WF_REAL;
    y->ndim = 2;
    y->dim[0] = c->in[0].dim[0];
    y->dim[1] = c->in[0].dim[1];
    return WF_OK;
}

static wf_status twice_forward(wf_call *c)
{
    wf_array x = wf_call_contiguous(c, &c->in[0]);
    for (int64_t i = 0; i < wf_array_count(&x); i++)
        ((wf_real *)c->out[0].data)[i] = 2 * ((const wf_real *)x.data)[i];
    return WF_OK;
}

START_TEST(shape_functions_that_set_dims_alone)
{
    static const wf_op twice = {.name = "twice", .shape = twice_shape, .forward = twice_forward};
    const wf_real data[] = {1, 2, 3, 4, 5, 6};
    wf_real y[6];
    begin(WF_INFER);
    wf_tensor *x = wf_input(tape, data, WF_SHAPE(2, 3), false);
    ran(wf_read(wf_apply(&twice, NULL, 1, &x), y, 6));
    for (int i = 0; i < 6; i++)
        ck_assert(y[i] == 2 * data[i]);
}
END_TEST

WF_TEST_MAIN("outside doors", more_operands_or_results_than_an_op_has, incomplete_descriptors, gradients_that_nobody_needs,
             gradients_that_do_not_fit, views_outside, shape_functions_that_set_dims_alone)
