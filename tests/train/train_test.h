/* SPDX-License-Identifier: MIT */
/* What tests of wf_train share: a folder, what was seen, trainings that are cancelled, refused or short of memory. */
#ifndef TESTS_TRAIN_TEST_H
#define TESTS_TRAIN_TEST_H

#include <math.h>
#include <unistd.h>

#include <weft/file.h>
#include <weft/run.h>
#include <weft/train.h>

#include "check_weft.h"
#include "config_test.h"
#include "same_runs.h"

static char folder[64];

static inline const char *in_folder(const char *name)
{
    static char path[64][192];
    static int turn;
    char *p = path[turn++ % 64];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static inline void make_folder(void)
{
    strcpy(folder, "/tmp/weft-train-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline void finish(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

struct seen {
    int count[WF_EVENT_PROGRESS + 1];
    int64_t cancel_at, last_step;
    double first_loss, last_loss, first_valid, last_valid, last_lr;
    int64_t valid_tokens;
    char end[128], data[640];
};

static inline void see(void *ctx, const struct wf_event *e)
{
    struct seen *s = ctx;
    s->count[e->kind]++;
    if (e->kind == WF_EVENT_STEP) {
        if (s->count[e->kind] == 1)
            s->first_loss = e->loss;
        s->last_loss = e->loss;
        s->last_lr = e->lr;
        ck_assert_int_eq(e->step, s->last_step + 1);
        ck_assert(e->lr > 0 && e->grad_norm > 0 && e->tokens_per_second > 0);
        s->last_step = e->step;
    }
    if (e->kind == WF_EVENT_VALID) {
        if (s->count[e->kind] == 1)
            s->first_valid = e->loss;
        s->last_valid = e->loss;
    }
    if (e->kind == WF_EVENT_START)
        s->valid_tokens = e->valid_tokens;
    if (e->kind == WF_EVENT_END)
        snprintf(s->end, sizeof s->end, "%s", e->text);
    if (e->kind == WF_EVENT_DATA && s->count[e->kind] == 1)
        snprintf(s->data, sizeof s->data, "%s", e->text);
}

static inline bool cancel(void *ctx)
{
    const struct seen *s = ctx;
    return s->cancel_at > 0 && s->last_step >= s->cancel_at;
}

static inline void write_text(const char *name, const char *text)
{
    ck_ok(wf_file_save(in_folder(name), text, (int64_t)strlen(text), error));
}

/* A training that must fail with this status and a line that holds `part`. */
static inline void refused(const struct wf_train_options *o, wf_status code, const char *part)
{
    wf_error problem = {0};
    wf_status status = wf_train(o, NULL, &problem);
    ck_assert_msg(status == code && strstr(problem.message, part), "%d, not %d with '%s': %s", (int)status, (int)code, part,
                  problem.message);
    ck_assert_ptr_null(strchr(problem.message, '\n'));
}

/* Each allocation fails once: an error of memory, no leak. A thread that meets a kernel for the first time keeps its scratch
 * memory: a few blocks in all. */
static inline void sweep(const char *what, wf_status (*call)(wf_error *), int64_t most)
{
    ck_ok(call(error));
    int64_t before = wf_alloc_count(), live = wf_alloc_live();
    ck_ok(call(error));
    int64_t total = wf_alloc_count() - before, step = 1 + total / (sanitized() ? (most + 1) / 2 : most);
    for (int64_t n = 0; n < total; n += step) {
        wf_error problem = {0};
        wf_alloc_fail_after(n);
        wf_status status = call(&problem);
        wf_alloc_fail_after(-1);
        ck_assert_msg(status == WF_OK || (status == WF_ERR_MEMORY && problem.message[0]), "%s, allocation %lld: %d %s", what, (long long)n,
                      (int)status, problem.message);
        ck_assert_msg(wf_alloc_live() <= live + 12, "%s, allocation %lld: %lld blocks have leaked: %s", what, (long long)n,
                      (long long)(wf_alloc_live() - live), problem.message);
    }
}

static inline struct wf_train_result trained(const struct wf_train_options *o)
{
    struct wf_train_result result;
    ck_ok(wf_train(o, &result, error));
    return result;
}

static int64_t asked, answer_at;
static inline bool cancel_in_the_middle(void *ctx)
{
    (void)ctx;
    return ++asked >= answer_at;
}

/* Stopped at whatever op, in a forward, a backward, a validation, the preparation of the data, and gone on with to the end: the bytes of a
 * training that was not. */
static inline void cancelled_anywhere(struct wf_train_options o)
{
    o.config.training.accumulate = 2;
    o.config.training.valid_every = 4;
    o.config.training.steps = 24;
    o.event = NULL;
    o.cancelled = NULL;
    o.out = in_folder("straight");
    trained(&o);
    o.out = in_folder("broken");
    o.resume = true;
    o.cancelled = cancel_in_the_middle;
    int stops = 0;
    for (wf_status status = WF_ERR_CANCELLED; status != WF_OK; stops++) {
        wf_error problem = {0};
        asked = 0;
        answer_at = 150 + stops * 397 % 1511;
        ck_assert_int_lt(stops, 1000);
        status = wf_train(&o, NULL, &problem);
        ck_assert_msg(status == WF_OK || status == WF_ERR_CANCELLED, "%s", problem.message);
    }
    ck_assert_int_gt(stops, 4);
    assert_same_runs(in_folder("straight"), in_folder("broken"));
}

/* Options whose training does not learn, and stops early. Returns the steps. */
static inline int64_t out_of_patience(struct wf_train_options *o, const struct seen *seen)
{
    o->config.training.steps = 400;
    o->config.training.valid_every = 2;
    o->config.training.patience = 2;
    o->config.training.warmup = 0;
    o->config.training.lr = o->config.training.min_lr = 0.5;
    struct wf_train_result result = trained(o);
    ck_assert_int_lt(result.step, 400);
    ck_assert_ptr_nonnull(strstr(seen->end, "stopped early"));
    return result.step;
}

#endif
