/* SPDX-License-Identifier: MIT */
/* Learning-rate schedules, against torch.optim.lr_scheduler and formulas. */
#include "optim_test.h"

/* The rates of every stride-th step, against the golden file. */
static void same_rates(const wf_safetensors *file, const char *key, const struct wf_schedule *schedule, int64_t stride)
{
    int64_t n = wf_safetensors_find(file, key)->count;
    double *want = golden_read(file, key, n);
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(fabs(wf_schedule_lr(schedule, stride * i) - want[i]) <= 1e-13 * want[i], "%s: step %d", key, (int)(stride * i));
    free(want);
}

START_TEST(cosine_constant_inverse_sqrt)
{
    wf_safetensors *file = golden_open("optim");
    const struct wf_schedule cosine = {WF_SCHEDULE_COSINE, 1e-3, 1e-4, 100, 2000};
    same_rates(file, "cosine", &cosine, 7);
    ck_assert_double_eq(wf_schedule_lr(&cosine, 5000), 1e-4); /* past the end it stays */

    /* Vaswani et al. 2017, formula 3, t from 1: the key lr is the peak of the curve. */
    const struct wf_schedule vaswani = {WF_SCHEDULE_INVERSE_SQRT, 1 / sqrt(512.0 * 4000), 0, 4000, 0};
    same_rates(file, "vaswani", &vaswani, 97);
    ck_assert(fabs(wf_schedule_lr(&vaswani, 3999) - 6.98771e-4) < 1e-9);
    wf_safetensors_close(file);

    const struct wf_schedule constant = {WF_SCHEDULE_CONSTANT, 0.5, 0, 4, 0};
    const double rises[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.5};
    for (int t = 0; t < 6; t++)
        ck_assert_double_eq_tol(wf_schedule_lr(&constant, t), rises[t], 1e-15);
}
END_TEST

/* As torch.optim.lr_scheduler has them. */
START_TEST(as_pytorch)
{
    wf_safetensors *file = golden_open("optim_more");
    struct wf_schedule s = {WF_SCHEDULE_ONE_CYCLE, 1e-3, 1e-3 / 25 / 1e4, .steps = 1000};
    same_rates(file, "one_cycle", &s, 7);
    s = (struct wf_schedule){WF_SCHEDULE_ONE_CYCLE, 1e-3, 1e-4 / 20, .warmup = 200, .steps = 1000, .start = 1e-4, .curve = WF_CURVE_LINEAR};
    same_rates(file, "one_cycle_linear", &s, 7);
    ck_assert_double_eq_tol(wf_schedule_lr(&s, 2000), 1e-4 / 20, 1e-18); /* past the end it stays */
    s = (struct wf_schedule){WF_SCHEDULE_LINEAR, 1e-3, 1e-4, .steps = 990};
    same_rates(file, "linear", &s, 7);
    s = (struct wf_schedule){WF_SCHEDULE_WSD, 1e-3, 1e-4, .warmup = 50, .steps = 1000, .decay = 200};
    same_rates(file, "wsd", &s, 7);
    s = (struct wf_schedule){WF_SCHEDULE_WSD, 1e-3, 0, .steps = 1000, .curve = WF_CURVE_SQRT};
    same_rates(file, "wsd_sqrt", &s, 7);
    wf_safetensors_close(file);
}
END_TEST

/* The first, the last and the highest rate of each kind, and lengths of 0 and 1. */
START_TEST(corners)
{
    struct wf_schedule s = {WF_SCHEDULE_LINEAR, 1, 0.25, .warmup = 3, .steps = 7};
    const double linear[] = {0.25, 0.5, 0.75, 1, 1 - 0.75 / 4, 1 - 1.5 / 4, 1 - 2.25 / 4, 0.25, 0.25};
    for (int t = 0; t < 9; t++)
        ck_assert_double_eq_tol(wf_schedule_lr(&s, t), linear[t], 1e-15);
    s = (struct wf_schedule){WF_SCHEDULE_WSD, 1, 0.5, .warmup = 1, .steps = 8, .decay = 4, .curve = WF_CURVE_COSINE};
    const double wsd[] = {0.5, 1, 1, 1, 1, 0.5 + 0.25 * (1 + sqrt(0.5)), 0.75, 0.5 + 0.25 * (1 - sqrt(0.5)), 0.5, 0.5};
    for (int t = 0; t < 10; t++)
        ck_assert_double_eq_tol(wf_schedule_lr(&s, t), wsd[t], 1e-15);
    s = (struct wf_schedule){WF_SCHEDULE_WSD, 1, 0, .steps = 3}; /* a tenth of 3 updates is 1 */
    ck_assert(wf_schedule_lr(&s, 2) == 1 && wf_schedule_lr(&s, 3) == 0);
    s.decay = 100; /* longer than the training: it has begun before */
    ck_assert_double_eq_tol(wf_schedule_lr(&s, 0), 0.03, 1e-15);
    s = (struct wf_schedule){WF_SCHEDULE_ONE_CYCLE, 1, 0, .warmup = 3, .steps = 5, .start = 0.5, .curve = WF_CURVE_LINEAR};
    const double cycle[] = {0.5, 0.75, 1, 0.5, 0, 0};
    for (int t = 0; t < 6; t++)
        ck_assert_double_eq_tol(wf_schedule_lr(&s, t), cycle[t], 1e-15);
    for (int64_t steps = 1; steps < 3; steps++) {
        s = (struct wf_schedule){WF_SCHEDULE_ONE_CYCLE, 1, 0.125, .steps = steps};
        for (int t = 0; t < 4; t++)
            ck_assert(wf_schedule_lr(&s, t) >= 0.04 && wf_schedule_lr(&s, t) <= 1);
    }
    ck_assert(isnan(wf_schedule_lr(NULL, 0)));
    for (int kind = WF_SCHEDULE_CONSTANT; kind < WF_SCHEDULE_FUNCTION; kind++) {
        s = (struct wf_schedule){kind, .peak = 1e-2, .warmup = 20}; /* no steps: kinds that decay would be at their end from the start */
        for (int t = 0; t < 40; t += 39)
            ck_assert_msg(isnan(wf_schedule_lr(&s, t)) == (kind != WF_SCHEDULE_CONSTANT && kind != WF_SCHEDULE_INVERSE_SQRT), "kind %d",
                          kind);
    }
}
END_TEST

static double stairs(void *ctx, int64_t step)
{
    return *(const double *)ctx * pow(0.5, (double)(step / 10));
}

START_TEST(functions)
{
    double first = 0.25;
    struct wf_schedule s = {WF_SCHEDULE_FUNCTION, .function = stairs, .ctx = &first};
    ck_assert(wf_schedule_lr(&s, 9) == 0.25 && wf_schedule_lr(&s, 10) == 0.125 && wf_schedule_lr(&s, 25) == 0.0625);
    s.function = NULL;
    ck_assert(isnan(wf_schedule_lr(&s, 0)));
}
END_TEST

WF_TEST_MAIN("schedule", cosine_constant_inverse_sqrt, as_pytorch, corners, functions)
