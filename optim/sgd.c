/* SPDX-License-Identifier: MIT */
/* Gradient descent with momentum. */
#include <weft/internal/needs.h>

#include <math.h>

#include "internal.h"

static int moments_used(const struct wf_optimizer *opt)
{
    return opt->sgd.momentum > 0;
}

static wf_status check(const struct wf_optimizer *opt, wf_error *error)
{
    wf_status status = check_ranges(&(struct range){"momentum", opt->sgd.momentum, 1}, 1, error);
    if (status == WF_OK && opt->sgd.nesterov && opt->sgd.momentum == 0)
        status = wf_error_set(error, WF_ERR_ARGUMENT, "nesterov needs a momentum above 0");
    return status;
}

static void update(const struct update *u)
{
    wf_kernel->internal->sgd(u->count, u->value, u->gradient, u->moment[0], u->gradient_scale, (wf_real)u->opt->sgd.momentum,
                             u->opt->sgd.nesterov, (wf_real)(u->opt->lr * u->p->lr_scale), (wf_real)u->p->weight_decay);
}

static const struct wf_optimizer_rule sgd = {
    .name = "sgd", .moments = 1, .moment = {"momentum"}, .moments_used = moments_used, .check = check, .update = update};

struct wf_sgd_options wf_sgd_defaults(void)
{
    return (struct wf_sgd_options){WF_SGD_DEFAULTS};
}

wf_status wf_sgd_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_sgd_options *o, wf_error *error)
{
    if (wf_needs(error, "opt, registry, options", opt, registry, o))
        return WF_ERR_ARGUMENT;
    *opt = (struct wf_optimizer){
        .lr = o->lr, .sgd = {.momentum = o->momentum, .nesterov = o->nesterov}, .weight_decay = o->weight_decay, .rule = &sgd};
    return optimizer_begin(opt, registry, error);
}
