/* SPDX-License-Identifier: MIT */
/* Declarations that the files of this folder share. A moment is a number that the rule keeps for each element of a parameter, such as
 * Adam's m. A slab is one array with the same moment of all parameters of a registry. */
#ifndef WEFT_OPTIM_INTERNAL_H
#define WEFT_OPTIM_INTERNAL_H

#include <weft/internal/kernels.h>
#include <weft/internal/optimizer.h>
#include <weft/internal/slab.h>
#include <weft/memory.h>
#include <weft/optimizer_rule.h>

/* A setting of an optimiser, which must be in 0 <= value < below. */
struct range {
    const char *name;
    double value, below;
};
wf_status check_ranges(const struct range *range, int count, wf_error *error);

/* groups.c: writes the prefix of the registry and the name of its parameter `i` to `text`, and returns `text`. */
enum { NAME = 1024 };
const char *name_in(const struct wf_optimizer_part *part, int i, char text[NAME]);

/* optimizer.c */
/* Returns true while each process holds only a shard of the optimiser's state: during a wf_fit of several processes, except in the updates,
 * which all processes do together. */
bool is_shared(const struct wf_optimizer *opt);
#define SHARED "the optimiser is shared among several processes until wf_fit returns"
wf_status optimizer_begin(struct wf_optimizer *opt, wf_registry *registry, wf_error *error);
/* Allocates moments for parameters that need them and have no moments yet: parameters that are not frozen, or for which `wanted` is set.
 * Parameters that another optimiser updates (`skipped`) get none. */
wf_status make_moments(struct wf_optimizer *opt, wf_error *error);
void drop_moments(struct wf_optimizer_part *part);

/* Indices of slabs: first the slabs of the rule, last the slab of the moving averages. */
enum { AVERAGE = WF_RULE_SLABS, SLABS };

/* Returns the address of a moment of a parameter's element `at`, which must begin a block. */
static inline wf_real *moment_at(const struct wf_optimizer_part *part, const struct wf_shard *shard, int parameter, int64_t count,
                                 int64_t at, int moment)
{
    return part->moment[moment] + part->parameter[parameter].place + wf_shard_elements(shard, parameter, count, at);
}

/* rule.c */
/* Returns how many slabs of the rule, counted from the first one, are in use now. */
int moments_used(const struct wf_optimizer *opt);
static inline bool slab_used(const struct wf_optimizer *opt, int k)
{
    return k == AVERAGE ? opt->ema > 0 : k < moments_used(opt);
}
static inline const char *slab_name(const struct wf_optimizer *opt, int k)
{
    return k == AVERAGE ? "ema" : opt->rule->slab[k];
}
/* Refuses a rule that updates whole parameters, because with shards a process holds only blocks of a parameter. */
wf_status refuse_shards(const struct wf_optimizer *opt, wf_error *error);

/* clip.c: adds the squares of all gradients to *sum. The gradients count as they are stored, even if clipping has left a factor
 * (wf_grads.factor) by which they have not been multiplied yet. A NaN is no error. */
wf_status add_squares(wf_grads *grads, double *sum, wf_error *error);

#endif
