/* SPDX-License-Identifier: MIT */
/* Adam and AdamW against torch.optim and torch.nn.utils.clip_grad_norm_; steps without a gradient, refused steps. */
#include "optim_test.h"

static const char *const moments[] = {"m", "v"};

START_TEST(as_pytorch)
{
    struct wf_optimizer opt;
    struct rig r = start("adam");
    ck_ok(wf_adam_init(&opt, r.registry, error, 0));
    follow(&opt, &r, 0, NULL, 2, moments);

    r = start("adam_l2");
    ck_ok(wf_adam_init(&opt, r.registry, error, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1));
    follow(&opt, &r, 0, NULL, 2, moments);

    r = start("adamw");
    ck_ok(wf_adamw_init(&opt, r.registry, error, .weight_decay = 0.1));
    follow(&opt, &r, 0, NULL, 2, moments);
}
END_TEST

/* Matrices decay, one group has its own decay and rate, gradients are clipped (but in step 3, whose norm is small), the rate follows
 * a schedule. */
START_TEST(groups_clipping_schedule)
{
    struct wf_optimizer opt;
    struct rig r = start("adamw_all");
    struct wf_schedule schedule = {WF_SCHEDULE_COSINE, 1e-2, 1e-3, 2, 6};
    ck_ok(wf_adamw_init(&opt, r.registry, error, .beta2 = 0.99, .weight_decay = 0.1));
    wf_optimizer_decay_matrices_only(&opt);
    ck_ok(wf_optimizer_group(&opt, "c", error, .weight_decay = 0.3, .lr_scale = 0.1));
    follow(&opt, &r, 1.0, &schedule, 2, moments);
}
END_TEST

START_TEST(without_a_gradient_nothing_moves)
{
    struct wf_optimizer opt;
    struct rig r = start("adam");
    ck_ok(wf_adamw_init(&opt, r.registry, error, .weight_decay = 0.1));
    const size_t bytes = (size_t)wf_registry_slab(r.registry) * sizeof(wf_real);
    wf_real *before = malloc(bytes);
    for (int t = 0; t < 3; t++) {
        memcpy(before, wf_registry_values(r.registry), bytes);
        gradients(&r, t, t == 1 ? 5 : 7); /* b is left out in step 1, after it has moments */
        ck_ok(wf_adam_step(&opt, error));
        for (int i = 0; i < PARAMETERS; i++) {
            const int64_t at = wf_parameter_info(wf_registry_at(r.registry, i))->offset;
            bool same = memcmp(before + at, wf_registry_values(r.registry) + at, bytes_of(i)) == 0;
            ck_assert_int_eq(same, t == 1 && i == 1);
        }
    }
    free(before);
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

/* Each parameter counts its own updates: one that misses the first four then makes a first update. Adam's first update is
 * lr g / (|g| + eps), which has the size lr; with the count of the other parameters it would be far larger. */
START_TEST(updates_are_counted_by_parameter)
{
    struct wf_optimizer opt;
    struct rig r = start("adam");
    ck_ok(wf_adam_init(&opt, r.registry, error, .lr = 1e-2));
    for (int t = 0; t < 5; t++) {
        const wf_real *b = value_of(r.registry, "b"), before = *b;
        gradients(&r, t, t < 4 ? 5 : 7); /* b comes in at the last */
        ck_ok(wf_adam_step(&opt, error));
        double moved = fabs((double)(*b - before));
        ck_assert_msg(t < 4 ? moved == 0 : fabs(moved - 1e-2) < 1e-5, "step %d: moved by %g", t, moved);
    }
    ck_assert(opt.part[0].parameter[0].updates == 5 && opt.part[0].parameter[1].updates == 1 && opt.step == 5);
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

START_TEST(frozen_parameters_stay)
{
    struct wf_optimizer opt;
    struct rig r = start("adam");
    wf_tensor *b = wf_registry_find(r.registry, "b");
    const wf_real *now = value_of(r.registry, "b");
    wf_registry_freeze(r.registry, b, true);
    ck_ok(wf_adamw_init(&opt, r.registry, error, .weight_decay = 0.1));
    wf_real before = *now;
    gradients(&r, 0, 7);
    ck_ok(wf_adam_step(&opt, error));
    ck_assert(*now == before);
    wf_registry_freeze(r.registry, b, false);
    gradients(&r, 1, 7);
    ck_ok(wf_adam_step(&opt, error));
    ck_assert(*now != before);
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

/* A refused step changes neither weights nor moments nor the count. */
START_TEST(refuses_bad_gradients)
{
    struct wf_optimizer opt;
    struct rig r = start("adam");
    ck_ok(wf_adam_init(&opt, r.registry, error, 0));
    gradients(&r, 0, 7);
    ck_ok(wf_adam_step(&opt, error));
    size_t bytes = (size_t)wf_registry_slab(r.registry) * sizeof(wf_real);
    wf_real *before = malloc(3 * bytes), *part[3] = {wf_registry_values(r.registry), opt.part[0].moment[0], opt.part[0].moment[1]};
    wf_grads *grads = wf_registry_grads(r.registry);
    for (int i = 0; i < 3; i++)
        memcpy((char *)before + (size_t)i * bytes, part[i], bytes);
    for (int kind = 0; kind < 3; kind++) {
        gradients(&r, 1, 7);
        if (kind == 2) { /* a backward that fails: an id that is none */
            wf_tape_reset(r.tape, WF_GRADIENTS);
            wf_tensor *x = wf_embedding(wf_registry_find(r.registry, "w"), wf_ids(r.tape, (int32_t[]){9}, 1, 1));
            ck_assert_int_ne(wf_backward(wf_sum(x)), WF_OK);
        } else {
            wf_grads_at(grads, wf_registry_at(r.registry, 2))[3] = kind ? (wf_real)INFINITY : (wf_real)NAN;
        }
        ck_assert_int_eq(grads->broken, kind == 2);
        ck_fails(wf_adam_step(&opt, error), kind < 2 ? WF_ERR_NUMERIC : WF_ERR_STATE,
                 kind == 0   ? "nan"
                 : kind == 1 ? "inf"
                             : "last backward failed");
        ck_assert_int_eq(opt.step, 1);
        for (int i = 0; i < 3; i++)
            ck_assert_mem_eq((char *)before + (size_t)i * bytes, part[i], bytes);
        wf_grads_zero(grads);
    }
    free(before);
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

START_TEST(options_are_checked)
{
    struct rig r = start("adam");
    const struct {
        struct wf_adam_options options;
        const char *message;
    } bad[] = {
        {{.lr = -1}, "lr = -1 is not in 0 <= lr < inf"},
        {{.lr = NAN}, "lr = nan is not in 0 <= lr < inf"},
        {{.beta1 = 1}, "beta1 = 1 is not in 0 <= beta1 < 1"},
        {{.beta2 = 1.5}, "beta2 = 1.5 is not in 0 <= beta2 < 1"},
        {{.eps = -1e-8}, "eps = -1e-08 is not in 0 <= eps < inf"},
        {{.weight_decay = INFINITY}, "weight_decay = inf is not in 0 <= weight_decay < inf"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wf_optimizer opt;
        ck_fails(wf_adam_init_with(&opt, r.registry, &bad[i].options, error), WF_ERR_ARGUMENT, bad[i].message);
        wf_optimizer_free(&opt);
    }
    wf_registry *empty = wf_registry_new(NULL);
    struct wf_optimizer opt;
    ck_assert_int_eq(wf_adam_init(&opt, empty, NULL, 0), WF_ERR_STATE); /* declared only */
    wf_registry_free(empty);
    rig_close(&r);
}
END_TEST

/* --- options of a program ------------------------------------------------------------------------------------------- */

/* One matrix and one vector; the gradient of each element is a constant. */
enum { N = 6 };
struct outside {
    wf_registry *registry;
    wf_tape *tape;
    wf_tensor *matrix, *vector;
};
static const wf_real slope[N] = {1e-8, -1e-8, (wf_real)0.25, -3, 40, (wf_real)-1e-3};

static struct outside outside_begin(void)
{
    wf_error e = {0};
    struct outside o = {.registry = wf_registry_new(&e), .tape = wf_tape_new(&e)};
    ck_assert_msg(o.registry && o.tape, "%s", e.message);
    o.matrix = wf_parameter(wf_root(o.registry), "matrix", WF_SHAPE(2, 3), .init = {WF_INIT_NORMAL, 1});
    o.vector = wf_parameter(wf_root(o.registry), "vector", WF_SHAPE(N), .init = {WF_INIT_NORMAL, 1});
    ck_ok(wf_registry_build(o.registry, 3, error));
    return o;
}

static void outside_end(struct outside *o, struct wf_optimizer *opt)
{
    wf_optimizer_free(opt);
    wf_tape_free(o->tape);
    wf_registry_free(o->registry);
}

static void outside_backward(struct outside *o, double factor)
{
    wf_tape_reset(o->tape, WF_GRADIENTS);
    wf_tensor *g = wf_affine(wf_input(o->tape, slope, WF_SHAPE(N), false), factor, 0);
    wf_tensor *loss = wf_add(wf_sum(wf_mul(o->vector, g)), wf_sum(wf_mul(o->matrix, wf_reshape(g, 2, 3))));
    ck_assert_msg(wf_backward(loss) == WF_OK, "%s", wf_tape_error(o->tape)->message);
}

static wf_real *values_of(const struct outside *o, wf_tensor *p)
{
    return wf_registry_values(o->registry) + wf_parameter_info(p)->offset;
}

/* Three updates against the formula in the header. */
static void as_the_formula(const char *what, struct outside *o, struct wf_optimizer *opt, double lr, double beta1, double beta2, double eps)
{
    double m[N] = {0}, v[N] = {0}, p[N];
    for (int i = 0; i < N; i++)
        p[i] = values_of(o, o->vector)[i];
    for (int t = 1; t <= 3; t++) {
        outside_backward(o, t);
        ck_ok(wf_adam_step(opt, error));
        for (int i = 0; i < N; i++) {
            double g = (double)slope[i] * t;
            m[i] = beta1 * m[i] + (1 - beta1) * g;
            v[i] = beta2 * v[i] + (1 - beta2) * g * g;
            p[i] -= lr / (1 - pow(beta1, t)) * m[i] / (sqrt(v[i] / (1 - pow(beta2, t))) + eps);
            double is = values_of(o, o->vector)[i];
            ck_assert_msg(fabs(is - p[i]) <= (sizeof(wf_real) == 8 ? 1e-12 : 1e-6) * (1 + fabs(p[i])), "%s: %g, not %g, after update %d",
                          what, is, p[i], t);
        }
    }
    outside_end(o, opt);
}

START_TEST(zero_is_zero)
{
    struct wf_optimizer opt;
    struct outside o;
    struct wf_adam_options options = wf_adam_defaults();
#define AS_THE_FORMULA(lr, beta1, beta2, eps, init)                                                                                        \
    do {                                                                                                                                   \
        o = outside_begin();                                                                                                               \
        ck_ok(init);                                                                                                                       \
        as_the_formula(#init, &o, &opt, lr, beta1, beta2, eps);                                                                            \
    } while (0)
    AS_THE_FORMULA(0.1, 0.9, 0.999, 1e-8, wf_adam_init(&opt, o.registry, error, .lr = 0.1));
    AS_THE_FORMULA(0, 0.9, 0.999, 1e-8, wf_adamw_init(&opt, o.registry, error, .lr = 0));
    AS_THE_FORMULA(0.1, 0, 0.999, 1e-8, wf_adamw_init(&opt, o.registry, error, .lr = 0.1, .beta1 = 0));
    AS_THE_FORMULA(0.1, 0.9, 0, 1e-8, wf_adamw_init(&opt, o.registry, error, .lr = 0.1, .beta2 = 0));
    AS_THE_FORMULA(0.1, 0.9, 0.999, 0, wf_adam_init(&opt, o.registry, error, .eps = 0, .lr = 0.1));
    AS_THE_FORMULA(0.1, 0, 0, 0, wf_adam_init_with(&opt, o.registry, &(struct wf_adam_options){.lr = 0.1}, error));
    AS_THE_FORMULA(1e-3, 0.9, 0.999, 1e-8, wf_adam_init_with(&opt, o.registry, &options, error));
}
END_TEST

/* The learning-rate factor of a vector stays when its decay goes; the first update moves by lr times the factor. */
START_TEST(only_the_decay_changes)
{
    struct wf_optimizer opt;
    struct outside o = outside_begin();
    ck_ok(wf_adamw_init(&opt, o.registry, error, .lr = 1e-2, .weight_decay = 0.5));
    ck_ok(wf_optimizer_group(&opt, "vec*", error, .lr_scale = 0.25));
    wf_optimizer_decay_matrices_only(&opt);
    double vector = values_of(&o, o.vector)[3], matrix = values_of(&o, o.matrix)[3];
    outside_backward(&o, 1);
    ck_ok(wf_adam_step(&opt, error));
    ck_assert_double_eq_tol(values_of(&o, o.vector)[3], vector + 0.25e-2, 1e-6);
    ck_assert_double_eq_tol(values_of(&o, o.matrix)[3], matrix - 1e-2 * 0.5 * matrix + 1e-2, 1e-6);
    outside_end(&o, &opt);
}
END_TEST

/* Settings changed after the init are checked in the step; a refused step changes nothing. */
START_TEST(settings_of_a_step_are_checked)
{
    struct wf_optimizer opt;
    struct outside o = outside_begin();
    ck_ok(wf_adamw_init(&opt, o.registry, error, .lr = 1e-2));
    const struct {
        double *at, value;
        const char *message;
    } bad[] = {
        {&opt.lr, NAN, "lr = nan is not in 0 <= lr < inf"},
        {&opt.lr, -1e-3, "lr = -0.001 is not in 0 <= lr < inf"},
        {&opt.lr, INFINITY, "lr = inf is not in 0 <= lr < inf"},
        {&opt.adam.beta1, 1, "beta1 = 1 is not in 0 <= beta1 < 1"},
        {&opt.adam.beta2, NAN, "beta2 = nan is not in 0 <= beta2 < 1"},
        {&opt.adam.eps, -1, "eps = -1 is not in 0 <= eps < inf"},
    };
    wf_real before = values_of(&o, o.vector)[4];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double kept = *bad[i].at;
        *bad[i].at = bad[i].value;
        outside_backward(&o, 1);
        ck_fails(wf_adam_step(&opt, error), WF_ERR_ARGUMENT, bad[i].message);
        ck_assert(values_of(&o, o.vector)[4] == before && opt.step == 0);
        wf_grads_zero(wf_registry_grads(o.registry));
        *bad[i].at = kept;
    }
    outside_backward(&o, 1);
    ck_ok(wf_adam_step(&opt, error));
    ck_assert(values_of(&o, o.vector)[4] != before);
    outside_end(&o, &opt);
}
END_TEST

START_TEST(without_memory)
{
    struct rig r = start("adam");
    int64_t live = wf_alloc_live(), n = 0;
    for (;; n++) {
        struct wf_optimizer opt;
        wf_error e = {0};
        wf_alloc_fail_after(n);
        wf_status status = wf_adam_init(&opt, r.registry, &e, 0);
        wf_alloc_fail_after(-1);
        wf_optimizer_free(&opt);
        ck_assert_int_eq(wf_alloc_live(), live);
        if (status == WF_OK)
            break;
        ck_assert_int_eq(status, WF_ERR_MEMORY);
    }
    ck_assert_int_gt(n, 3);
    rig_close(&r);
}
END_TEST

/* The same bits on any number of threads, over parameters of several blocks. */
START_TEST(threads_do_not_matter)
{
    wf_real *first = NULL;
    size_t bytes = 0;
    double norm = 0, last = 0;
    for (int threads = 1; threads <= 4; threads++) {
        wf_error e = {0};
        ck_ok(wf_set_threads(threads, error));
        wf_registry *registry = wf_registry_new(&e);
        wf_tensor *p = wf_parameter(wf_root(registry), "p", WF_SHAPE(300, 331), .init = {WF_INIT_NORMAL, 1});
        ck_ok(wf_registry_build(registry, 3, error));
        struct wf_optimizer opt;
        ck_ok(wf_adamw_init(&opt, registry, error, .weight_decay = 0.1));
        wf_tape *tape = wf_tape_new(&e);
        for (int t = 0; t < 3; t++) {
            wf_tape_reset(tape, WF_GRADIENTS);
            ck_assert_int_eq(wf_backward(wf_sum(wf_mul(p, wf_tanh(p)))), WF_OK);
            ck_ok(wf_clip_norm(wf_registry_grads(registry), 1, &last, error));
            ck_ok(wf_adam_step(&opt, error));
        }
        bytes = (size_t)wf_registry_slab(registry) * sizeof(wf_real);
        if (!first) {
            first = malloc(bytes);
            memcpy(first, wf_registry_values(registry), bytes);
            norm = last;
        }
        ck_assert_mem_eq(first, wf_registry_values(registry), bytes);
        ck_assert(norm == last);
        wf_optimizer_free(&opt);
        wf_tape_free(tape);
        wf_registry_free(registry);
    }
    free(first);
}
END_TEST

WF_TEST_MAIN("adam", as_pytorch, groups_clipping_schedule, without_a_gradient_nothing_moves, updates_are_counted_by_parameter,
             frozen_parameters_stay, refuses_bad_gradients, options_are_checked, zero_is_zero, only_the_decay_changes,
             settings_of_a_step_are_checked, without_memory, threads_do_not_matter)
