/* SPDX-License-Identifier: MIT */
/* The tape: gradients that meet, views, errors, memory, marks. */
#include <math.h>
#include <pthread.h>

#include <weft/internal/parameter.h>
#include <weft/op.h>
#include <weft/ops.h>

#include "one_tape.h"

static wf_real grad_at(const wf_tensor *x, int64_t index)
{
    wf_array g;
    ck_assert_int_eq(wf_grad(x, &g), WF_OK);
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
    wf_tensor *x = wf_input(tape, v, &(wf_shape){1, {3}}, true);
    wf_tensor *y = wf_add(x, x);
    wf_tensor *z = wf_add(wf_mul(y, y), y); /* 4x^2 + 2x */
    ck_assert_int_eq(wf_backward(wf_sum(z)), WF_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(grad_at(x, i), 8 * v[i] + 2, 1e-5);
    finish();
}
END_TEST

START_TEST(diamonds_share_gradients)
{
    /* a and b get the same gradient by sharing; adding to one must not change the other. */
    begin(WF_GRADIENTS);
    wf_real v[] = {1, -2}, w[] = {0.5, 3};
    wf_tensor *a = wf_input(tape, v, &(wf_shape){1, {2}}, true), *b = wf_input(tape, w, &(wf_shape){1, {2}}, true);
    wf_tensor *s = wf_add(a, b), *t = wf_scale(a, 10), *u = wf_add(s, t);
    wf_tensor *loss = wf_add(wf_sum(u), wf_sum(wf_scale(b, 100)));
    ck_assert_int_eq(wf_backward(loss), WF_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_double_eq_tol(grad_at(a, i), 11, 1e-6);
        ck_assert_double_eq_tol(grad_at(b, i), 101, 1e-6);
    }
    finish();
}
END_TEST

START_TEST(views_of_views)
{
    begin(WF_GRADIENTS);
    wf_real v[24];
    for (int i = 0; i < 24; i++)
        v[i] = (wf_real)i;
    wf_tensor *x = wf_input(tape, v, &(wf_shape){2, {4, 6}}, true), *part[3];
    wf_split(wf_scale(x, 2), 1, 3, part);                          /* three [4,2] */
    wf_tensor *t = wf_transpose(wf_slice(part[1], 0, 1, 2), 0, 1); /* [2,2] */
    wf_tensor *loss = wf_add(wf_sum(wf_mul(t, t)), wf_sum(wf_scale(part[0], 5)));
    ck_assert_int_eq(wf_backward(loss), WF_OK);
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 6; c++) {
            double want = c < 2 ? 10 : c < 4 && r >= 1 && r <= 2 ? 8 * v[r * 6 + c] : 0;
            ck_assert_double_eq_tol(grad_at(x, r * 6 + c), want, 1e-4);
        }
    finish();
}
END_TEST

START_TEST(retained_gradients)
{
    begin(WF_GRADIENTS);
    wf_real v[] = {1, 2, 3, 4};
    wf_tensor *x = wf_input(tape, v, &(wf_shape){2, {2, 2}}, true);
    wf_tensor *y = wf_retain_grad(wf_scale(x, 3));
    wf_tensor *row = wf_retain_grad(wf_slice(y, 0, 1, 1)); /* a view */
    wf_tensor *loss = wf_add(wf_sum(wf_scale(row, 7)), wf_sum(y));
    ck_assert_int_eq(wf_backward(loss), WF_OK);
    ck_assert_double_eq_tol(grad_at(row, 0), 7, 1e-6);
    ck_assert_double_eq_tol(grad_at(y, 0), 1, 1e-6);
    ck_assert_double_eq_tol(grad_at(y, 3), 8, 1e-6);
    ck_assert_double_eq_tol(grad_at(x, 0), 3, 1e-6);
    ck_assert_double_eq_tol(grad_at(x, 2), 24, 1e-5);
    wf_array g;
    begin(WF_GRADIENTS);
    x = wf_input(tape, v, &(wf_shape){2, {2, 2}}, true);
    y = wf_scale(x, 3);
    ck_assert_int_eq(wf_backward(wf_sum(y)), WF_OK);
    ck_assert_int_eq(wf_grad(y, &g), WF_ERR_STATE);
    finish();
}
END_TEST

START_TEST(values_given_up)
{
    begin(WF_GRADIENTS);
    wf_real *v = calloc(4096, sizeof *v), out[4096];
    wf_tensor *x = wf_input(tape, v, &(wf_shape){1, {4096}}, true);
    wf_tensor *y = wf_scale(x, 2), *z = wf_keep(wf_scale(y, 2)), *loss = wf_sum(z);
    double value;
    ck_assert_int_eq(wf_backward(loss), WF_OK);
    ck_assert_int_eq(wf_item(loss, &value), WF_OK);
    ck_assert_int_eq(wf_read(z, out, 4096), WF_OK);
    ck_assert_int_eq(wf_read(x, out, 4096), WF_OK);
    refused(wf_read(y, out, 4096), WF_ERR_STATE, "wf_keep");
    free(v);
    finish();
}
END_TEST

START_TEST(errors_poison_and_first_wins)
{
    begin(WF_GRADIENTS);
    wf_real v[6] = {0};
    wf_tensor *a = wf_name(wf_input(tape, v, &(wf_shape){2, {2, 3}}, true), "queries");
    wf_tensor *b = wf_name(wf_input(tape, v, &(wf_shape){1, {2}}, true), "keys");
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
    wf_tape_reset(tape, WF_GRADIENTS);
    ck_assert_int_eq(wf_tape_error(tape)->code, WF_OK);
    finish();
}
END_TEST

START_TEST(stale_and_foreign_tensors)
{
    begin(WF_GRADIENTS);
    wf_real v[2] = {1, 2};
    wf_error error = {0};
    wf_tensor *old = wf_name(wf_input(tape, v, &(wf_shape){1, {2}}, true), "old");
    wf_tape_reset(tape, WF_GRADIENTS);
    wf_tensor *now = wf_input(tape, v, &(wf_shape){1, {2}}, true);
    ck_assert(wf_is_poison(wf_add(now, old)));
    refused(wf_backward(now), WF_ERR_STATE, "wf_tape_reset");
    wf_tape *other = wf_tape_new(&error);
    wf_tape_reset(tape, WF_GRADIENTS);
    now = wf_input(tape, v, &(wf_shape){1, {2}}, true);
    wf_tape_reset(other, WF_GRADIENTS);
    wf_tensor *foreign = wf_name(wf_input(other, v, &(wf_shape){1, {2}}, true), "foreign");
    ck_assert(wf_is_poison(wf_mul(now, foreign)));
    refused(wf_backward(now), WF_ERR_STATE, "foreign");
    ck_assert_int_eq(wf_tape_error(other)->code, WF_OK);
    wf_tape_free(other);
    finish();
}
END_TEST

START_TEST(backward_twice_and_without_record)
{
    begin(WF_GRADIENTS);
    wf_real v[2] = {1, 2};
    wf_tensor *x = wf_input(tape, v, &(wf_shape){1, {2}}, true), *y = wf_sum(x);
    ck_assert_int_eq(wf_backward(y), WF_OK);
    refused(wf_backward(y), WF_ERR_STATE, "used up the record of");
    begin(WF_INFER);
    x = wf_input(tape, v, &(wf_shape){1, {2}}, true);
    refused(wf_backward(wf_sum(x)), WF_ERR_STATE, "WF_INFER");
    begin(WF_GRADIENTS);
    x = wf_input(tape, v, &(wf_shape){1, {2}}, false);
    refused(wf_backward(wf_sum(x)), WF_ERR_STATE, "does not depend on a tensor that needs a gradient");
    begin(WF_GRADIENTS);
    x = wf_input(tape, v, &(wf_shape){1, {2}}, true);
    y = wf_sum(x);
    ck_assert_int_eq(wf_backward(y), WF_OK);
    ck_assert_int_eq(wf_backward(wf_sum(wf_scale(x, 2))), WF_OK);
    ck_assert_double_eq(grad_at(x, 1), 3);
    finish();
}
END_TEST

/* --- parameters ---------------------------------------------------------------------------------------------------- */

static wf_real values[64], slab[64], slab2[64];
static bool valid[4], valid2[4];
static struct wf_grads_place place[4] = {{0, 8}, {16, 8}, {32, 8}, {48, 8}};
static wf_grads grads, grads2;
static wf_tensor *parameter(int index, bool frozen)
{
    static void *memory[4];
    static char names[4][8] = {"p0", "p1", "p2", "p3"};
    grads = (wf_grads){.slab = slab, .count = 64, .place = place, .valid = valid, .parameters = 4};
    grads2 = (wf_grads){.slab = slab2, .count = 64, .place = place, .valid = valid2, .parameters = 4};
    free(memory[index]);
    memory[index] = malloc(wf_parameter_size());
    for (int i = 0; i < 16; i++)
        values[16 * index + i] = (wf_real)(i + 1) / 8;
    return wf_parameter_init(memory[index],
                             &(struct wf_parameter_info){.name = names[index],
                                                         .index = index,
                                                         .offset = 16 * index,
                                                         .value = wf_array_contiguous(values + 16 * index, WF_REAL, &(wf_shape){2, {2, 4}}),
                                                         .frozen = frozen,
                                                         .grads = &grads});
}

static int ready_count[4];
static void ready(void *ctx, int index)
{
    (void)ctx;
    ready_count[index]++;
}

START_TEST(parameters_accumulate_and_tie)
{
    wf_tensor *p = parameter(0, false), *q = parameter(1, false), *frozen = parameter(2, true);
    grads.ready = ready;
    begin(WF_GRADIENTS);
    for (int pass = 1; pass <= 2; pass++) {
        wf_tape_reset(tape, WF_GRADIENTS);
        /* p is used twice, once transposed through a view; q is broken into halves */
        wf_tensor *a = wf_matmul(p, wf_transpose(p, 0, 1)); /* [2,2] */
        wf_tensor *b = wf_mul(wf_slice(q, 0, 1, 1), frozen);
        ck_assert_int_eq(wf_backward(wf_add(wf_sum(a), wf_sum(b))), WF_OK);
        ck_assert_int_eq(ready_count[0], pass);
        ck_assert_int_eq(ready_count[1], pass);
        ck_assert_int_eq(ready_count[2], 0);
        for (int j = 0; j < 8; j++) {
            double want = 2 * (values[j % 4] + values[j % 4 + 4]);
            ck_assert_double_eq_tol(slab[j], pass * want, 1e-5);
            ck_assert_double_eq_tol(slab[16 + j], j < 4 ? 0 : pass * (values[32 + j - 4] + values[32 + j]), 1e-5);
        }
    }
    ck_assert(!valid[2]);
    wf_grads_zero(&grads);
    wf_tape_reset(tape, WF_GRADIENTS);
    ck_assert_int_eq(wf_backward(wf_sum(p)), WF_OK);
    ck_assert_double_eq_tol(slab[3], 1, 1e-6);
    ck_assert(!valid[1]);
    finish();
}
END_TEST

START_TEST(a_failed_backward_breaks_the_gradients)
{
    wf_tensor *p = parameter(0, false);
    begin(WF_GRADIENTS);
    wf_tensor *x = p;
    wf_tensor *bad = wf_matmul(x, x); /* [2,4] x [2,4] */
    refused(wf_backward(wf_sum(bad)), WF_ERR_SHAPE, "matmul(p0 [2,4], p0 [2,4])");
    ck_assert(grads.broken);
    wf_grads_zero(&grads);
    ck_assert(!grads.broken);
    finish();
}
END_TEST

/* Ops on parameters, views and detached parameters give what they give on inputs with the same numbers. */
START_TEST(parameters_are_tensors)
{
    wf_tensor *p = parameter(0, false);
    wf_array g;
    wf_grads_zero(&grads);
    begin(WF_GRADIENTS);
    ck_assert_int_eq(wf_backward(wf_sum(wf_mul(p, wf_detach(p)))), WF_OK);
    for (int j = 0; j < 8; j++)
        ck_assert(slab[j] == values[j]);
    ck_assert_int_eq(wf_grad(p, &g), WF_OK);
    ck_assert_ptr_eq(g.data, slab);
    wf_grads_zero(&grads);
    wf_tape_reset(tape, WF_GRADIENTS);
    ck_assert_int_eq(wf_backward(wf_sum(wf_detach(p))), WF_ERR_STATE);
    ck_assert_ptr_nonnull(strstr(wf_tape_error(tape)->message, "does not depend on a tensor that needs a gradient"));
    wf_grads_zero(&grads);
    wf_tape_reset(tape, WF_GRADIENTS);
    wf_tensor *half = wf_slice(wf_reshape(wf_transpose(p, 0, 1), 8), 0, 2, 4); /* elements 1, 5, 2, 6 */
    ck_assert_int_eq(wf_ndim(half), 1);
    ck_assert_int_eq(wf_backward(half), WF_OK);
    for (int j = 0; j < 8; j++)
        ck_assert(slab[j] == (j % 4 == 1 || j % 4 == 2));
    wf_grads_zero(&grads);
    wf_tape_reset(tape, WF_GRADIENTS);
    ck_assert_int_eq(wf_backward(p), WF_OK);
    for (int j = 0; j < 8; j++)
        ck_assert(slab[j] == 1);
    wf_tape_reset(tape, WF_INFER);
    double sum;
    ck_assert_int_eq(wf_item(wf_sum(wf_add(p, wf_scale(p, -1))), &sum), WF_OK);
    ck_assert(sum == 0);
    finish();
}
END_TEST

/* The pass's own gradients, and the registry's for a parameter that the pass did not use. Asking for one that is not there fails nothing.
 */
START_TEST(gradients_of_parameters)
{
    wf_tensor *p = parameter(0, false), *q = parameter(1, false);
    wf_array g;
    wf_grads_zero(&grads);
    wf_grads_zero(&grads2);
    begin(WF_GRADIENTS);
    ck_assert_int_eq(wf_backward(wf_sum(q)), WF_OK);
    wf_tape_reset(tape, WF_GRADIENTS, .grads = &grads2);
    wf_tensor *x = wf_zeros(tape, WF_SHAPE(2, 4)), *y = wf_add(p, x), *loss = wf_sum(y);
    ck_assert_int_eq(wf_grad(y, &g), WF_ERR_STATE);
    ck_assert_int_eq(wf_backward(loss), WF_OK);
    ck_assert_int_eq(wf_grad(y, &g), WF_ERR_STATE);
    ck_assert_int_eq(wf_grad(x, &g), WF_ERR_STATE);
    ck_assert_int_eq(wf_grad(p, &g), WF_OK);
    ck_assert_ptr_eq(g.data, slab2);
    ck_assert_int_eq(wf_grad(q, &g), WF_OK);
    ck_assert_ptr_eq(g.data, slab + 16);
    ck_assert_int_eq(wf_tape_error(tape)->code, WF_OK);
    finish();
}
END_TEST

/* --- expressions of parameters alone: which tape ------------------------------------------------------------------- */

START_TEST(the_tape_used_last)
{
    wf_tensor *p = parameter(0, false);
    wf_error error = {0};
    wf_tape *a = wf_tape_new(&error), *b = wf_tape_new(&error);
    wf_tape_reset(a, WF_GRADIENTS);
    wf_tape_reset(b, WF_INFER);
    ck_assert_ptr_eq(wf_tape_of(wf_mul(p, p)), b);
    wf_tensor *x = wf_zeros(a, WF_SHAPE(2, 4));
    ck_assert_ptr_eq(wf_tape_of(wf_mul(p, p)), a);
    ck_assert_ptr_eq(wf_tape_of(p), a);
    wf_zeros(b, WF_SHAPE(1));
    ck_assert_ptr_eq(wf_tape_of(wf_mul(p, x)), a); /* an operand has the say */
    wf_tape_use(b);
    ck_assert_ptr_eq(wf_tape_of(wf_transpose(p, 0, 1)), b);
    ck_assert(wf_is_poison(wf_add(wf_detach(p), x)));
    ck_assert_ptr_nonnull(strstr(wf_tape_error(b)->message, "is on another tape"));
    wf_tape_free(b);
    wf_tensor *none = wf_mul(p, p); /* a was not used since */
    ck_assert(wf_is_poison(none));
    ck_assert_ptr_null(wf_tape_of(none));
    ck_assert_ptr_nonnull(strstr(wf_tape_error(wf_tape_of(none))->message, "wf_tape_use"));
    double value;
    ck_assert_int_eq(wf_item(wf_sum(wf_reshape(none, -1)), &value), WF_ERR_STATE);
    ck_assert_int_eq(wf_backward(none), WF_ERR_STATE);
    wf_tape_use(a);
    ck_assert(!wf_is_poison(wf_mul(p, p)));
    wf_tape_free(a);
}
END_TEST

static void *free_it(void *of)
{
    wf_tape_free(of);
    return NULL;
}

static void *use_it(void *of)
{
    wf_tape_reset(of, WF_INFER);
    return NULL;
}

/* A tape that another thread freed, or uses now, is nobody else's. */
START_TEST(tapes_that_changed_hands)
{
    wf_tensor *p = parameter(0, false);
    wf_error error = {0};
    for (int i = 0; i < 2; i++) {
        wf_tape *mine = wf_tape_new(&error);
        ck_assert(!wf_is_poison(wf_mul(p, p)));
        pthread_t thread;
        pthread_create(&thread, NULL, i ? use_it : free_it, mine);
        pthread_join(thread, NULL);
        ck_assert(wf_is_poison(wf_mul(p, p)));
        if (i) {
            wf_tape_use(mine);
            ck_assert(!wf_is_poison(wf_mul(p, p)));
            wf_tape_free(mine);
        }
    }
}
END_TEST

struct shared_use {
    wf_tensor *p;
    wf_grads *grads;
    wf_real out[8];
    double sum;
};
static void *use_in_thread(void *ctx)
{
    struct shared_use *u = ctx;
    wf_error error = {0};
    wf_tape *mine = wf_tape_new(&error);
    for (int i = 0; i < 200; i++) {
        wf_tape_reset(mine, WF_INFER);
        wf_tensor *y = wf_gelu(wf_matmul(u->p, wf_transpose(u->p, 0, 1)));
        if (wf_read(y, u->out, 4) != WF_OK)
            u->sum = NAN;
        wf_tape_reset(mine, WF_GRADIENTS, .grads = u->grads);
        if (wf_backward(wf_sum(wf_mul(u->p, u->p))) != WF_OK)
            u->sum = NAN;
    }
    wf_tape_free(mine);
    return NULL;
}

START_TEST(two_threads_share_parameters)
{
    struct shared_use a = {.p = parameter(0, false), .grads = &grads}, b = {.p = a.p, .grads = &grads2}, alone = a;
    wf_error error = {0};
    ck_assert_int_eq(wf_init(&error), WF_OK);
    wf_grads_zero(&grads);
    wf_grads_zero(&grads2);
    pthread_t t, s;
    pthread_create(&t, NULL, use_in_thread, &a);
    pthread_create(&s, NULL, use_in_thread, &b);
    pthread_join(t, NULL);
    pthread_join(s, NULL);
    ck_assert(slab[5] == slab2[5]);
    ck_assert_double_eq_tol(slab[5], 200 * 2 * values[5], 1e-3);
    wf_grads_zero(&grads);
    use_in_thread(&alone);
    ck_assert_int_eq(memcmp(a.out, b.out, 4 * sizeof *a.out), 0);
    ck_assert_int_eq(memcmp(a.out, alone.out, 4 * sizeof *a.out), 0);
    ck_assert(a.sum == 0 && b.sum == 0 && alone.sum == 0);
}
END_TEST

/* --- memory -------------------------------------------------------------------------------------------------------- */

static wf_status one_step(wf_real *v)
{
    wf_tape_reset(tape, WF_TRAIN, .step = 1);
    wf_tensor *x = wf_input(tape, v, &(wf_shape){2, {256, 256}}, true);
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
    finish();
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
    wf_tensor *state = wf_input(tape, v, &(wf_shape){1, {512}}, false);
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
    ck_assert_int_eq(wf_read(state, out, 512), WF_OK);
    ck_assert_double_eq_tol(out[0], 201, 1e-6);
    ck_assert_double_eq_tol(out[511], 200, 1e-6);
    finish();
}
END_TEST

START_TEST(the_first_bad_tensor_is_named)
{
    begin(WF_GRADIENTS);
    wf_tape_check_finite(tape, true);
    wf_real v[4] = {1, 2, -1, 4};
    wf_tensor *x = wf_name(wf_input(tape, v, &(wf_shape){1, {4}}, true), "x");
    wf_tensor *y = wf_log(x);
    refused(wf_backward(wf_sum(wf_scale(y, 2))), WF_ERR_NUMERIC, "log(x [4])");
    refused(wf_backward(y), WF_ERR_NUMERIC, "element 2");
    finish();
}
END_TEST

START_TEST(wrong_precision_is_refused)
{
    wf_error error = {0};
    ck_assert_ptr_null(wf_tape_new_abi(WF_ABI ^ 12, &error));
    ck_assert_int_eq(error.code, WF_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, sizeof(wf_real) == 8 ? "library is 0.1.0 in double" : "library is 0.1.0 in float"));
}
END_TEST

START_TEST(detached_values_stop_gradients)
{
    begin(WF_GRADIENTS);
    wf_real v[2] = {3, 4};
    wf_tensor *x = wf_input(tape, v, &(wf_shape){1, {2}}, true);
    ck_assert_int_eq(wf_backward(wf_sum(wf_mul(x, wf_detach(x)))), WF_OK);
    ck_assert_double_eq_tol(grad_at(x, 0), 3, 1e-6);
    ck_assert_double_eq_tol(grad_at(x, 1), 4, 1e-6);
    finish();
}
END_TEST

WF_TEST_MAIN("tape", a_tensor_used_twice, diamonds_share_gradients, views_of_views, retained_gradients, values_given_up,
             errors_poison_and_first_wins, stale_and_foreign_tensors, backward_twice_and_without_record, parameters_accumulate_and_tie,
             parameters_are_tensors, gradients_of_parameters, the_tape_used_last, tapes_that_changed_hands,
             a_failed_backward_breaks_the_gradients, two_threads_share_parameters, steady_state_allocates_nothing,
             every_allocation_may_fail, rewind_keeps_memory_flat, the_first_bad_tensor_is_named, wrong_precision_is_refused,
             detached_values_stop_gradients)
