/* SPDX-License-Identifier: MIT */
/* Checks of shapes and views that come from outside, and what an op does many times with its arrays. */
#ifndef WEFT_INTERNAL_SHAPE_H
#define WEFT_INTERNAL_SHAPE_H

#include <weft/array.h>
#include <weft/error.h>

/* Bytes of a contiguous array of this dtype and shape. False where the dtype, the number of dimensions or a size is invalid, or the sizes
 * are too large; a size of 0 counts as 1 there, so that no product of some of the sizes overflows. */
bool wf_shape_bytes(wf_dtype dtype, const wf_shape *shape, size_t *bytes);

/* The first address of the elements of `a`, and the address behind the last; `a` has an element. False if an address overflows. */
bool wf_array_span(const wf_array *a, uintptr_t *first, uintptr_t *end);

/* Copies elements from .. from + n - 1 of a, in its logical order, end to end. (copy.c) */
void wf_array_copy_range(const wf_array *a, int64_t from, int64_t n, void *to);
/* wf_array_sum of a contiguous copy of src: its bits, whatever the strides of src, without the copy. dst is row-major. (sum.c) */
wf_status wf_array_sum_in_order(const wf_array *dst, const wf_array *src, double scale) WF_CHECKED;

/* wf_array_contiguous, wf_array_shape and wf_array_is_contiguous for the path of every op: calls between files were a tenth of a small one.
 *
 * The first two build their result in one expression. From a variable gcc copies the whole once more, and reads it back in larger pieces
 * than it was written in, which waits until the stores have reached the cache: tens of nanoseconds an op. */
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
        (void)__builtin_mul_overflow(step, dim[d] > 0 ? dim[d] : 1, &step); /* of a shape that is refused later */
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
