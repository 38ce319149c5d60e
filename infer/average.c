/* SPDX-License-Identifier: MIT */
/* The mean of checkpoints. */
#include <weft/average.h>

#include <inttypes.h>
#include <stdio.h>

#include <weft/file.h>
#include <weft/memory.h>

#include <weft/internal/run_folder.h>
#include <weft/run.h>

static wf_status add(struct wf_run *run, const char *path, double *sum, wf_error *error)
{
    wf_registry *registry = wf_model_registry(run->model);
    wf_safetensors *file = wf_safetensors_open(path, error);
    wf_status status = file ? wf_registry_load(registry, file, "", error) : error->code;
    if (file && status != WF_OK)
        wf_error_prefix(error, "%s", path);
    if (status == WF_OK) {
        const wf_real *value = wf_registry_values(registry);
        int64_t n = wf_registry_slab(registry);
        for (int64_t i = 0; i < n; i++)
            sum[i] += (double)value[i];
    }
    if (file)
        wf_safetensors_close(file);
    return status;
}

/* The model file last: a folder without it is not taken for a run. */
static wf_status write_run(const struct wf_run *run, const char *out, int64_t step, int64_t count, wf_error *error)
{
    char *config = wf_run_path(out, "config.json", error), *model = wf_run_path(out, "model.safetensors", error);
    wf_status status = config && model ? wf_folder_make(out, error) : WF_ERR_MEMORY;
    if (status == WF_OK)
        status = wf_file_remove(model, error);
    if (status == WF_OK)
        status = wf_config_save(&run->config, config, error);
    if (status == WF_OK)
        status = wf_tokenizers_save(out, &run->config, run->tokenizer, run->source_tokenizer, error);
    if (status == WF_OK) {
        char text[64];
        wf_safetensors_writer *w = wf_safetensors_writer_new();
        wf_weights_describe(w, run->tokenizer, run->source_tokenizer);
        snprintf(text, sizeof text, "%" PRId64 " checkpoint%s up to step %" PRId64, count, count == 1 ? "" : "s", step);
        wf_safetensors_put_metadata(w, "average", text);
        wf_registry_save(wf_model_registry(run->model), w, "");
        status = wf_safetensors_commit(w, model, error);
    }
    wf_free(config);
    wf_free(model);
    return status;
}

/* What is there is replaced only if it is a mean too. */
static wf_status check_out(const char *folder, const char *out, wf_error *error)
{
    char *state = wf_run_path(out, "state.safetensors", error), *model = wf_run_path(out, "model.safetensors", error);
    wf_status status = state && model ? WF_OK : WF_ERR_MEMORY;
    if (status == WF_OK && wf_file_exists(state))
        status = wf_error_set(error, WF_ERR_EXISTS, "%s is a run that is trained: the mean of %s needs a folder of its own", out, folder);
    if (status == WF_OK && wf_file_exists(model)) {
        wf_safetensors *file = wf_safetensors_open(model, error);
        if (!file)
            status = error->code;
        else if (!wf_safetensors_metadata(file, "average"))
            status = wf_error_set(error, WF_ERR_EXISTS, "%s holds a model that is no mean: the mean of %s needs a folder of its own", out,
                                  folder);
        wf_safetensors_close(file);
    }
    wf_free(state);
    wf_free(model);
    return status;
}

/* Says why: the run keeps fewer, or has not come that far, or is a mean itself. */
static wf_status too_few(const char *folder, int64_t count, int64_t last, wf_error *error)
{
    struct wf_config c;
    char *config = wf_run_path(folder, "config.json", error), *model = wf_run_path(folder, "model.safetensors", error);
    wf_status status = config && model ? wf_config_load(&c, config, error) : WF_ERR_MEMORY;
    wf_safetensors *file = status == WF_OK && count == 0 && wf_file_exists(model) ? wf_safetensors_open(model, NULL) : NULL;
    const char *mean = file ? wf_safetensors_metadata(file, "average") : NULL;
    if (mean)
        status = wf_error_set(error, WF_ERR_ARGUMENT, "%s is a mean itself (%s) and has no checkpoints: give the run that it was made of",
                              folder, mean);
    else if (status == WF_OK && c.training.keep < last)
        status = wf_error_set(error, WF_ERR_ARGUMENT,
                              "%s has %" PRId64 " checkpoint%s, %" PRId64 " %s asked for: it keeps %" PRId64 ": train with keep=%" PRId64
                              ", or ask for fewer",
                              folder, count, count == 1 ? "" : "s", last, last == 1 ? "is" : "are", c.training.keep, last);
    else if (status == WF_OK)
        status =
            wf_error_set(error, WF_ERR_ARGUMENT,
                         "%s has %" PRId64 " checkpoint%s, %" PRId64 " %s asked for: one is made at multiples of save_every=%" PRId64
                         " and at its end (steps=%" PRId64 "): let it go on, or ask for fewer",
                         folder, count, count == 1 ? "" : "s", last, last == 1 ? "is" : "are", c.training.save_every, c.training.steps);
    if (file)
        wf_safetensors_close(file);
    wf_free(config);
    wf_free(model);
    return status;
}

wf_status wf_average(const char *folder, int64_t last, const char *out, int64_t *step, wf_error *error)
{
    wf_error local = {0};
    if (!error)
        error = &local;
    struct wf_run run = {0};
    int64_t *steps = NULL, count = 0;
    double *sum = NULL;
    char *path = NULL;
    wf_status status = last >= 1 ? WF_OK : wf_error_set(error, WF_ERR_ARGUMENT, "the mean of %" PRId64 " checkpoints can't be taken", last);
    if (status == WF_OK && !wf_folder_exists(folder))
        status = wf_error_set(error, WF_ERR_IO, "%s is no folder of a run: give the --out of weft train", folder);
    if (status == WF_OK)
        status = check_out(folder, out, error);
    if (status == WF_OK)
        status = wf_checkpoint_steps(folder, &steps, &count, error);
    if (status == WF_OK && count < last)
        status = too_few(folder, count, last, error);
    for (int64_t i = count - last; status == WF_OK && i < count; i++) {
        wf_free(path);
        path = wf_format("%s/checkpoints/step-%08" PRId64 ".safetensors", folder, steps[i]);
        if (!path)
            status = wf_error_set(error, WF_ERR_MEMORY, "no memory for a path");
        if (status == WF_OK && !run.model) { /* the first: says whether model, tokenizers and weights fit together */
            status = wf_run_open(&run, folder, path, error);
            size_t n = status == WF_OK ? (size_t)wf_registry_slab(wf_model_registry(run.model)) : 0;
            if (status == WF_OK && !(sum = wf_alloc_zero(n, sizeof *sum)))
                status = wf_error_set(error, WF_ERR_MEMORY, "no memory for the sum of %zu weights", n);
        }
        if (status == WF_OK)
            status = add(&run, path, sum, error);
    }
    if (status == WF_OK) {
        wf_real *value = wf_registry_values(wf_model_registry(run.model));
        int64_t n = wf_registry_slab(wf_model_registry(run.model));
        for (int64_t i = 0; i < n; i++)
            value[i] = (wf_real)(sum[i] / (double)last);
        status = write_run(&run, out, steps[count - 1], last, error);
    }
    if (status == WF_OK && step)
        *step = steps[count - 1];
    wf_run_close(&run);
    wf_free(sum);
    wf_free(steps);
    wf_free(path);
    return status;
}
