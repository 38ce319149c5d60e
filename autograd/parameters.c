/* SPDX-License-Identifier: MIT */
/* Parameters: tensors without a tape, and the slabs of their gradients. */
#include <string.h>

#include "engine.h"

#include <weft/internal/parameter.h>

size_t wf_parameter_size(void)
{
    return sizeof(wf_tensor);
}

wf_tensor *wf_parameter_init(void *memory, const struct wf_parameter_info *info)
{
    wf_tensor *x = memory;
    memset(x, 0, sizeof *x);
    x->kind = TENSOR_PARAMETER;
    x->a = info->value;
    x->name = info->name;
    x->made_by = "parameter";
    x->needs_grad = !info->frozen;
    x->info = *info;
    return x;
}

const struct wf_parameter_info *wf_parameter_info(const wf_tensor *parameter)
{
    return parameter->kind == TENSOR_PARAMETER ? &parameter->info : NULL;
}

void wf_grads_zero(wf_grads *grads)
{
    memset(grads->valid, 0, (size_t)grads->parameters * sizeof *grads->valid);
    grads->broken = false;
}
