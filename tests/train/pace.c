/* SPDX-License-Identifier: MIT */
/* A training reports its validations and saves, and the time left includes those to come. */
#include <time.h>

#include "zoo.h"

struct told {
    int validating, saving, shares, saves, valids;
    int64_t done, total; /* of the latest share */
    bool validates, ordered, finite, known_before;
};

static void collect(void *ctx, const struct wf_event *e)
{
    struct told *t = ctx;
    if (e->kind == WF_EVENT_PROGRESS && strcmp(e->text, "saving") == 0)
        t->saving++;
    if (e->kind == WF_EVENT_PROGRESS && strcmp(e->text, "validating") == 0 && e->total == 0) {
        t->validating++;
        t->validates = true;
        t->done = t->total = 0;
    } else if (e->kind == WF_EVENT_PROGRESS && strcmp(e->text, "validating") == 0) {
        t->ordered &= t->validates && e->done > t->done && e->done <= e->total && (t->total == 0 || t->total == e->total);
        t->done = e->done;
        t->total = e->total;
        t->shares++;
    }
    if (e->kind == WF_EVENT_VALID) {
        t->ordered &= t->done == t->total && t->total > 0;
        t->validates = false;
        t->valids++;
    }
    t->saves += e->kind == WF_EVENT_SAVE;
    if (e->kind == WF_EVENT_START)
        t->known_before = !isnan(e->left);
    if (e->kind == WF_EVENT_STEP || e->kind == WF_EVENT_VALID)
        t->finite &= e->left >= 0 && isfinite(e->left);
}

START_TEST(validations_and_saves_are_shown)
{
    struct told told = {.ordered = true, .finite = true};
    struct wf_train_options o = translation("run", NULL);
    set_keys(&o.config, "steps=9 valid_every=3 save_every=2 valid_tokens=0");
    o.event = collect;
    o.ctx = &told;
    trained(&o);
    ck_assert_int_eq(told.validating, 3);
    ck_assert_int_eq(told.valids, 3);
    ck_assert_int_ge(told.saving, 5); /* and the best weights */
    ck_assert_int_le(told.saving, 8);
    ck_assert_int_eq(told.saves, 5);
    ck_assert_int_ge(told.shares, 3);
    ck_assert(told.ordered && told.finite && !told.known_before);
}
END_TEST

/* --- a program's task with a slow validation ------------------------------------------------------------------------- */

static const double pause_seconds = 0.05;
struct sleeper {
    wf_registry *registry;
    wf_tensor *w;
    double left[16], expected; /* after update 1, 2, ... */
};

static wf_status next(void *ctx, int64_t step, double *weight, wf_error *error)
{
    (void)ctx, (void)step, (void)error;
    *weight = 1;
    return WF_OK;
}
static wf_tensor *loss(void *ctx, struct wf_micro_batch *p)
{
    struct sleeper *s = ctx;
    wf_tensor *far = wf_subtract(s->w, wf_zeros(p->tape, WF_SHAPE(4)));
    return wf_sum(wf_mul(far, far));
}
static wf_status validate(void *ctx, wf_tape *tape, double *value, wf_error *error)
{
    (void)ctx, (void)tape, (void)error;
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * pause_seconds)}, NULL);
    value[0] = 1;
    return WF_OK;
}
static void watch(void *ctx, const struct wf_fit_event *e)
{
    struct sleeper *s = ctx;
    if (e->kind == WF_EVENT_STEP)
        s->left[e->step] = e->left;
    if (e->kind == WF_EVENT_PROGRESS && strcmp(e->text, "validating") == 0)
        s->expected = e->expected;
}

START_TEST(the_time_left_includes_validations)
{
    struct sleeper s = {.registry = wf_registry_new(NULL)};
    s.w = wf_parameter(wf_root(s.registry), "w", WF_SHAPE(4), .init = {WF_INIT_CONSTANT, 1});
    ck_ok(wf_registry_build(s.registry, 1, error));
    struct wf_optimizer sgd;
    ck_ok(wf_sgd_init(&sgd, s.registry, error, .lr = 0.1));
    static const struct wf_metric metric[] = {{.name = "x"}};
    const struct wf_task task = {WF_TASK_ABI,          .name = "sleeper", .next = next, .loss = loss,
                                 .validate = validate, .metric = metric,  .metrics = 1};
    ck_ok(wf_fit_one(&task, s.registry, &sgd, NULL, NULL, error, .out = in_folder("run"), .steps = 12, .valid_every = 2, .ctx = &s,
                     .event = watch));
    ck_assert_double_ge(s.expected, 0.9 * pause_seconds);
    /* after update 4 the validations of 4, 6, 8, 10 and 12 are to come */
    ck_assert_msg(s.left[4] >= 5 * 0.9 * pause_seconds, "%g s", s.left[4]);
    /* the same after update 3; after 11 one */
    ck_assert_msg(s.left[3] >= 5 * 0.9 * pause_seconds, "%g s", s.left[3]);
    ck_assert_msg(s.left[11] >= 0.9 * pause_seconds && s.left[11] < s.left[3], "%g s, %g s", s.left[11], s.left[3]);
    wf_optimizer_free(&sgd);
    wf_registry_free(s.registry);
}
END_TEST

WF_TEST_MAIN("pace", validations_and_saves_are_shown, the_time_left_includes_validations)
