/* SPDX-License-Identifier: MIT */
/* The data of translation models: batches of sentence pairs from two files that are aligned by line. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/pair_parts.h>
#include <weft/internal/several.h>
#include <weft/internal/string.h>
#include <weft/memory.h>
#include <weft/seq2seq.h>

#include "trainer.h"

struct translation {
    wf_bitext *train, *valid;
    wf_pair_batches *batches;
    struct wf_pairs pairs; /* the present batch; only the ids of this rank's micro-batches are set */
    int64_t epoch;         /* epoch of the present batch */
    int64_t index;         /* index of the present batch in the epoch */
    int64_t step;          /* update of the present batch; -1: there is no batch yet */
};

static wf_status check(const struct trainer *t)
{
    const struct wf_train_options *o = t->options;
    if (o->train_files != 2)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s is a translation model: --train takes two files, source and target, not %lld",
                            t->config.model, (long long)o->train_files);
    if (o->valid_files != 0 && o->valid_files != 2)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s is a translation model: --valid takes two files, source and target, not %lld",
                            t->config.model, (long long)o->valid_files);
    if (o->valid_files == 0 && t->config.training.patience > 0)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "patience=%lld needs validations: give --valid SOURCE,TARGET, or set patience=0",
                            (long long)t->config.training.patience);
    if (o->valid_files == 0 && (t->config.training.best_by != WF_BEST_LOSS || t->config.training.valid_scores))
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s needs a text to translate: give --valid SOURCE,TARGET, or set %s",
                            t->config.training.best_by == WF_BEST_LOSS   ? "valid_scores=true"
                            : t->config.training.best_by == WF_BEST_BLEU ? "best_by=bleu"
                                                                         : "best_by=chrf",
                            t->config.training.best_by == WF_BEST_LOSS ? "valid_scores=false" : "best_by=loss");
    if (o->source_tokenizer && wf_config_shape(&t->config).shared_tokenizer)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s shares one tokenizer between source and target: give one, or set shared=false",
                            t->config.model);
    if (o->source_tokenizer && !o->tokenizer)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s is given for the source alone: give the target's tokenizer too, or neither",
                            o->source_tokenizer);
    return WF_OK;
}

static bool survey_progress(void *ctx, int64_t done, int64_t total)
{
    return report_progress(ctx, "surveying the pairs", done, total);
}

/* Opens a parallel text. `filtered`: leaves out pairs as max_ratio and deduplicate of the configuration ask. This is for training only,
 * because a validation measures its whole text. */
static wf_status read_pairs(struct trainer *t, const char *const *files, bool filtered, wf_bitext **out)
{
    struct wf_model_shape shape = wf_config_shape(&t->config);
    struct wf_bitext_options o = {.source = t->source_tokenizer,
                                  .target = t->tokenizer,
                                  .source_bos = shape.source_bos,
                                  .source_eos = shape.source_eos,
                                  .max_length = shape.context,
                                  .cache = t->options->cache,
                                  .progress = survey_progress,
                                  .ctx = t,
                                  .scans = t->scans,
                                  .max_ratio = filtered ? t->config.training.max_ratio : 0,
                                  .deduplicate = filtered && t->config.training.deduplicate};
    return wf_bitext_open(files[0], files[1], &o, out, t->error);
}

static wf_status open(struct trainer *t, bool resuming)
{
    const struct wf_train_options *o = t->options;
    struct translation *d = t->data;
    d->step = -1;
    if (check(t) || tokenizers_open(t, resuming))
        return t->error->code;
    const struct wf_training *c = &t->config.training;
    const struct wf_pair_batches_options batches = {.tokens = c->batch_tokens,
                                                    .tolerance = c->batch_tolerance,
                                                    .side = c->batch_cost == WF_BATCH_SIDE,
                                                    .window = c->batch_window,
                                                    .seed = o->seed};
    if (read_pairs(t, o->train, true, &d->train) || (o->valid_files > 0 && read_pairs(t, o->valid, false, &d->valid)) ||
        wf_pair_batches_new(d->train, &batches, &d->batches, t->error))
        return t->error->code;
    const struct wf_bitext_survey *s = wf_bitext_survey(d->train);
    t->train_hash = s->hash;
    t->train_tokens = s->target_tokens;
    t->train_pairs = s->used;
    if (choose_steps(t, (double)wf_pair_batches_count(d->batches)))
        return t->error->code;
    if (d->valid) {
        s = wf_bitext_survey(d->valid);
        t->valid_hash = s->hash;
        t->valid_tokens = s->target_tokens;
        t->valid_pairs = s->used;
        t->validates = true;
        choose_validation(t, t->train_tokens / wf_pair_batches_count(d->batches));
    }
    return WF_OK;
}

static wf_status tell_one(struct trainer *t, const char *what, const wf_bitext *bitext)
{
    const struct wf_bitext_survey *s = wf_bitext_survey(bitext);
    char line[512], text[640];
    snprintf(text, sizeof text, "%s: %s", what, wf_bitext_describe(s, line, sizeof line));
    if (report_data(t, s, text))
        return t->error->code;
    snprintf(text, sizeof text, "%s source", what);
    if (unknown_tell(t, text, s->source_unknown, s->source_tokens))
        return t->error->code;
    snprintf(text, sizeof text, "%s target", what);
    return unknown_tell(t, text, s->target_unknown, s->target_tokens);
}

static wf_status tell(struct trainer *t)
{
    struct translation *d = t->data;
    if (tell_one(t, "training", d->train))
        return t->error->code;
    return d->valid ? tell_one(t, "validation", d->valid) : WF_OK;
}

static double ids_of(const struct wf_pairs *p, const int32_t *offsets)
{
    return (double)(offsets[p->count] - offsets[0]);
}

static wf_status next(void *trainer, int64_t step, double *weight, wf_error *error)
{
    const struct trainer *t = trainer;
    struct translation *d = t->data;
    const struct wf_range own = wf_ranks_mine(&t->fit.ranks);
    wf_pair_batches_place(d->batches, &d->epoch, &d->index);
    d->step = step;
    wf_status status = wf_pair_batches_next_parts(d->batches, own.begin, own.end, t->fit.o.accumulate, &d->pairs, error);
    if (status != WF_OK)
        return status;
    *weight = ids_of(&d->pairs, d->pairs.target_offsets);
    return WF_OK;
}

static wf_tensor *loss(void *trainer, struct wf_micro_batch *p)
{
    struct trainer *t = trainer;
    struct translation *d = t->data;
    struct wf_pairs part = d->pairs;
    const struct wf_range own = wf_ranks_mine(&t->fit.ranks);
    wf_error why = {0};
    /* explain.c calls the loss for all micro-batches, also for those whose ids were encoded on other ranks only. */
    if ((p->index < own.begin || p->index >= own.end) && wf_pair_batches_encode_parts(d->batches, p->index, p->index + 1, p->count, &why))
        return wf_tape_fail(p->tape, why.code, "%s", why.message);
    if (p->count > 1)
        wf_pair_batches_part(d->batches, p->index, p->count, &part);
    if (part.count == 0)
        return NULL;
    struct wf_loss_terms terms;
    wf_loss_terms_begin(&terms, t->model, p->tape, ids_of(&part, part.target_offsets) / p->weight,
                        ids_of(&part, part.source_offsets) / ids_of(&d->pairs, d->pairs.source_offsets));
    return with_terms(&terms, p,
                      wf_pairs_loss(t->model, p->tape, &part, .label_smoothing = t->config.training.label_smoothing,
                                    .normalizer = p->weight, .plain = &p->shown));
}

static bool tell_scores(void *trainer, int64_t done, int64_t total)
{
    struct trainer *t = trainer;
    pace_report(&t->fit, "translating the validation text", done, total);
    return true; /* go on: the beam search itself calls validation_cancelled */
}

/* Measures BLEU and chrF as `weft evaluate` does: on all lines of the validation text, with the config's beam width and length penalty. */
static wf_status measure_scores(struct trainer *t, double *value, wf_error *error)
{
    const struct wf_run run = {.config = t->config, .tokenizer = t->tokenizer, .source_tokenizer = t->source_tokenizer, .model = t->model};
    const struct wf_translator_options o = {.truncate = true, .search = {.cancelled = validation_cancelled, .ctx = t}};
    struct wf_translation_scores scores;
    wf_status status =
        wf_evaluate_translation_on(t->fit.ranks.dist, &run, t->options->valid[0], t->options->valid[1], &o, tell_scores, t, &scores, error);
    if (status == WF_OK) {
        value[BLEU] = scores.bleu.score;
        value[CHRF] = scores.chrf.score;
    }
    return status;
}

static wf_status validate(void *trainer, wf_tape *tape, double *value, wf_error *error)
{
    struct trainer *t = trainer;
    struct translation *d = t->data;
    double smoothing = t->config.training.label_smoothing;
    const struct wf_progress progress = {validation_tell, t};
    struct wf_evaluation e;
    wf_status status = wf_evaluate_pairs_on(t->fit.ranks.dist, t->model, tape, d->valid, smoothing, t->valid_limit, &progress, &e, error);
    value[LOSS] = e.loss;
    if (smoothing > 0)
        value[SMOOTHED] = e.smoothed;
    return status == WF_OK && t->scores ? measure_scores(t, value, error) : status;
}

/* --- the place in the data ----------------------------------------------------------------------------------------- */

/* Saves the place of the next batch. If `step` is that of the present batch, the update of this batch was dropped; then the place of the
 * present batch is saved, because a resume repeats the update. */
static void put(void *trainer, int64_t step, wf_fit_state *state)
{
    const struct translation *d = ((const struct trainer *)trainer)->data;
    int64_t epoch = d->epoch, index = d->index;
    if (step != d->step)
        wf_pair_batches_place(d->batches, &epoch, &index);
    wf_fit_put_int(state, "epoch", epoch);
    wf_fit_put_int(state, "batch_index", index);
}

static wf_status get(void *trainer, int64_t step, const wf_fit_state *state, wf_error *error)
{
    struct trainer *t = trainer;
    struct translation *d = t->data;
    int64_t epoch = 0, index = 0;
    (void)step;
    if (wf_fit_get_int(state, "epoch", &epoch, error) || wf_fit_get_int(state, "batch_index", &index, error))
        return error->code;
    if (t->new_batches && index > 0) { /* other batches: the old index has no meaning, so begin the next epoch */
        epoch++;
        index = 0;
        wf_string_format(&t->fit.change, "; epoch %lld begins", (long long)epoch + 1);
    }
    if (wf_pair_batches_seek(d->batches, epoch, index, error))
        wf_error_prefix(error, "%s", state->path);
    return error->code;
}

static void end(struct trainer *t)
{
    struct translation *d = t->data;
    wf_pair_batches_free(d->batches);
    wf_bitext_close(d->train);
    wf_bitext_close(d->valid);
}

const struct task translation_task = {
    .size = sizeof(struct translation),
    .open = open,
    .tell = tell,
    .free = end,
    .fit = {.name = "translation", .next = next, .loss = loss, .validate = validate, .put = put, .get = get}};
