/* SPDX-License-Identifier: MIT */
/* Muon against torch.optim.Muon in the same precision; which parameters it updates as matrices; threads; memory. */
#define SHAPE_OF_C                                                                                                                         \
    {                                                                                                                                      \
        2,                                                                                                                                 \
        {                                                                                                                                  \
            9, 4                                                                                                                           \
        }                                                                                                                                  \
    }
#define LOOSER 10 /* the iterations amplify roundings */
#include <weft/internal/minmax.h>

#include "optim_test.h"

static const char *const moments[] = {"momentum", "m", "v"};

START_TEST(as_pytorch)
{
    struct wf_optimizer opt;
    struct wf_schedule schedule = {WF_SCHEDULE_COSINE, 1e-2, 1e-3, 2, 6};
    struct rig r = start_in("optim_more", "muon");
    ck_ok(wf_muon_init(&opt, r.registry, error));
    follow(&opt, &r, 0, NULL, 3, moments);

    r = start_in("optim_more", "muon_all");
    ck_ok(wf_muon_init(&opt, r.registry, error, .momentum = 0.8, .nesterov = false, .weight_decay = 0.1, .iterations = 3,
                       .adjust = WF_MUON_ORIGINAL, .beta1 = 0.8, .beta2 = 0.95, .adam_eps = 1e-6, .adam_lr_scale = 0.5));
    ck_ok(wf_optimizer_group(&opt, "c", error, .weight_decay = 0.3, .lr_scale = 0.1, .momentum = 0.5));
    follow(&opt, &r, 1.0, &schedule, 3, moments);
}
END_TEST

/* A step without memory for the products of a matrix changes neither it nor its average: the next step begins the average. */
START_TEST(a_product_without_memory)
{
    bool failed = false, done = false;
    for (int n = 0; !done; n++) {
        ck_assert_int_lt(n, 100);
        wf_registry *registry = wf_registry_new(NULL);
        wf_parameter(wf_root(registry), "bias", WF_SHAPE(5), .init = {WF_INIT_CONSTANT, 1});
        const int64_t size = 500 + 50 * n; /* more than the products before have left behind */
        wf_parameter(wf_root(registry), "weight", WF_SHAPE(size, size), .init = {WF_INIT_CONSTANT, 1});
        ck_ok(wf_registry_build(registry, 3, error));
        struct wf_optimizer opt;
        ck_ok(wf_muon_init(&opt, registry, error, .lr = 1e-4));
        opt.ema = 0.9;
        wf_grads *grads = wf_registry_grads(registry);
        for (int t = 0; t < 2; t++) {
            wf_fill_normal(grads->slab, grads->count, 0, 1, 3, (uint64_t)t);
            grads->valid[0] = grads->valid[1] = true;
            wf_alloc_fail_after(t == 0 ? n : -1);
            wf_error e = {0};
            const wf_status status = wf_optimizer_step(&opt, &e);
            wf_alloc_fail_after(-1);
            if (t == 0 && status != WF_OK) {
                ck_assert_int_eq(status, WF_ERR_MEMORY);
                failed |= strstr(e.message, "no memory for the products of 'weight'") != NULL;
                ck_assert(*value_of(registry, "weight") == 1 && opt.part[0].parameter[1].updates == 0);
            } else {
                ck_assert_int_eq(status, WF_OK);
            }
            done = t == 0 && status == WF_OK;
            if (done)
                break;
        }
        for (int i = 0; i < 2 && !done; i++) {
            const double value = (double)*value_of(registry, i ? "weight" : "bias");
            const struct wf_optimizer_part *part = &opt.part[0];
            const wf_real mean = part->moment[WF_RULE_SLABS][part->parameter[i].place[WF_RULE_SLABS]];
            ck_assert_double_eq_tol((double)mean, value, 1e-2);
        }
        wf_optimizer_free(&opt);
        wf_registry_free(registry);
    }
    ck_assert(failed);
}
END_TEST

/* In strict C11 a call without options has a 0 for them. */
START_TEST(a_zero_for_no_option)
{
    struct wf_optimizer none, zero;
    struct rig r = start_in("optim_more", "muon");
    ck_ok(wf_muon_init(&none, r.registry, error));
    ck_ok(wf_muon_init(&zero, r.registry, error, 0));
    ck_assert(none.lr == zero.lr && none.weight_decay == zero.weight_decay && memcmp(&none.muon, &zero.muon, sizeof none.muon) == 0);
    wf_optimizer_free(&none);
    wf_optimizer_free(&zero);
    rig_close(&r);
}
END_TEST

/* The update is nearly orthogonal, with singular values from about 0.7 to 1.2, as Jordan states: wide and tall, in one panel and in
 * several, whose parts below the diagonal are copies. */
START_TEST(updates_are_nearly_orthogonal)
{
    static const int sizes[][2] = {{40, 90}, {90, 40}, {300, 601}, {601, 300}};
    for (int s = 0; s < 4; s++) {
        const int rows = sizes[s][0], columns = sizes[s][1], n = WF_MIN(rows, columns), m = WF_MAX(rows, columns);
        const int step = rows < columns ? columns : 1, across = rows < columns ? 1 : columns; /* of the smaller and the larger dimension */
        wf_error e = {0};
        wf_registry *registry = wf_registry_new(&e);
        wf_tensor *w = wf_parameter(wf_root(registry), "w", WF_SHAPE(rows, columns));
        ck_ok(wf_registry_build(registry, 1, error));
        struct wf_optimizer opt;
        ck_ok(wf_muon_init(&opt, registry, error, .lr = 1, .adjust = WF_MUON_PLAIN));
        wf_grads *grads = wf_registry_grads(registry);
        wf_fill_normal(grads->slab, rows * columns, 0, 1, 3, 4);
        grads->valid[0] = true;
        ck_ok(wf_muon_step(&opt, error));
        const wf_real *x = wf_parameter_info(w)->value.data;
        double trace = 0, off = 0;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                double dot = 0;
                for (int k = 0; k < m; k++)
                    dot += (double)x[i * step + k * across] * (double)x[j * step + k * across];
                if (i == j)
                    trace += dot;
                else
                    off += dot * dot;
            }
        ck_assert_msg(trace > 0.5 * n && trace < 1.3 * n, "%d: %g", s, trace / n);
        ck_assert_msg(sqrt(off) < 0.5 * trace / sqrt(n), "%d: %g of %g", s, sqrt(off), trace);
        wf_optimizer_free(&opt);
        wf_registry_free(registry);
    }
}
END_TEST

/* Embeddings, positions and output layers are tables; so is what a program says is one. */
START_TEST(tables_are_for_adamw)
{
    wf_error e = {0};
    wf_registry *registry = wf_registry_new(&e);
    wf_scope root = wf_root(registry);
    struct wf_embedding embed;
    struct wf_positions positions;
    struct wf_linear hidden, head;
    wf_embedding_init(wf_sub(root, "embed"), &embed, 11, 8);
    wf_positions_init(wf_sub(root, "positions"), &positions, 5, 8, .learned = true);
    wf_linear_init(wf_sub(root, "hidden"), &hidden, 8, 8);
    wf_linear_init(wf_sub(root, "head"), &head, 8, 11);
    wf_parameter(root, "table", WF_SHAPE(4, 8), .table = true);
    wf_parameter(root, "deep", WF_SHAPE(4, 8, 2));
    wf_registry_table(registry, head.weight, true);
    ck_ok(wf_registry_build(registry, 1, error));
    struct wf_optimizer opt;
    ck_ok(wf_muon_init(&opt, registry, error));
    for (int i = 0; i < wf_registry_count(registry); i++) {
        const struct wf_optimizer_parameter *p = &opt.part[0].parameter[i];
        const bool matrix = strcmp(wf_name_of(wf_registry_at(registry, i)), "hidden.weight") == 0;
        ck_assert_msg(p->whole == matrix && (p->place[0] >= 0) == matrix && (p->place[1] >= 0) == !matrix, "%d", i);
    }
    wf_optimizer_free(&opt);
    wf_registry *other = wf_registry_new(&e);
    wf_registry_table(other, head.weight, true);
    ck_assert_int_eq(wf_registry_error(other)->code, WF_ERR_ARGUMENT);
    wf_registry_table(NULL, head.weight, true);
    wf_registry_free(other);
    wf_registry_free(registry);
}
END_TEST

START_TEST(options_are_checked)
{
    struct wf_muon_options base = wf_muon_defaults();
    const struct {
        double *at, value;
        const char *message;
    } bad[] = {
        {&base.lr, NAN, "lr = nan is not in 0 <= lr < inf"},
        {&base.momentum, 1, "momentum = 1 is not in 0 <= momentum < 1"},
        {&base.eps, -1, "eps = -1 is not in 0 <= eps < inf"},
        {&base.beta1, -0.5, "beta1 = -0.5 is not in 0 <= beta1 < 1"},
        {&base.beta2, 1, "beta2 = 1 is not in 0 <= beta2 < 1"},
        {&base.adam_eps, INFINITY, "adam_eps = inf is not in 0 <= adam_eps < inf"},
        {&base.adam_lr_scale, -1, "adam_lr_scale = -1 is not in 0 <= adam_lr_scale < inf"},
        {&base.coefficient[1], NAN, "coefficient[1] = nan is not finite"},
    };
    struct rig r = start_in("optim_more", "muon");
    struct wf_optimizer opt;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const double kept = *bad[i].at;
        *bad[i].at = bad[i].value;
        ck_fails(wf_muon_init_with(&opt, r.registry, &base, error), WF_ERR_ARGUMENT, bad[i].message);
        wf_optimizer_free(&opt);
        *bad[i].at = kept;
    }
    base.iterations = 100;
    ck_fails(wf_muon_init_with(&opt, r.registry, &base, error), WF_ERR_ARGUMENT, "iterations = 100 is not in 0 <= iterations < 100");
    base.iterations = 5;
    ck_ok(wf_muon_init_with(&opt, r.registry, &base, error));
    ck_fails(wf_optimizer_group(&opt, "*", error, .iterations = 2.5), WF_ERR_ARGUMENT, "iterations = 2.5 is not a count");
    wf_optimizer_free(&opt);
    base.adjust = (enum wf_muon_adjust)3;
    ck_fails(wf_muon_init_with(&opt, r.registry, &base, error), WF_ERR_ARGUMENT, "adjust = 3 is not an enum wf_muon_adjust");
    rig_close(&r);
}
END_TEST

/* A gradient of zeros moves nothing, and decays. */
START_TEST(zero_gradients)
{
    struct rig r = start_in("optim_more", "muon");
    struct wf_optimizer opt;
    ck_ok(wf_muon_init(&opt, r.registry, error, .weight_decay = 0.5, .eps = 0));
    wf_grads *grads = wf_registry_grads(r.registry);
    const wf_real was = *value_of(r.registry, "w");
    memset(grads->slab, 0, (size_t)grads->count * sizeof *grads->slab);
    grads->valid[0] = true;
    ck_ok(wf_muon_step(&opt, error));
    ck_assert_double_eq_tol(*value_of(r.registry, "w"), (1 - 0.5e-3) * (double)was, 1e-7);
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

/* The same bits on any number of threads, with matrices of both forms that are large enough for parallel products; and no allocation after
 * the first update. */
START_TEST(threads_do_not_matter)
{
    static const struct {
        wf_shape shape;
    } shapes[] = {{{2, {300, 200}}}, {{2, {130, 500}}}, {{1, {20000}}}};
    wf_real *first = NULL;
    for (int threads = 1; threads <= 4; threads++) {
        wf_error e = {0};
        ck_ok(wf_set_threads(threads, error));
        wf_registry *registry = wf_registry_new(&e);
        for (int i = 0; i < 3; i++) {
            char name[2] = {(char)('a' + i)};
            wf_parameter(wf_root(registry), name, &shapes[i].shape, .init = {WF_INIT_NORMAL, 1});
        }
        ck_ok(wf_registry_build(registry, 3, error));
        struct wf_optimizer opt;
        ck_ok(wf_muon_init(&opt, registry, error, .weight_decay = 0.1));
        wf_grads *grads = wf_registry_grads(registry);
        for (int t = 0; t < 3; t++) {
            wf_fill_normal(grads->slab, grads->count, 0, 1, 3, (uint64_t)t);
            for (int i = 0; i < 3; i++)
                grads->valid[i] = true;
            if (t == 1) /* whatever is needed is there */
                wf_alloc_fail_after(0);
            ck_ok(wf_muon_step(&opt, error));
        }
        wf_alloc_fail_after(-1);
        const size_t bytes = (size_t)wf_registry_slab(registry) * sizeof(wf_real);
        if (!first)
            first = memcpy(malloc(bytes), wf_registry_values(registry), bytes);
        ck_assert_mem_eq(first, wf_registry_values(registry), bytes);
        wf_optimizer_free(&opt);
        wf_registry_free(registry);
    }
    free(first);
}
END_TEST

WF_TEST_MAIN("muon", as_pytorch, updates_are_nearly_orthogonal, tables_are_for_adamw, options_are_checked, zero_gradients,
             threads_do_not_matter, a_product_without_memory, a_zero_for_no_option)
