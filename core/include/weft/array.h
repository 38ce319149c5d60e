/* SPDX-License-Identifier: MIT */
/* A strided array is a plain value: a pointer to elements, a dtype, a shape and strides. It owns no memory. Each tensor of a tape
 * contains one array. */
#ifndef WEFT_ARRAY_H
#define WEFT_ARRAY_H

#include <stdio.h>

#include <weft/error.h>
#include <weft/strings.h>

WF_BEGIN_DECLS

enum { WF_MAX_DIMS = 6 };

/* Dtypes of the safetensors format. Ops compute in WF_REAL, the dtype of wf_real; ids are WF_I32, and masks are WF_BOOL. */
typedef enum wf_dtype {
    WF_F32,
    WF_F64,
    WF_F16,
    WF_BF16,
    WF_F8_E4M3,
    WF_F8_E5M2,
    WF_I8,
    WF_U8,
    WF_I16,
    WF_U16,
    WF_I32,
    WF_U32,
    WF_I64,
    WF_U64,
    WF_BOOL,
    WF_DTYPE_COUNT
} wf_dtype;

/* The arithmetic of products. WF_PRECISION_BF16, for the library of floats alone: the elements of both operands are rounded to bf16, to
 * nearest even, and denormals to zero. Sums are float, in an order that is the same on every processor, with AMX and without it, and for
 * any number of threads, rows and columns (docs/numerics.md). */
enum wf_precision { WF_PRECISION_REAL, WF_PRECISION_BF16 };

#ifdef WF_DOUBLE
#define WF_REAL WF_F64
#else
#define WF_REAL WF_F32
#endif

typedef struct wf_shape {
    int ndim;
    int64_t dim[WF_MAX_DIMS];
} wf_shape;

/* Element (i0, i1, ...) lies at data + (i0 * stride[0] + i1 * stride[1] + ...) elements. An array with ndim 0 is a scalar. A stride of 0
 * repeats one element along its dimension. */
typedef struct wf_array {
    void *data;
    wf_dtype dtype;
    int ndim;
    int64_t dim[WF_MAX_DIMS];
    int64_t stride[WF_MAX_DIMS];
} wf_array;

WF_API size_t wf_dtype_size(wf_dtype dtype);      /* bytes per element */
WF_API const char *wf_dtype_name(wf_dtype dtype); /* the name in the safetensors format: "F32", "BF16", ... */

WF_API int64_t wf_shape_count(const wf_shape *shape); /* number of elements; -1 if it exceeds INT64_MAX, or if ndim or a dim is invalid */
WF_API bool wf_shape_equal(const wf_shape *a, const wf_shape *b); /* false for an invalid ndim */
/* Writes to *out the shape to which a and b broadcast by NumPy's rule (aligned at the last dimension). Returns false if they are
 * incompatible or an ndim is invalid. */
WF_API bool wf_shape_broadcast(const wf_shape *a, const wf_shape *b, wf_shape *out);
/* Writes the shape as "[2,3,8]" and returns text. 96 bytes hold any shape whose dims are below 10^13. */
WF_API char *wf_shape_text(const wf_shape *shape, char *text, size_t size);

/* A row-major array over `data`, which the caller still owns. If shape->ndim is invalid, the result has ndim -1, and an op whose
 * operand or result it is fails. */
WF_API wf_array wf_array_contiguous(void *data, wf_dtype dtype, const wf_shape *shape);
WF_API wf_shape wf_array_shape(const wf_array *a);
WF_API int64_t wf_array_count(const wf_array *a);      /* number of elements */
WF_API bool wf_array_is_contiguous(const wf_array *a); /* row-major without gaps; strides of dims of size 1 don't matter */
/* Views of `a`: with two dimensions exchanged, and of a range of one dimension. The functions check nothing: the caller must pass valid
 * dims and ranges. */
WF_API wf_array wf_array_transpose(wf_array a, int dim0, int dim1);
WF_API wf_array wf_array_slice(wf_array a, int dim, int64_t start, int64_t length);
/* Writes to *out a view of the same elements in another shape, without a copy. Returns false if the strides do not allow this. */
WF_API bool wf_array_reshape(const wf_array *a, const wf_shape *shape, wf_array *out);
/* A view of `a`, broadcast to `shape` by strides of 0. The caller must check that the shapes are compatible. */
WF_API wf_array wf_array_expand(const wf_array *a, const wf_shape *shape);

/* dst[...] = src[...] for arrays of one shape and dtype with any strides. The arrays must not overlap. Large copies run in parallel. */
WF_API void wf_array_copy(const wf_array *dst, const wf_array *src);
/* Converts n contiguous elements. The possible conversions are: between two of F16, BF16, F32 and F64; between two integer dtypes (BOOL
 * counts as one); from an integer dtype to F32 or F64; and from any dtype to itself, which copies. For any other pair of dtypes the
 * function returns false and writes nothing.
 *
 * A value that does not fit is no error. A float is rounded to the nearest number of the other dtype, ties to even, and becomes infinite
 * beyond the range of that dtype. An integer becomes the nearest float. An integer that is too large for a smaller integer dtype wraps
 * modulo 2^bits; as a BOOL, all numbers but 0 are true. wf_rows_copy (weft/epochs.h) refuses integers that do not fit. */
WF_API bool wf_convert(wf_dtype to, void *dst, wf_dtype from, const void *src, int64_t n);

/* Shows the values of an array to people: wf_array_print_text appends lines to a string, and wf_array_print writes them to a file. `name`
 * may be NULL. All dtypes and strides are possible.
 *
 *   dw [2,3] F32
 *   [[ 1.0000, -2.5000,  3.0000],
 *    [ 0.1000,     nan,    -inf]]
 *
 * The layout is PyTorch's, and nan and inf are aligned with the numbers. Floats have four decimals, or no decimals if all are whole
 * numbers. They have an exponent if, among the finite numbers other than 0, the largest magnitude is above 1e8 or more than a thousand
 * times the smallest, or the smallest is below 1e-4. If an array has more than 1,000 elements, each dimension of more than six shows three
 * indices at each end and "..." between them. WF_ERR_ARGUMENT: an argument other than `name` is NULL, or the array is invalid.
 * WF_ERR_MEMORY: no memory. WF_ERR_IO: the file could not be written. */
WF_API wf_status wf_array_print_text(struct wf_string *text, const char *name, const wf_array *a);
WF_API wf_status wf_array_print(FILE *to, const char *name, const wf_array *a);

WF_END_DECLS

#endif
