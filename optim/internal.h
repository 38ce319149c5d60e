/* SPDX-License-Identifier: MIT */
/* Declarations that the files of this room share. */
#ifndef WEFT_OPTIM_INTERNAL_H
#define WEFT_OPTIM_INTERNAL_H

#include <weft/internal/kernels.h>
#include <weft/internal/optimizer.h>
#include <weft/internal/slab.h>
#include <weft/memory.h>
#include <weft/optimizer_rule.h>

/* A setting of an optimiser that must be in 0 <= value < below. */
struct range {
    const char *name;
    double value, below;
};
wf_status check_ranges(const struct range *range, int count, wf_error *error);

/* groups.c: prefix and name of a parameter. Returns text. */
enum { NAME = 1024 };
const char *name_in(const struct wf_optimizer_part *part, int i, char text[NAME]);

/* optimizer.c */
/* Whether a call from outside wf_fit uses the optimiser during a wf_fit of several processes, where each holds a shard of its state. */
bool is_shared(const struct wf_optimizer *opt);
#define SHARED "the optimiser is shared among several processes until wf_fit returns"
wf_status optimizer_begin(struct wf_optimizer *opt, wf_registry *registry, wf_error *error);
/* Room for the moments of parameters that are trained or wanted and have none. */
wf_status make_moments(struct wf_optimizer *opt, wf_error *error);
void drop_moments(struct wf_optimizer_part *part);

/* Slabs of a parameter: those of the rule, and the averages at a place of their own. */
enum { AVERAGE = WF_RULE_SLABS, SLABS };

/* Address of a moment of element `at` of a parameter, where a block begins. */
static inline wf_real *moment_at(const struct wf_optimizer_part *part, const struct wf_shard *shard, int parameter, int64_t count,
                                 int64_t at, int moment)
{
    return part->moment[moment] + part->parameter[parameter].place + wf_shard_elements(shard, parameter, count, at);
}

/* rule.c */
/* Slabs of the rule that are in use now, the first ones. */
int moments_used(const struct wf_optimizer *opt);
static inline bool slab_used(const struct wf_optimizer *opt, int k)
{
    return k == AVERAGE ? opt->ema > 0 : k < moments_used(opt);
}
static inline const char *slab_name(const struct wf_optimizer *opt, int k)
{
    return k == AVERAGE ? "ema" : opt->rule->slab[k];
}
/* Refuses a rule that updates whole parameters, since each process would have only blocks of them. */
wf_status refuse_shards(const struct wf_optimizer *opt, wf_error *error);

/* clip.c: *sum becomes the sum of the squares of all gradients, without the factor, added to it; NaN is no error. */
wf_status add_squares(wf_grads *grads, double *sum, wf_error *error);

#endif
