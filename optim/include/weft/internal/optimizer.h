/* SPDX-License-Identifier: MIT */
/* Optimisers whose moments are shared among several processes (ZeRO, stage 1: Rajbhandari et al. 2020): for the room that trains. */
#ifndef WEFT_INTERNAL_OPTIMIZER_H
#define WEFT_INTERNAL_OPTIMIZER_H

#include <weft/internal/safetensors_from.h>
#include <weft/internal/slab.h>
#include <weft/optim.h>

WF_BEGIN_DECLS

/* Lays out the moments of a registry's parameters for a shard (NULL: for all of them), before the caller sets wf_grads.shard to it. Moments
 * that this process has in both are kept, those that are new to it are 0. Nothing where the optimiser does not have the registry.
 * WF_ERR_MEMORY: nothing has changed; but with NULL the moments are gone, and the next update makes new ones.
 * WF_ERR_ARGUMENT: the rule updates whole parameters, and there is a shard. */
wf_status wf_optimizer_shard(struct wf_optimizer *opt, const wf_registry *registry, const struct wf_shard *shard, wf_error *error);

/* One moment of a parameter. */
struct wf_optimizer_place {
    const struct wf_optimizer *opt;
    int64_t part;
    int parameter, moment;
};
/* The average of parameter `i` of a registry: false where the optimiser has none. */
bool wf_optimizer_average(const struct wf_optimizer *opt, const wf_registry *registry, int i, struct wf_optimizer_place *out);
/* Its elements from `at` on, where a block begins; NULL where this process has none. */
wf_real *wf_optimizer_moment(const struct wf_optimizer_place *place, int64_t at);

/* wf_optimizer_save, where the moments come from read(ctx, place, at, count, out) during the commit. NULL: all are here. */
struct wf_optimizer_source {
    wf_safetensors_from *read;
    void *ctx;
};
void wf_optimizer_save_from(const struct wf_optimizer *opt, wf_safetensors_writer *writer, const char *prefix,
                            const struct wf_optimizer_source *source);

WF_END_DECLS

#endif
