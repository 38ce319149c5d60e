/* SPDX-License-Identifier: MIT */
/* Optimisers by a rule of the program: what a step is given, against PyTorch; states; rules that are refused. */
#include <stdatomic.h>
#include <unistd.h>

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

/* --- what a step is given -------------------------------------------------------------------------------------------- */

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

/* Each element once, whatever the threads; clipped gradients multiplied before the step or by it; whole parameters at once. */
START_TEST(what_a_step_is_given)
{
    static const char *const slabs[] = {"one", "two", NULL};
    for (int how = 0; how < 4; how++) {
        const struct wf_optimizer_rule rule = {WF_OPTIMIZER_RULE_ABI, .name = "seen",          .slab = slabs,
                                               .scales = how & 1,     .whole = how & 2,        .used = seen_used,
                                               .check = seen_check,   .factors = seen_factors, .step = seen_step};
        static struct seen s;
        memset(&s, 0, sizeof s);
        s.slabs = 1;
        wf_error e = {0};
        wf_registry *empty = wf_registry_new(&e), *registry = wf_registry_new(&e);
        wf_parameter(wf_root(empty), "none", WF_SHAPE(1));
        wf_parameter(wf_root(registry), "a", WF_SHAPE(LARGE));
        wf_parameter(wf_root(registry), "b", WF_SHAPE(3, LARGE / 3));
        ck_assert(wf_registry_build(empty, 1, &e) == WF_OK && wf_registry_build(registry, 1, &e) == WF_OK);
        struct wf_optimizer opt;
        s.fails = true;
        ck_assert_int_eq(wf_optimizer_init(&opt, empty, &rule, &s, &e), WF_ERR_ARGUMENT);
        ck_assert_str_eq(e.message, "seen: not now");
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
        ck_assert_int_eq(wf_optimizer_step(&opt, &e), WF_ERR_ARGUMENT);
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
    const struct wf_parameter_info *w = wf_parameter_info(wf_registry_at(r.registry, 0));
    const wf_real kept = *(wf_real *)wf_parameter_info(wf_registry_at(r.registry, 1))->value.data;
    memcpy(before, w->value.data, sizeof before);
    ck_ok(wf_optimizer_step(&opt, error));
    double sum = 0;
    for (int i = 0; i < 35; i++)
        sum += pow((double)((wf_real *)w->value.data)[i] - (double)before[i], 2);
    ck_assert_double_eq_tol(sqrt(sum), 0.5, 1e-5); /* the length of a step is lr */
    ck_assert(*(wf_real *)wf_parameter_info(wf_registry_at(r.registry, 1))->value.data == kept);
    wf_optimizer_free(&opt);
    rig_close(&r);
}
END_TEST

/* --- states ---------------------------------------------------------------------------------------------------------- */

static char path[] = "/tmp/weft-rule-XXXXXX.safetensors";

static void save(const struct wf_optimizer *opt, const struct rig *r)
{
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_optimizer_save(opt, w, "optim.");
    wf_registry_save(r->registry, w, "model.");
    ck_ok(wf_safetensors_commit(w, path, error));
}

static int64_t contents(const char *name, char *out, int64_t size)
{
    FILE *file = fopen(name, "rb");
    ck_assert_ptr_nonnull(file);
    const int64_t n = (int64_t)fread(out, 1, (size_t)size, file);
    fclose(file);
    return n;
}

/* Saved after three updates and loaded into another optimiser, six end with the same bytes; with other state it is refused. */
START_TEST(state_goes_on)
{
    static char want[100000], have[100000];
    const int made = mkstemps(path, 12);
    ck_assert_int_ge(made, 0);
    close(made);
    struct rig a = start_in("optim_rules", "amsgrad"), b = start_in("optim_rules", "amsgrad");
    struct wf_optimizer one, two, other;
    ck_ok(wf_optimizer_init(&one, a.registry, &amsgrad, &amsgrad_settings, error, .weight_decay = 0.1));
    ck_ok(wf_optimizer_init(&two, b.registry, &amsgrad, &amsgrad_settings, error, .weight_decay = 0.1));
    for (int t = 0; t < STEPS; t++) {
        if (t == 3)
            save(&one, &a);
        gradients(&a, t, t == 1 ? 5 : 7);
        ck_assert_int_eq(clipped(&one, &a, 1), WF_OK);
    }
    wf_error e = {0};
    wf_safetensors *file = wf_safetensors_open(path, &e);
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(wf_safetensors_find(file, "optim.most.w"));
    ck_assert_str_eq(wf_safetensors_metadata(file, "optim.optimizer"), "amsgrad");
    ck_ok(wf_registry_load(b.registry, file, "model.", error));
    ck_ok(wf_optimizer_load(&two, file, "optim.", error));
    ck_ok(wf_optimizer_init(&other, b.registry, &lion, &betas, error));
    ck_assert_int_eq(wf_optimizer_load(&other, file, "optim.", &e), WF_ERR_FORMAT);
    ck_assert_str_eq(e.message, "the state is that of amsgrad, the optimiser is lion");
    wf_optimizer_free(&other);
    /* The same rule, of an older version of the program without its third slab. */
    struct wf_optimizer_rule older = amsgrad;
    wf_error_clear(&e);
    older.slab = (const char *const[]){"m", "v", NULL};
    ck_ok(wf_optimizer_init(&other, b.registry, &older, &amsgrad_settings, error));
    ck_assert_int_eq(wf_optimizer_load(&other, file, "optim.", &e), WF_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(e.message, "unexpected"));
    wf_optimizer_free(&other);
    wf_safetensors_close(file);
    for (int t = 3; t < STEPS; t++) {
        gradients(&b, t, 7);
        ck_assert_int_eq(clipped(&two, &b, 1), WF_OK);
    }
    save(&one, &a);
    const int64_t n = contents(path, want, sizeof want);
    save(&two, &b);
    ck_assert_int_eq(contents(path, have, sizeof have), n);
    ck_assert(n > 1000 && memcmp(want, have, (size_t)n) == 0);
    wf_optimizer_free(&one);
    wf_optimizer_free(&two);
    rig_close(&a);
    rig_close(&b);
    unlink(path);
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
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++) {
        wf_error e = {0};
        ck_assert_int_eq(wf_optimizer_init(&opt, r.registry, &bad[i].rule, &betas, &e), WF_ERR_ARGUMENT);
        ck_assert_msg(strncmp(e.message, bad[i].message, strlen(bad[i].message)) == 0, "%s", e.message);
        wf_optimizer_free(&opt);
    }
    wf_error e = {0};
    const struct wf_optimizer_options options = {.lr = -1};
    ck_assert_int_eq(wf_optimizer_init_with(&opt, r.registry, &lion, &betas, &options, &e), WF_ERR_ARGUMENT);
    ck_assert_str_eq(e.message, "lr = -1 is not in 0 <= lr < inf");
    /* A hyperparameter that goes bad later is refused by the step. */
    struct lion later = betas;
    wf_error_clear(&e);
    ck_ok(wf_optimizer_init(&opt, r.registry, &lion, &later, error));
    later.beta1 = 1;
    gradients(&r, 0, 7);
    ck_assert_int_eq(wf_optimizer_step(&opt, &e), WF_ERR_ARGUMENT);
    ck_assert_str_eq(e.message, "lion: a beta of 1 or more");
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

WF_TEST_MAIN("rule", as_pytorch, what_a_step_is_given, whole_parameters, state_goes_on, rules_are_checked)
