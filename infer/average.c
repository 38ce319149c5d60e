/* SPDX-License-Identifier: MIT */
/* Averages the weights of a run's last checkpoints. */
#include <weft/average.h>
#include <weft/internal/needs.h>

#include <inttypes.h>
#include <stdio.h>

#include <weft/family.h>
#include <weft/file.h>
#include <weft/internal/files.h>
#include <weft/memory.h>

#include <weft/internal/run_folder.h>
#include <weft/run.h>

/* Loads the checkpoint `path` into the run's model, and adds its weights to sum[0], sum[1], ... */
static void add(struct wf_run *run, const char *path, double *sum, wf_error *error)
{
    wf_registry *registry = wf_model_registry(run->model);
    wf_safetensors *file = wf_safetensors_open(path, error);
    if (file && wf_registry_load(registry, file, "", error) != WF_OK)
        wf_error_prefix(error, "%s", path);
    wf_safetensors_close(file);
    for (int64_t i = 0, n = wf_registry_slab(registry); !error->code && i < n; i++)
        sum[i] += (double)wf_registry_values(registry)[i];
}

/* Copies config.json as a file, because it also holds the names of the run's texts and its seed, which struct wf_config lacks. */
static wf_status copy_config(const char *folder, const char *to, wf_error *error)
{
    enum { LIMIT = 1 << 20 };
    int64_t bytes = 0;
    char *from = wf_run_path(folder, "config.json", error), *text = from ? wf_file_load(from, LIMIT, &bytes, error) : NULL;
    if (text)
        (void)!wf_file_save(to, text, bytes, error);
    wf_free(text);
    wf_free(from);
    return error->code;
}

/* Writes the averaged run. model.safetensors is written last, because a folder without it does not count as a run. */
static wf_status write_run(const struct wf_run *run, const char *folder, const char *out, int64_t step, int64_t count, wf_error *error)
{
    char *config = wf_run_path(out, "config.json", error), *model = wf_run_path(out, "model.safetensors", error);
    if (config && model && !wf_folder_make(out, error) && !wf_file_remove(model, error) && !copy_config(folder, config, error) &&
        !wf_tokenizers_save(out, &run->config, run->tokenizer, run->source_tokenizer, error) &&
        (!run->config.family->model_type || !hf_keep(folder, out, error)) &&
        (run->embed.max_length == 0 || !hf_embed_save(out, &run->embed, error))) {
        char text[64];
        wf_safetensors_writer *w = wf_safetensors_writer_new();
        wf_weights_describe(w, run->tokenizer, run->source_tokenizer);
        snprintf(text, sizeof text, "%" PRId64 " checkpoint%s up to step %" PRId64, count, count == 1 ? "" : "s", step);
        wf_safetensors_put_metadata(w, "average", text);
        wf_registry_save(wf_model_registry(run->model), w, "");
        (void)!wf_safetensors_commit(w, model, error);
    }
    wf_free(config);
    wf_free(model);
    return error->code;
}

/* Refuses a folder `out` with files that would be replaced, unless it holds an average. If config.json or a tokenizer has the same bytes as
 * the run's own, it is allowed, because it may come from an average that was interrupted. */
static wf_status check_out(const char *folder, const char *out, wf_error *error)
{
    static const char *const names[] = {"state.safetensors", "model.safetensors",     "config.json",
                                        "tokenizer.json",    "tokenizer.source.json", "tokenizer.target.json"};
    bool mean = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !error->code; i++) {
        char *mine = wf_run_path(out, names[i], error), *theirs = wf_run_path(folder, names[i], error);
        if (mine && theirs && wf_file_exists(mine)) {
            if (i == 0)
                wf_error_set(error, WF_ERR_EXISTS, "%s is a run that is being trained: choose another folder for the average of %s", out,
                             folder);
            wf_safetensors *file = i == 1 ? wf_safetensors_open(mine, error) : NULL;
            mean |= file && wf_safetensors_metadata(file, "average");
            wf_safetensors_close(file);
            if (i == 1 && !mean)
                wf_error_set(error, WF_ERR_EXISTS, "%s holds a model that is not an average: choose another folder for the average of %s",
                             out, folder);
            if (i > 1 && !mean && wf_file_exists(theirs) && !wf_file_same(mine, theirs))
                wf_error_set(error, WF_ERR_EXISTS, "%s exists and would be replaced: choose another folder for the average of %s", mine,
                             folder);
        }
        wf_free(mine);
        wf_free(theirs);
    }
    return error->code;
}

/* Reports that a run has fewer than `last` checkpoints, and why: it keeps fewer, it has made fewer, or it is an average itself. */
static wf_status too_few(const char *folder, int64_t count, int64_t last, wf_error *error)
{
    struct wf_config c;
    char why[200], *config = wf_run_path(folder, "config.json", error), *model = wf_run_path(folder, "model.safetensors", error);
    if (config && model && wf_config_load(&c, config, error) == WF_OK) {
        wf_safetensors *file = count == 0 && wf_file_exists(model) ? wf_safetensors_open(model, NULL) : NULL;
        const char *mean = file ? wf_safetensors_metadata(file, "average") : NULL;
        if (mean)
            wf_error_set(error, WF_ERR_ARGUMENT, "%s is an average itself (%s) and has no checkpoints: give the run that it was made from",
                         folder, mean);
        char keep[64] = "";
        if (c.training.keep < last)
            snprintf(keep, sizeof keep, " with keep=%" PRId64, last);
        if (count >= c.training.keep)
            snprintf(why, sizeof why, "it keeps %" PRId64 ": train%s, or average fewer", c.training.keep, keep);
        else
            snprintf(why, sizeof why,
                     "one is made at multiples of save_every=%" PRId64 " and at its end (steps=%" PRId64
                     "): train longer%s, or average fewer",
                     c.training.save_every, c.training.steps, keep);
        wf_error_set(error, WF_ERR_ARGUMENT, "%s has %" PRId64 " checkpoint%s, but %" PRId64 " %s requested: %s", folder, count,
                     count == 1 ? "" : "s", last, last == 1 ? "is" : "are", why);
        wf_safetensors_close(file);
    }
    wf_free(config);
    wf_free(model);
    return error->code;
}

/* A run, the sums of the weights in its last checkpoints, and a list of all its checkpoints. */
struct mean {
    struct wf_run run;
    double *sum;    /* for each weight, the sum of its values in the last checkpoints */
    int64_t *steps; /* steps of all checkpoints, ascending */
    int64_t count;  /* number of all checkpoints */
};

static void forget(struct mean *m)
{
    wf_run_close(&m->run);
    wf_free(m->sum);
    wf_free(m->steps);
    *m = (struct mean){0};
}

/* Sums the last `last` checkpoints. *gone becomes true if a training that still runs has removed a listed checkpoint. */
static wf_status sum_up(const char *folder, int64_t last, struct mean *m, bool *gone, wf_error *error)
{
    for (int64_t i = m->count - last; i < m->count && !error->code; i++) {
        char name[WF_CHECKPOINT_NAME], *path = wf_run_path(folder, wf_checkpoint_name(m->steps[i], name), error);
        if (!path)
            return error->code;
        /* Opening the run with the first checkpoint checks that the model, its tokenizers and the weights fit together. */
        if (!m->run.model && wf_run_open(&m->run, folder, path, error) == WF_OK) {
            size_t n = (size_t)wf_registry_slab(wf_model_registry(m->run.model));
            if (!(m->sum = wf_alloc_zero(n, sizeof *m->sum)))
                wf_error_set(error, WF_ERR_MEMORY, "no memory for the sum of %zu weights", n);
        }
        if (!error->code)
            add(&m->run, path, m->sum, error);
        *gone = error->code && error->code != WF_ERR_MEMORY && !wf_file_exists(path);
        wf_free(path);
    }
    return error->code;
}

/* Lists the checkpoints and sums the last of them. A training that still runs makes and removes checkpoints meanwhile: the list may lack
 * both an old one that was just removed and a new one that is not yet there, and a listed file may be removed before it is read. In these
 * cases the checkpoints are listed again, a limited number of times. */
static wf_status take_sum(const char *folder, int64_t last, struct mean *m, wf_error *error)
{
    enum { LOOKS = 4, TRIES = 50 };
    for (int looks = 0, tries = 0;;) {
        bool gone = false;
        forget(m);
        wf_error_clear(error);
        if (wf_checkpoint_steps(folder, &m->steps, &m->count, error))
            return error->code;
        if (m->count < last) {
            if (++looks == LOOKS)
                return too_few(folder, m->count, last, error);
        } else if (sum_up(folder, last, m, &gone, error) == WF_OK || !gone || ++tries == TRIES) {
            return error->code;
        }
    }
}

static wf_status average(const char *folder, int64_t last, const char *out, int64_t *step, struct mean *m, wf_error *error)
{
    if (last < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "an average of %" PRId64 " checkpoints: give at least 1", last);
    if (!wf_folder_exists(folder))
        return wf_error_set(error, WF_ERR_IO, "%s is not a run folder: give the --out of a training", folder);
    if (wf_run_check(folder, error) || check_out(folder, out, error) || take_sum(folder, last, m, error))
        return error->code;
    wf_real *value = wf_registry_values(wf_model_registry(m->run.model));
    for (int64_t i = 0, n = wf_registry_slab(wf_model_registry(m->run.model)); i < n; i++)
        value[i] = (wf_real)(m->sum[i] / (double)last);
    if (step)
        *step = m->steps[m->count - 1];
    return write_run(&m->run, folder, out, m->steps[m->count - 1], last, error);
}

wf_status wf_average(const char *folder, int64_t last, const char *out, int64_t *step, wf_error *error)
{
    if (wf_needs(error, "folder, out", folder, out))
        return WF_ERR_ARGUMENT;
    struct mean m = {0};
    wf_error failure = {0};
    average(folder, last, out, step, &m, &failure);
    forget(&m);
    return failure.code ? wf_error_set(error, failure.code, "%s", failure.message) : WF_OK;
}
