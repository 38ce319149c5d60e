/* SPDX-License-Identifier: MIT */
/* The gradient check compares the gradients of backward with central differences. Link a program that uses it with libweft-f64: in float
 * the differences are coarse, so the default tolerance is large.
 *
 *   wf_error error = {0};
 *   if (wf_check_op(&op_double, NULL, &error) != WF_OK) puts(error.message);
 *
 * wf_check_op does the following for each case of an op's descriptor:
 *   - It compares the gradients of sum(out * R), where R is random, with central differences. It does so along random directions of each
 *     input alone (with several inputs at once, wrong signs could cancel), and along every coordinate of small inputs.
 *   - It repeats the run with transposed and sliced operands, with operands that repeat a row by a stride of 0, and with each subset
 *     of inputs that need gradients. Values and gradients must be the same.
 *   - If .reads of the descriptor leaves out an input or the result, the check replaces this value between forward and backward. It
 *     also takes operands whose values the engine releases during the backward. The gradients must be the same.
 *   - It uses one tensor as two inputs, and lets another op share the gradient of the result. The gradients must be right all the same.
 *   - It runs without recording (WF_INFER). The values must be the same.
 *
 * If an op has several outputs, only the first is checked; check the others with wf_check_function.
 *
 * If the result of an op has no gradient, its descriptor says .constant, and only its values are checked. A case lists real inputs that
 * have no gradient in its own .constant. The check fails if the op accepts such an input when it needs a gradient, and gives it none. */
#ifndef WEFT_GRADCHECK_H
#define WEFT_GRADCHECK_H

#include <weft/op.h>

WF_BEGIN_DECLS

struct wf_gradcheck_options {
    double tolerance; /* the largest relative error; 0 means 1e-6 in double, 3e-2 in float */
    double step;      /* the step of the central differences; 0 means 1e-5 in double, 1e-2 in float */
    uint64_t seed;    /* selects the random values */
};

/* Checks every case of op; `options` may be NULL. It also fails if op has no cases, has neither backward nor .constant, or has both. The
 * message names the op, the case and the input, and gives the numbers. */
WF_API wf_status wf_check_op(const wf_op *op, const struct wf_gradcheck_options *options, wf_error *error) WF_CHECKED;
/* Checks one case, as wf_check_op does for every case. */
WF_API wf_status wf_check_case(const wf_op *op, const struct wf_case *c, const struct wf_gradcheck_options *options,
                               wf_error *error) WF_CHECKED;

/* Checks a function of tensors by central differences only. fn(ctx, tape, in) takes in[0 .. inputs-1] of the given shapes and returns a
 * real tensor of any shape. The values of in[i] are drawn from N(0,1), or as fill[i] says if `fill` is not NULL. `options` may be NULL.
 * Parameters that fn uses, and tensors that it makes with wf_input, count as constants. From wf_backward on, inner values that no backward
 * reads are NaN. */
typedef wf_tensor *(*wf_function)(void *ctx, wf_tape *tape, wf_tensor *const in[]);
WF_API wf_status wf_check_function(wf_function fn, void *ctx, int inputs, const wf_shape *shapes, const enum wf_fill *fill,
                                   const struct wf_gradcheck_options *options, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
