/* SPDX-License-Identifier: MIT */
/* Several registries on one tape: each has its own gradients, and a gradient slab serves one registry only. */
#include "nn_test.h"

static const char different[] = "belong to different registries";

/* Linear maps without biases: the parameters "NAME.0.weight", "NAME.1.weight" ... [width, width]. */
struct model {
    wf_registry *registry;
    struct wf_linear map[3];
    int maps;
};

static struct model model_of(const char *name, int maps, int64_t width)
{
    struct model m = {.registry = new_registry(), .maps = maps};
    for (int i = 0; i < maps; i++)
        wf_linear_init(wf_sub_at(wf_root(m.registry), name, i), &m.map[i], width, width, .no_bias = true);
    ck_ok(wf_registry_build(m.registry, 3, error));
    return m;
}

static wf_grads *slab_of(const struct model *m)
{
    wf_error e = {0};
    wf_grads *grads = wf_grads_new(m->registry, &e);
    ck_assert_msg(grads != NULL, "%s", e.message);
    return grads;
}

/* The sum of all elements of a map's weight, whose gradient is 1 everywhere. */
static wf_tensor *weight_sum(wf_tape *tape, const struct model *m, int map)
{
    wf_tape_use(tape);
    return wf_sum(m->map[map].weight);
}

static void expect_refused(wf_tape *tape, wf_tensor *loss, const char *parameter, const char *words)
{
    wf_status status = wf_backward(loss); /* first: what is not refused writes outside a slab, which AddressSanitizer sees */
    ck_assert_int_eq(status, WF_ERR_STATE);
    ck_assert(wf_is_poison(loss));
    ck_says(wf_tape_error(tape)->message, parameter);
    ck_says(wf_tape_error(tape)->message, words);
}

/* The first `count` numbers of a slab are all `value`. */
static void expect_slab(const wf_grads *grads, int64_t count, double value)
{
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg((double)grads->slab[i] == value, "element %lld is %g, not %g", (long long)i, (double)grads->slab[i], value);
}

/* B's parameters lie beyond the end of A's slab, or where A has another parameter. */
START_TEST(parameters_of_another_registry)
{
    for (int64_t width = 4; width <= 256; width *= 8) {
        struct model a = model_of("a", 1, 8), b = model_of("b", 3, width);
        wf_grads *own = slab_of(&a);
        wf_tape *tape = new_tape();
        wf_tape_reset(tape, WF_GRADIENTS, .grads = own);
        ck_backward(weight_sum(tape, &a, 0));
        expect_slab(own, 64, 1);
        ck_assert(!own->broken);
        for (int map = 0; map < b.maps; map++) {
            char name[32];
            snprintf(name, sizeof name, "'b.%d.weight'", map);
            /* alone, after A was used; nothing of A is in this pass, so its gradients stay valid */
            wf_tape_reset(tape, WF_GRADIENTS, .grads = own);
            expect_refused(tape, weight_sum(tape, &b, map), name, different);
            ck_assert(!own->broken);
            /* both in one pass, in either order */
            wf_tape_reset(tape, WF_TRAIN, .grads = own);
            wf_tensor *first = weight_sum(tape, &a, 0);
            expect_refused(tape, wf_add(first, weight_sum(tape, &b, map)), name, different);
            ck_assert(own->broken);
            own->broken = false;
            wf_tape_reset(tape, WF_TRAIN, .grads = own);
            first = weight_sum(tape, &b, map);
            expect_refused(tape, wf_add(first, weight_sum(tape, &a, 0)), name, different);
            /* as an operand of an op */
            wf_tape_reset(tape, WF_TRAIN, .grads = own);
            expect_refused(tape, wf_sum(wf_linear_forward(&b.map[map], wf_zeros(tape, WF_SHAPE(2, width)))), name, different);
        }
        expect_slab(own, 64, 1);
        ck_assert(own->valid[0] && !wf_registry_grads(a.registry)->valid[0] && !wf_registry_grads(b.registry)->valid[0]);
        /* without gradients there is nothing to refuse, and the tape takes A again */
        double sum;
        wf_tape_reset(tape, WF_INFER, .grads = own);
        ck_assert_int_eq(wf_item(weight_sum(tape, &b, 0), &sum), WF_OK);
        wf_tape_reset(tape, WF_GRADIENTS, .grads = own);
        ck_backward(weight_sum(tape, &a, 0));
        expect_slab(own, 64, 2);
        wf_tape_free(tape);
        wf_grads_free(own);
        wf_registry_free(a.registry);
        wf_registry_free(b.registry);
    }
}
END_TEST

/* A frozen teacher beside a student whose gradients go to a slab of a thread. */
START_TEST(frozen_parameters_of_another_registry)
{
    struct model student = model_of("student", 1, 4), teacher = model_of("teacher", 2, 4);
    for (int i = 0; i < 2; i++)
        wf_registry_freeze(teacher.registry, teacher.map[i].weight, true);
    wf_grads *own = slab_of(&student);
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_GRADIENTS, .grads = own);
    wf_tensor *w = teacher.map[0].weight;
    ck_backward(wf_sum(wf_mul(student.map[0].weight, w)));
    ck_assert_mem_eq(own->slab, wf_registry_values(teacher.registry), 16 * sizeof(wf_real));
    wf_array view;
    ck_assert_int_eq(wf_grad(w, &view), WF_ERR_STATE); /* and not the student's */
    wf_tape_free(tape);
    wf_grads_free(own);
    wf_registry_free(student.registry);
    wf_registry_free(teacher.registry);
}
END_TEST

START_TEST(each_registry_has_its_gradients)
{
    struct model a = model_of("a", 1, 8), b = model_of("b", 3, 16);
    wf_tape *tape = new_tape();
    for (int pass = 1; pass <= 2; pass++) {
        wf_tape_reset(tape, WF_GRADIENTS);
        wf_tensor *loss = wf_add(weight_sum(tape, &a, 0), wf_scale(weight_sum(tape, &b, 2), 3));
        ck_backward(loss);
        expect_slab(wf_registry_grads(a.registry), 64, pass);
        const wf_grads *grads = wf_registry_grads(b.registry);
        for (int i = 0; i < 256; i++)
            ck_assert(wf_grads_at(wf_registry_grads(b.registry), b.map[2].weight)[i] == 3 * pass);
        ck_assert(!grads->valid[0] && !grads->valid[1] && grads->valid[2]);
    }
    wf_tape_free(tape);
    wf_registry_free(a.registry);
    wf_registry_free(b.registry);
}
END_TEST

/* A slab outlives its registry: it does not fit another one that was built in its place. */
START_TEST(a_registry_that_was_created_again)
{
    wf_tape *tape = new_tape();
    for (int64_t width = 4; width <= 64; width *= 4) {
        struct model before = model_of("m", 1, 4);
        wf_grads *own = slab_of(&before);
        wf_registry_free(before.registry);
        struct model m = model_of("m", 1, width);
        wf_tape_reset(tape, WF_GRADIENTS, .grads = own);
        expect_refused(tape, weight_sum(tape, &m, 0), "'m.0.weight'", different);
        wf_tape_reset(tape, WF_GRADIENTS);
        ck_backward(weight_sum(tape, &m, 0));
        wf_grads_free(own);
        wf_registry_free(m.registry);
    }
    wf_tape_free(tape);
}
END_TEST

/* The new registry gets the memory of the freed one, so its parameter looks like the one that the tape already has. */
START_TEST(a_registry_that_was_created_again_within_a_pass)
{
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_GRADIENTS);
    struct model before = model_of("m", 1, 16);
    const uintptr_t old = (uintptr_t)before.map[0].weight;
    double sum;
    ck_assert_int_eq(wf_item(weight_sum(tape, &before, 0), &sum), WF_OK);
    wf_registry_free(before.registry);
    struct model m = model_of("m", 1, 16);
    wf_tensor *loss = weight_sum(tape, &m, 0);
    if ((uintptr_t)m.map[0].weight == old) {
        expect_refused(tape, loss, "'m.0.weight'", "freed and created again during this pass");
        ck_assert(!wf_registry_grads(m.registry)->broken);
    } else {
        fprintf(stderr, "skipped: the memory of a freed registry is not used again\n");
    }
    wf_tape_reset(tape, WF_GRADIENTS);
    ck_backward(weight_sum(tape, &m, 0));
    wf_tape_free(tape);
    wf_registry_free(m.registry);
}
END_TEST

START_TEST(a_slab_from_before_the_last_declaration)
{
    wf_error e = {0};
    struct wf_linear first, second;
    wf_registry *registry = new_registry();
    wf_linear_init(wf_sub(wf_root(registry), "first"), &first, 4, 4, .no_bias = true);
    wf_grads *early = wf_grads_new(registry, &e);
    ck_assert_ptr_nonnull(early);
    wf_linear_init(wf_sub(wf_root(registry), "second"), &second, 64, 64, .no_bias = true);
    ck_ok(wf_registry_build(registry, 1, error));
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_GRADIENTS, .grads = early);
    ck_backward(wf_sum(first.weight));
    expect_slab(early, 16, 1);
    wf_tape_reset(tape, WF_GRADIENTS, .grads = early);
    expect_refused(tape, wf_sum(second.weight), "'second.weight'", "call wf_grads_new after");
    wf_tape_free(tape);
    wf_grads_free(early);
    wf_registry_free(registry);
}
END_TEST

WF_TEST_MAIN("registries", parameters_of_another_registry, frozen_parameters_of_another_registry, each_registry_has_its_gradients,
             a_registry_that_was_created_again, a_registry_that_was_created_again_within_a_pass, a_slab_from_before_the_last_declaration)
