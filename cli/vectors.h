/* SPDX-License-Identifier: MIT */
/* Rows of numbers, and the cosines between them, on standard output. */
#ifndef WEFT_CLI_VECTORS_H
#define WEFT_CLI_VECTORS_H

#include "cli.h"
#include "display.h"

enum vectors_format {
    VECTORS_TEXT, /* numbers with blanks between, a line a row */
    VECTORS_JSON, /* an array a line */
    VECTORS_NPY   /* one file of NumPy's: all rows at once */
};
/* x [rows,columns]. It is flushed: what was printed does not wait for what follows. */
wf_status vectors_print(const float *x, int64_t rows, int64_t columns, enum vectors_format format, wf_error *error) WF_CHECKED;
/* The cosine of each row of x [n,d] with each: [n,n]. x is changed. A row of zeros has a cosine of 0 with every row. */
wf_status vectors_cosines(float *x, int64_t n, int64_t d, enum vectors_format format, struct display *display, wf_error *error) WF_CHECKED;

#endif
