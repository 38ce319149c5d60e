/* SPDX-License-Identifier: MIT */
/* Declarations that the files of core/conv share. */
#ifndef WEFT_CONV_PRODUCT_H
#define WEFT_CONV_PRODUCT_H

#include "patches.h"

enum {
    CONV_COLUMNS = 256, /* the most columns of a task: their packed panels of a cache block are 256 KiB in float */
    CONV_BLOCK = 256    /* patches in a cache block of the gradient of the weight, a constant that fixes the order of additions */
};

/* Where the results of a product go. */
struct conv_out {
    wf_real *y;
    int64_t batch_step, filter_step, row_step, col_step; /* elements from one picture, filter, row or column to the next */
};

/* For each group: out [m, columns of the matrix of patches] = a [m, k] * the matrix + bias [m]. The matrices a and the biases of the groups
 * lie end to end, and so do the channels of their patches. */
struct conv_product {
    struct conv_patches p; /* of the first group */
    int64_t groups, m, k;
    const wf_real *a, *bias;
    bool add;
    struct conv_out out;
    int64_t shares, across,
        down; /* set by conv_product_run: tasks of a picture (0: a task has several pictures), of all columns, of the rows */
};
/* The patches of x that the convolution reads, for the first group. Fills tap [kernel[0] * kernel[1]]. */
struct conv_patches conv_patches_of(const struct wf_conv *s, const wf_real *x, struct conv_tap *tap);
bool conv_product_run(const struct conv_product *given) WF_CHECKED;

/* depthwise.c: each filter reads one channel. */
bool conv_depthwise_forward(const struct wf_conv *s, const wf_real *x, const wf_real *weight, const wf_real *bias, wf_real *y,
                            bool add) WF_CHECKED;
bool conv_depthwise_data(const struct wf_conv *s, const wf_real *dy, const wf_real *weight, const wf_real *bias, wf_real *dx,
                         bool add) WF_CHECKED;
bool conv_depthwise_weight(const struct wf_conv *s, const wf_real *x, const wf_real *dy, wf_real *dweight, bool add) WF_CHECKED;

#endif
