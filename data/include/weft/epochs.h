/* SPDX-License-Identifier: MIT */
/* Passes over a set of items as shuffled batches, and the rows of arrays that a batch has: what a DataLoader does.
 *
 *   struct wf_epochs epochs;
 *   wf_epochs_init(&epochs, images, 64, seed, &error);
 *   for (int64_t step = 0; step < 10 * wf_epochs_steps(&epochs); step++) {
 *       int64_t row[64], n = wf_epochs_batch(&epochs, step, row);
 *       wf_rows_copy(&pixels, row, n, WF_REAL, x, &error);     x [n, ...], the rows of an array [images, ...]
 *
 * A batch is a function of (seed, step), computed without state: a training that resumes at any step sees the same batches, and so do
 * several processes. In a task of wf_fit (weft/fit.h) `next` calls wf_epochs_batch, and there is nothing to put or get. */
#ifndef WEFT_EPOCHS_H
#define WEFT_EPOCHS_H

#include <weft/array.h>
#include <weft/error.h>

WF_BEGIN_DECLS

struct wf_epochs_options {
    bool drop_last; /* leaves out an epoch's last batch if it is short; which items that are differs from epoch to epoch */
    bool in_order;  /* items 0, 1, 2, ... in every epoch, for evaluation */
};
/* A plain value without memory; nothing changes it, so threads may share it. */
struct wf_epochs {
    int64_t items, batch, steps; /* steps: batches of an epoch */
    uint64_t seed;
    bool in_order;
    int low, high; /* bits of the two halves of the shuffled numbers */
};

/* Epochs of items 0 .. items-1 in batches of `batch`. WF_ERR_ARGUMENT: items or batch below 1; with drop_last fewer items than a batch. */
WF_API wf_status wf_epochs_init_with(struct wf_epochs *epochs, int64_t items, int64_t batch, uint64_t seed,
                                     const struct wf_epochs_options *options, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
/* wf_epochs_init(&epochs, items, batch, seed, &error, .drop_last = true) */
#define wf_epochs_init(epochs, items, batch, seed, error, ...)                                                                             \
    wf_epochs_init_with(epochs, items, batch, seed, &(struct wf_epochs_options){__VA_ARGS__}, error)
#endif
/* The items of the batch of step 0, 1, 2, ... in rows[0 .. n-1], which has room for `batch`. Returns n: `batch`, or less for the last of an
 * epoch; 0 for a negative step. Each item comes once in an epoch. 50 to 100 ns an item; allocates nothing. */
WF_API int64_t wf_epochs_batch(const struct wf_epochs *epochs, int64_t step, int64_t *rows);
WF_API int64_t wf_epochs_steps(const struct wf_epochs *epochs);               /* batches of an epoch */
WF_API int64_t wf_epochs_epoch(const struct wf_epochs *epochs, int64_t step); /* the epoch of a step: step / wf_epochs_steps */
/* The item at place 0 .. items-1 of epoch 0, 1, ...; -1 outside. The places of an epoch are a permutation with key (seed, epoch): a Feistel
 * network of 8 rounds (Luby and Rackoff 1988), applied until its number is below items (Black and Rogaway 2002). */
WF_API int64_t wf_epochs_item(const struct wf_epochs *epochs, int64_t epoch, int64_t place);

/* out[i] = array[rows[i]], i = 0 .. count-1: rows are the array's first dimension, of any dtype and strides, and of a mapped file too; out
 * is row-major, [count, ...], of `dtype`: WF_REAL for the wf_real of a batch, WF_I32 for ids. The array's own dtype is copied, any other
 * converted, so that NumPy's F64 and I64 become them; which pairs there are, and how floats are rounded: wf_convert (weft/array.h). A row
 * may come several times. In parallel for large batches; allocates nothing.
 *
 * Nothing is written on an error. WF_ERR_SHAPE: an array without dimensions, or an invalid one. WF_ERR_ARGUMENT: a row outside
 * 0 .. dim[0]-1, by its place in `rows`; dtypes that are not converted, such as F32 to I32; an integer that `dtype` does not hold, such as
 * 2^31 for WF_I32, by its row and value. */
WF_API wf_status wf_rows_copy(const wf_array *array, const int64_t *rows, int64_t count, wf_dtype dtype, void *out,
                              wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
