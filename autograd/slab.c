/* SPDX-License-Identifier: MIT */
/* Gradient slabs: where a pass writes the gradients of parameters, and how a caller reads them afterwards. */
#include <string.h>

#include <weft/compute.h>
#include <weft/internal/averages.h>
#include <weft/internal/kernels.h>
#include <weft/internal/slab.h>

#include "engine.h"

void wf_grads_zero(wf_grads *grads)
{
    memset(grads->valid, 0, (size_t)grads->parameters * sizeof *grads->valid);
    grads->broken = false;
    grads->factor = 0;
    grads->finite = false;
    if (grads->averages)
        wf_averages_clear(grads->averages);
}

static void settle_block(void *ctx, int64_t i)
{
    const wf_grads *grads = ctx;
    const struct wf_grads_block *b = &grads->block[i];
    wf_real factor = (wf_real)grads->factor, *g = wf_grads_block_data(grads, b);
    if (grads->valid[b->parameter])
        wf_kernel->mul(b->count, g, 1, &factor, 0, g);
}

void wf_grads_settle(wf_grads *grads)
{
    if (grads->factor == 0)
        return;
    wf_parallel(grads->blocks, 0.12 * (double)grads->count, settle_block, grads);
    grads->factor = 0;
    grads->finite = false;
}

/* Whether the slab has room for the gradient of the parameter. */
static bool has_room(const wf_grads *grads, const struct wf_parameter_info *info)
{
    return info->index < grads->parameters && grads->place[info->index].count == wf_array_count(&info->value);
}

bool slab_of(wf_tape *tape, const struct wf_parameter_info *info, wf_grads **grads)
{
    *grads = tape->mode == WF_INFER || info->frozen ? NULL : tape->options.grads ? tape->options.grads : info->grads;
    if (!*grads)
        return true;
    /* The index of a parameter is valid only in the slabs of its own registry. */
    if ((*grads)->registry != info->registry)
        wf_tape_fail(tape, WF_ERR_STATE,
                     "the parameter '%s' and the gradients in .grads belong to different registries: freeze the parameter with "
                     "wf_registry_freeze, or reset the tape without .grads, so that each registry's own gradients are used",
                     info->name);
    else if (info->index >= (*grads)->parameters)
        wf_tape_fail(tape, WF_ERR_STATE,
                     "the parameter '%s' was declared after the gradients in .grads were created: call wf_grads_new after "
                     "wf_registry_build or wf_registry_load",
                     info->name);
    else if (!has_room(*grads, info))
        wf_tape_fail(tape, WF_ERR_STATE,
                     "the parameter '%s' was frozen when the gradients were created, and there is no room for its gradient: call %s after "
                     "wf_registry_freeze",
                     info->name, *grads == info->grads ? "wf_registry_gradients" : "wf_grads_new");
    return tape->error.code == WF_OK;
}

wf_real *slab_target(wf_tape *tape, const struct wf_parameter_info *info, bool **valid)
{
    wf_grads *grads = info->grads;
    if (!has_room(grads, info)) {
        wf_tape_fail(tape, WF_ERR_STATE, "the parameter '%s' lost the room for its gradient during this pass: call wf_tape_reset after %s",
                     info->name, "wf_registry_gradients");
        return NULL;
    }
    wf_grads_settle(grads);
    grads->finite = false;
    *valid = &grads->valid[info->index];
    return grads->slab + grads->place[info->index].offset;
}

wf_real *slab_gradient(const struct wf_parameter_info *info)
{
    wf_grads *grads = info->grads;
    if (!grads || info->index >= grads->parameters || !grads->valid[info->index])
        return NULL;
    wf_grads_settle(grads);
    return grads->slab + grads->place[info->index].offset;
}

wf_real *wf_grads_at(wf_grads *grads, const wf_tensor *parameter)
{
    const struct wf_parameter_info *info = wf_parameter_info(parameter);
    if (!info || !grads || info->registry != grads->registry || grads->broken)
        return NULL;
    struct wf_parameter_info here = *info;
    here.grads = grads;
    wf_real *gradient = slab_gradient(&here);
    grads->finite = false; /* the caller may write through the pointer */
    return gradient;
}
