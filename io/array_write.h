/* SPDX-License-Identifier: MIT */
/* Arrays of any strides into files. */
#ifndef WEFT_IO_ARRAY_WRITE_H
#define WEFT_IO_ARRAY_WRITE_H

#include <weft/array.h>
#include <weft/file.h>

enum { ARRAY_PIECE = 1 << 16 }; /* bytes gathered at once from a strided array; a multiple of every element's size */

/* Appends the elements in row-major order. piece: room for ARRAY_PIECE bytes. */
void wf_array_write(wf_file_writer *out, const wf_array *array, char *piece);

#endif
