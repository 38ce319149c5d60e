/* SPDX-License-Identifier: MIT */
/* The gradient check: analytic gradients against central differences. Use it with libweft-f64: in float the differences are
 * coarse, and the default tolerance is large accordingly.
 *
 *   wf_error error = {0};
 *   if (wf_check_op(&op_double, NULL, &error) != WF_OK) puts(error.message);
 *
 * For each case of an op's descriptor:
 *   - gradients of sum(out * R), R random, against central differences along random directions of each input alone (so a
 *     wrong sign cannot cancel) and along every coordinate of small inputs;
 *   - each subset of inputs that need gradients, transposed and sliced operands, and operands broadcast by strides of 0:
 *     the same values and gradients;
 *   - the value of each input, and of the result, that backward does not read by the descriptor replaced after the forward,
 *     and operands whose values the engine gives up in backward: the same gradients;
 *   - inputs used twice, and another consumer that shares the gradient of the result;
 *   - values without recording.
 * Of an op with several outputs the first is checked; check the others by wf_check_function, with a function of them.
 * An op whose result has no gradient says so by .constant in its descriptor; its values alone are checked. A case names real inputs that
 * have no gradient in .constant; an op that takes one which needs a gradient, and gives it none, fails. */
#ifndef WEFT_GRADCHECK_H
#define WEFT_GRADCHECK_H

#include <weft/op.h>

WF_BEGIN_DECLS

struct wf_gradcheck_options {
    double tolerance; /* relative; 0: 1e-6 in double, 3e-2 in float */
    double step;      /* of the differences; 0: 1e-5 in double, 1e-2 in float */
    uint64_t seed;
};

/* Every case of op. An op without cases fails, and one with neither backward nor .constant, or with both. The message names op, case, input
 * and the numbers. */
WF_API wf_status wf_check_op(const wf_op *op, const struct wf_gradcheck_options *options, wf_error *error) WF_CHECKED;
/* One case; the rest as above. */
WF_API wf_status wf_check_case(const wf_op *op, const struct wf_case *c, const struct wf_gradcheck_options *options,
                               wf_error *error) WF_CHECKED;

/* A function of tensors: fn(ctx, tape, in) with in[0 .. inputs-1] of the given shapes, N(0,1) or as fill says (fill may be
 * NULL), -> any real tensor. Parameters that fn uses, and what it makes by wf_input,
 * are constants here. Central differences only; inner values that no
 * backward reads are NaN from wf_backward on. */
typedef wf_tensor *(*wf_function)(void *ctx, wf_tape *tape, wf_tensor *const in[]);
WF_API wf_status wf_check_function(wf_function fn, void *ctx, int inputs, const wf_shape *shapes, const enum wf_fill *fill,
                                   const struct wf_gradcheck_options *options, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
