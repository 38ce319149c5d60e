/* SPDX-License-Identifier: MIT */
/* The gradient check compares the gradients that a backward pass computes with central differences. Link a program that uses the check with
 * libweft-f64, which computes in double: in float the differences are coarse, so the default tolerance has to be large.
 *
 *   wf_error error = {0};
 *   if (wf_check_op(&op_double, NULL, &error) != WF_OK) puts(error.message);
 *
 * wf_check_op does the following for each case of an op's descriptor:
 *   - It compares the gradients of sum(out * R), where out is the op's result and R is random, with central differences. It does so along
 *     random directions of each input alone (with several inputs at once, wrong signs could cancel), and along every coordinate of small
 *     inputs.
 *   - It runs the op again with transposed and sliced operands, with operands that repeat a row by a stride of 0, and, for each subset of
 *     the inputs, with gradients needed for this subset only. Here and below, values and gradients must be the same as in the first run,
 *     apart from rounding.
 *   - If .reads of the descriptor leaves out an input or the result, the check replaces the values of that array between forward and
 *     backward. It also runs the op on results of another op, whose values the engine erases once no backward reads them. In both runs the
 *     gradients must be the same as in the first run.
 *   - It uses one tensor as two inputs. It also lets the op's result and another tensor share one array for their gradients, as the
 *     operands of a wf_add do. The gradients must be right all the same.
 *   - If the op has .gradient, that must give the gradients of the first run too. In double it is itself compared with central differences,
 *     of the gradients by the operands and by the gradient of the result.
 *   - It runs the op without recording (WF_INFER), unless the case has .train. The values must be the same as in the first run.
 *
 * If an op has several outputs, only the first is checked; check the others with wf_check_function.
 *
 * If the result of an op has no gradient, its descriptor says .constant, and only its values are checked. The member .constant of a case
 * marks real inputs that have no gradient. If such an input needs a gradient nevertheless, the op must fail or give one; otherwise the
 * check fails. */
#ifndef WEFT_GRADCHECK_H
#define WEFT_GRADCHECK_H

#include <weft/op.h>

WF_BEGIN_DECLS

struct wf_gradcheck_options {
    double tolerance; /* the largest relative error; 0 means 1e-6 in double, 3e-2 in float */
    double step;      /* the step of the central differences; 0 means 1e-5 in double, 1e-2 in float */
    uint64_t seed;    /* selects the random values */
};

/* Checks every case of `op`; `options` may be NULL. The check also fails if the op has no cases, has neither .backward nor .constant, or
 * has both. The message names the op, the case, the input and the difference. */
WF_API wf_status wf_check_op(const wf_op *op, const struct wf_gradcheck_options *options, wf_error *error) WF_CHECKED;
/* Checks one case, as wf_check_op does for every case. */
WF_API wf_status wf_check_case(const wf_op *op, const struct wf_case *c, const struct wf_gradcheck_options *options,
                               wf_error *error) WF_CHECKED;

/* Compares the gradients of a function of tensors with central differences; the other checks of wf_check_op are not done. fn(ctx, tape, in)
 * takes in[0 .. inputs-1] of the given shapes and returns a real tensor of any shape. The values of in[i] are drawn from N(0,1), or as
 * fill[i] says if `fill` is not NULL. `options` may be NULL. Parameters that fn uses, and tensors that it makes with wf_input, count as
 * constants. fn must depend on each real input, and may take gradients by them (wf_gradients with .create_graph), as PyTorch's
 * gradgradcheck does. As soon as no backward reads an inner value any more, the check overwrites it with NaN, so that a wrong use shows. */
typedef wf_tensor *(*wf_function)(void *ctx, wf_tape *tape, wf_tensor *const in[]);
WF_API wf_status wf_check_function(wf_function fn, void *ctx, int inputs, const wf_shape *shapes, const enum wf_fill *fill,
                                   const struct wf_gradcheck_options *options, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
