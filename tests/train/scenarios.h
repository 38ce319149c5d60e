/* SPDX-License-Identifier: MIT */
/* Scenarios that each task must pass: a training is cancelled, killed, accumulated, out of patience, short of memory, or in the steady
 * state. A task is a row of struct trainee. */
#ifndef TESTS_SCENARIOS_H
#define TESTS_SCENARIOS_H

#include <sys/wait.h>

#include "gan.h"
#include "zoo.h"

struct trainee {
    const char *name;
    /* Trains as a newly started program does. `want` has a name for .out, .resume, and numbers that replace the task's unless they are 0.
     */
    wf_status (*train)(const struct trainee *t, const struct wf_fit_options *want, struct seen *seen, wf_error *problem);
    /* of a model of the zoo: its options, and settings beside them */
    struct wf_train_options (*options)(const char *out, struct seen *seen);
    const char *settings;
    int64_t parts[4];  /* micro-batches of an update, in `accumulated`; 0 ends the list */
    const char *early; /* how a training without patience ends; NULL: without validation */
};

/* --- tasks ----------------------------------------------------------------------------------------------------------- */

static int64_t fail_after = -1, allocations; /* in wf_train or wf_fit */

static inline void begin_counting(void)
{
    allocations = wf_alloc_count();
    wf_alloc_fail_after(fail_after);
}

static inline wf_status end_counting(wf_status status)
{
    wf_alloc_fail_after(-1);
    allocations = wf_alloc_count() - allocations;
    return status;
}

#define TAKE(options, want)                                                                                                                \
    do {                                                                                                                                   \
        (options)->steps = (want)->steps ?: (options)->steps;                                                                              \
        (options)->accumulate = (want)->accumulate ?: (options)->accumulate;                                                               \
        (options)->patience = (want)->patience ?: (options)->patience;                                                                     \
        (options)->save_every = (want)->save_every ?: (options)->save_every;                                                               \
        (options)->valid_every = (want)->valid_every ?: (options)->valid_every;                                                            \
        (options)->log_every = (want)->log_every ?: (options)->log_every;                                                                  \
    } while (0)

static inline wf_status train_zoo(const struct trainee *t, const struct wf_fit_options *want, struct seen *seen, wf_error *problem)
{
    struct wf_train_options o = t->options(want->out, seen);
    struct wf_training *training = &o.config.training;
    set_keys(&o.config, t->settings);
    TAKE(training, want);
    if (want->patience) { /* so that it does not learn */
        training->lr = training->min_lr = 0.5;
        training->warmup = 0;
    }
    o.resume = want->resume;
    begin_counting();
    return end_counting(wf_train(&o, NULL, problem));
}

static inline wf_status fit_program(const struct wf_task *task, struct wf_fit_options *o, const struct wf_fit_options *want,
                                    struct seen *seen, wf_error *problem)
{
    struct seen *own = o->ctx;
    *own = *seen;
    TAKE(o, want);
    o->resume = want->resume;
    begin_counting();
    const wf_status status = end_counting(wf_fit(task, o, NULL, problem));
    *seen = *own;
    return status;
}

static inline wf_status train_vit(const struct trainee *t, const struct wf_fit_options *want, struct seen *seen, wf_error *problem)
{
    (void)t;
    struct study *s = study_open(want->patience ? 0 : 0.1);
    struct wf_fit_options o = study_options(s, lasting(want->out));
    const wf_status status = fit_program(&vit_task, &o, want, seen, problem);
    study_close(s);
    return status;
}

static inline wf_status train_gan(const struct trainee *t, const struct wf_fit_options *want, struct seen *seen, wf_error *problem)
{
    (void)t;
    struct gan *g = gan_open();
    struct wf_fit_options o = gan_options(g, lasting(want->out));
    const wf_status status = fit_program(&gan_task, &o, want, seen, problem);
    gan_close(g);
    return status;
}

static bool is_of_rank(void *matrices, const char *name, const wf_tensor *p)
{
    (void)name;
    return (wf_ndim(p) >= 2) == *(bool *)matrices;
}

/* Both optimisers see both registries: SGD has the matrices, AdamW the rest. */
static inline wf_status train_by_rank(const struct trainee *t, const struct wf_fit_options *want, struct seen *seen, wf_error *problem)
{
    (void)t;
    struct study *s = study_open(0.1);
    struct wf_optimizer by[2];
    ck_ok(wf_sgd_init(&by[0], s->body, error, .lr = 0.05, .momentum = 0.9));
    ck_ok(wf_adamw_init(&by[1], s->body, error));
    for (int i = 0; i < 2; i++) {
        ck_ok(wf_optimizer_add(&by[i], s->head, "head.", error));
        ck_ok(wf_optimizer_only(&by[i], is_of_rank, &(bool){i == 0}, error));
    }
    struct wf_fit_options o = study_options(s, lasting(want->out));
    o.optimizer =
        (const struct wf_fit_optimizer[]){{"matrices", &by[0]}, {"rest", &by[1], .schedule = {.kind = WF_SCHEDULE_COSINE, .peak = 0.01}}};
    const wf_status status = fit_program(&vit_task, &o, want, seen, problem);
    ck_assert(status != WF_OK || seen->last_step < 40 || s->accuracy > 0.9);
    if (status == WF_OK && !want->resume)
        ck_assert(by[0].part[0].parameter[0].updates == seen->last_step && by[1].part[0].parameter[0].updates == 0);
    for (int i = 0; i < 2; i++)
        wf_optimizer_free(&by[i]);
    study_close(s);
    return status;
}

/* --- scenarios ------------------------------------------------------------------------------------------------------- */

/* The folder of one of the task's runs. */
static inline const char *run_of(const struct trainee *t, const char *name)
{
    static char text[16][64];
    static int next;
    char *out = text[next++ % 16];
    snprintf(out, sizeof text[0], "%s-%s", t->name, name);
    return out;
}

/* A training that must end with this status and these words in its message; returns its reports. */
static inline struct seen ends(const struct trainee *t, const struct wf_fit_options *want, struct seen seen, wf_status expected,
                               const char *words)
{
    wf_error problem = {0};
    const wf_status status = t->train(t, want, &seen, &problem);
    ck_assert_msg(status == expected && strstr(problem.message, words), "%s: %s, %s", t->name, wf_status_name(status), problem.message);
    return seen;
}

static inline struct seen completes(const struct trainee *t, const struct wf_fit_options *want)
{
    return ends(t, want, (struct seen){0}, WF_OK, "");
}

/* A training is cancelled at any op, in a forward, a backward, a validation, or while its data is prepared, and resumed until it is
 * complete. Its bytes are those of a training without interruption. */
static inline void cancelled_anywhere(const struct trainee *t)
{
    struct wf_fit_options want = {.out = run_of(t, "straight"), .steps = 24, .accumulate = 2, .valid_every = 4};
    completes(t, &want);
    want.out = run_of(t, "broken");
    want.resume = true;
    int stops = 0;
    for (wf_status status = WF_ERR_CANCELLED; status != WF_OK; stops++) {
        struct seen seen = {.cancel_at = 150 + stops * 397 % 911};
        wf_error problem = {0};
        status = t->train(t, &want, &seen, &problem);
        ck_assert_msg(stops < 1000 && (status == WF_OK || status == WF_ERR_CANCELLED), "%s: %s", t->name, problem.message);
    }
    ck_assert_msg(stops > 4, "%s: cancelled %d times", t->name, stops - 1);
    assert_same_runs(run_of(t, "straight"), want.out);
}

/* The same between two updates and on another number of threads. Without .resume the run is not overwritten. */
static inline void cancelled_after_an_update(const struct trainee *t)
{
    enum { AFTER = 13, STEPS = 25 };
    struct wf_fit_options want = {.out = run_of(t, "straight"), .steps = STEPS};
    ck_ok(wf_init(error, .threads = 2));
    completes(t, &want);
    want.out = run_of(t, "broken");
    ck_ok(wf_init(error, .threads = 1));
    struct seen seen = ends(t, &want, (struct seen){.cancel_after = AFTER}, WF_ERR_CANCELLED, "interrupted after step 13 of 25");
    ck_assert_int_eq(seen.last_step, AFTER);
    ends(t, &want, (struct seen){0}, WF_ERR_EXISTS, "holds a run already");
    want.resume = true;
    ck_ok(wf_init(error, .threads = 2));
    seen = completes(t, &want);
    ck_assert_msg(seen.first_step == AFTER + 1 && seen.count[WF_EVENT_STEP] == STEPS - AFTER, "%s", t->name);
    assert_same_runs(run_of(t, "straight"), want.out);
}

/* Trains in a new process, since a fork after threads were started has none of them; returns how it ended. */
static inline int train_in_child(const struct trainee *t, const char *out, int64_t kill_in)
{
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct seen seen = {.kill_in = kill_in};
        _exit(t->train(t, &(struct wf_fit_options){.out = out, .steps = 40, .resume = true}, &seen, NULL) == WF_OK ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

/* A training whose process is killed within an update and started again has the same bytes, and each line of its log once. */
static inline void killed(const struct trainee *t)
{
    const char *out = run_of(t, "killed"), *straight = run_of(t, "straight");
    const int64_t in[] = {1, 5, 24, 25, 39};
    in_folder(""); /* the test's folder is this process's */
    for (int i = 0; i < 5; i++) {
        const int status = train_in_child(t, out, in[i]);
        ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "%s, update %d", t->name, (int)in[i]);
    }
    ck_assert_int_eq(train_in_child(t, out, 0), 0);
    ck_assert_int_eq(train_in_child(t, straight, 0), 0);
    assert_same_runs(straight, out);
    char name[96];
    snprintf(name, sizeof name, "%s/metrics.jsonl", out);
    char *lines = text_of(in_folder(name));
    const char *line = strstr(lines, "\"event\":\"step\",\"step\":20,");
    ck_assert_msg(line && !strstr(line + 1, "\"event\":\"step\",\"step\":20,"), "%s: a line is missing or repeated", t->name);
    wf_free(lines);
}

/* Micro-batches see the dropout of the whole batch, so that only the order of additions differs. */
static inline void accumulated(const struct trainee *t)
{
    const double tolerance = sizeof(wf_real) == 8 ? 1e-10 : 1e-4;
    const struct seen whole = completes(t, &(struct wf_fit_options){.out = run_of(t, "whole"), .steps = 5, .accumulate = 1});
    for (const int64_t *parts = t->parts; *parts; parts++) {
        char name[32];
        snprintf(name, sizeof name, "%d", (int)*parts);
        const struct seen seen = completes(t, &(struct wf_fit_options){.out = run_of(t, name), .steps = 5, .accumulate = *parts});
        ck_assert_msg(fabs(seen.first_loss - whole.first_loss) < 0.01 * tolerance + 1e-12 &&
                          fabs(seen.last_loss - whole.last_loss) < tolerance,
                      "%s in %d parts: the losses are %.12g, then %.12g, not %.12g, then %.12g", t->name, (int)*parts, seen.first_loss,
                      seen.last_loss, whole.first_loss, whole.last_loss);
    }
}

/* A training that no longer improves stops, and stays stopped when it is resumed. */
static inline void out_of_patience(const struct trainee *t)
{
    struct wf_fit_options want = {.out = run_of(t, "impatient"), .steps = 400, .valid_every = 2, .patience = 2};
    const struct seen seen = completes(t, &want);
    ck_assert_msg(seen.last_step < 400 && strcmp(seen.text[WF_EVENT_END], t->early) == 0, "%s: %d, %s", t->name, (int)seen.last_step,
                  seen.text[WF_EVENT_END]);
    want.resume = true;
    const struct seen again = completes(t, &want);
    ck_assert_msg(again.count[WF_EVENT_STEP] == 0 && again.last_step == seen.last_step, "%s", t->name);
}

/* One allocation fails in each call, of a new run or of a resume: an error of memory, no leak, and a run that can be resumed. At the end
 * its bytes are those of a run that had all memory. */
static inline void short_of_memory(const struct trainee *t)
{
    struct wf_fit_options want = {.out = run_of(t, "straight"), .steps = 2, .save_every = 1, .accumulate = 2};
    completes(t, &want);
    remove_tree(in_folder(want.out));
    completes(t, &want);
    const int64_t total = allocations, live = wf_alloc_live();
    want.out = run_of(t, "short");
    want.resume = true;
    for (int64_t n = 0; n < total; n += 1 + total / (sampled() ? 50 : 100)) {
        struct seen seen = {0};
        wf_error problem = {0};
        fail_after = n;
        const wf_status status = t->train(t, &want, &seen, &problem);
        fail_after = -1;
        assert_survived(t->name, n, status, &problem, live);
        if (status == WF_OK)
            remove_tree(in_folder(want.out));
    }
    completes(t, &want);
    assert_same_runs(run_of(t, "straight"), want.out);
}

#endif
