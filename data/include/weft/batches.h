/* SPDX-License-Identifier: MIT */
/* Batches from a sequence of ids: random crops for training, and adjacent windows for evaluation. struct wf_crops and struct wf_windows
 * only point to the ids, so the ids must outlive them. */
#ifndef WEFT_BATCHES_H
#define WEFT_BATCHES_H

#include <weft/error.h>

WF_BEGIN_DECLS

/* A read-only sequence of ids. Each id has 32 bits, or 16 bits if the vocabulary has at most 65,536 entries. A view does not own the ids,
 * and is passed by value. */
struct wf_id_view {
    const void *data; /* uint16_t [count] if `narrow`, else int32_t [count] */
    int64_t count;
    bool narrow;
};
static inline struct wf_id_view wf_id_view_of(const int32_t *ids, int64_t count)
{
    struct wf_id_view view = {ids, count, false};
    return view;
}
/* Copies ids begin .. begin+count-1 to out[0 .. count-1]. The sequence must have these ids. */
WF_API void wf_id_view_copy(struct wf_id_view ids, int64_t begin, int64_t count, int32_t *out);

/* Random crops. A row of a batch is `context` ids that begin at a random index, uniform in 0 .. ids.count-context-1; the ids one position
 * later are its targets. This index depends only on the seed, the step and the row, from which Philox, a random number generator without
 * state, computes it. Therefore a run can resume at any step, and several processes or micro-batches can share a batch, as long as each row
 * keeps its number in the whole batch. */
struct wf_crops {
    struct wf_id_view ids;
    int64_t context;
    uint64_t seed;
};

/* Sets *crops. WF_ERR_ARGUMENT: `context` is below 1, or there are fewer than context + 1 ids. The functions wf_crops_... allocate no
 * memory. */
WF_API wf_status wf_crops_init(struct wf_crops *crops, struct wf_id_view ids, int64_t context, uint64_t seed, wf_error *error) WF_CHECKED;
/* Fills x [rows,context] and y [rows,context] with rows first_row .. first_row+rows-1 of the batch of `step`. y[r][t] is the id that
 * follows x[r][t]; `y` may be NULL. `step` and `first_row` must not be negative. */
WF_API void wf_crops_fill(const struct wf_crops *crops, int64_t step, int64_t first_row, int64_t rows, int32_t *x, int32_t *y);
/* The index in `ids` at which row `row` of the batch of `step` starts. */
WF_API int64_t wf_crops_start(const struct wf_crops *crops, int64_t step, int64_t row);

/* How many of the equal pieces of a sequence are selected. The selected pieces are evenly spread over the sequence. */
struct wf_spread {
    int64_t chosen; /* number of selected pieces; 0: all pieces are used */
    int64_t total;  /* pieces of the sequence */
};

/* Evaluation over a whole sequence: adjacent windows of `context` ids, up to `rows` windows per batch. The last window may be shorter.
 * Each id except the first is a target exactly once.
 *
 *     wf_windows_init(&w, ids, T, 64, error);
 *     for (struct wf_window_batch b; wf_windows_next(&w, &b);)
 *         ... b.x [b.rows,b.cols] -> loss against b.y [b.rows,b.cols] ...
 *     wf_windows_free(&w);                                                                                                 */
struct wf_windows {
    struct wf_id_view ids;
    int64_t context;
    int64_t rows;            /* number of windows per batch; wf_windows_limit may reduce it */
    int64_t position;        /* index in `ids` of the next window's first id; set it to 0 to start again */
    int64_t batch;           /* number of batches returned so far, if wf_windows_limit set a limit */
    int32_t *buffer;         /* [rows * context + 1]: 16-bit ids converted to 32 bits; NULL for 32-bit ids */
    struct wf_spread spread; /* the batches that wf_windows_limit selected */
    bool no_targets;         /* windows without targets: every id is in exactly one window, and `y` of the batches is NULL. Set it before
                                wf_windows_limit */
};
struct wf_window_batch {
    const int32_t *x; /* inputs [rows,cols], contiguous; valid until the next call */
    const int32_t *y; /* targets [rows,cols], contiguous; valid until the next call; NULL if `no_targets` is set */
    int64_t rows, cols;
};

/* Initialises *windows, with its position at the first window. WF_ERR_ARGUMENT: `context` or `rows` is below 1, or there are fewer than 2
 * ids and so no target. WF_ERR_MEMORY. */
WF_API wf_status wf_windows_init(struct wf_windows *windows, struct wf_id_view ids, int64_t context, int64_t rows,
                                 wf_error *error) WF_CHECKED;
/* Limits the evaluation to about `limit` targets; 0: all targets. The selected batches are spread evenly over the sequence, and are always
 * the same ones. Call this function before the first wf_windows_next. */
WF_API void wf_windows_limit(struct wf_windows *windows, int64_t limit);
/* Sets *batch to the next batch and returns true. Returns false at the end. */
WF_API bool wf_windows_next(struct wf_windows *windows, struct wf_window_batch *batch);
WF_API void wf_windows_free(struct wf_windows *windows); /* allowed also after an error of wf_windows_init */

WF_END_DECLS

#endif
