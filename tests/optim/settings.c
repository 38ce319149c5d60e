/* SPDX-License-Identifier: MIT */
/* Settings of groups: each setting of each optimiser by group, against PyTorch's parameter groups; refused ones. */
#include "optim_test.h"
#include "rules.h"

static const char *const moments[] = {"m", "v"};

START_TEST(as_pytorch)
{
    struct wf_optimizer opt;
    struct rig r = start_in("optim_more", "adamw_groups");
    ck_ok(wf_adamw_init(&opt, r.registry, error, .weight_decay = 0.1));
    ck_ok(wf_optimizer_group(&opt, "*", error, .beta1 = 0.5));
    ck_ok(wf_optimizer_group(&opt, "w", error, .beta1 = 0.9));
    ck_ok(wf_optimizer_group(&opt, "b", error, .eps = 0.1));
    ck_ok(wf_optimizer_group(&opt, "c", error, .beta2 = 0.7, .weight_decay = 0.3));
    follow(&opt, &r, 0, NULL, 2, moments);

    /* The optimiser itself has no momentum, so it has a slab for those of the groups. */
    r = start_in("optim_more", "sgd_groups");
    ck_ok(wf_sgd_init(&opt, r.registry, error));
    ck_ok(wf_optimizer_group(&opt, "b", error, .momentum = 0.9));
    ck_ok(wf_optimizer_group(&opt, "c", error, .momentum = 0.8, .nesterov = 1));
    for (int t = 0; t < STEPS; t++) {
        opt.lr = 1e-2;
        gradients(&r, t, 7);
        ck_ok(wf_sgd_step(&opt, error));
        compare_values(&r, t);
    }
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

/* What a group does not set follows the optimiser; the state of groups resumes with the same bits. */
START_TEST(the_rest_follows_the_optimiser)
{
    struct rig a = start("adamw"), b = start("adamw");
    struct wf_optimizer one, two;
    ck_ok(wf_adamw_init(&one, a.registry, error));
    ck_ok(wf_adamw_init(&two, b.registry, error, .beta1 = 0.5, .beta2 = 0.9));
    ck_ok(wf_optimizer_group(&one, "*", error, .beta1 = 0.5));
    one.adam.beta2 = 0.9;
    for (int t = 0; t < STEPS; t++) {
        if (t == 3)
            restored(&two, &b, saved(&one, &a));
        gradients(&a, t, 7);
        gradients(&b, t, 7);
        ck_ok(wf_adamw_step(&one, error));
        ck_ok(wf_adamw_step(&two, error));
    }
    ck_assert_mem_eq(wf_registry_values(a.registry), wf_registry_values(b.registry),
                     (size_t)wf_registry_slab(a.registry) * sizeof(wf_real));
    wf_optimizer_free(&one);
    wf_optimizer_free(&two);
    rig_close(&a);
    rig_close(&b);
}
END_TEST

/* A program's rule gets the hyperparameters of the group. */
START_TEST(hyperparameters_of_a_rule)
{
    struct lion betas = {0.9, 0.99}, others = {0.5, 0.7}, wrong = {1, 1};
    struct wf_optimizer opt;
    struct rig r = start_in("optim_more", "lion_groups");
    ck_ok(wf_optimizer_init(&opt, r.registry, &lion, &betas, error));
    ck_ok(wf_optimizer_group(&opt, "c", error, .ctx = &others));
    ck_fails(wf_optimizer_group(&opt, "w", error, .ctx = &wrong), WF_ERR_ARGUMENT, "lion: a beta of 1 or more");
    follow(&opt, &r, 0, NULL, 1, lion_slabs);
}
END_TEST

START_TEST(settings_are_checked)
{
    struct rig r = start("adam");
    struct wf_optimizer opt;
    ck_ok(wf_adamw_init(&opt, r.registry, error));
    ck_fails(wf_optimizer_group(&opt, "*", error, .beta1 = 1), WF_ERR_ARGUMENT, "the group \"*\": beta1 = 1 is not in 0 <= beta1 < 1");
    ck_fails(wf_optimizer_group(&opt, "*", error, .eps = NAN), WF_ERR_ARGUMENT, "eps = nan is not in 0 <= eps < inf");
    ck_fails(wf_optimizer_group(&opt, "*", error, .momentum = 0.5), WF_ERR_ARGUMENT, "the optimiser adam has no setting momentum");
    ck_fails(wf_optimizer_group(&opt, "none", error, .beta1 = 0.5), WF_ERR_ARGUMENT, "no parameter of the optimiser matches");
    ck_assert_int_eq(opt.groups, 0);
    /* A setting that becomes invalid is refused by the next update, which changes nothing. */
    ck_ok(wf_optimizer_group(&opt, "w", error, .beta1 = 0.5));
    opt.adam.beta2 = 1;
    gradients(&r, 0, 7);
    ck_fails(wf_adamw_step(&opt, error), WF_ERR_ARGUMENT, "beta2 = 1");
    ck_assert_int_eq(opt.step, 0);
    wf_optimizer_free(&opt);
    ck_ok(wf_sgd_init(&opt, r.registry, error, .momentum = 0.5));
    ck_fails(wf_optimizer_group(&opt, "*", error, .nesterov = 2), WF_ERR_ARGUMENT, "nesterov = 2 is not 0 or 1");
    ck_ok(wf_optimizer_group(&opt, "*", error, .nesterov = 1));
    ck_fails(wf_optimizer_group(&opt, "b", error, .momentum = 0), WF_ERR_ARGUMENT, "nesterov needs a momentum above 0");
    ck_ok(wf_optimizer_group(&opt, "b", error, .momentum = 0, .nesterov = 0));
    ck_ok(wf_sgd_step(&opt, error));
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

/* Two parameters with the same settings share them, so no call makes more of them than there are. */
START_TEST(without_memory)
{
    struct rig r = start("adam");
    struct wf_optimizer opt;
    ck_ok(wf_adamw_init(&opt, r.registry, error));
    wf_alloc_fail_after(0);
    wf_error why = {0};
    const wf_status status = wf_optimizer_group(&opt, "*", &why, .beta1 = 0.5);
    wf_alloc_fail_after(-1);
    ck_assert_int_eq(status, WF_ERR_MEMORY);
    ck_ok(wf_optimizer_group(&opt, "*", error, .beta1 = 0.5));
    ck_assert(opt.groups == 1 && opt.part[0].parameter[0].group == 1 && opt.part[0].parameter[2].group == 1);
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

WF_TEST_MAIN("settings", as_pytorch, the_rest_follows_the_optimiser, hyperparameters_of_a_rule, settings_are_checked, without_memory)
