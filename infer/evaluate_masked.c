/* SPDX-License-Identifier: MIT */
/* The loss of an encoder on hidden tokens of a text, which are the same each time. */
#include <math.h>

#include <weft/encoder.h>
#include <weft/masking.h>
#include <weft/memory.h>

#include <weft/internal/run_folder.h>
#include <weft/internal/spread.h>
#include <weft/run.h>

enum { TOKENS = 4096, SEED = 0 }; /* about so many in one pass: enough for the matrix products, little memory */

/* Through a text, by windows side by side; a window is a row of one batch. */
struct walk {
    struct wf_masking masking;
    struct wf_id_view text;
    int64_t context, most; /* of a window; windows of a batch */
    int64_t rows, cols, chosen;
    int32_t *ids, *places, *targets; /* of the batch, [rows,cols] */
    int64_t position, batch;
    struct wf_spread spread;
};

static void walk_end(struct walk *w)
{
    wf_masking_free(&w->masking);
    wf_free(w->ids);
    wf_free(w->places);
    wf_free(w->targets);
}

static wf_status walk_begin(struct walk *w, const struct wf_config *c, const wf_tokenizer *tokenizer, struct wf_id_view ids, int64_t limit,
                            wf_error *error)
{
    int64_t context = wf_config_shape(c).context;
    int64_t rows = context < TOKENS ? TOKENS / context : 1, longest = ids.count < rows * context ? ids.count : rows * context;
    *w = (struct walk){.text = ids, .context = context, .most = rows};
    w->spread = wf_spread_of(limit, ids.count, context, &w->most);
    if (ids.count < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the text has no tokens to mask: give a longer text");
    wf_status status = wf_masking_init(&w->masking, tokenizer, c->training.mask_rate, SEED, error);
    int32_t **buffer[] = {&w->ids, &w->places, &w->targets};
    for (int i = 0; i < 3 && status == WF_OK; i++)
        if (!(*buffer[i] = wf_alloc((size_t)longest * sizeof **buffer[i])))
            status = wf_error_set(error, WF_ERR_MEMORY, "no memory for %lld ids", (long long)longest);
    if (status != WF_OK)
        walk_end(w);
    return status;
}

static bool walk_next(struct walk *w)
{
    if (w->spread.chosen > 0) {
        if (w->batch == w->spread.chosen)
            return false;
        w->position = wf_spread_at(&w->spread, w->batch++) * w->most * w->context;
    }
    int64_t left = w->text.count - w->position, whole = left / w->context;
    if (left <= 0)
        return false;
    w->rows = whole == 0 ? 1 : whole < w->most ? whole : w->most;
    w->cols = whole == 0 ? left : w->context;
    wf_id_view_copy(w->text, w->position, w->rows * w->cols, w->ids);
    /* a window's number in the text, so that a part of it has the masks of the whole */
    w->chosen = wf_masking_hide(&w->masking, 0, w->position / w->context, w->rows, w->cols, w->ids, w->places, w->targets);
    w->position += w->rows * w->cols;
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

wf_status wf_evaluate_masked_some(const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, struct wf_id_view ids, int64_t limit,
                                  struct wf_masked_evaluation *out, wf_error *error)
{
    const struct wf_config *c = wf_model_config(model);
    *out = (struct wf_masked_evaluation){.loss = NAN};
    if (wf_model_kind_of(model) != WF_MODEL_ENCODER || wf_config_read_only(c))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s was not trained by masked-language modelling: it has no such loss", c->model);
    if (wf_tokenizer_vocab_size(tokenizer) != wf_config_shape(c).vocab_size)
        return wf_error_set(error, WF_ERR_ARGUMENT, "vocabulary size mismatch: tokenizer %lld, model %lld",
                            (long long)wf_tokenizer_vocab_size(tokenizer), (long long)wf_config_shape(c).vocab_size);
    struct walk w;
    double sum = 0;
    wf_status status = walk_begin(&w, c, tokenizer, ids, limit, error);
    if (status != WF_OK)
        return status;
    while (status == WF_OK && walk_next(&w)) {
        double mean;
        if (w.chosen == 0)
            continue;
        wf_tape_reset(tape, WF_INFER);
        wf_tensor *x = wf_ids(tape, w.ids, w.rows, w.cols);
        if (wf_item(wf_encoder_loss(model, x, NULL, w.places, w.targets, w.chosen, 0), &mean) != WF_OK)
            status = wf_tape_status(tape, error);
        sum += mean * (double)w.chosen;
        out->tokens += w.chosen;
    }
    walk_end(&w);
    if (status == WF_OK && out->tokens == 0)
        status = wf_error_set(error, WF_ERR_ARGUMENT, "no token was masked out of %lld: too few are in the vocabulary; give a longer text",
                              (long long)ids.count);
    if (status == WF_OK)
        out->loss = sum / (double)out->tokens;
    return status;
}

wf_status wf_evaluate_masked(const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, struct wf_id_view ids,
                             struct wf_masked_evaluation *out, wf_error *error)
{
    return wf_evaluate_masked_some(model, tokenizer, tape, ids, 0, out, error);
}
