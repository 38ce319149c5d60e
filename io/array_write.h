/* SPDX-License-Identifier: MIT */
/* Writes arrays with any strides to files. */
#ifndef WEFT_IO_ARRAY_WRITE_H
#define WEFT_IO_ARRAY_WRITE_H

#include <weft/array.h>
#include <weft/internal/files.h>

/* Appends the elements of an array with any strides, in row-major order. */
void wf_array_write(wf_file_writer *out, const wf_array *array);
/* Returns true if an array can be written: its dtype and shape are valid, and its data are not NULL. The data may be NULL if the array has
 * no elements, or if they come from elsewhere (`elsewhere`). *bytes becomes the size of the elements. */
bool wf_array_writable(const wf_array *array, bool elsewhere, int64_t *bytes);

#endif
