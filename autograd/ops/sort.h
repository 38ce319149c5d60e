/* SPDX-License-Identifier: MIT */
/* Sorts a row: NaN first, then descending; equal values in order of index. */
#ifndef WEFT_OPS_SORT_H
#define WEFT_OPS_SORT_H

#include <weft/op.h>

struct item {
    wf_real value;
    int32_t id; /* index in the row */
};

/* Whether a comes before b when a row is sorted: NaN first, then the greater value first, of equal values the smaller index first. */
static inline bool comes_before(struct item a, struct item b)
{
    bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan)
        return a_nan;
    return a.value == b.value || a_nan ? a.id < b.id : a.value > b.value;
}

/* Sorts all n elements of x into `to`. `other` is scratch memory for n items. If `ascending`, smaller values come first, and NaN last;
 * equal values are in order of index in either case. (sort.c) */
void sort_row(int64_t n, const wf_real *x, bool ascending, struct item *to, struct item *other);

/* The backward of an op that takes k elements along dimension `dim`, none of them twice: y = x[id], so dx[id] = dy. The ids are the second
 * result, or the first saved array. (extremes.c) */
wf_status spread_taken(wf_call *c, int dim, int64_t k);
/* The same for wf_op.gradient. y and dy have dimension `dim`, or lack it if `reduced`. Without a second result, `op` is applied again for
 * the ids. */
void spread_taken_gradient(const wf_gradient_call *c, const wf_op *op, int dim, bool reduced);

#endif
