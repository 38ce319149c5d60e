/* SPDX-License-Identifier: MIT */
/* The best weights of a translation model go by its loss, BLEU or chrF. */
#include "pairs_test.h"

struct scores {
    int count;
    double loss[64], bleu[64], chrf[64], best[64];
    int64_t last_step, cancel_at, asked;
};

static void see_scores(void *ctx, const struct wf_event *e)
{
    struct scores *s = ctx;
    s->last_step = e->step;
    if (e->kind != WF_EVENT_VALID)
        return;
    ck_assert_int_lt(s->count, 64);
    s->loss[s->count] = e->loss;
    s->bleu[s->count] = e->bleu;
    s->chrf[s->count] = e->chrf;
    s->best[s->count++] = e->best;
}

static bool cancel_somewhere(void *ctx)
{
    struct scores *s = ctx;
    return s->cancel_at > 0 && ++s->asked >= s->cancel_at;
}

static struct wf_train_options scored(const char *out, const char *best_by, struct scores *s)
{
    static struct seen unused;
    struct wf_train_options o = small(out, &unused);
    ck_ok(wf_config_set(&o.config, "best_by", best_by, error));
    o.config.training.steps = 120;
    o.config.training.valid_every = 15;
    o.event = see_scores;
    o.cancelled = cancel_somewhere;
    o.ctx = s;
    return o;
}

/* The scores of a run's best weights, as `weft evaluate` finds them. */
static struct wf_translation_scores best_of(const char *name)
{
    struct wf_run run;
    struct wf_translation_scores scores;
    ck_ok(wf_run_open(&run, in_folder(name), "best", error));
    ck_ok(wf_evaluate_translation(&run, in_folder("valid.en"), in_folder("valid.de"), NULL, NULL, NULL, &scores, error));
    wf_run_close(&run);
    return scores;
}

START_TEST(the_best_has_the_highest_score)
{
    begin();
    static const char *const by[] = {"loss", "bleu", "chrf"};
    for (int i = 0; i < 3; i++) {
        struct scores s = {0};
        struct wf_train_options o = scored(in_folder(by[i]), by[i], &s);
        struct wf_train_result result;
        o.config.training.valid_scores = true;
        ck_ok(wf_train(&o, &result, error));
        const double *value = i == 0 ? s.loss : i == 1 ? s.bleu : s.chrf;
        double best = value[0];
        for (int k = 0; k < s.count; k++) {
            best = i == 0 ? fmin(best, value[k]) : fmax(best, value[k]);
            ck_assert(s.best[k] == best && s.bleu[k] >= 0 && s.chrf[k] > 0);
        }
        ck_assert(s.count == 8 && result.best == best && result.valid == s.loss[7]);
        struct wf_translation_scores scores = best_of(by[i]);
        if (i > 0)
            ck_assert_double_eq(i == 1 ? scores.bleu.score : scores.chrf.score, best);
    }
    char *lines = wf_file_load(in_folder("bleu/metrics.jsonl"), 1 << 20, NULL, NULL);
    ck_assert(lines && strstr(lines, "\"loss/valid\":") && strstr(lines, "\"bleu/valid\":") && strstr(lines, "\"chrf/valid\":"));
    wf_free(lines);
    finish();
}
END_TEST

/* To measure the scores changes nothing of the training; without it they are not there. */
START_TEST(scores_change_nothing)
{
    begin();
    struct scores with = {0}, without = {0};
    struct wf_train_options o = scored(in_folder("with"), "loss", &with);
    o.config.training.valid_scores = true;
    ck_ok(wf_train(&o, NULL, error));
    o = scored(in_folder("without"), "loss", &without);
    ck_ok(wf_train(&o, NULL, error));
    ck_assert(with.bleu[0] >= 0 && isnan(without.bleu[0]) && isnan(without.chrf[7]));
    ck_assert(same_file(in_folder("with/model.safetensors"), in_folder("without/model.safetensors")));
    ck_assert(same_file(in_folder("with/best.safetensors"), in_folder("without/best.safetensors")));
    char *lines = wf_file_load(in_folder("without/metrics.jsonl"), 1 << 20, NULL, NULL);
    ck_assert(lines && !strstr(lines, "bleu"));
    wf_free(lines);
    finish();
}
END_TEST

START_TEST(cancelled_anywhere_gives_the_same_bytes)
{
    begin();
    struct scores whole = {0};
    struct wf_train_options o = scored(in_folder("straight"), "bleu", &whole);
    o.config.training.steps = 40;
    o.config.training.valid_every = 5;
    ck_ok(wf_train(&o, NULL, error));
    wf_status status = WF_ERR_CANCELLED;
    int stops = 0;
    for (; status != WF_OK; stops++) {
        struct scores s = {.cancel_at = 300 + stops * 97 % 511};
        wf_error problem = {0};
        o.out = in_folder("broken");
        o.resume = true;
        o.ctx = &s;
        ck_assert_int_lt(stops, 500);
        status = wf_train(&o, NULL, &problem);
        ck_assert_msg(status == WF_OK || status == WF_ERR_CANCELLED, "%s", problem.message);
    }
    ck_assert_int_gt(stops, 4);
    ck_assert(same_file(in_folder("straight/state.safetensors"), in_folder("broken/state.safetensors")));
    ck_assert(same_file(in_folder("straight/best.safetensors"), in_folder("broken/best.safetensors")));
    finish();
}
END_TEST

static char told[512];
static void see_all(void *ctx, const struct wf_event *e)
{
    see_scores(ctx, e);
    if (e->kind == WF_EVENT_CHANGE || e->kind == WF_EVENT_END)
        snprintf(told, sizeof told, "%s", e->text);
}

/* A best loss is no BLEU: a resume with another measure begins anew with it. Patience goes by it. */
START_TEST(a_resume_may_choose_another)
{
    begin();
    struct scores s = {0};
    struct wf_train_options o = scored(in_folder("run"), "loss", &s);
    o.config.training.steps = 30;
    ck_ok(wf_train(&o, NULL, error));
    o = scored(in_folder("run"), "bleu", &s);
    o.event = see_all;
    o.config.training.steps = 31;
    o.resume = true;
    s = (struct scores){0};
    ck_ok(wf_train(&o, NULL, error));
    ck_assert(s.count == 1 && s.best[0] == s.bleu[0]);
    o.config.training.steps = 400;
    o.config.training.valid_every = 1;
    o.config.training.patience = 2;
    o.config.training.lr = o.config.training.min_lr = 1e-9; /* so that nothing changes */
    s = (struct scores){0};
    ck_ok(wf_train(&o, NULL, error));
    ck_assert(s.count == 2 && s.last_step == 33);
    ck_assert_str_eq(told, "stopped early: the validation BLEU no longer rises");
    finish();
}
END_TEST

START_TEST(what_is_refused)
{
    begin();
    struct scores s = {0};
    struct wf_train_options o = scored(in_folder("run"), "chrf", &s);
    o.valid_files = 0;
    refused(&o, WF_ERR_ARGUMENT, "best_by=chrf needs a text to translate: give --valid");
    o = scored(in_folder("run"), "loss", &s);
    o.valid_files = 0;
    o.config.training.valid_scores = true;
    refused(&o, WF_ERR_ARGUMENT, "valid_scores=true needs a text to translate");
    static const char *const presets[] = {"nanogpt-char-small", "encoder-attention"};
    for (int i = 0; i < 2; i++) {
        struct wf_config config;
        wf_error e = {0};
        ck_ok(wf_config_preset(&config, presets[i], error));
        ck_assert_int_eq(wf_config_set(&config, "best_by", "bleu", &e), WF_ERR_ARGUMENT);
        ck_assert_msg(strstr(e.message, "best_by") != NULL, "%s", e.message);
    }
    finish();
}
END_TEST

WF_TEST_MAIN("best_by", the_best_has_the_highest_score, scores_change_nothing, cancelled_anywhere_gives_the_same_bytes,
             a_resume_may_choose_another, what_is_refused)
