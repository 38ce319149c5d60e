/* SPDX-License-Identifier: MIT */
/* One optimiser over several registries, groups of parameters, and moments of trained parameters only. */
#include <malloc.h>

#include "optim_test.h"

static const struct wf_optimizer_parameter *of(const struct wf_optimizer *opt, int i)
{
    return &opt->part[0].parameter[i];
}

START_TEST(groups_change_what_is_asked)
{
    struct rig r = start("adam");
    struct wf_optimizer opt;
    ck_ok(wf_adamw_init(&opt, r.registry, error, .weight_decay = 0.5));
    ck_ok(wf_optimizer_group(&opt, "*", error, .lr_scale = 0.25));
    ck_ok(wf_optimizer_group(&opt, "b", error, .weight_decay = 0));
    ck_assert(of(&opt, 1)->weight_decay == 0 && of(&opt, 1)->lr_scale == 0.25);
    ck_assert(of(&opt, 0)->weight_decay == 0.5 && of(&opt, 2)->lr_scale == 0.25);
    ck_ok(wf_optimizer_group(&opt, "w", error, .lr_scale = 0)); /* the later call counts, and 0 is 0 */
    ck_assert(of(&opt, 0)->lr_scale == 0 && of(&opt, 0)->weight_decay == 0.5);
    ck_ok(wf_optimizer_group(&opt, "*", error, .weight_decay = 0.125));
    for (int i = 0; i < PARAMETERS; i++)
        ck_assert(of(&opt, i)->weight_decay == 0.125);
    wf_optimizer_decay_matrices_only(&opt);
    ck_assert(of(&opt, 0)->weight_decay == 0.125 && of(&opt, 1)->weight_decay == 0 && of(&opt, 1)->lr_scale == 0.25);
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

static bool is_matrix(void *ctx, const char *name, const wf_tensor *p)
{
    ck_assert(strcmp(name, wf_name_of(p)) == 0);
    return ++*(int *)ctx > 0 && wf_ndim(p) == 2;
}

START_TEST(groups_are_checked)
{
    struct rig r = start("adam");
    struct wf_optimizer opt;
    ck_ok(wf_adamw_init(&opt, r.registry, error, .weight_decay = 0.5));
    static const char *const nothing[] = {"d", "", "b*b", "*d*", "ww", "B", "b?", "*b "};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        char message[100];
        snprintf(message, sizeof message, "the group \"%s\": no parameter of the optimiser matches", nothing[i]);
        ck_fails(wf_optimizer_group(&opt, nothing[i], error, .weight_decay = 7), WF_ERR_ARGUMENT, message);
    }
    const struct {
        double decay, scale;
        const char *message;
    } bad[] = {{-1, 0.5, "the group \"b\": weight_decay = -1 is not in 0 <= weight_decay < inf"},
               {NAN, 0.5, "the group \"b\": weight_decay = nan is not in 0 <= weight_decay < inf"},
               {0.1, INFINITY, "the group \"b\": lr_scale = inf is not in 0 <= lr_scale < inf"}};
    for (int i = 0; i < 3; i++) {
        ck_fails(wf_optimizer_group(&opt, "b", error, .weight_decay = bad[i].decay, .lr_scale = bad[i].scale), WF_ERR_ARGUMENT,
                 bad[i].message);
    }
    ck_assert_int_eq(wf_optimizer_group(&opt, NULL, NULL, .lr_scale = 1), WF_ERR_ARGUMENT);
    for (int i = 0; i < PARAMETERS; i++)
        ck_assert(of(&opt, i)->weight_decay == 0.5 && of(&opt, i)->lr_scale == 1);
    int calls = 0;
    struct wf_group_options options = wf_group_defaults();
    options.lr_scale = 3;
    ck_ok(wf_optimizer_group_where(&opt, is_matrix, &calls, &options, error));
    ck_assert(calls == PARAMETERS && of(&opt, 0)->lr_scale == 3 && of(&opt, 1)->lr_scale == 1 && of(&opt, 0)->weight_decay == 0.5);
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

/* --- several registries --------------------------------------------------------------------------------------------- */

/* A registry with the parameters of `which`. */
static struct rig some(unsigned which)
{
    struct rig r = rig_open("optim", "adamw");
    for (int i = 0; i < PARAMETERS; i++)
        if (which >> i & 1)
            wf_parameter(wf_root(r.registry), declared[i].name, &declared[i].shape);
    rig_start(&r, WF_GRADIENTS, 0.5);
    return r;
}

/* Three steps of a model in two registries have the bits of one registry. */
START_TEST(two_registries_are_as_one)
{
    for (int sgd = 0; sgd < 2; sgd++) {
        struct rig one = start("adamw"), a = some(5), b = some(2);
        struct wf_optimizer whole, parts;
        wf_grads *pair[2] = {wf_registry_grads(a.registry), wf_registry_grads(b.registry)};
        for (int i = 0; i < 2; i++) {
            struct wf_optimizer *opt = i ? &parts : &whole;
            wf_registry *r = i ? a.registry : one.registry;
            ck_ok(sgd ? wf_sgd_init(opt, r, error, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1)
                      : wf_adamw_init(opt, r, error, .weight_decay = 0.1));
        }
        ck_ok(wf_optimizer_add(&parts, b.registry, "other.", error));
        ck_ok(wf_optimizer_group(&whole, "b", error, .lr_scale = 0.5));
        ck_ok(wf_optimizer_group(&parts, "other.*", error, .lr_scale = 0.5));
        for (int t = 0; t < 3; t++) {
            gradients(&one, t, t == 1 ? 3 : 7);
            ck_ok(wf_clip_norm(wf_registry_grads(one.registry), 1e6, NULL, error));
            ck_ok(wf_optimizer_step(&whole, error));
            wf_tape_reset(a.tape, WF_GRADIENTS);
            wf_tensor *sum = wf_zeros(a.tape, &(wf_shape){0});
            for (int i = 0; i < PARAMETERS; i++) {
                char key[16];
                snprintf(key, sizeof key, "g%d.%s", t, declared[i].name);
                wf_tensor *p = wf_registry_find((i == 1 ? &b : &a)->registry, declared[i].name);
                if (t != 1 || i != 2)
                    sum = wf_add(sum, wf_sum(wf_mul(p, rig_tensor(&a, key, &declared[i].shape, 2.0, false))));
            }
            ck_assert_int_eq(wf_backward(sum), WF_OK);
            ck_ok(wf_clip_norm_of(pair, 2, 1e6, NULL, error));
            ck_ok(wf_optimizer_step(&parts, error));
        }
        ck_assert(parts.step == 3 && wf_grad_norm_of(pair, 2) == 0);
        for (int i = 0; i < PARAMETERS; i++)
            ck_assert_mem_eq(value_of(one.registry, declared[i].name), value_of((i == 1 ? &b : &a)->registry, declared[i].name),
                             bytes_of(i));
        wf_optimizer_free(&whole);
        wf_optimizer_free(&parts);
        rig_close(&one);
        rig_close(&a);
        rig_close(&b);
    }
}
END_TEST

/* A step that is refused for one registry leaves the other as it is. */
START_TEST(refused_calls_change_nothing)
{
    struct rig a = some(5), b = some(3);
    struct wf_optimizer opt = {0};
    ck_assert_int_eq(wf_optimizer_step(&opt, NULL), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_optimizer_add(&opt, a.registry, NULL, NULL), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_adamw_init(&opt, NULL, NULL, .lr = 1), WF_ERR_ARGUMENT);
    ck_ok(wf_adamw_init(&opt, a.registry, error, .lr = 0.1));
    const struct {
        wf_registry *registry;
        const char *prefix, *message;
    } bad[] = {
        {a.registry, "again.", "wf_optimizer_add: the optimiser has this registry already"},
        {b.registry, NULL, "wf_optimizer_add: two registries have a parameter 'w': give wf_optimizer_add another prefix"},
        {NULL, NULL, "wf_optimizer_add: registry is NULL"},
    };
    for (int i = 0; i < 3; i++) {
        ck_fails(wf_optimizer_add(&opt, bad[i].registry, bad[i].prefix, error), WF_ERR_ARGUMENT, bad[i].message);
        ck_assert_int_eq(opt.parts, 1);
    }
    wf_registry *empty = wf_registry_new(NULL);
    ck_assert_int_eq(wf_optimizer_add(&opt, empty, "x.", NULL), WF_ERR_STATE);
    wf_registry_free(empty);
    ck_ok(wf_optimizer_add(&opt, b.registry, "b.", error));
    wf_real before = *value_of(a.registry, "w");
    for (int broken = 0; broken < 2; broken++) {
        wf_tape_reset(a.tape, WF_GRADIENTS);
        wf_tape_use(a.tape);
        ck_assert_int_eq(wf_backward(wf_add(wf_sum(wf_registry_find(a.registry, "w")), wf_sum(wf_registry_find(b.registry, "b")))), WF_OK);
        if (broken)
            wf_registry_grads(b.registry)->broken = true;
        else
            wf_grads_at(wf_registry_grads(b.registry), wf_registry_find(b.registry, "b"))[6] = (wf_real)NAN;
        ck_fails(wf_optimizer_step(&opt, error), broken ? WF_ERR_STATE : WF_ERR_NUMERIC,
                 broken ? "" : "the gradient of 'b.b' has the value nan in update 1");
        ck_assert(opt.step == 0 && *value_of(a.registry, "w") == before && opt.part[0].parameter[0].updates == 0);
        wf_grads_zero(wf_registry_grads(b.registry));
    }
    ck_ok(wf_optimizer_step(&opt, error));
    ck_assert(*value_of(a.registry, "w") != before);
    wf_optimizer_free(&opt);
    rig_close(&a);
    rig_close(&b);
}
END_TEST

START_TEST(without_memory)
{
    struct rig a = some(1), b = some(6);
    struct wf_optimizer opt;
    ck_ok(wf_adamw_init(&opt, a.registry, error, .lr = 0.1));
    int64_t live = wf_alloc_live(), n = 0;
    for (;; n++) {
        wf_error e = {0};
        wf_alloc_fail_after(n);
        wf_status status = wf_optimizer_add(&opt, b.registry, "b.", &e);
        wf_alloc_fail_after(-1);
        if (status == WF_OK)
            break;
        ck_assert_int_eq(status, WF_ERR_MEMORY);
        ck_assert_int_eq(opt.parts, 1);
        ck_assert_int_le(wf_alloc_live() - live, 1); /* the list of registries may have grown */
    }
    ck_assert_int_ge(n, 4);
    wf_optimizer_free(&opt);
    rig_close(&a);
    rig_close(&b);
}
END_TEST

/* --- moments of trained parameters only ----------------------------------------------------------------------------- */

/* A large frozen matrix and small trained ones: gradients and moments take the room of the small ones. */
START_TEST(frozen_parameters_have_no_moments)
{
    enum { LARGE = 1 << 22, SMALL = 1000 };
    wf_error e = {0};
    wf_registry *registry = wf_registry_new(&e);
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    wf_tensor *large = wf_parameter(wf_root(registry), "large", WF_SHAPE(LARGE), .frozen = true);
    wf_tensor *small = wf_parameter(wf_root(registry), "small", WF_SHAPE(SMALL), .init = {WF_INIT_CONSTANT, 1});
    ck_ok(wf_registry_build(registry, 1, error));
    wf_tape *tape = wf_tape_new(&e);
    struct wf_optimizer opt;
    ck_ok(wf_adamw_init(&opt, registry, error, .lr = 0.5));
    ck_assert_int_eq(wf_registry_grads(registry)->count, 1008);
    ck_assert_int_eq(opt.part[0].size[0], 1008);
    size_t taken = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    ck_assert_msg(sanitized() || taken < LARGE * sizeof(wf_real) / 2 * 3 + (1 << 18) /* names, structs */, "%zu bytes", taken);
    for (int t = 0; t < 2; t++) {
        wf_tape_reset(tape, WF_GRADIENTS);
        wf_tape_use(tape);
        ck_assert_int_eq(wf_backward(wf_add(wf_sum(wf_mul(small, small)), wf_sum(large))), WF_OK);
        ck_ok(wf_adamw_step(&opt, error));
    }
    /* trained from now on: its moments come with its first update, those of the other stay */
    wf_real kept = opt.part[0].moment[1][0], was = *value_of(registry, "small");
    wf_registry_freeze(registry, large, false);
    ck_ok(wf_registry_gradients(registry, error));
    wf_registry_freeze(registry, small, true);
    wf_tape_reset(tape, WF_GRADIENTS);
    wf_tape_use(tape);
    ck_assert_int_eq(wf_backward(wf_add(wf_sum(small), wf_sum(large))), WF_OK);
    ck_ok(wf_adamw_step(&opt, error));
    ck_assert_int_eq(opt.part[0].size[0], LARGE + 1008);
    ck_assert(opt.part[0].moment[1][0] == kept && *value_of(registry, "small") == was);
    ck_assert(opt.part[0].parameter[0].updates == 1 && opt.part[0].parameter[1].updates == 2);
    for (int i = 0; i < LARGE; i++)
        ck_assert(fabs((double)value_of(registry, "large")[i] + 0.5) < 1e-6); /* the first update of Adam is lr */
    wf_optimizer_free(&opt);
    wf_tape_free(tape);
    wf_registry_free(registry);
}
END_TEST

static bool wants(void *matrix, const char *name, const wf_tensor *p)
{
    (void)name;
    return (wf_ndim(p) == 2) == *(bool *)matrix;
}

/* Two optimisers share a registry: each parameter has the bits that its optimiser gives it alone, clipped by the norm of all. */
START_TEST(two_optimizers_share_a_registry)
{
    bool matrices = true, others = false;
    struct rig shared = start("adamw"), sgd = start("adamw"), adam = start("adamw");
    struct wf_optimizer a, b, whole_sgd, whole_adam;
    ck_ok(wf_sgd_init(&a, shared.registry, error, .momentum = 0.9));
    ck_ok(wf_adamw_init(&b, shared.registry, error, .weight_decay = 0.1));
    ck_ok(wf_sgd_init(&whole_sgd, sgd.registry, error, .momentum = 0.9));
    ck_ok(wf_adamw_init(&whole_adam, adam.registry, error, .weight_decay = 0.1));
    ck_ok(wf_optimizer_only(&a, wants, &matrices, error));
    ck_ok(wf_optimizer_only(&b, wants, &others, error));
    ck_assert(a.part[0].size[0] < whole_sgd.part[0].size[0] && b.part[0].size[0] < whole_adam.part[0].size[0]);
    for (int t = 0; t < STEPS; t++) {
        gradients(&shared, t, 7);
        gradients(&sgd, t, 7);
        gradients(&adam, t, 7);
        ck_ok(wf_clip_norm(wf_registry_grads(shared.registry), 0.5, NULL, error));
        ck_ok(wf_optimizer_step(&a, error));
        wf_array view;
        ck_assert(wf_grad(wf_registry_at(shared.registry, 1), &view) == WF_OK || t > 0); /* b's is still there */
        ck_ok(wf_optimizer_step(&b, error));
        ck_assert(wf_grad_norm(wf_registry_grads(shared.registry)) == 0);
        clipped(&whole_sgd, &sgd, 0.5);
        clipped(&whole_adam, &adam, 0.5);
    }
    for (int i = 0; i < PARAMETERS; i++)
        ck_assert_mem_eq(value_of(shared.registry, declared[i].name), value_of((i == 1 ? &adam : &sgd)->registry, declared[i].name),
                         bytes_of(i));
    ck_fails(wf_optimizer_only(&a, wants, &others, error), WF_ERR_STATE, "right after the init");
    wf_optimizer_free(&a);
    wf_optimizer_free(&b);
    wf_optimizer_free(&whole_sgd);
    wf_optimizer_free(&whole_adam);
    rig_close(&shared);
    rig_close(&sgd);
    rig_close(&adam);
}
END_TEST

static bool none(void *ctx, const char *name, const wf_tensor *p)
{
    (void)ctx, (void)name, (void)p;
    return false;
}

/* An optimiser that leaves parameters out saves no state of them; an optimiser with all parameters refuses that state. */
START_TEST(left_out_parameters_have_no_state)
{
    bool matrices = true;
    struct rig r = start("adamw");
    struct wf_optimizer part, whole;
    ck_ok(wf_adamw_init(&part, r.registry, error));
    ck_ok(wf_adamw_init(&whole, r.registry, error));
    ck_assert_int_eq(wf_optimizer_only(&part, none, NULL, NULL), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_optimizer_only(&part, NULL, NULL, NULL), WF_ERR_ARGUMENT);
    ck_assert(!part.part[0].parameter[0].skipped);
    int failures = 0; /* without memory nothing has changed */
    for (bool done = false; !done; failures += !done) {
        ck_assert_int_lt(failures, 10);
        wf_alloc_fail_after(failures);
        done = wf_optimizer_only(&part, wants, &matrices, NULL) == WF_OK;
        wf_alloc_fail_after(-1);
        for (int i = 0; i < PARAMETERS && !done; i++)
            ck_assert(!of(&part, i)->skipped);
    }
    ck_assert_int_gt(failures, 0);
    gradients(&r, 0, 7);
    ck_ok(wf_optimizer_step(&part, error));
    for (int i = 0; i < 2; i++) {
        wf_safetensors_writer *w = wf_safetensors_writer_new();
        wf_optimizer_save(i ? &whole : &part, w, "o.");
        wf_safetensors *file = written(w);
        ck_assert((wf_safetensors_find(file, "o.m.b") != NULL) == i && wf_safetensors_find(file, "o.m.w"));
        ck_ok(wf_optimizer_load(i ? &whole : &part, file, "o.", error));
        ck_fails(wf_optimizer_load(i ? &part : &whole, file, "o.", error), WF_ERR_FORMAT,
                 i ? "unexpected: o.updates.b, o.m.b" : "missing: o.updates.b, o.m.b");
        wf_safetensors_close(file);
    }
    wf_optimizer_free(&part);
    wf_optimizer_free(&whole);
    rig_close(&r);
}
END_TEST

WF_TEST_MAIN("groups", two_optimizers_share_a_registry, left_out_parameters_have_no_state, groups_change_what_is_asked, groups_are_checked,
             two_registries_are_as_one, refused_calls_change_nothing, without_memory, frozen_parameters_have_no_moments)
