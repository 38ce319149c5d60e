/* SPDX-License-Identifier: MIT */
/* Telling what happens: to metrics.jsonl, to TensorBoard's event file, and to the caller. */
#include <math.h>

#include <weft/internal/event_files.h>
#include <weft/internal/files.h>
#include <weft/internal/json.h>
#include <weft/memory.h>

#include "trainer.h"

double seconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

enum { LOG_EVERY = 10 };

/* The whole numbers of a line, each for events of one kind. */
static wf_status put_counts(json_t *line, const struct wf_event *e, wf_error *error)
{
    const struct wf_bitext_survey none = {0}, *s = e->survey ? e->survey : &none;
    bool start = e->kind == WF_EVENT_START, survey = e->survey;
    const struct {
        bool put;
        const char *key;
        int64_t value;
    } count[] = {{start, "parameters", e->parameters},
                 {start, "train_tokens", e->train_tokens},
                 {start, "valid_tokens", e->valid_tokens},
                 {survey, "lines", s->lines},
                 {survey, "used", s->used},
                 {survey, "empty_source", s->empty_source},
                 {survey, "empty_target", s->empty_target},
                 {survey, "empty_both", s->empty_both},
                 {survey, "long_source", s->long_source},
                 {survey, "long_target", s->long_target},
                 {survey, "long_both", s->long_both},
                 {survey, "source_tokens", s->source_tokens},
                 {survey, "target_tokens", s->target_tokens},
                 {survey, "source_unknown", s->source_unknown},
                 {survey, "target_unknown", s->target_unknown}};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        if (count[i].put && wf_json_set_int(line, count[i].key, count[i].value, error))
            return error->code;
    return WF_OK;
}

/* The curves: in metrics.jsonl and in the event file under the same names. */
struct number {
    enum wf_event_kind kind;
    const char *tag;
    double value; /* one that is not finite is left out */
};
enum { NUMBERS = 8 };

static int numbers_of(const struct wf_event *e, struct number out[NUMBERS])
{
    const struct number all[NUMBERS] = {{WF_EVENT_STEP, "loss/train", e->loss},
                                        {WF_EVENT_STEP, "loss/train_smoothed", e->smoothed},
                                        {WF_EVENT_STEP, "lr", e->lr},
                                        {WF_EVENT_STEP, "grad_norm", e->grad_norm},
                                        {WF_EVENT_STEP, "tokens_per_second", e->tokens_per_second},
                                        {WF_EVENT_VALID, "loss/valid", e->loss},
                                        {WF_EVENT_VALID, "loss/valid_smoothed", e->smoothed},
                                        {WF_EVENT_VALID, "best", e->best}};
    int used = 0;
    for (int i = 0; i < NUMBERS; i++)
        if (all[i].kind == e->kind && isfinite(all[i].value))
            out[used++] = all[i];
    return used;
}

static wf_status put_numbers(json_t *line, const struct wf_event *e, wf_error *error)
{
    struct number number[NUMBERS];
    for (int i = 0, n = numbers_of(e, number); i < n; i++)
        if (wf_json_set_double(line, number[i].tag, number[i].value, error))
            return error->code;
    return WF_OK;
}

static wf_status write_line(struct trainer *t, const struct wf_event *e, const char *name)
{
    wf_json_init();
    json_t *line = json_object();
    if (!line)
        return wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a line of metrics.jsonl");
    bool failed = wf_json_set_string(line, "event", name, t->error) || wf_json_set_int(line, "step", e->step, t->error) ||
                  put_numbers(line, e, t->error) || put_counts(line, e, t->error) ||
                  (e->text && wf_json_set_string(line, "text", e->text, t->error)) ||
                  wf_json_set_double(line, "seconds", e->seconds, t->error) || wf_jsonl_append(t->metrics, line, t->error);
    json_decref(line);
    return failed ? t->error->code : WF_OK;
}

static wf_status write_events(struct trainer *t, const struct wf_event *e)
{
    struct number number[NUMBERS];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double wall = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    wf_status status = WF_OK;
    for (int i = 0, n = numbers_of(e, number); i < n && status == WF_OK; i++)
        status = wf_events_scalar(t->events, number[i].tag, e->step, wall, number[i].value, t->error);
    if (status == WF_OK && e->kind == WF_EVENT_SAMPLE)
        status = wf_events_text(t->events, "sample", e->step, wall, e->text, t->error);
    return status;
}

static struct wf_event event_of(const struct trainer *t, enum wf_event_kind kind, const char *text)
{
    return (struct wf_event){.kind = kind,
                             .step = t->step,
                             .steps = t->config.training.steps,
                             .loss = kind == WF_EVENT_VALID ? t->valid : t->loss,
                             .smoothed = kind == WF_EVENT_VALID ? t->valid_smoothed : t->smoothed,
                             .best = t->best,
                             .lr = t->optimizer.lr,
                             .grad_norm = t->grad_norm,
                             .parameters = t->registry ? wf_registry_parameters(t->registry) : 0,
                             .vocab_size = wf_config_shape(&t->config).vocab_size,
                             .train_tokens = t->train_tokens,
                             .valid_tokens = t->valid_tokens,
                             .train_pairs = t->train_pairs,
                             .valid_pairs = t->valid_pairs,
                             .seconds = seconds_since(&t->start),
                             .text = text,
                             .masked = wf_config_kind(&t->config) == WF_MODEL_ENCODER};
}

static wf_status send(struct trainer *t, const struct wf_event *e)
{
    static const char *const names[] = {[WF_EVENT_DATA] = "data",       [WF_EVENT_CHANGE] = "change", [WF_EVENT_START] = "start",
                                        [WF_EVENT_STEP] = "step",       [WF_EVENT_VALID] = "valid",   [WF_EVENT_SAVE] = "save",
                                        [WF_EVENT_WARNING] = "warning", [WF_EVENT_END] = "end",       [WF_EVENT_SAMPLE] = "sample"};
    if (t->options->event)
        t->options->event(t->options->ctx, e);
    bool quiet = e->kind == WF_EVENT_STEP && t->step % LOG_EVERY != 0 && t->step != 1 && t->step != t->config.training.steps;
    if (quiet || e->kind == WF_EVENT_SAVE || !t->metrics)
        return WF_OK;
    wf_status status = write_line(t, e, names[e->kind]);
    return status == WF_OK && t->events ? write_events(t, e) : status;
}

wf_status report(struct trainer *t, enum wf_event_kind kind, double tokens_per_second, const char *text)
{
    struct wf_event e = event_of(t, kind, text);
    e.tokens_per_second = tokens_per_second;
    return send(t, &e);
}

/* A text that can't be drawn from the numbers that the weights give is left out: training goes on while its losses are finite. */
wf_status report_sample(struct trainer *t)
{
    struct wf_string text = {0};
    wf_error problem = {0};
    if (!t->task->sample)
        return WF_OK;
    wf_status status = t->task->sample(t, &text, &problem);
    for (int64_t i = 0; i < text.length; i++) /* a byte of a byte-level vocabulary; C strings have no place for it */
        text.data[i] = text.data[i] ? text.data[i] : ' ';
    if (status == WF_OK)
        status = report(t, WF_EVENT_SAMPLE, 0, text.data ? text.data : "");
    else
        status = status == WF_ERR_NUMERIC ? WF_OK : wf_error_set(t->error, status, "%s", problem.message);
    wf_string_free(&text);
    return status;
}

wf_status report_data(struct trainer *t, const struct wf_bitext_survey *survey, const char *text)
{
    struct wf_event e = event_of(t, WF_EVENT_DATA, text);
    e.survey = survey;
    return send(t, &e);
}

bool cancelled(const struct trainer *t)
{
    return t->options->cancelled && t->options->cancelled(t->options->ctx);
}

bool report_progress(struct trainer *t, const char *text, int64_t done, int64_t total)
{
    struct wf_event e = event_of(t, WF_EVENT_PREPARE, text);
    e.done = done;
    e.total = total;
    if (t->options->event)
        t->options->event(t->options->ctx, &e);
    return !cancelled(t);
}

/* --- the files ----------------------------------------------------------------------------------------------------- */

/* What a killed process logged after its last save will be done, and logged, again. A log that can't be read is no reason not to train: the
 * state has all that is needed. */
static wf_status open_lines(struct trainer *t, bool resuming)
{
    wf_error damage = {0};
    char *path = wf_run_path(t->options->out, "metrics.jsonl", t->error);
    if (path && resuming)
        t->metrics = wf_jsonl_open(path, t->step, &damage);
    if (damage.code && damage.code != WF_ERR_FORMAT)
        wf_error_set(t->error, damage.code, "%s", damage.message);
    if (!t->metrics && !t->error->code)
        set_aside(t, "metrics.jsonl", NULL, resuming ? damage.message : WOULD_REPLACE);
    if (!t->metrics && !t->error->code)
        t->metrics = wf_jsonl_open(path, t->step, t->error);
    wf_free(path);
    return t->error->code;
}

/* Under a name that TensorBoard does not look at. */
static wf_status set_events_aside(struct trainer *t, const struct wf_names *names, const char *why)
{
    for (int64_t i = 0; i < names->count && !t->error->code; i++)
        set_aside(t, names->name[i], "events", why);
    return t->error->code;
}

static wf_status open_events(struct trainer *t, const struct wf_names *names)
{
    wf_error damage = {0};
    t->events = wf_events_open(t->options->out, t->step, &damage);
    if (t->events || damage.code != WF_ERR_FORMAT)
        return t->events ? WF_OK : wf_error_set(t->error, damage.code, "%s", damage.message);
    if (!set_events_aside(t, names, damage.message))
        t->events = wf_events_open(t->options->out, t->step, t->error);
    return t->error->code;
}

wf_status metrics_open(struct trainer *t, bool resuming)
{
    struct wf_names names = {0};
    if (!open_lines(t, resuming) && !wf_event_files(t->options->out, &names, t->error) &&
        (resuming || !set_events_aside(t, &names, WOULD_REPLACE))) {
        if (wf_events_available())
            open_events(t, &names);
        else if (resuming && names.count > 0)
            report(t, WF_EVENT_WARNING, 0, "this build has no protobuf-c: TensorBoard will not see what follows");
    }
    wf_names_free(&names);
    return t->error->code;
}

void metrics_close(struct trainer *t)
{
    wf_jsonl_close(t->metrics);
    wf_events_close(t->events);
}
