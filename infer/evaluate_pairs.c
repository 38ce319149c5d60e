/* SPDX-License-Identifier: MIT */
/* The loss of a translation model over a parallel text. */
#include <math.h>

#include <weft/seq2seq.h>

#include <weft/internal/run_folder.h>
#include <weft/internal/spread.h>
#include <weft/run.h>

enum { TOKENS = 4096 }; /* positions of both sides in one pass: enough for the matrix products, little memory */

wf_status wf_evaluate_pairs_some(const wf_model *model, wf_tape *tape, wf_bitext *bitext, double label_smoothing, int64_t limit,
                                 struct wf_pairs_evaluation *out, wf_error *error)
{
    *out = (struct wf_pairs_evaluation){.loss = NAN, .smoothed = NAN};
    if (!wf_model_translates(model))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is a language model: it has no loss on pairs", wf_model_config(model)->model);
    wf_pair_batches *batches;
    wf_status status = wf_pair_batches_new(bitext, &(struct wf_pair_batches_options){.tokens = TOKENS, .in_order = true}, &batches, error);
    if (status != WF_OK)
        return status;
    double plain_sum = 0, sum = 0;
    int64_t count = wf_pair_batches_count(batches), tokens = wf_bitext_survey(bitext)->target_tokens;
    struct wf_spread spread = {.chosen = count, .total = count}; /* the batches are of about as many tokens each, in the order of lengths */
    if (limit > 0 && limit < tokens)
        spread.chosen = (int64_t)ceil((double)count * (double)limit / (double)tokens);
    for (int64_t i = 0; i < spread.chosen && status == WF_OK; i++) {
        struct wf_pairs pairs;
        if ((status = wf_pair_batches_seek(batches, 0, wf_spread_at(&spread, i), error)) != WF_OK ||
            (status = wf_pair_batches_next(batches, &pairs, error)) != WF_OK)
            break;
        double plain_mean = 0, mean = 0;
        tokens = pairs.target_offsets[pairs.count] - pairs.target_offsets[0];
        wf_tensor *plain = NULL;
        wf_tape_reset(tape, WF_INFER);
        wf_tensor *loss = wf_pairs_loss(model, tape, &pairs, .label_smoothing = label_smoothing, .plain = &plain);
        if (wf_item(loss, &mean) != WF_OK || wf_item(plain ? plain : loss, &plain_mean) != WF_OK)
            status = wf_tape_status(tape, error);
        plain_sum += plain_mean * (double)tokens;
        sum += mean * (double)tokens;
        out->tokens += tokens;
        out->pairs += pairs.count;
    }
    wf_pair_batches_free(batches);
    if (status == WF_OK) {
        out->loss = plain_sum / (double)out->tokens;
        out->smoothed = sum / (double)out->tokens;
    }
    return status;
}

wf_status wf_evaluate_pairs(const wf_model *model, wf_tape *tape, wf_bitext *bitext, double label_smoothing,
                            struct wf_pairs_evaluation *out, wf_error *error)
{
    return wf_evaluate_pairs_some(model, tape, bitext, label_smoothing, 0, out, error);
}
