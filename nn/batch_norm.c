/* SPDX-License-Identifier: MIT */
/* Batch normalisation with running statistics. */
#include <math.h>

#include "internal.h"

void wf_batch_norm_init_with(wf_scope scope, struct wf_batch_norm *m, int64_t channels, const struct wf_batch_norm_options *o)
{
    o = o ? o : &(struct wf_batch_norm_options){0};
    const wf_shape shape = {1, {channels}};
    const struct wf_initializer one = {.kind = WF_INIT_CONSTANT, .a = 1}, zero = {.kind = WF_INIT_CONSTANT};
    if (!(o->eps >= 0) || isinf(o->eps))
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "eps = %g must be a number of at least 0; 0 stands for 1e-5", o->eps);
    if (!(o->momentum >= 0 && o->momentum <= 1))
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "momentum = %g is not in 0 <= momentum <= 1; 0 stands for 0.1", o->momentum);
    *m = (struct wf_batch_norm){
        .weight = o->no_affine ? NULL : wf_parameter(scope, "weight", &shape, .init = one),
        .bias = o->no_affine ? NULL : wf_parameter(scope, "bias", &shape, .init = zero),
        .running_mean = wf_parameter(scope, "running_mean", &shape, .buffer = true, .persistent = true, .init = zero),
        .running_var = wf_parameter(scope, "running_var", &shape, .buffer = true, .persistent = true, .init = one),
        .eps = o->eps > 0 ? o->eps : 1e-5,
        .momentum = o->momentum > 0 ? o->momentum : 0.1,
        .evaluation = o->evaluation,
    };
}

wf_tensor *wf_batch_norm_forward(const struct wf_batch_norm *m, wf_tensor *x)
{
    wf_tape *tape = wf_tape_of(x);
    if (m->evaluation || !tape || wf_tape_mode(tape) != WF_TRAIN)
        return wf_batch_norm_running(x, m->running_mean, m->running_var, m->weight, m->bias, m->eps);
    wf_tensor *mean, *variance, *y = wf_batch_norm(x, m->weight, m->bias, m->eps, &mean, &variance);
    const wf_shape shape = wf_shape_of(x);
    if (wf_shape_count(&shape) > 0) { /* an empty batch has no statistics */
        wf_running_average(m->running_mean, mean, m->momentum);
        wf_running_average(m->running_var, variance, m->momentum);
    }
    wf_release(mean);
    wf_release(variance);
    return y;
}
