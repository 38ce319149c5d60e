/* SPDX-License-Identifier: MIT */
/* Arguments that no call can use: each is one line on the tape, and none is a crash, a write outside or a result in silence. */
#include <sys/mman.h>
#include <unistd.h>

#include <weft/op.h>
#include <weft/ops.h>

#include "one_tape.h"

/* The tape's error; the tape is good for another pass after it. */
static void refused_once(wf_status code, const char *part)
{
    refused(wf_tape_error(tape)->code, code, part);
    wf_tape_reset(tape, wf_tape_mode(tape));
    ck_assert_int_eq(wf_tape_error(tape)->code, WF_OK);
}

#define ck_refused(tensor, code, part)                                                                                                     \
    do {                                                                                                                                   \
        ck_assert(wf_is_poison(tensor));                                                                                                   \
        refused_once(code, part);                                                                                                          \
    } while (0)

/* A list of int32_t with nothing readable behind it. */
static const int32_t *at_the_edge(const int32_t *list, int64_t count)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
    return memcpy(pages + page - (size_t)count * sizeof *list, list, (size_t)count * sizeof *list);
}

/* --- sizes --------------------------------------------------------------------------------------------------------- */

START_TEST(results_whose_size_overflows)
{
    const int64_t n = (int64_t)1 << 31;
    begin(WF_INFER);
    ck_refused(wf_matmul(wf_zeros(tape, WF_SHAPE(n, 0)), wf_zeros(tape, WF_SHAPE(0, n))), WF_ERR_SHAPE,
               "matmul(zeros [2147483648,0], zeros [0,2147483648]): a result of shape [2147483648,2147483648] is invalid or too large");
    ck_refused(wf_linear(wf_zeros(tape, WF_SHAPE(n, 0)), wf_zeros(tape, WF_SHAPE(n, 0)), NULL), WF_ERR_SHAPE, "too large");
    ck_refused(wf_add(wf_zeros(tape, WF_SHAPE(n, 1, 0)), wf_zeros(tape, WF_SHAPE(n, 0))), WF_ERR_SHAPE, "too large");
    ck_refused(wf_zeros(tape, WF_SHAPE(n, n, n, 0)), WF_ERR_SHAPE, "zeros: the shape [2147483648,2147483648,2147483648,0] is invalid");
    ck_refused(wf_reshape(wf_zeros(tape, WF_SHAPE(0)), n, n, n, 0), WF_ERR_SHAPE, "reshape");
    wf_tensor *part = wf_zeros(tape, WF_SHAPE((int64_t)1 << 58, 0)), *parts[8] = {part, part, part, part, part, part, part, part};
    ck_refused(wf_concat(parts, 8, 0), WF_ERR_SHAPE, "too large");
    finish();
}
END_TEST

/* --- ops of others ------------------------------------------------------------------------------------------------- */

static wf_status like_first(wf_call *c)
{
    c->out[0] = wf_call_like(c, &c->in[0]);
    return WF_OK;
}

static wf_status copy_first(wf_call *c)
{
    wf_array_copy(&c->out[0], &c->in[0]);
    return WF_OK;
}

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
    finish();
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
    static const wf_op no_forward = {.name = "no_forward", .shape = like_first}, no_shape = {.name = "no_shape", .forward = copy_first},
                       attributes = {.name = "attributes", .attr_size = 64, .shape = like_first, .forward = copy_first},
                       one_of_two = {.name = "one_of_two", .outputs = 2, .shape = like_first, .forward = copy_first},
                       negative = {.name = "negative", .shape = negative_size, .forward = copy_first},
                       seven = {.name = "seven", .shape = seven_dims, .forward = copy_first},
                       temporary = {.name = "temporary", .shape = like_first, .forward = huge_temporary};
    begin(WF_INFER);
    wf_tensor *x = wf_zeros(tape, WF_SHAPE(2)), *out[2];
    ck_refused(wf_apply(&no_forward, NULL, 1, &x), WF_ERR_ARGUMENT, "no_forward: the op's descriptor lacks");
    x = wf_zeros(tape, WF_SHAPE(2));
    ck_refused(wf_apply(&no_shape, NULL, 1, &x), WF_ERR_ARGUMENT, "no_shape: the op's descriptor lacks");
    x = wf_zeros(tape, WF_SHAPE(2));
    ck_refused(wf_apply(&attributes, NULL, 1, &x), WF_ERR_ARGUMENT, "attr is NULL");
    x = wf_zeros(tape, WF_SHAPE(2));
    wf_apply_multi(&one_of_two, NULL, 1, &x, 2, out);
    ck_assert(wf_is_poison(out[0]) && wf_is_poison(out[1]));
    refused_once(WF_ERR_SHAPE, "one_of_two(zeros [2]): the op's shape function does not set each of the 2 results to 0 to 6 dimensions");
    x = wf_zeros(tape, WF_SHAPE(2));
    ck_refused(wf_apply(&seven, NULL, 1, &x), WF_ERR_SHAPE, "seven(zeros [2]): the op's shape function does not set each of the 1 results");
    x = wf_zeros(tape, WF_SHAPE(2));
    ck_refused(wf_apply(&negative, NULL, 1, &x), WF_ERR_SHAPE, "negative(zeros [2]): a result of shape [-4] is invalid");
    x = wf_zeros(tape, WF_SHAPE(2));
    ck_refused(wf_apply(&temporary, NULL, 1, &x), WF_ERR_SHAPE, "temporary(zeros [2]): a temporary array is invalid or too large");
    finish();
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
    finish();
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
    finish();
}
END_TEST

START_TEST(views_outside)
{
    wf_real v[12] = {0};
    for (int k = 0; k < 8; k++) {
        begin(WF_TRAIN);
        wf_tensor *x = wf_input(tape, v, WF_SHAPE(3, 4), true);
        wf_array a;
        ck_assert_int_eq(wf_view(x, &a), WF_OK);
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
    ck_assert_int_eq(wf_view(x, &a), WF_OK);
    a.data = (wf_real *)a.data + 11; /* backwards */
    a.stride[0] = -4, a.stride[1] = -1;
    ck_assert(!wf_is_poison(wf_apply_view("backwards", x, &a)));
    finish();
}
END_TEST

/* --- data that come in --------------------------------------------------------------------------------------------- */

START_TEST(arrays_that_are_none)
{
    wf_real v[4] = {0};
    const wf_array good = wf_array_contiguous(v, WF_REAL, WF_SHAPE(2, 2));
    begin(WF_INFER);
    for (int k = 0; k < 8; k++) {
        wf_array a = good;
        switch (k) {
        case 0:
            a.dtype = (wf_dtype)99;
            break;
        case 1:
            a.dtype = (wf_dtype)-1;
            break;
        case 2:
            a.dtype = WF_DTYPE_COUNT;
            break;
        case 3:
            a.ndim = 7;
            break;
        case 4:
            a.ndim = -1;
            break;
        case 5:
            a.dim[1] = -2;
            break;
        case 6:
            a.dim[0] = a.dim[1] = (int64_t)1 << 31;
            break;
        case 7:
            a.data = NULL;
            break;
        }
        ck_refused(wf_borrow(tape, &a), WF_ERR_ARGUMENT, "wf_borrow: the array's dtype, shape or data are invalid");
    }
    ck_assert(!wf_is_poison(wf_borrow(tape, &good)));
    finish();
}
END_TEST

START_TEST(no_data)
{
    begin(WF_INFER);
    ck_refused(wf_ids(tape, NULL, 2, 3), WF_ERR_ARGUMENT, "ids: the data are NULL");
    ck_refused(wf_input(tape, NULL, WF_SHAPE(2), true), WF_ERR_ARGUMENT, "input: the data are NULL");
    ck_refused(wf_bools(tape, NULL, WF_SHAPE(2)), WF_ERR_ARGUMENT, "bools: the data are NULL");
    ck_assert(!wf_is_poison(wf_ids(tape, NULL, 0, 3)));
    ck_refused(wf_zeros(tape, NULL), WF_ERR_ARGUMENT, "zeros: the shape is NULL");
    ck_refused(wf_reshape_to(wf_zeros(tape, WF_SHAPE(2)), NULL), WF_ERR_SHAPE, "reshape(zeros [2]): the shape is NULL");
    ck_refused(wf_expand_to(wf_zeros(tape, WF_SHAPE(2)), NULL), WF_ERR_ARGUMENT, "expand: attr is NULL");
    ck_refused(wf_borrow(tape, NULL), WF_ERR_ARGUMENT, "wf_borrow");
    ck_assert_int_eq(wf_read(wf_zeros(tape, WF_SHAPE(2)), NULL, 2), WF_ERR_ARGUMENT);
    refused_once(WF_ERR_ARGUMENT, "wf_read: the place for 'zeros' is NULL");
    finish();
}
END_TEST

/* --- NULL ---------------------------------------------------------------------------------------------------------- */

#define ck_null(...)                                                                                                                       \
    do {                                                                                                                                   \
        wf_tensor *ck_result = __VA_ARGS__;                                                                                                \
        ck_assert_msg(ck_result &&wf_is_poison(ck_result), "%s", #__VA_ARGS__);                                                            \
        refused_once(WF_ERR_ARGUMENT, "NULL");                                                                                             \
    } while (0)

START_TEST(null_operands)
{
    begin(WF_GRADIENTS);
    wf_tensor *none = NULL, *parts[2] = {NULL};
    wf_real v[2] = {1, 2};
    double value;
    wf_array view = wf_array_contiguous(v, WF_REAL, WF_SHAPE(2));
    ck_null(wf_reshape(none, 2, 3));
    ck_null(wf_transpose(none, 0, 1));
    ck_null(wf_slice(none, 0, 0, 1));
    ck_null(wf_contiguous(none));
    ck_null(wf_expand(none, 2, 3));
    ck_null((wf_split(none, 0, 2, parts), parts[1]));
    ck_null(wf_sum(none));
    ck_null(wf_mean_dim(none, 0, false));
    ck_null(wf_add(none, none));
    ck_null(wf_add(wf_zeros(tape, WF_SHAPE(2)), none));
    ck_null(wf_scale(none, 2));
    ck_null(wf_gelu(none));
    ck_null(wf_softmax(none));
    ck_null(wf_dropout(none, 0.1));
    ck_null(wf_linear(none, none, none));
    ck_null(wf_embedding(none, none));
    ck_null(wf_layer_norm(none, none, none, 1e-5));
    ck_null(wf_attention(none, none, none, .heads = 2));
    ck_null(wf_attention_with(none, none, none, NULL));
    ck_null(wf_cross_entropy(none, none));
    ck_null(wf_detach(none));
    ck_null(wf_keep(none));
    ck_null(wf_retain_grad(none));
    ck_null(wf_name(none, "x"));
    ck_null(wf_apply_view("view", none, &view));
    ck_assert_int_eq(wf_item(none, &value), WF_ERR_ARGUMENT);
    refused_once(WF_ERR_ARGUMENT, "wf_item: the tensor is NULL");
    ck_assert_int_eq(wf_read(none, v, 2), WF_ERR_ARGUMENT);
    refused_once(WF_ERR_ARGUMENT, "wf_read: the tensor is NULL");
    ck_assert_int_eq(wf_view(none, &view), WF_ERR_ARGUMENT);
    refused_once(WF_ERR_ARGUMENT, "wf_view: the tensor is NULL");
    ck_assert_int_eq(wf_backward(none), WF_ERR_ARGUMENT);
    refused_once(WF_ERR_ARGUMENT, "wf_backward: the tensor is NULL");
    ck_assert_int_eq(wf_grad(none, &view), WF_ERR_ARGUMENT);
    ck_assert(wf_ndim(none) == 0 && wf_dim(none, 0) == 1 && wf_shape_of(none).ndim == 0 && wf_dtype_of(none) == WF_REAL);
    ck_assert(wf_is_poison(none) && wf_parameter_info(none) == NULL);
    ck_assert_str_eq(wf_name_of(none), "NULL");
    ck_assert(!wf_is_poison(wf_name(wf_zeros(tape, WF_SHAPE(2)), NULL)));
    finish();
    /* Without a tape there is poison, and no crash. */
    ck_assert(wf_is_poison(wf_reshape(none, 2)) && wf_is_poison(wf_add(none, none)) && wf_is_poison(wf_keep(none)));
    ck_assert(wf_tape_of(none) == NULL);
    ck_assert_int_eq(wf_item(none, &value), WF_ERR_ARGUMENT);
}
END_TEST

/* --- attention ----------------------------------------------------------------------------------------------------- */

/* The list of lengths is read only where the operands say how long it is. */
START_TEST(key_lengths_that_do_not_fit)
{
    enum { N = 2000, D = 4 };
    static wf_real data[N * D];
    const int32_t offsets[] = {0, N / 2, N}, *lengths = at_the_edge((const int32_t[]){3, 5}, 2);
    begin(WF_INFER);
    wf_tensor *x = wf_input(tape, data, WF_SHAPE(N, D), false);
    ck_refused(wf_attention(x, x, x, .heads = 2, .q_offsets = offsets, .sequences = 2, .key_lengths = lengths), WF_ERR_ARGUMENT,
               "packed rows cannot be combined with key_lengths, mask or weights");
    x = wf_input(tape, data, WF_SHAPE(N, D), false);
    ck_refused(wf_attention(x, x, x, .heads = 2, .key_lengths = lengths), WF_ERR_SHAPE, "q must be [B,T,H*E]");
    x = wf_input(tape, data, WF_SHAPE(N, 1, D), false);
    wf_tensor *two = wf_input(tape, data, WF_SHAPE(2, 5, D), false);
    ck_refused(wf_attention(x, two, two, .heads = 2, .key_lengths = lengths), WF_ERR_SHAPE, "q, k and v must have the same B");
    two = wf_input(tape, data, WF_SHAPE(2, 5, D), false);
    ck_assert(!wf_is_poison(wf_attention(two, two, two, .heads = 2, .key_lengths = lengths)));
    finish();
}
END_TEST

/* --- the tape ------------------------------------------------------------------------------------------------------ */

START_TEST(marks_of_elsewhere)
{
    begin(WF_INFER);
    wf_tape *other = wf_tape_new(NULL);
    while (wf_tape_here(other).word[5] != wf_tape_here(tape).word[5]) /* as many passes */
        wf_tape_reset(other, WF_INFER);
    for (int i = 0; i < 1000; i++)
        ck_assert(!wf_is_poison(wf_zeros(other, WF_SHAPE(10000))));
    ck_refused(wf_tape_rewind(tape, wf_tape_here(other), NULL), WF_ERR_ARGUMENT, "the mark was not taken on this tape");
    ck_refused(wf_tape_rewind(tape, (wf_tape_mark){0}, NULL), WF_ERR_ARGUMENT, "the mark was not taken on this tape");
    wf_tape_mark first = wf_tape_here(tape);
    for (int i = 0; i < 1000; i++)
        wf_zeros(tape, WF_SHAPE(10000));
    wf_tape_mark second = wf_tape_here(tape);
    ck_assert_ptr_null(wf_tape_rewind(tape, first, NULL));
    ck_refused(wf_tape_rewind(tape, second, NULL), WF_ERR_STATE, "an earlier rewind went back behind this mark");
    wf_tape_free(other);
    finish();
}
END_TEST

START_TEST(modes)
{
    begin(WF_INFER);
    wf_tape_reset(tape, (wf_mode)7);
    ck_assert(wf_is_poison(wf_zeros(tape, WF_SHAPE(2))));
    ck_assert_ptr_nonnull(strstr(wf_tape_error(tape)->message, "wf_tape_reset: the mode 7 is unknown"));
    begin(WF_TRAIN);
    ck_assert(!wf_is_poison(wf_zeros(tape, WF_SHAPE(2))));
    finish();
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
    ck_assert_int_eq(wf_read(wf_apply(&twice, NULL, 1, &x), y, 6), WF_OK);
    for (int i = 0; i < 6; i++)
        ck_assert(y[i] == 2 * data[i]);
    finish();
}
END_TEST

WF_TEST_MAIN("doors", results_whose_size_overflows, more_operands_or_results_than_an_op_has, incomplete_descriptors,
             gradients_that_nobody_needs, gradients_that_do_not_fit, views_outside, arrays_that_are_none, no_data, null_operands,
             key_lengths_that_do_not_fit, marks_of_elsewhere, modes, shape_functions_that_set_dims_alone)
