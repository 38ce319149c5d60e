/* SPDX-License-Identifier: MIT */
/* What the two cross-entropies share. */
#ifndef WEFT_OPS_LOSSES_H
#define WEFT_OPS_LOSSES_H

#include <weft/op.h>
#include <weft/ops.h>

struct loss_attr {
    double smoothing, normalizer;
    bool has_ignore;
    int32_t ignore;
};
struct loss_attr wf_loss_attr(const struct wf_cross_entropy_options *options);

/* In shape: checks options, and targets (operand i) against the leading dims of x; sets both outputs. */
wf_status wf_loss_shape(wf_call *c, const wf_array *x, int targets);
/* Checks the targets' values; *scale is 1 over what the sum is divided by, 0 when no target counts. */
wf_status wf_loss_scale(wf_call *c, const wf_array *targets, int64_t v, double *scale);

/* Losses of dense rows of logits, and their gradients if dlogits (which may be logits) is given. Adds the sums. */
struct loss_sums {
    double smoothed, plain;
};
bool wf_loss_rows(wf_call *c, int64_t rows, int64_t v, const wf_real *logits, const int32_t *target, double scale, wf_real *dlogits,
                  struct loss_sums *sums);
void wf_loss_set(wf_call *c, const struct loss_sums *sums, double scale);
/* Applies, with the plain loss as a constant. */
wf_tensor *wf_loss_apply(const wf_op *op, int inputs, wf_tensor *const in[], const struct wf_cross_entropy_options *options);

#endif
