/* SPDX-License-Identifier: MIT */
/* Chooses the items of shuffled batches, epoch by epoch, and copies the rows of an array that belong to a batch, as PyTorch's DataLoader
 * does.
 *
 *   struct wf_epochs epochs;
 *   wf_epochs_init(&epochs, images, 64, seed, &error);
 *   for (int64_t step = 0; step < 10 * wf_epochs_steps(&epochs); step++) {
 *       int64_t row[64], n = wf_epochs_batch(&epochs, step, row);
 *       wf_rows_copy(&pixels, row, n, WF_REAL, x, &error);     x [n, ...], the rows of an array [images, ...]
 *
 * A batch is a pure function of (seed, step). So a training that resumes at any step sees the same batches, and several processes agree on
 * them. In a task of wf_fit (weft/fit.h) the function `next` calls wf_epochs_batch, and the task needs no functions `put` and `get`. */
#ifndef WEFT_EPOCHS_H
#define WEFT_EPOCHS_H

#include <weft/array.h>
#include <weft/error.h>

WF_BEGIN_DECLS

struct wf_epochs_options {
    bool drop_last; /* drop the last batch of an epoch if it is short; each shuffled epoch drops other items */
    bool in_order;  /* items 0, 1, 2, ... in every epoch, for evaluation */
};
/* A plain value without allocated memory. No function except init changes it, so threads may share it. */
struct wf_epochs {
    int64_t items;
    int64_t batch; /* items of a batch */
    int64_t steps; /* batches of an epoch */
    uint64_t seed;
    bool in_order;
    int low;  /* number of bits of the lower half of an item's number, in the Feistel network of wf_epochs_item */
    int high; /* number of bits of the upper half */
};

/* Sets *epochs to epochs of the items 0 .. items-1 in batches of `batch` items. `options` may be NULL. WF_ERR_ARGUMENT: `items` or `batch`
 * is below 1, or `drop_last` is set and `items` is below `batch`. */
WF_API wf_status wf_epochs_init_with(struct wf_epochs *epochs, int64_t items, int64_t batch, uint64_t seed,
                                     const struct wf_epochs_options *options, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
/* wf_epochs_init(&epochs, items, batch, seed, &error, .drop_last = true) */
#define wf_epochs_init(epochs, items, batch, seed, error, ...)                                                                             \
    wf_epochs_init_with(epochs, items, batch, seed, &(struct wf_epochs_options){__VA_ARGS__}, error)
#endif
/* Sets rows[0 .. n-1] to the items of the batch of `step`, which counts from 0 over all epochs. The caller provides an array `rows` of
 * `batch` entries. Returns n, which is `batch`, or less for the last batch of an epoch, or 0 for a negative step. An epoch contains each
 * item once, except for items that `drop_last` drops. The call takes 50 to 100 ns per item and allocates nothing. */
WF_API int64_t wf_epochs_batch(const struct wf_epochs *epochs, int64_t step, int64_t *rows);
WF_API int64_t wf_epochs_steps(const struct wf_epochs *epochs); /* number of batches of an epoch */
/* The epoch to which `step` belongs: step / wf_epochs_steps(epochs). */
WF_API int64_t wf_epochs_epoch(const struct wf_epochs *epochs, int64_t step);
/* The item at position `place`, 0 .. items-1, of epoch `epoch`, 0, 1, ...; -1 outside these ranges. If `in_order` is set, the item is
 * `place`. Otherwise each epoch has a permutation of the items with the key (seed, epoch): a Feistel network of 8 rounds (Luby and Rackoff
 * 1988), which is applied again until its result is below `items` (Black and Rogaway 2002). */
WF_API int64_t wf_epochs_item(const struct wf_epochs *epochs, int64_t epoch, int64_t place);

/* out[i] = array[rows[i]] for i = 0 .. count-1. A row is an index of the array's first dimension, and may occur several times in `rows`.
 * The array may have any dtype and strides, and may lie in a mapped file. `out` is row-major, [count, ...], of type `dtype`: WF_REAL for a
 * batch of wf_real, WF_I32 for ids. If `dtype` is not the array's own, elements are converted, for example NumPy's F64 to WF_REAL and I64
 * to WF_I32. wf_convert (weft/array.h) lists the conversions and their rounding. Large batches are copied in parallel. Allocates nothing.
 *
 * On an error nothing is written. WF_ERR_SHAPE: the array is invalid or has no dimensions. WF_ERR_ARGUMENT: a row is outside 0 .. dim[0]-1
 * (the message has its position in `rows`); there is no such conversion, as from F32 to I32; or `dtype` cannot hold an integer, such as
 * 2^31 in WF_I32 (the message has its row and value). */
WF_API wf_status wf_rows_copy(const wf_array *array, const int64_t *rows, int64_t count, wf_dtype dtype, void *out,
                              wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
