/* SPDX-License-Identifier: MIT */
/* Reports events: calls the program's event(), and writes lines of metrics.jsonl and TensorBoard's event file. */
#include <math.h>
#include <stdio.h>

#include <weft/internal/event_files.h>
#include <weft/internal/json.h>
#include <weft/internal/run_folder.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include "loop.h"

double seconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

/* --- the logged numbers; metrics.jsonl and the event file use the same names ------------------------------------------- */

static void add_curve(struct fit *f, enum wf_event_kind kind, const double *value, const char *before, const char *name, const char *after)
{
    struct curve *c = &f->log.curve[f->log.curves++];
    c->kind = kind;
    c->value = value;
    snprintf(c->tag, sizeof c->tag, "%s%s%s", before, name, after);
}

/* The unit of a batch's weight, such as "tokens". */
static const char *unit_of(const struct fit *f)
{
    return f->task.unit ? f->task.unit : "rows";
}

/* Refuses two numbers with the same name: one would replace the other in a line, and the event file would mix them. */
static wf_status check_tags(const struct fit *f)
{
    const char *const taken[] = {"event", "step", "seconds", "text", "sample", unit_of(f)};
    for (int i = 0; i < f->log.curves; i++) {
        for (size_t k = 0; k < sizeof taken / sizeof *taken; k++)
            if (strcmp(f->log.curve[i].tag, taken[k]) == 0)
                return wf_error_set(f->error, WF_ERR_ARGUMENT,
                                    "wf_fit: a metric has the tag '%s', which metrics.jsonl has for other things: give it another one",
                                    taken[k]);
        for (int k = 0; k < i; k++)
            if (strcmp(f->log.curve[i].tag, f->log.curve[k].tag) == 0)
                return wf_error_set(
                    f->error, WF_ERR_ARGUMENT,
                    "wf_fit: two numbers would be called '%s' in metrics.jsonl: give the report, phase, optimiser or metric "
                    "another name or tag",
                    f->log.curve[i].tag);
    }
    return WF_OK;
}

/* Adds the curves in the order in which a line lists them. */
wf_status curves_of(struct fit *f)
{
    const char *minimized = f->owner->minimized_tag;
    f->log.curves = 0;
    for (int i = 0; i < f->phases; i++) {
        const char *phase = f->phases > 1 ? f->task.phases[i] : "loss";
        add_curve(f, WF_EVENT_STEP, &f->loss[i], "", phase, "/train");
        if (minimized)
            add_curve(f, WF_EVENT_STEP, &f->minimized[i], phase, "/train_", minimized);
    }
    for (int i = 0; i < f->reports; i++)
        add_curve(f, WF_EVENT_STEP, &f->report[i], "", f->task.reports[i], "/train");
    for (int i = 0; i < f->o.optimizers; i++)
        add_curve(f, WF_EVENT_STEP, &f->lr[i], "lr", f->o.optimizers > 1 ? "/" : "", f->o.optimizers > 1 ? f->o.optimizer[i].name : "");
    for (int i = 0; i < f->phases; i++)
        add_curve(f, WF_EVENT_STEP, &f->grad_norm[i], "grad_norm", f->phases > 1 ? "/" : "", f->phases > 1 ? f->task.phases[i] : "");
    add_curve(f, WF_EVENT_STEP, &f->per_second, "", unit_of(f), "_per_second");
    for (int i = 0; i < f->task.metrics; i++) {
        const struct wf_metric *m = &f->task.metric[i];
        add_curve(f, WF_EVENT_VALID, &f->value[i], "", m->tag ? m->tag : m->name, m->tag ? "" : "/valid");
    }
    if (f->task.metrics > 0)
        add_curve(f, WF_EVENT_VALID, &f->best, "best", "", "");
    return check_tags(f);
}

/* Collects the finite numbers of an event in f->log.number, and returns their count. */
static int numbers_of(struct fit *f, enum wf_event_kind kind)
{
    int used = 0;
    for (int i = 0; i < f->log.curves; i++)
        if (f->log.curve[i].kind == kind && isfinite(*f->log.curve[i].value))
            f->log.number[used++] = (struct wf_fit_number){f->log.curve[i].tag, *f->log.curve[i].value};
    return used;
}

/* --- lines and events ------------------------------------------------------------------------------------------------ */

static wf_status put_numbers(json_t *line, const struct wf_fit_event *e, const struct count *count, int counts, wf_error *error)
{
    for (int i = 0; i < e->numbers; i++)
        if (wf_json_set_double(line, e->number[i].tag, e->number[i].value, error))
            return error->code;
    for (int i = 0; i < counts; i++)
        if (wf_json_set_int(line, count[i].key, count[i].value, error))
            return error->code;
    return WF_OK;
}

/* Adds to the line the sum of the weights of all batches so far, such as a number of tokens, which plots can use as their x axis. */
static wf_status put_total(json_t *line, const struct fit *f, const struct wf_fit_event *e)
{
    if ((e->kind != WF_EVENT_STEP && e->kind != WF_EVENT_VALID) || !isfinite(f->total))
        return WF_OK;
    return f->total == floor(f->total) && f->total < 0x1p53 ? wf_json_set_int(line, unit_of(f), (int64_t)f->total, f->error)
                                                            : wf_json_set_double(line, unit_of(f), f->total, f->error);
}

static wf_status write_line(struct fit *f, const struct wf_fit_event *e, const char *name, const struct count *count, int counts)
{
    wf_json_init();
    json_t *line = json_object();
    if (!line)
        return wf_error_set(f->error, WF_ERR_MEMORY, "no memory for a line of metrics.jsonl");
    bool failed = wf_json_set_string(line, "event", name, f->error) || wf_json_set_int(line, "step", e->step, f->error) ||
                  put_numbers(line, e, count, counts, f->error) || put_total(line, f, e) ||
                  (e->text && wf_json_set_string(line, "text", e->text, f->error)) ||
                  wf_json_set_double(line, "seconds", round(e->seconds * 1000) / 1000, f->error) ||
                  wf_jsonl_append(f->log.metrics, line, f->error);
    json_decref(line);
    return failed ? f->error->code : WF_OK;
}

static wf_status write_events(struct fit *f, const struct wf_fit_event *e)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double wall = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    wf_status status = WF_OK;
    for (int i = 0; i < e->numbers && status == WF_OK; i++)
        status = wf_events_scalar(f->log.events, e->number[i].tag, e->step, wall, e->number[i].value, f->error);
    if (status == WF_OK && e->kind == WF_EVENT_SAMPLE)
        status = wf_events_text(f->log.events, "sample", e->step, wall, e->text, f->error);
    return status;
}

int64_t parameters_of(const struct fit *f)
{
    int64_t sum = 0;
    for (int i = 0; i < f->o.registries; i++)
        sum += wf_registry_parameters(f->o.registry[i].registry);
    return sum;
}

/* Returns `text` if it is UTF-8; otherwise a copy in `made` in which \xNN replaces each byte that is not. NULL: no memory. */
static const char *in_utf8(const char *text, struct wf_string *made)
{
    int64_t left = (int64_t)strlen(text), whole;
    if (wf_utf8_check(text, left) < 0)
        return text;
    for (; (whole = wf_utf8_check(text, left)) >= 0; text += whole + 1, left -= whole + 1) {
        wf_string_add(made, text, whole);
        wf_string_format(made, "\\x%02x", (unsigned char)text[whole]);
    }
    wf_string_add(made, text, left);
    return made->failed ? NULL : made->data;
}

static wf_status report_event(struct fit *f, enum wf_event_kind kind, const char *text, const struct count *count, int counts)
{
    static const char *const names[] = {
        [WF_EVENT_DATA] = "data",     [WF_EVENT_CHANGE] = "change", [WF_EVENT_START] = "start",     [WF_EVENT_STEP] = "step",
        [WF_EVENT_VALID] = "valid",   [WF_EVENT_SAVE] = "save",     [WF_EVENT_WARNING] = "warning", [WF_EVENT_END] = "end",
        [WF_EVENT_SAMPLE] = "sample", [WF_EVENT_PROGRESS] = NULL};
    const struct wf_fit_event e = {.kind = kind,
                                   .step = f->step,
                                   .steps = f->o.steps,
                                   .loss = f->loss[0],
                                   .losses = f->loss,
                                   .value = f->value,
                                   .best = f->best,
                                   .improved = kind == WF_EVENT_VALID && f->improved,
                                   .lr = f->lr[0],
                                   .grad_norm = f->grad_norm[0],
                                   .per_second = kind == WF_EVENT_STEP ? f->per_second : 0,
                                   .parameters = parameters_of(f),
                                   .seconds = seconds_since(&f->start),
                                   .left = pace_left(f),
                                   .done = kind == WF_EVENT_PROGRESS ? f->pace.done : 0,
                                   .total = kind == WF_EVENT_PROGRESS ? f->pace.total : 0,
                                   .expected = kind == WF_EVENT_PROGRESS ? pace_expected(f) : 0,
                                   .text = text,
                                   .number = f->log.number,
                                   .numbers = numbers_of(f, kind)};
    if (f->o.event)
        f->o.event(f->o.ctx, &e);
    bool quiet = kind == WF_EVENT_STEP && f->step % f->o.log_every != 0 && f->step != 1 && f->step != f->o.steps;
    if (quiet || kind == WF_EVENT_SAVE || kind == WF_EVENT_PROGRESS || !f->log.metrics)
        return WF_OK;
    wf_status status = write_line(f, &e, names[kind], count, counts);
    return status == WF_OK && f->log.events ? write_events(f, &e) : status;
}

wf_status report_counts(struct fit *f, enum wf_event_kind kind, const char *text, const struct count *count, int counts)
{
    struct wf_string made = {0};
    if (f->ranks.rank > 0) /* only rank 0 reports events */
        return WF_OK;
    const char *readable = text ? in_utf8(text, &made) : NULL;
    wf_status status = text && !readable ? wf_error_set(f->error, WF_ERR_MEMORY, "no memory for a message")
                                         : report_event(f, kind, readable, count, counts);
    wf_string_free(&made);
    return status;
}

wf_status report_string(struct fit *f, enum wf_event_kind kind, struct wf_string *text)
{
    wf_status status =
        text->failed ? wf_error_set(f->error, WF_ERR_MEMORY, "no memory for a message") : report(f, kind, text->data ? text->data : "");
    wf_string_free(text);
    return status;
}

wf_status report(struct fit *f, enum wf_event_kind kind, const char *text)
{
    const struct count parameters = {"parameters", parameters_of(f)};
    return report_counts(f, kind, text, &parameters, kind == WF_EVENT_START);
}

/* Without finite logits the model can give no sample. Then the sample is left out and the training goes on, as long as its losses are
 * finite. */
wf_status report_sample(struct fit *f)
{
    const char *text = NULL;
    wf_error why = {0};
    if (!f->task.sample)
        return WF_OK;
    wf_status status = f->task.sample(f->o.ctx, f->tape, &text, &why);
    if (status == WF_OK)
        return report(f, WF_EVENT_SAMPLE, text ? text : "");
    return status == WF_ERR_NUMERIC
               ? WF_OK
               : wf_error_set(f->error, status, "%s", why.message[0] ? why.message : "the task's sample failed without a message");
}

/* --- opening the files --------------------------------------------------------------------------------------------- */

/* Opens metrics.jsonl. A resume removes the lines of steps after the last save, because those updates are done and logged again. If the
 * file is damaged, it is renamed, and the training goes on with a new one. */
static wf_status open_lines(struct fit *f, bool resuming)
{
    wf_error damage = {0};
    char *path = wf_run_path(f->o.out, "metrics.jsonl", f->error);
    if (path && resuming)
        f->log.metrics = wf_jsonl_open(path, f->step, &damage);
    if (damage.code && damage.code != WF_ERR_FORMAT)
        wf_error_set(f->error, damage.code, "%s", damage.message);
    if (!f->log.metrics && !f->error->code)
        set_aside(f, "metrics.jsonl", NULL, resuming ? damage.message : WOULD_REPLACE);
    if (!f->log.metrics && !f->error->code)
        f->log.metrics = wf_jsonl_open(path, f->step, f->error);
    wf_free(path);
    return f->error->code;
}

/* Renames the event files to "events...", a name that TensorBoard does not read. */
static wf_status set_events_aside(struct fit *f, const struct wf_names *names, const char *why)
{
    for (int64_t i = 0; i < names->count && !f->error->code; i++)
        set_aside(f, names->name[i], "events", why);
    return f->error->code;
}

static wf_status open_events(struct fit *f, const struct wf_names *names)
{
    wf_error damage = {0};
    f->log.events = wf_events_open(f->o.out, f->step, &damage);
    if (f->log.events || damage.code != WF_ERR_FORMAT)
        return f->log.events ? WF_OK : wf_error_set(f->error, damage.code, "%s", damage.message);
    if (!set_events_aside(f, names, damage.message))
        f->log.events = wf_events_open(f->o.out, f->step, f->error);
    return f->error->code;
}

wf_status metrics_open(struct fit *f, bool resuming)
{
    struct wf_names names = {0};
    if (!open_lines(f, resuming) && !wf_event_files(f->o.out, &names, f->error) &&
        (resuming || !set_events_aside(f, &names, WOULD_REPLACE))) {
        if (wf_events_available())
            open_events(f, &names);
        else if (resuming && names.count > 0)
            report(f, WF_EVENT_WARNING, "this build has no protobuf-c: TensorBoard will not see what follows");
    }
    wf_names_free(&names);
    return f->error->code;
}

void metrics_close(struct fit *f)
{
    wf_jsonl_close(f->log.metrics);
    wf_events_close(f->log.events);
}
