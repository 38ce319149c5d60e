/* SPDX-License-Identifier: MIT */
/* Writes weights, averages and checkpoints, and renames files of an earlier training in the run's folder. */
#include <stdio.h>

#include <weft/internal/files.h>
#include <weft/internal/run_folder.h>
#include <weft/memory.h>

#include "loop.h"

/* Writes a file of tensors that have the names of the parameters. For each registry put() adds the registry's tensors to the file. */
static wf_status save_as(struct fit *f, const char *name, void (*put)(struct fit *f, int registry, wf_safetensors_writer *w))
{
    char *path = wf_run_path(f->o.out, name, f->error);
    if (!path)
        return WF_ERR_MEMORY;
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    f->owner->describe(f, w);
    for (int i = 0; i < f->o.registries; i++)
        put(f, i, w);
    wf_status status = wf_safetensors_commit(w, path, f->error);
    wf_free(path);
    return status;
}

static void put_weights(struct fit *f, int registry, wf_safetensors_writer *w)
{
    char prefix[PREFIX];
    wf_registry_save(f->o.registry[registry].registry, w, registry_prefix(f, registry, "", prefix));
}

wf_status weights_save(struct fit *f, const char *name)
{
    return save_as(f, name, put_weights);
}

static bool has_averages(const struct fit *f)
{
    bool any = false;
    for (int i = 0; i < f->o.optimizers; i++)
        any |= f->o.optimizer[i].optimizer->ema > 0;
    return any;
}

static void put_averages(struct fit *f, int k, wf_safetensors_writer *w)
{
    const wf_registry *registry = f->o.registry[k].registry;
    const struct wf_optimizer_source *source = wf_ranks_source(&f->ranks);
    for (int i = 0; i < wf_registry_count(registry); i++) {
        const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(registry, i));
        char prefix[PREFIX], name[PREFIX + 512];
        struct wf_optimizer_place place;
        wf_array value = info->value;
        bool averaged = false;
        if (!wf_registry_is_saved(registry, i))
            continue;
        snprintf(name, sizeof name, "%s%s", registry_prefix(f, k, "", prefix), info->name);
        for (int j = 0; j < f->o.optimizers && !averaged; j++)
            averaged = wf_optimizer_average(f->o.optimizer[j].optimizer, registry, i, &place);
        if (averaged && source) {
            wf_safetensors_put_from(w, name, &value, source->read, source->ctx, &place, sizeof place);
            continue;
        }
        if (averaged)
            value.data = wf_optimizer_moment(&place, 0);
        wf_safetensors_put(w, name, &value); /* the average, or the value of a buffer or of a parameter that was never updated */
    }
}

wf_status averages_save(struct fit *f)
{
    static const char name[] = "ema.safetensors";
    if (!has_averages(f))
        return wf_run_has(f->o.out, name) ? set_aside(f, name, NULL, "the training has no moving average any more") : WF_OK;
    return save_as(f, name, put_averages);
}

static bool kept_for_good(const struct fit *f, int64_t step)
{
    return f->o.keep_every > 0 && step % f->o.keep_every == 0;
}

static wf_status drop_old(struct fit *f)
{
    int64_t *steps, count;
    char name[WF_CHECKPOINT_NAME];
    wf_status status = wf_checkpoint_steps(f->o.out, &steps, &count, f->error);
    for (int64_t i = 0; status == WF_OK && i < count - f->o.keep; i++) {
        if (kept_for_good(f, steps[i]))
            continue;
        char *path = wf_run_path(f->o.out, wf_checkpoint_name(steps[i], name), f->error);
        status = path ? wf_file_remove(path, f->error) : WF_ERR_MEMORY;
        wf_free(path);
    }
    wf_free(steps);
    return status;
}

bool checkpoint_exists(const struct fit *f)
{
    char name[WF_CHECKPOINT_NAME];
    return wf_run_has(f->o.out, wf_checkpoint_name(f->step, name));
}

wf_status checkpoint_save(struct fit *f)
{
    if (f->o.keep == 0 && !kept_for_good(f, f->step))
        return WF_OK;
    char name[WF_CHECKPOINT_NAME];
    char *folder = wf_run_path(f->o.out, "checkpoints", f->error);
    if (folder && !wf_folder_make(folder, f->error) && !weights_save(f, wf_checkpoint_name(f->step, name)))
        drop_old(f);
    wf_free(folder);
    return f->error->code;
}

wf_status set_aside(struct fit *f, const char *name, const char *as, const char *why)
{
    char *moved;
    struct wf_string text = {0};
    if (wf_file_set_aside(f->o.out, name, as, &moved, f->error) != WF_OK || !moved)
        return f->error->code;
    wf_string_format(&text, "%s; %s is now %s", why, name, moved);
    wf_free(moved);
    return report_string(f, WF_EVENT_WARNING, &text);
}

wf_status set_others_aside(struct fit *f)
{
    /* Config and tokenizers are not listed: run_files_save renames them only if their contents differ. */
    static const char *const names[] = {"best.safetensors", "ema.safetensors", "model.safetensors", "state.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (set_aside(f, names[i], NULL, WOULD_REPLACE) != WF_OK)
            return f->error->code;
    /* Old checkpoints of higher steps would count as the latest: new ones would be deleted, and `weft average` would mix both. */
    int64_t *steps = NULL, count = 0;
    if (wf_checkpoint_steps(f->o.out, &steps, &count, f->error) != WF_OK)
        return f->error->code;
    wf_free(steps);
    return count > 0 || wf_run_has(f->o.out, "checkpoints") ? set_aside(f, "checkpoints", NULL, WOULD_REPLACE) : WF_OK;
}
