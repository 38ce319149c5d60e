/* SPDX-License-Identifier: MIT */
/* The built-in ops: the descriptor of every line of ops.def, and all of them by number. */
#ifndef WEFT_INTERNAL_OPS_ALL_H
#define WEFT_INTERNAL_OPS_ALL_H

#include <weft/op.h>

#define OP(name) extern const wf_op wf_op_##name;
#include "../../../ops.def"
#undef OP

/* True for a result of an op with .view that needs a gradient: wf_apply_view refuses views of it. */
bool wf_gradient_is_apart(const wf_tensor *x);

/* For checks: wf_backward gives up values of any size, not only large ones, and memory that is given up reads as NaN. */
void wf_tape_erase(wf_tape *tape);

int wf_op_count(void);
const wf_op *wf_op_at(int index);

/* The values and gradients of a case as a flat list of numbers, inputs rounded to float first, so that a float build can
 * be compared with a double one: *out from wf_alloc, *count numbers. */
wf_status wf_case_numbers(const wf_op *op, const struct wf_case *c, double **out, int64_t *count, wf_error *error) WF_CHECKED;

#endif
