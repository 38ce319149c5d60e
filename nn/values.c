/* SPDX-License-Identifier: MIT */
/* How a program changes parameters: sets their values, freezes them, and sets their gradients to zero. */
#include <string.h>

#include <weft/internal/pattern.h>

#include "internal.h"

static wf_status check_set(const char *call, const struct parameter_values *p, wf_error *error)
{
    const struct wf_parameter_info *info = wf_parameter_info(p->parameter);
    if (!info)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: '%s' is no parameter: give one that wf_parameter or a module declared", call,
                            wf_name_of(p->parameter));
    if (!info->value.data || !info->use)
        return wf_error_set(error, WF_ERR_STATE,
                            "%s: the parameter '%s' has no value yet: call wf_registry_build or wf_registry_load first", call, info->name);
    const int64_t size = wf_array_count(&info->value);
    if (p->count != size || !p->values)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: the parameter '%s' has %lld elements, but %s %lld", call, info->name,
                            (long long)size, p->values ? "count is" : "the values are NULL and count is", (long long)p->count);
    return WF_OK;
}

static void put_values(const wf_array *to, const wf_real *values, int64_t count)
{
    if (to->dtype == WF_REAL)
        memmove(to->data, values, (size_t)count * sizeof *values);
    else
        (void)wf_convert(to->dtype, to->data, WF_REAL, values, count);
}

wf_status parameters_set(const char *call, int count, const struct parameter_values p[], wf_error *error)
{
    struct wf_values_use *use[PARAMETERS_SET];
    int uses = 0;
    wf_status status = WF_OK;
    for (int i = 0; i < count && status == WF_OK; i++)
        status = check_set(call, &p[i], error);
    for (int i = 0; i < count && status == WF_OK; i++) {
        bool held = false;
        use[uses] = wf_parameter_info(p[i].parameter)->use;
        for (int j = 0; j < uses; j++)
            held |= use[j] == use[uses];
        if (!held && (status = wf_values_write_begin(use[uses], call, error)) == WF_OK)
            uses++;
    }
    for (int i = 0; i < count && status == WF_OK; i++)
        put_values(&wf_parameter_info(p[i].parameter)->value, p[i].values, p[i].count);
    while (uses > 0)
        wf_values_write_end(use[--uses]);
    return status;
}

wf_status wf_parameter_set(wf_tensor *parameter, const wf_real *values, int64_t count, wf_error *error)
{
    return parameters_set("wf_parameter_set", 1, &(struct parameter_values){parameter, values, count}, error);
}

wf_status wf_registry_freeze_matching(wf_registry *registry, const char *pattern, bool frozen, wf_error *error)
{
    if (!registry || !pattern)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_registry_freeze_matching: the %s is NULL", registry ? "pattern" : "registry");
    int found = 0;
    for (int i = 0; i < registry->count && !frozen; i++)
        if (registry_untrainable(&registry->entry[i]) && wf_pattern_matches(pattern, registry->entry[i].info.name))
            return wf_error_set(error, WF_ERR_ARGUMENT, "wf_registry_freeze_matching: '%s' is %s, or give a pattern without it",
                                registry->entry[i].info.name, registry_untrainable(&registry->entry[i]));
    for (int i = 0; i < registry->count; i++)
        if (wf_pattern_matches(pattern, registry->entry[i].info.name)) {
            wf_registry_freeze(registry, registry->entry[i].tensor, frozen);
            found++;
        }
    return found > 0 ? WF_OK
                     : wf_error_set(error, WF_ERR_ARGUMENT, "wf_registry_freeze_matching: no parameter's name fits \"%s\"", pattern);
}

void wf_registry_zero_grads(wf_registry *registry)
{
    if (registry && registry->grads)
        wf_grads_zero(registry->grads);
}
