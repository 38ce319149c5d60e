/* SPDX-License-Identifier: MIT */
/* state.safetensors: everything that a resume needs to go on bit for bit. Tensors: model.NAME, adam.m.NAME, adam.v.NAME,
 * adam.updates.NAME, adam.step; the rest is in the file's map of strings. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/family.h>
#include <weft/internal/runtime.h>
#include <weft/internal/string.h>
#include <weft/internal/text.h>
#include <weft/memory.h>
#include <weft/runtime.h>

#include "trainer.h"

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

static wf_status put_tokenizer(struct trainer *t, wf_safetensors_writer *w, const char *key, const wf_tokenizer *tokenizer)
{
    struct wf_string json = {0};
    wf_status status = wf_tokenizer_json(tokenizer, &json, t->error);
    if (status == WF_OK)
        wf_safetensors_put_metadata(w, key, json.data);
    wf_string_free(&json);
    return status;
}

wf_status state_save(struct trainer *t)
{
    char *path = wf_run_path(t->options->out, STATE_FILE, t->error);
    if (!path)
        return WF_ERR_MEMORY;
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_safetensors_put_metadata(w, "format", FORMAT);
    wf_safetensors_put_metadata(w, "weft", wf_version());
    wf_safetensors_put_metadata(w, "model", t->config.model);
    wf_safetensors_put_metadata(w, "family", wf_config_family(&t->config));
    state_put_number(w, "step", t->step);
    state_put_number(w, "seed", (int64_t)t->options->seed);
    state_put_number(w, "stale", t->stale);
    state_put_number(w, "valid_limit", t->valid_limit);
    if (t->owes_validation)
        state_put_number(w, "owes_validation", 1);
    put_double(w, "best", t->best);
    put_double(w, "loss", t->loss);
    state_put_number(w, "train_hash", (int64_t)t->train_hash);
    state_put_number(w, "valid_hash", (int64_t)t->valid_hash);
    wf_safetensors_put_metadata(w, "isa", wf_isa());
    wf_safetensors_put_metadata(w, "blas", wf_blas());
    wf_safetensors_put_metadata(w, "gemm", wf_gemm_mode());
    struct wf_config_key setting;
    for (int i = 0; wf_config_key_at(&t->config, i, &setting); i++) {
        char key[96], value[96];
        snprintf(key, sizeof key, "config.%s", setting.name);
        if (wf_config_get(&t->config, setting.name, value, sizeof value))
            wf_safetensors_put_metadata(w, key, value);
    }
    if (t->task->put)
        t->task->put(t, w);
    wf_registry_save(t->registry, w, "model.");
    wf_optimizer_save(&t->optimizer, w, "adam.");
    bool two = t->source_tokenizer && t->source_tokenizer != t->tokenizer;
    if (put_tokenizer(t, w, "tokenizer", t->tokenizer) || (two && put_tokenizer(t, w, "source_tokenizer", t->source_tokenizer)))
        wf_safetensors_discard(w);
    else
        t->saved = wf_safetensors_commit(w, path, t->error) == WF_OK;
    wf_free(path);
    if (t->saved)
        t->on_disk = t->step;
    return t->error->code;
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

/* A state that is open for reading. */
struct state {
    char *path;
    wf_safetensors *file;
};

static void close_state(struct state *s)
{
    wf_safetensors_close(s->file);
    wf_free(s->path);
}

static wf_status open_state(struct state *s, const char *folder, wf_error *error)
{
    *s = (struct state){.path = wf_run_path(folder, STATE_FILE, error)};
    if (!s->path || !(s->file = wf_safetensors_open(s->path, error)))
        return error->code;
    const char *format = wf_safetensors_metadata(s->file, "format");
    if (format && (strcmp(format, FORMAT) == 0 || strcmp(format, "2") == 0)) /* 2: adam.steps by index, which wf_optimizer_load reads */
        return WF_OK;
    return wf_error_set(error, WF_ERR_FORMAT, "%s: the state's format is %s, this program reads %s", s->path, format ? format : "unknown",
                        FORMAT);
}

/* A key that the file lacks is newer than the file: it has its default. */
static wf_status read_config(const struct state *s, struct wf_config *config, wf_error *error)
{
    const char *model = wf_safetensors_metadata(s->file, "model"), *family = wf_safetensors_metadata(s->file, "family");
    struct wf_config_key setting;
    if (!model || !family)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the state has no model: it is not the state of a Weft run", s->path);
    if (wf_config_defaults(config, family, error) != WF_OK)
        return error->code;
    snprintf(config->model, sizeof config->model, "%s", model);
    for (int i = 0; wf_config_key_at(config, i, &setting); i++) {
        char key[96];
        snprintf(key, sizeof key, "config.%s", setting.name);
        const char *value = wf_safetensors_metadata(s->file, key);
        if (value && wf_config_set_as(config, setting.name, value, true, error) != WF_OK)
            return error->code;
    }
    return WF_OK;
}

wf_status wf_train_config(const char *folder, struct wf_config *config, uint64_t *seed, wf_error *error)
{
    struct state s;
    wf_error failure = {0};
    int64_t value = 0;
    *config = (struct wf_config){0};
    if (!open_state(&s, folder, &failure) && !read_config(&s, config, &failure) && seed &&
        !state_get_number(s.file, s.path, "seed", &value, &failure))
        *seed = (uint64_t)value;
    close_state(&s);
    return failure.code ? wf_error_set(error, failure.code, "%s", failure.message) : WF_OK;
}

/* The part of the text that was validated on, though other batches would now choose another: its losses are compared. */
static void keep_validation(struct trainer *t, const struct state *s)
{
    char now[96] = "";
    const char *was = wf_safetensors_metadata(s->file, "config.valid_tokens");
    wf_config_get(&t->config, "valid_tokens", now, sizeof now);
    if (strcmp(was ? was : "-1", now) == 0 && state_get_number(s->file, s->path, "valid_limit", &t->kept_limit, NULL) != WF_OK)
        t->kept_limit = 0; /* an older version's: all of it */
}

wf_status state_tokenizers(struct trainer *t)
{
    struct state s;
    if (open_state(&s, t->options->out, t->error) == WF_OK) {
        keep_validation(t, &s);
        const char *json = wf_safetensors_metadata(s.file, "tokenizer"), *source = wf_safetensors_metadata(s.file, "source_tokenizer");
        if (!json)
            wf_error_set(t->error, WF_ERR_FORMAT, "%s: the state has no tokenizer: it is not the state of a Weft run", s.path);
        else if (wf_tokenizer_parse(json, (int64_t)strlen(json), s.path, &t->tokenizer, t->error) == WF_OK && source)
            (void)!wf_tokenizer_parse(source, (int64_t)strlen(source), s.path, &t->source_tokenizer, t->error);
    }
    close_state(&s);
    return t->error->code;
}

static wf_status compare_config(struct trainer *t, const struct state *s)
{
    struct wf_config was;
    if (read_config(s, &was, t->error))
        return t->error->code;
    if (strcmp(was.model, t->config.model) != 0)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s is a run of %s, not of %s: resume it with that model, or choose another --out",
                            s->path, was.model, t->config.model);
    struct wf_config_key setting;
    for (int i = 0; wf_config_key_at(&t->config, i, &setting); i++) {
        const char *name = setting.name;
        char before[96], now[96];
        if (!wf_config_get(&was, name, before, sizeof before) || !wf_config_get(&t->config, name, now, sizeof now) ||
            strcmp(before, now) == 0)
            continue;
        /* What a tokenizer is to be made like; one that is given is compared itself. */
        if (t->options->tokenizer && (strcmp(name, "tokenizer") == 0 || strcmp(name, "min_frequency") == 0))
            continue;
        if (!setting.resumable)
            return wf_error_set(t->error, WF_ERR_ARGUMENT,
                                "%s was trained with %s = %s: a resume cannot change it to %s; leave it out, or choose another --out",
                                s->path, name, before, now);
        t->new_validation |= strcmp(name, "valid_tokens") == 0 || strcmp(name, "mask_rate") == 0;
        t->new_batches |= strncmp(name, "batch_", 6) == 0;
        wf_string_format(&t->change, "%s %s %s instead of %s", t->change.length ? "," : "resuming with", name, now, before);
    }
    return t->change.failed ? wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a message") : WF_OK;
}

static wf_status same_data(const struct trainer *t, const struct state *s)
{
    int64_t seed = 0, train = 0, valid = 0;
    if (state_get_number(s->file, s->path, "seed", &seed, t->error) || state_get_number(s->file, s->path, "train_hash", &train, t->error) ||
        state_get_number(s->file, s->path, "valid_hash", &valid, t->error))
        return t->error->code;
    if ((uint64_t)seed != t->options->seed)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s was trained with seed %" PRId64 ", the resume asks for %" PRIu64, s->path, seed,
                            t->options->seed);
    const char *problem = (uint64_t)train != t->train_hash   ? "trained on another text: give the same --train files"
                          : valid != 0 && !t->validates      ? "validated on a text: give the same --valid files"
                          : valid == 0 && t->validates       ? "trained without validation: leave --valid out"
                          : (uint64_t)valid != t->valid_hash ? "validated on another text: give the same --valid files"
                                                             : NULL;
    return problem ? wf_error_set(t->error, WF_ERR_ARGUMENT, "%s was %s", s->path, problem) : WF_OK;
}

/* The bits go on as they were only with the same kernels. */
static wf_status warn_of_change(struct trainer *t, const wf_safetensors *file)
{
    const struct {
        const char *key, *now;
    } part[] = {{"isa", wf_isa()}, {"blas", wf_blas()}, {"gemm", wf_gemm_mode()}, {"weft", wf_version()}};
    for (int i = 0; i < 4 && !t->error->code; i++) {
        const char *was = wf_safetensors_metadata(file, part[i].key);
        char text[256];
        if (was && strcmp(was, part[i].now) == 0)
            continue;
        snprintf(text, sizeof text,
                 "the run was made with %s %s and resumes with %s: the results may differ slightly from an uninterrupted run", part[i].key,
                 was ? was : "unknown", part[i].now);
        report(t, WF_EVENT_WARNING, 0, text);
    }
    return t->error->code;
}

static wf_status load(struct trainer *t, const struct state *s)
{
    if (compare_config(t, s) || same_data(t, s) || state_get_number(s->file, s->path, "step", &t->step, t->error) ||
        state_get_number(s->file, s->path, "stale", &t->stale, t->error) || get_double(s->file, s->path, "best", &t->best, t->error) ||
        get_double(s->file, s->path, "loss", &t->loss, t->error))
        return t->error->code;
    if (t->new_validation) { /* the best was of another part of the text */
        t->best = NAN;
        t->stale = 0;
    }
    int64_t steps = t->config.training.steps;
    if (t->step > steps)
        return wf_error_set(t->error, WF_ERR_ARGUMENT,
                            "%s has trained %" PRId64 " step%s already, more than --steps %" PRId64 ": give a higher number",
                            t->options->out, t->step, t->step == 1 ? "" : "s", steps);
    if (t->step < 0 || t->stale < 0)
        return wf_error_set(t->error, WF_ERR_FORMAT, "%s: step %" PRId64 " and stale %" PRId64 " are out of range", s->path, t->step,
                            t->stale);
    if (wf_registry_load(t->registry, s->file, "model.", t->error)) {
        wf_error_prefix(t->error, "%s", s->path);
        return t->error->code;
    }
    if ((t->task->get && t->task->get(t, s->file, s->path)) || wf_optimizer_load(&t->optimizer, s->file, "adam.", t->error))
        return t->error->code;
    t->owes_validation = t->validates && wf_safetensors_metadata(s->file, "owes_validation");
    t->on_disk = t->step;
    t->saved = true;
    return warn_of_change(t, s->file);
}

wf_status state_load(struct trainer *t)
{
    struct state s;
    if (open_state(&s, t->options->out, t->error) == WF_OK && load(t, &s) != WF_OK)
        t->step = 0; /* nothing of the run was taken over */
    close_state(&s);
    return t->error->code;
}
