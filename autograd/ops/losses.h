/* SPDX-License-Identifier: MIT */
/* Shared by cross_entropy and linear_cross_entropy. Operands: targets, ids of the shape of the first operand without its last dimension.
 */
#ifndef WEFT_OPS_LOSSES_H
#define WEFT_OPS_LOSSES_H

#include "common.h"

struct loss_attr {
    double smoothing, normalizer;
    bool has_ignore;
    int32_t ignore;
    enum wf_reduction reduction;
    const wf_real *weight; /* of the classes, or NULL */
    int64_t classes;       /* of these weights */
    double weights;        /* their sum */
};

struct loss_sums {
    double smoothed, plain;
};

/* Rows of losses, smoothed or not, and of their upstream gradients; each may be NULL. */
struct loss_each {
    wf_real *smoothed, *plain;
    const wf_real *upstream;
};

/* In shape: checks options, and targets (operand i) against the leading dims of x; v classes. Sets both outputs. */
wf_status loss_shape(wf_call *c, const wf_array *x, int targets, int64_t v);
/* Checks the targets' values; *scale is 1 over what the sum is divided by, 0 when no target counts. */
wf_status loss_scale(wf_call *c, const wf_array *targets, int64_t v, double *scale);
/* Losses of contiguous rows of logits, and their gradients if dlogits (which may be logits) is given. Adds the sums; fills `each`, or
 * multiplies gradients by what it holds. False without memory. */
bool loss_rows(wf_call *c, int64_t rows, int64_t v, const wf_real *logits, const int32_t *target, double scale, wf_real *dlogits,
               struct loss_sums *sums, const struct loss_each *each);
/* The results of a call with a reduction; and where one without writes its rows, from `first` on. */
void loss_set(wf_call *c, const struct loss_sums *sums, double scale);
struct loss_each loss_each_of(const wf_call *c, int64_t first);
bool loss_is_reduced(const wf_call *c);
/* Applies one of two ops, `each` where there is no reduction, with the plain loss as a constant. */
wf_tensor *loss_apply(const wf_op *op, const wf_op *each, int inputs, wf_tensor *const in[], const struct wf_cross_entropy_options *o);

/* Of cases. */
#define LOSS_HOW(...) ATTR(struct loss_attr, __VA_ARGS__)
#define LOSS_WEIGHTS .weight = (const wf_real[]){0.5, 2, 1, 3, 0.25}, .classes = 5, .weights = 6.75

#endif
