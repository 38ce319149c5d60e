/* SPDX-License-Identifier: MIT */
/* What tests of training share: a folder, what was seen, memory that fails; of training on pairs a small parallel text, a small model. */
#ifndef TESTS_TRAIN_PAIRS_TEST_H
#define TESTS_TRAIN_PAIRS_TEST_H

#include <math.h>
#include <unistd.h>

#include <weft/file.h>
#include <weft/run.h>
#include <weft/train.h>

#include "check_weft.h"
#include "config_test.h"

static char folder[64];

static inline const char *in_folder(const char *name)
{
    static char path[64][192];
    static int turn;
    char *p = path[turn++ % 64];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

/* `count` lines of one to seven numbers in words; the target says them in the other order. */
static inline void write_pairs(const char *source, const char *target, int count, unsigned seed)
{
    static const char *const en[] = {"one", "two", "three", "four", "five", "six"};
    static const char *const de[] = {"eins", "zwei", "drei", "vier", "fünf", "sechs"};
    FILE *s = fopen(in_folder(source), "w"), *t = fopen(in_folder(target), "w");
    for (int i = 0; i < count; i++) {
        int words[7], n = 1 + (int)((seed + (unsigned)i * 7) % 7);
        for (int k = 0; k < n; k++) {
            seed = seed * 1664525u + 1013904223u;
            words[k] = i < 6 ? (i + k) % 6 : (int)(seed >> 16) % 6; /* the first lines hold every word */
        }
        for (int k = 0; k < n; k++) {
            fprintf(s, "%s%s", k ? " " : "", en[words[k]]);
            fprintf(t, "%s%s", k ? " " : "", de[words[n - 1 - k]]);
        }
        fputc('\n', s);
        fputc('\n', t);
    }
    fclose(s);
    fclose(t);
}

static inline void begin(void)
{
    strcpy(folder, "/tmp/weft-pairs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_pairs("train.en", "train.de", 100, 1);
    write_pairs("valid.en", "valid.de", 20, 77);
}

static inline void finish(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

struct seen {
    int count[WF_EVENT_SAMPLE + 1];
    int64_t cancel_at, last_step;
    double first_loss, last_loss, first_valid, last_valid;
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

/* A model of two layers with dropout everywhere; 40 steps, about 11 batches an epoch. */
static inline struct wf_train_options small(const char *out, struct seen *seen)
{
    static const char *train[2], *valid[2];
    train[0] = in_folder("train.en");
    train[1] = in_folder("train.de");
    valid[0] = in_folder("valid.en");
    valid[1] = in_folder("valid.de");
    static char kept[4][192];
    for (int i = 0; i < 2; i++) {
        strcpy(kept[i], train[i]);
        strcpy(kept[2 + i], valid[i]);
        train[i] = kept[i];
        valid[i] = kept[2 + i];
    }
    struct wf_train_options o = {.out = out,
                                 .train = train,
                                 .train_files = 2,
                                 .valid = valid,
                                 .valid_files = 2,
                                 .seed = 5,
                                 .event = see,
                                 .ctx = seen,
                                 .cancelled = cancel};
    ck_ok(wf_config_preset(&o.config, "seq2seq-tiny", error));
    const char *set[][2] = {
        {"encoder_layers", "1"},    {"decoder_layers", "1"}, {"d_model", "16"},       {"d_ff", "32"},         {"heads", "2"},
        {"max_length", "24"},       {"positions", "32"},     {"batch_tokens", "120"}, {"batch_window", "32"}, {"lr", "0.01"},
        {"label_smoothing", "0.1"}, {"valid_every", "10"},   {"save_every", "7"},     {"keep", "2"},          {"clip", "1"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        ck_ok(wf_config_set(&o.config, set[i][0], set[i][1], error));
    o.config.training.steps = 40;
    return o;
}

static inline bool same_file(const char *a, const char *b)
{
    wf_error problem = {0};
    int64_t n, m;
    char *x = wf_file_load(a, INT64_C(1) << 30, &n, &problem), *y = wf_file_load(b, INT64_C(1) << 30, &m, &problem);
    bool same = x && y && n == m && memcmp(x, y, (size_t)n) == 0;
    wf_free(x);
    wf_free(y);
    return same;
}

static inline void write_text(const char *name, const char *text)
{
    ck_ok(wf_file_save(in_folder(name), text, (int64_t)strlen(text), error));
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

/* A training that must fail with this status and a line that holds `part`. */
static inline void refused(const struct wf_train_options *o, wf_status code, const char *part)
{
    wf_error problem = {0};
    wf_status status = wf_train(o, NULL, &problem);
    ck_assert_msg(status == code && strstr(problem.message, part), "%d, not %d with '%s': %s", (int)status, (int)code, part,
                  problem.message);
    ck_assert_ptr_null(strchr(problem.message, '\n'));
}

#endif
