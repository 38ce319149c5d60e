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
/* Applies such an op: the result is that of the taken elements, and *ids (unless `ids` is NULL) the second result. A call that makes a
 * record has the second result in any case: as a tensor it can be read by `gradient`, after x was released too. (sorting.c) */
wf_tensor *apply_with_ids(const wf_op *op, const void *attr, wf_tensor *x, wf_tensor **ids);
/* For wf_op.gradient: the second result; a call without one is computed again from x. (sorting.c) */
wf_tensor *ids_of_taken(const wf_gradient_call *c, const wf_op *op);
/* spread_taken for wf_op.gradient. y and dy have dimension `dim`, or lack it if `reduced`. (sorting.c) */
void spread_taken_gradient(const wf_gradient_call *c, const wf_op *op, int dim, bool reduced);

#endif
