/* SPDX-License-Identifier: MIT */
/* Setting and reading values, freezing by pattern, forgetting gradients. */
#include "registry_test.h"

START_TEST(a_parameter_is_set)
{
    wf_registry *registry = new_registry();
    wf_tensor *w = wf_parameter(wf_root(registry), "w", WF_SHAPE(2, 3));
    const wf_real six[6] = {1, 2, 3, 4, 5, 6};
    ck_fails(wf_parameter_set(w, six, 6, error), WF_ERR_STATE, "the parameter 'w' has no value yet");
    ck_ok(wf_registry_build(registry, 1, error));
    ck_ok(wf_parameter_set(w, six, 6, error));
    wf_tape *tape = new_tape();
    double sum;
    for (int mode = WF_INFER; mode <= WF_GRADIENTS; mode++) {
        wf_tape_reset(tape, (wf_mode)mode);
        ck_assert_int_eq(wf_item(wf_sum(w), &sum), WF_OK);
        ck_assert_double_eq(sum, 21);
    }
    ck_fails(wf_parameter_set(w, six, 5, error), WF_ERR_ARGUMENT, "'w' has 6 elements, but count is 5");
    ck_fails(wf_parameter_set(w, NULL, 6, error), WF_ERR_ARGUMENT, "'w' has 6 elements, but the values are NULL");
    ck_fails(wf_parameter_set(NULL, six, 6, error), WF_ERR_ARGUMENT, "'NULL' is no parameter");
    ck_fails(wf_parameter_set(wf_zeros(tape, WF_SHAPE(6)), six, 6, error), WF_ERR_ARGUMENT, "'zeros' is no parameter");
    ck_read(w, (wf_real[6]){0}, 6);
    wf_tape_free(tape);
    wf_registry_free(registry);
}
END_TEST

/* Earlier ops have read the old values: their backward is refused. That of later ops has the new values. */
START_TEST(a_parameter_is_set_in_a_pass)
{
    for (int frozen = 0; frozen < 2; frozen++) { /* a registry without gradients counts its updates too */
        wf_registry *registry = new_registry();
        wf_tensor *w = wf_parameter(wf_root(registry), "w", WF_SHAPE(2), .init = {WF_INIT_CONSTANT, 3}, .frozen = frozen);
        ck_ok(wf_registry_build(registry, 1, error));
        wf_tape *tape = new_tape();
        for (int late = 0; late < 2; late++) {
            wf_tape_reset(tape, WF_GRADIENTS);
            wf_tensor *x = wf_input(tape, (wf_real[]){1, 2}, WF_SHAPE(2), true), *y = late ? NULL : wf_sum(wf_mul(x, w));
            ck_ok(wf_parameter_set(w, (wf_real[]){5, 7}, 2, error));
            y = late ? wf_sum(wf_mul(x, w)) : y;
            if (late) {
                ck_backward(y);
                ck_assert(gradient_of(x)[0] == 5 && gradient_of(x)[1] == 7);
            } else {
                ck_assert_int_eq(wf_backward(y), WF_ERR_STATE);
                const char *message = wf_tape_error(tape)->message;
                ck_assert_msg(strstr(message, "mul(input [2], w [2])") && strstr(message, "'w' was changed"), "%s", message);
                wf_registry_zero_grads(registry);
            }
        }
        wf_tape_free(tape);
        wf_registry_free(registry);
    }
}
END_TEST

START_TEST(ids_and_bools_are_read)
{
    wf_tape *tape = new_tape();
    const int32_t ids[6] = {7, -1, 2147483647, 0, 5, 3};
    bool bools[300];
    int32_t out[300], guard = 123;
    wf_tensor *x = wf_ids(tape, ids, 2, 3);
    ck_assert_int_eq(wf_read_ids(x, out, 6), WF_OK);
    ck_assert_mem_eq(out, ids, sizeof ids);
    ck_assert_int_eq(wf_read_ids(wf_transpose(x, 0, 1), out, 6), WF_OK);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(out[i], ids[i % 2 * 3 + i / 2]);
    for (int n = 1; n <= 300; n += n < 10 ? 1 : 29) {
        for (int i = 0; i < n; i++)
            bools[i] = i * 7 % 5 < 2;
        out[n < 300 ? n : 299] = guard;
        ck_assert_int_eq(wf_read_ids(wf_bools(tape, bools, WF_SHAPE(n)), out, n), WF_OK);
        for (int i = 0; i < n; i++)
            ck_assert_int_eq(out[i], bools[i]);
        ck_assert(n == 300 || out[n] == guard);
    }
    ck_assert_int_eq(wf_read_ids(wf_ids(tape, NULL, 0, 3), NULL, 0), WF_OK);
    ck_assert_int_eq(wf_read_ids(wf_zeros(tape, WF_SHAPE(2)), out, 2), WF_ERR_SHAPE);
    ck_assert_str_eq(wf_tape_error(tape)->message,
                     sizeof(wf_real) == 4 ? "wf_read_ids: 'zeros' has 2 elements of dtype F32, but count is 2 i32 or bool elements"
                                          : "wf_read_ids: 'zeros' has 2 elements of dtype F64, but count is 2 i32 or bool elements");
    wf_tape_reset(tape, WF_INFER);
    ck_assert_int_eq(wf_read_ids(wf_ids(tape, ids, 1, 6), out, 5), WF_ERR_SHAPE);
    wf_tape_reset(tape, WF_INFER);
    ck_assert_int_eq(wf_read_ids(wf_ids(tape, ids, 1, 6), NULL, 6), WF_ERR_ARGUMENT);
    wf_tape_reset(tape, WF_INFER);
    ck_assert_int_eq(wf_read_ids(NULL, out, 6), WF_ERR_ARGUMENT);
    wf_tape_free(tape);
}
END_TEST

static int frozen(const wf_registry *registry)
{
    int count = 0;
    for (int i = 0; i < wf_registry_count(registry); i++)
        count += wf_parameter_info(wf_registry_at(registry, i))->frozen;
    return count;
}

START_TEST(freezing_by_pattern)
{
    wf_registry *registry = new_registry();
    struct model m;
    declare(wf_root(registry), &m);
    ck_assert_int_eq(frozen(registry), 2); /* the table of positions, and scale */
    ck_ok(wf_registry_freeze_matching(registry, "*", true, error));
    ck_assert_int_eq(frozen(registry), NAMES);
    ck_ok(wf_registry_freeze_matching(registry, "blocks.*.bias", false, error));
    ck_assert_int_eq(frozen(registry), NAMES - 4);
    ck_ok(wf_registry_build(registry, 1, error));
    ck_assert_int_eq(wf_registry_grads(registry)->blocks, 4);
    ck_ok(wf_registry_freeze_matching(registry, "*", false, error));
    ck_assert_int_eq(frozen(registry), 1); /* a table has no gradient */
    ck_fails(wf_registry_freeze_matching(registry, "block.*", true, error), WF_ERR_ARGUMENT, "no parameter's name fits \"block.*\"");
    ck_fails(wf_registry_freeze_matching(registry, NULL, true, error), WF_ERR_ARGUMENT, "the pattern is NULL");
    ck_fails(wf_registry_freeze_matching(NULL, "*", true, error), WF_ERR_ARGUMENT, "the registry is NULL");
    wf_registry_free(registry);
}
END_TEST

START_TEST(gradients_are_forgotten)
{
    wf_registry *registry = new_registry();
    wf_tensor *w = wf_parameter(wf_root(registry), "w", WF_SHAPE(2), .init = {WF_INIT_CONSTANT, 3});
    wf_registry_zero_grads(registry);
    ck_ok(wf_registry_build(registry, 1, error));
    wf_tape *tape = new_tape();
    for (int pass = 0; pass < 3; pass++) {
        wf_tape_reset(tape, WF_GRADIENTS);
        if (pass == 2)
            wf_registry_zero_grads(registry);
        ck_backward(wf_sum(wf_mul(w, w)));
        ck_assert_double_eq(wf_grads_at(wf_registry_grads(registry), w)[1], pass == 1 ? 12 : 6);
    }
    wf_tape_free(tape);
    wf_registry_free(registry);
}
END_TEST

WF_TEST_MAIN("values", a_parameter_is_set, a_parameter_is_set_in_a_pass, ids_and_bools_are_read, freezing_by_pattern,
             gradients_are_forgotten)
