/* SPDX-License-Identifier: MIT */
/* Shared by the tests of trainings: what a training reported, when it is cancelled or killed, and the runs that it leaves. */
#ifndef TESTS_TRAIN_TEST_H
#define TESTS_TRAIN_TEST_H

#include <math.h>

#include "io/io_test.h"

#include <weft/internal/minmax.h>
#include <weft/weft.h>

#include "config_test.h"

/* A path in the test's folder that stays valid, for options. */
static inline const char *lasting(const char *name)
{
    static char path[64][192];
    static int next;
    return strcpy(path[next++ % 64], in_folder(name));
}

static inline void put_text(const char *name, const char *text)
{
    write_text(in_folder(name), text);
}

/* The text of a file of a run. */
static inline char *text_of(const char *path)
{
    wf_error problem = {0};
    char *text = wf_file_load(path, 1 << 24, NULL, &problem);
    ck_assert_msg(text != NULL, "%s", problem.message);
    return text;
}

/* The file has each of the texts, which end with NULL. */
static inline void assert_has(const char *path, const char *const *expected)
{
    char *text = text_of(path);
    for (; *expected; expected++)
        ck_assert_msg(strstr(text, *expected) != NULL, "%s is missing in\n%s", *expected, text);
    wf_free(text);
}
#define ASSERT_HAS(path, ...) assert_has(path, (const char *const[]){__VA_ARGS__, NULL})

/* Files of the test's folder. */
static inline bool exists(const char *name)
{
    return wf_file_exists(in_folder(name));
}

static inline bool same_file(const char *a, const char *b)
{
    return wf_file_same(in_folder(a), in_folder(b));
}

static inline bool same_weights(const wf_registry *a, const wf_registry *b)
{
    return memcmp(wf_registry_values(a), wf_registry_values(b), (size_t)wf_registry_slab(a) * sizeof(wf_real)) == 0;
}

/* Two runs of the test's folder have the same files with the same bytes, but for the logs, which hold times, and for files that were set
 * aside. */
static inline void assert_same_runs(const char *a, const char *b)
{
    char command[1200];
    snprintf(command, sizeof command, "cd '%s' && test -f '%s/state.safetensors' && diff -r %s '%s' '%s'", in_folder(""), a,
             "-x 'metrics.*' -x 'events.*' -x '*.previous-*' -x .weft-lock", a, b);
    ck_assert_msg(system(command) == 0, "%s and %s differ", a, b);
}

/* The numbers and texts that a training reported, and the places at which it ends early. */
struct seen {
    int64_t cancel_after; /* this update; 0: never */
    int64_t cancel_at;    /* this call of `cancel`, which comes before each op */
    int64_t kill_in;      /* the process ends within this update */
    int64_t calls;        /* of `cancel` */
    int count[WF_EVENT_PROGRESS + 1], bests;
    char text[WF_EVENT_PROGRESS + 1][2048]; /* all texts of a kind, a line each */
    int64_t first_step, last_step, valid_tokens, vocab_size;
    double first_loss, last_loss, first_valid, last_valid, last_lr;
    double first_smoothed, last_smoothed; /* the minimised loss */
    int64_t allocated, most;              /* at the last update, and the most in one from the eleventh on */
};

static inline void see(void *ctx, const struct wf_event *e)
{
    struct seen *s = ctx;
    char *text = s->text[e->kind];
    const size_t used = strlen(text);
    if (e->text)
        snprintf(text + used, sizeof s->text[0] - used, "%s%s", used ? "\n" : "", e->text);
    s->count[e->kind]++;
    if (e->kind == WF_EVENT_START) {
        s->valid_tokens = e->valid_tokens;
        s->vocab_size = e->vocab_size;
        s->last_step = e->step;
    }
    if (e->kind == WF_EVENT_STEP) {
        if (s->count[e->kind] == 1) {
            s->first_step = e->step;
            s->first_loss = e->loss;
            s->first_smoothed = e->smoothed;
        }
        s->last_loss = e->loss;
        s->last_smoothed = e->smoothed;
        s->last_lr = e->lr;
        const int64_t now = wf_alloc_count();
        if (e->step > 10 && e->step < e->steps)
            s->most = WF_MAX(s->most, now - s->allocated);
        s->allocated = now;
        ck_assert_int_eq(e->step, s->last_step + 1);
        ck_assert(e->loss == 0 || (e->lr > 0 && e->grad_norm > 0 && e->tokens_per_second > 0));
        s->last_step = e->step;
    }
    if (e->kind == WF_EVENT_VALID) {
        if (s->count[e->kind] == 1)
            s->first_valid = e->loss;
        s->last_valid = e->loss;
    }
}

/* The same for a program's task. */
static inline void see_fit(void *ctx, const struct wf_fit_event *e)
{
    struct seen *s = ctx;
    see(s, &(struct wf_event){.kind = e->kind,
                              .step = e->step,
                              .steps = e->steps,
                              .loss = e->loss,
                              .lr = e->lr,
                              .grad_norm = e->grad_norm,
                              .tokens_per_second = e->per_second,
                              .text = e->text});
    s->bests += e->kind == WF_EVENT_VALID && e->improved;
}

static inline bool cancel(void *ctx)
{
    struct seen *s = ctx;
    s->calls++;
    if (s->kill_in > 0 && s->last_step + 1 >= s->kill_in && s->count[WF_EVENT_START] > 0 && s->calls % 40 == 0)
        raise(SIGKILL);
    return (s->cancel_after > 0 && s->last_step >= s->cancel_after) || (s->cancel_at > 0 && s->calls >= s->cancel_at);
}

/* A safetensors file of the test's folder. */
static inline wf_safetensors *tensors_of(const char *name)
{
    wf_error problem = {0};
    wf_safetensors *file = wf_safetensors_open(in_folder(name), &problem, .map = true);
    ck_assert_msg(file != NULL, "%s", problem.message);
    return file;
}

/* A call that must return this status; its last argument is `error`. */
#define ck_ends(call, status) ck_fails(call, status, "")

static inline void assert_warned(const struct seen *s, const char *words)
{
    ck_assert_msg(strstr(s->text[WF_EVENT_WARNING], words) != NULL, "%s", s->text[WF_EVENT_WARNING]);
}

/* After a call in which allocation `n` failed: success, or an error of memory; no leak. A thread that meets a kernel for the first time
 * keeps its scratch memory: a few blocks in all. */
static inline void assert_survived(const char *name, int64_t n, wf_status status, const wf_error *problem, int64_t live)
{
    ck_assert_msg(status == WF_OK || (status == WF_ERR_MEMORY && problem->message[0]), "%s, allocation %d: %s", name, (int)n,
                  problem->message);
    ck_assert_msg(wf_alloc_live() <= live + 12, "%s, allocation %d: %d blocks have leaked: %s", name, (int)n, (int)(wf_alloc_live() - live),
                  problem->message);
}

/* A training that must fail with this status and a line that says this. */
static inline void refused(const struct wf_train_options *o, wf_status code, const char *words)
{
    ck_fails(wf_train(o, NULL, error), code, words);
}

static inline struct wf_train_result trained(const struct wf_train_options *o)
{
    struct wf_train_result result;
    ck_ok(wf_train(o, &result, error));
    return result;
}

/* A run that must open; its tokenizer, model and configuration. */
static inline struct wf_run opened(const char *name, const char *weights)
{
    struct wf_run run;
    ck_ok(wf_run_open(&run, in_folder(name), weights, error));
    return run;
}

#endif
