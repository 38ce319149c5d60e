/* SPDX-License-Identifier: MIT */
/* state.safetensors: everything that a resume needs to go on bit for bit. Tensors: model.NAME, adam.m.NAME, adam.v.NAME, adam.step,
 * adam.steps; the rest is in the file's map of strings. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/text.h>
#include <weft/memory.h>
#include <weft/runtime.h>

#include "trainer.h"

#define FORMAT "2"

bool state_exists(const struct trainer *t)
{
    char *path = wf_run_path(t->options->out, "state.safetensors", NULL);
    bool there = path && wf_file_exists(path);
    wf_free(path);
    return there;
}

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

/* Keys that may differ between a run and its resume: they do not change the steps that were made. */
static bool may_change(const char *key)
{
    static const char *const free_keys[] = {"steps", "save_every", "valid_every", "keep", "keep_every",     "patience",    "temperature",
                                            "top_p", "top_k",      "max_tokens",  "beam", "length_penalty", "extra_tokens"};
    for (size_t i = 0; i < sizeof free_keys / sizeof *free_keys; i++)
        if (strcmp(free_keys[i], key) == 0)
            return true;
    return false;
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
    char *path = wf_run_path(t->options->out, "state.safetensors", t->error);
    if (!path)
        return WF_ERR_MEMORY;
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_safetensors_put_metadata(w, "format", FORMAT);
    wf_safetensors_put_metadata(w, "weft", wf_version());
    wf_safetensors_put_metadata(w, "model", t->config.model);
    wf_safetensors_put_metadata(w, "family", t->config.family);
    state_put_number(w, "step", t->step);
    state_put_number(w, "seed", (int64_t)t->options->seed);
    state_put_number(w, "stale", t->stale);
    put_double(w, "best", t->best);
    put_double(w, "loss", t->loss);
    state_put_number(w, "train_hash", (int64_t)t->train_hash);
    state_put_number(w, "valid_hash", (int64_t)t->valid_hash);
    wf_safetensors_put_metadata(w, "isa", wf_isa());
    wf_safetensors_put_metadata(w, "blas", wf_blas());
    wf_safetensors_put_metadata(w, "gemm", wf_gemm_mode());
    for (int i = 0; i < wf_config_key_count(); i++) {
        char key[96], value[96];
        snprintf(key, sizeof key, "config.%s", wf_config_key_at(i));
        if (wf_config_get(&t->config, wf_config_key_at(i), value, sizeof value))
            wf_safetensors_put_metadata(w, key, value);
    }
    if (t->task->put)
        t->task->put(t, w);
    wf_status status = put_tokenizer(t, w, "tokenizer", t->tokenizer);
    if (status == WF_OK && t->source_tokenizer && t->source_tokenizer != t->tokenizer)
        status = put_tokenizer(t, w, "source_tokenizer", t->source_tokenizer);
    wf_registry_save(t->registry, w, "model.");
    wf_adam_save(&t->adam, w, "adam.");
    if (status == WF_OK)
        status = wf_safetensors_commit(w, path, t->error);
    else
        wf_safetensors_discard(w);
    wf_free(path);
    t->saved = status == WF_OK;
    if (t->saved)
        t->on_disk = t->step;
    return status;
}

/* --- reading ------------------------------------------------------------------------------------------------------- */

wf_status state_get_number(const wf_safetensors *file, const char *path, const char *key, int64_t *out, wf_error *error)
{
    const char *text = wf_safetensors_metadata(file, key);
    char *end = NULL;
    if (text)
        *out = strtoll(text, &end, 10);
    if (!text || end == text || *end)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the state has no valid '%s': it is no state of a Weft run", path, key);
    return WF_OK;
}

static wf_status get_double(const wf_safetensors *file, const char *path, const char *key, double *out, wf_error *error)
{
    const char *text = wf_safetensors_metadata(file, key);
    *out = NAN;
    if (text && !wf_text_to_double(text, out))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: '%s' is no number", path, key);
    return WF_OK;
}

static wf_status check_format(const wf_safetensors *file, const char *path, wf_error *error)
{
    const char *format = wf_safetensors_metadata(file, "format");
    if (format && strcmp(format, FORMAT) == 0)
        return WF_OK;
    return wf_error_set(error, WF_ERR_FORMAT, "%s: the state's format is %s, this program reads %s", path, format ? format : "unknown",
                        FORMAT);
}

wf_status wf_train_config(const char *folder, struct wf_config *config, wf_error *error)
{
    wf_error local = {0};
    if (!error)
        error = &local;
    char *path = wf_run_path(folder, "state.safetensors", error);
    wf_safetensors *file = path ? wf_safetensors_open(path, error) : NULL;
    wf_status status = file ? WF_OK : error->code;
    const char *model = file ? wf_safetensors_metadata(file, "model") : NULL,
               *family = file ? wf_safetensors_metadata(file, "family") : NULL;
    *config = (struct wf_config){0};
    if (file)
        status = check_format(file, path, error);
    if (status == WF_OK && (!model || !family))
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: the state has no model: it is no state of a Weft run", path);
    if (status == WF_OK) {
        snprintf(config->model, sizeof config->model, "%s", model);
        snprintf(config->family, sizeof config->family, "%s", family);
    }
    for (int i = 0; status == WF_OK && i < wf_config_key_count(); i++) {
        char key[96];
        snprintf(key, sizeof key, "config.%s", wf_config_key_at(i));
        const char *value = wf_safetensors_metadata(file, key);
        char own[96];
        if (!value && !wf_config_get(config, wf_config_key_at(i), own, sizeof own))
            continue; /* a key that the family does not have */
        status = value ? wf_config_set(config, wf_config_key_at(i), value, error)
                       : wf_error_set(error, WF_ERR_FORMAT, "%s: the state has no '%s'", path, key);
    }
    if (file)
        wf_safetensors_close(file);
    wf_free(path);
    return status;
}

wf_status wf_train_seed(const char *folder, uint64_t *seed, wf_error *error)
{
    wf_error local = {0};
    if (!error)
        error = &local;
    int64_t value = 0;
    char *path = wf_run_path(folder, "state.safetensors", error);
    wf_safetensors *file = path ? wf_safetensors_open(path, error) : NULL;
    wf_status status = file ? check_format(file, path, error) : error->code;
    if (status == WF_OK)
        status = state_get_number(file, path, "seed", &value, error);
    if (status == WF_OK)
        *seed = (uint64_t)value;
    if (file)
        wf_safetensors_close(file);
    wf_free(path);
    return status;
}

wf_status state_tokenizers(struct trainer *t)
{
    char *path = wf_run_path(t->options->out, "state.safetensors", t->error);
    wf_safetensors *file = path ? wf_safetensors_open(path, t->error) : NULL;
    wf_status status = file ? WF_OK : t->error->code;
    const char *json = file ? wf_safetensors_metadata(file, "tokenizer") : NULL;
    const char *source = file ? wf_safetensors_metadata(file, "source_tokenizer") : NULL;
    if (file && !json)
        status = wf_error_set(t->error, WF_ERR_FORMAT, "%s: the state has no tokenizer: it is no state of a Weft run", path);
    if (status == WF_OK)
        status = wf_tokenizer_parse(json, (int64_t)strlen(json), path, &t->tokenizer, t->error);
    if (status == WF_OK && source)
        status = wf_tokenizer_parse(source, (int64_t)strlen(source), path, &t->source_tokenizer, t->error);
    else if (status == WF_OK && wf_config_translates(&t->config))
        t->source_tokenizer = t->tokenizer;
    if (file)
        wf_safetensors_close(file);
    wf_free(path);
    return status;
}

static wf_status same_config(const struct trainer *t, const wf_safetensors *file, const char *path)
{
    const char *model = wf_safetensors_metadata(file, "model");
    if (!model || strcmp(model, t->config.model) != 0)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s is a run of %s, not of %s: resume it with that model, or choose another --out",
                            path, model ? model : "an unknown model", t->config.model);
    for (int i = 0; i < wf_config_key_count(); i++) {
        const char *name = wf_config_key_at(i);
        char key[96], value[96];
        snprintf(key, sizeof key, "config.%s", name);
        const char *was = wf_safetensors_metadata(file, key);
        if (may_change(name) || !wf_config_get(&t->config, name, value, sizeof value))
            continue;
        /* What a tokenizer is to be made like; one that is given is compared itself. */
        if (t->options->tokenizer && (strcmp(name, "tokenizer") == 0 || strcmp(name, "min_frequency") == 0))
            continue;
        if (!was || strcmp(was, value) != 0)
            return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s was trained with %s = %s, the resume asks for %s: leave it as it was", path,
                                name, was ? was : "nothing", value);
    }
    return WF_OK;
}

static wf_status same_data(const struct trainer *t, const wf_safetensors *file, const char *path)
{
    int64_t seed = 0, train = 0, valid = 0;
    wf_status status = state_get_number(file, path, "seed", &seed, t->error);
    if (status == WF_OK)
        status = state_get_number(file, path, "train_hash", &train, t->error);
    if (status == WF_OK)
        status = state_get_number(file, path, "valid_hash", &valid, t->error);
    if (status == WF_OK && (uint64_t)seed != t->options->seed)
        status = wf_error_set(t->error, WF_ERR_ARGUMENT, "%s was trained with seed %" PRId64 ", the resume asks for %" PRIu64, path, seed,
                              t->options->seed);
    if (status == WF_OK && (uint64_t)train != t->train_hash)
        status = wf_error_set(t->error, WF_ERR_ARGUMENT, "%s was trained on another text than the one given: give the same files", path);
    if (status == WF_OK && valid != 0 && !t->validates)
        status = wf_error_set(t->error, WF_ERR_ARGUMENT, "%s was validated on a text, and none is given: give the same files", path);
    if (status == WF_OK && valid == 0 && t->validates)
        status = wf_error_set(t->error, WF_ERR_ARGUMENT, "%s was not validated, and a text for it is given: leave it out", path);
    if (status == WF_OK && (uint64_t)valid != t->valid_hash)
        status = wf_error_set(t->error, WF_ERR_ARGUMENT, "%s was validated on another text than the one given: give the same files", path);
    return status;
}

/* The bits go on as they were only with the same kernels. */
static wf_status warn_of_change(struct trainer *t, const wf_safetensors *file)
{
    const struct {
        const char *key, *now;
    } part[] = {{"isa", wf_isa()}, {"blas", wf_blas()}, {"gemm", wf_gemm_mode()}, {"weft", wf_version()}};
    wf_status status = WF_OK;
    for (int i = 0; i < 4 && status == WF_OK; i++) {
        const char *was = wf_safetensors_metadata(file, part[i].key);
        char text[256];
        if (was && strcmp(was, part[i].now) == 0)
            continue;
        snprintf(text, sizeof text, "the run was made with %s %s and goes on with %s: its last bits may differ from an unbroken run",
                 part[i].key, was ? was : "unknown", part[i].now);
        status = report(t, WF_EVENT_WARNING, 0, text);
    }
    return status;
}

wf_status state_load(struct trainer *t)
{
    char *path = wf_run_path(t->options->out, "state.safetensors", t->error);
    wf_safetensors *file = path ? wf_safetensors_open(path, t->error) : NULL;
    int64_t step = 0, stale = 0;
    double best = NAN, loss = NAN;
    wf_status status = file ? WF_OK : t->error->code;
    if (status == WF_OK)
        status = check_format(file, path, t->error);
    if (status == WF_OK)
        status = same_config(t, file, path);
    if (status == WF_OK)
        status = same_data(t, file, path);
    if (status == WF_OK)
        status = state_get_number(file, path, "step", &step, t->error);
    if (status == WF_OK)
        status = state_get_number(file, path, "stale", &stale, t->error);
    if (status == WF_OK)
        status = get_double(file, path, "best", &best, t->error);
    if (status == WF_OK)
        status = get_double(file, path, "loss", &loss, t->error);
    if (status == WF_OK && step > t->config.training.steps)
        status =
            wf_error_set(t->error, WF_ERR_ARGUMENT, "%s has made %" PRId64 " step%s already, --steps %" PRId64 " asks for fewer: give more",
                         t->options->out, step, step == 1 ? "" : "s", t->config.training.steps);
    if (status == WF_OK && (step < 0 || stale < 0))
        status = wf_error_set(t->error, WF_ERR_FORMAT, "%s: step %" PRId64 " and stale %" PRId64 " can't be", path, step, stale);
    if (status == WF_OK && t->task->get)
        status = t->task->get(t, file, path);
    if (status == WF_OK && (status = wf_registry_load(t->registry, file, "model.", t->error)) != WF_OK)
        wf_error_prefix(t->error, "%s", path);
    if (status == WF_OK)
        status = wf_adam_load(&t->adam, file, "adam.", t->error);
    if (status == WF_OK) {
        t->step = t->on_disk = step;
        t->stale = stale;
        t->best = best;
        t->loss = loss;
        t->saved = true;
    }
    if (status == WF_OK)
        status = warn_of_change(t, file);
    if (file)
        wf_safetensors_close(file);
    wf_free(path);
    return status;
}
