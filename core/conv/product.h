/* SPDX-License-Identifier: MIT */
/* Declarations that the files of core/conv share. */
#ifndef WEFT_CONV_PRODUCT_H
#define WEFT_CONV_PRODUCT_H

#include "patches.h"

enum {
    CONV_COLUMNS = 256,                         /* the most columns of a task: their packed panels of a cache block are 256 KiB in float */
    CONV_TASKS = 4,                             /* tasks per thread, where there is enough work */
    CONV_BAND = 3 << 16,                        /* the most bytes of a task's padded copy of x, where bands can be smaller */
    CONV_WEIGHTS = (1 << 16) / sizeof(wf_real), /* packed weights, about, that are multiplied by a whole band before the next */
    CONV_BLOCK = 256 /* patches in a cache block of the gradient of the weight, a constant that fixes the order of additions */
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

/* direct.c: the same product, with the same bits, whose panels are not packed: the register tiles read a padded copy of x. Whether that is
 * faster, and the product. */
bool conv_direct_pays(const struct conv_product *w);
bool conv_direct_run(const struct conv_product *w) WF_CHECKED;
/* The number of rows (dim 0) or columns (1) from the least to the greatest that taps read for one output, and the least. */
int64_t conv_reach(const struct conv_patches *p, int dim, int64_t *least);
/* The elements of a padded copy of a channel, about, as a double: paddings and kernels can reach far beyond all memory. */
double conv_whole_copy(const struct conv_patches *p);

/* direct_weight.c: the gradient of the weight in this way. */
bool conv_direct_weight_pays(const struct wf_conv *s, const struct conv_patches *p);
bool conv_direct_weight(const struct wf_conv *s, const struct conv_patches *p, const wf_real *dy, wf_real *dweight, bool add) WF_CHECKED;

/* gradients.c: the taps of one dimension that reach the positions of a phase; `tap` and `at` have room for all taps. */
struct conv_phase_taps {
    int64_t count;
    int64_t *tap, *at; /* index in the kernel; where it reads dy, counted from the position's index in the phase */
};
void conv_find_taps(const struct wf_conv *s, int dim, int64_t remainder, struct conv_phase_taps *out);

/* Fetches the beginning of what a picture reads or writes, some time before: pictures are so short that the processor's own prefetching
 * sees little of each. */
static inline void conv_fetch(const wf_real *x, int64_t n)
{
    enum { AHEAD = 8192 / sizeof(wf_real) };
    for (int64_t i = 0; i < WF_MIN(n, AHEAD); i += CACHE_LINE / (int64_t)sizeof *x)
        __builtin_prefetch(x + i, 0, 2);
}

/* depthwise_lanes.c: filters that read one channel each, of pictures with short rows. Whether that is faster, for the outputs and the
 * gradient of the weight, or for the gradient of x (`data`); and the same functions as those of depthwise.c. */
bool conv_lanes_pay(const struct wf_conv *s, bool data);
bool conv_lanes_forward(const struct wf_conv *s, const wf_real *x, const wf_real *weight, const wf_real *bias, wf_real *y,
                        bool add) WF_CHECKED;
bool conv_lanes_data(const struct wf_conv *s, const wf_real *dy, const wf_real *weight, const wf_real *bias, wf_real *dx,
                     bool add) WF_CHECKED;
bool conv_lanes_weight(const struct wf_conv *s, const wf_real *x, const wf_real *dy, wf_real *dweight, bool add) WF_CHECKED;

/* depthwise.c: each filter reads one channel. */
bool conv_depthwise_forward(const struct wf_conv *s, const wf_real *x, const wf_real *weight, const wf_real *bias, wf_real *y,
                            bool add) WF_CHECKED;
bool conv_depthwise_data(const struct wf_conv *s, const wf_real *dy, const wf_real *weight, const wf_real *bias, wf_real *dx,
                         bool add) WF_CHECKED;
bool conv_depthwise_weight(const struct wf_conv *s, const wf_real *x, const wf_real *dy, wf_real *dweight, bool add) WF_CHECKED;

#endif
