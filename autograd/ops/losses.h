/* SPDX-License-Identifier: MIT */
/* Shared by the ops cross_entropy and linear_cross_entropy. The targets of both ops are ids in the shape of the first operand without its
 * last dimension. */
#ifndef WEFT_OPS_LOSSES_H
#define WEFT_OPS_LOSSES_H

#include "common.h"

struct loss_attr {
    double smoothing;  /* label smoothing, 0 .. 1 */
    double normalizer; /* divisor of the mean; 0: the number of targets that count, or the sum of their class weights */
    bool has_ignore;   /* targets that equal `ignore` do not count */
    int32_t ignore;
    enum wf_reduction reduction;
    const wf_real *weight; /* [classes]: class weights, or NULL */
    int64_t classes;       /* number of class weights */
    double weights;        /* sum of the class weights */
    double softcap;        /* a logit z becomes softcap tanh(z / softcap); 0: logits stay as they are */
};

/* Sums of the losses of rows. */
struct loss_sums {
    double smoothed; /* with label smoothing */
    double plain;    /* without label smoothing */
};

/* Arrays with an element for each row. Each may be NULL. */
struct loss_each {
    wf_real *smoothed;       /* result: losses with label smoothing */
    wf_real *plain;          /* result: losses without label smoothing */
    const wf_real *upstream; /* in a backward: the gradients of the losses */
};

/* In a shape rule: checks the options, and checks the targets (operand `targets`) against the leading dimensions of x; v is the number of
 * classes. Sets the shapes of both outputs. */
wf_status loss_shape(wf_call *c, const wf_array *x, int targets, int64_t v);
/* Checks the values of the targets. *scale becomes 1 over the divisor of the summed losses; 0 if no target counts or the divisor is 0. */
wf_status loss_scale(wf_call *c, const wf_array *targets, int64_t v, double *scale);
/* Computes the losses of contiguous rows of v logits. Adds them to *sums and writes them to the arrays of `each` (`sums` and `each` may be
 * NULL). If dlogits is given (it may equal logits), also computes the gradients of the logits, times `scale` and times each->upstream if
 * that is given. With a softcap, `logits` are those before it, and so are their gradients. Without memory it is false, and the tape has the
 * error. */
bool loss_rows(wf_call *c, int64_t rows, int64_t v, const wf_real *logits, const int32_t *target, double scale, wf_real *dlogits,
               struct loss_sums *sums, const struct loss_each *each) WF_CHECKED;
/* Sets the results of a call with a reduction. */
void loss_set(wf_call *c, const struct loss_sums *sums, double scale);
/* For a call without a reduction: the places in its results for row `first` and the rows after it. */
struct loss_each loss_each_of(const wf_call *c, int64_t first);
bool loss_is_reduced(const wf_call *c);
/* Applies `op`, or `each` if the options ask for no reduction. Hands out the plain loss, if the options ask for it, without a gradient. */
wf_tensor *loss_apply(const wf_op *op, const wf_op *each, int inputs, wf_tensor *const in[], const struct wf_cross_entropy_options *o);

/* In a `gradient`: the gradient of the logits z (before a softcap), from ops on tensors. */
wf_tensor *loss_logits_gradient(const wf_gradient_call *c, wf_tensor *z, wf_tensor *targets);

/* Attributes of the test cases. */
#define LOSS_HOW(...) ATTR(struct loss_attr, __VA_ARGS__)
#define LOSS_WEIGHTS .weight = (const wf_real[]){0.5, 2, 1, 3, 0.25}, .classes = 5, .weights = 6.75

#endif
