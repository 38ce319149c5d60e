/* SPDX-License-Identifier: MIT */
/* Maps over arrays of any strides into a dense result: what the element-wise ops share.
 *
 * The inputs are broadcast to the shape of `out`, which is dense. Dimensions that lie end to end in all operands are merged,
 * so that dense operands of one shape are one flat pass; the kernels then run along the innermost dimension. An operand
 * whose innermost stride a kernel does not take is gathered piece by piece on the stack. `cost`: nanoseconds an element. */
#ifndef WEFT_OPS_ELEMENTWISE_H
#define WEFT_OPS_ELEMENTWISE_H

#include <weft/array.h>

typedef void wf_unary_kernel(int64_t n, const wf_real *x, wf_real *y);
typedef void wf_binary_kernel(int64_t n, const wf_real *a, int sa, const wf_real *b, int sb, wf_real *c);
typedef void wf_grad_kernel(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx);

void wf_map_unary(wf_unary_kernel *f, const wf_array *x, const wf_array *out, double cost);
void wf_map_binary(wf_binary_kernel *f, const wf_array *a, const wf_array *b, const wf_array *out, double cost);
void wf_map_grad(wf_grad_kernel *f, const wf_array *x, const wf_array *dy, const wf_array *out, double cost);
void wf_map_affine(double scale, double shift, const wf_array *x, const wf_array *out); /* scale x + shift */

#endif
