/* SPDX-License-Identifier: MIT */
/* Arguments that no call can use: each is one line on the tape, and none is a crash, a write outside or a result in silence. */
#include <sys/mman.h>
#include <unistd.h>

#include <weft/internal/ops_all.h>
#include <weft/ops.h>

#include "doors_test.h"

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
}
END_TEST

/* Rows without elements, in any number: nothing may loop over them. */
START_TEST(rows_of_nothing)
{
    const int64_t n = (int64_t)1 << 40;
    for (int i = 0; i < 9; i++) {
        begin(WF_GRADIENTS);
        wf_tensor *x = wf_input(tape, NULL, WF_SHAPE(n, 0), true);
        wf_tensor *y = i == 0   ? wf_cumsum(x, 1)
                       : i == 1 ? wf_softmax(x)
                       : i == 2 ? wf_log_softmax(x, -1)
                       : i == 3 ? wf_dropout(x, 0.5)
                       : i == 4 ? wf_scan(x, x, NULL, 1)
                       : i == 5 ? wf_contiguous(wf_transpose(x, 0, 1))
                       : i == 6 ? wf_concat((wf_tensor *[]){x, x}, 2, 1)
                       : i == 7 ? wf_stack((wf_tensor *[]){x, x}, 2, 1)
                                : wf_exp(x);
        alarm(30);
        ck_assert_msg(wf_backward(wf_sum(y)) == WF_OK, "%d: %s", i, wf_tape_error(tape)->message);
        alarm(0);
    }
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
}
END_TEST

/* --- NULL ---------------------------------------------------------------------------------------------------------- */

#define ck_null(...)                                                                                                                       \
    do {                                                                                                                                   \
        wf_tensor *ck_result = __VA_ARGS__;                                                                                                \
        ck_assert_msg(ck_result &&wf_is_poison(ck_result), "%s", #__VA_ARGS__);                                                            \
        refused_once(WF_ERR_ARGUMENT, "NULL");                                                                                             \
    } while (0)

/* Each op in one of its cases, without its operands. */
START_TEST(null_operands_of_ops)
{
    for (int k = 0; k < wf_op_count(); k++) {
        const wf_op *op = wf_op_at(k);
        const struct wf_case *c = op->cases.list;
        wf_tensor *none[WF_MAX_INPUTS] = {NULL};
        begin(WF_GRADIENTS);
        if (wf_case_operands(c) > 0)
            ck_null(wf_apply(op, c->attr, wf_case_operands(c), none));
    }
}
END_TEST

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
    ck_null(wf_add(wf_zeros(tape, WF_SHAPE(2)), none));
    ck_null(wf_group_norm(none, 1, none, none, 1e-5));
    ck_null(wf_batch_norm(none, none, none, 1e-5, NULL, NULL));
    ck_null(wf_batch_norm_running(none, none, none, none, none, 1e-5));
    ck_null(wf_dropout(none, 0.1));
    ck_null(wf_conv(none, none, none));
    ck_null(wf_max_pool(none, 2));
    ck_null(wf_avg_pool_with(none, 2, NULL));
    ck_null(wf_adaptive_avg_pool(none, 1, 1));
    ck_null(wf_resize(none, 1, 1, WF_RESIZE_LINEAR));
    ck_null(wf_conv_transpose_with(none, none, none, NULL));
    ck_null(wf_bce_with_logits(none, none));
    ck_null(wf_kl_div_with(none, none, NULL));
    ck_null(wf_cosine_similarity(none, none, 1e-12));
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

/* The list of lengths is read only if the operands say how long it is. */
START_TEST(key_lengths_that_do_not_fit)
{
    enum { N = 2000, D = 4 };
    static wf_real data[N * D];
    const int32_t offsets[] = {0, N / 2, N}, *lengths = at_the_edge(I32(3, 5), 2);
    begin(WF_INFER);
    wf_tensor *x = wf_input(tape, data, WF_SHAPE(N, D), false);
    ck_refused(wf_attention(x, x, x, .heads = 2, .packed = {offsets, 2}, .key_lengths = lengths), WF_ERR_ARGUMENT,
               "packed rows cannot be combined with key_lengths, starts or weights");
    x = wf_input(tape, data, WF_SHAPE(N, D), false);
    ck_refused(wf_attention(x, x, x, .heads = 2, .key_lengths = lengths), WF_ERR_SHAPE, "q must be [B,T,H*E]");
    x = wf_input(tape, data, WF_SHAPE(N, 1, D), false);
    wf_tensor *two = wf_input(tape, data, WF_SHAPE(2, 5, D), false);
    ck_refused(wf_attention(x, two, two, .heads = 2, .key_lengths = lengths), WF_ERR_SHAPE, "q, k and v must have the same B");
    two = wf_input(tape, data, WF_SHAPE(2, 5, D), false);
    ck_assert(!wf_is_poison(wf_attention(two, two, two, .heads = 2, .key_lengths = lengths)));
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
}
END_TEST

WF_TEST_MAIN("doors", rows_of_nothing, results_whose_size_overflows, arrays_that_are_none, no_data, null_operands, null_operands_of_ops,
             key_lengths_that_do_not_fit, marks_of_elsewhere, modes)
