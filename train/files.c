/* SPDX-License-Identifier: MIT */
/* The weights' files of a run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/file.h>
#include <weft/memory.h>

#include "trainer.h"

wf_status weights_save(struct trainer *t, const char *name)
{
    char *path = wf_run_path(t->options->out, name, t->error);
    if (!path)
        return WF_ERR_MEMORY;
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_weights_describe(w, t->tokenizer, t->source_tokenizer);
    wf_registry_save(t->registry, w, "");
    wf_status status = wf_safetensors_commit(w, path, t->error);
    wf_free(path);
    return status;
}

static char *checkpoint_path(const struct trainer *t, int64_t step, wf_error *error)
{
    char name[64];
    snprintf(name, sizeof name, "checkpoints/step-%08lld.safetensors", (long long)step);
    return wf_run_path(t->options->out, name, error);
}

static bool kept_for_good(const struct trainer *t, int64_t step)
{
    return t->config.keep_every > 0 && step % t->config.keep_every == 0;
}

static wf_status drop_old(struct trainer *t)
{
    int64_t *steps, count;
    wf_status status = wf_checkpoint_steps(t->options->out, &steps, &count, t->error);
    for (int64_t i = 0; status == WF_OK && i < count - t->config.keep; i++) {
        if (kept_for_good(t, steps[i]))
            continue;
        char *path = checkpoint_path(t, steps[i], t->error);
        status = path ? wf_file_remove(path, t->error) : WF_ERR_MEMORY;
        wf_free(path);
    }
    wf_free(steps);
    return status;
}

bool checkpoint_exists(const struct trainer *t)
{
    char *path = checkpoint_path(t, t->step, NULL);
    bool there = path && wf_file_exists(path);
    wf_free(path);
    return there;
}

wf_status checkpoint_save(struct trainer *t)
{
    if (t->config.keep == 0 && !kept_for_good(t, t->step))
        return WF_OK;
    char name[64];
    snprintf(name, sizeof name, "checkpoints/step-%08lld.safetensors", (long long)t->step);
    char *folder = wf_run_path(t->options->out, "checkpoints", t->error);
    wf_status status = folder ? wf_folder_make(folder, t->error) : WF_ERR_MEMORY;
    if (status == WF_OK)
        status = weights_save(t, name);
    if (status == WF_OK)
        status = drop_old(t);
    wf_free(folder);
    return status;
}

static bool is_there(const char *path)
{
    return wf_file_exists(path) || wf_folder_exists(path);
}

wf_status set_aside(struct trainer *t, const char *stem, const char *suffix, const char *why)
{
    return set_aside_as(t, stem, suffix, stem, why);
}

wf_status set_aside_as(struct trainer *t, const char *stem, const char *suffix, const char *as, const char *why)
{
    char *from = wf_format("%s/%s%s", t->options->out, stem, suffix), *to = NULL;
    wf_status status = from ? WF_OK : WF_ERR_MEMORY;
    for (int n = 1; status == WF_OK && is_there(from); n++) {
        wf_free(to);
        to = wf_format("%s/%s.previous-%d%s", t->options->out, as, n, suffix);
        if (!to)
            status = WF_ERR_MEMORY;
        else if (!is_there(to)) {
            if (rename(from, to) != 0)
                status =
                    wf_error_set(t->error, WF_ERR_IO, "%s can't be renamed to %s: the training would replace it", from, to);
            else
                break;
        }
    }
    if (status == WF_OK && to) {
        char text[1600];
        snprintf(text, sizeof text, "%s; what was %s%s is now %s", why, stem, suffix, to);
        status = report(t, WF_EVENT_WARNING, 0, text);
    }
    wf_free(from);
    wf_free(to);
    return status == WF_ERR_MEMORY ? wf_error_set(t->error, status, "no memory for a path") : status;
}

wf_status weights_set_aside(struct trainer *t)
{
    static const char why[] = "there is no state to go on from, so training starts anew";
    /* Best weights alone are what a training left that was killed before its first save: they come again, if this one validates. */
    char *model = wf_run_path(t->options->out, "model.safetensors", t->error);
    wf_status status = model ? WF_OK : WF_ERR_MEMORY;
    bool whole = status == WF_OK && wf_file_exists(model);
    wf_free(model);
    if (status == WF_OK && (whole || !t->validates))
        status = set_aside(t, "best", ".safetensors", why);
    /* Weights are worth nothing without what says how to read them. The model last: it is the sign that there is something. */
    static const char *const with[] = {"config", "tokenizer", "tokenizer.source", "tokenizer.target"};
    for (size_t i = 0; status == WF_OK && whole && i < sizeof with / sizeof *with; i++)
        status = set_aside(t, with[i], ".json", why);
    if (status == WF_OK)
        status = set_aside(t, "model", ".safetensors", why);
    /* Older checkpoints of higher steps would push out, and be averaged with, those to come. */
    int64_t *steps = NULL, count = 0;
    if (status == WF_OK)
        status = wf_checkpoint_steps(t->options->out, &steps, &count, t->error);
    wf_free(steps);
    return status == WF_OK && count > 0 ? set_aside(t, "checkpoints", "", why) : status;
}
