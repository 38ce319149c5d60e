/* SPDX-License-Identifier: MIT */
/* Buffers: which are saved; for persistent ones the memory in which gradients collect their changes, and the update that makes them. */
#include <weft/internal/averages.h>
#include <weft/internal/buffers.h>

#include "internal.h"

bool wf_registry_is_buffer(const wf_registry *registry, int index)
{
    return index >= 0 && index < wf_registry_count(registry) && registry->entry[index].buffer;
}

bool wf_registry_is_saved(const wf_registry *registry, int index)
{
    return index >= 0 && index < wf_registry_count(registry) && entry_is_saved(&registry->entry[index]);
}

int64_t wf_registry_averages(const wf_registry *registry)
{
    int64_t numbers = 0;
    for (int i = 0; i < wf_registry_count(registry); i++)
        numbers += registry->entry[i].info.persistent ? 1 + registry->entry[i].count : 0;
    return numbers;
}

bool averages_new(const wf_registry *registry, struct wf_averages **out)
{
    struct wf_averages *a;
    const int64_t numbers = wf_registry_averages(registry);
    size_t buffers = 0;
    *out = NULL;
    for (int i = 0; i < registry->count; i++)
        buffers += registry->entry[i].info.persistent;
    if (buffers == 0)
        return true;
    a = wf_alloc_zero(1, sizeof *a + buffers * sizeof *a->buffer + (size_t)numbers * sizeof *a->number);
    if (!a)
        return false;
    a->number = (double *)(a + 1);
    a->buffer = (struct wf_average *)(a->number + numbers);
    for (int i = 0; i < registry->count; i++)
        if (registry->entry[i].info.persistent) {
            a->buffer[a->buffers++] = (struct wf_average){i, a->numbers, registry->entry[i].count};
            a->numbers += 1 + registry->entry[i].count;
        }
    wf_averages_clear(a);
    *out = a;
    return true;
}

void wf_registry_change_buffers(wf_registry *registry)
{
    struct wf_averages *a = registry->grads ? registry->grads->averages : NULL;
    for (int k = 0; a && k < a->buffers; k++) {
        const double *from = a->number + a->buffer[k].at;
        wf_real *value = registry->entry[a->buffer[k].parameter].info.value.data;
        for (int64_t i = 0; from[0] != 1 && i < a->buffer[k].count; i++)
            value[i] = (wf_real)((from[0] == 0 ? 0 : from[0] * (double)value[i]) + from[1 + i]);
    }
    if (a)
        wf_averages_clear(a);
}

wf_status wf_registry_update_buffers(wf_registry *registry, wf_error *error)
{
    if (!registry)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "wf_registry_update_buffers: the registry is NULL: look at what wf_registry_new returned");
    if (!registry->grads)
        return wf_error_set(
            error, WF_ERR_STATE,
            "wf_registry_update_buffers: the registry has no gradients, which collect the changes: call wf_registry_build or "
            "wf_registry_gradients first");
    if (registry->grads->broken)
        return wf_error_set(error, WF_ERR_STATE,
                            "wf_registry_update_buffers: the last backward failed, see wf_tape_error: call "
                            "wf_registry_zero_grads, and repeat the pass");
    const wf_status status = wf_values_write_begin(registry->use, "wf_registry_update_buffers", error);
    if (status != WF_OK)
        return status;
    wf_registry_change_buffers(registry);
    wf_values_write_end(registry->use);
    return WF_OK;
}
