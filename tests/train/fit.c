/* SPDX-License-Identifier: MIT */
/* wf_fit as a program from outside uses it: a vision transformer in two registries with two optimisers is trained, interrupted, killed,
 * resumed to the same bytes, stopped early. */
#include <sys/wait.h>

#include "stranger.h"

START_TEST(trains)
{
    struct study *s = study_open(0.1);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    struct wf_fit_result result;
    ck_ok(wf_fit(&vit_task, &o, &result, error));
    ck_assert(result.step == 60 && result.loss == s->last_loss && result.best > 0.9 && result.value[1] == s->accuracy);
    ck_assert(s->last_loss < 0.4 * s->first_loss);
    ck_assert_int_eq(s->openmp, openmp_threads());
    ck_assert(s->count[WF_EVENT_START] == 1 && s->count[WF_EVENT_STEP] == 60 && s->count[WF_EVENT_VALID] == 6);
    ck_assert_int_eq(s->count[WF_EVENT_SAVE], 9); /* 7, 14, ..., 56, the end */
    ck_assert_str_eq(s->end, "trained to the end");
    ck_assert(s->sgd.step == 60 && s->adam.step == 60);
    ck_assert(wf_file_exists(in_folder("run/checkpoints/step-00000060.safetensors")));
    ck_assert(wf_file_exists(in_folder("run/checkpoints/step-00000056.safetensors")));
    ck_assert(!wf_file_exists(in_folder("run/checkpoints/step-00000049.safetensors")));
    /* the weights, by the names of the registries */
    wf_error e = {0};
    struct study *other = study_open(0.1);
    wf_safetensors *file = wf_safetensors_open(in_folder("run/model.safetensors"), &e);
    ck_assert_msg(file != NULL, "%s", e.message);
    ck_assert_str_eq(wf_safetensors_metadata(file, "task"), "vit");
    ck_ok(wf_registry_load(other->body, file, "body.", error));
    ck_ok(wf_registry_load(other->head, file, "head.", error));
    ck_assert_int_eq(
        memcmp(wf_registry_values(other->body), wf_registry_values(s->body), (size_t)wf_registry_slab(s->body) * sizeof(wf_real)), 0);
    wf_safetensors_close(file);
    ASSERT_HAS(in_folder("run/metrics.jsonl"),
               "\"event\":\"start\",\"step\":0,\"parameters\":", "\"loss/train\":", "\"lr/adam\":0.001,\"lr/sgd\":0.05,",
               "\"grad_norm\":", "\"images_per_second\":", "\"event\":\"valid\",\"step\":10,\"loss/valid\":", "\"accuracy/valid\":",
               "\"best\":", "\"event\":\"end\",\"step\":60,\"text\":\"trained to the end\"");
    char *lines = text_of(in_folder("run/metrics.jsonl"));
    ck_assert_ptr_null(strstr(lines, "minimized")); /* nothing else is shown */
    wf_free(lines);
    study_close(other);
    study_close(s);
}
END_TEST

/* An experiment: the same numbers and weights, and not a file. */
START_TEST(without_a_folder)
{
    struct study *s = study_open(0.1), *with = study_open(0.1);
    struct wf_fit_options o = study_options(s, NULL);
    o.save_every = o.keep = o.keep_every = 0;
    struct wf_fit_result result, other;
    ck_assert_int_eq(chdir(in_folder("")), 0);
    ck_ok(wf_fit(&vit_task, &o, &result, error));
    ck_assert_msg(system("test -z \"$(ls)\"") == 0, "a training without a folder has written files");
    o = study_options(with, in_folder("with"));
    ck_ok(wf_fit(&vit_task, &o, &other, error));
    ck_assert(result.step == 60 && result.loss == other.loss && result.best == other.best && result.value[0] == other.value[0]);
    ck_assert_int_eq(
        memcmp(wf_registry_values(with->body), wf_registry_values(s->body), (size_t)wf_registry_slab(s->body) * sizeof(wf_real)), 0);
    ck_assert_int_eq(s->count[WF_EVENT_VALID], 6);
    ck_assert_int_eq(s->count[WF_EVENT_SAVE], 0);
    ck_assert_str_eq(s->end, "trained to the end");
    study_close(s);
    study_close(with);
    s = study_open(0.1);
    o = study_options(s, NULL);
    o.save_every = o.keep = o.keep_every = 0;
    s->cancel_at = 900;
    wf_error e = {0};
    ck_assert_int_eq(wf_fit(&vit_task, &o, &result, &e), WF_ERR_CANCELLED);
    ck_assert_str_eq(s->end, "interrupted; nothing is saved without .out");
    ck_assert_msg(result.step > 0 && !strstr(e.message, "resume"), "%s", e.message);
    study_close(s);
}
END_TEST

/* A next that computes with the model on a tape of its own, as one that looks for hard examples. */
static wf_tape *own_tape;
static int64_t own_passes;
static wf_status next_that_computes(void *ctx, int64_t step, double *weight, wf_error *error)
{
    struct study *s = ctx;
    wf_tensor *labels;
    double loss;
    wf_status status = next_batch(ctx, step, weight, error);
    if (status != WF_OK)
        return status;
    wf_tape_reset(own_tape, WF_INFER);
    wf_tensor *images = images_of(s, own_tape, s->row, BATCH, &labels);
    if (wf_item(wf_cross_entropy(vit_forward(s, images), labels), &loss) != WF_OK)
        return wf_tape_status(own_tape, error);
    own_passes += isfinite(loss);
    return WF_OK;
}

START_TEST(next_may_use_a_tape_of_its_own)
{
    struct wf_fit_result result[2];
    own_tape = wf_tape_new(NULL);
    for (int i = 0; i < 2; i++) {
        struct study *s = study_open(0.1);
        struct wf_fit_options o = study_options(s, in_folder(i ? "computes" : "plain"));
        struct wf_task task = vit_task;
        task.next = i ? next_that_computes : next_batch;
        ck_ok(wf_fit(&task, &o, &result[i], error));
        study_close(s);
    }
    wf_tape_free(own_tape);
    ck_assert_int_eq(own_passes, 60);
    ck_assert(result[0].loss == result[1].loss && result[0].best == result[1].best);
    ck_assert(wf_file_same(in_folder("plain/model.safetensors"), in_folder("computes/model.safetensors")));
}
END_TEST

static void straight(const char *out, double dropout)
{
    struct study *s = study_open(dropout);
    struct wf_fit_options o = study_options(s, out);
    ck_ok(wf_fit(&vit_task, &o, NULL, error));
    study_close(s);
}

/* Stopped at whatever op, each time by a new start of the program, until it is through. */
START_TEST(cancelled_anywhere_gives_the_same_bytes)
{
    straight(in_folder("straight"), 0.1);
    int stops = 0;
    for (wf_status status = WF_ERR_CANCELLED; status != WF_OK; stops++) {
        struct study *s = study_open(0.1);
        struct wf_fit_options o = study_options(s, in_folder("broken"));
        wf_error e = {0};
        o.resume = true;
        s->cancel_at = 300 + stops * 397 % 1511;
        ck_assert_int_lt(stops, 200);
        status = wf_fit(&vit_task, &o, NULL, &e);
        ck_assert_msg(status == WF_OK || status == WF_ERR_CANCELLED, "%s", e.message);
        if (status != WF_OK)
            ck_assert_msg(strstr(e.message, "interrupted after step ") != NULL, "%s", e.message);
        study_close(s);
    }
    ck_assert_int_gt(stops, 4);
    assert_same_runs(in_folder("straight"), in_folder("broken"));
}
END_TEST

/* The program in a process of its own, since a fork after threads were started has none of them; returns how it ended. */
static int run_program(const char *out, int64_t kill_at)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct study *s = study_open(0.1);
        struct wf_fit_options o = study_options(s, out);
        o.resume = true;
        s->kill_at = kill_at;
        _exit(wf_fit(&vit_task, &o, NULL, NULL) == WF_OK ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

START_TEST(killed_and_resumed_gives_the_same_bytes)
{
    if (sanitized()) { /* all tests are one process then, whose threads a fork does not have */
        fprintf(stderr, "skipped: kills need processes of their own\n");
        return;
    }
    const char *out = in_folder("killed"), *whole = in_folder("straight");
    const int64_t at[] = {1, 5, 24, 25, 59};
    for (int i = 0; i < 5; i++) {
        int status = run_program(out, at[i]);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    ck_assert_int_eq(run_program(out, 0), 0);
    ck_assert_int_eq(run_program(whole, 0), 0);
    assert_same_runs(whole, out);
    char *lines = text_of(in_folder("killed/metrics.jsonl")); /* each line once */
    const char *line = strstr(lines, "\"event\":\"step\",\"step\":20,");
    ck_assert(line && !strstr(line + 1, "\"event\":\"step\",\"step\":20,"));
    wf_free(lines);
}
END_TEST

/* With dropout too: the parts number their rows. */
START_TEST(accumulation_is_the_large_batch)
{
    double loss[2];
    for (int i = 0; i < 2; i++) {
        struct study *s = study_open(0.2);
        struct wf_fit_options o = study_options(s, in_folder(i ? "parts" : "whole"));
        o.steps = 6;
        o.accumulate = i ? 3 : 0; /* 16 rows: 5, 5 and 6 */
        ck_ok(wf_fit(&vit_task, &o, NULL, error));
        loss[i] = s->last_loss;
        study_close(s);
    }
    ck_assert_double_eq_tol(loss[1], loss[0], sizeof(wf_real) == 8 ? 1e-10 : 1e-4);
}
END_TEST

START_TEST(patience_stops_early)
{
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    struct wf_fit_result result;
    o.steps = 400;
    o.valid_every = 2;
    o.patience = 3;
    ck_ok(wf_fit(&vit_task, &o, &result, error)); /* an accuracy of 1 can't be surpassed */
    ck_assert(result.step < 400 && s->bests > 1);
    ck_assert_str_eq(s->end, "stopped early: the validation accuracy no longer rises");
    study_close(s);
    int64_t stopped = result.step;
    s = study_open(0);
    o = study_options(s, in_folder("run"));
    o.steps = 400;
    o.patience = 3;
    o.valid_every = 2;
    o.resume = true;
    ck_ok(wf_fit(&vit_task, &o, &result, error)); /* stays stopped */
    ck_assert_int_eq(result.step, stopped);
    study_close(s);
}
END_TEST

static double by_hand(void *ctx, int optimizer, int64_t step)
{
    (void)ctx;
    return optimizer ? 0.25 : 0.001 * (double)(step + 1);
}

START_TEST(rates_are_the_programs)
{
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    o.steps = 3;
    o.rate = by_hand;
    ck_ok(wf_fit(&vit_task, &o, NULL, error));
    ck_assert(s->adam.lr == 0.003 && s->sgd.lr == 0.25 && s->last_lr == 0.003);
    study_close(s);
}
END_TEST

/* A resume that judges by another metric says so, and its best begins anew. */
START_TEST(another_metric_decides)
{
    struct wf_task by_loss = vit_task;
    struct study *s = study_open(0);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    o.steps = 10;
    ck_ok(wf_fit(&vit_task, &o, NULL, error));
    study_close(s);
    s = study_open(0);
    o = study_options(s, in_folder("run"));
    o.steps = 20;
    o.resume = true;
    by_loss.best = 0;
    ck_ok(wf_fit(&by_loss, &o, NULL, error));
    ck_assert_str_eq(s->text, "resuming with best by loss instead of accuracy");
    ck_assert_int_ge(s->bests, 1);
    study_close(s);
}
END_TEST

/* From the tenth update on the loop allocates nothing; lines of metrics.jsonl, validations and saves do. */
static int64_t allocated, most;
static void count_allocations(void *ctx, const struct wf_fit_event *e)
{
    see(ctx, e);
    if (e->kind != WF_EVENT_STEP)
        return;
    int64_t now = wf_alloc_count();
    if (e->step > 10 && e->step < e->steps && now - allocated > most)
        most = now - allocated;
    allocated = now;
}

START_TEST(nothing_is_allocated_in_the_steady_state)
{
    struct study *s = study_open(0.1);
    struct wf_fit_options o = study_options(s, in_folder("run"));
    o.steps = 30;
    o.log_every = 1000;
    o.save_every = o.valid_every = 0;
    o.event = count_allocations;
    ck_ok(wf_fit(&vit_task, &o, NULL, error));
    ck_assert_int_eq(most, 0);
    study_close(s);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    struct study *s = study_open(0.1);
    struct wf_fit_options o = study_options(s, in_folder("warm"));
    o.steps = 3;
    o.save_every = 2;
    o.event = NULL;
    o.cancelled = NULL;
    ck_ok(wf_fit(&vit_task, &o, NULL, error));
    study_close(s);
    s = study_open(0.1);
    o.ctx = s;
    struct wf_fit_options again = study_options(s, in_folder("count"));
    again.steps = 3;
    again.save_every = 2;
    int64_t before = wf_alloc_count();
    ck_ok(wf_fit(&vit_task, &again, NULL, error));
    int64_t total = wf_alloc_count() - before, live = wf_alloc_live();
    study_close(s);
    for (int64_t n = 0; n < total; n += 1 + total / 100) {
        wf_error e = {0};
        s = study_open(0.1);
        again = study_options(s, in_folder("run"));
        again.steps = 3;
        again.save_every = 2;
        again.resume = true;
        again.event = NULL;
        wf_alloc_fail_after(n);
        wf_status status = wf_fit(&vit_task, &again, NULL, &e);
        wf_alloc_fail_after(-1);
        ck_assert_msg(status == WF_OK || status == WF_ERR_MEMORY, "allocation %lld: %s", (long long)n, e.message);
        ck_assert_msg(wf_alloc_live() <= live + 12, "allocation %lld: %lld blocks have leaked", (long long)n,
                      (long long)(wf_alloc_live() - live));
        study_close(s);
    }
    s = study_open(0.1);
    again = study_options(s, in_folder("run"));
    again.steps = 3;
    again.save_every = 2;
    again.resume = true;
    ck_ok(wf_fit(&vit_task, &again, NULL, error));
    ck_assert(same_file(in_folder("run/model.safetensors"), in_folder("count/model.safetensors")));
    study_close(s);
}
END_TEST

/* The short form writes the bytes of the long one, and says what does not go with it. */
START_TEST(one_registry_and_one_optimiser)
{
    const struct wf_schedule schedule = {.kind = WF_SCHEDULE_COSINE, .peak = 5e-3, .warmup = 4};
    struct study *a = study_open(0.1), *b = study_open(0.1), *c = study_open(0.1);
    const struct wf_fit_registry registry = {.registry = a->body};
    const struct wf_fit_optimizer optimizer = {.optimizer = &a->adam, .schedule = schedule};
    const struct wf_fit_options o = {.out = in_folder("long"),
                                     .registry = &registry,
                                     .registries = 1,
                                     .optimizer = &optimizer,
                                     .optimizers = 1,
                                     .steps = 20,
                                     .valid_every = 10,
                                     .ctx = a};
    struct wf_fit_result result, again;
    ck_ok(wf_fit(&vit_task, &o, &result, error));
    ck_ok(wf_fit_one(&vit_task, b->body, &b->adam, &schedule, &again, error, .out = in_folder("short"), .steps = 20, .valid_every = 10,
                     .ctx = b));
    assert_same_runs(in_folder("long"), in_folder("short"));
    ck_assert(again.step == 20 && again.loss == result.loss && again.best == result.best);
    c->adam.lr = 2e-3; /* without a schedule it stays */
    ck_ok(wf_fit_one(&vit_task, c->body, &c->adam, NULL, NULL, error, .out = in_folder("constant"), .steps = 3, .ctx = c));
    ck_assert(c->adam.lr == 2e-3);
    wf_error e = {0};
    ck_assert_int_eq(wf_fit_one_with(&vit_task, c->body, &c->adam, NULL, &o, &again, &e), WF_ERR_ARGUMENT);
    ck_assert_msg(strstr(e.message, "wf_fit_one: the options list registries or optimisers too") && isnan(again.loss), "%s", e.message);
    wf_error_clear(&e);
    ck_assert_int_eq(wf_fit_one_with(&vit_task, c->body, &c->adam, NULL, NULL, &again, &e), WF_ERR_ARGUMENT);
    ck_assert_msg(strstr(e.message, "the options are NULL"), "%s", e.message);
    wf_error_clear(&e);
    ck_assert_int_eq(wf_fit_one(&vit_task, NULL, &c->adam, NULL, &again, &e, .out = in_folder("none"), .steps = 3), WF_ERR_ARGUMENT);
    ck_assert_msg(strstr(e.message, "registry 0 is NULL"), "%s", e.message);
    study_close(a);
    study_close(b);
    study_close(c);
}
END_TEST

WF_TEST_MAIN("fit", trains, next_may_use_a_tape_of_its_own, without_a_folder, one_registry_and_one_optimiser,
             cancelled_anywhere_gives_the_same_bytes, killed_and_resumed_gives_the_same_bytes, accumulation_is_the_large_batch,
             patience_stops_early, another_metric_decides, rates_are_the_programs, nothing_is_allocated_in_the_steady_state,
             every_allocation_may_fail)
