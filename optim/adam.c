/* SPDX-License-Identifier: MIT */
/* The rule of Adam and AdamW, and their init. */
#include <weft/internal/needs.h>

#include <math.h>

#include "internal.h"

static wf_status check(void *ctx, const struct wf_optimizer *opt, wf_error *error)
{
    (void)ctx;
    const struct range range[] = {{"beta1", opt->adam.beta1, 1}, {"beta2", opt->adam.beta2, 1}, {"eps", opt->adam.eps, INFINITY}};
    return check_ranges(range, 3, error);
}

void adam_factors(double beta1, double beta2, int64_t updates, double factor[])
{
    factor[0] = 1 - pow(beta1, (double)updates);
    factor[1] = 1 / sqrt(1 - pow(beta2, (double)updates));
}

void adam_step(const struct wf_update *u, wf_real *m, wf_real *v, double beta1, double beta2, double eps, double lr, bool decoupled)
{
    const double decay = u->weight_decay;
    wf_kernel->internal->adam(u->count, u->value, u->gradient, m, v, u->scale, beta1, beta2, (wf_real)eps, (wf_real)(lr / u->factor[0]),
                              (wf_real)u->factor[1], decoupled ? (wf_real)(lr * decay) : 0, decoupled ? 0 : (wf_real)decay);
}

static void factors(void *ctx, const struct wf_optimizer *opt, int64_t updates, double factor[])
{
    (void)ctx;
    adam_factors(opt->adam.beta1, opt->adam.beta2, updates, factor);
}

static void step(void *ctx, const struct wf_update *u)
{
    (void)ctx;
    const struct wf_optimizer *opt = u->optimizer;
    adam_step(u, u->slab[0], u->slab[1], opt->adam.beta1, opt->adam.beta2, opt->adam.eps, u->lr, opt->adam.decoupled);
}

static const char *const slabs[] = {"m", "v", NULL};
const struct wf_optimizer_rule wf_adam_rule = {
    .abi = WF_OPTIMIZER_RULE_ABI, .name = "adam", .slab = slabs, .scales = true, .check = check, .factors = factors, .step = step};

struct wf_adam_options wf_adam_defaults(void)
{
    return (struct wf_adam_options){WF_ADAM_DEFAULTS};
}

wf_status wf_adam_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_adam_options *o, wf_error *error)
{
    if (wf_needs(error, "opt, registry, options", opt, registry, o))
        return WF_ERR_ARGUMENT;
    *opt = (struct wf_optimizer){.lr = o->lr,
                                 .adam = {.beta1 = o->beta1, .beta2 = o->beta2, .eps = o->eps, .decoupled = o->decoupled},
                                 .weight_decay = o->weight_decay,
                                 .rule = &wf_adam_rule};
    return optimizer_begin(opt, registry, error);
}
