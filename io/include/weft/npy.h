/* SPDX-License-Identifier: MIT */
/* NumPy's array files (.npy, numpy.org/doc/stable/reference/generated/numpy.lib.format.html). */
#ifndef WEFT_NPY_H
#define WEFT_NPY_H

#include <weft/array.h>
#include <weft/error.h>

WF_BEGIN_DECLS

/* Writes an array (any strides) as C-ordered little-endian "<f4", "<f8", "<i4" or "|b1", atomically; "/dev/stdout" is written
 * directly. Other dtypes are WF_ERR_ARGUMENT. */
WF_API wf_status wf_npy_save(const char *path, const wf_array *array, wf_error *error) WF_CHECKED;

/* An array in a file, mapped into memory and read only. Formats 1.0, 2.0 and 3.0, little-endian floats of 2, 4 and 8 bytes, integers of 1
 * to 8 bytes and booleans; an array in Fortran's order comes with strides the other way round. WF_ERR_IO; WF_ERR_FORMAT for anything else,
 * by name: arrays of Python objects (pickles), records, complex numbers, text, big-endian numbers, more than WF_MAX_DIMS dimensions, a
 * header that cannot be read, a file that is shorter or longer than its array, data that are not aligned to their size; WF_ERR_MEMORY.
 * Files from untrusted sources are safe to open. If another process truncates a file that is open here, reading what it lost ends this
 * process (SIGBUS).
 *
 *     wf_npy *file = wf_npy_load("x.npy", &error);
 *     const wf_array *x = wf_npy_array(file);
 *     ... x->data is valid until the close, and must not be written ...
 *     wf_npy_close(file); */
typedef struct wf_npy wf_npy;
WF_API wf_npy *wf_npy_load(const char *path, wf_error *error) WF_CHECKED;
/* The same from memory, which stays the caller's and must outlive the result; `label` is used in messages instead of the path. */
WF_API wf_npy *wf_npy_view(const void *data, int64_t bytes, const char *label, wf_error *error) WF_CHECKED;
/* Owned by the file; NULL for NULL. */
WF_API const wf_array *wf_npy_array(const wf_npy *npy);
WF_API void wf_npy_close(wf_npy *npy); /* NULL is allowed */

WF_END_DECLS

#endif
