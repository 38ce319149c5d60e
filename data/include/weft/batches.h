/* SPDX-License-Identifier: MIT */
/* Batches from a sequence of ids: random crops for training, adjacent windows for evaluation. Both keep a pointer to the ids, which must
 * outlive them. */
#ifndef WEFT_BATCHES_H
#define WEFT_BATCHES_H

#include <weft/error.h>

WF_BEGIN_DECLS

/* A read-only sequence of ids of 32 bits, or of 16 bits for vocabularies of at most 65,536 entries. Passed by value; does not own the
 * data. */
struct wf_id_view {
    const void *data; /* int32_t [count], or uint16_t [count] if `narrow` */
    int64_t count;
    bool narrow;
};
static inline struct wf_id_view wf_id_view_of(const int32_t *ids, int64_t count)
{
    struct wf_id_view view = {ids, count, false};
    return view;
}
/* Copies ids begin .. begin+count-1, which must exist, to out[0 .. count-1]. */
WF_API void wf_id_view_copy(struct wf_id_view ids, int64_t begin, int64_t count, int32_t *out);

/* Random crops. Each row is `context` ids from a uniformly random start in 0 .. count-context-1, with the ids one position later as
 * targets. The start depends on (seed, step, row) only (Philox): a run can resume at any step, and a batch can be computed whole, in
 * micro-batches or on several processes, if rows are numbered within the whole batch. */
struct wf_crops {
    struct wf_id_view ids;
    int64_t context;
    uint64_t seed;
};

/* WF_ERR_ARGUMENT: context is not positive, or there are fewer than context + 1 ids. Functions on crops do not allocate. */
WF_API wf_status wf_crops_init(struct wf_crops *crops, struct wf_id_view ids, int64_t context, uint64_t seed, wf_error *error) WF_CHECKED;
/* Fills x[rows * context] and y[rows * context] with rows first_row .. first_row+rows-1 of the batch of `step`:
 * y[r][t] is the id after x[r][t]; y may be NULL. step and first_row must not be negative. */
WF_API void wf_crops_fill(const struct wf_crops *crops, int64_t step, int64_t first_row, int64_t rows, int32_t *x, int32_t *y);
/* The start of row `row` of the batch of `step`. */
WF_API int64_t wf_crops_start(const struct wf_crops *crops, int64_t step, int64_t row);

/* A choice of `chosen` of `total` equal pieces, evenly spread. */
struct wf_spread {
    int64_t chosen, total;
};

/* Evaluation over a whole sequence: adjacent windows of `context` ids, up to `rows` per batch; the last window may be shorter. Each id
 * except the first is a target exactly once.
 *
 *     wf_windows_init(&w, ids, T, 64, error);
 *     for (struct wf_window_batch b; wf_windows_next(&w, &b);)
 *         ... b.x [b.rows,b.cols] -> loss against b.y [b.rows,b.cols] ...
 *     wf_windows_free(&w);                                                                                                 */
struct wf_windows {
    struct wf_id_view ids;
    int64_t context, rows;
    int64_t position;        /* the id after this one is the next target; 0 starts again */
    int64_t batch;           /* number of batches returned so far, if a limit is set */
    int32_t *buffer;         /* [rows * context + 1]: narrow ids converted to 32 bits; else NULL */
    struct wf_spread spread; /* of wf_windows_limit */
    bool no_targets;         /* to be set before wf_windows_limit: every id is in one window once, and y is NULL */
};
struct wf_window_batch {
    const int32_t *x, *y; /* [rows,cols], contiguous; valid until the next call */
    int64_t rows, cols;
};

/* WF_ERR_ARGUMENT: there is no target (fewer than 2 ids), or context or rows is not positive. WF_ERR_MEMORY. */
WF_API wf_status wf_windows_init(struct wf_windows *windows, struct wf_id_view ids, int64_t context, int64_t rows,
                                 wf_error *error) WF_CHECKED;
/* Limits the evaluation to about `limit` targets, in batches spread evenly over the sequence, always the same ones; 0: all targets. Call it
 * before the first wf_windows_next. */
WF_API void wf_windows_limit(struct wf_windows *windows, int64_t limit);
WF_API bool wf_windows_next(struct wf_windows *windows, struct wf_window_batch *batch); /* false at the end */
WF_API void wf_windows_free(struct wf_windows *windows);                                /* also after a failure */

WF_END_DECLS

#endif
