/* SPDX-License-Identifier: MIT */
/* Weft's own ops: the descriptors that ops.def lists, and access to them by number. Also what these ops, and checks of ops, need from the
 * engine. */
#ifndef WEFT_INTERNAL_OPS_ALL_H
#define WEFT_INTERNAL_OPS_ALL_H

#include <weft/op.h>
#include <weft/random.h>

#define OP(name) extern const wf_op wf_op_##name;
#include "../../../ops.def"
#undef OP

/* Whether x is the result of an op with .view, and needs a gradient. wf_apply_view refuses views of such a tensor. */
bool wf_gradient_is_apart(const wf_tensor *x);

/* Whether an op with the operand x makes a record now. */
bool wf_records(const wf_tensor *x);

/* x placed into zeros of the given shape, at the elements that `view` shows from element `offset` on (ops/place.c). */
wf_tensor *wf_place(wf_tensor *x, const wf_shape *shape, const wf_array *view, int64_t offset);

/* For checks: from now on wf_backward releases values of any size, not only large ones, and all released memory is filled with NaN. */
void wf_tape_erase(wf_tape *tape);

int wf_op_count(void);
const wf_op *wf_op_at(int index);

/* A case's number of operands; and whether operand i is there, with its shape. */
int wf_case_operands(const struct wf_case *c);
bool wf_case_operand(const struct wf_case *c, int i, wf_shape *shape);
static inline bool wf_fill_is_real(enum wf_fill fill)
{
    return fill == WF_FILL_NORMAL || fill == WF_FILL_POSITIVE || fill == WF_FILL_APART || fill == WF_FILL_UNIT;
}
/* Fills an array of `count` reals, ids or bools. Reals are rounded to float. */
void wf_case_fill(enum wf_fill fill, int32_t limit, int64_t count, wf_rng *rng, void *values);

/* Runs a case and lists its results and gradients, so that a float build can be compared with a double build. Both builds round the inputs
 * to float. Sets *out to an array of *count numbers, which the caller frees with wf_free. */
wf_status wf_case_numbers(const wf_op *op, const struct wf_case *c, double **out, int64_t *count, wf_error *error) WF_CHECKED;

#endif
