/* SPDX-License-Identifier: MIT */
/* wf_fit and wf_fit_one: run the training loop for a program's own task. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/gemm.h>
#include <weft/internal/minmax.h>
#include <weft/internal/runtime.h>

#include "loop.h"

static void describe(const struct fit *f, wf_safetensors_writer *w)
{
    wf_safetensors_put_metadata(w, "format", "pt");
    wf_safetensors_put_metadata(w, "task", f->task.name);
}

static void put(struct fit *f, wf_safetensors_writer *w)
{
    wf_safetensors_put_metadata(w, "settings", f->o.settings ? f->o.settings : "");
    wf_safetensors_put_metadata(w, "fixed", f->o.fixed ? f->o.fixed : "");
    if (f->o.precision != WF_PRECISION_REAL)
        wf_safetensors_put_metadata(w, "precision", wf_precision_name(f->o.precision));
}

static wf_status get(struct fit *f, const wf_safetensors *file, const char *path)
{
    int64_t seed = (int64_t)f->o.seed; /* old states hold no seed: accept any */
    if (wf_safetensors_metadata(file, "seed") && state_get_number(file, path, "seed", &seed, f->error))
        return f->error->code;
    if ((uint64_t)seed != f->o.seed)
        return wf_error_set(f->error, WF_ERR_ARGUMENT, "%s was trained with seed %" PRIu64 ", the resume asks for %" PRIu64, path,
                            (uint64_t)seed, f->o.seed);
    const char *precision = wf_safetensors_metadata(file, "precision"), *asked = wf_precision_name(f->o.precision);
    precision = precision ? precision : wf_precision_name(WF_PRECISION_REAL);
    if (strcmp(precision, asked) != 0)
        return wf_error_set(f->error, WF_ERR_ARGUMENT, "%s was trained with the precision %.20s, the resume asks for %s", path, precision,
                            asked);
    return settings_compare(f, file, path);
}

static const struct fit_owner anybody = {
    .any = true, .put = put, .get = get, .describe = describe, .state_prefix = "task.", .minimized_tag = "minimized"};

/* Loads the state on all ranks, checks that all ranks train the same, and trains. Before this check rank 0 writes no file but the lock. */
static void start(struct fit *f)
{
    fit_take(f);
    if (wf_ranks_agree(&f->ranks) || ranks_compare(f))
        return;
    fit_set_aside(f);
    if (!fit_begin(f))
        report(f, WF_EVENT_START, NULL);
    if (!wf_ranks_agree(&f->ranks))
        fit_run(f);
}

wf_status wf_fit(const struct wf_task *task, const struct wf_fit_options *options, struct wf_fit_result *result, wf_error *error)
{
    wf_error failure = {0};
    struct fit f = {.owner = &anybody};
    fit_init(&f, &failure);
    if (!wf_ranks_open(&f.ranks)) {
        if (wf_init_default(&failure) == WF_OK && fit_check(task, options, &failure) == WF_OK) {
            memcpy(&f.task, task, WF_MIN(task->abi, sizeof f.task));
            f.o = *options;
            fit_prepare(&f);
        }
        if (!wf_ranks_agree(&f.ranks) && !fit_enter(&f))
            start(&f);
    }
    if (result) {
        *result = (struct wf_fit_result){.step = f.step, .loss = f.loss[0], .best = f.best};
        memcpy(result->value, f.value, sizeof f.value);
    }
    fit_free(&f);
    return failure.code ? wf_error_set(error, failure.code, "%s", failure.message) : WF_OK;
}

wf_status wf_fit_one_with(const struct wf_task *task, wf_registry *registry, struct wf_optimizer *optimizer,
                          const struct wf_schedule *schedule, const struct wf_fit_options *options, struct wf_fit_result *result,
                          wf_error *error)
{
    const struct wf_fit_registry registries[] = {{.registry = registry}};
    struct wf_fit_optimizer optimizers[] = {{.optimizer = optimizer}};
    struct wf_fit_options o = options ? *options : (struct wf_fit_options){0};
    if (o.registry || o.registries || o.optimizer || o.optimizers) {
        if (result)
            *result = (struct wf_fit_result){.loss = NAN, .best = NAN};
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "wf_fit_one: the options list registries or optimisers too: leave these lists empty, or call wf_fit");
    }
    if (schedule)
        optimizers[0].schedule = *schedule;
    o.registry = registries;
    o.optimizer = optimizers;
    o.registries = o.optimizers = 1;
    return wf_fit(task, options ? &o : NULL, result, error);
}
