/* SPDX-License-Identifier: MIT */
/* Parameters on the tape: gradients that add up, views, slabs of gradients, threads; and on which tape their ops run. */
#include <pthread.h>

#include <weft/internal/parameter.h>
#include <weft/ops.h>

#include "one_tape.h"

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
                                                         .value = wf_array_contiguous(values + 16 * index, WF_REAL, WF_SHAPE(2, 4)),
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
        begin(WF_GRADIENTS);
        /* p is used twice, once transposed through a view; q is broken into halves */
        wf_tensor *a = wf_matmul(p, wf_transpose(p, 0, 1)); /* [2,2] */
        wf_tensor *b = wf_mul(wf_slice(q, 0, 1, 1), frozen);
        ran(wf_backward(wf_add(wf_sum(a), wf_sum(b))));
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
    begin(WF_GRADIENTS);
    ran(wf_backward(wf_sum(p)));
    ck_assert_double_eq_tol(slab[3], 1, 1e-6);
    ck_assert(!valid[1]);
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
}
END_TEST

/* Ops on parameters, views and detached parameters give what they give on inputs with the same numbers. */
START_TEST(parameters_are_tensors)
{
    wf_tensor *p = parameter(0, false);
    wf_array g;
    wf_grads_zero(&grads);
    begin(WF_GRADIENTS);
    ran(wf_backward(wf_sum(wf_mul(p, wf_detach(p)))));
    for (int j = 0; j < 8; j++)
        ck_assert(slab[j] == values[j]);
    ran(wf_grad(p, &g));
    ck_assert_ptr_eq(g.data, slab);
    wf_grads_zero(&grads);
    begin(WF_GRADIENTS);
    refused(wf_backward(wf_sum(wf_detach(p))), WF_ERR_STATE, "does not depend on a tensor that needs a gradient");
    wf_grads_zero(&grads);
    begin(WF_GRADIENTS);
    wf_tensor *half = wf_slice(wf_reshape(wf_transpose(p, 0, 1), 8), 0, 2, 4); /* elements 1, 5, 2, 6 */
    ck_assert_int_eq(wf_ndim(half), 1);
    ran(wf_backward(half));
    for (int j = 0; j < 8; j++)
        ck_assert(slab[j] == (j % 4 == 1 || j % 4 == 2));
    wf_grads_zero(&grads);
    begin(WF_GRADIENTS);
    ran(wf_backward(p));
    for (int j = 0; j < 8; j++)
        ck_assert(slab[j] == 1);
    begin(WF_INFER);
    double sum;
    ran(wf_item(wf_sum(wf_add(p, wf_scale(p, -1))), &sum));
    ck_assert(sum == 0);
}
END_TEST

/* wf_grad gives the gradients of this pass, and the registry's for a parameter that the pass did not use. Asking for a missing gradient
 * does not fail the tape. */
START_TEST(gradients_of_parameters)
{
    wf_tensor *p = parameter(0, false), *q = parameter(1, false);
    wf_array g;
    wf_grads_zero(&grads);
    wf_grads_zero(&grads2);
    begin(WF_GRADIENTS);
    ran(wf_backward(wf_sum(q)));
    wf_tape_reset(tape, WF_GRADIENTS, .grads = &grads2);
    wf_tensor *x = wf_zeros(tape, WF_SHAPE(2, 4)), *y = wf_add(p, x), *loss = wf_sum(y);
    ck_assert_int_eq(wf_grad(y, &g), WF_ERR_STATE);
    ran(wf_backward(loss));
    ck_assert_int_eq(wf_grad(y, &g), WF_ERR_STATE);
    ck_assert_int_eq(wf_grad(x, &g), WF_ERR_STATE);
    ran(wf_grad(p, &g));
    ck_assert_ptr_eq(g.data, slab2);
    ran(wf_grad(q, &g));
    ck_assert_ptr_eq(g.data, slab + 16);
    ck_assert_int_eq(wf_tape_error(tape)->code, WF_OK);
}
END_TEST

/* --- expressions of parameters alone: which tape ------------------------------------------------------------------- */

START_TEST(the_tape_used_last)
{
    wf_tensor *p = parameter(0, false);
    wf_tape *a = new_tape(), *b = new_tape();
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
    expect_error(wf_add(wf_detach(p), x), WF_ERR_STATE, "is on another tape");
    wf_tape_free(b);
    wf_tensor *none = wf_mul(p, p); /* a was not used since */
    ck_assert_ptr_null(wf_tape_of(none));
    expect_error(none, WF_ERR_STATE, "wf_tape_use");
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

/* Ops on parameters alone do not run on a tape that another thread freed or uses now. */
START_TEST(tapes_that_changed_hands)
{
    wf_tensor *p = parameter(0, false);
    for (int i = 0; i < 2; i++) {
        wf_tape *mine = new_tape();
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
    wf_tape *mine = new_tape();
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
    ck_ok(wf_init(error));
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
    ck_assert_mem_eq(a.out, b.out, 4 * sizeof *a.out);
    ck_assert_mem_eq(a.out, alone.out, 4 * sizeof *a.out);
    ck_assert(a.sum == 0 && b.sum == 0 && alone.sum == 0);
}
END_TEST

WF_TEST_MAIN("tape parameters", parameters_accumulate_and_tie, a_failed_backward_breaks_the_gradients, parameters_are_tensors,
             gradients_of_parameters, the_tape_used_last, tapes_that_changed_hands, two_threads_share_parameters)
