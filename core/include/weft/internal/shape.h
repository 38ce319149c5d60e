/* SPDX-License-Identifier: MIT */
/* Checks of shapes and views that come from outside, and fast versions of array functions that every op calls. */
#ifndef WEFT_INTERNAL_SHAPE_H
#define WEFT_INTERNAL_SHAPE_H

#include <weft/array.h>
#include <weft/error.h>

/* Computes the number of bytes of a contiguous array. Returns false if the dtype, the number of dimensions or a size is invalid, or if
 * the product of the sizes is too large. A size of 0 counts as 1 in this check, so that the product of any subset of the sizes fits too. */
bool wf_shape_bytes(wf_dtype dtype, const wf_shape *shape, size_t *bytes);

/* Computes the first address of the elements of `a`, and the address after the last element. `a` must have an element. Returns false if
 * an address overflows. */
bool wf_array_span(const wf_array *a, uintptr_t *first, uintptr_t *end);

/* Copies elements from .. from + n - 1 of a, counted in logical order, to consecutive places in `to`. (copy.c) */
void wf_array_copy_range(const wf_array *a, int64_t from, int64_t n, void *to);
/* Like wf_array_sum of a contiguous copy of src, with the same bits, but copies only a part of src at a time. src may have any
 * strides; dst must be row-major. (sum.c) */
wf_status wf_array_sum_in_order(const wf_array *dst, const wf_array *src, double scale) WF_CHECKED;

/* Inline versions of wf_array_contiguous, wf_array_shape and wf_array_is_contiguous for the code that every op runs. Calls of the
 * functions in another file took a tenth of the time of a small op.
 *
 * The first two build their result in one expression. If it were built in a variable, gcc would copy the variable once more, and would
 * read it in larger units than it was written in. Such reads wait until the stores reach the cache, which takes tens of nanoseconds per
 * op. */
#define ARRAY_SIX(x)                                                                                                                       \
    {                                                                                                                                      \
        x[0], x[1], x[2], x[3], x[4], x[5]                                                                                                 \
    }
#define ARRAY_OF(data, dtype, ndim, dim, stride) ((wf_array){data, dtype, ndim, ARRAY_SIX(dim), ARRAY_SIX(stride)})

static inline wf_array array_contiguous(void *data, wf_dtype dtype, const wf_shape *shape)
{
    const int n = shape->ndim;
    if (n < 0 || n > WF_MAX_DIMS)
        return (wf_array){.dtype = dtype, .ndim = -1};
    int64_t dim[WF_MAX_DIMS] = {0}, stride[WF_MAX_DIMS] = {0}, step = 1;
    for (int d = n - 1; d >= 0; d--) {
        dim[d] = shape->dim[d];
        stride[d] = step;
        /* An overflow is ignored, because the caller refuses such a shape later. */
        (void)__builtin_mul_overflow(step, dim[d] > 0 ? dim[d] : 1, &step);
    }
    return ARRAY_OF(data, dtype, n, dim, stride);
}

static inline wf_shape array_shape(const wf_array *a)
{
    return (wf_shape){a->ndim, ARRAY_SIX(a->dim)};
}

static inline bool array_is_contiguous(const wf_array *a)
{
    int64_t step = 1;
    bool contiguous = true;
    for (int d = a->ndim - 1; d >= 0; d--) {
        if (a->dim[d] == 0)
            return true;
        if (a->dim[d] != 1 && a->stride[d] != step)
            contiguous = false;
        step *= a->dim[d];
    }
    return contiguous;
}

#endif
