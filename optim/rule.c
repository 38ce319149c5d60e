/* SPDX-License-Identifier: MIT */
/* Optimisers with a rule that a program supplies: checks of the rule, and the init. */
#include <string.h>

#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/text.h>

#include "internal.h"

enum { LONGEST = 31 };

/* Returns true if a rule or slab may have this name. A name must not contain a dot, because a dot follows it in the state. */
static bool is_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const size_t length = name ? strlen(name) : 0;
    return length > 0 && length <= LONGEST && strspn(name, allowed) == length;
}

static const char *shown(const char *name, char text[WF_QUOTE_SIZE])
{
    return name ? wf_text_quote(name, text) : "NULL";
}

int slabs_of(const struct wf_optimizer_rule *rule)
{
    int count = 0;
    while (rule->slab && count <= WF_RULE_SLABS && rule->slab[count])
        count++;
    return count;
}

static wf_status check_slabs(const struct wf_optimizer_rule *rule, wf_error *error)
{
    static const char *const taken[] = {"step", "steps", "updates", "optimizer", "ema"};
    char text[WF_QUOTE_SIZE];
    const int slabs = slabs_of(rule);
    if (slabs > WF_RULE_SLABS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the optimiser rule %s has more than %d slabs, or their list does not end with NULL",
                            rule->name, WF_RULE_SLABS);
    for (int i = 0; i < slabs; i++) {
        if (!is_name(rule->slab[i]))
            return wf_error_set(error, WF_ERR_ARGUMENT,
                                "the optimiser rule %s: slab %d is called %s: a name is 1 to %d letters, digits, _ or -", rule->name, i,
                                shown(rule->slab[i], text), LONGEST);
        for (size_t k = 0; k < sizeof taken / sizeof *taken; k++)
            if (strcmp(taken[k], rule->slab[i]) == 0)
                return wf_error_set(error, WF_ERR_ARGUMENT,
                                    "the optimiser rule %s: slab %d is called \"%s\", the state's name for other things", rule->name, i,
                                    rule->slab[i]);
        for (int k = 0; k < i; k++)
            if (strcmp(rule->slab[k], rule->slab[i]) == 0)
                return wf_error_set(error, WF_ERR_ARGUMENT, "the optimiser rule %s: slabs %d and %d are both called \"%s\"", rule->name, k,
                                    i, rule->slab[i]);
    }
    return WF_OK;
}

wf_status wf_optimizer_rule_check(const struct wf_optimizer_rule *rule, wf_error *error)
{
    char text[WF_QUOTE_SIZE];
    if (wf_needs(error, "rule", rule))
        return WF_ERR_ARGUMENT;
    if (rule->abi != WF_OPTIMIZER_RULE_ABI)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "the optimiser rule was compiled for another version of Weft: struct wf_optimizer_rule has %zu bytes, not %zu: "
                            "set .abi = WF_OPTIMIZER_RULE_ABI and compile it again",
                            rule->abi, WF_OPTIMIZER_RULE_ABI);
    if (!is_name(rule->name))
        return wf_error_set(error, WF_ERR_ARGUMENT, "an optimiser rule is called %s: a name is 1 to %d letters, digits, _ or -",
                            shown(rule->name, text), LONGEST);
    if (!rule->step)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the optimiser rule %s has no function step", rule->name);
    return check_slabs(rule, error);
}

int slabs_used(const struct wf_optimizer *with)
{
    const int slabs = slabs_of(with->rule), used = with->rule->used ? with->rule->used(with->ctx, with) : slabs;
    return used < 0 ? 0 : WF_MIN(used, slabs);
}

bool wf_rule_is_whole(const struct wf_optimizer_rule *rule, void *ctx, const wf_tensor *parameter)
{
    return rule->is_whole ? rule->is_whole(ctx, parameter) : rule->whole;
}

wf_status check_shapes(const struct wf_optimizer *opt, const struct wf_optimizer_part *part, wf_error *error)
{
    for (int i = 0; opt->rule->slab_shape && i < wf_registry_count(part->registry); i++)
        for (int k = 0; k < slabs_of(opt->rule) && !part->parameter[i].whole; k++) {
            wf_shape own, shape = wf_array_shape(&wf_parameter_info(wf_registry_at(part->registry, i))->value);
            if (has_slab(opt, part, i, k, &own) && !wf_shape_equal(&own, &shape))
                return wf_error_set(error, WF_ERR_ARGUMENT,
                                    "the optimiser rule %s: slab %s of '%s' has another shape than the parameter, which is not whole: make "
                                    "it whole with .whole or .is_whole",
                                    opt->rule->name, opt->rule->slab[k], wf_name_of(wf_registry_at(part->registry, i)));
        }
    return WF_OK;
}

wf_status check_shard(const struct wf_optimizer *opt, const struct wf_optimizer_part *part, const struct wf_shard *shard, wf_error *error)
{
    for (int i = 0; shard && i < wf_registry_count(part->registry); i++)
        if (part->parameter[i].whole && !part->parameter[i].skipped && !wf_registry_is_buffer(part->registry, i) &&
            !wf_shard_is_whole(shard, i))
            return wf_error_set(error, WF_ERR_ARGUMENT,
                                "the optimiser %s updates '%s' as a whole, and several processes have parts of it already: initialise the "
                                "optimiser before the training",
                                opt->rule->name, wf_name_of(wf_registry_at(part->registry, i)));
    return WF_OK;
}

struct wf_optimizer_options wf_optimizer_defaults(void)
{
    return (struct wf_optimizer_options){.lr = 1e-3};
}

wf_status wf_optimizer_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_optimizer_rule *rule, void *ctx,
                                 const struct wf_optimizer_options *o, wf_error *error)
{
    if (wf_needs(error, "opt, registry, rule, options", opt, registry, rule, o))
        return WF_ERR_ARGUMENT;
    *opt = (struct wf_optimizer){0};
    if (wf_optimizer_rule_check(rule, error) != WF_OK)
        return WF_ERR_ARGUMENT;
    *opt = (struct wf_optimizer){.lr = o->lr, .weight_decay = o->weight_decay, .rule = rule, .ctx = ctx};
    return optimizer_begin(opt, registry, error);
}
