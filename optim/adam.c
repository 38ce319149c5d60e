/* SPDX-License-Identifier: MIT */
/* Adam and AdamW. */
#include <weft/internal/needs.h>

#include <math.h>

#include "internal.h"

static int moments_used(const struct wf_optimizer *opt)
{
    (void)opt;
    return 2;
}

static wf_status check(const struct wf_optimizer *opt, wf_error *error)
{
    const struct range range[] = {{"beta1", opt->adam.beta1, 1}, {"beta2", opt->adam.beta2, 1}, {"eps", opt->adam.eps, INFINITY}};
    return check_ranges(range, 3, error);
}

/* What makes up for moments that start at 0 (Kingma and Ba 2015, section 3). */
static void factors(const struct wf_optimizer *opt, int64_t updates, double factor[2])
{
    factor[0] = 1 - pow(opt->adam.beta1, (double)updates);
    factor[1] = 1 / sqrt(1 - pow(opt->adam.beta2, (double)updates));
}

static void update(const struct update *u)
{
    const struct wf_optimizer *opt = u->opt;
    double lr = opt->lr * u->p->lr_scale, decay = u->p->weight_decay;
    wf_kernel->internal->adam(u->count, u->value, u->gradient, u->moment[0], u->moment[1], u->gradient_scale, opt->adam.beta1,
                              opt->adam.beta2, (wf_real)opt->adam.eps, (wf_real)(lr / u->p->factor[0]), (wf_real)u->p->factor[1],
                              opt->adam.decoupled ? (wf_real)(lr * decay) : 0, opt->adam.decoupled ? 0 : (wf_real)decay);
}

static const struct wf_optimizer_rule adam = {
    .name = "adam", .moments = 2, .moment = {"m", "v"}, .moments_used = moments_used, .check = check, .factors = factors, .update = update};

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
                                 .rule = &adam};
    return optimizer_begin(opt, registry, error);
}
