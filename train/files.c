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

static wf_status drop_old(struct trainer *t, const char *folder)
{
    struct wf_names names = {0};
    wf_status status = wf_folder_list(folder, "step-", &names, t->error);
    /* Sorted by name, which is by step: the digits have leading zeros. */
    for (int64_t i = 0; status == WF_OK && i < names.count - t->config.keep; i++) {
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
