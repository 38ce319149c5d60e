/* SPDX-License-Identifier: MIT */
/* Adafactor against torch.optim.Adafactor. */
#define SHAPE_OF_C                                                                                                                         \
    {                                                                                                                                      \
        3,                                                                                                                                 \
        {                                                                                                                                  \
            2, 3, 4                                                                                                                        \
        }                                                                                                                                  \
    }
#include "optim_test.h"

static const char *const moments[] = {"row", "column", "v"};

START_TEST(as_pytorch)
{
    struct wf_optimizer opt;
    struct wf_schedule schedule = {WF_SCHEDULE_COSINE, 1e-2, 1e-3, 2, 6};
    struct rig r = start_in("optim_more", "adafactor");
    /* PyTorch computed in double, so its machine epsilon is that of double. */
    ck_ok(wf_adafactor_init(&opt, r.registry, error, .eps1 = 0x1p-52));
    ck_assert_int_eq(opt.part[0].size[0], 16 + 16); /* 5 rows of w, 2 x 3 of c */
    ck_assert_int_eq(opt.part[0].size[1], 16 + 16);
    ck_assert_int_eq(opt.part[0].size[2], 16);
    follow(&opt, &r, 0, NULL, 3, moments);

    r = start_in("optim_more", "adafactor_all");
    ck_ok(wf_adafactor_init(&opt, r.registry, error, .beta2_decay = -0.5, .eps1 = 0.3, .eps2 = 0.7, .threshold = 1.5, .weight_decay = 0.1));
    ck_ok(wf_optimizer_group(&opt, "c", error, .weight_decay = 0.3, .lr_scale = 0.1, .threshold = 2));
    follow(&opt, &r, 1.0, &schedule, 3, moments);
}
END_TEST

START_TEST(options_are_checked)
{
    static const struct {
        struct wf_adafactor_options options;
        const char *message;
    } bad[] = {
        {{.lr = -1, .threshold = 1}, "lr = -1 is not in 0 <= lr < inf"},
        {{.beta2_decay = 0.1, .threshold = 1}, "beta2_decay = 0.1 is not at most 0"},
        {{.beta2_decay = NAN, .threshold = 1}, "beta2_decay = nan is not at most 0"},
        {{.eps1 = -1, .threshold = 1}, "eps1 = -1 is not in 0 <= eps1 < inf"},
        {{.eps2 = INFINITY, .threshold = 1}, "eps2 = inf is not in 0 <= eps2 < inf"},
        {{.threshold = 0.5}, "threshold = 0.5 is not at least 1"},
    };
    struct rig r = start_in("optim_more", "adafactor");
    struct wf_optimizer opt;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_fails(wf_adafactor_init_with(&opt, r.registry, &bad[i].options, error), WF_ERR_ARGUMENT, bad[i].message);
        wf_optimizer_free(&opt);
    }
    const struct wf_adafactor_options options = wf_adafactor_defaults();
    ck_ok(wf_adafactor_init_with(&opt, r.registry, &options, error));
    ck_assert(opt.lr == 1e-2 && opt.adafactor.beta2_decay == -0.8 && opt.adafactor.eps2 == 1e-3 && opt.adafactor.threshold == 1);
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

/* Gradients that are all 0, also in the first update, make no NaN. */
START_TEST(zero_gradients)
{
    wf_error e = {0};
    wf_registry *registry = wf_registry_new(&e);
    wf_parameter(wf_root(registry), "w", WF_SHAPE(300, 70), .init = {WF_INIT_CONSTANT, 1});
    wf_parameter(wf_root(registry), "b", WF_SHAPE(9000), .init = {WF_INIT_CONSTANT, 1});
    ck_ok(wf_registry_build(registry, 1, error));
    struct wf_optimizer opt;
    ck_ok(wf_adafactor_init(&opt, registry, error, .weight_decay = 0.5));
    wf_grads *grads = wf_registry_grads(registry);
    for (int t = 0; t < 2; t++) {
        memset(grads->slab, 0, (size_t)grads->count * sizeof *grads->slab);
        grads->valid[0] = grads->valid[1] = true;
        ck_ok(wf_adafactor_step(&opt, error));
    }
    for (int i = 0; i < 2; i++)
        ck_assert_double_eq_tol(*value_of(registry, i ? "b" : "w"), 0.995 * 0.995, 1e-6);
    wf_optimizer_free(&opt);
    wf_registry_free(registry);
}
END_TEST

WF_TEST_MAIN("adafactor", as_pytorch, options_are_checked, zero_gradients)
