/* SPDX-License-Identifier: MIT */
/* The data of language models and encoders: each update takes random crops from one long sequence of ids. A language model predicts each
 * next token. An encoder predicts tokens that are hidden in the crops (Devlin et al. 2019, section 3.1). */
#include <math.h>

#include <weft/corpus.h>
#include <weft/encoder.h>
#include <weft/generate.h>
#include <weft/internal/minmax.h>
#include <weft/internal/several.h>
#include <weft/internal/string.h>
#include <weft/masking.h>
#include <weft/memory.h>

#include "trainer.h"

struct sequence {
    struct wf_corpus corpus;
    struct wf_crops crops;
    int64_t cols;              /* length of a row: the length of a crop, plus 2 for the start and end tokens of frame=true */
    struct wf_masking masking; /* encoders only */
    /* The present micro-batch. `ids`, `targets` and `places` have memory for [batch / accumulate, rounded up] rows of `cols`. */
    int32_t *ids;
    int32_t *targets; /* language models: the next token after each id; encoders: the hidden token at each place */
    int32_t *places;  /* encoders only: the places of the hidden tokens */
    int64_t *masked;  /* [ranks]: number of hidden tokens that each rank has in the present batch; encoders only */
};

static bool encode_progress(void *ctx, int64_t done, int64_t total)
{
    return report_progress(ctx, "encoding the text", done, total);
}

static wf_status open_tokenizer(struct trainer *t, bool resuming)
{
    if (t->options->source_tokenizer)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s is trained on one text: it has one tokenizer, not two", t->config.model);
    return tokenizers_open(t, resuming);
}

static wf_status open_texts(struct trainer *t)
{
    struct sequence *s = t->data;
    const struct wf_train_options *o = t->options;
    int64_t context, batch = t->config.training.batch, count = t->config.training.accumulate;
    s->cols = wf_row_length(&t->config, &context);
    size_t room = (size_t)((batch + count - 1) / count * s->cols);
    const struct wf_corpus_options options = {
        .tokenizer = t->tokenizer, .cache = o->cache, .progress = encode_progress, .ctx = t, .scans = t->scans};
    if (wf_corpus_open(o->train, o->train_files, o->valid, o->valid_files, context, &options, &s->corpus, t->error) ||
        wf_crops_init(&s->crops, s->corpus.train.ids, context, o->seed, t->error))
        return t->error->code;
    if (!(s->ids = wf_alloc(3 * room * sizeof *s->ids)))
        return wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a batch");
    s->targets = s->ids + room;
    s->places = s->targets + room;
    t->train_hash = s->corpus.train.hash;
    t->valid_hash = s->corpus.valid.hash;
    t->train_tokens = s->corpus.train.ids.count;
    t->valid_tokens = s->corpus.valid.ids.count;
    t->validates = true;
    if (choose_steps(t, (double)(t->train_tokens - 1) / (double)(batch * context)))
        return t->error->code;
    choose_validation(t, batch * s->cols);
    return WF_OK;
}

static wf_status tell(struct trainer *t)
{
    const struct wf_corpus *c = &((const struct sequence *)t->data)->corpus;
    if (unknown_tell(t, "training text", c->train.unknown, c->train.ids.count))
        return t->error->code;
    return unknown_tell(t, "validation text", c->valid.unknown, c->valid.ids.count);
}

/* Returns the number of rows of micro-batch i, and its first row in *first. */
static int64_t rows_of(const struct trainer *t, int64_t i, int64_t *first)
{
    int64_t batch = t->config.training.batch, count = t->config.training.accumulate;
    *first = batch * i / count;
    return batch * (i + 1) / count - *first;
}

/* `rows` as a fraction of the batch. */
static double share_of(const struct trainer *t, int64_t rows)
{
    return (double)rows / (double)t->config.training.batch;
}

static void end(struct trainer *t)
{
    struct sequence *s = t->data;
    wf_corpus_close(&s->corpus);
    wf_masking_free(&s->masking);
    wf_free(s->ids);
    wf_free(s->masked);
}

/* --- language models ----------------------------------------------------------------------------------------------- */

static wf_status open_language(struct trainer *t, bool resuming)
{
    return open_tokenizer(t, resuming) ? t->error->code : open_texts(t);
}

/* Sets the weight only: there are no crops to choose, because they are a function of step and row. So the task needs no `put` and `get`. */
static wf_status next_language(void *trainer, int64_t step, double *weight, wf_error *error)
{
    const struct trainer *t = trainer;
    (void)step, (void)error;
    *weight = (double)(t->config.training.batch * ((const struct sequence *)t->data)->crops.context);
    return WF_OK;
}

static wf_tensor *loss_language(void *trainer, struct wf_micro_batch *p)
{
    struct trainer *t = trainer;
    struct sequence *s = t->data;
    int64_t context = s->crops.context, first, rows = rows_of(t, p->index, &first);
    wf_crops_fill(&s->crops, p->step, first, rows, s->ids, s->targets);
    wf_tape_first_row(p->tape, (uint64_t)first);
    struct wf_loss_terms terms;
    wf_loss_terms_begin(&terms, t->model, p->tape, share_of(t, rows), 0); /* 0: there is no source */
    return with_terms(&terms, p,
                      wf_model_loss(t->model, wf_ids(p->tape, s->ids, rows, context), wf_ids(p->tape, s->targets, rows, context),
                                    .label_smoothing = t->config.training.label_smoothing, .normalizer = p->weight, .plain = &p->shown));
}

static wf_status validate_language(void *trainer, wf_tape *tape, double *value, wf_error *error)
{
    struct trainer *t = trainer;
    const struct wf_progress progress = {validation_tell, t};
    struct wf_evaluation e;
    struct wf_id_view valid = ((struct sequence *)t->data)->corpus.valid.ids;
    wf_status status = wf_model_evaluate_on(t->fit.ranks.dist, t->model, tape, valid, t->valid_limit, &progress, &e, error);
    value[LOSS] = e.loss;
    return status;
}

static bool append(void *ctx, const char *text, int64_t length)
{
    return wf_string_add(ctx, text, length);
}

/* The model continues the beginning of the validation text. All samples use the same random numbers, so a difference between two samples
 * comes from the model alone. */
static wf_status sample(void *trainer, wf_tape *tape, const char **out, wf_error *error)
{
    struct trainer *t = trainer;
    struct wf_string *text = &t->sample;
    enum { PROMPT = 16, TOKENS = 128 };
    const struct wf_generation *g = &t->config.generation;
    struct wf_id_view valid = ((struct sequence *)t->data)->corpus.valid.ids;
    struct wf_generate_options o = {.max_tokens = TOKENS,
                                    .sampler = {.temperature = g->temperature,
                                                .top_k = g->top_k,
                                                .top_p = g->top_p,
                                                .min_p = g->min_p,
                                                .repetition_penalty = g->repetition_penalty,
                                                .greedy = g->temperature == 0,
                                                .seed = t->options->seed}};
    int32_t prompt[PROMPT];
    int64_t count = WF_MIN(valid.count, PROMPT);
    wf_id_view_copy(valid, 0, count, prompt);
    wf_string_cut(text, 0);
    wf_status status = wf_generate_text(t->model, t->tokenizer, tape, prompt, count, &o, append, text, error);
    for (int64_t i = 0; i < text->length; i++) /* a byte-level tokenizer may give a 0 byte, which would end the C string */
        text->data[i] = text->data[i] ? text->data[i] : ' ';
    *out = text->data;
    return status == WF_OK && text->failed ? wf_error_set(error, WF_ERR_MEMORY, "no memory for a sample") : status;
}

const struct task language_task = {
    .size = sizeof(struct sequence),
    .open = open_language,
    .tell = tell,
    .free = end,
    .fit = {.name = "language", .next = next_language, .loss = loss_language, .validate = validate_language, .sample = sample}};

/* --- encoders ------------------------------------------------------------------------------------------------------ */

/* Counts the masked tokens of a validation. If there are none, doubles t->valid_limit until there are some, unless the user has set
 * valid_tokens or a resume keeps the state's limit. */
static wf_status count_masked(struct trainer *t, struct wf_id_view valid)
{
    const bool automatic = t->config.training.valid_tokens < 0 && t->kept_limit < 0;
    wf_status status = wf_masked_count(&t->config, t->tokenizer, valid, t->valid_limit, &t->valid_tokens, t->error);
    while (status == WF_OK && t->valid_tokens == 0 && automatic && t->valid_limit < valid.count) {
        t->valid_limit *= 2;
        status = wf_masked_count(&t->config, t->tokenizer, valid, t->valid_limit, &t->valid_tokens, t->error);
    }
    return status;
}

/* Only known tokens are masked, so a text that has none is an error: it leaves nothing to predict. */
static wf_status open_masked(struct trainer *t, bool resuming)
{
    struct sequence *s = t->data;
    const struct wf_train_options *o = t->options;
    if (open_tokenizer(t, resuming))
        return t->error->code;
    if (wf_masking_init(&s->masking, t->tokenizer, t->config.training.mask_rate, o->seed, t->error) ||
        wf_frame_check(&t->config, &s->masking, t->error))
        wf_error_prefix(t->error, "%s", o->tokenizer ? o->tokenizer : t->from.folder ? t->from.folder : o->out);
    if (t->error->code || open_texts(t))
        return t->error->code;
    if (!(s->masked = wf_alloc_zero((size_t)t->fit.ranks.size, sizeof *s->masked)))
        return wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a batch");
    struct wf_id_view train = s->corpus.train.ids, valid = s->corpus.valid.ids;
    t->train_tokens = wf_masking_ordinary(&s->masking, train);
    if (count_masked(t, valid))
        return t->error->code;
    if (t->train_tokens == 0)
        return wf_error_set(t->error, WF_ERR_ARGUMENT,
                            "the training text has no word that the tokenizer knows: its %lld tokens are unknown or special ones; give "
                            "another text or another tokenizer",
                            (long long)train.count);
    if (t->valid_tokens == 0)
        return wf_error_set(t->error, WF_ERR_ARGUMENT,
                            "no validation token was masked out of %lld: too few are in the vocabulary, or mask_rate=%g "
                            "is too small for them",
                            (long long)valid.count, t->config.training.mask_rate);
    return WF_OK;
}

/* Fills in ids, places and targets of micro-batch i, and returns the number of hidden tokens. */
static int64_t hide(const struct trainer *t, int64_t step, int64_t i, int64_t *first, int64_t *rows)
{
    struct sequence *s = t->data;
    *rows = rows_of(t, i, first);
    wf_crops_fill(&s->crops, step, *first, *rows, s->ids, NULL);
    if (t->config.training.frame) /* wf_frame_check has made sure that this call succeeds */
        (void)!wf_masking_frame(&s->masking, *rows, s->crops.context, s->ids, NULL);
    return wf_masking_hide(&s->masking, step, *first, *rows, s->cols, s->ids, s->places, s->targets);
}

/* The weight, which the first loss already needs, is the number of masked tokens of the whole batch. So masks are drawn here and again in
 * the loss; drawing takes less than a thousandth of an update. Each rank draws the masks of its own micro-batches. */
static wf_status next_masked(void *trainer, int64_t step, double *weight, wf_error *error)
{
    const struct trainer *t = trainer;
    const struct wf_range own = wf_ranks_mine(&t->fit.ranks);
    int64_t mine = 0, *masked = ((struct sequence *)t->data)->masked, all = 0;
    for (int64_t i = own.begin, first, rows; i < own.end; i++)
        mine += hide(t, step, i, &first, &rows);
    if (wf_dist_all_gather(t->fit.ranks.dist, &mine, sizeof mine, masked, error))
        return WF_ERR_STATE;
    for (int r = 0; r < t->fit.ranks.size; r++)
        all += masked[r];
    *weight = (double)all;
    return WF_OK;
}

static wf_tensor *loss_masked(void *trainer, struct wf_micro_batch *p)
{
    struct trainer *t = trainer;
    struct sequence *s = t->data;
    int64_t first, rows, count = hide(t, p->step, p->index, &first, &rows);
    wf_tape_first_row(p->tape, (uint64_t)first);
    struct wf_loss_terms terms;
    wf_loss_terms_begin(&terms, t->model, p->tape, share_of(t, rows), 0); /* 0: there is no source */
    /* In a batch without masked tokens the weight is 0: divide by 1, so that the loss is 0 and has gradients. */
    return with_terms(&terms, p,
                      wf_encoder_loss(t->model, wf_ids(p->tape, s->ids, rows, s->cols), NULL, s->places, s->targets, count,
                                      .label_smoothing = t->config.training.label_smoothing, .normalizer = p->weight > 0 ? p->weight : 1,
                                      .plain = &p->shown));
}

static wf_status validate_masked(void *trainer, wf_tape *tape, double *value, wf_error *error)
{
    struct trainer *t = trainer;
    const struct wf_progress progress = {validation_tell, t};
    struct wf_id_view valid = ((struct sequence *)t->data)->corpus.valid.ids;
    struct wf_evaluation e;
    wf_status status = wf_evaluate_masked_on(t->fit.ranks.dist, t->model, t->tokenizer, tape, valid, t->valid_limit, &progress, &e, error);
    value[LOSS] = e.loss;
    return status;
}

const struct task masked_task = {.size = sizeof(struct sequence),
                                 .open = open_masked,
                                 .tell = tell,
                                 .free = end,
                                 .fit = {.name = "masked", .next = next_masked, .loss = loss_masked, .validate = validate_masked}};
