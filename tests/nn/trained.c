/* SPDX-License-Identifier: MIT */
/* Only trained parameters have gradients: the memory of these, and their fate when parameters are frozen. */
#include "nn_test.h"

/* a [2,3], b [20], c [5]; b is in the middle, so that its place matters. */
struct three {
    wf_registry *registry;
    wf_tape *tape;
    wf_tensor *p[3];
};
static const int64_t sizes[3] = {6, 20, 5};

static struct three declare(unsigned frozen)
{
    static const char *const name[3] = {"a", "b", "c"};
    struct three t = {.registry = new_registry(), .tape = new_tape()};
    for (int i = 0; i < 3; i++)
        t.p[i] =
            wf_parameter(wf_root(t.registry), name[i], WF_SHAPE(sizes[i]), .init = {WF_INIT_CONSTANT, i + 1}, .frozen = frozen >> i & 1);
    ck_ok(wf_registry_build(t.registry, 1, error));
    return t;
}

static void drop(struct three *t)
{
    wf_tape_free(t->tape);
    wf_registry_free(t->registry);
}

/* The gradient of each parameter in `which` is its number, 1 to 3, times `factor`. */
static wf_status backward(struct three *t, wf_grads *grads, unsigned which, double factor)
{
    wf_tape_reset(t->tape, WF_GRADIENTS, .grads = grads);
    wf_tensor *loss = wf_input(t->tape, (wf_real[]){0}, WF_SHAPE(1), true);
    for (int i = 0; i < 3; i++)
        if (which >> i & 1)
            loss = wf_add(loss, wf_scale(wf_sum(t->p[i]), factor * (i + 1)));
    return wf_backward(wf_sum(loss));
}

/* Each parameter's gradient is that of passes whose factors add up to sum[i]; 0: there is none. */
static void expect(struct three *t, wf_grads *grads, const double sum[3])
{
    for (int i = 0; i < 3; i++) {
        const wf_real *g = wf_grads_at(grads, t->p[i]);
        ck_assert_msg((g != NULL) == (sum[i] != 0), "%s", wf_name_of(t->p[i]));
        for (int64_t k = 0; g && k < sizes[i]; k++)
            ck_assert_msg(g[k] == (wf_real)(sum[i] * (i + 1)), "%s[%d] is %g", wf_name_of(t->p[i]), (int)k, (double)g[k]);
        wf_array view;
        if (grads == wf_registry_grads(t->registry))
            ck_assert_int_eq(wf_grad(t->p[i], &view), sum[i] != 0 ? WF_OK : WF_ERR_STATE);
    }
}

START_TEST(room_for_what_is_trained)
{
    for (unsigned frozen = 0; frozen < 8; frozen++) {
        struct three t = declare(frozen);
        wf_error e = {0};
        wf_grads *all[2] = {wf_registry_grads(t.registry), wf_grads_new(t.registry, &e)};
        for (int i = 0; i < 2; i++) {
            int64_t room = (frozen & 1 ? 0 : 16) + (frozen & 2 ? 0 : 32) + (frozen & 4 ? 0 : 16);
            ck_assert_int_eq(all[i]->count, room);
            if (frozen == 7)
                continue;
            for (int pass = 1; pass <= 2; pass++)
                ck_assert_int_eq(backward(&t, i ? all[i] : NULL, 7, pass), WF_OK);
            expect(&t, all[i], (double[]){frozen & 1 ? 0 : 3, frozen & 2 ? 0 : 3, frozen & 4 ? 0 : 3});
        }
        wf_grads_free(all[1]);
        drop(&t);
    }
}
END_TEST

/* A parameter that was frozen when the gradients were made is refused by name until there is room for it; nothing else is lost. */
START_TEST(trained_again)
{
    struct three t = declare(2);
    wf_error e = {0};
    wf_grads *grads = wf_registry_grads(t.registry), *own = wf_grads_new(t.registry, &e);
    ck_assert_int_eq(backward(&t, NULL, 7, 1), WF_OK);
    wf_registry_freeze(t.registry, t.p[1], false);
    expect(&t, grads, (double[]){1, 0, 1});
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(backward(&t, i ? own : NULL, 7, 1), WF_ERR_STATE);
        ck_says(wf_tape_error(t.tape)->message, "'b' was frozen when the gradients were created");
        ck_says(wf_tape_error(t.tape)->message, i ? "wf_grads_new" : "wf_registry_gradients");
        (i ? own : grads)->broken = false;
        ck_assert_int_eq(backward(&t, i ? own : NULL, 5, 2), WF_OK); /* without it */
    }
    expect(&t, grads, (double[]){3, 0, 3});
    ck_ok(wf_registry_gradients(t.registry, error));
    ck_assert_ptr_eq(wf_registry_grads(t.registry), grads);
    ck_assert_int_eq(grads->count, 64);
    expect(&t, grads, (double[]){3, 0, 3});
    ck_assert_int_eq(backward(&t, NULL, 7, 4), WF_OK);
    expect(&t, grads, (double[]){7, 4, 7});
    wf_grads_free(own);
    drop(&t);
}
END_TEST

/* An old gradient reaches neither a norm nor an update; wf_registry_gradients gives its memory back. */
START_TEST(frozen_later)
{
    struct three t = declare(0);
    wf_grads *grads = wf_registry_grads(t.registry);
    ck_assert_int_eq(backward(&t, NULL, 7, 1), WF_OK);
    wf_registry_freeze(t.registry, t.p[0], true);
    expect(&t, grads, (double[]){0, 1, 1});
    ck_assert_int_eq(backward(&t, NULL, 7, 1), WF_OK);
    expect(&t, grads, (double[]){0, 2, 2});
    ck_assert_int_eq(grads->count, 64);
    wf_registry_freeze(t.registry, t.p[0], false); /* its room is still there */
    ck_assert_int_eq(backward(&t, NULL, 7, 1), WF_OK);
    expect(&t, grads, (double[]){1, 3, 3});
    wf_registry_freeze(t.registry, t.p[0], true);
    ck_ok(wf_registry_gradients(t.registry, error));
    ck_assert_int_eq(grads->count, 48);
    expect(&t, grads, (double[]){0, 3, 3});
    drop(&t);
}
END_TEST

/* Frozen and made smaller between forward and backward: refused, and nothing is written where there is no room. */
START_TEST(frozen_within_a_pass)
{
    struct three t = declare(3);
    wf_registry_freeze(t.registry, t.p[0], false);
    ck_ok(wf_registry_gradients(t.registry, error));
    wf_tape_reset(t.tape, WF_GRADIENTS);
    wf_tape_use(t.tape);
    wf_tensor *loss = wf_sum(wf_mul(t.p[0], t.p[0]));
    wf_registry_freeze(t.registry, t.p[0], true);
    ck_ok(wf_registry_gradients(t.registry, error));
    ck_assert_int_eq(wf_backward(loss), WF_ERR_STATE);
    ck_says(wf_tape_error(t.tape)->message, "'a' lost the room for its gradient during this pass");
    ck_assert(wf_registry_grads(t.registry)->broken);
    drop(&t);
}
END_TEST

/* Frozen before build, by wf_registry_freeze: no memory is asked for at any time. */
START_TEST(frozen_before_build)
{
    wf_registry *r = new_registry();
    wf_tensor *large = wf_parameter(wf_root(r), "large", WF_SHAPE(1 << 20)), *small = wf_parameter(wf_root(r), "small", WF_SHAPE(3));
    wf_registry_freeze(r, large, true);
    ck_assert(wf_parameter_info(large)->frozen && !wf_parameter_info(small)->frozen);
    ck_ok(wf_registry_build(r, 1, error));
    ck_assert_int_eq(wf_registry_grads(r)->count, 16);
    wf_registry_free(r);
}
END_TEST

START_TEST(without_memory)
{
    struct three t = declare(2);
    wf_grads *grads = wf_registry_grads(t.registry);
    ck_assert_int_eq(backward(&t, NULL, 7, 1), WF_OK);
    wf_registry_freeze(t.registry, t.p[1], false);
    int64_t live = wf_alloc_live();
    for (int64_t n = 0;; n++) {
        wf_error e = {0};
        wf_alloc_fail_after(n);
        wf_status status = wf_registry_gradients(t.registry, &e);
        wf_alloc_fail_after(-1);
        ck_assert_int_eq(wf_alloc_live(), live);
        expect(&t, grads, (double[]){1, 0, 1});
        if (status == WF_OK) {
            ck_assert_int_ge(n, 5);
            break;
        }
        ck_assert_int_eq(status, WF_ERR_MEMORY);
    }
    drop(&t);
}
END_TEST

WF_TEST_MAIN("trained", room_for_what_is_trained, trained_again, frozen_later, frozen_within_a_pass, frozen_before_build, without_memory)
