/* SPDX-License-Identifier: MIT */
/* Opening a run to use its model. */
#include <weft/run.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/file.h>
#include <weft/memory.h>

#include "hugging_face.h"
#include <weft/internal/run_folder.h>

/* Weights say which tokenizers they were trained with: two of the same size are told apart. Weights from elsewhere don't. */
static wf_status same_tokenizer(const wf_safetensors *file, const char *path, const char *key, const wf_tokenizer *tokenizer,
                                wf_error *error)
{
    const char *was = wf_safetensors_metadata(file, key);
    char now[32];
    if (!was || !tokenizer)
        return WF_OK;
    snprintf(now, sizeof now, "%016" PRIx64, wf_tokenizer_hash(tokenizer));
    if (strcmp(was, now) == 0)
        return WF_OK;
    return wf_error_set(error, WF_ERR_FORMAT, "%s was trained with another tokenizer than the run's %s tokenizer: restore that tokenizer",
                        path, key[0] == 's' ? "source" : "target");
}

static wf_status open_weights(struct wf_run *run, const char *folder, const char *weights, wf_error *error)
{
    bool named = weights && strcmp(weights, "best") != 0;
    char *path = named ? wf_strdup(weights) : wf_run_path(folder, weights ? "best.safetensors" : "model.safetensors", error);
    if (!path)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a path");
    const char *other = weights ? NULL : hf_other_weights(folder);
    wf_status status = WF_OK;
    if (named && wf_folder_exists(path))
        status = wf_error_set(error, WF_ERR_IO, "%s is a folder: give a safetensors file, such as %s/model.safetensors", path, path);
    else if (!wf_file_exists(path))
        status = wf_error_set(error, WF_ERR_IO, "%s is not there: %s", path,
                              named     ? "give a safetensors file"
                              : weights ? "the run was not validated, or has not been yet"
                              : other   ? other
                                        : "the run has not been saved yet, or is none");
    wf_safetensors *file = status == WF_OK ? wf_safetensors_open(path, error) : NULL;
    if (status == WF_OK && !file)
        status = error->code;
    if (status == WF_OK)
        status = same_tokenizer(file, path, "tokenizer_content", run->tokenizer, error);
    if (status == WF_OK)
        status = same_tokenizer(file, path, "source_tokenizer_content", run->source_tokenizer, error);
    if (status == WF_OK && (status = wf_model_load(run->model, file, error)) != WF_OK)
        wf_error_prefix(error, "%s", path);
    if (file)
        wf_safetensors_close(file);
    wf_free(path);
    return status;
}

wf_status wf_run_open(struct wf_run *run, const char *folder, const char *weights, wf_error *error)
{
    *run = (struct wf_run){0};
    wf_error local = {0};
    if (!error)
        error = &local;
    if (!wf_folder_exists(folder))
        return wf_error_set(error, WF_ERR_IO, "%s is not a run folder: give the --out of weft train", folder);
    char *config = wf_run_path(folder, "config.json", error);
    wf_status status = config ? wf_config_load(&run->config, config, error) : WF_ERR_MEMORY;
    if (status == WF_OK)
        status = wf_tokenizers_load(folder, &run->config, &run->tokenizer, &run->source_tokenizer, error);
    if (status == WF_OK)
        status = hf_embed_options(folder, &run->config, &run->embed, error);
    if (status == WF_OK && !(run->model = wf_model_new(&run->config, error)))
        status = error->code;
    if (status == WF_OK)
        status = open_weights(run, folder, weights, error);
    wf_free(config);
    if (status != WF_OK)
        wf_run_close(run);
    return status;
}

void wf_run_close(struct wf_run *run)
{
    wf_model_free(run->model);
    if (run->source_tokenizer != run->tokenizer)
        wf_tokenizer_free(run->source_tokenizer);
    wf_tokenizer_free(run->tokenizer);
    *run = (struct wf_run){0};
}

wf_status wf_run_bitext(const struct wf_run *run, const char *source, const char *target, const char *cache, wf_bitext **out,
                        wf_error *error)
{
    *out = NULL;
    if (wf_config_kind(&run->config) != WF_MODEL_PAIRS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s does not translate: it takes a text, not pairs of sentences", run->config.model);
    struct wf_model_shape shape = wf_config_shape(&run->config);
    struct wf_bitext_options o = {.source = run->source_tokenizer,
                                  .target = run->tokenizer,
                                  .source_bos = shape.source_bos,
                                  .source_eos = shape.source_eos,
                                  .max_length = shape.context,
                                  .cache = cache};
    return wf_bitext_open(source, target, &o, out, error);
}
