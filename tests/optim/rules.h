/* SPDX-License-Identifier: MIT */
/* Optimisers that Weft does not have, as a program writes them. */
#ifndef TESTS_OPTIM_RULES_H
#define TESTS_OPTIM_RULES_H

#include <math.h>

#include <weft/optimizer_rule.h>

/* --- Lion: one slab, hyperparameters in ctx (Chen et al. 2023) ------------------------------------------------------- */
struct lion {
    double beta1, beta2;
};
static inline void lion_step(void *ctx, const struct wf_update *u)
{
    const struct lion *o = ctx;
    const wf_real b1 = (wf_real)o->beta1, b2 = (wf_real)o->beta2, lr = (wf_real)u->lr, keep = (wf_real)(1 - u->lr * u->weight_decay);
    wf_real *p = u->value, *m = u->slab[0];
    for (int64_t i = 0; i < u->count; i++) {
        const wf_real g = u->gradient[i], c = b1 * m[i] + (1 - b1) * g;
        p[i] = keep * p[i] - lr * (wf_real)((c > 0) - (c < 0));
        m[i] = b2 * m[i] + (1 - b2) * g;
    }
}
static inline wf_status lion_check(void *ctx, const struct wf_optimizer *opt, wf_error *error)
{
    const struct lion *o = ctx;
    (void)opt;
    return o->beta1 < 1 && o->beta2 < 1 ? WF_OK : wf_error_set(error, WF_ERR_ARGUMENT, "lion: a beta of 1 or more");
}
static const char *const lion_slabs[] = {"m", NULL};
static const struct wf_optimizer_rule lion
    __attribute__((unused)) = {WF_OPTIMIZER_RULE_ABI, .name = "lion", .slab = lion_slabs, .check = lion_check, .step = lion_step};

/* --- AMSGrad with decoupled decay: three slabs, factors, its own product with the clip's factor (Reddi et al. 2018) ---- */
static struct lion amsgrad_settings __attribute__((unused)) = {0.9, 0.999};
static inline void amsgrad_factors(void *ctx, const struct wf_optimizer *opt, int64_t updates, double factor[])
{
    const struct lion *o = ctx;
    (void)opt;
    factor[0] = 1 - pow(o->beta1, (double)updates);
    factor[1] = sqrt(1 - pow(o->beta2, (double)updates));
}
static inline void amsgrad_step(void *ctx, const struct wf_update *u)
{
    const struct lion *o = ctx;
    const wf_real keep = (wf_real)(1 - u->lr * u->weight_decay), rate = (wf_real)(u->lr / u->factor[0]);
    for (int64_t i = 0; i < u->count; i++) {
        const wf_real g = u->scale * u->gradient[i];
        wf_real *m = &u->slab[0][i], *v = &u->slab[1][i], *most = &u->slab[2][i];
        *m = (wf_real)o->beta1 * *m + (wf_real)(1 - o->beta1) * g;
        *v = (wf_real)o->beta2 * *v + (wf_real)(1 - o->beta2) * g * g;
        *most = *v > *most ? *v : *most;
        u->value[i] = keep * u->value[i] - rate * *m / ((wf_real)sqrt((double)*most) / (wf_real)u->factor[1] + (wf_real)1e-8);
    }
}
static const char *const amsgrad_slabs[] = {"m", "v", "most", NULL};
static const struct wf_optimizer_rule amsgrad __attribute__((unused)) = {
    WF_OPTIMIZER_RULE_ABI, .name = "amsgrad", .slab = amsgrad_slabs, .scales = true, .factors = amsgrad_factors, .step = amsgrad_step};

/* --- a whole parameter at once, no state: p -= lr g / |g| ------------------------------------------------------------ */
static inline void unit_step(void *ctx, const struct wf_update *u)
{
    double sum = 0;
    (void)ctx;
    for (int64_t i = 0; i < u->count; i++)
        sum += (double)u->gradient[i] * (double)u->gradient[i];
    for (int64_t i = 0; i < u->count; i++)
        u->value[i] -= (wf_real)(u->lr / sqrt(sum)) * u->gradient[i];
}
static const struct wf_optimizer_rule unit
    __attribute__((unused)) = {WF_OPTIMIZER_RULE_ABI, .name = "unit", .whole = true, .step = unit_step};

#endif
