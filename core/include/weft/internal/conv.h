/* SPDX-License-Identifier: MIT */
/* Convolution over pictures, and its gradients. All arrays are contiguous: x [batch, channels, height, width], y [batch, filters, rows,
 * cols], weight [filters, channels / groups, kernel[0], kernel[1]]. Output (i, j) of a filter reads x at the rows i * stride[0] - before[0]
 * + r * dilation[0] for r < kernel[0], and at the columns likewise; x counts as 0 outside of the picture. A sequence is a picture of one
 * row.
 *
 * The convolution is the product of the weight with the matrix of patches, whose column (b, i, j) has the elements of x that this output
 * reads. The matrix is never in memory. If rows of outputs fill most of their vectors, each task copies a band of x once, padded with
 * zeros, and its register tiles load the patches from this copy; otherwise it packs the panels of the matrix that its register tiles read
 * next (Chetlur et al. 2014). If each filter reads one channel only (depthwise), the elements are multiplied directly.
 *
 * Every element of a result is a chain of multiply-adds whose order the shape alone determines, so the bits do not depend on threads, and
 * in the forward not on the other pictures. Without memory for packing the functions return false. */
#ifndef WEFT_INTERNAL_CONV_H
#define WEFT_INTERNAL_CONV_H

#include <weft/compute.h>

struct wf_conv {
    int64_t batch, groups; /* groups divide channels and filters: filter f reads the channels of its own group only */
    int64_t channels, height, width;
    int64_t filters, rows, cols;
    int64_t kernel[2], stride[2], before[2], dilation[2];
};

/* y = conv(x, weight) + bias [filters], which may be NULL; if `add`, y += that. */
bool wf_conv_forward(const struct wf_conv *s, const wf_real *x, const wf_real *weight, const wf_real *bias, wf_real *y,
                     bool add) WF_CHECKED;
/* The gradient of x: dx = the transpose of the convolution applied to dy; if `add`, dx += that. With a bias [channels] (may be NULL), which
 * is added to each element, this is a transposed convolution of dy. */
bool wf_conv_data(const struct wf_conv *s, const wf_real *dy, const wf_real *weight, const wf_real *bias, wf_real *dx, bool add) WF_CHECKED;
/* The gradient of the weight, a sum over all pictures and outputs: dweight = ..., or if `add` dweight += ... */
bool wf_conv_weight(const struct wf_conv *s, const wf_real *x, const wf_real *dy, wf_real *dweight, bool add) WF_CHECKED;

#endif
