/* SPDX-License-Identifier: MIT */
/* Telling what happens: to metrics.jsonl and to the caller. */
#include <math.h>

#include <weft/internal/json.h>

#include "trainer.h"

double seconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

enum { LOG_EVERY = 10 };

static wf_status set_number(json_t *line, const char *key, double value, wf_status status, wf_error *error)
{
    return status == WF_OK && isfinite(value) ? wf_json_set_double(line, key, value, error) : status;
}

static wf_status set_survey(json_t *line, const struct wf_bitext_survey *s, wf_status status, wf_error *error)
{
    const struct {
        const char *key;
        int64_t value;
    } number[] = {{"lines", s->lines},
                  {"used", s->used},
                  {"empty_source", s->empty_source},
                  {"empty_target", s->empty_target},
                  {"empty_both", s->empty_both},
                  {"long_source", s->long_source},
                  {"long_target", s->long_target},
                  {"long_both", s->long_both},
                  {"source_tokens", s->source_tokens},
                  {"target_tokens", s->target_tokens},
                  {"source_unknown", s->source_unknown},
                  {"target_unknown", s->target_unknown}};
    for (size_t i = 0; status == WF_OK && i < sizeof number / sizeof *number; i++)
        status = wf_json_set_int(line, number[i].key, number[i].value, error);
    return status;
}

static wf_status write_line(struct trainer *t, const struct wf_event *e, const char *name)
{
    wf_json_init();
    json_t *line = json_object();
    if (!line)
        return wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a line of metrics.jsonl");
    wf_status status = wf_json_set_string(line, "event", name, t->error);
    if (status == WF_OK)
        status = wf_json_set_int(line, "step", e->step, t->error);
    if (e->kind == WF_EVENT_STEP) {
        status = set_number(line, "loss/train", e->loss, status, t->error);
        status = set_number(line, "loss/train_smoothed", e->smoothed, status, t->error);
        status = set_number(line, "lr", e->lr, status, t->error);
        status = set_number(line, "grad_norm", e->grad_norm, status, t->error);
        status = set_number(line, "tokens_per_second", e->tokens_per_second, status, t->error);
    } else if (e->kind == WF_EVENT_VALID) {
        status = set_number(line, "loss/valid", e->loss, status, t->error);
        status = set_number(line, "loss/valid_smoothed", e->smoothed, status, t->error);
        status = set_number(line, "best", e->best, status, t->error);
    } else if (e->kind == WF_EVENT_START && status == WF_OK) {
        status = wf_json_set_int(line, "parameters", e->parameters, t->error);
        if (status == WF_OK)
            status = wf_json_set_int(line, "train_tokens", e->train_tokens, t->error);
        if (status == WF_OK)
            status = wf_json_set_int(line, "valid_tokens", e->valid_tokens, t->error);
    }
    if (e->kind == WF_EVENT_DATA)
        status = set_survey(line, e->survey, status, t->error);
    if (status == WF_OK && e->text)
        status = wf_json_set_string(line, "text", e->text, t->error);
    status = set_number(line, "seconds", e->seconds, status, t->error);
    if (status == WF_OK)
        status = wf_jsonl_append(t->metrics, line, t->error);
    json_decref(line);
    return status;
}

static struct wf_event event_of(const struct trainer *t, enum wf_event_kind kind, const char *text)
{
    return (struct wf_event){.kind = kind,
                             .step = t->step,
                             .steps = t->config.steps,
                             .loss = kind == WF_EVENT_VALID ? t->valid : t->loss,
                             .smoothed = kind == WF_EVENT_VALID ? t->valid_smoothed : t->smoothed,
                             .best = t->best,
                             .lr = t->adam.lr,
                             .grad_norm = t->adam.grad_norm,
                             .parameters = t->registry ? wf_registry_parameters(t->registry) : 0,
                             .vocab_size = t->config.vocab_size,
                             .train_tokens = t->train_tokens,
                             .valid_tokens = t->valid_tokens,
                             .train_pairs = t->train_pairs,
                             .valid_pairs = t->valid_pairs,
                             .seconds = seconds_since(&t->start),
                             .text = text};
}

static wf_status send(struct trainer *t, const struct wf_event *e)
{
    static const char *const names[] = {
        [WF_EVENT_DATA] = "data", [WF_EVENT_START] = "start",     [WF_EVENT_STEP] = "step", [WF_EVENT_VALID] = "valid",
        [WF_EVENT_SAVE] = "save", [WF_EVENT_WARNING] = "warning", [WF_EVENT_END] = "end"};
    if (t->options->event)
        t->options->event(t->options->ctx, e);
    bool quiet = e->kind == WF_EVENT_STEP && t->step % LOG_EVERY != 0 && t->step != 1 && t->step != t->config.steps;
    return quiet || e->kind == WF_EVENT_SAVE || !t->metrics ? WF_OK : write_line(t, e, names[e->kind]);
}

wf_status report(struct trainer *t, enum wf_event_kind kind, double tokens_per_second, const char *text)
{
    struct wf_event e = event_of(t, kind, text);
    e.tokens_per_second = tokens_per_second;
    return send(t, &e);
}

wf_status report_data(struct trainer *t, const struct wf_bitext_survey *survey, const char *text)
{
    struct wf_event e = event_of(t, WF_EVENT_DATA, text);
    e.survey = survey;
    return send(t, &e);
}

bool report_progress(struct trainer *t, const char *text, int64_t done, int64_t total)
{
    struct wf_event e = event_of(t, WF_EVENT_PREPARE, text);
    e.done = done;
    e.total = total;
    if (t->options->event)
        t->options->event(t->options->ctx, &e);
    return !(t->options->cancelled && t->options->cancelled(t->options->ctx));
}
