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

static int slabs_of(const struct wf_optimizer_rule *rule)
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

int moments_used(const struct wf_optimizer *opt)
{
    const int slabs = slabs_of(opt->rule), used = opt->rule->used ? opt->rule->used(opt->ctx, opt) : slabs;
    return used < 0 ? 0 : WF_MIN(used, slabs);
}

wf_status refuse_shards(const struct wf_optimizer *opt, wf_error *error)
{
    if (!opt->rule->whole)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT,
                        "the optimiser %s updates whole parameters, of which several processes have parts each: train with one process",
                        opt->rule->name);
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
