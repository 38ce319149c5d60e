/* SPDX-License-Identifier: MIT */
/* Opening a run to use its model. */
#include <weft/run.h>

#include <string.h>

#include <weft/file.h>
#include <weft/memory.h>

#include "trainer.h"

static wf_status open_weights(struct wf_run *run, const char *folder, const char *weights, wf_error *error)
{
    bool named = weights && strcmp(weights, "best") != 0;
    char *path = named ? wf_strdup(weights) : run_path(folder, weights ? "best.safetensors" : "model.safetensors", error);
    if (!path)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a path");
    wf_status status = WF_OK;
    if (!wf_file_exists(path))
        status = wf_error_set(error, WF_ERR_IO, "%s is not there: %s", path,
                              named ? "give a safetensors file" : "the run has not been saved yet, or is none");
    wf_safetensors *file = status == WF_OK ? wf_safetensors_open(path, error) : NULL;
    if (status == WF_OK && !file)
        status = error ? error->code : WF_ERR_IO;
    if (status == WF_OK && (status = wf_registry_load(wf_model_registry(run->model), file, "", error)) != WF_OK)
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
        return wf_error_set(error, WF_ERR_IO, "%s is no folder of a run: give the --out of weft train", folder);
    char *config = run_path(folder, "config.json", error), *tokenizer = run_path(folder, "tokenizer.json", error);
    wf_status status = config && tokenizer ? wf_config_load(&run->config, config, error) : WF_ERR_MEMORY;
    if (status == WF_OK)
        status = wf_tokenizer_load(tokenizer, &run->tokenizer, error);
    if (status == WF_OK && wf_tokenizer_vocab_size(run->tokenizer) != run->config.vocab_size)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s has %lld types, the model in %s has %lld: they don't belong together", tokenizer,
                              (long long)wf_tokenizer_vocab_size(run->tokenizer), config, (long long)run->config.vocab_size);
    if (status == WF_OK && !(run->model = wf_model_new(&run->config, error)))
        status = error->code;
    if (status == WF_OK)
        status = open_weights(run, folder, weights, error);
    wf_free(config);
    wf_free(tokenizer);
    if (status != WF_OK)
        wf_run_close(run);
    return status;
}

void wf_run_close(struct wf_run *run)
{
    wf_model_free(run->model);
    wf_tokenizer_free(run->tokenizer);
    *run = (struct wf_run){0};
}
