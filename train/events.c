/* SPDX-License-Identifier: MIT */
/* Turns the events of the loop into those of wf_train, and reports the events that only wf_train has. */
#include <math.h>

#include "trainer.h"

static struct wf_event event_of(const struct trainer *t, enum wf_event_kind kind, const char *text)
{
    const struct fit *f = &t->fit;
    bool valid = kind == WF_EVENT_VALID, minimizes = t->config.training.label_smoothing > 0 || t->config.family->loss_term;
    return (struct wf_event){.kind = kind,
                             .step = f->step,
                             .steps = t->config.training.steps,
                             .loss = valid ? f->value[LOSS] : f->loss[0],
                             .smoothed = valid       ? f->value[SMOOTHED]
                                         : minimizes ? f->minimized[0]
                                                     : NAN,
                             .best = f->best,
                             .lr = t->optimizer.lr,
                             .grad_norm = f->grad_norm[0],
                             .parameters = t->registry ? wf_registry_parameters(t->registry) : 0,
                             .vocab_size = wf_config_shape(&t->config).vocab_size,
                             .train_tokens = t->train_tokens,
                             .valid_tokens = t->valid_tokens,
                             .train_pairs = t->train_pairs,
                             .valid_pairs = t->valid_pairs,
                             .seconds = seconds_since(&f->start),
                             .bleu = valid ? f->value[BLEU] : NAN,
                             .chrf = valid ? f->value[CHRF] : NAN,
                             .survey = t->survey,
                             .text = text,
                             .masked = wf_config_kind(&t->config) == WF_MODEL_ENCODER};
}

void pass_on(void *trainer, const struct wf_fit_event *e)
{
    const struct trainer *t = trainer;
    struct wf_event event = event_of(t, e->kind, e->text);
    event.tokens_per_second = e->per_second;
    event.seconds = e->seconds;
    event.left = e->left;
    event.done = e->done;
    event.total = e->total;
    event.expected = e->expected;
    if (t->options->event)
        t->options->event(t->options->ctx, &event);
}

bool report_progress(struct trainer *t, const char *text, int64_t done, int64_t total)
{
    struct wf_event e = event_of(t, WF_EVENT_PREPARE, text);
    e.done = done;
    e.total = total;
    if (t->options->event && t->fit.ranks.rank == 0)
        t->options->event(t->options->ctx, &e);
    t->fit.limit.cut |= limit_passed(&t->fit);
    return !cancelled(t) && !t->fit.limit.cut;
}

void validation_tell(void *trainer, int64_t done, int64_t total)
{
    struct trainer *t = trainer;
    pace_report(&t->fit, "validating", done, total);
}

wf_status report_start(struct trainer *t)
{
    const struct count count[] = {
        {"parameters", wf_registry_parameters(t->registry)}, {"train_tokens", t->train_tokens}, {"valid_tokens", t->valid_tokens}};
    return report_counts(&t->fit, WF_EVENT_START, NULL, count, 3);
}

wf_status report_data(struct trainer *t, const struct wf_bitext_survey *s, const char *text)
{
    const struct count count[] = {{"lines", s->lines},
                                  {"used", s->used},
                                  {"empty_source", s->empty_source},
                                  {"empty_target", s->empty_target},
                                  {"empty_both", s->empty_both},
                                  {"long_source", s->long_source},
                                  {"long_target", s->long_target},
                                  {"long_both", s->long_both},
                                  {"over_ratio", s->over_ratio},
                                  {"duplicates", s->duplicates},
                                  {"source_tokens", s->source_tokens},
                                  {"target_tokens", s->target_tokens},
                                  {"source_unknown", s->source_unknown},
                                  {"target_unknown", s->target_unknown}};
    t->survey = s;
    wf_status status = report_counts(&t->fit, WF_EVENT_DATA, text, count, (int)(sizeof count / sizeof *count));
    t->survey = NULL;
    return status;
}
