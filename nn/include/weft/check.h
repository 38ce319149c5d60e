/* SPDX-License-Identifier: MIT */
/* The gradient check of modules: all parameters of a registry, and the inputs, against central differences. Use it with libweft-f64. */
#ifndef WEFT_CHECK_H
#define WEFT_CHECK_H

#include <weft/gradcheck.h>
#include <weft/registry.h>

WF_BEGIN_DECLS

/* fn(ctx, tape, in), as for wf_check_function, runs the module on in[0 .. inputs-1] of the given shapes, drawn from N(0,1), and returns any
 * real tensor y; ids, masks and targets are its own matter. It must give the same for the same values, and is called in WF_GRADIENTS, where
 * there is no dropout. Checked are the gradients of sum(y * R), R random:
 *   - of each parameter that is not frozen, alone: along random directions, and along every element of small ones;
 *   - of the inputs, as wf_check_function does; inputs may be 0, shapes NULL.
 * Parameters keep their values; their gradients are set to zero. Values at which an op has a kink, such as a ReLU's 0, give false alarms:
 * choose another seed, or a smaller step. The message names the parameter, the gradient and the difference. Options may be NULL.
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
