/* SPDX-License-Identifier: MIT */
/* Helpers for several ops: checks of operands, operands seen as rows, contiguous gradients, sums, and matrix products. */
#ifndef WEFT_OPS_COMMON_H
#define WEFT_OPS_COMMON_H

#include <weft/compute.h>
#include <weft/internal/kernels.h>
#include <weft/internal/minmax.h>
#include <weft/internal/ops_all.h>
#include <weft/ops.h>

/* The attributes of a test case, for example ATTR(struct sum_attr, .dim = 1). */
#define ATTR(type, ...)                                                                                                                    \
    .attr = &(const type)                                                                                                                  \
    {                                                                                                                                      \
        __VA_ARGS__                                                                                                                        \
    }

/* --- checks --------------------------------------------------------------------------------------------------------- */

/* Fails unless operand i is given. */
wf_status wf_want_there(wf_call *c, int i);
/* Fails unless operand i is given and has this dtype. */
wf_status wf_want(wf_call *c, int i, wf_dtype dtype);
/* Fails unless operands 0 .. n-1 are given and real. */
wf_status wf_want_reals(wf_call *c, int n);
/* wf_want for an operand of real numbers that may be stored as bf16: only products and lookups read it, which widen it. */
wf_status wf_want_stored(wf_call *c, int i);
/* Fails unless operand i is absent or a real vector [d]. `what` names the vector in the message, for example "gain". */
wf_status wf_want_vector(wf_call *c, int i, const char *what, int64_t d);
/* Fails unless the offsets of `packed` divide exactly `rows` rows (weft/packed.h). `what` names the option in the message. */
wf_status wf_want_packed(wf_call *c, struct wf_packed packed, const char *what, int64_t rows);
/* The shape rule of an op with one real operand and a result of the same shape. */
wf_status wf_same_shape(wf_call *c);
/* Dimension `dim` of operand i, counted from the front; a negative `dim` counts from the end. -1, with the error set, if there is none. */
int wf_want_dim(wf_call *c, int i, int dim);
/* The attributes of an op that works along one dimension. */
struct along {
    int dim; /* a negative number counts from the end */
};

/* The attribute `dim` as a dimension of operand 0, counted from the front; -1, with the error set, if there is none. */
static inline int wf_along(wf_call *c)
{
    return wf_want_dim(c, 0, ((const struct along *)c->attr)->dim);
}

/* For the message that a dimension does not exist: says how many dimensions the operand has. Returns `text`, or a constant string. */
const char *wf_dims_text(int ndim, char *text, size_t size);
/* Removes dimension d, which has size 1 (any size if the array is empty). */
static inline void wf_drop_dim(wf_array *a, int d)
{
    a->ndim--;
    for (; d < a->ndim; d++) {
        a->dim[d] = a->dim[d + 1];
        a->stride[d] = a->stride[d + 1];
    }
}

/* The same array with dimension d moved to the end, and with its last dimension moved back to place d. */
static inline wf_array wf_dim_last(wf_array a, int d)
{
    for (; d + 1 < a.ndim; d++)
        a = wf_array_transpose(a, d, d + 1);
    return a;
}

static inline wf_array wf_dim_back(wf_array a, int d)
{
    for (int k = a.ndim - 1; k > d; k--)
        a = wf_array_transpose(a, k - 1, k);
    return a;
}

/* The shape rule of an op with two real operands, whose result has the shape that they broadcast to. */
wf_status wf_broadcast_shape(wf_call *c);
/* Fails unless each of the contiguous ids lies in 0 .. limit-1 or equals *ignore (NULL: no id is ignored). The message has `what` and the
 * index and value of the first bad id. *counted (may be NULL) becomes the number of ids in 0 .. limit-1 that differ from *ignore. */
wf_status wf_check_ids(wf_call *c, const wf_array *ids, const char *what, int64_t limit, const int32_t *ignore, int64_t *counted);

/* Writes the index of element i of a row-major array to `text`, for example "[1,0]", and returns `text`; for a scalar returns "". */
const char *wf_index_text(const wf_array *a, int64_t i, char *text, size_t size);
/* Operand i, which holds ids, made contiguous and checked to lie in 0 .. limit-1; data is NULL on an error. */
wf_array wf_ids_below(wf_call *c, int i, int64_t limit);

/* The shape rule of a reduction: the result is the real operand's shape without dimension `dim`, or with size 1 there if `keep`. */
wf_status wf_reduced_shape(wf_call *c, int dim, bool keep);
/* The same, or if `all` a scalar: the reduction of all elements, for which dim and keep are not read. */
wf_status wf_reduction_shape(wf_call *c, bool all, int dim, bool keep);
/* The number of elements that such a reduction makes into one. */
int64_t wf_reduction_terms(wf_call *c, bool all, int dim);
/* The shape of `a` without dimension `dim`, or with size 1 there if `keep`. */
wf_shape wf_shape_without(const wf_array *a, int dim, bool keep);

/* --- operands as rows; data is NULL if memory runs out -------------------------------------------------------------- */

/* `a` [..., d] as [rows, d] with any two strides; a contiguous copy if its strides do not allow that. A vector becomes one row. */
wf_array wf_matrix_of(wf_call *c, const wf_array *a);
/* Like wf_matrix_of, but the elements of each row are contiguous. */
wf_array wf_rows_of(wf_call *c, const wf_array *a);
/* Like wf_matrix_of, but the result is contiguous as a whole. */
wf_array wf_contiguous_rows_of(wf_call *c, const wf_array *a);
/* `a` itself, or if it holds numbers in bf16 (wf_op.rounds) their contiguous copy as reals. Without memory its data are NULL. */
wf_array wf_reals_of(wf_call *c, const wf_array *a);
/* Sets *v to the contiguous elements of operand i, a vector, or to NULL if the operand is absent. False without memory. */
bool wf_vector_of(wf_call *c, int i, const wf_real **v);

/* Whether two arrays of one dtype and of two or three dimensions are known to share no element: they lie apart in memory, or are different
 * columns of one matrix (such as the slices q, k and v of one product). */
bool wf_apart(const wf_array *a, const wf_array *b);

/* Turns a negative *dim, which counts from the end, into one that counts from the front. Returns whether the dimension exists. */
static inline bool wf_find_dim(int *dim, int ndim)
{
    if (*dim < 0)
        *dim += ndim;
    return *dim >= 0 && *dim < ndim;
}

/* Rows of d elements in a block of work. The number depends on d alone, so that the same bits result on any number of threads. */
static inline int64_t wf_block_rows(int64_t d)
{
    int64_t rows = d > 0 ? 8192 / d : 64;
    return WF_MIN(WF_MAX(rows, 1), 64);
}

/* Dropout draws 16 random bits for an element and drops it if they are below this threshold. p is the probability. */
static inline uint32_t wf_dropout_threshold(double p)
{
    uint32_t threshold = (uint32_t)(p * 65536 + 0.5);
    return p >= 1 ? 65536 : WF_MIN(threshold, 65535);
}

/* Beyond this the slopes of gelu, silu and mish are 0 or 1 to the last bit, and their formulas would multiply infinity by 0: a `gradient`
 * clamps x to it. */
#define WF_SATURATED 800

/* --- gradients ------------------------------------------------------------------------------------------------------ */

/* The gradient of an operand as a contiguous array, which a backward overwrites, or adds to if `add` is set. */
struct contiguous_grad {
    wf_array place;      /* where the gradient belongs */
    wf_array contiguous; /* `place` if that is contiguous; otherwise a temporary that wf_contiguous_grad_done copies to `place` */
    bool add;
};
/* Fills *g for operand i. False without memory. */
bool wf_contiguous_grad(wf_call *c, int i, struct contiguous_grad *g);
/* Like wf_contiguous_grad, for a backward that always adds: the array is cleared if the operand has no gradient yet. */
bool wf_contiguous_grad_to_add(wf_call *c, int i, struct contiguous_grad *g);
void wf_contiguous_grad_done(const struct contiguous_grad *g);

/* Calls wf_array_sum. On failure the tape has the error. */
wf_status wf_sum_into(wf_call *c, const wf_array *dst, const wf_array *src, double scale, bool add) WF_CHECKED;
/* Gives operand i, a vector [d], the column sums of x [rows, d], times `scale`, as its gradient. */
wf_status wf_give_column_sums(wf_call *c, int i, const wf_array *x, double scale);
/* Gives zeros as the gradients of all operands that need one. */
wf_status wf_give_zeros(wf_call *c) WF_CHECKED;

/* --- functions that are composed of ops: compose.c ------------------------------------------------------------------ */

/* Fails on the tape of the operands, some of which may be NULL, with a message such as "roll(x [2,3]): ...". Returns poison. */
wf_tensor *wf_composed_fail(const char *name, int count, wf_tensor *const in[], wf_status code, const char *format, ...) WF_PRINTF(5, 6);
/* The first operand that is poison, or NULL. */
wf_tensor *wf_first_poison(int count, wf_tensor *const in[]);

/* --- indexing.c ----------------------------------------------------------------------------------------------------- */

/* Copies rows by valid ids: to[p][i] = planes[p][id[i]]. `planes` [P, limit, d] has any strides; `to` [P, n, d] is contiguous. */
void wf_take_rows(const wf_array *planes, const int32_t *id, int64_t n, wf_real *to);
/* Adds rows by valid ids: planes[p][id[i]] += from[p][i]. `planes` [P, limit, d] is contiguous; `from` [P, n, d] has any strides. Rows with
 * the same id are added in the order of i, with any number of threads. False without memory. */
bool wf_add_rows(wf_call *c, const wf_array *from, const int32_t *id, int64_t limit, wf_real *planes);

/* --- unary.c -------------------------------------------------------------------------------------------------------- */

/* The derivatives of silu and of gelu_tanh at x, for wf_op.gradient. */
wf_tensor *silu_slope(wf_tensor *x);
wf_tensor *gelu_tanh_slope(wf_tensor *x);

/* --- packed.c -------------------------------------------------------------------------------------------------------- */

/* A copy of the offsets in the tape's memory, for use in attributes. Returns `packed` itself if it is zeroed (rows are not packed), or if
 * it is invalid because the offsets are NULL or the count is negative: then wf_want_packed refuses it later, without reading offsets. */
struct wf_packed wf_packed_copy(wf_tape *tape, struct wf_packed packed);

/* --- products.c ------------------------------------------------------------------------------------------------------ */

/* `a` with its last two dimensions swapped. */
wf_array wf_swap_last(const wf_array *a);
/* out = a b, plus `bias` (may be NULL) in each row, plus the old `out` if `add`. With rows_alone the bits of a row of `out` do not depend
 * on the other rows. On failure the tape has the error. */
wf_status wf_product(wf_call *c, const wf_array *a, const wf_array *b, const wf_array *out, bool add, const wf_real *bias,
                     bool rows_alone) WF_CHECKED;
/* out [p, q] = a^T b, a sum over the rows of a [rows, p] and b [rows, q]; plus the old `out` if `add`. */
wf_status wf_product_of_columns(wf_call *c, const wf_array *a, const wf_array *b, const wf_array *out, bool add) WF_CHECKED;
/* In a backward: gives the gradients of the operands x [..., in], weight [out, in] and bias [out] (may be absent) of the layer y = x
 * weight^T + bias. The gradient of y is `scale` (not 0) times dy. */
wf_status wf_linear_gradients(wf_call *c, const wf_array *dy, double scale) WF_CHECKED;
/* In a `gradient`: the same gradients of operands 0, 1 and 2, from ops on tensors. */
void wf_linear_gradient(const wf_gradient_call *c, wf_tensor *dy);

#endif
