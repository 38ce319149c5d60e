/* SPDX-License-Identifier: MIT */
/* The rule of Lion, and its init. */
#include <weft/internal/needs.h>

#include "internal.h"

static wf_status check(void *ctx, const struct wf_optimizer *opt, wf_error *error)
{
    (void)ctx;
    const struct range range[] = {{"beta1", opt->lion.beta1, 1}, {"beta2", opt->lion.beta2, 1}};
    return check_ranges(range, 2, error);
}

static void step(void *ctx, const struct wf_update *u)
{
    (void)ctx;
    const struct wf_optimizer *opt = u->optimizer;
    wf_kernel->internal->lion(u->count, u->value, u->gradient, u->slab[0], u->scale, opt->lion.beta1, opt->lion.beta2, (wf_real)u->lr,
                              (wf_real)(u->lr * u->weight_decay));
}

static const char *const slabs[] = {"m", NULL};
const struct wf_optimizer_rule wf_lion_rule = {
    .abi = WF_OPTIMIZER_RULE_ABI, .name = "lion", .slab = slabs, .scales = true, .check = check, .step = step};

struct wf_lion_options wf_lion_defaults(void)
{
    return (struct wf_lion_options){WF_LION_DEFAULTS};
}

wf_status wf_lion_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_lion_options *o, wf_error *error)
{
    if (wf_needs(error, "opt, registry, options", opt, registry, o))
        return WF_ERR_ARGUMENT;
    *opt = (struct wf_optimizer){
        .lr = o->lr, .lion = {.beta1 = o->beta1, .beta2 = o->beta2}, .weight_decay = o->weight_decay, .rule = &wf_lion_rule};
    return optimizer_begin(opt, registry, error);
}
