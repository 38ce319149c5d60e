/* SPDX-License-Identifier: MIT */
/* The loss over a whole sequence. */
#include <math.h>

#include <weft/batches.h>
#include <weft/internal/run_folder.h>
#include <weft/run.h>

enum { TOKENS = 4096 }; /* about so many in one pass: enough for the matrix products, little memory */

wf_status wf_model_evaluate_some(const wf_model *model, wf_tape *tape, struct wf_id_view ids, int64_t limit, double *loss, int64_t *tokens,
                                 wf_error *error)
{
    *loss = NAN;
    *tokens = 0;
    if (wf_model_kind_of(model) != WF_MODEL_LANGUAGE)
        return wf_error_set(error, WF_ERR_STATE, "%s is no language model: see weft/seq2seq.h and weft/encoder.h",
                            wf_model_config(model)->model);
    int64_t context = wf_model_shape_of(model)->context, rows = context < TOKENS ? TOKENS / context : 1, seen = 0;
    double sum = 0;
    struct wf_windows windows;
    wf_status status = wf_windows_init(&windows, ids, context, rows, error);
    if (status == WF_OK)
        wf_windows_limit(&windows, limit);
    for (struct wf_window_batch b; status == WF_OK && wf_windows_next(&windows, &b);) {
        double mean;
        wf_tape_reset(tape, WF_INFER);
        wf_tensor *x = wf_ids(tape, b.x, b.rows, b.cols), *y = wf_ids(tape, b.y, b.rows, b.cols);
        if (wf_item(wf_model_loss(model, x, y), &mean) != WF_OK)
            status = wf_tape_status(tape, error);
        sum += mean * (double)(b.rows * b.cols);
        seen += b.rows * b.cols;
    }
    wf_windows_free(&windows);
    if (status != WF_OK)
        return status;
    *loss = sum / (double)seen;
    *tokens = seen;
    return WF_OK;
}

wf_status wf_model_evaluate(const wf_model *model, wf_tape *tape, struct wf_id_view ids, double *loss, int64_t *tokens, wf_error *error)
{
    return wf_model_evaluate_some(model, tape, ids, 0, loss, tokens, error);
}
