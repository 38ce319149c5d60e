/* SPDX-License-Identifier: MIT */
/* The slabs of an optimiser: which moments a parameter has, where they are, and their memory. */
#include <string.h>

#include <weft/internal/minmax.h>

#include "internal.h"

void drop_moments(struct wf_optimizer_part *part)
{
    for (int k = 0; k < SLABS; k++) {
        wf_free(part->moment[k]);
        part->moment[k] = NULL;
    }
    memset(part->size, 0, sizeof part->size);
    for (int i = 0; part->parameter && i < wf_registry_count(part->registry); i++)
        part->parameter[i].placed = part->parameter[i].wanted = part->parameter[i].averaged = false;
}

bool has_slab(const struct wf_optimizer *opt, const struct wf_optimizer_part *part, int i, int k, wf_shape *shape)
{
    *shape = wf_array_shape(&info_of(part, i)->value);
    if (k == AVERAGE || !opt->rule->slab_shape)
        return k == AVERAGE || k < slabs_of(opt->rule);
    return k < slabs_of(opt->rule) && opt->rule->slab_shape(opt->ctx, wf_registry_at(part->registry, i), k, shape);
}

int64_t room_of(const struct wf_optimizer *opt, const struct wf_optimizer_part *part, const struct wf_shard *shard, int i, int k)
{
    wf_shape shape;
    if (!has_slab(opt, part, i, k, &shape))
        return -1;
    const int64_t count = count_of(part, i);
    if (!wf_shard_is_whole(shard, i))
        return wf_shard_elements(shard, i, count, shard ? count : wf_shape_count(&shape));
    return count > 0 && wf_shard_owns(shard, i, 0) ? wf_shape_count(&shape) : 0;
}

void place_moments(const struct wf_optimizer *opt, struct wf_optimizer_part *part, const struct wf_shard *shard, int i)
{
    for (int k = 0; k < SLABS; k++) {
        const int64_t room = room_of(opt, part, shard, i, k);
        part->parameter[i].place[k] = room < 0 ? -1 : part->size[k];
        part->size[k] += room < 0 ? 0 : (room + 15) / 16 * 16;
    }
    part->parameter[i].placed = true;
}

/* Returns true if the parameter needs moments and has no moments yet. */
static bool to_make(const struct wf_optimizer_part *part, int i)
{
    const struct wf_optimizer_parameter *p = &part->parameter[i];
    return !p->placed && !p->skipped && (p->wanted || !info_of(part, i)->frozen);
}

/* Replaces the slabs by larger ones where new parameters or settings need it. */
static wf_status make_moments_of(const struct wf_optimizer *opt, struct wf_optimizer_part *part, wf_error *error)
{
    const struct wf_shard *shard = wf_registry_grads(part->registry)->shard;
    wf_real *moment[SLABS] = {NULL};
    int64_t size[SLABS], all = 0;
    bool ready = true;
    memcpy(size, part->size, sizeof size);
    for (int k = 0; k < SLABS; k++) {
        for (int i = 0; i < wf_registry_count(part->registry); i++)
            size[k] += to_make(part, i) ? (WF_MAX(room_of(opt, part, shard, i, k), 0) + 15) / 16 * 16 : 0;
        all += size[k];
        if (slab_used(opt, k) && (size[k] > part->size[k] || !part->moment[k]))
            ready = (moment[k] = wf_alloc_zero((size_t)size[k] + 1, sizeof *moment[k])) && ready;
    }
    for (int k = 0; k < SLABS; k++)
        if (!ready) {
            wf_free(moment[k]);
        } else if (moment[k]) {
            if (part->moment[k])
                memcpy(moment[k], part->moment[k], (size_t)part->size[k] * sizeof *moment[k]);
            wf_free(part->moment[k]);
            part->moment[k] = moment[k];
        } else if (size[k] > part->size[k]) { /* a slab that is too small and no longer in use */
            wf_free(part->moment[k]);
            part->moment[k] = NULL;
        }
    if (!ready)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the moments of %lld values", (long long)all);
    for (int i = 0; i < wf_registry_count(part->registry); i++)
        if (to_make(part, i)) {
            place_moments(opt, part, shard, i);
            part->parameter[i].wanted = true;
        }
    return WF_OK;
}

/* Allocates the workspace for the largest whole parameter of this process. */
static wf_status make_workspace(struct wf_optimizer *opt, wf_error *error)
{
    int64_t size = opt->workspace_size;
    for (int64_t j = 0; opt->rule->workspace && j < opt->parts; j++)
        for (int i = 0; i < wf_registry_count(opt->part[j].registry); i++) {
            const struct wf_optimizer_parameter *p = &opt->part[j].parameter[i];
            if (p->placed && p->whole && wf_shard_owns(wf_registry_grads(opt->part[j].registry)->shard, i, 0))
                size = WF_MAX(size, opt->rule->workspace(opt->ctx, wf_registry_at(opt->part[j].registry, i)));
        }
    if (size == opt->workspace_size)
        return WF_OK;
    wf_free(opt->workspace);
    opt->workspace = wf_alloc_zero((size_t)size, sizeof *opt->workspace);
    opt->workspace_size = opt->workspace ? size : 0;
    return opt->workspace
               ? WF_OK
               : wf_error_set(error, WF_ERR_MEMORY, "no memory for the workspace of %s, %lld values", opt->rule->name, (long long)size);
}

wf_status make_moments(struct wf_optimizer *opt, wf_error *error)
{
    wf_status status = WF_OK;
    for (int64_t k = 0; status == WF_OK && k < opt->parts; k++)
        status = make_moments_of(opt, &opt->part[k], error);
    return status == WF_OK ? make_workspace(opt, error) : status;
}
