/* SPDX-License-Identifier: MIT */
/* Dtypes, shapes and views of strided arrays (weft/array.h). */
#include <stdio.h>
#include <string.h>

#include <weft/array.h>
#include <weft/internal/minmax.h>
#include <weft/internal/shape.h>

static const struct {
    size_t size;
    const char *name;
} dtypes[WF_DTYPE_COUNT] = {
    [WF_F32] = {4, "F32"},         [WF_F64] = {8, "F64"}, [WF_F16] = {2, "F16"}, [WF_BF16] = {2, "BF16"}, [WF_F8_E4M3] = {1, "F8_E4M3"},
    [WF_F8_E5M2] = {1, "F8_E5M2"}, [WF_I8] = {1, "I8"},   [WF_U8] = {1, "U8"},   [WF_I16] = {2, "I16"},   [WF_U16] = {2, "U16"},
    [WF_I32] = {4, "I32"},         [WF_U32] = {4, "U32"}, [WF_I64] = {8, "I64"}, [WF_U64] = {8, "U64"},   [WF_BOOL] = {1, "BOOL"},
};

size_t wf_dtype_size(wf_dtype dtype)
{
    return (unsigned)dtype < WF_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

const char *wf_dtype_name(wf_dtype dtype)
{
    return (unsigned)dtype < WF_DTYPE_COUNT ? dtypes[dtype].name : "unknown";
}

int64_t wf_shape_count(const wf_shape *shape)
{
    /* If one dim is 0, the product is 0, even if the product of the others overflows. */
    int64_t count = 1;
    bool zero = false, overflow = false;
    if (shape->ndim < 0 || shape->ndim > WF_MAX_DIMS)
        return -1;
    for (int d = 0; d < shape->ndim; d++) {
        if (shape->dim[d] < 0)
            return -1;
        zero |= shape->dim[d] == 0;
        overflow |= __builtin_mul_overflow(count, shape->dim[d], &count);
    }
    return zero ? 0 : overflow ? -1 : count;
}

bool wf_shape_bytes(wf_dtype dtype, const wf_shape *shape, size_t *bytes)
{
    int64_t product = (int64_t)wf_dtype_size(dtype);
    bool zero = false;
    if (product == 0 || shape->ndim < 0 || shape->ndim > WF_MAX_DIMS)
        return false;
    for (int d = 0; d < shape->ndim; d++) {
        const int64_t n = shape->dim[d];
        zero |= n == 0;
        if (n < 0 || __builtin_mul_overflow(product, n ? n : 1, &product))
            return false;
    }
    *bytes = zero ? 0 : (size_t)product;
    return product <= INT64_MAX / 2;
}

bool wf_shape_equal(const wf_shape *a, const wf_shape *b)
{
    bool equal = a->ndim == b->ndim && (unsigned)a->ndim <= WF_MAX_DIMS;
    for (int d = 0; equal && d < a->ndim; d++)
        equal = a->dim[d] == b->dim[d];
    return equal;
}

bool wf_shape_broadcast(const wf_shape *a, const wf_shape *b, wf_shape *out)
{
    if (wf_shape_equal(a, b)) {
        *out = *a;
        return true;
    }
    if ((unsigned)a->ndim > WF_MAX_DIMS || (unsigned)b->ndim > WF_MAX_DIMS)
        return false;
    wf_shape result = {.ndim = WF_MAX(a->ndim, b->ndim)};
    for (int back = 1; back <= result.ndim; back++) {
        int64_t da = back <= a->ndim ? a->dim[a->ndim - back] : 1, db = back <= b->ndim ? b->dim[b->ndim - back] : 1;
        if (da != db && da != 1 && db != 1)
            return false;
        result.dim[result.ndim - back] = da == 1 ? db : da;
    }
    *out = result;
    return true;
}

char *wf_shape_text(const wf_shape *shape, char *text, size_t size)
{
    size_t used = 0;
    if (size == 0)
        return text;
    text[0] = 0;
    for (int d = 0; d < shape->ndim && d < WF_MAX_DIMS && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%c%lld", d == 0 ? '[' : ',', (long long)shape->dim[d]);
    if (used < size)
        snprintf(text + used, size - used, "%s", shape->ndim == 0 ? "[]" : "]");
    return text;
}

wf_array wf_array_contiguous(void *data, wf_dtype dtype, const wf_shape *shape)
{
    return array_contiguous(data, dtype, shape);
}

wf_shape wf_array_shape(const wf_array *a)
{
    return array_shape(a);
}

int64_t wf_array_count(const wf_array *a)
{
    int64_t count = 1;
    for (int d = 0; d < a->ndim; d++)
        count *= a->dim[d];
    return count;
}

bool wf_array_is_contiguous(const wf_array *a)
{
    return array_is_contiguous(a);
}

bool wf_array_span(const wf_array *a, uintptr_t *first, uintptr_t *end)
{
    int64_t low = 0, high = 0, reach;
    const int64_t size = (int64_t)wf_dtype_size(a->dtype);
    for (int d = 0; d < a->ndim; d++) {
        int64_t *side = a->stride[d] < 0 ? &low : &high;
        if (__builtin_mul_overflow(a->dim[d] - 1, a->stride[d], &reach) || __builtin_add_overflow(*side, reach, side))
            return false;
    }
    if (__builtin_mul_overflow(low, size, &low) || __builtin_add_overflow(high, 1, &high) || __builtin_mul_overflow(high, size, &high))
        return false;
    *first = (uintptr_t)a->data + (uintptr_t)low;
    *end = (uintptr_t)a->data + (uintptr_t)high;
    return true;
}

wf_array wf_array_transpose(wf_array a, int dim0, int dim1)
{
    int64_t dim = a.dim[dim0], stride = a.stride[dim0];
    a.dim[dim0] = a.dim[dim1];
    a.stride[dim0] = a.stride[dim1];
    a.dim[dim1] = dim;
    a.stride[dim1] = stride;
    return a;
}

wf_array wf_array_slice(wf_array a, int dim, int64_t start, int64_t length)
{
    a.data = (char *)a.data + start * a.stride[dim] * (int64_t)wf_dtype_size(a.dtype);
    a.dim[dim] = length;
    return a;
}

/* Neighbouring dims of `a` that lie in memory like one dim form a group. Each group is split into one or more of the new dims,
 * beginning with the last group and the last new dim. The reshape fails if a new dim would cross the border of two groups. */
bool wf_array_reshape(const wf_array *a, const wf_shape *shape, wf_array *out)
{
    if (wf_shape_count(shape) != wf_array_count(a))
        return false;
    wf_array result = wf_array_contiguous(a->data, a->dtype, shape);
    if (wf_array_is_contiguous(a)) {
        *out = result;
        return true;
    }
    int64_t dim[WF_MAX_DIMS], stride[WF_MAX_DIMS];
    int groups = 0;
    for (int d = 0; d < a->ndim; d++) {
        if (a->dim[d] == 1)
            continue;
        if (groups && stride[groups - 1] == a->dim[d] * a->stride[d]) {
            dim[groups - 1] *= a->dim[d];
            stride[groups - 1] = a->stride[d];
        } else {
            dim[groups] = a->dim[d];
            stride[groups++] = a->stride[d];
        }
    }
    /* left: elements of the current group that no new dim covers yet; step: stride of the next new dim in this group */
    int64_t left = 1, step = 1;
    for (int d = shape->ndim - 1; d >= 0; d--) {
        if (shape->dim[d] == 1)
            continue;
        if (left == 1) {
            groups--;
            left = dim[groups];
            step = stride[groups];
        }
        if (left % shape->dim[d] != 0)
            return false;
        result.stride[d] = step;
        step *= shape->dim[d];
        left /= shape->dim[d];
    }
    *out = result;
    return true;
}

wf_array wf_array_expand(const wf_array *a, const wf_shape *shape)
{
    const int added = shape->ndim - a->ndim;
    int64_t dim[WF_MAX_DIMS] = {0}, stride[WF_MAX_DIMS] = {0};
    for (int d = 0; d < shape->ndim; d++) {
        dim[d] = shape->dim[d];
        stride[d] = d >= added && a->dim[d - added] == dim[d] ? a->stride[d - added] : 0;
    }
    return ARRAY_OF(a->data, a->dtype, shape->ndim, dim, stride);
}
