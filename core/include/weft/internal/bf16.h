/* SPDX-License-Identifier: MIT */
/* Reals kept as bf16 for products to read later, in half the memory. */
#ifndef WEFT_INTERNAL_BF16_H
#define WEFT_INTERNAL_BF16_H

#include <weft/array.h>

/* Writes n reals as bf16, rounded as products in bf16 round their operands, except that a denormal becomes the smallest denormal of its
 * sign: products take it for 0, and `x > 0` stays true. */
void wf_bf16_keep(int64_t n, const wf_real *from, void *to);
/* Rows of bf16 as rows of reals. Elements of a row are contiguous, rows lie `step` elements apart in `from` and `columns` in `to`. */
void wf_bf16_widen(int64_t rows, int64_t columns, const void *from, int64_t step, wf_real *to);

#endif
