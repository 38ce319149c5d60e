/* SPDX-License-Identifier: MIT */
/* Optimisers whose moments are distributed over several processes (ZeRO, stage 1: Rajbhandari et al. 2020). Training uses this. */
#ifndef WEFT_INTERNAL_OPTIMIZER_H
#define WEFT_INTERNAL_OPTIMIZER_H

#include <weft/internal/safetensors_from.h>
#include <weft/internal/slab.h>
#include <weft/optim.h>

WF_BEGIN_DECLS

/* Lays out the moments of a registry's parameters for a shard (NULL: for all elements). The caller then sets wf_grads.shard to this shard.
 * Moments that this process holds both before and after are kept; moments that it did not hold before are 0. If the optimiser does not have
 * the registry, nothing happens. WF_ERR_ARGUMENT: the rule updates as a whole a parameter of which the shard has single blocks.
 * WF_ERR_MEMORY: nothing has changed, except that with shard = NULL the moments are lost, and the next update makes new ones. */
wf_status wf_optimizer_shard(struct wf_optimizer *opt, const wf_registry *registry, const struct wf_shard *shard, wf_error *error);

/* Identifies one moment of one parameter. */
struct wf_optimizer_place {
    const struct wf_optimizer *opt;
    int64_t part;  /* index in opt->part */
    int parameter; /* index in the registry */
    int moment;    /* index of the slab, the array that holds this moment for all parameters; the last one holds the moving averages */
};
/* Sets *out to the place of the moving average of parameter `i` of a registry. Returns false if the optimiser has no such average. */
bool wf_optimizer_average(const struct wf_optimizer *opt, const wf_registry *registry, int i, struct wf_optimizer_place *out);
/* Returns the address of a moment's element `at`, or NULL if the parameter has no such moment or this process does not hold the element.
 * `at` must begin a block, unless the parameter is whole (wf_shard.whole). */
wf_real *wf_optimizer_moment(const struct wf_optimizer_place *place, int64_t at);
/* Returns how many elements the moment has, on all processes together. */
int64_t wf_optimizer_moment_count(const struct wf_optimizer_place *place);

struct wf_optimizer_rule;
/* The rules of Weft's own optimisers. Groups know by the addresses which settings a rule has. */
extern const struct wf_optimizer_rule wf_adam_rule, wf_sgd_rule, wf_lion_rule, wf_adafactor_rule, wf_muon_rule;
/* Whether a rule updates a parameter as a whole, so that all of it must be in one shard. */
bool wf_rule_is_whole(const struct wf_optimizer_rule *rule, void *ctx, const wf_tensor *parameter);
/* The same for a parameter of an optimiser; false if the optimiser does not update the parameter. */
bool wf_optimizer_is_whole(const struct wf_optimizer *opt, const wf_registry *registry, int i);

/* wf_optimizer_save, except that read(ctx, place, at, count, out) supplies the moments during the commit. `source` NULL: this process holds
 * all moments. */
struct wf_optimizer_source {
    wf_safetensors_from *read;
    void *ctx;
};
void wf_optimizer_save_from(const struct wf_optimizer *opt, wf_safetensors_writer *writer, const char *prefix,
                            const struct wf_optimizer_source *source);

WF_END_DECLS

#endif
