/* SPDX-License-Identifier: MIT */
/* The rule of stochastic gradient descent, with or without momentum, and its init. */
#include <weft/internal/needs.h>

#include <math.h>

#include "internal.h"

static int used(void *ctx, const struct wf_optimizer *opt)
{
    (void)ctx;
    return opt->sgd.momentum > 0;
}

static wf_status check(void *ctx, const struct wf_optimizer *opt, wf_error *error)
{
    (void)ctx;
    wf_status status = check_ranges(&(struct range){"momentum", opt->sgd.momentum, 1}, 1, error);
    if (status == WF_OK && opt->sgd.nesterov && opt->sgd.momentum == 0)
        status = wf_error_set(error, WF_ERR_ARGUMENT, "nesterov needs a momentum above 0");
    return status;
}

static void step(void *ctx, const struct wf_update *u)
{
    (void)ctx;
    const struct wf_optimizer *opt = u->optimizer;
    wf_kernel->internal->sgd(u->count, u->value, u->gradient, u->slab[0], u->scale, (wf_real)opt->sgd.momentum, opt->sgd.nesterov,
                             (wf_real)u->lr, (wf_real)u->weight_decay);
}

static const char *const slabs[] = {"momentum", NULL};
const struct wf_optimizer_rule wf_sgd_rule = {
    .abi = WF_OPTIMIZER_RULE_ABI, .name = "sgd", .slab = slabs, .scales = true, .used = used, .check = check, .step = step};

struct wf_sgd_options wf_sgd_defaults(void)
{
    return (struct wf_sgd_options){WF_SGD_DEFAULTS};
}

wf_status wf_sgd_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_sgd_options *o, wf_error *error)
{
    if (wf_needs(error, "opt, registry, options", opt, registry, o))
        return WF_ERR_ARGUMENT;
    *opt = (struct wf_optimizer){
        .lr = o->lr, .sgd = {.momentum = o->momentum, .nesterov = o->nesterov}, .weight_decay = o->weight_decay, .rule = &wf_sgd_rule};
    return optimizer_begin(opt, registry, error);
}
