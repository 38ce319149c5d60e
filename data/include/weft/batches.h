/* SPDX-License-Identifier: MIT */
/* Batches of a language model over a sequence of ids: random crops to train on, side-by-side windows to evaluate on.
 * Neither allocates; both keep a pointer to the ids, which must outlive them. */
#ifndef WEFT_BATCHES_H
#define WEFT_BATCHES_H

#include <weft/error.h>

WF_BEGIN_DECLS

/* Random crops. Each row is `context` ids from a uniformly random start in 0 .. length-context-1 and, as targets, the
 * ids one further on. The start is a function of (seed, step, row) alone, by Philox: a run resumes at step s by asking for
 * step s, and the batch is the same whether it is taken whole, in micro-batches of accumulation, or shared out among
 * processes, as long as rows are numbered through the whole batch. */
struct wf_crops {
    const int32_t *ids;
    int64_t length, context;
    uint64_t seed;
};

/* WF_ERR_ARGUMENT when context is not positive or length is below context + 1. */
WF_API wf_status wf_crops_init(struct wf_crops *crops, const int32_t *ids, int64_t length, int64_t context, uint64_t seed,
                               wf_error *error) WF_CHECKED;
/* Fills x[rows * context] and y[rows * context] with rows first_row .. first_row+rows-1 of the batch of `step`:
 * y[r][t] is the id after x[r][t]; y may be NULL. step and first_row are not negative. */
WF_API void wf_crops_fill(const struct wf_crops *crops, int64_t step, int64_t first_row, int64_t rows, int32_t *x, int32_t *y);
/* Where row `row` of the batch of `step` starts. */
WF_API int64_t wf_crops_start(const struct wf_crops *crops, int64_t step, int64_t row);

/* Evaluation over a whole sequence: windows of `context` side by side, up to `rows` of them a batch, then what is left as one
 * window that may be shorter. Each id but the first is a target exactly once.
 *
 *     wf_windows_init(&w, ids, length, T, 64, error);
 *     for (struct wf_window_batch b; wf_windows_next(&w, &b);)
 *         ... b.x [b.rows,b.cols] -> loss against b.y [b.rows,b.cols] ...                                                  */
struct wf_windows {
    const int32_t *ids;
    int64_t length, context, rows;
    int64_t position; /* ids[position + 1] is the next target; 0 starts again */
};
struct wf_window_batch {
    const int32_t *x, *y; /* dense [rows,cols]; they point into the ids, since windows side by side are the sequence itself */
    int64_t rows, cols;
};

/* WF_ERR_ARGUMENT when there is no target (length below 2), or context or rows is not positive. */
WF_API wf_status wf_windows_init(struct wf_windows *windows, const int32_t *ids, int64_t length, int64_t context, int64_t rows,
                                 wf_error *error) WF_CHECKED;
WF_API bool wf_windows_next(struct wf_windows *windows, struct wf_window_batch *batch); /* false at the end */

WF_END_DECLS

#endif
