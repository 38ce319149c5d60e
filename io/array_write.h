/* SPDX-License-Identifier: MIT */
#ifndef WEFT_IO_ARRAY_WRITE_H
#define WEFT_IO_ARRAY_WRITE_H

#include <weft/array.h>
#include <weft/internal/files.h>

/* Appends the elements of an array of any strides in row-major order. */
void wf_array_write(wf_file_writer *out, const wf_array *array);
/* Whether an array can be written: its dtype, its shape, and its data unless these come from elsewhere; *bytes is its size. */
bool wf_array_writable(const wf_array *array, bool elsewhere, int64_t *bytes);

#endif
