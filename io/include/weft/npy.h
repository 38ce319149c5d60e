/* SPDX-License-Identifier: MIT */
/* NumPy's array files, format 1.0 (numpy.org/doc/stable/reference/generated/numpy.lib.format.html). */
#ifndef WEFT_NPY_H
#define WEFT_NPY_H

#include <weft/array.h>
#include <weft/error.h>

WF_BEGIN_DECLS

/* Writes an array (any strides) as C-ordered little-endian "<f4", "<f8", "<i4" or "|b1", atomically; "/dev/stdout" is written
 * directly. Other dtypes are WF_ERR_ARGUMENT. */
WF_API wf_status wf_npy_save(const char *path, const wf_array *array, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
