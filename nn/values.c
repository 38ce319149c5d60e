/* SPDX-License-Identifier: MIT */
/* Parameters changed by hand. */
#include <string.h>

#include <weft/internal/pattern.h>

#include "internal.h"

wf_status wf_parameter_set(wf_tensor *parameter, const wf_real *values, int64_t count, wf_error *error)
{
    const struct wf_parameter_info *info = wf_parameter_info(parameter);
    if (!info)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "wf_parameter_set: '%s' is no parameter: give one that wf_parameter or a module declared",
                            wf_name_of(parameter));
    if (!info->value.data || !info->use)
        return wf_error_set(error, WF_ERR_STATE,
                            "wf_parameter_set: the parameter '%s' has no value yet: call wf_registry_build or wf_registry_load first",
                            info->name);
    const int64_t size = wf_array_count(&info->value);
    if (count != size || !values)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_parameter_set: the parameter '%s' has %lld elements, but %s %lld", info->name,
                            (long long)size, values ? "count is" : "the values are NULL and count is", (long long)count);
    wf_status status = wf_values_write_begin(info->use, "wf_parameter_set", error);
    if (status != WF_OK)
        return status;
    memmove(info->value.data, values, (size_t)count * sizeof *values);
    wf_values_write_end(info->use);
    return WF_OK;
}

wf_status wf_registry_freeze_matching(wf_registry *registry, const char *pattern, bool frozen, wf_error *error)
{
    if (!registry || !pattern)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_registry_freeze_matching: the %s is NULL", registry ? "pattern" : "registry");
    int found = 0;
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
