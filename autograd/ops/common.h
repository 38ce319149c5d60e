/* SPDX-License-Identifier: MIT */
/* Shared by several ops: checks of operands, operands seen as rows, gradients in contiguous form, sums, maps and products. */
#ifndef WEFT_OPS_COMMON_H
#define WEFT_OPS_COMMON_H

#include <weft/compute.h>
#include <weft/internal/kernels.h>
#include <weft/internal/minmax.h>
#include <weft/internal/ops_all.h>
#include <weft/ops.h>

/* The attributes of a case: ATTR(struct sum_attr, .dim = 1). */
#define ATTR(type, ...)                                                                                                                    \
    .attr = &(const type)                                                                                                                  \
    {                                                                                                                                      \
        __VA_ARGS__                                                                                                                        \
    }

/* --- checks --------------------------------------------------------------------------------------------------------- */

/* Fails unless operand i is there; unless it is and has the dtype; unless operands 0 .. n-1 are real. */
wf_status wf_want_there(wf_call *c, int i);
wf_status wf_want(wf_call *c, int i, wf_dtype dtype);
wf_status wf_want_reals(wf_call *c, int n);
/* Fails unless operand i is a real vector [d] (a gain or a bias), or absent. */
wf_status wf_want_vector(wf_call *c, int i, const char *what, int64_t d);
/* Fails unless the offsets divide `rows` rows (weft/packed.h). */
wf_status wf_want_packed(wf_call *c, struct wf_packed packed, const char *what, int64_t rows);
/* A shape rule: one real operand, and a result of its shape. */
wf_status wf_same_shape(wf_call *c);
/* dim of operand i, which may count from the end, as a place from the front; -1, with the error set, where it does not exist. */
int wf_want_dim(wf_call *c, int i, int dim);
/* The attributes of an op along one dimension, which may count from the end. */
struct along {
    int dim;
};

/* That dimension of operand 0, as wf_want_dim gives it. */
static inline int wf_along(wf_call *c)
{
    return wf_want_dim(c, 0, ((const struct along *)c->attr)->dim);
}

/* The dimensions of an operand, for a message that one does not exist. Returns text, or a constant. */
const char *wf_dims_text(int ndim, char *text, size_t size);
/* Drops dimension d, of size 1. */
static inline void wf_drop_dim(wf_array *a, int d)
{
    a->ndim--;
    for (; d < a->ndim; d++) {
        a->dim[d] = a->dim[d + 1];
        a->stride[d] = a->stride[d + 1];
    }
}

/* Another shape rule: two real operands, and a result of the shape that they broadcast to. */
wf_status wf_broadcast_shape(wf_call *c);
/* Contiguous ids must lie in 0 .. limit-1, or be *ignore when that is not NULL; *counted (may be NULL) is the number
 * of those that do. Fails with the first bad one's index and value. */
wf_status wf_check_ids(wf_call *c, const wf_array *ids, const char *what, int64_t limit, const int32_t *ignore, int64_t *counted);

/* Writes the place of element i of a row-major array, "[1,0]", nothing for a scalar, and returns text. */
const char *wf_index_text(const wf_array *a, int64_t i, char *text, size_t size);
/* Operand i, ids in 0 .. limit-1, contiguous; data NULL on an error. */
wf_array wf_ids_below(wf_call *c, int i, int64_t limit);

/* Another shape rule: one real operand, and a result without one of its dimensions, or with size 1 there. */
wf_status wf_reduced_shape(wf_call *c, int dim, bool keep);
/* The shape of a without a dimension, or with size 1 there. */
wf_shape wf_shape_without(const wf_array *a, int dim, bool keep);

/* --- operands as rows (data NULL without memory) -------------------------------------------------------------------- */

/* a [..., d] as [rows, d] under any two strides, or a contiguous copy when its strides do not allow that; ndim 1: one row. */
wf_array wf_matrix_of(wf_call *c, const wf_array *a);
/* The same with the elements of a row side by side. */
wf_array wf_rows_of(wf_call *c, const wf_array *a);
/* a [..., d] as contiguous [rows, d]. */
wf_array wf_contiguous_rows_of(wf_call *c, const wf_array *a);
/* Operand i, a vector, with its elements side by side in *v, which is NULL when it is absent. False without memory. */
bool wf_vector_of(wf_call *c, int i, const wf_real **v);

/* Whether two real arrays of two or three dimensions surely share no element: apart in memory, or different columns of one matrix (slices
 * of q, k, v). */
bool wf_apart(const wf_array *a, const wf_array *b);

/* Brings a dim that counts from the end into 0 .. ndim-1. */
static inline bool wf_find_dim(int *dim, int ndim)
{
    if (*dim < 0)
        *dim += ndim;
    return *dim >= 0 && *dim < ndim;
}

/* Rows of a block of work: a function of d alone. */
static inline int64_t wf_block_rows(int64_t d)
{
    int64_t rows = d > 0 ? 8192 / d : 64;
    return WF_MIN(WF_MAX(rows, 1), 64);
}

/* The number below which 16 random bits drop an element, for probability p. */
static inline uint32_t wf_dropout_threshold(double p)
{
    uint32_t threshold = (uint32_t)(p * 65536 + 0.5);
    return WF_MIN(threshold, 65535);
}

/* --- gradients ------------------------------------------------------------------------------------------------------ */

/* The gradient of an operand as a contiguous array that a backward overwrites, or adds to where `add` says so: its own place if that is
 * contiguous, else a temporary, which wf_contiguous_grad_done copies there. */
struct contiguous_grad {
    wf_array place, contiguous;
    bool add;
};
bool wf_contiguous_grad(wf_call *c, int i, struct contiguous_grad *g); /* false without memory */
/* The same for a backward that always adds: zeros where there is no gradient yet. */
bool wf_contiguous_grad_to_add(wf_call *c, int i, struct contiguous_grad *g);
void wf_contiguous_grad_done(const struct contiguous_grad *g);

/* wf_array_sum, with an error set on the tape. */
wf_status wf_sum_into(wf_call *c, const wf_array *dst, const wf_array *src, double scale, bool add) WF_CHECKED;
/* The column sums of x [rows, d], times scale, as the gradient of operand i [d]. */
wf_status wf_give_column_sums(wf_call *c, int i, const wf_array *x, double scale);
/* Zeros as the gradients of all operands that need one. */
wf_status wf_give_zeros(wf_call *c) WF_CHECKED;

/* --- indexing.c ----------------------------------------------------------------------------------------------------- */

/* Rows of planes by ids, which are valid. to[p][i] = planes[p][id[i]] for planes [P, limit, d] of any strides and a contiguous to [P, n,
 * d]. */
void wf_take_rows(const wf_array *planes, const int32_t *id, int64_t n, wf_real *to);
/* planes[p][id[i]] += from[p][i] for contiguous planes [P, limit, d] and from [P, n, d] of any strides: of one id in the order of
 * i, with any number of threads. False without memory. */
bool wf_add_rows(wf_call *c, const wf_array *from, const int32_t *id, int64_t limit, wf_real *planes);

/* --- packed.c -------------------------------------------------------------------------------------------------------- */

/* The offsets copied into the tape's memory, for attributes. Offsets that wf_want_packed refuses unread are not copied. */
struct wf_packed wf_packed_copy(wf_tape *tape, struct wf_packed packed);

/* --- products.c ------------------------------------------------------------------------------------------------------ */

/* a with its last two dimensions swapped. */
wf_array wf_swap_last(const wf_array *a);
/* wf_array_matmul, with an error set on the tape. */
wf_status wf_product(wf_call *c, const wf_array *a, const wf_array *b, const wf_array *out, bool add, const wf_real *bias,
                     bool rows_alone) WF_CHECKED;
/* Sum over the rows: out [p, q] (+)= a^T b with a [rows, p], b [rows, q]. */
wf_status wf_product_of_columns(wf_call *c, const wf_array *a, const wf_array *b, const wf_array *out, bool add) WF_CHECKED;
/* In backward: the gradients of operands x [..., in], weight [out, in] and bias [out] or none, from scale (not 0) times dy, that of y = x
 * weight^T + bias. */
wf_status wf_linear_gradients(wf_call *c, const wf_array *dy, double scale) WF_CHECKED;

#endif
