/* SPDX-License-Identifier: MIT */
/* Reads and writes NumPy's array files (.npy, numpy.org/doc/stable/reference/generated/numpy.lib.format.html). */
#ifndef WEFT_NPY_H
#define WEFT_NPY_H

#include <weft/array.h>
#include <weft/error.h>

WF_BEGIN_DECLS

/* Writes an array (any strides) in C order, little-endian, as "<f4", "<f8", "<i4" or "|b1". The file is replaced atomically; "/dev/stdout"
 * is written directly. WF_ERR_ARGUMENT: the array has another dtype, or its shape or data are invalid. */
WF_API wf_status wf_npy_save(const char *path, const wf_array *array, wf_error *error) WF_CHECKED;

/* Maps the array in a file into memory, read-only. Accepts formats 1.0, 2.0 and 3.0, little-endian floats of 2, 4 and 8 bytes, integers of
 * 1 to 8 bytes, and booleans. An array in Fortran order is not copied: the stride of its first dimension is 1. Files from untrusted sources
 * are safe to open.
 *
 * Returns NULL and sets *error on failure. WF_ERR_IO: the file can't be opened. WF_ERR_MEMORY: no memory. WF_ERR_FORMAT, with the reason in
 * the message: arrays of Python objects (pickles), records, complex numbers, text, big-endian numbers, more than WF_MAX_DIMS dimensions, a
 * header that can't be read, a file that is shorter or longer than its array, and elements that do not begin at a multiple of their size.
 *
 * If another process truncates the file while it is mapped, this process ends as soon as it reads one of the lost bytes (SIGBUS).
 *
 *     wf_npy *file = wf_npy_load("x.npy", &error);
 *     const wf_array *x = wf_npy_array(file);
 *     ... x->data is valid until the close, and must not be written ...
 *     wf_npy_close(file); */
typedef struct wf_npy wf_npy;
WF_API wf_npy *wf_npy_load(const char *path, wf_error *error) WF_CHECKED;
/* Does the same as wf_npy_load for a file in memory. The memory stays the caller's and must outlive the result. Messages show `label`
 * instead of a path. */
WF_API wf_npy *wf_npy_view(const void *data, int64_t bytes, const char *label, wf_error *error) WF_CHECKED;
/* Returns the array, which belongs to `npy`; NULL if `npy` is NULL. */
WF_API const wf_array *wf_npy_array(const wf_npy *npy);
WF_API void wf_npy_close(wf_npy *npy); /* `npy` may be NULL */

WF_END_DECLS

#endif
