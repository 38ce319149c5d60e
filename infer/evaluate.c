/* SPDX-License-Identifier: MIT */
/* Computes the loss of a model on a whole text, or on a part of it that is the same in each evaluation. */
#include <math.h>

#include <weft/encoder.h>
#include <weft/internal/family.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/run_folder.h>
#include <weft/internal/several.h>
#include <weft/internal/spread.h>
#include <weft/masking.h>
#include <weft/memory.h>
#include <weft/seq2seq.h>

#include "evaluate.h"

enum {
    TOKENS = 4096, /* approximate number of tokens in a batch: enough for fast matrix products, with little memory */
    SEED = 0       /* seed of the masks, which are the same in each evaluation */
};

int64_t evaluation_rows(int64_t context)
{
    return context < TOKENS ? TOKENS / context : 1;
}

/* An evaluation, whose batches several processes may share. `share` collects a struct batch_loss for each batch. */
struct losses {
    struct wf_share share;
    int64_t batches; /* number of batches so far, including those of other processes */
    const struct wf_progress *progress;
};
struct batch_loss {
    double plain;    /* mean loss over the tokens */
    double smoothed; /* mean loss with label smoothing; NaN: not computed */
    int64_t tokens, pairs;
};

/* Counts the next batch, and says whether this process computes it. */
static bool next_is_mine(struct losses *l)
{
    return wf_share_mine(&l->share, l->batches++);
}

static void tell(const struct losses *l, int64_t done, int64_t total)
{
    if (l->progress)
        l->progress->tell(l->progress->ctx, WF_MIN(done, total), total);
}

/* Reports the progress over windows: in selected batches if a limit is set, otherwise in tokens. */
static void tell_windows(const struct losses *l, const struct wf_windows *w)
{
    if (w->spread.chosen > 0)
        tell(l, w->batch, w->spread.chosen);
    else
        tell(l, w->position, w->ids.count - !w->no_targets);
}

/* Gathers the losses of all batches from all processes, and computes the mean loss. Called after the last batch. */
static wf_status sum_losses(struct losses *l, wf_status status, struct wf_evaluation *out, wf_error *error)
{
    double plain = 0, smoothed = 0;
    struct batch_loss b;
    status = wf_share_gather(&l->share, status, error);
    for (int64_t i = 0; status == WF_OK && i < l->batches; i++)
        if ((status = wf_share_take(&l->share, i, &b, sizeof b, error)) == WF_OK) {
            plain += b.plain * (double)b.tokens;
            smoothed += b.smoothed * (double)b.tokens;
            out->tokens += b.tokens;
            out->pairs += b.pairs;
        }
    wf_share_free(&l->share);
    if (status == WF_OK) {
        out->loss = plain / (double)out->tokens;
        out->smoothed = smoothed / (double)out->tokens; /* NaN if no loss with label smoothing was computed */
    }
    return status;
}

wf_status wf_model_evaluate(const wf_model *model, wf_tape *tape, struct wf_id_view ids, int64_t limit, struct wf_evaluation *out,
                            wf_error *error)
{
    if (wf_needs(error, "out, model, tape", out, model, tape))
        return WF_ERR_ARGUMENT;
    return wf_model_evaluate_on(NULL, model, tape, ids, limit, NULL, out, error);
}

wf_status wf_model_evaluate_on(wf_dist *dist, const wf_model *model, wf_tape *tape, struct wf_id_view ids, int64_t limit,
                               const struct wf_progress *progress, struct wf_evaluation *out, wf_error *error)
{
    *out = (struct wf_evaluation){.loss = NAN, .smoothed = NAN};
    if (wf_model_kind_of(model) != WF_MODEL_LANGUAGE)
        return wf_error_set(error, WF_ERR_STATE, "%s is not a language model: see weft/seq2seq.h and weft/encoder.h",
                            wf_model_config(model)->model);
    const int64_t context = wf_model_shape_of(model)->context;
    return evaluate_adjacent(dist, model, tape, ids, context, evaluation_rows(context), limit, progress, out, error);
}

wf_status evaluate_adjacent(wf_dist *dist, const wf_model *model, wf_tape *tape, struct wf_id_view ids, int64_t context, int64_t rows,
                            int64_t limit, const struct wf_progress *progress, struct wf_evaluation *out, wf_error *error)
{
    struct losses losses = {.share.dist = dist, .progress = progress};
    struct wf_windows windows;
    wf_status status = wf_windows_init(&windows, ids, context, rows, error);
    if (status == WF_OK)
        wf_windows_limit(&windows, limit);
    for (struct wf_window_batch b; status == WF_OK && wf_windows_next(&windows, &b);) {
        struct batch_loss loss = {.smoothed = NAN, .tokens = b.rows * b.cols};
        if (!next_is_mine(&losses))
            continue;
        wf_tape_reset(tape, WF_INFER, .precision = wf_model_precision(model));
        wf_tensor *x = wf_ids(tape, b.x, b.rows, b.cols), *y = wf_ids(tape, b.y, b.rows, b.cols);
        if (wf_item(wf_model_loss(model, x, y), &loss.plain) != WF_OK)
            status = wf_tape_status(tape, error);
        wf_share_add(&losses.share, &loss, sizeof loss);
        tell_windows(&losses, &windows);
    }
    wf_windows_free(&windows);
    return sum_losses(&losses, status, out, error);
}

wf_status wf_evaluate_pairs(const wf_model *model, wf_tape *tape, wf_bitext *bitext, double label_smoothing, int64_t limit,
                            struct wf_evaluation *out, wf_error *error)
{
    if (wf_needs(error, "out, model, tape, bitext", out, model, tape, bitext))
        return WF_ERR_ARGUMENT;
    return wf_evaluate_pairs_on(NULL, model, tape, bitext, label_smoothing, limit, NULL, out, error);
}

wf_status wf_evaluate_pairs_on(wf_dist *dist, const wf_model *model, wf_tape *tape, wf_bitext *bitext, double label_smoothing,
                               int64_t limit, const struct wf_progress *progress, struct wf_evaluation *out, wf_error *error)
{
    *out = (struct wf_evaluation){.loss = NAN, .smoothed = NAN};
    if (wf_model_kind_of(model) != WF_MODEL_PAIRS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is not a translation model: it has no loss on pairs",
                            wf_model_config(model)->model);
    struct losses losses = {.share.dist = dist, .progress = progress};
    wf_pair_batches *batches;
    wf_status status = wf_pair_batches_new(bitext, &(struct wf_pair_batches_options){.tokens = TOKENS, .in_order = true}, &batches, error);
    int64_t count = wf_pair_batches_count(batches), tokens = wf_bitext_survey(bitext)->target_tokens;
    /* Batches have about the same number of tokens, so a limit on tokens becomes a number of batches. */
    struct wf_spread spread = {.chosen = count, .total = count};
    if (limit > 0 && limit < tokens)
        spread.chosen = (int64_t)ceil((double)count * (double)limit / (double)tokens);
    for (int64_t i = 0; i < spread.chosen && status == WF_OK; i++) {
        struct wf_pairs pairs;
        struct batch_loss b = {0};
        if (!next_is_mine(&losses))
            continue;
        if ((status = wf_pair_batches_seek(batches, 0, wf_spread_at(&spread, i), error)) != WF_OK ||
            (status = wf_pair_batches_next(batches, &pairs, error)) != WF_OK)
            break;
        wf_tensor *plain = NULL;
        wf_tape_reset(tape, WF_INFER, .precision = wf_model_precision(model));
        wf_tensor *loss = wf_pairs_loss(model, tape, &pairs, .label_smoothing = label_smoothing, .plain = &plain);
        if (wf_item(loss, &b.smoothed) != WF_OK || wf_item(plain ? plain : loss, &b.plain) != WF_OK)
            status = wf_tape_status(tape, error);
        b.tokens = pairs.target_offsets[pairs.count] - pairs.target_offsets[0];
        b.pairs = pairs.count;
        wf_share_add(&losses.share, &b, sizeof b);
        tell(&losses, i + 1, spread.chosen);
    }
    wf_pair_batches_free(batches);
    return sum_losses(&losses, status, out, error);
}

/* --- masked tokens, which are the same in each evaluation ---------------------------------------------------------- */

int64_t wf_row_length(const struct wf_config *c, int64_t *text)
{
    int64_t length = c->training.crop > 0 ? c->training.crop : wf_config_shape(c).context;
    *text = c->training.frame ? length - 2 : length;
    return length;
}

wf_status wf_frame_check(const struct wf_config *c, const struct wf_masking *m, wf_error *error)
{
    if (!c->training.frame || (m->begin >= 0 && m->end >= 0))
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT, "the tokenizer has no %s token (%s), which frame=true requires: set frame=false",
                        m->begin < 0 ? "start" : "end", m->begin < 0 ? "[CLS] or <s>" : "[SEP] or </s>");
}

/* A walk through a text in adjacent windows. Each window is a row of a batch, in which tokens are masked. */
struct walk {
    struct wf_masking masking;
    struct wf_windows windows;
    struct wf_window_batch batch;
    bool frame;
    int32_t *places;  /* index in the batch of each masked token */
    int32_t *targets; /* original id of each masked token */
    int64_t chosen;   /* number of masked tokens in the batch */
};

static void walk_end(struct walk *w)
{
    wf_masking_free(&w->masking);
    wf_windows_free(&w->windows);
    wf_free(w->places);
    wf_free(w->targets);
}

static wf_status walk_begin(struct walk *w, const struct wf_config *c, const wf_tokenizer *tokenizer, struct wf_id_view ids, int64_t limit,
                            wf_error *error)
{
    int64_t context, rows = evaluation_rows(wf_row_length(c, &context));
    int64_t most = WF_MIN(ids.count, rows * context) + (c->training.frame ? 2 * rows : 0);
    *w = (struct walk){.frame = c->training.frame, .windows = {.ids = ids, .context = context, .rows = rows, .no_targets = true}};
    wf_windows_limit(&w->windows, limit);
    if (ids.count < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the text has no tokens to mask: give a longer text");
    wf_status status = wf_masking_init(&w->masking, tokenizer, c->training.mask_rate, SEED, error);
    if (status == WF_OK)
        status = wf_frame_check(c, &w->masking, error);
    int32_t **buffer[] = {&w->windows.buffer, &w->places, &w->targets};
    for (int i = 0; i < 3 && status == WF_OK; i++)
        if (!(*buffer[i] = wf_alloc((size_t)most * sizeof **buffer[i])))
            status = wf_error_set(error, WF_ERR_MEMORY, "no memory for %lld ids", (long long)most);
    if (status != WF_OK)
        walk_end(w);
    return status;
}

/* Makes the next batch. The masks of a window depend on the window's number in the text, and not on other windows. */
static bool walk_next(struct walk *w)
{
    if (!wf_windows_next(&w->windows, &w->batch))
        return false;
    int64_t rows = w->batch.rows, cols = w->batch.cols, first = (w->windows.position - rows * cols) / w->windows.context;
    if (w->frame) {
        (void)!wf_masking_frame(&w->masking, rows, cols, w->windows.buffer, NULL); /* cannot fail after wf_frame_check */
        w->batch.cols = cols += 2;
    }
    w->chosen = wf_masking_hide(&w->masking, 0, first, rows, cols, w->windows.buffer, w->places, w->targets);
    return true;
}

wf_status wf_masked_count(const struct wf_config *config, const wf_tokenizer *tokenizer, struct wf_id_view ids, int64_t limit,
                          int64_t *chosen, wf_error *error)
{
    struct walk w;
    *chosen = 0;
    wf_status status = walk_begin(&w, config, tokenizer, ids, limit, error);
    if (status != WF_OK)
        return status;
    while (walk_next(&w))
        *chosen += w.chosen;
    walk_end(&w);
    return WF_OK;
}

wf_status wf_evaluate_masked(const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, struct wf_id_view ids, int64_t limit,
                             struct wf_evaluation *out, wf_error *error)
{
    if (wf_needs(error, "out, model, tokenizer, tape", out, model, tokenizer, tape))
        return WF_ERR_ARGUMENT;
    return wf_evaluate_masked_on(NULL, model, tokenizer, tape, ids, limit, NULL, out, error);
}

wf_status wf_evaluate_masked_on(wf_dist *dist, const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, struct wf_id_view ids,
                                int64_t limit, const struct wf_progress *progress, struct wf_evaluation *out, wf_error *error)
{
    const struct wf_config *c = wf_model_config(model);
    *out = (struct wf_evaluation){.loss = NAN, .smoothed = NAN};
    if (wf_model_kind_of(model) != WF_MODEL_ENCODER || !wf_has_head(model))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s was not trained by masked-language modelling: it has no such loss", c->model);
    if (!wf_config_fits(c, wf_tokenizer_vocab_size(tokenizer)))
        return wf_error_set(error, WF_ERR_ARGUMENT, "vocabulary size mismatch: tokenizer %lld, model %lld",
                            (long long)wf_tokenizer_vocab_size(tokenizer), (long long)wf_config_shape(c).vocab_size);
    struct walk w;
    struct losses losses = {.share.dist = dist, .progress = progress};
    wf_status status = walk_begin(&w, c, tokenizer, ids, limit, error);
    const bool begun = status == WF_OK;
    while (status == WF_OK && walk_next(&w)) {
        struct batch_loss loss = {.smoothed = NAN, .tokens = w.chosen};
        if (w.chosen == 0 || !next_is_mine(&losses))
            continue;
        wf_tape_reset(tape, WF_INFER, .precision = wf_model_precision(model));
        wf_tensor *x = wf_ids(tape, w.batch.x, w.batch.rows, w.batch.cols);
        if (wf_item(wf_encoder_loss(model, x, NULL, w.places, w.targets, w.chosen, 0), &loss.plain) != WF_OK)
            status = wf_tape_status(tape, error);
        wf_share_add(&losses.share, &loss, sizeof loss);
        tell_windows(&losses, &w.windows);
    }
    if (begun)
        walk_end(&w);
    status = sum_losses(&losses, status, out, error);
    if (status == WF_OK && out->tokens == 0)
        status = wf_error_set(error, WF_ERR_ARGUMENT, "no token was masked out of %lld: too few are in the vocabulary; give a longer text",
                              (long long)ids.count);
    return status;
}
