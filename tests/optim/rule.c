/* SPDX-License-Identifier: MIT */
/* Optimisers by a rule of the program: against PyTorch, arguments of a step, states, refused rules. */
#include <stdatomic.h>

#include "optim_test.h"
#include "rules.h"

static struct lion betas = {0.9, 0.99};

START_TEST(as_pytorch)
{
    struct wf_optimizer opt;
    struct wf_schedule schedule = {WF_SCHEDULE_COSINE, 1e-2, 1e-3, 2, 6};
    struct lion others = {0.8, 0.95};
    struct rig r = start_in("optim_rules", "lion");
    ck_ok(wf_optimizer_init(&opt, r.registry, &lion, &betas, error));
    ck_assert_double_eq(opt.lr, 1e-3);
    follow(&opt, &r, 0, NULL, 1, lion_slabs);

    r = start_in("optim_rules", "lion_all");
    ck_ok(wf_optimizer_init(&opt, r.registry, &lion, &others, error, .weight_decay = 0.1));
    ck_ok(wf_optimizer_group(&opt, "c", error, .weight_decay = 0.3, .lr_scale = 0.1));
    follow(&opt, &r, 1.0, &schedule, 1, lion_slabs);

    r = start_in("optim_rules", "amsgrad");
    ck_ok(wf_optimizer_init(&opt, r.registry, &amsgrad, &amsgrad_settings, error, .weight_decay = 0.1));
    ck_ok(wf_optimizer_group(&opt, "c", error, .weight_decay = 0.3, .lr_scale = 0.1));
    follow(&opt, &r, 1.0, NULL, 3, amsgrad_slabs);
}
END_TEST

/* --- arguments of a step ---------------------------------------------------------------------------------------------- */

enum { LARGE = 20001 }; /* more than two blocks */
struct seen {
    bool fails;
    int slabs, checks;
    atomic_int calls, wrong;
    atomic_char element[2][LARGE];
    wf_real scale;
};

static wf_status seen_check(void *ctx, const struct wf_optimizer *opt, wf_error *error)
{
    struct seen *s = ctx;
    (void)opt;
    s->checks++;
    return s->fails ? wf_error_set(error, WF_ERR_ARGUMENT, "seen: not now") : WF_OK;
}
static int seen_used(void *ctx, const struct wf_optimizer *opt)
{
    (void)opt;
    return ((const struct seen *)ctx)->slabs;
}
static void seen_factors(void *ctx, const struct wf_optimizer *opt, int64_t updates, double factor[])
{
    (void)ctx, (void)opt;
    factor[0] = (double)updates;
}

static void seen_step(void *ctx, const struct wf_update *u)
{
    struct seen *s = ctx;
    const int which = strcmp(u->name, "a") == 0 ? 0 : 1;
    bool right = strcmp(u->prefix, "net.") == 0 && (which == 0 || strcmp(u->name, "b") == 0);
    right &= wf_ndim(u->parameter) == (which == 0 ? 1 : 2) && u->optimizer->step == u->updates && u->factor[0] == (double)u->updates;
    right &= u->lr == u->optimizer->lr * (which == 0 ? 1 : 0.5) && u->weight_decay == (which == 0 ? 0.25 : 0) && u->count > 0;
    right &= u->value == (wf_real *)wf_parameter_info(u->parameter)->value.data + u->at && u->scale == s->scale;
    right &= (u->slab[0] != NULL) == (s->slabs > 0) && (u->slab[1] != NULL) == (s->slabs > 1) && !u->slab[2] && !u->slab[3];
    for (int64_t i = 0; i < u->count; i++) {
        s->element[which][u->at + i]++;
        right &= u->gradient[i] * u->scale == (wf_real)((u->at + i) % 7 - 3) * (wf_real)0.25;
        if (s->slabs > 0) {
            right &= u->slab[0][i] == (wf_real)(u->updates - 1) * (wf_real)(u->at + i);
            u->slab[0][i] += (wf_real)(u->at + i);
        }
    }
    s->calls++;
    s->wrong += !right;
}

/* Each element comes once. Clipped gradients are multiplied before the step or by it. A rule may get whole parameters at once. */
START_TEST(arguments_of_a_step)
{
    static const char *const slabs[] = {"one", "two", NULL};
    for (int how = 0; how < 4; how++) {
        const struct wf_optimizer_rule rule = {WF_OPTIMIZER_RULE_ABI, .name = "seen",          .slab = slabs,
                                               .scales = how & 1,     .whole = how & 2,        .used = seen_used,
                                               .check = seen_check,   .factors = seen_factors, .step = seen_step};
        static struct seen s;
        memset(&s, 0, sizeof s);
        s.slabs = 1;
        wf_registry *empty = wf_registry_new(NULL), *registry = wf_registry_new(NULL);
        wf_parameter(wf_root(empty), "none", WF_SHAPE(1));
        wf_parameter(wf_root(registry), "a", WF_SHAPE(LARGE));
        wf_parameter(wf_root(registry), "b", WF_SHAPE(3, LARGE / 3));
        ck_ok(wf_registry_build(empty, 1, error));
        ck_ok(wf_registry_build(registry, 1, error));
        struct wf_optimizer opt;
        s.fails = true;
        ck_fails(wf_optimizer_init(&opt, empty, &rule, &s, error), WF_ERR_ARGUMENT, "seen: not now");
        wf_optimizer_free(&opt);
        s.fails = false;
        ck_ok(wf_optimizer_init(&opt, empty, &rule, &s, error, .weight_decay = 0.25));
        ck_ok(wf_optimizer_add(&opt, registry, "net.", error));
        ck_ok(wf_optimizer_group(&opt, "net.b", error, .weight_decay = 0, .lr_scale = 0.5));
        wf_grads *grads = wf_registry_grads(registry);
        for (int t = 0; t < 3; t++) {
            const bool clipped = t > 0;
            for (int i = 0; i < 2; i++)
                for (int64_t k = 0; k < LARGE; k++)
                    grads->slab[grads->place[i].offset + k] = (wf_real)(k % 7 - 3) * (clipped ? 1 : (wf_real)0.25);
            grads->valid[0] = grads->valid[1] = true;
            grads->finite = false;
            grads->factor = clipped ? 0.25 : 0; /* as wf_clip_norm leaves it */
            s.scale = clipped && how & 1 ? (wf_real)0.25 : 1;
            if (t == 2)
                s.slabs = 2; /* from now on */
            s.calls = 0;
            ck_ok(wf_optimizer_step(&opt, error));
            ck_assert_int_eq(s.wrong, 0);
            ck_assert_int_eq(s.calls, how & 2 ? 2 : 6);
            ck_assert_int_eq(s.checks, 3 + t); /* of two inits, and before each step */
        }
        for (int i = 0; i < 2 * LARGE; i++)
            ck_assert_int_eq(s.element[i / LARGE][i % LARGE], 3);
        /* A refusal by check changes nothing. */
        grads->valid[0] = s.fails = true;
        s.calls = 0;
        ck_fails(wf_optimizer_step(&opt, error), WF_ERR_ARGUMENT, "seen: not now");
        ck_assert(s.calls == 0 && opt.step == 3 && grads->valid[0]);
        wf_optimizer_free(&opt);
        wf_registry_free(registry);
        wf_registry_free(empty);
    }
}
END_TEST

START_TEST(whole_parameters)
{
    struct rig r = start("sgd");
    struct wf_optimizer opt;
    wf_real before[35];
    ck_ok(wf_optimizer_init(&opt, r.registry, &unit, NULL, error, .lr = 0.5));
    gradients(&r, 0, 5); /* b has none */
    const wf_real *w = value_of(r.registry, "w");
    const wf_real kept = *value_of(r.registry, "b");
    memcpy(before, w, sizeof before);
    ck_ok(wf_optimizer_step(&opt, error));
    double sum = 0;
    for (int i = 0; i < 35; i++)
        sum += pow((double)w[i] - (double)before[i], 2);
    ck_assert_double_eq_tol(sqrt(sum), 0.5, 1e-5); /* the length of a step is lr */
    ck_assert(*value_of(r.registry, "b") == kept);
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

/* A rule with whole matrices, whose state is one number for each row, and vectors by element without state: p -= lr g / |g|, where |g| is
 * the largest norm that the row has had. */
static bool rows_whole(void *ctx, const wf_tensor *parameter)
{
    (void)ctx;
    return wf_ndim(parameter) == 2;
}
static bool rows_shape(void *ctx, const wf_tensor *parameter, int slab, wf_shape *shape)
{
    (void)slab;
    ck_assert(shape->ndim == wf_ndim(parameter) && shape->dim[0] == wf_dim(parameter, 0));
    *shape = *(const bool *)ctx ? (wf_shape){1, {wf_dim(parameter, 0)}} : (wf_shape){2, {wf_dim(parameter, 0), 10000}};
    return wf_ndim(parameter) == 2;
}
static int64_t rows_workspace(void *ctx, const wf_tensor *parameter)
{
    (void)ctx;
    return wf_ndim(parameter) == 2 ? wf_dim(parameter, 1) : -1;
}
static void rows_step(void *ctx, const struct wf_update *u)
{
    (void)ctx;
    ck_assert(u->whole == (wf_ndim(u->parameter) == 2) && (u->slab[0] != NULL) == u->whole && (u->workspace != NULL) == u->whole);
    ck_assert((u->error != NULL) == u->whole);
    const int64_t width = u->whole ? wf_dim(u->parameter, 1) : 1;
    for (int64_t r = 0; r < u->count / width; r++) {
        double norm = 1;
        if (u->whole) {
            memcpy(u->workspace, u->gradient + r * width, (size_t)width * sizeof *u->workspace);
            norm = sqrt(wf_kernel->sum_squares(width, u->workspace));
            u->slab[0][r] = (wf_real)fmax(norm, (double)u->slab[0][r]);
            norm = u->slab[0][r];
        }
        for (int64_t i = r * width; i < (r + 1) * width; i++)
            u->value[i] -= (wf_real)(u->lr / norm) * u->gradient[i];
    }
    if (u->whole && u->lr == 0.125)
        wf_error_set(u->error, WF_ERR_MEMORY, "no memory for '%s'", u->name);
}
static const char *const rows_slabs[] = {"norm", NULL};
static const struct wf_optimizer_rule rows_rule = {WF_OPTIMIZER_RULE_ABI,      .name = "rows",         .slab = rows_slabs,
                                                   .step = rows_step,          .is_whole = rows_whole, .slab_shape = rows_shape,
                                                   .workspace = rows_workspace};

START_TEST(state_of_another_shape)
{
    bool narrow = true;
    struct rig a = start("adam"), b = start("adam");
    struct wf_optimizer one, two;
    wf_safetensors *file = NULL;
    wf_error why = {0};
    ck_ok(wf_optimizer_init(&one, a.registry, &rows_rule, &narrow, error, .lr = 0.1));
    ck_ok(wf_optimizer_init(&two, b.registry, &rows_rule, &narrow, error, .lr = 0.1));
    ck_assert_int_eq(one.part[0].size[0], 16 + 16);
    for (int t = 0; t < STEPS; t++) {
        if (t == 3)
            file = saved(&one, &a);
        gradients(&a, t, 7);
        clipped(&one, &a, 1);
    }
    const struct wf_safetensors_entry *e = wf_safetensors_find(file, "optim.norm.w");
    ck_assert(e && e->shape.ndim == 1 && e->shape.dim[0] == 5);
    ck_assert_ptr_null(wf_safetensors_find(file, "optim.norm.b"));
    restored(&two, &b, file);
    for (int t = 3; t < STEPS; t++) {
        gradients(&b, t, 7);
        clipped(&two, &b, 1);
    }
    ck_assert_mem_eq(wf_registry_values(a.registry), wf_registry_values(b.registry),
                     (size_t)wf_registry_slab(a.registry) * sizeof(wf_real));
    /* A step that fails says so. */
    one.lr = 0.125;
    gradients(&a, 0, 7);
    ck_fails(wf_optimizer_step(&one, error), WF_ERR_MEMORY, "no memory for 'w'");
    wf_optimizer_free(&one);
    wf_optimizer_free(&two);
    /* A state of another shape is refused by name. */
    ck_ok(wf_optimizer_init(&one, a.registry, &rows_rule, &narrow, error));
    file = saved(&one, &a);
    wf_optimizer_free(&one);
    narrow = false;
    ck_ok(wf_optimizer_init(&two, b.registry, &rows_rule, &narrow, error));
    ck_fails(wf_optimizer_load(&two, file, "optim.", error), WF_ERR_FORMAT, "with another shape: optim.norm.w");
    wf_safetensors_close(file);
    wf_optimizer_free(&two);
    /* Without memory for the workspace nothing changes. */
    narrow = true;
    for (int64_t n = 0;; n++) {
        why = (wf_error){0};
        wf_alloc_fail_after(n);
        const wf_status status = wf_optimizer_init(&one, a.registry, &rows_rule, &narrow, &why);
        wf_alloc_fail_after(-1);
        wf_optimizer_free(&one);
        if (status == WF_OK) {
            ck_assert_int_gt(n, 4);
            break;
        }
        ck_assert_int_eq(status, WF_ERR_MEMORY);
    }
    /* Only whole parameters may have slabs of another shape. */
    struct wf_optimizer_rule wrong = rows_rule;
    wrong.is_whole = NULL;
    ck_fails(wf_optimizer_init(&one, a.registry, &wrong, &narrow, error), WF_ERR_ARGUMENT,
             "the optimiser rule rows: slab norm of 'w' has another shape than the parameter, which is not whole");
    rig_close(&a);
    rig_close(&b);
}
END_TEST

/* --- states ---------------------------------------------------------------------------------------------------------- */

/* Saved after three updates and loaded into another optimiser, six end with the same bits; with other state it is refused. */
START_TEST(state_goes_on)
{
    struct rig a = start_in("optim_rules", "amsgrad"), b = start_in("optim_rules", "amsgrad");
    struct wf_optimizer one, two, other;
    wf_safetensors *file = NULL;
    ck_ok(wf_optimizer_init(&one, a.registry, &amsgrad, &amsgrad_settings, error, .weight_decay = 0.1));
    ck_ok(wf_optimizer_init(&two, b.registry, &amsgrad, &amsgrad_settings, error, .weight_decay = 0.1));
    for (int t = 0; t < STEPS; t++) {
        if (t == 3)
            file = saved(&one, &a);
        gradients(&a, t, t == 1 ? 5 : 7);
        clipped(&one, &a, 1);
    }
    ck_assert_ptr_nonnull(wf_safetensors_find(file, "optim.most.w"));
    ck_assert_str_eq(wf_safetensors_metadata(file, "optim.optimizer"), "amsgrad");
    ck_ok(wf_optimizer_init(&other, b.registry, &lion, &betas, error));
    ck_fails(wf_optimizer_load(&other, file, "optim.", error), WF_ERR_FORMAT, "the state is that of amsgrad, the optimiser is lion");
    wf_optimizer_free(&other);
    /* The same rule, of an older version of the program without its third slab. */
    struct wf_optimizer_rule older = amsgrad;
    older.slab = (const char *const[]){"m", "v", NULL};
    ck_ok(wf_optimizer_init(&other, b.registry, &older, &amsgrad_settings, error));
    ck_fails(wf_optimizer_load(&other, file, "optim.", error), WF_ERR_FORMAT, "unexpected");
    wf_optimizer_free(&other);
    restored(&two, &b, file);
    for (int t = 3; t < STEPS; t++) {
        gradients(&b, t, 7);
        clipped(&two, &b, 1);
    }
    ck_assert_mem_eq(wf_registry_values(a.registry), wf_registry_values(b.registry),
                     (size_t)wf_registry_slab(a.registry) * sizeof(wf_real));
    for (int k = 0; k < 3; k++)
        ck_assert_mem_eq(one.part[0].moment[k], two.part[0].moment[k], (size_t)one.part[0].size[k] * sizeof(wf_real));
    for (int i = 0; i < PARAMETERS; i++)
        ck_assert_int_eq(one.part[0].parameter[i].updates, two.part[0].parameter[i].updates);
    wf_optimizer_free(&one);
    wf_optimizer_free(&two);
    rig_close(&a);
    rig_close(&b);
}
END_TEST

/* --- rules that cannot be used --------------------------------------------------------------------------------------- */

START_TEST(rules_are_checked)
{
#define SLABS(...)                                                                                                                         \
    .slab = (const char *const[])                                                                                                          \
    {                                                                                                                                      \
        __VA_ARGS__, NULL                                                                                                                  \
    }
#define GOOD WF_OPTIMIZER_RULE_ABI, .name = "r", .step = lion_step
    static const char *const five[] = {"a", "b", "c", "d", "e", NULL};
    const struct {
        struct wf_optimizer_rule rule;
        const char *message;
    } bad[] = {
        {{.name = "r", .step = lion_step}, "the optimiser rule was compiled for another version of Weft"},
        {{WF_OPTIMIZER_RULE_ABI + 8, .name = "r", .step = lion_step}, "the optimiser rule was compiled for another version of Weft"},
        {{WF_OPTIMIZER_RULE_ABI, .step = lion_step}, "an optimiser rule is called NULL: a name is 1 to 31 letters, digits, _ or -"},
        {{WF_OPTIMIZER_RULE_ABI, .name = "my rule", .step = lion_step}, "an optimiser rule is called \"my rule\": a name is"},
        {{WF_OPTIMIZER_RULE_ABI, .name = "r"}, "the optimiser rule r has no function step"},
        {{GOOD, .slab = five}, "the optimiser rule r has more than 4 slabs, or their list does not end with NULL"},
        {{GOOD, SLABS("m", "v", "m")}, "the optimiser rule r: slabs 0 and 2 are both called \"m\""},
        {{GOOD, SLABS("m", "a.b")}, "the optimiser rule r: slab 1 is called \"a.b\": a name is 1 to 31 letters, digits, _ or -"},
        {{GOOD, SLABS("")}, "the optimiser rule r: slab 0 is called \"\": a name is"},
        {{GOOD, SLABS("updates")}, "the optimiser rule r: slab 0 is called \"updates\", the state's name for other things"},
    };
    struct rig r = start("sgd");
    struct wf_optimizer opt;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_fails(wf_optimizer_init(&opt, r.registry, &bad[i].rule, &betas, error), WF_ERR_ARGUMENT, bad[i].message);
        wf_optimizer_free(&opt);
    }
    const struct wf_optimizer_options options = {.lr = -1};
    ck_fails(wf_optimizer_init_with(&opt, r.registry, &lion, &betas, &options, error), WF_ERR_ARGUMENT, "lr = -1 is not in 0 <= lr < inf");
    /* A hyperparameter that goes bad later is refused by the step. */
    struct lion later = betas;
    ck_ok(wf_optimizer_init(&opt, r.registry, &lion, &later, error));
    later.beta1 = 1;
    gradients(&r, 0, 7);
    ck_fails(wf_optimizer_step(&opt, error), WF_ERR_ARGUMENT, "lion: a beta of 1 or more");
    ck_assert_int_eq(opt.step, 0);
    wf_optimizer_free(&opt);
    /* As many slabs as there can be. */
    struct wf_optimizer_rule most = {GOOD, .slab = five + 1};
    ck_ok(wf_optimizer_init(&opt, r.registry, &most, &betas, error));
    ck_assert_ptr_nonnull(opt.part[0].moment[3]);
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

WF_TEST_MAIN("rule", state_of_another_shape, as_pytorch, arguments_of_a_step, whole_parameters, state_goes_on, rules_are_checked)
