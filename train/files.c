/* SPDX-License-Identifier: MIT */
/* The files of a run but for the state and the logs; and what was in its folder before. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/internal/files.h>
#include <weft/internal/reason.h>
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

static bool kept_for_good(const struct trainer *t, int64_t step)
{
    return t->config.training.keep_every > 0 && step % t->config.training.keep_every == 0;
}

static wf_status drop_old(struct trainer *t)
{
    int64_t *steps, count;
    char name[WF_CHECKPOINT_NAME];
    wf_status status = wf_checkpoint_steps(t->options->out, &steps, &count, t->error);
    for (int64_t i = 0; status == WF_OK && i < count - t->config.training.keep; i++) {
        if (kept_for_good(t, steps[i]))
            continue;
        char *path = wf_run_path(t->options->out, wf_checkpoint_name(steps[i], name), t->error);
        status = path ? wf_file_remove(path, t->error) : WF_ERR_MEMORY;
        wf_free(path);
    }
    wf_free(steps);
    return status;
}

bool checkpoint_exists(const struct trainer *t)
{
    char name[WF_CHECKPOINT_NAME];
    return wf_run_has(t->options->out, wf_checkpoint_name(t->step, name));
}

wf_status checkpoint_save(struct trainer *t)
{
    if (t->config.training.keep == 0 && !kept_for_good(t, t->step))
        return WF_OK;
    char name[WF_CHECKPOINT_NAME];
    char *folder = wf_run_path(t->options->out, "checkpoints", t->error);
    if (folder && !wf_folder_make(folder, t->error) && !weights_save(t, wf_checkpoint_name(t->step, name)))
        drop_old(t);
    wf_free(folder);
    return t->error->code;
}

wf_status set_aside(struct trainer *t, const char *name, const char *as, const char *why)
{
    char *moved, text[1600];
    if (wf_file_set_aside(t->options->out, name, as, &moved, t->error) != WF_OK || !moved)
        return t->error->code;
    snprintf(text, sizeof text, "%s; %s is now %s", why, name, moved);
    wf_free(moved);
    return report(t, WF_EVENT_WARNING, 0, text);
}

wf_status set_others_aside(struct trainer *t)
{
    /* Config and tokenizers differ only where their text does: run_files_save. */
    static const char *const names[] = {"best.safetensors", "model.safetensors", "state.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (set_aside(t, names[i], NULL, WOULD_REPLACE) != WF_OK)
            return t->error->code;
    /* Checkpoints of higher steps would push out, and be averaged with, those to come. */
    int64_t *steps = NULL, count = 0;
    if (wf_checkpoint_steps(t->options->out, &steps, &count, t->error) != WF_OK)
        return t->error->code;
    wf_free(steps);
    return count > 0 || wf_run_has(t->options->out, "checkpoints") ? set_aside(t, "checkpoints", NULL, WOULD_REPLACE) : WF_OK;
}

/* --- config.json and the tokenizers -------------------------------------------------------------------------------- */

/* They are written into a folder inside the run's, then compared with what is there. */
static wf_status place(struct trainer *t, const char *folder, const char *name, const char *known)
{
    wf_status status = WF_OK;
    char *from = wf_run_path(folder, name, t->error), *to = wf_run_path(t->options->out, name, t->error);
    if (from && to && wf_file_exists(from)) {
        if (!wf_file_same(from, to) && !(known && wf_file_same(known, to)))
            status = set_aside(t, name, NULL, WOULD_REPLACE);
        if (status == WF_OK && rename(from, to) != 0)
            wf_error_set(t->error, WF_ERR_IO, "%s: cannot be replaced: %s", to, wf_reason(errno));
    }
    wf_free(from);
    wf_free(to);
    return t->error->code;
}

wf_status run_files_save(struct trainer *t, bool resuming)
{
    static const char *const names[] = {"config.json", "tokenizer.json", "tokenizer.source.json", "tokenizer.target.json"};
    enum { NAMES = sizeof names / sizeof *names };
    struct wf_config was;
    char *folder = wf_run_path(t->options->out, NEW_FILES, t->error),
         *config = wf_run_path(t->options->out, NEW_FILES "/config.json", t->error),
         *known = wf_run_path(t->options->out, NEW_FILES "/known.json", t->error);
    bool fine = !t->error->code && wf_folder_make(folder, t->error) == WF_OK;
    for (int i = 0; i < NAMES && fine; i++) { /* of a killed process */
        char *path = wf_run_path(folder, names[i], t->error);
        fine = path && wf_file_remove(path, t->error) == WF_OK;
        wf_free(path);
    }
    fine = fine && wf_config_save(&t->config, config, t->error) == WF_OK &&
           wf_tokenizers_save(folder, &t->config, t->tokenizer, t->source_tokenizer, t->error) == WF_OK;
    /* A resume replaces the run's own configuration, not one that was edited. */
    if (fine && resuming)
        fine = wf_train_config(t->options->out, &was, NULL, t->error) == WF_OK && wf_config_save(&was, known, t->error) == WF_OK;
    for (int i = 0; i < NAMES && fine; i++)
        fine = place(t, folder, names[i], resuming && i == 0 ? known : NULL) == WF_OK;
    if (fine) {
        unlink(known);
        rmdir(folder);
    }
    wf_free(folder);
    wf_free(config);
    wf_free(known);
    return t->error->code;
}
