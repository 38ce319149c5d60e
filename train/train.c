/* SPDX-License-Identifier: MIT */
/* wf_train: makes model, tokenizers and data from a configuration, and runs the training loop on them. */
#include <weft/internal/needs.h>
#include <weft/train.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>

#include <weft/internal/family.h>
#include <weft/internal/lines.h>
#include <weft/internal/optimizers.h>
#include <weft/internal/runtime.h>
#include <weft/memory.h>
#include <weft/optimizer_rule.h>

#include "trainer.h"

static wf_status open_task(struct trainer *t, bool resuming)
{
    t->data = wf_alloc_zero(1, t->task->size);
    if (!t->data)
        return wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a training");
    t->scans = wf_scans_new();
    wf_status status = t->task->open(t, resuming);
    wf_scans_free(t->scans);
    t->scans = NULL;
    return status == WF_ERR_CANCELLED && t->fit.limit.cut ? limit_too_short(&t->fit) : status;
}

bool cancelled(void *trainer)
{
    const struct trainer *t = trainer;
    return t->options->cancelled && t->options->cancelled(t->options->ctx);
}

bool validation_cancelled(void *trainer)
{
    struct trainer *t = trainer;
    return cancelled(t) || limit_cuts(&t->fit);
}

/* Checks for a cancellation or the time limit once the model is built, which can take seconds, or once building it has failed. If the
 * training must stop here, nothing is saved: no update is done, and the state of a large model takes long to write. */
static wf_status not_begun(struct trainer *t)
{
    const bool stopped = cancelled(t);
    if (!t->error->code && !stopped && limit_passed(&t->fit))
        return limit_too_short(&t->fit);
    if (!stopped || (t->error->code && t->error->code != WF_ERR_CANCELLED))
        return t->error->code;
    wf_error_clear(t->error);
    return wf_error_set(t->error, WF_ERR_CANCELLED, "interrupted before the training began; nothing was saved");
}

static wf_status no_head(struct trainer *t)
{
    struct wf_config with = t->config;
    const char *key = wf_config_set_head(&with);
    return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s has no output layer, which a training requires%s%s%s", with.model,
                        key ? ": set " : "", key ? key : "", key ? "=true" : "");
}

/* Gives the registry this rank's shard before the optimiser is made, so that the optimiser allocates moments for this shard only. */
static wf_status shard(struct trainer *t)
{
    t->fit.ranks.registry[0] = t->registry;
    t->fit.ranks.registries = 1;
    t->fit.ranks.rule = wf_config_optimizer_rule(&t->config, &t->fit.ranks.rule_ctx);
    return wf_ranks_shard(&t->fit.ranks);
}

static wf_status build(struct trainer *t, bool resuming)
{
    const struct wf_config *c = &t->config;
    if (wf_config_check(c, t->error) || !(t->model = wf_model_new(c, t->error)))
        return t->error->code;
    if (!wf_has_head(t->model))
        return no_head(t);
    t->registry = wf_model_registry(t->model);
    wf_registry_cancel(t->registry, t->options->cancelled, t->options->ctx);
    /* A resume only allocates the gradients; fit_take loads the values. */
    if ((resuming ? wf_registry_gradients(t->registry, t->error) : wf_registry_build(t->registry, t->options->seed, t->error)) ||
        shard(t) || wf_config_optimizer_init(&t->config, t->registry, &t->optimizer, t->error))
        return not_begun(t);
    wf_optimizer_decay_matrices_only(&t->optimizer);
    t->optimizer.ema = c->training.ema;
    return t->from.weights ? origin_load(t) : WF_OK;
}

static void describe(const struct fit *f, wf_safetensors_writer *w)
{
    const struct trainer *t = f->o.ctx;
    wf_weights_describe(w, t->tokenizer, t->source_tokenizer);
}

/* Fills in the task and the remaining options of the loop. */
static wf_status prepare(struct trainer *t)
{
    const struct wf_training *c = &t->config.training;
    struct fit *f = &t->fit;
    t->reports[0] = t->config.family->loss_term;
    t->owner.minimized_tag = t->reports[0] ? "minimized" : c->label_smoothing > 0 ? "smoothed" : NULL;
    t->registries[0] = (struct wf_fit_registry){.registry = t->registry};
    t->optimizers[0] = (struct wf_fit_optimizer){
        .name = t->config.optimizer.kind == WF_OPTIMIZER_ADAMW ? "adam" : wf_optimizer_name_at(t->config.optimizer.kind),
        .optimizer = &t->optimizer,
        .schedule = {.kind = (enum wf_schedule_kind)c->schedule,
                     .peak = c->lr,
                     .min = c->min_lr,
                     .warmup = c->warmup,
                     .steps = c->steps,
                     .decay = c->decay,
                     .start = c->start_lr,
                     .curve = (enum wf_schedule_curve)c->curve}};
    f->o.registry = t->registries;
    f->o.registries = 1;
    f->o.optimizer = t->optimizers;
    f->o.optimizers = 1;
    f->task = t->task->fit;
    f->task.unit = "tokens";
    f->task.reports = t->reports;
    t->metric[LOSS] = (struct wf_metric){.name = "loss"};
    t->metric[SMOOTHED] = (struct wf_metric){.name = "smoothed", .tag = "loss/valid_smoothed"};
    f->task.metric = t->metric;
    t->metric[BLEU] = (struct wf_metric){.name = "BLEU", .higher = true, .tag = "bleu/valid"};
    t->metric[CHRF] = (struct wf_metric){.name = "chrF", .higher = true, .tag = "chrf/valid"};
    f->task.metrics = METRICS;
    f->task.best = c->best_by == WF_BEST_BLEU ? BLEU : c->best_by == WF_BEST_CHRF ? CHRF : LOSS;
    t->scores = c->valid_scores || c->best_by != WF_BEST_LOSS;
    if (!t->validates)
        f->task.validate = NULL;
    return fit_prepare(f);
}

wf_tensor *with_terms(struct wf_loss_terms *terms, struct wf_micro_batch *p, wf_tensor *loss)
{
    wf_tensor *all = wf_loss_terms_end(terms, loss, &p->report[0]);
    if (all != loss && !p->shown)
        p->shown = loss;
    return all;
}

/* Sets the number of updates if the configuration gives epochs. Subtracts 1e-6 so that a rounding error does not add an update. */
wf_status choose_steps(struct trainer *t, double updates)
{
    struct wf_training *c = &t->config.training;
    const double steps = ceil(c->epochs * updates - 1e-6);
    if (!(c->epochs > 0))
        return WF_OK;
    if (!(steps <= 1e15))
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "epochs=%g are %g updates, which are too many", c->epochs, steps);
    t->fit.o.steps = c->steps = steps < 1 ? 1 : (int64_t)steps;
    return WF_OK;
}

/* By default a validation uses a tenth as many tokens as the updates between two validations, but at most MOST. A forward takes about a
 * third of an update's time, so validations take at most about 3 % of the training. */
void choose_validation(struct trainer *t, int64_t tokens)
{
    enum { MOST = 1000000 };
    const struct wf_training *c = &t->config.training;
    const int64_t updates = c->valid_every > 0 && c->valid_every < c->steps ? c->valid_every : c->steps;
    const double tenth = (double)tokens * (double)updates / 10;
    t->valid_limit = t->kept_limit >= 0     ? t->kept_limit
                     : c->valid_tokens >= 0 ? c->valid_tokens
                     : tenth < 1            ? 1
                     : tenth > MOST         ? MOST
                                            : (int64_t)tenth;
    if (tokens > 0)
        t->fit.pace.validation_share =
            (double)(t->valid_limit > 0 && t->valid_limit < t->valid_tokens ? t->valid_limit : t->valid_tokens) / (double)tokens;
    if (t->valid_limit > 0 && t->valid_tokens > t->valid_limit)
        t->valid_tokens = t->valid_limit;
}

/* Raises `accumulate` and `leaves` until each rank has a leaf, and copies both into the config. */
static wf_status share(struct trainer *t)
{
    struct fit *f = &t->fit;
    if (ranks_share(f))
        return t->error->code;
    t->config.training.accumulate = f->o.accumulate;
    t->config.training.leaves = f->o.leaves;
    return wf_config_check(&t->config, t->error);
}

/* On each machine one rank opens the texts and trains the tokenizers first, and stores the results in the cache. The other ranks wait, and
 * then read the cache. */
static wf_status open_in_turn(struct trainer *t, bool resuming)
{
    struct fit *f = &t->fit;
    const bool first = wf_dist_local_rank(f->ranks.dist) == 0;
    if (!t->error->code && first)
        open_task(t, resuming);
    wf_ranks_rest(&f->ranks);
    if (wf_ranks_agree(&f->ranks))
        return t->error->code;
    return first ? WF_OK : open_task(t, resuming);
}

/* Reads all input and builds the model, without writing into the run's folder. */
static wf_status read_all(struct trainer *t, bool resuming)
{
    struct fit *f = &t->fit;
    if (t->options->from && !resuming)
        (void)!origin_find(t->options->from, &t->from, t->error);
    if (!t->error->code)
        (void)!(resuming ? state_parts(t) : share(t));
    return open_in_turn(t, resuming) || build(t, resuming) || not_begun(t) || prepare(t) || fit_take(f) ? t->error->code : WF_OK;
}

static wf_status write_all(struct trainer *t, bool resuming)
{
    struct fit *f = &t->fit;
    if (!fit_set_aside(f) && f->ranks.rank == 0)
        (void)!run_files_save(t, resuming);
    if (fit_begin(f) || origin_tell(t) || texts_tell(t) || tokenizers_tell(t) || t->task->tell(t))
        return t->error->code;
    return report_start(t);
}

static wf_status run(struct trainer *t)
{
    struct fit *f = &t->fit;
    if (fit_enter(f))
        return t->error->code;
    const bool resuming = f->resumes;
    read_all(t, resuming);
    if (wf_ranks_agree(&f->ranks) || ranks_compare(f))
        return t->error->code;
    write_all(t, resuming);
    return wf_ranks_agree(&f->ranks) ? t->error->code : fit_run(f);
}

/* Refuses pipes and folders. A pipe can block forever, and cannot be read twice. A missing file is reported where it is opened. */
static wf_status check_files(const char *const *path, int64_t count, wf_error *error)
{
    struct stat info;
    for (int64_t i = 0; i < count; i++) {
        if (stat(path[i], &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode))
            return wf_file_refused(path[i], "read", EISDIR, error);
        if (!S_ISREG(info.st_mode))
            return wf_error_set(error, WF_ERR_IO, "%s is a pipe or a device, and training reads its text more than once: give a file",
                                path[i]);
    }
    return WF_OK;
}

static wf_status check_options(const struct wf_train_options *o, wf_error *error)
{
    if (!o->out || !o->out[0])
        return wf_error_set(error, WF_ERR_ARGUMENT, "no folder for the run: give --out");
    if (o->new_tokens && !o->resume && !o->from)
        return wf_error_set(error, WF_ERR_ARGUMENT, "new_tokens=%s adds tokens to the vocabulary of trained weights: give them with --from",
                            o->new_tokens);
    if (o->new_tokens && wf_config_kind(&o->config) == WF_MODEL_PAIRS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "new_tokens=%s: the vocabulary of a translation model cannot grow", o->new_tokens);
    if (o->train_files < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "no text to train on: give --train");
    if (check_files(o->train, o->train_files, error) || check_files(o->valid, o->valid_files, error))
        return error->code;
    const struct wf_training *c = &o->config.training;
    if (c->patience > 0 && c->valid_every == 0)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "patience=%" PRId64
                            " counts validations, and valid_every=0 validates only at the end: set valid_every, or patience=0",
                            c->patience);
    if (!(o->max_time >= 0 && isfinite(o->max_time)))
        return wf_error_set(error, WF_ERR_ARGUMENT, "max_time is %g: give seconds, or 0 for no limit", o->max_time);
    if (wf_config_read_only(&o->config))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is read from other libraries' folders, not trained", o->config.model);
    return wf_config_check(&o->config, error);
}

static struct wf_fit_options fit_options(struct trainer *t)
{
    const struct wf_training *c = &t->config.training;
    return (struct wf_fit_options){.out = t->options->out,
                                   .steps = c->steps,
                                   .accumulate = c->accumulate,
                                   .leaves = c->leaves,
                                   .precision = c->precision,
                                   .clip = c->clip,
                                   .clip_value = c->clip_value,
                                   .save_every = c->save_every,
                                   .valid_every = c->valid_every,
                                   .log_every = c->log_every,
                                   .keep = c->keep,
                                   .keep_every = c->keep_every,
                                   .patience = c->patience,
                                   .seed = t->options->seed,
                                   .resume = t->options->resume,
                                   .event = pass_on,
                                   .cancelled = cancelled,
                                   .ctx = t,
                                   .max_time = t->options->max_time,
                                   .no_overlap = t->options->no_overlap};
}

wf_status wf_train(const struct wf_train_options *options, struct wf_train_result *result, wf_error *error)
{
    if (wf_needs(error, "options", options))
        return WF_ERR_ARGUMENT;
    wf_error failure = {0};
    static const struct task *const tasks[] = {
        [WF_MODEL_LANGUAGE] = &language_task, [WF_MODEL_PAIRS] = &translation_task, [WF_MODEL_ENCODER] = &masked_task};
    struct trainer t = {.own = *options,
                        .config = options->config,
                        .kept_limit = -1,
                        .owner = {.put = zoo_put, .get = zoo_get, .describe = describe, .identify = zoo_identify, .state_prefix = ""},
                        .error = &failure};
    struct fit *f = &t.fit;
    t.options = &t.own;
    t.task = tasks[wf_config_kind(&t.config)];
    fit_init(f, &failure);
    f->owner = &t.owner;
    f->o = fit_options(&t);
    if (!wf_ranks_open(&f->ranks)) {
        f->given = t.config.training.accumulate;
        if (wf_init_default(t.error) == WF_OK && texts_recall(&t) == WF_OK && check_options(t.options, t.error) == WF_OK && options->from)
            (void)!origin_apart(options->from, options->out, t.error);
        if (!wf_ranks_agree(&f->ranks))
            run(&t);
    }
    if (result)
        *result = (struct wf_train_result){.step = f->step, .loss = f->loss[0], .valid = f->value[LOSS], .best = f->best};
    wf_optimizer_free(&t.optimizer);
    fit_free(f);
    wf_model_free(t.model);
    if (t.data)
        t.task->free(&t);
    wf_free(t.data);
    if (t.source_tokenizer != t.tokenizer)
        wf_tokenizer_free(t.source_tokenizer);
    wf_tokenizer_free(t.tokenizer);
    wf_string_free(&t.sample);
    wf_string_free(&t.differs);
    wf_string_free(&t.fresh);
    wf_string_free(&t.grown);
    wf_tokenizer_free(t.before);
    origin_free(&t.from);
    wf_train_texts_free(&t.texts);
    wf_free(t.train);
    wf_free(t.valid);
    return failure.code ? wf_error_set(error, failure.code, "%s", failure.message) : WF_OK;
}
