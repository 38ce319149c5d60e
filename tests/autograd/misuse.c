/* SPDX-License-Identifier: MIT */
/* Calls at the wrong time: each is an error of the tape, and none is a crash or a wrong number. */
#include <math.h>

#include <weft/nn.h>
#include <weft/optim.h>

#include "one_tape.h"

START_TEST(poison_outlives_no_reset)
{
    begin(WF_INFER);
    double value;
    wf_real out;
    begin(WF_GRADIENTS);
    wf_tensor *bad = wf_matmul(wf_zeros(tape, WF_SHAPE(2, 3)), wf_zeros(tape, WF_SHAPE(2, 3)));
    begin(WF_GRADIENTS);
    refused(wf_item(bad, &value), WF_ERR_STATE, "before the last wf_tape_reset");
    begin(WF_GRADIENTS);
    refused(wf_read(bad, &out, 1), WF_ERR_STATE, "before the last wf_tape_reset");
    begin(WF_GRADIENTS);
    expect_error(wf_add(wf_zeros(tape, WF_SHAPE(2)), bad), WF_ERR_STATE, "add");
    ck_fails(wf_tape_status(tape, error), WF_ERR_STATE, wf_tape_error(tape)->message);
}
END_TEST

START_TEST(parameters_before_they_are_built)
{
    wf_registry *registry = wf_registry_new(NULL);
    struct wf_linear m;
    wf_linear_init(wf_root(registry), &m, 64, 64);
    begin(WF_INFER);
    for (int mode = 0; mode < 2; mode++) {
        begin(mode ? WF_TRAIN : WF_INFER);
        wf_tensor *y = wf_linear_forward(&m, wf_zeros(tape, WF_SHAPE(2, 64)));
        expect_error(y, WF_ERR_STATE, "'weight' has no value yet");
        begin(WF_TRAIN);
        expect_error(wf_mul(m.weight, m.weight), WF_ERR_STATE, "'weight' has no value yet");
    }
    wf_array view;
    begin(WF_TRAIN);
    refused(wf_view(m.weight, &view), WF_ERR_STATE, "wf_view: the parameter 'weight' has no value yet");
    ck_ok(wf_registry_build(registry, 1, error));
    begin(WF_TRAIN);
    ck_assert(!wf_is_poison(wf_linear_forward(&m, wf_zeros(tape, WF_SHAPE(2, 64)))));
    wf_registry_free(registry);
}
END_TEST

/* Parameters have no tape: the one that the thread used last has the message. */
START_TEST(reads_of_parameters)
{
    wf_registry *registry = wf_registry_new(NULL);
    wf_tensor *w = wf_parameter(wf_root(registry), "w", WF_SHAPE(2, 3));
    ck_ok(wf_registry_build(registry, 1, error));
    begin(WF_INFER);
    double value;
    wf_real out[6];
    refused(wf_item(w, &value), WF_ERR_SHAPE, "wf_item: 'w' has shape [2,3]");
    begin(WF_INFER);
    refused(wf_read(w, out, 5), WF_ERR_SHAPE, "wf_read: 'w' has 6 elements");
    begin(WF_INFER);
    refused(wf_read(w, NULL, 6), WF_ERR_ARGUMENT, "wf_read: the place for 'w' is NULL");
    finish();
    ck_assert_int_eq(wf_item(w, &value), WF_ERR_SHAPE);
    wf_registry_free(registry);
}
END_TEST

/* The memory of a name is the tape's. */
START_TEST(names_end_with_their_pass)
{
    begin(WF_INFER);
    wf_tensor *x = wf_name(wf_zeros(tape, WF_SHAPE(2)), "a name");
    ck_assert_str_eq(wf_name_of(x), "a name");
    begin(WF_INFER);
    ck_assert_str_ne(wf_name_of(x), "a name");
    ck_assert(wf_is_poison(wf_reshape(x, 1, 2)));
    ck_assert_msg(!strstr(wf_tape_error(tape)->message, "a name"), "%s", wf_tape_error(tape)->message);
}
END_TEST

START_TEST(retaining_a_view_that_was_used)
{
    begin(WF_GRADIENTS);
    wf_real v[4] = {1, 2, 3, 4};
    wf_tensor *x = wf_input(tape, v, WF_SHAPE(4), true), *view = wf_slice(x, 0, 1, 2), *y = wf_sum(wf_mul(view, view));
    ck_assert(wf_is_poison(wf_retain_grad(view)));
    refused(wf_backward(y), WF_ERR_STATE, "directly after creating the view");
}
END_TEST

START_TEST(shapes_of_too_many_dimensions)
{
    begin(WF_INFER);
    wf_shape shape = {7, {1, 1, 1, 1, 1, 1}};
    wf_real one = 1;
    expect_error(wf_input(tape, &one, &shape, false), WF_ERR_SHAPE, "0 to 6 dimensions");
}
END_TEST

/* The sum over broadcast rows holds scratch memory of its thread while other threads run blocks that want more of it. Attention of unequal
 * lengths once took that memory away. */
START_TEST(scratch_is_kept_over_a_region)
{
    ck_ok(wf_init(error, .threads = 2));
    enum { B = 4, T = 512, S = 600, E = 16 };
    wf_real *k = calloc(B * S * E, sizeof *k), *q = calloc(B * T * E, sizeof *q), bias[E] = {0};
    for (int i = 0; i < B * S * E; i++)
        k[i] = (wf_real)(i * 7919 % 101) / 100 - (wf_real)0.5;
    for (int i = 0; i < B * T * E; i++)
        q[i] = (wf_real)(i * 31 % 97) / 100;
    int32_t lengths[B] = {500, 500, S, 500};
    begin(WF_INFER);
    wf_real first[E];
    for (int round = 0; round < 5; round++) {
        begin(WF_TRAIN);
        wf_tensor *K = wf_input(tape, k, WF_SHAPE(B, S, E), false), *b = wf_input(tape, bias, WF_SHAPE(E), true);
        wf_tensor *y = wf_attention(wf_add(wf_input(tape, q, WF_SHAPE(B, T, E), false), b), K, K, .key_lengths = lengths);
        wf_array g;
        ran(wf_backward(y));
        ran(wf_grad(b, &g));
        if (round == 0)
            memcpy(first, g.data, sizeof first);
        ck_assert(fabs((double)first[0]) > 1e-3);
        ck_assert_mem_eq(first, g.data, sizeof first);
    }
    free(k);
    free(q);
}
END_TEST

START_TEST(a_failure_without_an_error_is_one)
{
    begin(WF_INFER);
    ck_fails(wf_tape_status(tape, error), WF_ERR_STATE, "");
}
END_TEST

WF_TEST_MAIN("misuse", poison_outlives_no_reset, parameters_before_they_are_built, reads_of_parameters, names_end_with_their_pass,
             retaining_a_view_that_was_used, shapes_of_too_many_dimensions, scratch_is_kept_over_a_region,
             a_failure_without_an_error_is_one)
