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

/* groups.c */
/* The settings of some parameters, where they differ from those of the optimiser. */
struct wf_optimizer_group {
    struct wf_group_options own; /* without weight_decay and lr_scale, which each parameter has itself */
    struct wf_optimizer with;    /* a copy of the optimiser with these settings, as of the present step */
};
/* Returns the optimiser with the settings of a parameter, as of the last refresh_groups. */
static inline const struct wf_optimizer *settings_of(const struct wf_optimizer *opt, const struct wf_optimizer_parameter *p)
{
    return p->group > 0 ? &opt->group[p->group - 1].with : opt;
}
void refresh_groups(struct wf_optimizer *opt);
/* Refreshes the groups, and checks the settings of each. */
wf_status check_groups(struct wf_optimizer *opt, wf_error *error);
/* Returns how many slabs of the rule, counted from the first one, are in use now, by the optimiser or a group. */
int moments_used(const struct wf_optimizer *opt);
/* groups.c: writes the prefix of the registry and the name of its parameter `i` to `text`, and returns `text`. */
enum { NAME = 1024 };
const char *name_in(const struct wf_optimizer_part *part, int i, char text[NAME]);

static inline const struct wf_parameter_info *info_of(const struct wf_optimizer_part *part, int i)
{
    return wf_parameter_info(wf_registry_at(part->registry, i));
}
static inline int64_t count_of(const struct wf_optimizer_part *part, int i)
{
    return wf_array_count(&info_of(part, i)->value);
}

/* adam.c, for each rule that updates parameters as Adam does. */
/* Computes the factors that correct the bias of moments that start at 0 (Kingma and Ba 2015, section 3). */
void adam_factors(double beta1, double beta2, int64_t updates, double factor[]);
/* Adam's update with these factors in u->factor; with `decoupled` weight decay that of AdamW. */
void adam_step(const struct wf_update *u, wf_real *m, wf_real *v, double beta1, double beta2, double eps, double lr, bool decoupled);

/* optimizer.c */
/* Returns true while each process holds only a shard of the optimiser's state: during a wf_fit of several processes, except in the updates,
 * which all processes do together. */
bool is_shared(const struct wf_optimizer *opt);
#define SHARED "the optimiser is shared among several processes until wf_fit returns"
wf_status optimizer_begin(struct wf_optimizer *opt, wf_registry *registry, wf_error *error);
/* moments.c */
/* Allocates moments for parameters that need them and have no moments yet: parameters that are not frozen, or for which `wanted` is set.
 * Parameters that another optimiser updates (`skipped`) get none. */
wf_status make_moments(struct wf_optimizer *opt, wf_error *error);
void drop_moments(struct wf_optimizer_part *part);

/* Indices of slabs: first the slabs of the rule, last the slab of the moving averages. */
enum { AVERAGE = WF_RULE_SLABS, SLABS };

/* Returns true if a parameter has slab k, and sets *shape to its shape. */
bool has_slab(const struct wf_optimizer *opt, const struct wf_optimizer_part *part, int i, int k, wf_shape *shape);
/* Returns how many elements of slab k of a parameter a process holds with this shard; -1: the parameter has no such slab. */
int64_t room_of(const struct wf_optimizer *opt, const struct wf_optimizer_part *part, const struct wf_shard *shard, int i, int k);
/* Puts the moments of a parameter at the end of the slabs: sets its places, which are whole cache lines, and raises part->size. */
void place_moments(const struct wf_optimizer *opt, struct wf_optimizer_part *part, const struct wf_shard *shard, int i);

/* Returns the address of a moment of a parameter's element `at`, which must begin a block, or of any element of a whole parameter's slab.
 * The parameter has this slab. */
static inline wf_real *moment_at(const struct wf_optimizer_part *part, const struct wf_shard *shard, int parameter, int64_t count,
                                 int64_t at, int moment)
{
    const int64_t before = wf_shard_is_whole(shard, parameter) ? at : wf_shard_elements(shard, parameter, count, at);
    return part->moment[moment] + part->parameter[parameter].place[moment] + before;
}

/* rule.c */
/* Returns the number of the rule's slabs. */
int slabs_of(const struct wf_optimizer_rule *rule);
/* Returns how many of them are in use with the settings of `with`. */
int slabs_used(const struct wf_optimizer *with);
/* Refuses slabs of another shape than the parameter's, unless the parameter is whole. */
wf_status check_shapes(const struct wf_optimizer *opt, const struct wf_optimizer_part *part, wf_error *error);
/* Refuses a shard that has only blocks of a parameter that the rule updates as a whole. */
wf_status check_shard(const struct wf_optimizer *opt, const struct wf_optimizer_part *part, const struct wf_shard *shard, wf_error *error);
static inline bool slab_used(const struct wf_optimizer *opt, int k)
{
    return k == AVERAGE ? opt->ema > 0 : k < moments_used(opt);
}
static inline const char *slab_name(const struct wf_optimizer *opt, int k)
{
    return k == AVERAGE ? "ema" : opt->rule->slab[k];
}

/* clip.c: adds the squares of all gradients to *sum. The gradients count as they are stored, even if clipping has left a factor
 * (wf_grads.factor) by which they have not been multiplied yet. A NaN is no error. */
wf_status add_squares(wf_grads *grads, double *sum, wf_error *error);
/* clip.c: whether a gradient that this process holds has a value that is not finite; sets the first one and its parameter's number. */
bool first_nonfinite(const wf_grads *grads, int *parameter, double *value);

#endif
