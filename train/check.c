/* SPDX-License-Identifier: MIT */
/* Checks the task and the options of wf_fit. Each error names the member that is wrong. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/gemm.h>
#include <weft/internal/minmax.h>
#include <weft/internal/text.h>

#include "loop.h"

static wf_status bad(wf_error *error, const char *what)
{
    return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: %s", what);
}

static wf_status bad_count(wf_error *error, const char *member, int64_t value, int64_t low, int64_t high)
{
    return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: %s is %" PRId64 ", not in %" PRId64 " to %" PRId64, member, value, low, high);
}

/* Whether a name may be a component of the dotted names and of the tags in a run's files. */
static bool is_name(const char *name)
{
    return name && name[0] && strlen(name) <= 64 && !strpbrk(name, ". \t\r\n/\"\\") && wf_utf8_check(name, (int64_t)strlen(name)) < 0;
}

static wf_status check_name(const char *member, int64_t index, const char *name, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    if (is_name(name))
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT,
                        "wf_fit: %s %" PRId64 " is called %s: a name has 1 to 64 bytes of UTF-8, without blanks, dots, slashes and quotes",
                        member, index, name ? wf_text_quote(name, quoted) : "NULL");
}

/* The state stores `text` in JSON, which must be UTF-8. Without this check the first save would fail, after much training. */
static wf_status check_text(const char *member, const char *text, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    int64_t at = text ? wf_utf8_check(text, (int64_t)strlen(text)) : -1;
    return at < 0 ? WF_OK
                  : wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: %s is not UTF-8 at byte %" PRId64 ", %s: the state keeps it as text",
                                 member, at, wf_text_quote(text + at, quoted));
}

/* Checks that `text` is a list of NAME=VALUE, separated by blanks. */
static wf_status check_settings(const char *member, const char *text, wf_error *error)
{
    static const char blanks[] = " \t\r\n";
    char word[64], quoted[WF_QUOTE_SIZE];
    if (check_text(member, text, error))
        return error->code;
    for (const char *at = text ? text + strspn(text, blanks) : ""; *at; at += strspn(at, blanks)) {
        const size_t length = strcspn(at, blanks), name = strcspn(at, "=");
        if (name > 0 && name < length) {
            at += length;
            continue;
        }
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), at);
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "wf_fit: %s has %s without %s: settings are NAME=VALUE, separated by blanks, and a value has no blanks", member,
                            wf_text_quote(word, quoted), name == 0 ? "a name" : "'='");
    }
    return WF_OK;
}

static wf_status check_tag(int index, const char *tag, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    if (!tag || (tag[0] && strlen(tag) <= TAG && wf_utf8_check(tag, (int64_t)strlen(tag)) < 0))
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: metric %d has the tag %s: a tag has 1 to %d bytes of UTF-8", index,
                        wf_text_quote(tag, quoted), TAG);
}

static wf_status check_names(const char *member, const char *const *name, int most, wf_error *error)
{
    for (int i = 0; name && name[i]; i++) {
        if (i == most)
            return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: the task has more than %d %s, or their list does not end with NULL", most,
                                member);
        for (int k = 0; k < i; k++)
            if (strcmp(name[k], name[i]) == 0)
                return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: the task has two %s '%s'", member, name[i]);
        if (check_name(member, i, name[i], error))
            return error->code;
    }
    return WF_OK;
}

static wf_status check_metrics(const struct wf_task *t, const struct wf_fit_options *o, wf_error *error)
{
    if (!t->validate)
        return o->patience > 0 ? bad(error, "patience counts validations, and the task has no validate: give one, or set patience to 0")
                               : WF_OK;
    if (t->metrics < 1 || t->metrics > WF_FIT_METRICS || !t->metric)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "wf_fit: the task has a validate and %d metrics%s: name 1 to %d that it measures, such as {\"loss\"}",
                            t->metrics, t->metric ? "" : " at NULL", WF_FIT_METRICS);
    if (t->best < 0 || t->best >= t->metrics)
        return bad_count(error, "the task's best", t->best, 0, t->metrics - 1);
    for (int i = 0; i < t->metrics; i++) {
        if (check_name("metric", i, t->metric[i].name, error) || check_tag(i, t->metric[i].tag, error))
            return error->code;
        for (int k = 0; k < i; k++)
            if (strcmp(t->metric[i].name, t->metric[k].name) == 0)
                return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: two metrics are called '%s'", t->metric[i].name);
    }
    if (o->patience > 0 && o->valid_every == 0)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "wf_fit: patience=%" PRId64
                            " counts validations, and valid_every=0 validates only at the end: set valid_every, "
                            "or patience=0",
                            o->patience);
    return WF_OK;
}

static wf_status check_task(const struct wf_task *t, wf_error *error)
{
    /* The size of the smallest struct wf_task, which ends with `loss`. A program compiled for an older version lacks later members. */
    const size_t least = offsetof(struct wf_task, validate);
    if (!t)
        return bad(error, "the task is NULL");
    if (t->abi < least || t->abi > sizeof *t)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "wf_fit: the task's abi is %zu, and this library's is %zu: set .abi = WF_TASK_ABI, and build against this "
                            "library's headers",
                            t->abi, sizeof *t);
    if (check_name("task", 0, t->name, error))
        return error->code;
    if (!t->next || !t->loss)
        return bad(error, t->next ? "the task has no loss" : "the task has no next");
    if (t->unit && !is_name(t->unit))
        return check_name("unit", 0, t->unit, error);
    return check_names("phases", t->phases, WF_FIT_PHASES, error) ? error->code : check_names("reports", t->reports, WF_FIT_REPORTS, error);
}

static wf_status check_registries(const struct wf_fit_options *o, wf_error *error)
{
    if (o->registries < 1 || !o->registry)
        return bad(error, "there is no registry: give .registry and .registries, the weights to train and to save");
    if (o->registries > WF_FIT_REGISTRIES)
        return bad_count(error, "registries", o->registries, 1, WF_FIT_REGISTRIES);
    for (int i = 0; i < o->registries; i++) {
        const struct wf_fit_registry *r = &o->registry[i];
        if (!r->registry)
            return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: registry %d is NULL", i);
        if ((o->registries > 1 || r->name) && check_name("registry", i, r->name, error))
            return error->code;
        if (wf_registry_error(r->registry)->code != WF_OK)
            return wf_error_set(error, wf_registry_error(r->registry)->code, "wf_fit: registry %d: %s", i,
                                wf_registry_error(r->registry)->message);
        if (!wf_registry_values(r->registry))
            return wf_error_set(error, WF_ERR_STATE, "wf_fit: registry %d is not built: call wf_registry_build or wf_registry_load first",
                                i);
        for (int k = 0; k < i; k++)
            if (r->registry == o->registry[k].registry || strcmp(r->name, o->registry[k].name) == 0)
                return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: registries %d and %d are the same, or have one name", k, i);
    }
    return WF_OK;
}

static bool is_listed(const struct wf_fit_options *o, const wf_registry *registry)
{
    for (int i = 0; i < o->registries; i++)
        if (o->registry[i].registry == registry)
            return true;
    return false;
}

static bool updates(const struct wf_optimizer *opt, const wf_registry *registry, int parameter)
{
    for (int64_t k = 0; k < opt->parts; k++)
        if (opt->part[k].registry == registry)
            return !wf_registry_is_buffer(registry, parameter) && !opt->part[k].parameter[parameter].skipped;
    return false;
}

/* Refuses two optimisers of one phase that update the same parameter: the optimiser that steps first zeroes the parameter's
 * gradient, so the other one would find none. */
static wf_status check_shared(const struct wf_fit_options *o, int a, int b, wf_error *error)
{
    for (int k = 0; k < o->registries && o->optimizer[a].phase == o->optimizer[b].phase; k++)
        for (int i = 0; i < wf_registry_count(o->registry[k].registry); i++)
            if (updates(o->optimizer[a].optimizer, o->registry[k].registry, i) &&
                updates(o->optimizer[b].optimizer, o->registry[k].registry, i))
                return wf_error_set(error, WF_ERR_ARGUMENT,
                                    "wf_fit: optimizers %d and %d both update %s in phase %d: leave it to one with wf_optimizer_only", a, b,
                                    wf_name_of(wf_registry_at(o->registry[k].registry, i)), o->optimizer[a].phase);
    return WF_OK;
}

static wf_status check_optimizer(const struct wf_fit_options *o, int i, int phases, wf_error *error)
{
    const struct wf_fit_optimizer *p = &o->optimizer[i];
    if (!p->optimizer || !p->optimizer->rule)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: optimizer %d is %s", i,
                            p->optimizer ? "not initialised: call wf_adamw_init or the like first" : "NULL");
    if ((o->optimizers > 1 || p->name) && check_name("optimizer", i, p->name, error))
        return error->code;
    if (p->name && (strcmp(p->name, "model") == 0 || strcmp(p->name, "task") == 0))
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: optimizer %d is called '%s', the state's name for other things", i, p->name);
    if (p->phase < 0 || p->phase >= phases)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: optimizer %d steps in phase %d, and the task's phases are 0 to %d", i,
                            p->phase, phases - 1);
    for (int64_t k = 0; k < p->optimizer->parts; k++)
        if (!is_listed(o, p->optimizer->part[k].registry))
            return wf_error_set(
                error, WF_ERR_ARGUMENT,
                "wf_fit: optimizer %d updates a registry that .registry does not list, so that its weights would not be saved", i);
    for (int k = 0; k < i; k++)
        if (o->optimizer[k].optimizer == p->optimizer || strcmp(p->name, o->optimizer[k].name) == 0)
            return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: optimizers %d and %d are the same, or have one name", k, i);
        else if (check_shared(o, k, i, error))
            return error->code;
    return WF_OK;
}

int phases_of(const struct wf_task *t)
{
    int phases = 0;
    while (t->phases && t->phases[phases])
        phases++;
    return WF_MAX(phases, 1);
}

static wf_status check_optimizers(const struct wf_task *t, const struct wf_fit_options *o, wf_error *error)
{
    const int phases = phases_of(t);
    if (o->optimizers < 1 || !o->optimizer)
        return bad(error, "there is no optimiser: give .optimizer and .optimizers");
    if (o->optimizers > WF_FIT_OPTIMIZERS)
        return bad_count(error, "optimizers", o->optimizers, 1, WF_FIT_OPTIMIZERS);
    for (int i = 0; i < o->optimizers; i++)
        if (check_optimizer(o, i, phases, error))
            return error->code;
    for (int phase = 0; phase < phases; phase++) {
        bool steps = false;
        for (int i = 0; i < o->optimizers; i++)
            steps |= o->optimizer[i].phase == phase;
        if (!steps)
            return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: no optimiser steps in phase %d, '%s'", phase, t->phases[phase]);
    }
    return WF_OK;
}

wf_status fit_check(const struct wf_task *task, const struct wf_fit_options *o, wf_error *error)
{
    if (check_task(task, error))
        return error->code;
    if (!o)
        return bad(error, "the options are NULL");
    if (o->out && !o->out[0])
        return bad(error, "the folder for the run, .out, is empty: give a name, or NULL for a training that writes nothing");
    const struct {
        const char *name;
        int64_t value, low;
    } number[] = {{"steps", o->steps, 1},
                  {"accumulate", o->accumulate, 0},
                  {"leaves", o->leaves, 0},
                  {"save_every", o->save_every, 0},
                  {"valid_every", o->valid_every, 0},
                  {"log_every", o->log_every, 0},
                  {"keep", o->keep, 0},
                  {"keep_every", o->keep_every, 0},
                  {"patience", o->patience, 0}};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        if (number[i].value < number[i].low)
            return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: %s is %" PRId64 ", which is below %" PRId64, number[i].name,
                                number[i].value, number[i].low);
    const char *saves = o->resume ? "resume" : o->save_every ? "save_every" : o->keep ? "keep" : o->keep_every ? "keep_every" : NULL;
    if (!o->out && saves)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: .%s is set, and there is no folder for the run: give .out", saves);
    if (wf_precision_check(o->precision, "wf_fit", error))
        return error->code;
    if (o->leaves > 0 && !wf_leaves_fit(o->leaves, o->accumulate > 0 ? o->accumulate : 1))
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "wf_fit: leaves is %" PRId64 ", which is not a power of two that divides accumulate, %" PRId64 "; 0 chooses",
                            o->leaves, o->accumulate > 0 ? o->accumulate : 1);
    if (!(o->clip >= 0))
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: clip is %g: give a maximum norm, or 0 to disable clipping", o->clip);
    if (!(o->clip_value >= 0))
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: clip_value is %g: give a maximum absolute value, or 0 to disable clipping",
                            o->clip_value);
    if (!(o->max_time >= 0 && isfinite(o->max_time)))
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_fit: max_time is %g: give seconds, or 0 for no limit", o->max_time);
    if (check_settings("settings", o->settings, error) || check_settings("fixed", o->fixed, error))
        return error->code;
    struct wf_task whole = {0};
    memcpy(&whole, task, WF_MIN(task->abi, sizeof whole));
    return check_metrics(&whole, o, error) || check_registries(o, error) ? error->code : check_optimizers(&whole, o, error);
}
