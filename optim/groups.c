/* SPDX-License-Identifier: MIT */
/* Groups, which set other settings for some parameters, and the restriction of an optimiser to some parameters. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/pattern.h>

#include "internal.h"

const char *name_in(const struct wf_optimizer_part *part, int i, char text[NAME])
{
    snprintf(text, NAME, "%s%s", part->prefix, wf_name_of(wf_registry_at(part->registry, i)));
    return text;
}

/* --- settings of groups --------------------------------------------------------------------------------------------- */

enum type { REAL, FLAG, COUNT };
/* A setting that a group can have for the parameters of a rule: the member of the options, and that of struct wf_optimizer. */
static const struct setting {
    const char *name;
    size_t option;
    const struct wf_optimizer_rule *rule;
    size_t member;
    enum type type;
} settings[] = {
#define SETTING(owner, name, type)                                                                                                         \
    {                                                                                                                                      \
#name, offsetof(struct wf_group_options, name), &wf_##owner##_rule, offsetof(struct wf_optimizer, owner.name), type                \
    }
    SETTING(adam, beta1, REAL),
    SETTING(adam, beta2, REAL),
    SETTING(adam, eps, REAL),
    SETTING(sgd, momentum, REAL),
    SETTING(sgd, nesterov, FLAG),
    SETTING(lion, beta1, REAL),
    SETTING(lion, beta2, REAL),
    SETTING(adafactor, beta2_decay, REAL),
    SETTING(adafactor, eps1, REAL),
    SETTING(adafactor, eps2, REAL),
    SETTING(adafactor, threshold, REAL),
    SETTING(muon, momentum, REAL),
    SETTING(muon, nesterov, FLAG),
    SETTING(muon, eps, REAL),
    SETTING(muon, beta1, REAL),
    SETTING(muon, beta2, REAL),
    SETTING(muon, adam_eps, REAL),
    SETTING(muon, iterations, COUNT),
};
enum { SETTINGS = sizeof settings / sizeof *settings };

struct wf_group_options wf_group_defaults(void)
{
    return (struct wf_group_options){WF_GROUP_DEFAULTS};
}

static double *option_of(struct wf_group_options *options, const struct setting *s)
{
    return (double *)((char *)options + s->option);
}

/* Writes the settings that a group has over those of the optimiser. */
static void overlay(struct wf_optimizer *with, const struct wf_group_options *own)
{
    for (int i = 0; i < SETTINGS; i++) {
        char *member = (char *)with + settings[i].member;
        const double value = *option_of((struct wf_group_options *)own, &settings[i]);
        if (settings[i].rule != with->rule || value == WF_UNCHANGED)
            continue;
        if (settings[i].type == REAL)
            *(double *)(void *)member = value;
        else if (settings[i].type == FLAG)
            *(bool *)member = value != 0;
        else
            *(int64_t *)(void *)member = (int64_t)value;
    }
    if (own->ctx)
        with->ctx = own->ctx;
}

void refresh_groups(struct wf_optimizer *opt)
{
    for (int64_t i = 0; i < opt->groups; i++) {
        opt->group[i].with = *opt;
        overlay(&opt->group[i].with, &opt->group[i].own);
    }
}

wf_status check_groups(struct wf_optimizer *opt, wf_error *error)
{
    wf_status status = WF_OK;
    refresh_groups(opt);
    for (int64_t i = 0; i < opt->groups && opt->rule->check && status == WF_OK; i++)
        status = opt->rule->check(opt->group[i].with.ctx, &opt->group[i].with, error);
    return status;
}

int moments_used(const struct wf_optimizer *opt)
{
    int used = slabs_used(opt);
    for (int64_t i = 0; i < opt->groups; i++) {
        struct wf_optimizer with = *opt;
        overlay(&with, &opt->group[i].own);
        used = WF_MAX(used, slabs_used(&with));
    }
    return used;
}

/* Refuses settings that the optimiser's rule does not have, and values that no setting of the type can have. */
static wf_status check_options(const struct wf_optimizer *opt, const struct wf_group_options *options, wf_error *error)
{
    const struct range range[] = {{"weight_decay", options->weight_decay, INFINITY}, {"lr_scale", options->lr_scale, INFINITY}};
    for (int i = 0; i < 2; i++)
        if (range[i].value != WF_UNCHANGED && check_ranges(&range[i], 1, error) != WF_OK)
            return WF_ERR_ARGUMENT;
    for (int i = 0; i < SETTINGS && opt->rule; i++) {
        const double value = *option_of((struct wf_group_options *)options, &settings[i]);
        bool known = false;
        for (int k = 0; k < SETTINGS; k++)
            known |= settings[k].option == settings[i].option && settings[k].rule == opt->rule;
        if (value != WF_UNCHANGED && !known)
            return wf_error_set(error, WF_ERR_ARGUMENT, "the optimiser %s has no setting %s", opt->rule->name, settings[i].name);
        const bool odd = (settings[i].type == FLAG && value != 0 && value != 1) ||
                         (settings[i].type == COUNT && (!(fabs(value) < 1e9) || value != floor(value)));
        if (value != WF_UNCHANGED && settings[i].rule == opt->rule && odd)
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s = %g is not %s", settings[i].name, value,
                                settings[i].type == FLAG ? "0 or 1" : "a count");
    }
    return WF_OK;
}

/* Returns 1 + the index of the group that a parameter of group `old` gets with further options, which is made if there is none; 0: no
 * group; -1: an error. */
static int group_with(struct wf_optimizer *opt, int old, const struct wf_group_options *options, wf_error *error)
{
    struct wf_optimizer_group g = {.own = old > 0 ? opt->group[old - 1].own : wf_group_defaults(), .with = *opt};
    const struct wf_group_options none = wf_group_defaults();
    for (int i = 0; i < SETTINGS; i++) {
        const double value = *option_of((struct wf_group_options *)options, &settings[i]);
        if (value != WF_UNCHANGED)
            *option_of(&g.own, &settings[i]) = value;
    }
    g.own.ctx = options->ctx ? options->ctx : g.own.ctx;
    if (memcmp(&g.own, &none, sizeof none) == 0)
        return 0;
    for (int64_t i = 0; i < opt->groups; i++)
        if (memcmp(&opt->group[i].own, &g.own, sizeof g.own) == 0)
            return (int)i + 1;
    overlay(&g.with, &g.own);
    if (opt->rule->check && opt->rule->check(g.with.ctx, &g.with, error) != WF_OK)
        return -1;
    if (!wf_grow(&opt->group, &opt->group_room, opt->groups + 1, sizeof *opt->group)) {
        wf_error_set(error, WF_ERR_MEMORY, "no memory for the settings of a group");
        return -1;
    }
    opt->group[opt->groups++] = g;
    return (int)opt->groups;
}

/* --- groups --------------------------------------------------------------------------------------------------------- */

/* Returns true if `match` chooses parameter `i`. */
static bool is_matched(const struct wf_optimizer_part *part, int i, wf_parameter_match match, void *ctx)
{
    char name[NAME];
    return !wf_registry_is_buffer(part->registry, i) && match(ctx, name_in(part, i, name), wf_registry_at(part->registry, i));
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
    const int64_t groups = opt->groups;
    wf_error why = {0};
    int64_t found = 0;
    if (check_options(opt, options, error) != WF_OK)
        return WF_ERR_ARGUMENT;
    for (int64_t k = 0; k < opt->parts; k++)
        for (int i = 0; i < wf_registry_count(opt->part[k].registry) && why.code == WF_OK; i++) {
            struct wf_optimizer_parameter *p = &opt->part[k].parameter[i];
            p->chosen = is_matched(&opt->part[k], i, match, ctx) ? group_with(opt, p->group, options, &why) : -1;
            found += p->chosen >= 0;
        }
    if (why.code != WF_OK) {
        opt->groups = groups;
        return wf_error_set(error, why.code, "%s", why.message);
    }
    for (int64_t k = 0; k < opt->parts; k++)
        for (int i = 0; i < wf_registry_count(opt->part[k].registry); i++) {
            struct wf_optimizer_parameter *p = &opt->part[k].parameter[i];
            if (p->chosen < 0)
                continue;
            p->group = p->chosen;
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
        for (int i = 0; i < wf_registry_count(opt->part[k].registry); i++) {
            struct wf_optimizer_parameter *p = &opt->part[k].parameter[i];
            p->chosen = p->skipped;
            p->skipped = !is_matched(&opt->part[k], i, match, ctx);
        }
        drop_moments(&opt->part[k]);
    }
    const wf_status status = make_moments(opt, error);
    for (int64_t k = 0; k < opt->parts && status != WF_OK; k++) /* the next step makes the moments, which are zeros */
        for (int i = 0; i < wf_registry_count(opt->part[k].registry); i++)
            opt->part[k].parameter[i].skipped = opt->part[k].parameter[i].chosen != 0;
    return status;
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
