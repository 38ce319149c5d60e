/* SPDX-License-Identifier: MIT */
/* What several ops share: operands seen as rows, checks of operands and ids, sums over rows. */
#ifndef WEFT_OPS_ROWS_H
#define WEFT_OPS_ROWS_H

#include <weft/op.h>

/* Fails unless operand i is there and of the dtype. */
wf_status wf_want(wf_call *c, int i, wf_dtype dtype);
/* The same for a vector [d] (gains and biases); fine when it is absent. */
wf_status wf_want_vector(wf_call *c, int i, const char *what, int64_t d);

/* a [..., d] as [rows, d] under any two strides, or a dense copy when its strides do not allow that; ndim 1: one row. */
wf_array wf_matrix_of(wf_call *c, const wf_array *a);
/* The same with the elements of a row side by side. */
wf_array wf_rows_of(wf_call *c, const wf_array *a);
/* a [..., d] as dense [rows, d]. */
wf_array wf_dense_rows_of(wf_call *c, const wf_array *a);

/* Rows of a block of work: a function of d alone. */
static inline int64_t wf_block_rows(int64_t d)
{
    int64_t rows = d > 0 ? 8192 / d : 64;
    return rows < 1 ? 1 : rows > 64 ? 64 : rows;
}

/* y[j] (+)= sum over rows of x[row, j], in blocks of rows that depend on the shape alone. x: [rows, d] with elements of a
 * row side by side. False without memory. */
bool wf_column_sums(wf_call *c, const wf_array *x, bool add, wf_real *y);

/* The same for planes [rows, d] that follow each other: y [planes, d]. */
bool wf_plane_sums(wf_call *c, const wf_real *x, int64_t planes, int64_t rows, int64_t d, int64_t stride, bool add, wf_real *y);

/* Dense ids must lie in 0 .. limit-1, or be *ignore when that is not NULL; *counted (may be NULL) is the number
 * of those that do. Fails with the first bad one's index and value. */
wf_status wf_check_ids(wf_call *c, const wf_array *ids, const char *what, int64_t limit, const int32_t *ignore, int64_t *counted);

#endif
