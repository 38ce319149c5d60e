/* SPDX-License-Identifier: MIT */
/* Writes config.json and the tokenizers of a run, the settings of sentence vectors, and what the folder that it starts from brings. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <weft/internal/config_json.h>
#include <weft/internal/reason.h>
#include <weft/memory.h>

#include "trainer.h"

/* Moves a new file from `folder` into the run. If the run has a file of this name already, that file is replaced if it equals the new file
 * or the file `known`, and otherwise renamed first. `known` may be NULL. */
static wf_status place(struct trainer *t, const char *folder, const char *name, const char *known)
{
    wf_status status = WF_OK;
    char *from = wf_run_path(folder, name, t->error), *to = wf_run_path(t->options->out, name, t->error);
    if (from && to && wf_file_exists(from)) {
        if (!wf_file_same(from, to) && !(known && wf_file_same(known, to)))
            status = set_aside(&t->fit, name, NULL, WOULD_REPLACE);
        if (status == WF_OK && rename(from, to) != 0)
            wf_error_set(t->error, WF_ERR_IO, "%s: cannot be replaced: %s", to, wf_reason(errno));
    }
    wf_free(from);
    wf_free(to);
    return t->error->code;
}

/* Writes the settings of sentence vectors that came with the starting weights. Files with other settings are renamed first. */
static wf_status save_pooling(struct trainer *t)
{
    static const char *const names[] = {"modules.json", "sentence_bert_config.json"};
    struct wf_embedder_options there;
    const struct wf_embedder_options *o = &t->from.embed;
    wf_error unreadable = {0}; /* ignored: an unreadable file counts as different and is renamed */
    if (o->max_length == 0)
        return WF_OK;
    if (wf_run_has(t->options->out, "modules.json") && hf_embed_options(t->options->out, &t->config, &there, &unreadable) == WF_OK &&
        there.pooling == o->pooling && there.normalize == o->normalize && there.max_length == o->max_length)
        return WF_OK;
    for (int i = 0; i < 2; i++)
        if (wf_run_has(t->options->out, names[i]) && set_aside(&t->fit, names[i], NULL, WOULD_REPLACE))
            return t->error->code;
    return hf_embed_save(t->options->out, o, t->error);
}

static wf_status save_config(struct trainer *t, const char *path)
{
    json_t *texts = texts_json(t, t->error);
    if (texts)
        (void)!wf_config_save_with(&t->config, texts, path, t->error);
    json_decref(texts);
    return t->error->code;
}

/* Writes to `path` what config.json contained when this run last wrote it; the state has all that is needed for this. */
static wf_status save_known(struct trainer *t, const char *path)
{
    struct state s;
    struct wf_config was;
    json_t *texts = NULL;
    if (wf_train_config(t->options->out, &was, NULL, t->error) == WF_OK && state_open(&s, t->options->out, t->error) == WF_OK) {
        texts = texts_of_state(&s, t->error);
        if (!t->error->code)
            (void)!wf_config_save_with(&was, texts, path, t->error);
        state_close(&s);
    }
    json_decref(texts);
    return t->error->code;
}

/* Removes a new file that a killed process may have left. */
static wf_status remove_left(struct trainer *t, const char *folder, const char *name)
{
    char *path = wf_run_path(folder, name, t->error);
    if (path)
        (void)!wf_file_remove(path, t->error);
    wf_free(path);
    return t->error->code;
}

wf_status run_files_save(struct trainer *t, bool resuming)
{
    static const char *const names[] = {"config.json", "tokenizer.json", "tokenizer.source.json", "tokenizer.target.json"};
    enum { NAMES = sizeof names / sizeof *names };
    char *folder = wf_run_path(t->options->out, NEW_FILES, t->error),
         *config = wf_run_path(t->options->out, NEW_FILES "/config.json", t->error),
         *known = wf_run_path(t->options->out, NEW_FILES "/known.json", t->error);
    bool fine = !t->error->code && wf_folder_make(folder, t->error) == WF_OK;
    for (int i = 0; i < NAMES && fine; i++)
        fine = remove_left(t, folder, names[i]) == WF_OK;
    for (int i = 0; hf_kept[i] && fine; i++)
        fine = remove_left(t, folder, hf_kept[i]) == WF_OK;
    fine = fine && save_config(t, config) == WF_OK &&
           wf_tokenizers_save(folder, &t->config, t->tokenizer, t->source_tokenizer, t->error) == WF_OK;
    /* A resume does not start from a folder, and the run has these files already. */
    if (fine && !resuming && t->from.folder && t->config.family->model_type)
        fine = hf_keep(t->from.folder, folder, t->error) == WF_OK;
    /* A resume may replace the config.json that the run itself wrote. One that the user has edited since is renamed. */
    if (fine && resuming)
        fine = save_known(t, known) == WF_OK;
    for (int i = 0; i < NAMES && fine; i++)
        fine = place(t, folder, names[i], resuming && i == 0 ? known : NULL) == WF_OK;
    for (int i = 0; hf_kept[i] && fine; i++)
        fine = place(t, folder, hf_kept[i], NULL) == WF_OK;
    if (fine) {
        unlink(known);
        rmdir(folder);
    }
    wf_free(folder);
    wf_free(config);
    wf_free(known);
    return fine ? save_pooling(t) : t->error->code;
}
