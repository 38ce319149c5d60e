/* SPDX-License-Identifier: MIT */
/* Saves and loads state.safetensors, which holds all that a resume needs to continue with the same bits. Its tensors are the weights
 * (model.NAME, where NAME is that of a parameter), the optimisers' data (for an optimiser with the name "adam": adam.m.NAME, adam.v.NAME,
 * adam.updates.NAME, adam.step), and the task's arrays. Everything else is text in the file's metadata. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/needs.h>
#include <weft/internal/run_folder.h>
#include <weft/internal/runtime.h>
#include <weft/internal/text.h>
#include <weft/memory.h>
#include <weft/runtime.h>

#include "loop.h"

#define FORMAT "3"

void state_put_number(wf_safetensors_writer *w, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    wf_safetensors_put_metadata(w, key, text);
}

static void put_double(wf_safetensors_writer *w, const char *key, double value)
{
    char text[WF_NUMBER_SIZE];
    if (isfinite(value))
        wf_safetensors_put_metadata(w, key, wf_text_double(value, text));
}

const char *registry_prefix(const struct fit *f, int registry, const char *before, char text[PREFIX])
{
    const char *name = f->o.registry[registry].name;
    snprintf(text, PREFIX, "%s%s%s", before, name ? name : "", name ? "." : "");
    return text;
}

static const char *optimizer_prefix(const struct fit *f, int optimizer, char text[PREFIX])
{
    const char *name = f->o.optimizer[optimizer].name;
    snprintf(text, PREFIX, "%s.", name ? name : "optimizer");
    return text;
}

/* The name of the metric that decides which validation is best. put_numbers stores the name unless it is "loss", so in a state
 * without a name the loss decided. */
static const char *decides(const struct fit *f)
{
    return f->task.metrics > 0 ? f->task.metric[f->task.best].name : "loss";
}

static void put_numbers(const struct fit *f, wf_safetensors_writer *w)
{
    const struct {
        const char *key, *value;
    } made[] = {{"isa", wf_isa()}, {"blas", wf_gemm_blas() ? wf_gemm_blas() : "none"}, {"gemm", wf_gemm_mode()}};
    wf_safetensors_put_metadata(w, "format", FORMAT);
    wf_safetensors_put_metadata(w, "weft", wf_version());
    if (f->owner->any)
        wf_safetensors_put_metadata(w, "task", f->task.name);
    state_put_number(w, "step", f->step);
    state_put_number(w, "seed", (int64_t)f->o.seed);
    state_put_number(w, "leaves", f->o.leaves);
    if (f->o.accumulate != f->given) {
        state_put_number(w, "accumulate", f->o.accumulate);
        state_put_number(w, "accumulate_asked", f->given);
    }
    state_put_number(w, "stale", f->since_best); /* in this format "stale" is the key of f->since_best */
    if (f->validation_due)
        state_put_number(w, "owes_validation", 1);
    if (strcmp(decides(f), "loss") != 0)
        wf_safetensors_put_metadata(w, "best_by", decides(f));
    put_double(w, "best", f->best);
    put_double(w, "total", f->total);
    put_double(w, "loss", f->loss[0]);
    for (int i = 1; i < f->phases; i++) {
        char key[32];
        snprintf(key, sizeof key, "loss.%d", i);
        put_double(w, key, f->loss[i]);
    }
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        wf_safetensors_put_metadata(w, made[i].key, made[i].value);
}

wf_status state_save(struct fit *f)
{
    char prefix[PREFIX], *path = wf_run_path(f->o.out, STATE_FILE, f->error);
    if (!path)
        return WF_ERR_MEMORY;
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    put_numbers(f, w);
    f->owner->put(f, w);
    /* The task saves its place in the data: the place of the next batch, or after a dropped update the place of that update's batch. */
    if (f->task.put)
        f->task.put(f->o.ctx, f->step, &(wf_fit_state){.prefix = f->owner->state_prefix, .path = path, .writer = w});
    for (int i = 0; i < f->o.registries; i++)
        wf_registry_save(f->o.registry[i].registry, w, registry_prefix(f, i, "model.", prefix));
    for (int i = 0; i < f->o.optimizers; i++)
        wf_optimizer_save_from(f->o.optimizer[i].optimizer, w, optimizer_prefix(f, i, prefix), wf_ranks_source(&f->ranks));
    if (f->error->code)
        wf_safetensors_discard(w);
    else
        f->saved = wf_safetensors_commit(w, path, f->error) == WF_OK;
    wf_free(path);
    if (f->saved)
        f->on_disk = f->step;
    return f->error->code;
}

/* --- the task's data ----------------------------------------------------------------------------------------------- */

static const char *full_name(const wf_fit_state *state, const char *name, char text[256])
{
    snprintf(text, 256, "%s%s", state->prefix, name);
    return text;
}

void wf_fit_put_int(wf_fit_state *state, const char *name, int64_t value)
{
    if (!state || !name)
        return;
    char key[256];
    state_put_number(state->writer, full_name(state, name, key), value);
}

void wf_fit_put_array(wf_fit_state *state, const char *name, const wf_array *array)
{
    if (!state || !name || !array)
        return;
    char key[256];
    wf_safetensors_put(state->writer, full_name(state, name, key), array);
}

wf_status wf_fit_get_int(const wf_fit_state *state, const char *name, int64_t *value, wf_error *error)
{
    if (wf_needs(error, "state, name, value", state, name, value))
        return WF_ERR_ARGUMENT;
    char key[256];
    return state_get_number(state->file, state->path, full_name(state, name, key), value, error);
}

wf_status wf_fit_get_array(const wf_fit_state *state, const char *name, wf_dtype dtype, void *out, int64_t count, wf_error *error)
{
    if (wf_needs(error, "state, name, out", state, name, out))
        return WF_ERR_ARGUMENT;
    char key[256];
    return wf_safetensors_read(state->file, full_name(state, name, key), dtype, out, count, error);
}

/* --- reading ------------------------------------------------------------------------------------------------------- */

wf_status state_get_number(const wf_safetensors *file, const char *path, const char *key, int64_t *out, wf_error *error)
{
    const char *text = wf_safetensors_metadata(file, key);
    char *end = NULL;
    if (text)
        *out = strtoll(text, &end, 10);
    if (!text || end == text || *end)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the state has no valid '%s': it is not the state of a Weft run", path, key);
    return WF_OK;
}

static wf_status get_double(const wf_safetensors *file, const char *path, const char *key, double *out, wf_error *error)
{
    const char *text = wf_safetensors_metadata(file, key);
    *out = NAN;
    if (text && !wf_text_to_double(text, out))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: '%s' is not a number", path, key);
    return WF_OK;
}

void state_close(struct state *s)
{
    wf_safetensors_close(s->file);
    wf_free(s->path);
}

wf_status state_open(struct state *s, const char *folder, wf_error *error)
{
    *s = (struct state){.path = wf_run_path(folder, STATE_FILE, error)};
    if (!s->path || !(s->file = wf_safetensors_open(s->path, error)))
        return error->code;
    const char *format = wf_safetensors_metadata(s->file, "format");
    /* A state of format 2 has one tensor, such as adam.steps, with the numbers of updates of all parameters, instead of a tensor
     * adam.updates.NAME for each parameter. wf_optimizer_load can read both. */
    if (format && (strcmp(format, FORMAT) == 0 || strcmp(format, "2") == 0))
        return WF_OK;
    return wf_error_set(error, WF_ERR_FORMAT, "%s: the state's format is %s, this program reads %s", s->path, format ? format : "unknown",
                        FORMAT);
}

/* Checks the task's name in wf_fit. wf_train compares the model and its configuration instead. */
static wf_status same_task(struct fit *f, const struct state *s)
{
    const char *was = wf_safetensors_metadata(s->file, "task"), *model = wf_safetensors_metadata(s->file, "model");
    if (!f->owner->any || (was && strcmp(was, f->task.name) == 0))
        return WF_OK;
    return wf_error_set(f->error, WF_ERR_ARGUMENT, "%s is of the training '%s', not of '%s': choose another folder", s->path,
                        was     ? was
                        : model ? model
                                : "unknown",
                        f->task.name);
}

/* The first name that the task's `put` wrote into the state; NULL: there is none. */
static const char *place_in(const struct fit *f, const struct state *s)
{
    const char *prefix = f->owner->state_prefix, *key, *value;
    size_t length = strlen(prefix);
    for (int64_t i = 0; wf_safetensors_metadata_at(s->file, i, &key, &value); i++)
        if (strncmp(key, prefix, length) == 0)
            return key;
    for (int i = 0; i < f->o.optimizers;
         i++) /* if the names of an optimiser's tensors may begin with the task's prefix, do not search the tensors */
        if (f->o.optimizer[i].name && strncmp(f->o.optimizer[i].name, prefix, length - 1) == 0)
            return NULL;
    for (int64_t i = 0; i < wf_safetensors_count(s->file); i++)
        if (strncmp(wf_safetensors_at(s->file, i)->name, prefix, length) == 0)
            return wf_safetensors_at(s->file, i)->name;
    return NULL;
}

/* Refuses a state in which the task saved its place if the task has no `get` now: the resume would start again at the first batch. */
static wf_status same_place(struct fit *f, const struct state *s)
{
    const char *name = f->owner->any && !f->task.get ? place_in(f, s) : NULL;
    char quoted[WF_QUOTE_SIZE];
    if (!name)
        return WF_OK;
    return wf_error_set(f->error, WF_ERR_ARGUMENT, "%s holds the place of the training '%s' (%s), which has no get now to go on from it",
                        s->path, f->task.name, wf_text_quote(name, quoted));
}

/* Warns if the kernels have changed since the save, because the bits then differ from those of an uninterrupted run. The entry
 * "blas" is compared only if BLIS computes products now. Otherwise the comparison is not needed, because "isa" or "gemm" shows that BLIS is
 * no longer used; and it would give false warnings, because old states name BLIS even if it computed nothing. */
static wf_status warn_of_change(struct fit *f, const wf_safetensors *file)
{
    const struct {
        const char *key, *now;
    } part[] = {{"isa", wf_isa()}, {"blas", wf_gemm_blas()}, {"gemm", wf_gemm_mode()}, {"weft", wf_version()}};
    for (int i = 0; i < 4 && !f->error->code; i++) {
        const char *was = wf_safetensors_metadata(file, part[i].key);
        char text[256];
        if (!part[i].now || (was && strcmp(was, part[i].now) == 0))
            continue;
        snprintf(text, sizeof text,
                 "the run was made with %s %s and resumes with %s: the results may differ slightly from an uninterrupted run", part[i].key,
                 was ? was : "unknown", part[i].now);
        report(f, WF_EVENT_WARNING, text);
    }
    return f->error->code;
}

static wf_status get_losses(struct fit *f, const struct state *s)
{
    if (get_double(s->file, s->path, "best", &f->best, f->error) || get_double(s->file, s->path, "loss", &f->loss[0], f->error) ||
        get_double(s->file, s->path, "total", &f->total, f->error))
        return f->error->code;
    for (int i = 1; i < f->phases; i++) {
        char key[32];
        snprintf(key, sizeof key, "loss.%d", i);
        if (get_double(s->file, s->path, key, &f->loss[i], f->error))
            return f->error->code;
    }
    return WF_OK;
}

/* Puts the state's path in front of the error message, unless it is there already. Returns the error's code. */
static wf_status in_state(struct fit *f, const struct state *s)
{
    if (strncmp(f->error->message, s->path, strlen(s->path)) != 0)
        wf_error_prefix(f->error, "%s", s->path);
    return f->error->code;
}

/* Loads the weights, the moments, and the task's place in the data. */
static wf_status get_tensors(struct fit *f, const struct state *s)
{
    char prefix[PREFIX];
    for (int i = 0; i < f->o.registries; i++)
        if (wf_registry_load(f->o.registry[i].registry, s->file, registry_prefix(f, i, "model.", prefix), f->error))
            return in_state(f, s);
    wf_error why = {0};
    const wf_fit_state state = {.prefix = f->owner->state_prefix, .path = s->path, .file = s->file};
    wf_status status = f->task.get ? f->task.get(f->o.ctx, f->step, &state, &why) : WF_OK;
    if (status != WF_OK && f->owner->any && !place_in(f, s))
        return wf_error_set(f->error, status, "%s holds no place of the training '%s', which has a get: it was saved without put", s->path,
                            f->task.name);
    if (status != WF_OK)
        return wf_error_set(f->error, status, "%s", why.message[0] ? why.message : "the task's get failed without a message");
    for (int i = 0; i < f->o.optimizers; i++)
        if (wf_optimizer_load(f->o.optimizer[i].optimizer, s->file, optimizer_prefix(f, i, prefix), f->error))
            return in_state(f, s);
    return WF_OK;
}

/* Chooses the number of leaves. If it is not that of the state, wf_fit adds it to f->change. In wf_train `leaves` is a setting, and the
 * comparison of the settings has added it already. */
static wf_status get_leaves(struct fit *f, const struct state *s)
{
    int64_t was = 1; /* old states do not hold the number, and had one leaf */
    if (wf_safetensors_metadata(s->file, "leaves") && state_get_number(s->file, s->path, "leaves", &was, f->error))
        return f->error->code;
    /* If several ranks raised `accumulate` and the program still gives the original number, keep the raised one. */
    int64_t given = 0, raised = 0;
    if (f->owner->any && wf_safetensors_metadata(s->file, "accumulate_asked") &&
        (state_get_number(s->file, s->path, "accumulate_asked", &given, f->error) ||
         state_get_number(s->file, s->path, "accumulate", &raised, f->error)))
        return f->error->code;
    if (given == f->given && raised > 0)
        f->o.accumulate = raised;
    f->o.leaves = wf_leaves_again(f->o.leaves, was, f->o.accumulate);
    if (f->owner->any && f->o.leaves != was)
        wf_string_format(&f->change, "%s leaves %" PRId64 " instead of %" PRId64, f->change.length ? "," : "resuming with", f->o.leaves,
                         was);
    return ranks_resume(f, s->path);
}

static wf_status load(struct fit *f, const struct state *s)
{
    if (same_task(f, s) || same_place(f, s) || f->owner->get(f, s->file, s->path) ||
        state_get_number(s->file, s->path, "step", &f->step, f->error) ||
        state_get_number(s->file, s->path, "stale", &f->since_best, f->error) || get_losses(f, s) || get_leaves(f, s))
        return f->error->code;
    const char *by = wf_safetensors_metadata(s->file, "best_by");
    if (f->task.validate && strcmp(by ? by : "loss", decides(f)) != 0) {
        f->new_validation = true;
        if (f->owner->any) /* wf_fit only: wf_train has added this change already, when it compared its setting best_by */
            wf_string_format(&f->change, "%s best by %s instead of %s", f->change.length ? "," : "resuming with", decides(f),
                             by ? by : "loss");
    }
    if (f->new_validation) { /* the state's best value comes from other validation data or another metric */
        f->best = NAN;
        f->since_best = 0;
    }
    if (f->step > f->o.steps)
        return wf_error_set(f->error, WF_ERR_ARGUMENT,
                            "%s has trained %" PRId64 " step%s already, more than steps = %" PRId64 ": give a higher number", f->o.out,
                            f->step, f->step == 1 ? "" : "s", f->o.steps);
    if (f->step < 0 || f->since_best < 0)
        return wf_error_set(f->error, WF_ERR_FORMAT, "%s: step %" PRId64 " and stale %" PRId64 " are out of range", s->path, f->step,
                            f->since_best);
    if (get_tensors(f, s))
        return f->error->code;
    f->validation_due = f->task.validate && wf_safetensors_metadata(s->file, "owes_validation");
    f->on_disk = f->step;
    f->saved = true;
    return warn_of_change(f, s->file);
}

wf_status state_load(struct fit *f)
{
    struct state s;
    if (state_open(&s, f->o.out, f->error) == WF_OK && load(f, &s) != WF_OK) { /* reset what was read: wf_fit returns these numbers */
        f->step = f->since_best = 0;
        f->best = NAN;
        for (int i = 0; i < f->phases; i++)
            f->loss[i] = NAN;
    }
    state_close(&s);
    return f->error->code;
}
