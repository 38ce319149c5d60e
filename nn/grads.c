/* SPDX-License-Identifier: MIT */
/* Gradient slabs: memory for the gradients of the parameters that are not frozen. */
#include <string.h>

#include <weft/internal/averages.h>
#include <weft/internal/minmax.h>
#include <weft/internal/slab.h>

#include "internal.h"

static int64_t blocks_of(int64_t count)
{
    return (count + WF_GRADS_BLOCK - 1) / WF_GRADS_BLOCK;
}

/* Gives each parameter that is not frozen its range in the slab, and divides the ranges into blocks. */
static void lay_out(wf_grads *grads, const wf_registry *registry)
{
    struct wf_grads_block *block = grads->block;
    for (int i = 0; i < registry->count; i++) {
        const struct entry *e = &registry->entry[i];
        for (int64_t at = 0; !e->info.frozen && at < e->count; at += WF_GRADS_BLOCK)
            *block++ = (struct wf_grads_block){i, at, WF_MIN(e->count - at, WF_GRADS_BLOCK)};
        grads->place[i] = (struct wf_grads_place){grads->count, e->info.frozen ? 0 : e->count};
        grads->count += registry_room(grads->place[i].count);
    }
}

wf_grads *wf_grads_new(const wf_registry *registry, wf_error *error)
{
    if (!registry) {
        wf_error_set(error, WF_ERR_ARGUMENT, "wf_grads_new: the registry is NULL: look at what wf_registry_new returned");
        return NULL;
    }
    size_t slab = 0, parameters = (size_t)registry->count;
    wf_grads *grads = wf_alloc_zero(1, sizeof *grads);
    if (grads) {
        for (int i = 0; i < registry->count; i++)
            if (!registry->entry[i].info.frozen) {
                slab += (size_t)registry_room(registry->entry[i].count);
                grads->blocks += blocks_of(registry->entry[i].count);
            }
        grads->slab = wf_alloc_zero(slab + 1, sizeof *grads->slab);
        grads->place = wf_alloc_zero(parameters + 1, sizeof *grads->place);
        grads->valid = wf_alloc_zero(parameters + 1, sizeof *grads->valid);
        grads->block = wf_alloc_zero((size_t)grads->blocks + 1, sizeof *grads->block);
        grads->partial = wf_alloc_zero((size_t)grads->blocks + 1, sizeof *grads->partial);
        grads->parameters = registry->count;
        grads->registry = registry->number;
    }
    if (!grads || !averages_new(registry, &grads->averages) || !grads->slab || !grads->place || !grads->valid || !grads->block ||
        !grads->partial) {
        wf_grads_free(grads);
        wf_error_set(error, WF_ERR_MEMORY, "no memory for the gradients of %lld parameters", (long long)slab);
        return NULL;
    }
    lay_out(grads, registry);
    return grads;
}

void wf_grads_free(wf_grads *grads)
{
    if (!grads)
        return;
    wf_free(grads->slab);
    wf_free(grads->place);
    wf_free(grads->valid);
    wf_free(grads->block);
    wf_free(grads->partial);
    wf_free(grads->averages);
    wf_free(grads);
}

/* Whether the slab has ranges for exactly the parameters that are not frozen now. */
static bool fits(const wf_grads *grads, const wf_registry *registry)
{
    bool same = grads->parameters == registry->count;
    for (int i = 0; same && i < registry->count; i++)
        same = grads->place[i].count == (registry->entry[i].info.frozen ? 0 : registry->entry[i].count);
    return same;
}

/* Copies the gradients of *from that have a range in *to, and the members that do not depend on the slab. */
static void take_over(wf_grads *to, const wf_grads *from)
{
    for (int i = 0; i < from->parameters; i++)
        if (from->valid[i] && to->place[i].count > 0) {
            memcpy(to->slab + to->place[i].offset, from->slab + from->place[i].offset, (size_t)to->place[i].count * sizeof *to->slab);
            to->valid[i] = true;
        }
    to->factor = from->factor;
    to->broken = from->broken;
    to->updates = from->updates;
    to->ready = from->ready;
    to->ready_ctx = from->ready_ctx;
    to->shard = from->shard;
    if (to->averages && from->averages) /* the same buffers, which are all declared before there are gradients */
        memcpy(to->averages->number, from->averages->number, (size_t)to->averages->numbers * sizeof *to->averages->number);
}

wf_status wf_registry_gradients(wf_registry *registry, wf_error *error)
{
    if (!registry)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the registry is NULL: look at what wf_registry_new returned");
    wf_status status = registry_allocate(registry, error);
    if (status != WF_OK || (registry->grads && fits(registry->grads, registry)))
        return status;
    wf_grads *fresh = wf_grads_new(registry, error);
    if (!fresh)
        return WF_ERR_MEMORY;
    if (registry->grads) { /* tapes and optimisers hold this address, so the content is replaced */
        take_over(fresh, registry->grads);
        wf_grads old = *registry->grads;
        *registry->grads = *fresh;
        *fresh = old;
        wf_grads_free(fresh);
        return WF_OK;
    }
    registry->grads = fresh;
    for (int i = 0; i < registry->count; i++)
        registry_connect(registry, &registry->entry[i]);
    return WF_OK;
}

const char *registry_untrainable(const struct entry *e)
{
    if (e->mapped)
        return "mapped from a file, and so has no gradient: load it without .map";
    return e->stored ? "stored as BF16, and so has no gradient: store it as F32" : NULL;
}

/* The entry of a parameter; NULL, with an error of the registry, if it has another registry. */
static struct entry *entry_of(wf_registry *registry, const wf_tensor *parameter, const char *function)
{
    const struct wf_parameter_info *info = wf_parameter_info(parameter);
    struct entry *e = info && info->registry == registry->number && info->index < registry->count ? &registry->entry[info->index] : NULL;
    if (e && e->tensor == parameter)
        return e;
    wf_error_set(&registry->error, WF_ERR_ARGUMENT, "%s: '%s' is not a parameter of this registry", function, wf_name_of(parameter));
    return NULL;
}

void wf_registry_table(wf_registry *registry, wf_tensor *parameter, bool table)
{
    struct entry *e = registry ? entry_of(registry, parameter, "wf_registry_table") : NULL;
    if (!e)
        return;
    e->info.table = table;
    registry_connect(registry, e);
}

void wf_registry_freeze(wf_registry *registry, wf_tensor *parameter, bool frozen)
{
    struct entry *e = registry ? entry_of(registry, parameter, "wf_registry_freeze") : NULL;
    if (!e)
        return;
    if (!frozen && registry_untrainable(e)) {
        wf_error_set(&registry->error, WF_ERR_ARGUMENT, "wf_registry_freeze: '%s' is %s", wf_name_of(parameter), registry_untrainable(e));
    } else if (!e->buffer) {
        e->info.frozen = frozen;
        registry_connect(registry, e);
        if (frozen && registry->grads) { /* its old gradient must not count in a norm or an update */
            registry->grads->valid[e->info.index] = false;
            registry->grads->finite = false;
        }
    }
}

wf_grads *wf_registry_grads(const wf_registry *registry)
{
    return registry ? registry->grads : NULL;
}
