/* SPDX-License-Identifier: MIT */
/* The state of an optimiser: saved and restored by names. */
#include "optim_test.h"

static void init(struct wf_optimizer *opt, const struct rig *r, int sgd)
{
    if (sgd)
        ck_ok(wf_sgd_init(opt, r->registry, error, .lr = 0.1, .momentum = 0.9));
    else
        ck_ok(wf_adamw_init(opt, r->registry, error, .weight_decay = 0.1));
}

/* The parameters in another order, with a table and a frozen one among them. */
static struct rig reordered(unsigned frozen)
{
    struct rig r = rig_open("optim", "adamw");
    wf_parameter(wf_root(r.registry), "table", WF_SHAPE(9), .buffer = true);
    for (int i = PARAMETERS - 1; i >= 0; i--)
        wf_parameter(wf_root(r.registry), declared[i].name, &declared[i].shape, .frozen = frozen >> i & 1);
    rig_start(&r, WF_GRADIENTS, 0.5);
    return r;
}

static void step(struct wf_optimizer *opt, struct rig *r, int t, unsigned which)
{
    wf_tape_reset(r->tape, WF_GRADIENTS);
    wf_tensor *sum = wf_input(r->tape, (wf_real[]){0}, WF_SHAPE(1), true);
    for (int i = 0; i < PARAMETERS; i++) {
        char key[16];
        snprintf(key, sizeof key, "g%d.%s", t, declared[i].name);
        if (which >> i & 1)
            sum = wf_add(
                sum, wf_sum(wf_mul(wf_registry_find(r->registry, declared[i].name), rig_tensor(r, key, &declared[i].shape, 2.0, false))));
    }
    ck_assert_msg(wf_backward(wf_sum(sum)) == WF_OK, "%s", wf_tape_error(r->tape)->message);
    clipped(opt, r, 0);
}

static void same_values(const struct rig *a, const struct rig *b)
{
    for (int i = 0; i < PARAMETERS; i++) {
        const char *name = declared[i].name;
        ck_assert_msg(memcmp(value_of(a->registry, name), value_of(b->registry, name), bytes_of(i)) == 0, "%s", name);
    }
}

static void close_both(struct rig *a, struct wf_optimizer *one, struct rig *b, struct wf_optimizer *two)
{
    wf_optimizer_free(one);
    wf_optimizer_free(two);
    rig_close(a);
    rig_close(b);
}

/* Three steps, saved, loaded into another optimiser, over a registry of another order: the next three give the same bits. */
START_TEST(state_goes_on)
{
    for (int sgd = 0; sgd < 2; sgd++) {
        struct rig a = start("adamw"), b = reordered(0);
        struct wf_optimizer one, two;
        wf_safetensors *file = NULL;
        init(&one, &a, sgd);
        init(&two, &b, sgd);
        step(&two, &b, 5, 7); /* what it has is replaced */
        for (int t = 0; t < STEPS; t++) {
            if (t == 3)
                file = saved(&one, &a);
            step(&one, &a, t, t == 1 ? 5 : 7);
        }
        ck_ok(wf_optimizer_load(&two, file, "optim.", error));
        ck_assert_int_eq(wf_optimizer_load(&two, file, "other.", NULL), WF_ERR_FORMAT);
        restored(&two, &b, file);
        ck_assert(two.step == 3 && two.part[0].parameter[2].updates == 2); /* of b */
        for (int t = 3; t < STEPS; t++)
            step(&two, &b, t, 7);
        same_values(&a, &b);
        close_both(&a, &one, &b, &two);
    }
}
END_TEST

/* The state of one registry, loaded for two that have its parameters. */
START_TEST(registries_do_not_matter)
{
    struct rig one = start("adamw"), a = rig_open("optim", "adamw"), b = rig_open("optim", "adamw");
    wf_parameter(wf_root(a.registry), "w", &declared[0].shape);
    for (int i = 1; i < PARAMETERS; i++)
        wf_parameter(wf_root(b.registry), declared[i].name, &declared[i].shape);
    rig_start(&a, WF_GRADIENTS, 0.5);
    rig_start(&b, WF_GRADIENTS, 0.5);
    struct wf_optimizer whole, parts;
    init(&whole, &one, 0);
    init(&parts, &a, 0);
    ck_ok(wf_optimizer_add(&parts, b.registry, NULL, error));
    for (int t = 0; t < 3; t++)
        step(&whole, &one, t, t ? 7 : 3);
    wf_safetensors *file = saved(&whole, &one);
    ck_ok(wf_optimizer_load(&parts, file, "optim.", error));
    wf_safetensors_close(file);
    ck_assert(parts.step == 3 && parts.part[0].parameter[0].updates == 3 && parts.part[1].parameter[1].updates == 2);
    for (int i = 0; i < PARAMETERS; i++) {
        const struct wf_optimizer_part *p = &parts.part[i > 0];
        for (int k = 0; k < 2; k++)
            ck_assert_mem_eq(whole.part[0].moment[k] + whole.part[0].parameter[i].place[k], p->moment[k] + p->parameter[i > 1].place[k],
                             bytes_of(i));
    }
    wf_optimizer_free(&whole);
    wf_optimizer_free(&parts);
    rig_close(&one);
    rig_close(&a);
    rig_close(&b);
}
END_TEST

/* Moments of a parameter that is frozen now are kept until it is trained again. */
START_TEST(frozen_parameters)
{
    struct rig a = start("adamw"), b = reordered(2);
    struct wf_optimizer one, two;
    init(&one, &a, 0);
    init(&two, &b, 0);
    for (int t = 0; t < STEPS; t++) {
        if (t == 3) {
            wf_registry_freeze(a.registry, wf_registry_find(a.registry, "b"), true);
            ck_assert_int_eq(two.part[0].size[0], 64);
            restored(&two, &b, saved(&one, &a));
            ck_assert_int_eq(two.part[0].size[0], 80);
        }
        if (t == 4)
            for (int i = 0; i < 2; i++) {
                struct rig *r = i ? &b : &a;
                wf_registry_freeze(r->registry, wf_registry_find(r->registry, "b"), false);
                ck_ok(wf_registry_gradients(r->registry, error));
            }
        step(&one, &a, t, 7);
        if (t >= 3)
            step(&two, &b, t, 7);
    }
    same_values(&a, &b);
    close_both(&a, &one, &b, &two);
}
END_TEST

/* As Weft 0.1 wrote it: "steps" by index, tables and frozen parameters included, and moments of frozen parameters, which were 0. */
START_TEST(the_old_format)
{
    struct rig a = start("adamw"), b = reordered(4);
    struct wf_optimizer one, two;
    init(&one, &a, 0);
    init(&two, &b, 0);
    for (int t = 0; t < 3; t++)
        step(&one, &a, t, t == 1 ? 1 : 3); /* c has never moved */
    for (int wrong = 1; wrong >= 0; wrong--) {
        wf_safetensors_writer *w = wf_safetensors_writer_new();
        int64_t steps[4] = {0, 0, 2, 3 + wrong}; /* of table, c, b, w */
        wf_array step_array = wf_array_contiguous(&one.step, WF_I64, WF_SHAPE(1)), array = wf_array_contiguous(steps, WF_I64, WF_SHAPE(4));
        wf_safetensors_put(w, "optim.step", &step_array);
        wf_safetensors_put(w, "optim.steps", &array);
        for (int i = 0; i < PARAMETERS; i++)
            for (int k = 0; k < 2; k++) {
                char name[32];
                snprintf(name, sizeof name, "optim.%c.%s", "mv"[k], declared[i].name);
                wf_array m = wf_array_contiguous(one.part[0].moment[k] + one.part[0].parameter[i].place[k], WF_REAL, &declared[i].shape);
                wf_safetensors_put(w, name, &m);
            }
        wf_registry_save(a.registry, w, "model.");
        wf_safetensors *file = written(w);
        if (wrong) {
            ck_fails(wf_optimizer_load(&two, file, "optim.", error), WF_ERR_FORMAT, "optim.steps: a parameter has 4 updates of 3");
            wf_safetensors_close(file);
        } else {
            restored(&two, &b, file);
        }
    }
    ck_assert(two.step == 3 && two.part[0].parameter[2].updates == 2 && two.part[0].size[0] == 64); /* none for c */
    for (int t = 3; t < STEPS; t++) {
        step(&one, &a, t, 3);
        step(&two, &b, t, 3);
    }
    same_values(&a, &b);
    close_both(&a, &one, &b, &two);
}
END_TEST

/* A mismatch is reported by name and changes nothing. */
START_TEST(mismatches_are_refused)
{
    static const struct {
        const char *parameter; /* declared in place of b, */
        int64_t size;
        unsigned frozen; /* when the state is saved */
        int sgd;
        const char *message;
    } bad[] = {
        {"z", 7, 0, 0, "3 missing: optim.updates.z, optim.m.z, optim.v.z; 3 unexpected: optim.updates.b, optim.m.b, optim.v.b"},
        {"b", 8, 0, 0, "2 with another shape: optim.m.b, optim.v.b"},
        {"b", 7, 2, 0, "3 missing: optim.updates.b, optim.m.b, optim.v.b"},
        {NULL, 0, 0, 0, "3 unexpected: optim.updates.b, optim.m.b, optim.v.b"},
        {"b", 7, 0, 1, "the state is that of sgd, the optimiser is adam"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rig a = reordered(bad[i].frozen), b = rig_open("optim", "adamw");
        struct wf_optimizer one, two;
        for (int k = 0; k < PARAMETERS; k++)
            if (k != 1)
                wf_parameter(wf_root(b.registry), declared[k].name, &declared[k].shape);
            else if (bad[i].parameter)
                wf_parameter(wf_root(b.registry), bad[i].parameter, WF_SHAPE(bad[i].size));
        rig_start(&b, WF_GRADIENTS, 0.5);
        init(&one, &a, bad[i].sgd);
        init(&two, &b, 0);
        step(&one, &a, 0, 7);
        step(&two, &b, 0, 1);
        step(&two, &b, 1, 1);
        wf_real m = two.part[0].moment[0][0];
        wf_safetensors *file = saved(&one, &a);
        ck_fails(wf_optimizer_load(&two, file, "optim.", error), WF_ERR_FORMAT, bad[i].message);
        ck_assert(two.step == 2 && two.part[0].parameter[0].updates == 2 && two.part[0].moment[0][0] == m);
        wf_safetensors_close(file);
        close_both(&a, &one, &b, &two);
    }
    struct wf_optimizer none = {0};
    ck_assert_int_eq(wf_optimizer_load(&none, NULL, NULL, NULL), WF_ERR_ARGUMENT);
}
END_TEST

WF_TEST_MAIN("state", state_goes_on, registries_do_not_matter, frozen_parameters, the_old_format, mismatches_are_refused)
