/* SPDX-License-Identifier: MIT */
/* Batches of a language model over a sequence of ids: random crops to train on, side-by-side windows to evaluate on.
 * Both keep a pointer to the ids, which must outlive them. */
#ifndef WEFT_BATCHES_H
#define WEFT_BATCHES_H

#include <weft/error.h>

WF_BEGIN_DECLS

/* A sequence of ids to be read: of 32 bits, or of 16 as a corpus keeps those of a vocabulary of at most 65,536 entries. By value; it owns
 * nothing. */
struct wf_id_view {
    const void *data; /* int32_t [count], or uint16_t where `narrow` */
    int64_t count;
    bool narrow;
};
static inline struct wf_id_view wf_id_view_of(const int32_t *ids, int64_t count)
{
    struct wf_id_view view = {ids, count, false};
    return view;
}
/* out[0 .. count-1] = ids begin .. begin+count-1, which must be there. */
WF_API void wf_id_view_copy(struct wf_id_view ids, int64_t begin, int64_t count, int32_t *out);

/* Random crops. Each row is `context` ids from a uniformly random start in 0 .. count-context-1 and, as targets, the
 * ids one further on. The start is a function of (seed, step, row) alone, by Philox: a run resumes at step s by asking for
 * step s, and the batch is the same whether it is taken whole, in micro-batches of accumulation, or shared out among
 * processes, as long as rows are numbered through the whole batch. */
struct wf_crops {
    struct wf_id_view ids;
    int64_t context;
    uint64_t seed;
};

/* WF_ERR_ARGUMENT when context is not positive or there are fewer than context + 1 ids. Nothing is allocated, here and below. */
WF_API wf_status wf_crops_init(struct wf_crops *crops, struct wf_id_view ids, int64_t context, uint64_t seed, wf_error *error) WF_CHECKED;
/* Fills x[rows * context] and y[rows * context] with rows first_row .. first_row+rows-1 of the batch of `step`:
 * y[r][t] is the id after x[r][t]; y may be NULL. step and first_row are not negative. */
WF_API void wf_crops_fill(const struct wf_crops *crops, int64_t step, int64_t first_row, int64_t rows, int32_t *x, int32_t *y);
/* Where row `row` of the batch of `step` starts. */
WF_API int64_t wf_crops_start(const struct wf_crops *crops, int64_t step, int64_t row);

/* `chosen` of `total` equal pieces, evenly spread. */
struct wf_spread {
    int64_t chosen, total;
};

/* Evaluation over a whole sequence: windows of `context` side by side, up to `rows` of them a batch, then what is left as one
 * window that may be shorter. Each id but the first is a target exactly once.
 *
 *     wf_windows_init(&w, ids, T, 64, error);
 *     for (struct wf_window_batch b; wf_windows_next(&w, &b);)
 *         ... b.x [b.rows,b.cols] -> loss against b.y [b.rows,b.cols] ...
 *     wf_windows_free(&w);                                                                                                 */
struct wf_windows {
    struct wf_id_view ids;
    int64_t context, rows;
    int64_t position; /* the id after this one is the next target; 0 starts again */
    int64_t batch;    /* batches that were given, of those that a limit chooses */
    int32_t *buffer;  /* [rows * context + 1]: narrow ids, widened; else NULL */
    struct wf_spread spread; /* of wf_windows_limit */
};
struct wf_window_batch {
    const int32_t *x, *y; /* dense [rows,cols], windows side by side being the sequence itself; valid until the next call */
    int64_t rows, cols;
};

/* WF_ERR_ARGUMENT when there is no target (fewer than 2 ids), or context or rows is not positive; WF_ERR_MEMORY. */
WF_API wf_status wf_windows_init(struct wf_windows *windows, struct wf_id_view ids, int64_t context, int64_t rows, wf_error *error) WF_CHECKED;
/* Before the first wf_windows_next: about `limit` targets instead of all, in batches evenly spread over the sequence, the same each time.
 * 0: all. */
WF_API void wf_windows_limit(struct wf_windows *windows, int64_t limit);
WF_API bool wf_windows_next(struct wf_windows *windows, struct wf_window_batch *batch); /* false at the end */
WF_API void wf_windows_free(struct wf_windows *windows); /* also after a failure */

WF_END_DECLS

#endif
