/* SPDX-License-Identifier: MIT */
/* Lion against the formula of Chen et al. 2023 in PyTorch. */
#include <weft/internal/kernels.h>

#include "optim_test.h"

static const char *const moments[] = {"m"};

START_TEST(as_pytorch)
{
    struct wf_optimizer opt;
    struct wf_schedule schedule = {WF_SCHEDULE_COSINE, 1e-2, 1e-3, 2, 6};
    struct rig r = start_in("optim_rules", "lion");
    ck_ok(wf_lion_init(&opt, r.registry, error, .lr = 1e-2));
    follow(&opt, &r, 0, NULL, 1, moments);

    r = start_in("optim_rules", "lion_all");
    ck_ok(wf_lion_init(&opt, r.registry, error, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1));
    ck_ok(wf_optimizer_group(&opt, "c", error, .weight_decay = 0.3, .lr_scale = 0.1));
    follow(&opt, &r, 1.0, &schedule, 1, moments);

    r = start_in("optim_more", "lion_groups");
    ck_ok(wf_lion_init(&opt, r.registry, error));
    ck_ok(wf_optimizer_group(&opt, "c", error, .beta1 = 0.5, .beta2 = 0.7));
    follow(&opt, &r, 0, NULL, 1, moments);
}
END_TEST

START_TEST(options_are_checked)
{
    static const struct {
        struct wf_lion_options options;
        const char *message;
    } bad[] = {
        {{.lr = -1}, "lr = -1 is not in 0 <= lr < inf"},
        {{.beta1 = 1}, "beta1 = 1 is not in 0 <= beta1 < 1"},
        {{.beta2 = NAN}, "beta2 = nan is not in 0 <= beta2 < 1"},
        {{.weight_decay = -0.5}, "weight_decay = -0.5 is not in 0 <= weight_decay < inf"},
    };
    struct rig r = start("sgd");
    struct wf_optimizer opt;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_fails(wf_lion_init_with(&opt, r.registry, &bad[i].options, error), WF_ERR_ARGUMENT, bad[i].message);
        wf_optimizer_free(&opt);
    }
    const struct wf_lion_options options = wf_lion_defaults();
    ck_ok(wf_lion_init_with(&opt, r.registry, &options, error));
    ck_assert(opt.lr == 1e-4 && opt.lion.beta1 == 0.9 && opt.lion.beta2 == 0.99);
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

/* Every length of a tail, on each instruction set the same bits as element by element, and nothing written behind; a sum of 0 moves
 * nothing. */
START_TEST(tails)
{
    enum { N = 40 };
    wf_real p[N + 1], m[N + 1], g[N], one[2];
    for (int n = 0; n <= N; n++) {
        for (int i = 0; i <= N; i++) {
            p[i] = (wf_real)formula_real(1, i, 1);
            m[i] = i % 3 == 0 ? 0 : (wf_real)formula_real(2, i, 1);
            if (i < N)
                g[i] = i % 3 == 0 ? 0 : (wf_real)formula_real(3, i, 1);
        }
        one[0] = p[n / 2];
        one[1] = m[n / 2];
        const wf_real last = p[n], behind = m[n];
        wf_kernel->internal->lion(n, p, g, m, (wf_real)0.5, 0.9, 0.99, (wf_real)0.1, (wf_real)0.01);
        ck_assert(p[n] == last && m[n] == behind);
        if (n == 0)
            continue;
        const double first = one[0], grad = 0.5 * (double)g[n / 2], sum = 0.9 * (double)one[1] + 0.1 * grad;
        wf_kernel->internal->lion(1, one, g + n / 2, one + 1, (wf_real)0.5, 0.9, 0.99, (wf_real)0.1, (wf_real)0.01);
        ck_assert(one[0] == p[n / 2] && one[1] == m[n / 2]);
        ck_assert_double_eq_tol(p[n / 2], 0.99 * first - (sum > 0 ? 0.1 : sum < 0 ? -0.1 : 0), 1e-6);
    }
}
END_TEST

WF_TEST_MAIN("lion", as_pytorch, options_are_checked, tails)
