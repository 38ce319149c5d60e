/* SPDX-License-Identifier: MIT */
/* The loss of an encoder on hidden tokens of a text, which are the same each time. */
#include <math.h>

#include <weft/batches.h>
#include <weft/encoder.h>
#include <weft/masking.h>
#include <weft/memory.h>

#include <weft/internal/run_folder.h>
#include <weft/run.h>

enum { TOKENS = 4096, SEED = 0 }; /* about so many in one pass: enough for the matrix products, little memory */

/* Through a text, by windows side by side; a window is a row of one batch. */
struct walk {
    struct wf_masking masking;
    struct wf_windows windows;
    struct wf_window_batch batch;
    int32_t *ids, *places, *targets; /* of `batch` */
    int64_t row, chosen;
};

static void walk_end(struct walk *w)
{
    wf_masking_free(&w->masking);
    wf_free(w->ids);
    wf_free(w->places);
    wf_free(w->targets);
}

static wf_status walk_begin(struct walk *w, const struct wf_config *c, const wf_tokenizer *tokenizer, const int32_t *ids, int64_t count,
                            wf_error *error)
{
    int64_t rows = c->context < TOKENS ? TOKENS / c->context : 1, longest = count < rows * c->context ? count : rows * c->context;
    *w = (struct walk){0};
    if (count < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "there is no token in it, so none to mask: give a text with words in it");
    wf_status status = wf_masking_init(&w->masking, tokenizer, c->training.mask_rate, SEED, error);
    if (status == WF_OK) /* the windows of a text that is one longer, whose last id is a target only, are those of all ids of this one */
        status = wf_windows_init(&w->windows, ids, count + 1, c->context, rows, error);
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
    if (!wf_windows_next(&w->windows, &w->batch))
        return false;
    int64_t rows = w->batch.rows, cols = w->batch.cols;
    for (int64_t i = 0; i < rows * cols; i++)
        w->ids[i] = w->batch.x[i];
    w->chosen = wf_masking_hide(&w->masking, 0, w->row, rows, cols, w->ids, w->places, w->targets);
    w->row += rows;
    return true;
}

wf_status wf_masked_count(const struct wf_config *config, const wf_tokenizer *tokenizer, const int32_t *ids, int64_t count, int64_t *chosen,
                          wf_error *error)
{
    struct walk w;
    *chosen = 0;
    wf_status status = walk_begin(&w, config, tokenizer, ids, count, error);
    if (status != WF_OK)
        return status;
    while (walk_next(&w))
        *chosen += w.chosen;
    walk_end(&w);
    return WF_OK;
}

wf_status wf_evaluate_masked(const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, const int32_t *ids, int64_t count,
                             struct wf_masked_evaluation *out, wf_error *error)
{
    const struct wf_config *c = wf_model_config(model);
    *out = (struct wf_masked_evaluation){.loss = NAN};
    if (wf_model_kind_of(model) != WF_MODEL_ENCODER || !(c->training.mask_rate > 0))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s was not trained to find masked words again: it has no loss on them", c->model);
    if (wf_tokenizer_vocab_size(tokenizer) != c->vocab_size)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the tokenizer has %lld types, the model %lld: they don't belong together",
                            (long long)wf_tokenizer_vocab_size(tokenizer), (long long)c->vocab_size);
    struct walk w;
    double sum = 0;
    wf_status status = walk_begin(&w, c, tokenizer, ids, count, error);
    if (status != WF_OK)
        return status;
    while (status == WF_OK && walk_next(&w)) {
        double mean;
        if (w.chosen == 0)
            continue;
        wf_tape_reset(tape, WF_INFER);
        wf_tensor *x = wf_ids(tape, w.ids, w.batch.rows, w.batch.cols);
        if (wf_item(wf_encoder_loss(model, x, NULL, w.places, w.targets, w.chosen, 0), &mean) != WF_OK)
            status = wf_tape_status(tape, error);
        sum += mean * (double)w.chosen;
        out->tokens += w.chosen;
    }
    walk_end(&w);
    if (status == WF_OK && out->tokens == 0)
        status =
            wf_error_set(error, WF_ERR_ARGUMENT,
                         "of %lld tokens none is masked: there are too few that the tokenizer knows; give a longer text", (long long)count);
    if (status == WF_OK)
        out->loss = sum / (double)out->tokens;
    return status;
}
