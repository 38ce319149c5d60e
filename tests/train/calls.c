/* SPDX-License-Identifier: MIT */
/* The calls of wf_fit, their number and their order, as weft/fit.h promises them: a task of two phases and three optimisers, two of them by
 * a rule of the program, writes down each call. */
#include <stdarg.h>

#include "train_test.h"

struct diary {
    wf_registry *registry;
    wf_tensor *p[3];
    struct wf_optimizer opt[3];
    char text[4096];
    int asked;     /* calls of cancelled since the last line */
    bool stepping; /* an optimiser has stepped in this update */
    int64_t cancel_at, bad_at;
};

static void note(struct diary *d, const char *format, ...)
{
    const size_t used = strlen(d->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(d->text + used, sizeof d->text - used, format, arguments);
    va_end(arguments);
    d->asked = 0;
}

static wf_status next(void *ctx, int64_t step, double *weight, wf_error *error)
{
    struct diary *d = ctx;
    (void)error;
    ck_assert_int_ge(d->asked, 1); /* before each update */
    note(d, "next%d ", (int)step);
    *weight = 2;
    return WF_OK;
}

static wf_tensor *loss(void *ctx, struct wf_micro_batch *part)
{
    struct diary *d = ctx;
    note(d, "loss%d.%d.%d ", (int)part->step, part->phase, (int)part->index);
    wf_tensor *sum = wf_sum(wf_mul(d->p[0], d->p[0]));
    if (part->phase == 1)
        sum = wf_add(wf_sum(wf_mul(d->p[1], d->p[1])), wf_sum(wf_mul(d->p[2], d->p[2])));
    return wf_scale(sum, part->step + 1 == d->bad_at && part->phase == 1 ? INFINITY : 1 / part->weight);
}

static double rate(void *ctx, int optimizer, int64_t step)
{
    note(ctx, "rate%d.%d ", optimizer, (int)step);
    return 0.01 * (double)(step + 1);
}

static wf_status check(void *ctx, const struct wf_optimizer *opt, wf_error *error)
{
    (void)error;
    note(ctx, "check%g ", opt->lr * 100);
    return WF_OK;
}

static void step(void *ctx, const struct wf_update *u)
{
    struct diary *d = ctx;
    note(d, "step%d%s ", (int)u->updates, u->name);
    d->stepping = true;
    for (int64_t i = 0; i < u->count; i++)
        u->value[i] -= (wf_real)u->lr * u->gradient[i];
}

static wf_status validate(void *ctx, wf_tape *tape, double *value, wf_error *error)
{
    (void)tape, (void)error;
    note(ctx, "validate ");
    value[0] = 1;
    return WF_OK;
}

static wf_status sample(void *ctx, wf_tape *tape, const char **text, wf_error *error)
{
    (void)tape, (void)error;
    note(ctx, "sample ");
    *text = "a sample";
    return WF_OK;
}

static void put(void *ctx, int64_t at, wf_fit_state *state)
{
    (void)state;
    note(ctx, "put%d ", (int)at);
}

static wf_status get(void *ctx, int64_t at, const wf_fit_state *state, wf_error *error)
{
    (void)state, (void)error;
    note(ctx, "get%d ", (int)at);
    return WF_OK;
}

static void event(void *ctx, const struct wf_fit_event *e)
{
    static const char *const names[] = {"PREPARE", "DATA", "CHANGE", "START", "STEP", "VALID", "SAVE", "WARNING", "END", "SAMPLE"};
    struct diary *d = ctx;
    if (e->kind == WF_EVENT_PROGRESS)
        return;
    if (e->kind == WF_EVENT_STEP) {
        ck_assert(!d->stepping || d->asked == 0); /* not after an optimiser's step */
        d->stepping = false;
    }
    note(d, "%s%d ", names[e->kind], (int)e->step);
}

static bool cancelled(void *ctx)
{
    struct diary *d = ctx;
    d->asked++;
    return d->cancel_at > 0 && strstr(d->text, d->cancel_at == 1 ? "STEP1 " : "loss1.1.1 ");
}

static bool is_of(void *ctx, const char *name, const wf_tensor *parameter)
{
    (void)parameter;
    return strcmp(name, ctx) == 0;
}

static void fit(struct diary *d, int64_t steps, bool resume, wf_status wanted, const char *settings)
{
    static const char *const phases[] = {"one", "two", NULL};
    static const struct wf_optimizer_rule rule = {WF_OPTIMIZER_RULE_ABI, .name = "diary", .check = check, .step = step};
    static const struct wf_metric metric = {"cost"};
    const struct wf_task task = {WF_TASK_ABI,  .name = "diary",      .phases = phases, .metric = &metric, .metrics = 1, .next = next,
                                 .loss = loss, .validate = validate, .sample = sample, .put = put,        .get = get};
    const struct wf_fit_registry registry = {.registry = d->registry = wf_registry_new(NULL)};
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++)
        d->p[i] = wf_parameter(wf_root(d->registry), names[i], WF_SHAPE(3));
    ck_ok(wf_registry_build(d->registry, 1, error));
    for (int i = 0; i < 3; i++) {
        if (i < 2)
            ck_ok(wf_optimizer_init(&d->opt[i], d->registry, &rule, d, error));
        else
            ck_ok(wf_sgd_init(&d->opt[i], d->registry, error));
        ck_ok(wf_optimizer_only(&d->opt[i], is_of, (void *)names[i], error));
    }
    d->text[0] = 0;
    d->stepping = false;
    /* The second in the list steps in the first turn. */
    const struct wf_fit_optimizer optimizer[] = {
        {"b", &d->opt[1], .phase = 1}, {"a", &d->opt[0], .phase = 0}, {"c", &d->opt[2], .phase = 1}};
    const struct wf_fit_options options = {.out = in_folder("diary"),
                                           .registry = &registry,
                                           .registries = 1,
                                           .optimizer = optimizer,
                                           .optimizers = 3,
                                           .steps = steps,
                                           .accumulate = 2,
                                           .rate = rate,
                                           .save_every = 2,
                                           .valid_every = 2,
                                           .resume = resume,
                                           .settings = settings,
                                           .event = event,
                                           .cancelled = cancelled,
                                           .ctx = d};
    ck_ends(wf_fit(&task, &options, NULL, error), wanted);
    for (int i = 0; i < 3; i++)
        wf_optimizer_free(&d->opt[i]);
    wf_registry_free(d->registry);
}

/* The calls of update N. */
#define UPDATE(n, lr, t)                                                                                                                   \
    "next" #n " loss" #n ".0.0 loss" #n ".0.1 rate1." #n " check" #lr " step" #t "a loss" #n ".1.0 loss" #n ".1.1 rate0." #n " check" #lr  \
    " step" #t "b rate2." #n " STEP" #t " "
#define VALID(t) "validate VALID" #t " sample SAMPLE" #t " "

START_TEST(in_the_promised_order)
{
    struct diary d = {0};
    fit(&d, 3, false, WF_OK, "width=1");
    ck_assert_str_eq(d.text, "START0 " UPDATE(0, 1, 1) UPDATE(1, 2, 2) VALID(2) "put2 SAVE2 " UPDATE(2, 3, 3) VALID(3) "put3 SAVE3 END3 ");
    /* A resume that changes a setting; the save that is due at its last step happens once. */
    fit(&d, 4, true, WF_OK, "width=2");
    ck_assert_str_eq(d.text, "get3 put3 CHANGE3 START3 " UPDATE(3, 4, 4) VALID(4) "put4 SAVE4 END4 ");
    fit(&d, 4, true, WF_OK, "width=2");
    ck_assert_str_eq(d.text, "get4 START4 SAVE4 END4 ");
}
END_TEST

/* A cancellation after an update, and one within the second turn of an update, which is finished first. */
START_TEST(cancelled_within_an_update)
{
    struct diary d = {.cancel_at = 1};
    fit(&d, 3, false, WF_ERR_CANCELLED, NULL);
    ck_assert_str_eq(d.text, "START0 " UPDATE(0, 1, 1) "put1 SAVE1 END1 ");
    d.cancel_at = 2;
    fit(&d, 3, true, WF_ERR_CANCELLED, NULL);
    ck_assert_str_eq(d.text, "get1 START1 " UPDATE(1, 2, 2) VALID(2) "put2 SAVE2 SAVE2 END2 ");
}
END_TEST

/* The loss of the second turn is not finite: its rates are not computed, and its micro-batches are repeated to find the tensor. */
START_TEST(not_finite)
{
    struct diary d = {.bad_at = 1};
    fit(&d, 3, false, WF_ERR_NUMERIC, NULL);
    ck_assert_str_eq(d.text, "START0 next0 loss0.0.0 loss0.0.1 rate1.0 check1 step1a loss0.1.0 loss0.1.0 loss0.1.1 ");
}
END_TEST

WF_TEST_MAIN("train/calls", in_the_promised_order, cancelled_within_an_update, not_finite)
