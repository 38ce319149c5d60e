/* SPDX-License-Identifier: MIT */
/* Starts a training from trained weights: finds their file, configuration and tokenizers, and loads them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/family.h>
#include <weft/internal/files.h>
#include <weft/internal/needs.h>
#include <weft/internal/string.h>
#include <weft/memory.h>

#include "trainer.h"

void origin_free(struct origin *o)
{
    wf_free(o->folder);
    wf_free(o->weights);
    *o = (struct origin){0};
}

/* The path of the folder that contains a file. Free with wf_free. */
static char *parent_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? wf_format("%.*s", slash > file ? (int)(slash - file) : 1, file) : wf_strdup(".");
}

wf_status origin_apart(const char *from, const char *out, wf_error *error)
{
    char *folder = wf_folder_exists(from) ? wf_strdup(from) : parent_of(from);
    const bool same = wf_path_same(folder, out);
    wf_status status = !folder ? wf_error_set(error, WF_ERR_MEMORY, "no memory for a path") : WF_OK;
    wf_free(folder);
    /* A folder with a state is a run: a resume there does not start from weights, and fit_enter refuses a new training. */
    if (same && !wf_run_has(out, "state.safetensors"))
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "%s holds the weights to start from, which the training would replace: choose another --out", out);
    return status;
}

/* The folder with the config.json that belongs to a file of weights: the file's folder, or the folder above if the file is one of a run's
 * checkpoints. NULL: neither has a config.json. */
static char *folder_of(const char *file)
{
    char *own = parent_of(file);
    if (own && wf_run_has(own, "config.json"))
        return own;
    /* The real path, because its last component must be compared with "checkpoints", and `own` may be ".". */
    char *whole = own ? realpath(own, NULL) : NULL, *last = whole ? strrchr(whole, '/') : NULL, *above = NULL;
    if (last && strcmp(last + 1, "checkpoints") == 0)
        above = strcmp(own, ".") == 0 ? wf_strdup("..") : strcmp(own, "checkpoints") == 0 ? wf_strdup(".") : parent_of(own);
    free(whole);
    wf_free(own);
    if (above && wf_run_has(above, "config.json"))
        return above;
    wf_free(above);
    return NULL;
}

wf_status origin_find(const char *from, struct origin *out, wf_error *error)
{
    *out = (struct origin){0};
    bool folder = wf_folder_exists(from);
    if (!folder && !wf_file_exists(from))
        return wf_error_set(error, WF_ERR_IO, "%s is missing: --from takes a run, a Hugging Face folder or a safetensors file", from);
    out->folder = folder ? wf_strdup(from) : folder_of(from);
    out->weights = folder ? hf_weights_path(from, error) : wf_strdup(from);
    wf_status status = WF_OK;
    if (!out->weights || (folder && !out->folder))
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for a path");
    else if (folder && !wf_run_has(from, "config.json"))
        status =
            wf_error_set(error, WF_ERR_IO, "%s has no config.json: --from takes a run, a Hugging Face folder or a safetensors file", from);
    else if (folder && !wf_file_exists(out->weights))
        status = hf_weights_missing(from, out->weights, error);
    if (status != WF_OK)
        origin_free(out);
    return status;
}

/* Reads the configuration that lies with the weights, and gives it the output layer that a training needs. */
static wf_status read_config(const struct origin *o, struct wf_config *config, wf_error *error)
{
    char *path = wf_run_path(o->folder, "config.json", error);
    wf_status status = path ? wf_config_load(config, path, error) : WF_ERR_MEMORY;
    wf_free(path);
    if (status == WF_OK && wf_config_read_only(config))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is read from other libraries' folders, not trained", config->model);
    if (status == WF_OK)
        status = hf_sampling_load(o->folder, config, error);
    if (status == WF_OK)
        (void)wf_config_set_head(config);
    return status;
}

wf_status wf_train_from(const char *from, struct wf_config *config, wf_error *error)
{
    if (wf_needs(error, "from, config", from, config))
        return WF_ERR_ARGUMENT;
    struct origin o;
    struct wf_config was;
    wf_error failure = {0};
    if (!origin_find(from, &o, &failure) && o.folder && !read_config(&o, &was, &failure)) {
        if (!config->family)
            *config = was;
        else if (config->family != was.family)
            wf_error_set(&failure, WF_ERR_ARGUMENT, "%s holds a model of the family %s, and %s is of the family %s: name a model of %s",
                         from, wf_config_family(&was), config->model, wf_config_family(config), wf_config_family(&was));
        if (!failure.code) {
            memcpy(config->architecture, was.architecture, sizeof config->architecture);
            if (was.training.precision != WF_PRECISION_REAL) /* f32 may be what a file without the key means: the program's choice stays */
                config->training.precision = was.training.precision;
            wf_config_settle(config);
        }
    } else if (!failure.code && !config->family) {
        wf_error_set(&failure, WF_ERR_ARGUMENT, "no config.json lies with %s: name the model that it holds the weights of", from);
    }
    origin_free(&o);
    return failure.code ? wf_error_set(error, failure.code, "%s", failure.message) : WF_OK;
}

/* --- in a training --------------------------------------------------------------------------------------------------- */

wf_status origin_tokenizers(struct trainer *t)
{
    struct wf_model_shape shape = wf_config_shape(&t->config);
    if (t->config.family->model_type) /* the weights lie in a folder of Hugging Face's format, and so does the tokenizer */
        return hf_tokenizer_load(t->from.folder, &t->config, &t->tokenizer, t->error);
    bool two = wf_config_kind(&t->config) == WF_MODEL_PAIRS && !shape.shared_tokenizer;
    char *path = wf_run_path(t->from.folder, two ? "tokenizer.target.json" : "tokenizer.json", t->error),
         *source = two ? wf_run_path(t->from.folder, "tokenizer.source.json", t->error) : NULL;
    if (!t->error->code && !wf_tokenizer_load(path, &t->tokenizer, t->error) && two)
        (void)!wf_tokenizer_load(source, &t->source_tokenizer, t->error);
    wf_free(path);
    wf_free(source);
    return t->error->code;
}

/* Checks that the weights were trained with the same tokenizers. With others each id would mean another token. */
static wf_status same_tokenizer(struct trainer *t, const wf_safetensors *file)
{
    const struct {
        const char *key;
        const wf_tokenizer *tokenizer;
    } part[] = {{"tokenizer_content", t->before ? t->before : t->tokenizer}, {"source_tokenizer_content", t->source_tokenizer}};
    for (int i = 0; i < 2; i++) {
        const char *was = wf_safetensors_metadata(file, part[i].key);
        char now[32];
        if (was && part[i].tokenizer && strcmp(was, wf_tokenizer_content(part[i].tokenizer, now)) != 0)
            return wf_error_set(t->error, WF_ERR_ARGUMENT,
                                "%s was trained with another tokenizer: give that one with --tokenizer, or leave --tokenizer out where it "
                                "lies with the weights",
                                t->from.weights);
    }
    return WF_OK;
}

/* Lists in t->differs the architecture settings that differ from those of the weights. Loading the weights refuses only tensors of another
 * shape, and settings such as an activation change no shape. *rows becomes the number of rows of tokens in the weights. */
static wf_status compare_architecture(struct trainer *t, int64_t *rows)
{
    struct wf_config was;
    *rows = wf_config_shape(&t->config).vocab_size;
    if (!t->from.folder)
        return WF_OK;
    if (read_config(&t->from, &was, t->error))
        return t->error->code;
    if (was.family != t->config.family)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s holds a model of the family %s, and %s is of the family %s", t->from.folder,
                            wf_config_family(&was), t->config.model, wf_config_family(&t->config));
    *rows = wf_config_shape(&was).vocab_size;
    struct wf_config_key key;
    for (int i = 0; wf_config_key_at(&t->config, i, &key); i++) {
        char before[96], now[96];
        if (t->before && strcmp(key.name, "vocab_size") == 0)
            continue;
        if (strcmp(key.section, wf_config_family(&was)) != 0 || key.resumable || !wf_config_get(&was, key.name, before, sizeof before) ||
            !wf_config_get(&t->config, key.name, now, sizeof now) || strcmp(before, now) == 0)
            continue;
        wf_string_format(&t->differs, "%s %s %s instead of %s", t->differs.length ? "," : "", key.name, now, before);
    }
    return WF_OK;
}

static void add_fresh(void *trainer, const char *name)
{
    struct trainer *t = trainer;
    t->fresh_count++;
    wf_string_format(&t->fresh, "%s%s", t->fresh.length ? ", " : "", name);
}

wf_status origin_load(struct trainer *t)
{
    int64_t rows;
    if (compare_architecture(t, &rows))
        return t->error->code;
    wf_safetensors *file = wf_safetensors_open(t->from.weights, t->error);
    const struct wf_load_options o = {.allow_missing = true, .missing = add_fresh, .missing_ctx = t};
    if (file && !same_tokenizer(t, file) && (t->before ? grow_load(t, file, rows, &o) : wf_model_load_with(t->model, file, &o, t->error)))
        wf_error_prefix(t->error, "%s", t->from.weights);
    /* Reads the settings of sentence vectors. save_pooling later writes them into the new run. */
    if (!t->error->code && t->from.folder)
        (void)!hf_embed_options(t->from.folder, &t->config, &t->from.embed, t->error);
    wf_safetensors_close(file);
    if (!t->error->code && (t->fresh.failed || t->differs.failed))
        wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a message");
    return t->error->code;
}

wf_status origin_tell(struct trainer *t)
{
    struct wf_string text = {0};
    if (!t->from.weights)
        return WF_OK;
    wf_string_format(&text, "starting from the weights in %s", t->from.weights);
    if (report_string(&t->fit, WF_EVENT_DATA, &text))
        return t->error->code;
    if (t->grown.length && report_string(&t->fit, WF_EVENT_DATA, &t->grown))
        return t->error->code;
    if (t->differs.length) {
        wf_string_format(&text, "they were trained with other settings:%s", t->differs.data);
        if (report_string(&t->fit, WF_EVENT_WARNING, &text))
            return t->error->code;
    }
    if (t->fresh_count == 0)
        return WF_OK;
    wf_string_format(&text, "%lld parameter%s not in the file and initialised: %.800s%s", (long long)t->fresh_count,
                     t->fresh_count == 1 ? " is" : "s are", t->fresh.data, t->fresh.length > 800 ? "..." : "");
    return report_string(&t->fit, WF_EVENT_WARNING, &text);
}
