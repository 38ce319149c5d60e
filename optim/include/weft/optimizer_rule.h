/* SPDX-License-Identifier: MIT */
/* How to write your own optimiser, as a rule: a struct with a function that updates the elements of parameters. Registries, groups,
 * schedules, clipping, the state, wf_fit and several processes then work as with Adam, SGD, Lion, Adafactor and Muon, which are such rules.
 * Example: Adamax with decoupled weight decay (Kingma and Ba 2015, section 7.1):
 *
 *   struct adamax { double beta1, beta2; };
 *
 *   static void adamax_step(void *ctx, const struct wf_update *u)
 *   {
 *       const struct adamax *o = ctx;
 *       const wf_real b1 = (wf_real)o->beta1, b2 = (wf_real)o->beta2, keep = (wf_real)(1 - u->lr * u->weight_decay);
 *       const wf_real rate = (wf_real)(u->lr / (1 - pow(o->beta1, (double)u->updates)));
 *       wf_real *p = u->value, *m = u->slab[0], *v = u->slab[1];
 *       for (int64_t i = 0; i < u->count; i++) {
 *           const wf_real g = u->gradient[i], size = (g < 0 ? -g : g) + (wf_real)1e-8;
 *           m[i] = b1 * m[i] + (1 - b1) * g;
 *           v[i] = b2 * v[i] > size ? b2 * v[i] : size;
 *           p[i] = keep * p[i] - rate * m[i] / v[i];
 *       }
 *   }
 *
 *   static const char *const adamax_slabs[] = {"m", "v", NULL};
 *   static const struct wf_optimizer_rule adamax = {WF_OPTIMIZER_RULE_ABI, .name = "adamax", .slab = adamax_slabs, .step = adamax_step};
 *   ...
 *   struct adamax betas = {0.9, 0.999};
 *   struct wf_optimizer opt;
 *   wf_optimizer_init(&opt, registry, &adamax, &betas, &error, .lr = 2e-3, .weight_decay = 0.1);
 *
 * Then `opt` is used like any other optimiser: with wf_optimizer_group, wf_optimizer_step and wf_optimizer_save, and as .optimizer of
 * wf_fit. The functions of weft/optimizers.h make a rule known to the command `weft`. examples/adamax.c is a complete program. */
#ifndef WEFT_OPTIMIZER_RULE_H
#define WEFT_OPTIMIZER_RULE_H

#include <weft/optim.h>

WF_BEGIN_DECLS

/* A range of elements of one parameter, which one call of .step updates. Elements are counted in the order of storage, row by row. */
struct wf_update {
    const struct wf_optimizer *optimizer; /* its `step` is the number of this update, from 1 */
    const char *prefix;                   /* the prefix of the registry: patterns of groups match prefix + name */
    const char *name;                     /* the name of the parameter */
    const wf_tensor *parameter;           /* for its shape: use wf_ndim and wf_dim */
    int64_t updates;                      /* updates of this parameter, including this one: t in bias corrections */
    double lr;                            /* the learning rate, already multiplied by the parameter's lr_scale */
    double weight_decay;                  /* the parameter's weight decay; its meaning is up to the rule */
    double factor[WF_RULE_FACTORS];       /* results of .factors for `updates` */
    int64_t at;                           /* the first element of the range */
    int64_t count;                        /* the number of elements */
    wf_real *value;                       /* [count]: values, to be updated in place */
    const wf_real *gradient;              /* [count]: gradient of the minimised loss, finite; clipped unless the rule sets .scales */
    wf_real scale;                /* if the rule sets .scales: the factor of clipping, by which .step must multiply the gradient; else 1 */
    wf_real *slab[WF_RULE_SLABS]; /* [count] each: state of the elements, 0 before their first update; NULL: not in use */
    bool whole;                   /* the range is the whole parameter (.whole or .is_whole); a slab has the shape that .slab_shape gave */
    wf_real *workspace;           /* whole parameters: memory of the size that .workspace asked for, with undefined contents */
    /* Whole parameters: .step sets it with wf_error_set if it fails, as for a product without memory. wf_optimizer_step then ends with this
     * error; parameters that were updated before stay so. NULL for ranges, whose updates cannot fail. */
    wf_error *error;
};

/* The update rule of an optimiser. The struct and all that it points to must stay valid as long as optimisers use it. The members `abi`,
 * `name` and `step` are required; all others may be 0. `ctx` is the argument of wf_optimizer_init. It points to the hyperparameters of an
 * optimiser, which a program may change between steps. */
struct wf_optimizer_rule {
    size_t abi;       /* WF_OPTIMIZER_RULE_ABI: the size of this struct in the program that made it */
    const char *name; /* at most 31 letters, digits, _ and -. The state contains this name, and a load compares it */
    /* Names of the slabs in files, of the same characters as `name`; at most WF_RULE_SLABS, followed by NULL. The names "step", "steps",
     * "updates", "ema" and "optimizer" are not allowed. NULL: the rule has no state. */
    const char *const *slab;
    /* True: .step uses u->scale * u->gradient[i], so that clipping needs no separate pass. False: Weft multiplies a clipped gradient by its
     * factor before .step. */
    bool scales;
    /* True: .step is called once for each parameter, with all of its elements (at = 0), in the caller's thread and in the order of the
     * registries. This is for rules that need whole matrices; .step may then use wf_parallel and matrix products (weft/compute.h). Of
     * several processes each then updates some of the parameters. */
    bool whole;
    /* Returns how many slabs are in use with the present hyperparameters: these are the first ones in the list. The other slabs take no
     * memory and are not saved. Weft may call this at any time. NULL: all slabs are in use. */
    int (*used)(void *ctx, const struct wf_optimizer *opt);
    /* Checks whether the hyperparameters are in their ranges. Called when an optimiser is initialised, and at the beginning of each step,
     * before anything changes, in the caller's thread. Weft itself checks lr and weight_decay. NULL: no check. */
    wf_status (*check)(void *ctx, const struct wf_optimizer *opt, wf_error *error);
    /* Computes factors that depend only on the number of updates of a parameter, such as 1 - beta^t. Called in the caller's thread, once
     * for a series of consecutive parameters that have the same number of updates. NULL: the factors are 0. */
    void (*factors)(void *ctx, const struct wf_optimizer *opt, int64_t updates, double factor[WF_RULE_FACTORS]);
    /* Updates u->value and u->slab. Unless .whole is set, several threads call .step in parallel for different elements, so it must not
     * write to *ctx. It returns no error, and must not allocate memory. The ranges into which a parameter is divided depend only on its
     * shape. If a new value depends only on the value, gradient and state of the same element, the number of threads and processes changes
     * no bit of the result. A whole parameter is updated by one process, so for it the functions of weft/compute.h keep the same promise.
     *
     * .step is not called for parameters without a gradient, for frozen parameters, or for parameters of other optimisers
     * (wf_optimizer_only). */
    void (*step)(void *ctx, const struct wf_update *u);

    /* The members below serve rules that update parameters as a whole. Their results must depend only on ctx and on the parameter's
     * properties (wf_ndim, wf_dim, wf_parameter_info), and must stay the same as long as the optimiser lives. */
    /* Whether the rule updates this parameter as a whole; the elements of all others are updated in ranges. NULL: `whole` says it for all
     * parameters. */
    bool (*is_whole)(void *ctx, const wf_tensor *parameter);
    /* Whether a parameter has this slab (an index of `slab`). *shape, at first the parameter's shape, may be set to another one if the
     * parameter is whole, for example to one number for each row of a matrix. NULL: all parameters have all slabs, in their own shapes. */
    bool (*slab_shape)(void *ctx, const wf_tensor *parameter, int slab, wf_shape *shape);
    /* How many elements u->workspace must have for a whole parameter. Weft allocates the largest such workspace once, before a step changes
     * anything. NULL: 0. */
    int64_t (*workspace)(void *ctx, const wf_tensor *parameter);
};
#define WF_OPTIMIZER_RULE_ABI sizeof(struct wf_optimizer_rule)

struct wf_optimizer_options {
    double lr;           /* 1e-3 unless given */
    double weight_decay; /* 0 unless given; for parameters for which no group sets one */
};
/* Returns the default options. */
WF_API struct wf_optimizer_options wf_optimizer_defaults(void);

/* Initialises an optimiser with a rule, for the parameters of a registry, which must have gradients. `ctx` (may be NULL) stays the caller's
 * and must live as long as the optimiser. Free the optimiser with wf_optimizer_free, also after an error. WF_ERR_ARGUMENT: the rule is
 * incomplete or was compiled for another version of Weft, its slabs are too many or have invalid or equal names, .slab_shape gives a
 * parameter that is not whole a slab of another shape, lr or weight_decay is
 * negative or not finite, or .check refuses the hyperparameters. WF_ERR_STATE: the registry has no gradients. */
WF_API wf_status wf_optimizer_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_optimizer_rule *rule, void *ctx,
                                        const struct wf_optimizer_options *options, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_optimizer_init(opt, registry, rule, ctx, error, ...)                                                                            \
    wf_optimizer_init_with(opt, registry, rule, ctx, WF_GIVEN(struct wf_optimizer_options, .lr = 1e-3, __VA_ARGS__), error)
#endif
/* Checks a rule as wf_optimizer_init_with does. WF_ERR_ARGUMENT: the rule can't be used. */
WF_API wf_status wf_optimizer_rule_check(const struct wf_optimizer_rule *rule, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
