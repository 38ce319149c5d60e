/* SPDX-License-Identifier: MIT */
/* An optimiser of your own: a rule that updates elements of parameters. Registries, groups, schedules, clipping, state, wf_fit and several
 * processes then work as with Adam and SGD, which are such rules themselves. Lion (Chen et al. 2023, algorithm 2):
 *
 *   struct lion { double beta1, beta2; };
 *
 *   static void lion_step(void *ctx, const struct wf_update *u)
 *   {
 *       const struct lion *o = ctx;
 *       const wf_real b1 = (wf_real)o->beta1, b2 = (wf_real)o->beta2, lr = (wf_real)u->lr, keep = (wf_real)(1 - u->lr * u->weight_decay);
 *       wf_real *p = u->value, *m = u->slab[0];
 *       for (int64_t i = 0; i < u->count; i++) {
 *           const wf_real g = u->gradient[i], c = b1 * m[i] + (1 - b1) * g;
 *           p[i] = keep * p[i] - lr * (wf_real)((c > 0) - (c < 0));
 *           m[i] = b2 * m[i] + (1 - b2) * g;
 *       }
 *   }
 *
 *   static const char *const lion_slabs[] = {"m", NULL};
 *   static const struct wf_optimizer_rule lion = {WF_OPTIMIZER_RULE_ABI, .name = "lion", .slab = lion_slabs, .step = lion_step};
 *   ...
 *   struct lion betas = {0.9, 0.99};
 *   struct wf_optimizer opt;
 *   wf_optimizer_init(&opt, registry, &lion, &betas, &error, .lr = 1e-4, .weight_decay = 0.1);
 *
 * From here on opt is used as any other: wf_optimizer_group, wf_optimizer_step, wf_optimizer_save, .optimizer of wf_fit. weft/optimizers.h
 * makes a rule known to the command, examples/lion.c is a program. */
#ifndef WEFT_OPTIMIZER_RULE_H
#define WEFT_OPTIMIZER_RULE_H

#include <weft/optim.h>

WF_BEGIN_DECLS

/* Elements of one parameter that a step updates: `count` from element `at` on, in the order of its storage (row by row). */
struct wf_update {
    const struct wf_optimizer *optimizer; /* its ->step counts this step already, from 1 */
    const char *prefix, *name;            /* of the parameter, as in patterns of groups: prefix + name */
    const wf_tensor *parameter;           /* for its shape: wf_ndim, wf_dim */
    int64_t updates;                      /* of this parameter, this one included: 1, 2, ...: t of bias corrections */
    double lr;                            /* with the lr_scale of its groups */
    double weight_decay;                  /* of its groups; what it means is up to the rule */
    double factor[WF_RULE_FACTORS];       /* what .factors made of `updates` */
    int64_t at, count;
    wf_real *value;               /* [count], to be updated in place */
    const wf_real *gradient;      /* [count] of the minimised loss, finite; clipped, but for a rule that sets .scales */
    wf_real scale;                /* .scales: what clipping left, to be multiplied with the gradient; else 1 */
    wf_real *slab[WF_RULE_SLABS]; /* [count] each: the state of these elements, 0 before their first update; NULL beyond those in use */
};

/* The update rule of an optimiser. The struct and all that it points to must stay as long as optimisers use it. Zero is the default of each
 * member; abi, name and step are required. `ctx` is that of wf_optimizer_init: the hyperparameters of an optimiser, which a program may
 * change between steps. */
struct wf_optimizer_rule {
    size_t abi;              /* WF_OPTIMIZER_RULE_ABI: the size of this struct in the program that made it */
    const char *name;        /* letters, digits, _ and -, at most 31: the state has it, and a load compares it */
    const char *const *slab; /* names of the state's slabs in files, of the same letters; ends with NULL; at most WF_RULE_SLABS, not
                                "step", "steps", "updates", "ema" or "optimizer". NULL: no state */
    /* The step does u->scale * u->gradient[i] in its own pass. Otherwise a clipped gradient is multiplied before the step. */
    bool scales;
    /* The step is called once for each parameter, with all of its elements (at 0), in the caller's thread and in the order of the
     * registries: for rules that need whole matrices. It may use wf_parallel and products of matrices. Several processes, which share the
     * elements of a parameter, refuse such a rule (WF_ERR_ARGUMENT). */
    bool whole;
    /* How many of the slabs are in use with the present hyperparameters, so that the last ones take no memory and are not saved. Called at
     * any time. NULL: all. */
    int (*used)(void *ctx, const struct wf_optimizer *opt);
    /* Whether the hyperparameters are in their ranges: called by the init, and at the beginning of each step in the caller's thread, before
     * anything is changed. lr and weight_decay are checked already. NULL: always. */
    wf_status (*check)(void *ctx, const struct wf_optimizer *opt, wf_error *error);
    /* Numbers that depend on a parameter's count of updates alone, such as 1 - beta^t: called in the caller's thread, once for parameters
     * in a row with the same count. NULL: zeros. */
    void (*factors)(void *ctx, const struct wf_optimizer *opt, int64_t updates, double factor[WF_RULE_FACTORS]);
    /* Updates u->value and u->slab. Called in parallel by several threads for different elements (see .whole), so it only reads *ctx. A
     * parameter comes in blocks that its shape alone determines; how many threads or processes there are changes no bit of the result, as
     * long as an element depends on its own value, gradient and state only. It cannot fail and allocates nothing. Not called for
     * parameters without a gradient, frozen ones, and those of other optimisers (wf_optimizer_only). */
    void (*step)(void *ctx, const struct wf_update *u);
};
#define WF_OPTIMIZER_RULE_ABI sizeof(struct wf_optimizer_rule)

struct wf_optimizer_options {
    double lr;           /* 1e-3 unless given */
    double weight_decay; /* 0; of parameters in no group */
};
WF_API struct wf_optimizer_options wf_optimizer_defaults(void);

/* An optimiser by a rule for the parameters of a registry, which must have gradients. `ctx` (may be NULL) stays the caller's, and must live
 * as long as the optimiser. Free with wf_optimizer_free, after an error too. WF_ERR_ARGUMENT: a rule that is incomplete or of another
 * version of Weft, names of slabs that are none, too many or the same, lr or weight_decay negative or not finite, or what .check refuses.
 */
WF_API wf_status wf_optimizer_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_optimizer_rule *rule, void *ctx,
                                        const struct wf_optimizer_options *options, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_optimizer_init(opt, registry, rule, ctx, error, ...)                                                                            \
    wf_optimizer_init_with(opt, registry, rule, ctx, WF_GIVEN(struct wf_optimizer_options, .lr = 1e-3, __VA_ARGS__), error)
#endif
/* Whether a rule can be used: what the init refuses of it. */
WF_API wf_status wf_optimizer_rule_check(const struct wf_optimizer_rule *rule, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
