/* SPDX-License-Identifier: MIT */
/* Declarations that the files of evaluation share. */
#ifndef INFER_EVALUATE_H
#define INFER_EVALUATE_H

#include <weft/internal/several.h>

/* The number of windows of `context` tokens in a batch. */
int64_t evaluation_rows(int64_t context);
/* wf_model_evaluate_on with windows of `context` tokens, `rows` of them in a batch. The model is a language model. */
wf_status evaluate_adjacent(wf_dist *dist, const wf_model *model, wf_tape *tape, struct wf_id_view ids, int64_t context, int64_t rows,
                            int64_t limit, const struct wf_progress *progress, struct wf_evaluation *out, wf_error *error);

#endif
