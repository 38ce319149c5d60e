/* SPDX-License-Identifier: MIT */
/* How the persistent buffers of a registry will change at the next update. Each wf_running_average of a pass is b = (1 - rate) b + rate x
 * for a buffer b. Several of them, one after the other, are b = keep b + value: a later one (keep', value') makes that keep' keep and
 * keep' value + value'. So the changes of any number of passes take the memory of one, and those of consecutive groups of passes can be
 * joined in their order. */
#ifndef WEFT_INTERNAL_AVERAGES_H
#define WEFT_INTERNAL_AVERAGES_H

#include <weft/op.h>

/* One persistent buffer: number[at] is `keep`, and number[at + 1 ...] are the `count` elements of `value`. */
struct wf_average {
    int parameter; /* the buffer's index in its registry */
    int64_t at, count;
};
/* wf_grads.averages. It and its arrays are one allocation. */
struct wf_averages {
    double *number; /* [numbers] */
    int64_t numbers;
    struct wf_average *buffer; /* [buffers], in the order of declaration */
    int buffers;
};

/* The state in which no buffer changes: keep 1, value 0. */
void wf_averages_clear(struct wf_averages *a);
/* Puts `later`, numbers of the same layout, after the changes in a. */
void wf_averages_join(struct wf_averages *a, const double *later);

#endif
