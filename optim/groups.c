/* SPDX-License-Identifier: MIT */
/* Groups, which set other settings for some parameters, and the restriction of an optimiser to some parameters. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/needs.h>
#include <weft/internal/pattern.h>

#include "internal.h"

const char *name_in(const struct wf_optimizer_part *part, int i, char text[NAME])
{
    snprintf(text, NAME, "%s%s", part->prefix, wf_name_of(wf_registry_at(part->registry, i)));
    return text;
}

struct wf_group_options wf_group_defaults(void)
{
    return (struct wf_group_options){.weight_decay = WF_UNCHANGED, .lr_scale = WF_UNCHANGED};
}

static bool has_name(void *pattern, const char *name, const wf_tensor *parameter)
{
    (void)parameter;
    return wf_pattern_matches(pattern, name);
}

wf_status wf_optimizer_group_where(struct wf_optimizer *opt, wf_parameter_match match, void *ctx, const struct wf_group_options *options,
                                   wf_error *error)
{
    if (wf_needs(error, "opt, match, options", opt, match, options))
        return WF_ERR_ARGUMENT;
    const struct range range[] = {{"weight_decay", options->weight_decay, INFINITY}, {"lr_scale", options->lr_scale, INFINITY}};
    int64_t found = 0;
    for (int i = 0; i < 2; i++)
        if (range[i].value != WF_UNCHANGED && check_ranges(&range[i], 1, error) != WF_OK)
            return WF_ERR_ARGUMENT;
    for (int64_t k = 0; k < opt->parts; k++)
        for (int i = 0; i < wf_registry_count(opt->part[k].registry); i++) {
            char name[NAME];
            struct wf_optimizer_parameter *p = &opt->part[k].parameter[i];
            if (wf_registry_is_buffer(opt->part[k].registry, i) ||
                !match(ctx, name_in(&opt->part[k], i, name), wf_registry_at(opt->part[k].registry, i)))
                continue;
            found++;
            if (options->weight_decay != WF_UNCHANGED)
                p->weight_decay = options->weight_decay;
            if (options->lr_scale != WF_UNCHANGED)
                p->lr_scale = options->lr_scale;
        }
    return found > 0 ? WF_OK : wf_error_set(error, WF_ERR_ARGUMENT, "no parameter of the optimiser matches");
}

wf_status wf_optimizer_group_with(struct wf_optimizer *opt, const char *pattern, const struct wf_group_options *options, wf_error *error)
{
    if (wf_needs(error, "opt, pattern", opt, pattern))
        return WF_ERR_ARGUMENT;
    if (!pattern || !options)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_optimizer_group: the %s NULL", pattern ? "options are" : "pattern is");
    wf_error failure = {0};
    wf_status status = wf_optimizer_group_where(opt, has_name, (void *)pattern, options, &failure);
    if (status == WF_OK)
        return status;
    return wf_error_set(error, status, "the group \"%s\": %s", pattern, failure.message);
}

/* Returns true if `match` chooses parameter `i`. */
static bool is_matched(const struct wf_optimizer_part *part, int i, wf_parameter_match match, void *ctx)
{
    char name[NAME];
    return !wf_registry_is_buffer(part->registry, i) && match(ctx, name_in(part, i, name), wf_registry_at(part->registry, i));
}

wf_status wf_optimizer_only(struct wf_optimizer *opt, wf_parameter_match match, void *ctx, wf_error *error)
{
    if (wf_needs(error, "opt, match", opt, match))
        return WF_ERR_ARGUMENT;
    int64_t found = 0;
    if (!opt->rule)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "wf_optimizer_only: the optimiser is not initialised: call wf_adamw_init or the like first");
    if (opt->step > 0)
        return wf_error_set(error, WF_ERR_STATE, "wf_optimizer_only: the optimiser has done %lld updates: call it right after the init",
                            (long long)opt->step);
    for (int64_t k = 0; k < opt->parts; k++)
        for (int i = 0; i < wf_registry_count(opt->part[k].registry); i++)
            found += is_matched(&opt->part[k], i, match, ctx);
    if (found == 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_optimizer_only: no parameter of the optimiser matches");
    for (int64_t k = 0; k < opt->parts; k++) {
        for (int i = 0; i < wf_registry_count(opt->part[k].registry); i++)
            opt->part[k].parameter[i].skipped = !is_matched(&opt->part[k], i, match, ctx);
        drop_moments(&opt->part[k]);
    }
    return make_moments(opt, error);
}

void wf_optimizer_decay_matrices_only(struct wf_optimizer *opt)
{
    if (!opt)
        return;
    for (int64_t k = 0; k < opt->parts; k++)
        for (int i = 0; i < wf_registry_count(opt->part[k].registry); i++)
            if (wf_ndim(wf_registry_at(opt->part[k].registry, i)) < 2)
                opt->part[k].parameter[i].weight_decay = 0;
}
