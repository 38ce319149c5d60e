/* SPDX-License-Identifier: MIT */
/* Strided arrays: dtype, shape, strides and a pointer, by value. They own no memory. Each tensor of a tape has one. */
#ifndef WEFT_ARRAY_H
#define WEFT_ARRAY_H

#include <stdio.h>

#include <weft/error.h>
#include <weft/strings.h>

WF_BEGIN_DECLS

enum { WF_MAX_DIMS = 6 };

/* All dtypes of the safetensors format. Computation is in WF_REAL; ids are WF_I32, masks WF_BOOL. */
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

#ifdef WF_DOUBLE
#define WF_REAL WF_F64
#else
#define WF_REAL WF_F32
#endif

typedef struct wf_shape {
    int ndim;
    int64_t dim[WF_MAX_DIMS];
} wf_shape;

/* Element (i0, i1, ...) lies at data + (i0 * stride[0] + i1 * stride[1] + ...) elements. ndim 0 is a scalar.
 * A stride of 0 repeats one element along that dimension. */
typedef struct wf_array {
    void *data;
    wf_dtype dtype;
    int ndim;
    int64_t dim[WF_MAX_DIMS];
    int64_t stride[WF_MAX_DIMS];
} wf_array;

WF_API size_t wf_dtype_size(wf_dtype dtype);      /* bytes an element */
WF_API const char *wf_dtype_name(wf_dtype dtype); /* as safetensors spells it: "F32", "BF16", ... */

WF_API int64_t wf_shape_count(const wf_shape *shape); /* elements; -1 when the product does not fit, or ndim or a dim is invalid */
WF_API bool wf_shape_equal(const wf_shape *a, const wf_shape *b); /* false for an invalid ndim */
/* The shape that a and b broadcast to by NumPy's rule (aligned at the last dimension); false if they are incompatible, or an ndim is
 * invalid. */
WF_API bool wf_shape_broadcast(const wf_shape *a, const wf_shape *b, wf_shape *out);
/* Writes "[2,3,8]" and returns text. 96 bytes hold any shape whose dims are below 10^13. */
WF_API char *wf_shape_text(const wf_shape *shape, char *text, size_t size);

/* A row-major array over data, which stays the caller's. Of an invalid number of dimensions: ndim -1, which everything refuses. */
WF_API wf_array wf_array_contiguous(void *data, wf_dtype dtype, const wf_shape *shape);
WF_API wf_shape wf_array_shape(const wf_array *a);
WF_API int64_t wf_array_count(const wf_array *a);      /* elements */
WF_API bool wf_array_is_contiguous(const wf_array *a); /* row-major without gaps; strides of dims of size 1 don't matter */
/* Views; dims and ranges must be valid: the caller checks them. */
WF_API wf_array wf_array_transpose(wf_array a, int dim0, int dim1);
WF_API wf_array wf_array_slice(wf_array a, int dim, int64_t start, int64_t length);
/* The same elements under another shape without a copy; false when the strides do not allow it. */
WF_API bool wf_array_reshape(const wf_array *a, const wf_shape *shape, wf_array *out);
/* a broadcast to `shape` (strides 0); the caller checks that it is compatible. */
WF_API wf_array wf_array_expand(const wf_array *a, const wf_shape *shape);

/* dst[...] = src[...], same shape and dtype, any strides; in parallel above a cutoff. They must not overlap. */
WF_API void wf_array_copy(const wf_array *dst, const wf_array *src);
/* Converts n contiguous elements between dtypes: floats among F16, BF16, F32 and F64; integers and bools among each other, and to F32 and
 * F64. False, and nothing is written, for any other pair. What does not fit is no error here: floats go to the nearest, ties to even, and
 * to infinity beyond the range, integers to the nearest float; integers that are too large for a smaller dtype wrap modulo 2^bits (to
 * BOOL: all but 0 are true). wf_rows_copy (weft/epochs.h) refuses them. */
WF_API bool wf_convert(wf_dtype to, void *dst, wf_dtype from, const void *src, int64_t n);

/* To look at values: appends lines for people to a text, or writes them. name: may be NULL. Any dtype and strides.
 *
 *   dw [2,3] F32
 *   [[ 1.0000, -2.5000,  3.0000],
 *    [ 0.1000,     nan,    -inf]]
 *
 * The layout of the values is PyTorch's, with nan and inf aligned: four decimals, an exponent for all where they differ a thousandfold,
 * none where all are whole; of more than 1,000 elements three at each end of a dimension, and "..." between. WF_ERR_ARGUMENT: a NULL, or an
 * invalid array. WF_ERR_MEMORY, WF_ERR_IO. */
WF_API wf_status wf_array_print_text(struct wf_string *text, const char *name, const wf_array *a);
WF_API wf_status wf_array_print(FILE *to, const char *name, const wf_array *a);

WF_END_DECLS

#endif
