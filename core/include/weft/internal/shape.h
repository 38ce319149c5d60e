/* SPDX-License-Identifier: MIT */
/* Checks of shapes and views that come from outside. */
#ifndef WEFT_INTERNAL_SHAPE_H
#define WEFT_INTERNAL_SHAPE_H

#include <weft/array.h>

/* Bytes of a contiguous array of this dtype and shape. False where the dtype, the number of dimensions or a size is invalid, or the sizes
 * are too large; a size of 0 counts as 1 there, so that no product of some of the sizes overflows. */
bool wf_shape_bytes(wf_dtype dtype, const wf_shape *shape, size_t *bytes);

/* First and one past the last address that elements of `a` have, which has at least one. False where an address overflows. */
bool wf_array_span(const wf_array *a, uintptr_t *first, uintptr_t *end);

#endif
