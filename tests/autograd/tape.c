/* SPDX-License-Identifier: MIT */
/* The tape: gradients that meet, views, errors, memory, marks. */
#include <math.h>

#include <unistd.h>

#include <weft/compute.h>
#include <weft/ops.h>

#include "one_tape.h"

static wf_real grad_at(const wf_tensor *x, int64_t index)
{
    wf_array g;
    ran(wf_grad(x, &g));
    int64_t offset = 0;
    for (int d = g.ndim - 1; d >= 0; d--) {
        offset += index % g.dim[d] * g.stride[d];
        index /= g.dim[d];
    }
    return ((wf_real *)g.data)[offset];
}

START_TEST(a_tensor_used_twice)
{
    begin(WF_GRADIENTS);
    wf_real v[] = {1, 2, 3};
    wf_tensor *x = wf_input(tape, v, WF_SHAPE(3), true);
    wf_tensor *y = wf_add(x, x);
    wf_tensor *z = wf_add(wf_mul(y, y), y); /* 4x^2 + 2x */
    ran(wf_backward(wf_sum(z)));
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(grad_at(x, i), 8 * v[i] + 2, 1e-5);
}
END_TEST

START_TEST(diamonds_share_gradients)
{
    /* a and b get the same gradient by sharing; adding to one must not change the other. */
    begin(WF_GRADIENTS);
    wf_real v[] = {1, -2}, w[] = {0.5, 3};
    wf_tensor *a = wf_input(tape, v, WF_SHAPE(2), true), *b = wf_input(tape, w, WF_SHAPE(2), true);
    wf_tensor *s = wf_add(a, b), *t = wf_scale(a, 10), *u = wf_add(s, t);
    wf_tensor *loss = wf_add(wf_sum(u), wf_sum(wf_scale(b, 100)));
    ran(wf_backward(loss));
    for (int i = 0; i < 2; i++) {
        ck_assert_double_eq_tol(grad_at(a, i), 11, 1e-6);
        ck_assert_double_eq_tol(grad_at(b, i), 101, 1e-6);
    }
}
END_TEST

START_TEST(views_of_views)
{
    begin(WF_GRADIENTS);
    wf_real v[24];
    for (int i = 0; i < 24; i++)
        v[i] = (wf_real)i;
    wf_tensor *x = wf_input(tape, v, WF_SHAPE(4, 6), true), *part[3];
    wf_split(wf_scale(x, 2), 1, 3, part);                          /* three [4,2] */
    wf_tensor *t = wf_transpose(wf_slice(part[1], 0, 1, 2), 0, 1); /* [2,2] */
    wf_tensor *loss = wf_add(wf_sum(wf_mul(t, t)), wf_sum(wf_scale(part[0], 5)));
    ran(wf_backward(loss));
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 6; c++) {
            double want = c < 2 ? 10 : c < 4 && r >= 1 && r <= 2 ? 8 * v[r * 6 + c] : 0;
            ck_assert_double_eq_tol(grad_at(x, r * 6 + c), want, 1e-4);
        }
}
END_TEST

START_TEST(retained_gradients)
{
    begin(WF_GRADIENTS);
    wf_real v[] = {1, 2, 3, 4};
    wf_tensor *x = wf_input(tape, v, WF_SHAPE(2, 2), true);
    wf_tensor *y = wf_retain_grad(wf_scale(x, 3));
    wf_tensor *row = wf_retain_grad(wf_slice(y, 0, 1, 1)); /* a view */
    wf_tensor *loss = wf_add(wf_sum(wf_scale(row, 7)), wf_sum(y));
    ran(wf_backward(loss));
    ck_assert_double_eq_tol(grad_at(row, 0), 7, 1e-6);
    ck_assert_double_eq_tol(grad_at(y, 0), 1, 1e-6);
    ck_assert_double_eq_tol(grad_at(y, 3), 8, 1e-6);
    ck_assert_double_eq_tol(grad_at(x, 0), 3, 1e-6);
    ck_assert_double_eq_tol(grad_at(x, 2), 24, 1e-5);
    wf_array g;
    begin(WF_GRADIENTS);
    x = wf_input(tape, v, WF_SHAPE(2, 2), true);
    y = wf_scale(x, 3);
    ran(wf_backward(wf_sum(y)));
    ck_assert_int_eq(wf_grad(y, &g), WF_ERR_STATE);
}
END_TEST

START_TEST(values_given_up)
{
    begin(WF_GRADIENTS);
    wf_real *v = calloc(4096, sizeof *v), out[4096];
    wf_tensor *x = wf_input(tape, v, WF_SHAPE(4096), true);
    wf_tensor *y = wf_scale(x, 2), *z = wf_keep(wf_scale(y, 2)), *loss = wf_sum(z);
    double value;
    ran(wf_backward(loss));
    ran(wf_item(loss, &value));
    ran(wf_read(z, out, 4096));
    ran(wf_read(x, out, 4096));
    refused(wf_read(y, out, 4096), WF_ERR_STATE, "wf_keep");
    free(v);
}
END_TEST

START_TEST(errors_poison_and_first_wins)
{
    begin(WF_GRADIENTS);
    wf_real v[6] = {0};
    wf_tensor *a = wf_name(wf_input(tape, v, WF_SHAPE(2, 3), true), "queries");
    wf_tensor *b = wf_name(wf_input(tape, v, WF_SHAPE(2), true), "keys");
    wf_tensor *c = wf_add(a, b);
    ck_assert(wf_is_poison(c));
    ck_assert_int_eq(wf_dim(c, 0), 1);
    ck_assert_int_eq(wf_dim(c, -7), 1);
    wf_tensor *d = wf_sum(wf_mul(wf_transpose(c, 0, 1), a));
    ck_assert(wf_is_poison(d));
    double value = 3;
    refused(wf_item(d, &value), WF_ERR_SHAPE, "add(queries [2,3], keys [2])");
    ck_assert(isnan(value));
    refused(wf_backward(d), WF_ERR_SHAPE, "add(queries [2,3], keys [2])");
    begin(WF_GRADIENTS);
    ck_assert_int_eq(wf_tape_error(tape)->code, WF_OK);
}
END_TEST

START_TEST(stale_and_foreign_tensors)
{
    begin(WF_GRADIENTS);
    wf_real v[2] = {1, 2};
    wf_tensor *old = wf_name(wf_input(tape, v, WF_SHAPE(2), true), "old");
    begin(WF_GRADIENTS);
    wf_tensor *now = wf_input(tape, v, WF_SHAPE(2), true);
    ck_assert(wf_is_poison(wf_add(now, old)));
    refused(wf_backward(now), WF_ERR_STATE, "wf_tape_reset");
    wf_tape *other = new_tape();
    begin(WF_GRADIENTS);
    now = wf_input(tape, v, WF_SHAPE(2), true);
    wf_tape_reset(other, WF_GRADIENTS);
    wf_tensor *foreign = wf_name(wf_input(other, v, WF_SHAPE(2), true), "foreign");
    ck_assert(wf_is_poison(wf_mul(now, foreign)));
    refused(wf_backward(now), WF_ERR_STATE, "foreign");
    ck_assert_int_eq(wf_tape_error(other)->code, WF_OK);
    wf_tape_free(other);
}
END_TEST

START_TEST(backward_twice_and_without_record)
{
    begin(WF_GRADIENTS);
    wf_real v[2] = {1, 2};
    wf_tensor *x = wf_input(tape, v, WF_SHAPE(2), true), *y = wf_sum(x);
    ran(wf_backward(y));
    refused(wf_backward(y), WF_ERR_STATE, "used up the record of");
    begin(WF_INFER);
    x = wf_input(tape, v, WF_SHAPE(2), true);
    refused(wf_backward(wf_sum(x)), WF_ERR_STATE, "WF_INFER");
    begin(WF_GRADIENTS);
    x = wf_input(tape, v, WF_SHAPE(2), false);
    refused(wf_backward(wf_sum(x)), WF_ERR_STATE, "does not depend on a tensor that needs a gradient");
    begin(WF_GRADIENTS);
    x = wf_input(tape, v, WF_SHAPE(2), true);
    y = wf_sum(x);
    ran(wf_backward(y));
    ran(wf_backward(wf_sum(wf_scale(x, 2))));
    ck_assert_double_eq(grad_at(x, 1), 3);
}
END_TEST

/* --- memory -------------------------------------------------------------------------------------------------------- */

static wf_status one_step(wf_real *v)
{
    wf_tape_reset(tape, WF_TRAIN, .step = 1);
    wf_tensor *x = wf_input(tape, v, WF_SHAPE(256, 256), true);
    for (int i = 0; i < 6; i++)
        x = wf_add(x, wf_dropout(wf_gelu(wf_matmul(wf_layer_norm(x, NULL, NULL, 1e-5), x)), 0.1));
    return wf_backward(wf_mean(x));
}

START_TEST(steady_state_allocates_nothing)
{
    begin(WF_TRAIN);
    wf_real *v = calloc(65536, sizeof *v);
    for (int i = 0; i < 65536; i++)
        v[i] = (wf_real)(i % 97) / 97;
    bool fine = true;
    for (int i = 0; i < 10; i++)
        fine = fine && one_step(v) == WF_OK;
    int64_t before = wf_alloc_count();
    long faults = 1;
    for (int window = 0; window < FAULT_WINDOWS && faults > 0; window++) {
        faults = page_faults();
        for (int i = 0; i < 10; i++) /* no assertion of Check's in here: it allocates */
            fine = fine && one_step(v) == WF_OK;
        faults = page_faults() - faults;
    }
    ck_assert_int_eq(wf_alloc_count(), before);
    ck_assert(fine);
    if (!sanitized())
        ck_assert_int_eq(faults, 0);
    free(v);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    begin(WF_TRAIN);
    finish();
    wf_real *v = calloc(65536, sizeof *v);
    int64_t live = wf_alloc_live();
    bool done = false;
    for (int64_t n = 0; !done && n < 200; n++) {
        wf_error error = {0};
        wf_alloc_fail_after(n);
        tape = wf_tape_new(&error);
        if (tape) {
            wf_status status = one_step(v);
            done = status == WF_OK;
            ck_assert_msg(done || status == WF_ERR_MEMORY, "allocation %d: %s", (int)n, wf_tape_error(tape)->message);
            wf_alloc_fail_after(-1);
            ck_assert_int_eq(one_step(v), WF_OK); /* the tape is good for another try */
        } else {
            ck_assert_int_eq(error.code, WF_ERR_MEMORY);
        }
        wf_alloc_fail_after(-1);
        finish();
    }
    ck_assert(done);
    ck_assert_int_le(wf_alloc_live() - live, 8); /* scratch of the threads stays */
    free(v);
}
END_TEST

START_TEST(rewind_keeps_memory_flat)
{
    begin(WF_INFER);
    wf_real v[512] = {1};
    wf_tensor *state = wf_input(tape, v, WF_SHAPE(512), false);
    wf_tape_mark mark = wf_tape_here(tape);
    size_t used = 0;
    for (int i = 0; i < 100; i++) {
        wf_tensor *next = wf_affine(wf_affine(state, 1, 1), 1, 1);
        state = wf_tape_rewind(tape, mark, next);
        if (i == 1)
            used = wf_tape_stats(tape).used;
        if (i > 1)
            ck_assert_int_eq(wf_tape_stats(tape).used, used);
    }
    wf_real out[512];
    ran(wf_read(state, out, 512));
    ck_assert_double_eq_tol(out[0], 201, 1e-6);
    ck_assert_double_eq_tol(out[511], 200, 1e-6);
}
END_TEST

START_TEST(the_first_bad_tensor_is_named)
{
    begin(WF_GRADIENTS);
    wf_tape_check_finite(tape, true);
    wf_real v[4] = {1, 2, -1, 4};
    wf_tensor *x = wf_name(wf_input(tape, v, WF_SHAPE(4), true), "x");
    wf_tensor *y = wf_log(x);
    refused(wf_backward(wf_sum(wf_scale(y, 2))), WF_ERR_NUMERIC, "log(x [4])");
    refused(wf_backward(y), WF_ERR_NUMERIC, "the value nan at [2]");
}
END_TEST

START_TEST(wrong_precision_is_refused)
{
    ck_fails_null(wf_tape_new_abi(WF_ABI ^ 12, error), WF_ERR_ARGUMENT,
                  sizeof(wf_real) == 8 ? "library is 0.1.0 in double" : "library is 0.1.0 in float");
}
END_TEST

START_TEST(detached_values_stop_gradients)
{
    begin(WF_GRADIENTS);
    wf_real v[2] = {3, 4};
    wf_tensor *x = wf_input(tape, v, WF_SHAPE(2), true);
    ran(wf_backward(wf_sum(wf_mul(x, wf_detach(x)))));
    ck_assert_double_eq_tol(grad_at(x, 0), 3, 1e-6);
    ck_assert_double_eq_tol(grad_at(x, 1), 4, 1e-6);
}
END_TEST

START_TEST(tensors_are_printed)
{
    char page[512] = "";
    struct wf_string text = {0};
    wf_real v[6] = {1, -2.5, 3, 0.25, NAN, 6};
    begin(WF_TRAIN);
    FILE *to = fmemopen(page, sizeof page, "w");
    wf_tensor *x = wf_name(wf_input(tape, v, WF_SHAPE(2, 3), true), "x");
    ck_assert_int_eq(wf_print(to, x), WF_OK);
    ck_assert_int_eq(wf_print(to, wf_transpose(x, 0, 1)), WF_OK);
    ck_assert_int_eq(wf_print(to, wf_ids(tape, I32(7, -10), 1, 2)), WF_OK);
    ck_assert_int_eq(wf_print(to, wf_eq(x, x)), WF_OK);
    wf_tensor *bad = wf_matmul(x, x);
    ck_assert_int_eq(wf_print(to, bad), WF_ERR_SHAPE);
    ck_assert_int_eq(wf_print_text(&text, bad), WF_ERR_SHAPE);
    ck_assert_ptr_null(text.data);
    fclose(to);
    char want[512];
    snprintf(want, sizeof want,
             "x [2,3] %s\n[[ 1.0000, -2.5000,  3.0000],\n [ 0.2500,     nan,  6.0000]]\n"
             "transpose [3,2] %s\n[[ 1.0000,  0.2500],\n [-2.5000,     nan],\n [ 3.0000,  6.0000]]\n"
             "ids [1,2] I32\n[[  7, -10]]\n"
             "eq [2,3] BOOL\n[[ true,  true,  true],\n [ true, false,  true]]\n",
             wf_dtype_name(WF_REAL), wf_dtype_name(WF_REAL));
    ck_assert_msg(strncmp(page, want, strlen(want)) == 0, "%s", page);
    ck_assert_msg(strstr(page + strlen(want), ": matmul(x [2,3], x [2,3]): "), "%s", page + strlen(want));
    begin(WF_TRAIN);
    ck_assert_int_eq(wf_print_text(&text, wf_full(tape, &(wf_shape){0}, 2)), WF_OK);
    snprintf(want, sizeof want, "full [] %s\n2.\n", wf_dtype_name(WF_REAL));
    ck_assert_str_eq(text.data, want);
    ck_assert_int_eq(wf_print_text(&text, x), WF_ERR_STATE); /* of an earlier pass */
    wf_string_free(&text);
}
END_TEST

/* Blocks on other threads ask for scratch. The caller is slow, so that the others get blocks. */
static void ask_unless_caller(void *ctx, int64_t block)
{
    (void)block;
    if (wf_worker() == 0)
        usleep(2000);
    else
        *(_Atomic int *)ctx += wf_scratch(WF_SCRATCH_OP, 3000000) != NULL;
}

/* The thread that runs a block varies from step to step: the caller has the scratch that others asked for from the next step on. */
START_TEST(a_caller_that_comes_late_has_its_scratch)
{
    _Atomic int given = 0;
    begin(WF_GRADIENTS);
    ck_ok(wf_set_threads(2, error));
    for (int tries = 0; tries < 100 && given == 0; tries++) { /* after a stall the caller works alone */
        usleep(20000);
        wf_parallel(4, 1e9, ask_unless_caller, &given);
    }
    ck_assert_int_gt(given, 0);
    begin(WF_GRADIENTS);
    int64_t count = wf_alloc_count();
    ck_assert_ptr_nonnull(wf_scratch(WF_SCRATCH_OP, 3000000));
    ck_assert_int_eq(wf_alloc_count(), count);
}
END_TEST

WF_TEST_MAIN("tape", a_tensor_used_twice, diamonds_share_gradients, views_of_views, retained_gradients, values_given_up,
             errors_poison_and_first_wins, stale_and_foreign_tensors, backward_twice_and_without_record, steady_state_allocates_nothing,
             every_allocation_may_fail, rewind_keeps_memory_flat, the_first_bad_tensor_is_named, wrong_precision_is_refused,
             detached_values_stop_gradients, tensors_are_printed, a_caller_that_comes_late_has_its_scratch)
