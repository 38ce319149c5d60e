/* SPDX-License-Identifier: MIT */
/* The best weights of a translation model go by its loss, BLEU or chrF. */
#include "zoo.h"

struct scores {
    struct seen seen; /* first, for see */
    int count;
    double loss[64], bleu[64], chrf[64], best[64];
};

static void see_scores(void *ctx, const struct wf_event *e)
{
    struct scores *s = ctx;
    see(ctx, e);
    if (e->kind != WF_EVENT_VALID)
        return;
    ck_assert_int_lt(s->count, 64);
    s->loss[s->count] = e->loss;
    s->bleu[s->count] = e->bleu;
    s->chrf[s->count] = e->chrf;
    s->best[s->count++] = e->best;
}

static struct wf_train_options scored(const char *out, const char *settings, struct scores *s)
{
    struct wf_train_options o = translation(out, &s->seen);
    set_keys(&o.config, "steps=120 valid_every=15");
    set_keys(&o.config, settings);
    o.event = see_scores;
    *s = (struct scores){0};
    return o;
}

/* The scores of a run's best weights, as `weft evaluate` finds them. */
static struct wf_translation_scores best_of(const char *name)
{
    struct wf_run run = opened(name, "best");
    struct wf_translation_scores scores;
    ck_ok(wf_evaluate_translation(&run, in_folder("valid.en"), in_folder("valid.de"), NULL, NULL, NULL, &scores, error));
    wf_run_close(&run);
    return scores;
}

START_TEST(the_best_has_the_highest_score)
{
    static const char *const by[] = {"loss", "bleu", "chrf"};
    for (int i = 0; i < 3; i++) {
        struct scores s;
        char settings[64];
        snprintf(settings, sizeof settings, "valid_scores=true best_by=%s", by[i]);
        struct wf_train_options o = scored(by[i], settings, &s);
        const struct wf_train_result result = trained(&o);
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
    ASSERT_HAS(in_folder("bleu/metrics.jsonl"), "\"loss/valid\":", "\"bleu/valid\":", "\"chrf/valid\":");
}
END_TEST

/* Measuring the scores changes nothing of the training; without it they are not there. */
START_TEST(scores_change_nothing)
{
    struct scores with, without;
    struct wf_train_options o = scored("with", "valid_scores=true", &with);
    trained(&o);
    o = scored("without", "", &without);
    trained(&o);
    ck_assert(with.bleu[0] >= 0 && isnan(without.bleu[0]) && isnan(without.chrf[7]));
    ck_assert(same_file("with/model.safetensors", "without/model.safetensors"));
    ck_assert(same_file("with/best.safetensors", "without/best.safetensors"));
    char *lines = text_of(in_folder("without/metrics.jsonl"));
    ck_assert_ptr_null(strstr(lines, "bleu"));
    wf_free(lines);
}
END_TEST

/* A resume by another measure begins a new best value, since a loss is no BLEU; patience goes by the new one. */
START_TEST(a_resume_may_choose_another)
{
    struct scores s;
    struct wf_train_options o = scored("run", "steps=30", &s);
    trained(&o);
    o = scored("run", "best_by=bleu steps=31", &s);
    o.resume = true;
    trained(&o);
    ck_assert(s.count == 1 && s.best[0] == s.bleu[0]);
    o = scored("run", "best_by=bleu steps=400 valid_every=1 patience=2 lr=1e-9 min_lr=1e-9", &s); /* so that nothing changes */
    o.resume = true;
    trained(&o);
    ck_assert(s.count == 2 && s.seen.last_step == 33);
    ck_assert_str_eq(s.seen.text[WF_EVENT_END], "stopped early: the validation BLEU no longer rises");
}
END_TEST

START_TEST(scores_need_a_text)
{
    struct wf_train_options o = translation("run", NULL);
    o.valid_files = 0;
    o.config.training.valid_scores = true;
    refused(&o, WF_ERR_ARGUMENT, "valid_scores=true needs a text to translate");
    set_keys(&o.config, "valid_scores=false best_by=chrf");
    refused(&o, WF_ERR_ARGUMENT, "best_by=chrf needs a text to translate: give --valid");
    static const char *const presets[] = {"nanogpt-char-small", "encoder-attention"};
    for (int i = 0; i < 2; i++) {
        struct wf_config config;
        ck_ok(wf_config_preset(&config, presets[i], error));
        ck_fails(wf_config_set(&config, "best_by", "bleu", error), WF_ERR_ARGUMENT, "best_by");
    }
}
END_TEST

WF_TEST_MAIN("best_by", the_best_has_the_highest_score, scores_change_nothing, a_resume_may_choose_another, scores_need_a_text)
