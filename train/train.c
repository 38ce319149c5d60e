/* SPDX-License-Identifier: MIT */
/* Setting a training up, and the loop. */
#include <weft/train.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/file.h>
#include <weft/memory.h>
#include <weft/internal/runtime.h>

#include "trainer.h"

/* FNV-1a over the ids. */
static uint64_t hash_of(const struct wf_tokens *tokens)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < tokens->count; i++)
        h = (h ^ (uint32_t)tokens->id[i]) * 0x100000001b3u;
    return h;
}

static wf_status enter_folder(struct trainer *t)
{
    const char *out = t->options->out;
    wf_status status = wf_folder_make(out, t->error);
    char *path = status == WF_OK ? run_path(out, ".lock", t->error) : NULL;
    if (status == WF_OK)
        t->lock = path ? wf_lock_take(path, t->error) : NULL;
    if (status == WF_OK && !t->lock) {
        status = t->error->code;
        if (status == WF_ERR_BUSY)
            wf_error_prefix(t->error, "%s is being trained by another process", out);
    }
    wf_free(path);
    if (status == WF_OK && state_exists(t) && !t->options->resume)
        status = wf_error_set(t->error, WF_ERR_EXISTS, "%s holds a run already: --resume goes on with it, another --out starts a new one", out);
    if (status == WF_OK)
        status = wf_file_sweep(out, NULL, t->error);
    char *checkpoints = run_path(out, "checkpoints", t->error);
    if (status == WF_OK && checkpoints && wf_folder_exists(checkpoints))
        status = wf_file_sweep(checkpoints, NULL, t->error);
    wf_free(checkpoints);
    return status;
}

/* The tokenizer in the state of a run that is resumed, else the one that is given, else one made from the text. */
static wf_status find_tokenizer(struct trainer *t, bool resuming)
{
    char *path = run_path(t->options->out, "tokenizer.json", t->error);
    if (!path)
        return WF_ERR_MEMORY;
    wf_status status;
    if (resuming)
        status = state_tokenizer(t);
    else if (t->options->tokenizer)
        status = wf_tokenizer_load(t->options->tokenizer, &t->tokenizer, t->error);
    else if (t->valid_text.data) {
        /* Both texts: a character that only the validation text has must not end the run. */
        char *both = wf_format("%s%s", t->train_text.data, t->valid_text.data);
        status = both ? wf_tokenizer_train(both, t->train_text.length + t->valid_text.length, &t->tokenizer, t->error)
                      : wf_error_set(t->error, WF_ERR_MEMORY, "no memory for the texts");
        wf_free(both);
    } else {
        status = wf_tokenizer_train(t->train_text.data, t->train_text.length, &t->tokenizer, t->error);
    }
    if (status == WF_OK)
        status = wf_tokenizer_save(t->tokenizer, path, t->error);
    wf_free(path);
    return status;
}

static wf_status read_data(struct trainer *t, bool resuming)
{
    const struct wf_train_options *o = t->options;
    wf_status status = wf_text_read(o->train, o->train_files, &t->train_text, t->error);
    if (status == WF_OK && o->valid_files > 0)
        status = wf_text_read(o->valid, o->valid_files, &t->valid_text, t->error);
    if (status == WF_OK)
        status = find_tokenizer(t, resuming);
    if (status == WF_OK)
        status = wf_corpus_build(t->tokenizer, &t->train_text, o->valid_files > 0 ? &t->valid_text : NULL, t->config.context, &t->corpus,
                                 t->error);
    /* The ids are all that is needed from here on. */
    wf_text_free(&t->train_text);
    wf_text_free(&t->valid_text);
    if (status == WF_OK)
        status = wf_crops_init(&t->crops, t->corpus.train.id, t->corpus.train.count, t->config.context, o->seed, t->error);
    if (status != WF_OK)
        return status;
    t->train_hash = hash_of(&t->corpus.train);
    t->valid_hash = hash_of(&t->corpus.valid);
    int64_t types = wf_tokenizer_vocab_size(t->tokenizer);
    if (t->config.vocab_size > 0 && t->config.vocab_size != types)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "vocab_size is %lld, but the tokenizer has %lld types: leave vocab_size out",
                            (long long)t->config.vocab_size, (long long)types);
    t->config.vocab_size = types;
    return WF_OK;
}

static wf_status build(struct trainer *t, bool resuming)
{
    const struct wf_config *c = &t->config;
    wf_status status = wf_config_check(c, t->error);
    if (status != WF_OK)
        return status;
    t->model = wf_model_new(c, t->error);
    t->tape = t->model ? wf_tape_new(t->error) : NULL;
    if (!t->tape)
        return t->error->code;
    t->registry = wf_model_registry(t->model);
    status = resuming ? wf_registry_gradients(t->registry, t->error) : wf_registry_build(t->registry, t->options->seed, t->error);
    if (status == WF_OK)
        status = wf_adamw_init(&t->adam, t->registry, t->error, .lr = c->lr, .beta1 = c->beta1, .beta2 = c->beta2, .eps = c->eps,
                               .weight_decay = c->weight_decay);
    if (status != WF_OK)
        return status;
    wf_adam_decay_matrices_only(&t->adam);
    t->schedule = (struct wf_schedule){.kind = (enum wf_schedule_kind)c->schedule, .peak = c->lr, .min = c->min_lr, .warmup = c->warmup,
                                       .steps = c->steps};
    size_t ids = (size_t)((c->batch + c->accumulate - 1) / c->accumulate * c->context);
    t->x = wf_alloc(ids * sizeof *t->x);
    t->y = wf_alloc(ids * sizeof *t->y);
    return t->x && t->y ? WF_OK : wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a batch");
}

static wf_status write_config(struct trainer *t)
{
    char *path = run_path(t->options->out, "config.json", t->error);
    wf_status status = path ? wf_config_save(&t->config, path, t->error) : WF_ERR_MEMORY;
    wf_free(path);
    return status;
}

static wf_status open_metrics(struct trainer *t, bool resuming)
{
    char *path = run_path(t->options->out, "metrics.jsonl", t->error);
    wf_status status = path ? WF_OK : WF_ERR_MEMORY;
    /* What a killed process logged after its last save will be done, and logged, again. */
    if (status == WF_OK)
        status = resuming ? wf_jsonl_drop_after(path, "step", t->step, t->error) : wf_file_remove(path, t->error);
    if (status == WF_OK && !(t->metrics = wf_jsonl_open(path, t->error)))
        status = t->error->code;
    wf_free(path);
    return status;
}

/* --- the loop ------------------------------------------------------------------------------------------------------ */

/* Weights that are not finite replace nothing: not the state, and not what was best. */
static wf_status refuse_bad_weights(struct trainer *t)
{
    const char *bad = first_bad(t, wf_registry_values(t->registry));
    if (!bad)
        return WF_OK;
    return wf_error_set(t->error, WF_ERR_NUMERIC,
                        "step %" PRId64 ": the parameter %s is not finite after the update; nothing of it was saved; lower lr, or set clip",
                        t->step, bad);
}

/* The rename of the state is the commit; model.safetensors follows. */
static wf_status save(struct trainer *t)
{
    wf_status status = refuse_bad_weights(t);
    if (status == WF_OK && !t->saved)
        status = state_save(t);
    if (status == WF_OK)
        status = weights_save(t, "model.safetensors");
    if (status == WF_OK)
        status = checkpoint_save(t);
    return status == WF_OK ? report(t, WF_EVENT_SAVE, 0, NULL) : status;
}

static wf_status validate(struct trainer *t, bool *stop)
{
    int64_t tokens;
    wf_status status = refuse_bad_weights(t);
    if (status == WF_OK)
        status = wf_model_evaluate(t->model, t->tape, t->corpus.valid.id, t->corpus.valid.count, &t->valid, &tokens, t->error);
    if (status != WF_OK)
        return status;
    if (!isfinite(t->valid))
        return wf_error_set(t->error, WF_ERR_NUMERIC,
                            "step %" PRId64 ": the validation loss is %g, though all weights are finite; nothing of it was saved; lower lr, or set clip",
                            t->step, t->valid);
    t->saved = false; /* best and stale are part of the state */
    if (!(t->valid >= t->best)) { /* the first, too: best is NaN before it */
        t->best = t->valid;
        t->stale = 0;
        status = weights_save(t, "best.safetensors");
    } else {
        t->stale++;
    }
    *stop = t->config.patience > 0 && t->stale >= t->config.patience;
    return status == WF_OK ? report(t, WF_EVENT_VALID, 0, NULL) : status;
}

static bool due(int64_t every, int64_t step)
{
    return every > 0 && step % every == 0;
}

static wf_status loop(struct trainer *t)
{
    const struct wf_config *c = &t->config;
    bool stop = c->patience > 0 && t->stale >= c->patience, cancelled = false;
    wf_status status = WF_OK;
    while (status == WF_OK && t->step < c->steps && !stop && !cancelled) {
        struct timespec begin;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        status = train_step(t);
        if (status == WF_OK)
            status = report(t, WF_EVENT_STEP, (double)(c->batch * c->context) / seconds_since(&begin), NULL);
        bool last = t->step == c->steps;
        if (status == WF_OK && (last || due(c->valid_every, t->step)))
            status = validate(t, &stop);
        if (status == WF_OK && !last && !stop && due(c->save_every, t->step))
            status = save(t);
        cancelled = t->options->cancelled && t->options->cancelled(t->options->ctx);
    }
    if (status != WF_OK)
        return status;
    status = save(t);
    bool finished = t->step >= c->steps;
    if (status == WF_OK)
        status = report(t, WF_EVENT_END, 0, finished ? "trained to the end" : stop ? "stopped early: the validation loss no longer falls"
                                                                                  : "cancelled: --resume goes on from here");
    if (status == WF_OK && cancelled && !finished && !stop)
        status = wf_error_set(t->error, WF_ERR_CANCELLED, "cancelled after step %lld of %lld; --resume goes on from there", (long long)t->step,
                              (long long)c->steps);
    return status;
}

static wf_status run(struct trainer *t)
{
    wf_status status = enter_folder(t);
    bool resuming = status == WF_OK && state_exists(t);
    if (status == WF_OK)
        status = read_data(t, resuming);
    if (status == WF_OK)
        status = build(t, resuming);
    if (status == WF_OK)
        status = resuming ? state_load(t) : weights_set_aside(t);
    if (status == WF_OK)
        status = open_metrics(t, resuming);
    if (status == WF_OK)
        status = write_config(t);
    if (status == WF_OK)
        status = report(t, WF_EVENT_START, 0, NULL);
    return status == WF_OK ? loop(t) : status;
}

static wf_status check_options(const struct wf_train_options *o, wf_error *error)
{
    if (!o->out || !o->out[0])
        return wf_error_set(error, WF_ERR_ARGUMENT, "no folder for the run: give --out");
    if (o->train_files < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "no text to train on: give --train");
    return wf_config_check(&o->config, error);
}

wf_status wf_train(const struct wf_train_options *options, struct wf_train_result *result, wf_error *error)
{
    wf_error local = {0};
    struct trainer t = {.options = options, .config = options->config, .best = NAN, .loss = NAN, .valid = NAN,
                        .error = error ? error : &local};
    clock_gettime(CLOCK_MONOTONIC, &t.start);
    wf_status status = wf_init_default(t.error);
    if (status == WF_OK)
        status = check_options(options, t.error);
    if (status == WF_OK)
        status = run(&t);
    if (result)
        *result = (struct wf_train_result){.step = t.step, .loss = t.loss, .valid = t.valid, .best = t.best};
    wf_jsonl_close(t.metrics);
    wf_adam_free(&t.adam);
    wf_tape_free(t.tape);
    wf_model_free(t.model);
    wf_corpus_free(&t.corpus);
    wf_tokenizer_free(t.tokenizer);
    wf_text_free(&t.train_text);
    wf_text_free(&t.valid_text);
    wf_free(t.x);
    wf_free(t.y);
    wf_lock_release(t.lock);
    return status;
}
