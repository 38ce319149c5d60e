/* SPDX-License-Identifier: MIT */
/* Checks the gradients of a module against central differences: the gradients with respect to all parameters in a registry, and with
 * respect to the module's inputs. Use it with libweft-f64. */
#ifndef WEFT_CHECK_H
#define WEFT_CHECK_H

#include <weft/gradcheck.h>
#include <weft/registry.h>

WF_BEGIN_DECLS

/* fn(ctx, tape, in), as for wf_check_function, runs the module and returns any real tensor y. in[0 .. inputs-1] have the given shapes, with
 * values from N(0,1); fn itself provides ids, masks and targets. It must return the same y for the same values. It is called in
 * WF_GRADIENTS, where dropout does nothing. Let R be random numbers in the shape of y. The check compares the gradients of sum(y * R) with
 * respect to the following with central differences:
 *   - each parameter that is not frozen, one at a time: along random directions, and along every element of a small parameter;
 *   - the inputs, as wf_check_function does; `inputs` may be 0, and then `shapes` may be NULL.
 * Parameters keep their values, and their gradients are set to zero. If a value lies at a kink of an op, such as 0 for ReLU, the check
 * fails although the gradients are right: choose another seed, or a smaller step. The message names the parameter, the gradient and the
 * difference. `options` may be NULL.
 *
 *   static wf_tensor *run(void *ctx, wf_tape *tape, wf_tensor *const in[])
 *   {
 *       return block_forward(ctx, in[0]);
 *   }
 *   if (wf_check_module(registry, run, &block, 1, &(wf_shape){3, {2, 5, 16}}, NULL, &error) != WF_OK) puts(error.message);
 */
WF_API wf_status wf_check_module(wf_registry *registry, wf_function fn, void *ctx, int inputs, const wf_shape *shapes,
                                 const struct wf_gradcheck_options *options, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
