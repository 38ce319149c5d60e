/* SPDX-License-Identifier: MIT */
/* wf_fit with a limit of time ends before it, with a save, even if an update or a validation takes long; a resume has the bytes of a
 * training without limit. */
#include <time.h>

#include "stranger.h"

/* The slow part of the program. */
static int64_t slow_step;         /* this update; 0: none */
static bool slow_validation;      /* each */
static useconds_t update_takes;   /* all others */
static const int long_takes = 20; /* seconds: far beyond each limit here */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Long work: many ops, until one is refused. */
static void work_long(wf_tape *tape)
{
    const double end = now() + long_takes;
    const wf_real one[1] = {1};
    while (now() < end && wf_tape_error(tape)->code == WF_OK) {
        usleep(10000);
        wf_exp(wf_input(tape, one, WF_SHAPE(1), false));
    }
}

static wf_tensor *slow_loss(void *ctx, struct wf_micro_batch *p)
{
    usleep(update_takes);
    if (slow_step > 0 && p->step + 1 == slow_step)
        work_long(p->tape);
    return loss_of(ctx, p);
}

static wf_status slow_validate(void *ctx, wf_tape *tape, double *value, wf_error *error)
{
    if (slow_validation) {
        wf_tape_reset(tape, WF_INFER);
        work_long(tape);
        if (wf_tape_error(tape)->code != WF_OK)
            return wf_tape_status(tape, error);
    }
    return validate_vit(ctx, tape, value, error);
}

static struct wf_task slow_task(void)
{
    struct wf_task task = vit_task;
    task.loss = slow_loss;
    task.validate = slow_validate;
    return task;
}

/* Starts the program; returns the number of updates done. On a busy machine the end may be a second late. */
static int64_t run(const char *out, double max_time, wf_status expected, wf_error *e)
{
    struct study *s = study_open(0.1);
    struct wf_fit_options o = study_options(s, in_folder(out));
    const struct wf_task task = slow_task();
    struct wf_fit_result result;
    const double begin = now();
    o.resume = true;
    o.save_every = 0;
    o.max_time = max_time;
    *e = (wf_error){0};
    const wf_status status = wf_fit(&task, &o, &result, e);
    ck_assert_msg(status == expected, "%s, not %s: %s", wf_status_name(status), wf_status_name(expected), e->message);
    ck_assert_msg(status != WF_ERR_TIME || now() - begin < max_time + 1, "%g s", now() - begin);
    ck_assert_msg(status != WF_ERR_TIME || strstr(s->seen.text[WF_EVENT_END], "is near; .resume continues from here"), "%s",
                  s->seen.text[WF_EVENT_END]);
    ck_assert_int_eq(s->seen.count[WF_EVENT_SAVE] > 0, status != WF_ERR_ARGUMENT);
    study_close(s);
    return result.step;
}

static const char *straight(void)
{
    wf_error e;
    slow_step = 0;
    slow_validation = false;
    update_takes = 0;
    run("straight", 0, WF_OK, &e);
    return "straight";
}

START_TEST(each_start_ends_before_the_limit)
{
    const char *out = "limited";
    wf_error e;
    straight();
    update_takes = 30000; /* 60 of them: 1.8 s */
    const int64_t first = run(out, 1.5, WF_ERR_TIME, &e);
    ck_assert(first > 0 && first < 60);
    char expected[128];
    snprintf(expected, sizeof expected, "ended after step %lld of 60, before the time limit of 0:02; .resume continues from there",
             (long long)first);
    ck_assert_str_eq(e.message, expected);
    ASSERT_HAS(in_folder("limited/metrics.jsonl"), "\"event\":\"end\",\"step\":", "the time limit of 0:02 is near");
    ck_assert_int_eq(run(out, 60, WF_OK, &e), 60);
    assert_same_runs(straight(), out);
}
END_TEST

START_TEST(an_unusually_long_update_or_validation_is_dropped)
{
    const char *out = "dropped";
    wf_error e;
    straight();
    slow_step = 7;
    ck_assert_int_eq(run(out, 1.5, WF_ERR_TIME, &e), 6);
    slow_step = 0;
    slow_validation = true;
    ck_assert_int_eq(run(out, 1.5, WF_ERR_TIME, &e), 10);
    ck_assert(!exists("dropped/best.safetensors"));
    /* the validation is still due, and the same limit would never suffice */
    ck_assert_int_eq(run(out, 0.3, WF_ERR_ARGUMENT, &e), 10);
    ck_assert_str_eq(e.message, "the time limit of 0:01 passed before the validation that is due was done: set a longer one");
    slow_validation = false;
    ck_assert_int_eq(run(out, 0, WF_OK, &e), 60);
    assert_same_runs(straight(), out);
}
END_TEST

START_TEST(nothing_is_done_within_the_limit)
{
    const char *out = "nothing";
    wf_error e;
    straight();
    slow_step = 1;
    ck_assert_int_eq(run(out, 0.3, WF_ERR_ARGUMENT, &e), 0);
    ck_assert_str_eq(e.message, "the time limit of 0:01 passed before an update was done: set a longer one");
    ck_assert(!exists("nothing/state.safetensors"));
}
END_TEST

WF_TEST_MAIN("limit", each_start_ends_before_the_limit, an_unusually_long_update_or_validation_is_dropped, nothing_is_done_within_the_limit)
