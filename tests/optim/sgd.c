/* SPDX-License-Identifier: MIT */
/* Gradient descent against torch.optim.SGD. */
#include <weft/internal/kernels.h>

#include "optim_test.h"

static const char *const momentum[] = {"momentum"};

START_TEST(as_pytorch)
{
    struct wf_optimizer opt;
    struct rig r = start("sgd");
    ck_ok(wf_sgd_init(&opt, r.registry, error, 0));
    ck_assert_ptr_null(opt.part[0].moment[0]); /* no memory for what is not used */
    follow(&opt, &r, 0, NULL, 0, NULL);

    r = start("sgd_momentum");
    ck_ok(wf_sgd_init(&opt, r.registry, error, .momentum = 0.9));
    follow(&opt, &r, 1.0, NULL, 1, momentum);

    r = start("sgd_nesterov");
    ck_ok(wf_sgd_init(&opt, r.registry, error, .momentum = 0.8, .nesterov = true, .weight_decay = 0.1));
    ck_ok(wf_optimizer_group(&opt, "c", error, .weight_decay = 0.3, .lr_scale = 0.1));
    follow(&opt, &r, 0, NULL, 1, momentum);
}
END_TEST

START_TEST(options_are_checked)
{
    static const struct {
        struct wf_sgd_options options;
        const char *message;
    } bad[] = {
        {{.lr = -1}, "lr = -1 is not in 0 <= lr < inf"},
        {{.momentum = 1}, "momentum = 1 is not in 0 <= momentum < 1"},
        {{.momentum = NAN}, "momentum = nan is not in 0 <= momentum < 1"},
        {{.weight_decay = -0.5}, "weight_decay = -0.5 is not in 0 <= weight_decay < inf"},
        {{.nesterov = true}, "nesterov needs a momentum above 0"},
    };
    struct rig r = start("sgd");
    struct wf_optimizer opt;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_fails(wf_sgd_init_with(&opt, r.registry, &bad[i].options, error), WF_ERR_ARGUMENT, bad[i].message);
        wf_optimizer_free(&opt);
    }
    const struct wf_sgd_options options = wf_sgd_defaults();
    ck_ok(wf_sgd_init_with(&opt, r.registry, &options, error));
    ck_assert_double_eq(opt.lr, 1e-3);
    /* A momentum that begins later has room then; one that ends leaves its moments alone. */
    gradients(&r, 0, 7);
    ck_ok(wf_sgd_step(&opt, error));
    opt.sgd.momentum = 0.5;
    gradients(&r, 1, 7);
    ck_ok(wf_sgd_step(&opt, error));
    const wf_real *g = opt.part[0].moment[0];
    ck_assert(g && g[0] != 0);
    wf_real kept = g[0];
    opt.sgd.momentum = 0;
    gradients(&r, 2, 7);
    ck_ok(wf_sgd_step(&opt, error));
    ck_assert(opt.part[0].moment[0][0] == kept);
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

/* Every length of a tail, on each instruction set the same bits as element by element, and nothing written behind. */
START_TEST(tails)
{
    enum { N = 40 };
    wf_real p[N + 1], b[N + 1], g[N], one[2];
    for (int nesterov = 0; nesterov < 2; nesterov++)
        for (int n = 0; n <= N; n++)
            for (int with = 0; with < 2; with++) {
                for (int i = 0; i <= N; i++) {
                    p[i] = (wf_real)formula_real(1, i, 1);
                    b[i] = (wf_real)formula_real(2, i, 1);
                    if (i < N)
                        g[i] = (wf_real)formula_real(3, i, 1);
                }
                one[0] = p[n / 2];
                one[1] = b[n / 2];
                wf_real last = p[n], behind = b[n];
                wf_kernel->internal->sgd(n, p, g, with ? b : NULL, (wf_real)0.5, (wf_real)0.9, nesterov, (wf_real)0.1, (wf_real)0.01);
                ck_assert(p[n] == last && b[n] == behind);
                if (n == 0)
                    continue;
                double first = one[0], grad = 0.5 * (double)g[n / 2] + 0.01 * first, mean = with ? 0.9 * (double)one[1] + grad : grad;
                double want = first - 0.1 * (with && nesterov ? grad + 0.9 * mean : mean);
                wf_kernel->internal->sgd(1, one, g + n / 2, with ? one + 1 : NULL, (wf_real)0.5, (wf_real)0.9, nesterov, (wf_real)0.1,
                                         (wf_real)0.01);
                ck_assert(one[0] == p[n / 2] && one[1] == b[n / 2]);
                ck_assert_double_eq_tol(p[n / 2], want, 1e-6);
            }
}
END_TEST

WF_TEST_MAIN("sgd", as_pytorch, options_are_checked, tails)
