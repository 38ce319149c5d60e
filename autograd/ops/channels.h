/* SPDX-License-Identifier: MIT */
/* Norms of channels, batch_norm.c and group_norm.c: x [N,C], [B,C,T] or [B,C,H,W], with a weight and a bias [C]. */
#ifndef WEFT_OPS_CHANNELS_H
#define WEFT_OPS_CHANNELS_H

#include <math.h>

#include "common.h"

enum { X, WEIGHT, BIAS }; /* operands; weight and bias may be absent */

/* Checks these operands and eps. The result has the shape of x. */
static inline wf_status channels_shape(wf_call *c, double eps)
{
    if (wf_same_shape(c) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *x = &c->in[X];
    if (x->ndim < 2 || x->ndim > 4)
        return wf_call_fail(c, WF_ERR_SHAPE, "x must be [N,C], [B,C,T] or [B,C,H,W]");
    if (!(eps >= 0) || isinf(eps))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "eps = %g must be a number of at least 0", eps);
    const bool vectors = wf_want_vector(c, WEIGHT, "weight", x->dim[1]) == WF_OK && wf_want_vector(c, BIAS, "bias", x->dim[1]) == WF_OK;
    return vectors ? WF_OK : WF_ERR_ARGUMENT;
}

/* The elements of one channel of one picture; 1 for [N,C]. */
static inline int64_t plane_size(int ndim, const int64_t *dim)
{
    return (ndim > 2 ? dim[2] : 1) * (ndim > 3 ? dim[3] : 1);
}

/* Mean and variance (over n) of n > 0 elements, from the sums of channel_moments about `first`, one of them, which lose no digits. */
static inline void channel_statistics(wf_real first, double n, const double sum[2], double *mean, double *variance)
{
    const double shift = sum[0] / n, square = sum[1] / n - shift * shift;
    *mean = (double)first + shift;
    *variance = square < 0 ? 0 : square; /* keeps a NaN */
}

#endif
