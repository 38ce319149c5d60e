/* SPDX-License-Identifier: MIT */
#ifndef WEFT_IO_ARRAY_WRITE_H
#define WEFT_IO_ARRAY_WRITE_H

#include <weft/array.h>
#include <weft/internal/files.h>

/* Appends the elements of an array of any strides in row-major order. */
void wf_array_write(wf_file_writer *out, const wf_array *array);
/* Whether dtype, shape and data, unless they come from elsewhere, are those of an array that can be written; *bytes is what it takes. */
bool wf_array_writable(const wf_array *array, bool elsewhere, int64_t *bytes);

#endif
