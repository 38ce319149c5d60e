/* SPDX-License-Identifier: MIT */
/* The weights' files of a run. */
#include <stdio.h>
#include <string.h>

#include <weft/file.h>
#include <weft/memory.h>

#include "trainer.h"

char *run_path(const char *folder, const char *name, wf_error *error)
{
    size_t length = strlen(folder);
    char *path = wf_format("%s%s%s", folder, length > 0 && folder[length - 1] == '/' ? "" : "/", name);
    if (!path)
        wf_error_set(error, WF_ERR_MEMORY, "no memory for a path in %s", folder);
    return path;
}

wf_status weights_save(struct trainer *t, const char *name)
{
    char *path = run_path(t->options->out, name, t->error);
    if (!path)
        return WF_ERR_MEMORY;
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_safetensors_put_metadata(w, "format", "pt"); /* what other readers of the format look for */
    wf_registry_save(t->registry, w, "");
    wf_status status = wf_safetensors_commit(w, path, t->error);
    wf_free(path);
    return status;
}

/* The step of a checkpoint's name, step-00000100.safetensors; -1 for any other file, which is not ours to remove. */
static int64_t step_of(const char *name)
{
    long long step;
    char again[64];
    if (sscanf(name, "step-%lld.safetensors", &step) != 1)
        return -1;
    snprintf(again, sizeof again, "step-%08lld.safetensors", step);
    return strcmp(again, name) == 0 ? step : -1;
}

static wf_status drop_old(struct trainer *t, const char *folder)
{
    struct wf_names names = {0};
    wf_status status = wf_folder_list(folder, "step-", &names, t->error);
    for (int64_t i = 0; status == WF_OK && i < names.count; i++) {
        int64_t step = step_of(names.name[i]), newer = 0;
        for (int64_t j = 0; j < names.count; j++)
            newer += step_of(names.name[j]) > step;
        if (step < 0 || newer < t->config.keep)
            continue;
        char *path = run_path(folder, names.name[i], t->error);
        status = path ? wf_file_remove(path, t->error) : WF_ERR_MEMORY;
        wf_free(path);
    }
    wf_names_free(&names);
    return status;
}

wf_status checkpoint_save(struct trainer *t)
{
    if (t->config.keep == 0)
        return WF_OK;
    char name[64];
    snprintf(name, sizeof name, "checkpoints/step-%08lld.safetensors", (long long)t->step);
    char *folder = run_path(t->options->out, "checkpoints", t->error);
    wf_status status = folder ? wf_folder_make(folder, t->error) : WF_ERR_MEMORY;
    if (status == WF_OK)
        status = weights_save(t, name);
    if (status == WF_OK)
        status = drop_old(t, folder);
    wf_free(folder);
    return status;
}

static wf_status set_aside(struct trainer *t, const char *stem)
{
    char *from = wf_format("%s/%s.safetensors", t->options->out, stem), *to = NULL;
    wf_status status = from ? WF_OK : WF_ERR_MEMORY;
    for (int n = 1; status == WF_OK && wf_file_exists(from); n++) {
        wf_free(to);
        to = wf_format("%s/%s.previous-%d.safetensors", t->options->out, stem, n);
        if (!to)
            status = WF_ERR_MEMORY;
        else if (!wf_file_exists(to)) {
            if (rename(from, to) != 0)
                status = wf_error_set(t->error, WF_ERR_IO, "%s can't be renamed to %s: a training that starts here would replace it", from, to);
            else
                break;
        }
    }
    if (status == WF_OK && to) {
        char text[512];
        snprintf(text, sizeof text, "there is no state to go on from, so training starts anew; what was %s.safetensors is now %s", stem, to);
        status = report(t, WF_EVENT_WARNING, 0, text);
    }
    wf_free(from);
    wf_free(to);
    return status == WF_ERR_MEMORY ? wf_error_set(t->error, status, "no memory for a path") : status;
}

wf_status weights_set_aside(struct trainer *t)
{
    /* Best weights alone are what a training left that was killed before its first save: they come again. */
    char *model = run_path(t->options->out, "model.safetensors", t->error);
    wf_status status = model ? WF_OK : WF_ERR_MEMORY;
    if (status == WF_OK && wf_file_exists(model))
        status = set_aside(t, "best");
    if (status == WF_OK)
        status = set_aside(t, "model");
    wf_free(model);
    return status;
}
