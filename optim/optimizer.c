/* SPDX-License-Identifier: MIT */
/* The parts of an optimiser that do not depend on its rule: registries, moments and the step. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/compute.h>
#include <weft/internal/buffers.h>
#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>

#include "internal.h"

wf_status check_ranges(const struct range *range, int count, wf_error *error)
{
    for (int i = 0; i < count; i++)
        if (!(range[i].value >= 0 && range[i].value < range[i].below)) /* refuses NaN too */
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s = %g is not in 0 <= %s < %g", range[i].name, range[i].value, range[i].name,
                                range[i].below);
    return WF_OK;
}

/* Checks the settings that callers may change at any time. */
static wf_status check_settings(struct wf_optimizer *opt, wf_error *error)
{
    wf_status status = check_ranges(&(struct range){"lr", opt->lr, INFINITY}, 1, error);
    if (status == WF_OK)
        status = check_ranges(&(struct range){"ema", opt->ema, 1}, 1, error);
    if (status == WF_OK && opt->rule->check)
        status = opt->rule->check(opt->ctx, opt, error);
    return status == WF_OK ? check_groups(opt, error) : status;
}

/* --- registries ---------------------------------------------------------------------------------------------------- */

static void free_part(struct wf_optimizer_part *part)
{
    for (int k = 0; k < SLABS; k++)
        wf_free(part->moment[k]);
    wf_free(part->parameter);
    wf_free(part->prefix);
}

void wf_optimizer_free(struct wf_optimizer *opt)
{
    if (!opt)
        return;
    for (int64_t i = 0; i < opt->parts; i++)
        free_part(&opt->part[i]);
    wf_free(opt->part);
    wf_free(opt->group);
    wf_free(opt->workspace);
    *opt = (struct wf_optimizer){0};
}

wf_status optimizer_begin(struct wf_optimizer *opt, wf_registry *registry, wf_error *error)
{
    wf_status status = check_settings(opt, error);
    if (status == WF_OK)
        status = check_ranges(&(struct range){"weight_decay", opt->weight_decay, INFINITY}, 1, error);
    if (status == WF_OK)
        status = wf_optimizer_add(opt, registry, NULL, error);
    if (status != WF_OK)
        wf_optimizer_free(opt);
    return status;
}

static wf_status check_names(const struct wf_optimizer *opt, const struct wf_optimizer_part *new, wf_error *error)
{
    for (int64_t k = 0; k < opt->parts; k++) {
        const struct wf_optimizer_part *old = &opt->part[k];
        if (old->registry == new->registry)
            return wf_error_set(error, WF_ERR_ARGUMENT, "wf_optimizer_add: the optimiser has this registry already");
        size_t skip = strlen(old->prefix);
        for (int i = 0; i < wf_registry_count(new->registry); i++) {
            char name[NAME];
            name_in(new, i, name);
            if (!wf_registry_is_buffer(new->registry, i) && strncmp(name, old->prefix, skip) == 0 &&
                wf_registry_find(old->registry, name + skip))
                return wf_error_set(error, WF_ERR_ARGUMENT,
                                    "wf_optimizer_add: two registries have a parameter '%s': give wf_optimizer_add another prefix", name);
        }
    }
    return WF_OK;
}

wf_status wf_optimizer_add(struct wf_optimizer *opt, wf_registry *registry, const char *prefix, wf_error *error)
{
    if (wf_needs(error, "opt, registry", opt, registry))
        return WF_ERR_ARGUMENT;
    if (!opt->rule)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "wf_optimizer_add: the optimiser is not initialised: call wf_adamw_init or the like first");
    if (!wf_registry_grads(registry))
        return wf_error_set(error, WF_ERR_STATE, "the registry has no gradients: call wf_registry_build or wf_registry_gradients first");
    struct wf_optimizer_part part = {.registry = registry, .prefix = wf_strdup(prefix ? prefix : "")};
    int count = wf_registry_count(registry);
    part.parameter = wf_alloc_zero((size_t)count + 1, sizeof *part.parameter);
    wf_status status = WF_OK;
    if (!part.prefix || !part.parameter || !wf_grow(&opt->part, &opt->room, opt->parts + 1, sizeof *opt->part))
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for the settings of %d parameters", count);
    else
        status = check_names(opt, &part, error);
    for (int i = 0; status == WF_OK && i < count; i++)
        part.parameter[i] = (struct wf_optimizer_parameter){
            .weight_decay = opt->weight_decay, .lr_scale = 1, .whole = wf_rule_is_whole(opt->rule, opt->ctx, wf_registry_at(registry, i))};
    if (status == WF_OK)
        status = check_shapes(opt, &part, error);
    if (status == WF_OK)
        status = check_shard(opt, &part, wf_registry_grads(registry)->shard, error);
    if (status == WF_OK) {
        opt->part[opt->parts++] = part;
        status = make_moments(opt, error);
        if (status == WF_OK)
            return status;
        part = opt->part[--opt->parts];
    }
    free_part(&part);
    return status;
}

bool is_shared(const struct wf_optimizer *opt)
{
    for (int64_t j = 0; j < opt->parts; j++) {
        const wf_grads *grads = wf_registry_grads(opt->part[j].registry);
        if (grads && grads->shard && !grads->shard->active)
            return true;
    }
    return false;
}

/* --- a step -------------------------------------------------------------------------------------------------------- */

static wf_status check_gradients(const struct wf_optimizer *opt, wf_error *error)
{
    for (int64_t k = 0; k < opt->parts; k++)
        if (wf_registry_grads(opt->part[k].registry)->broken)
            return wf_error_set(error, WF_ERR_STATE, "the last backward failed, and its gradients are invalid: see wf_tape_error");
    for (int64_t k = 0; k < opt->parts; k++) {
        const struct wf_optimizer_part *part = &opt->part[k];
        wf_grads *grads = wf_registry_grads(part->registry);
        char name[NAME];
        int i;
        double sum = 0, value;
        wf_status status = grads->finite ? WF_OK : add_squares(grads, &sum, error);
        if (status != WF_OK)
            return status;
        if (isfinite(sum))
            continue;
        if (first_nonfinite(grads, &i, &value))
            return wf_error_set(error, WF_ERR_NUMERIC, "the gradient of '%s' has the value %g in update %lld", name_in(part, i, name),
                                value, (long long)opt->step + 1);
        return wf_error_set(error, WF_ERR_NUMERIC, "the gradient norm is %g in update %lld", sqrt(sum), (long long)opt->step + 1);
    }
    return WF_OK;
}

/* Counts updates for each parameter separately, because a parameter without a gradient is not updated, as in PyTorch. */
static void count_updates(const struct wf_optimizer *opt, struct wf_optimizer_part *part)
{
    const wf_grads *grads = wf_registry_grads(part->registry);
    int64_t known = -1;
    int group = -1;
    double factor[WF_RULE_FACTORS] = {0};
    for (int i = 0; i < grads->parameters; i++) {
        struct wf_optimizer_parameter *p = &part->parameter[i];
        if (!grads->valid[i] || p->skipped || info_of(part, i)->frozen)
            continue;
        p->updates++;
        const struct wf_optimizer *with = settings_of(opt, p);
        if ((p->updates != known || p->group != group) && opt->rule->factors)
            opt->rule->factors(with->ctx, with, p->updates, factor);
        known = p->updates;
        group = p->group;
        memcpy(p->factor, factor, sizeof factor);
    }
}

struct run {
    const struct wf_optimizer *opt;
    const struct wf_optimizer_part *part;
    const wf_grads *grads;
    int moments;
};

/* Updates the moving average of `count` values. It is a plain loop and no kernel, because the speed of memory limits it anyway. */
static void average(int64_t count, const wf_real *value, double decay, wf_real *mean)
{
    const wf_real step = (wf_real)(1 - decay);
    for (int64_t i = 0; i < count; i++)
        mean[i] = decay > 0 ? mean[i] + step * (value[i] - mean[i]) : value[i];
}

/* Updates `count` elements of a parameter from element `at` on, which begins a block. `error` is that of a whole parameter. */
static void update(const struct run *r, int parameter, int64_t at, int64_t count, wf_error *error)
{
    const struct wf_optimizer *opt = r->opt;
    const struct wf_optimizer_parameter *p = &r->part->parameter[parameter];
    const struct wf_optimizer *with = settings_of(opt, p);
    const struct wf_parameter_info *info = info_of(r->part, parameter);
    const int64_t all = wf_array_count(&info->value);
    wf_real *gradient = wf_grads_block_data(r->grads, &(struct wf_grads_block){parameter, at, count});
    struct wf_update u = {.optimizer = with,
                          .prefix = r->part->prefix,
                          .name = info->name,
                          .parameter = wf_registry_at(r->part->registry, parameter),
                          .updates = p->updates,
                          .lr = opt->lr * p->lr_scale,
                          .weight_decay = p->weight_decay,
                          .at = at,
                          .count = count,
                          .value = (wf_real *)info->value.data + at,
                          .gradient = gradient,
                          .scale = r->grads->factor == 0 ? 1 : (wf_real)r->grads->factor,
                          .whole = p->whole,
                          .workspace = p->whole ? opt->workspace : NULL,
                          .error = error};
    memcpy(u.factor, p->factor, sizeof u.factor);
    for (int k = 0; k < r->moments; k++)
        u.slab[k] = p->place[k] < 0 ? NULL : moment_at(r->part, r->grads->shard, parameter, all, at, k);
    if (!opt->rule->scales && u.scale != 1) {
        wf_kernel->mul(count, gradient, 1, &u.scale, 0, gradient); /* only this optimiser reads these gradients, so they may change */
        u.scale = 1;
    }
    opt->rule->step(with->ctx, &u);
    if (opt->ema > 0 && !(error && error->code))
        average(count, u.value, p->averaged ? opt->ema : 0, moment_at(r->part, r->grads->shard, parameter, all, at, AVERAGE));
}

static bool is_updated(const struct run *r, int i)
{
    return r->grads->valid[i] && !r->part->parameter[i].skipped && !info_of(r->part, i)->frozen;
}

static void update_block(void *ctx, int64_t i)
{
    const struct run *r = ctx;
    const struct wf_grads_block *b = &r->grads->block[i];
    if (is_updated(r, b->parameter) && !r->part->parameter[b->parameter].whole && wf_shard_owns(r->grads->shard, b->parameter, b->at))
        update(r, b->parameter, b->at, b->count, NULL);
}

/* After an error *done is the first of the whole parameters that are not updated. */
static wf_status update_all(const struct run *r, int *done, wf_error *error)
{
    wf_error why = {0};
    int64_t ranges = 0;
    for (int i = 0; i < r->grads->parameters; i++)
        ranges += r->part->parameter[i].whole ? 0 : r->grads->place[i].count;
    if (ranges > 0)
        wf_parallel(r->grads->blocks, 0.5 * (double)ranges, update_block, (void *)r);
    for (*done = 0; *done < r->grads->parameters; ++*done) {
        const int i = *done;
        if (r->part->parameter[i].whole && is_updated(r, i) && count_of(r->part, i) > 0 && wf_shard_owns(r->grads->shard, i, 0))
            update(r, i, 0, count_of(r->part, i), &why);
        if (why.code != WF_OK)
            break;
    }
    return why.code == WF_OK ? WF_OK : wf_error_set(error, why.code, "%s", why.message);
}

/* Zeroes the gradients that this optimiser has used. Gradients of other optimisers stay, with their factor of clipping. */
static void zero_gradients(const struct wf_optimizer_part *part, wf_grads *grads)
{
    bool shared = false;
    for (int i = 0; i < grads->parameters; i++)
        shared |= part->parameter[i].skipped;
    if (!shared) {
        wf_grads_zero(grads);
        grads->finite = true;
    }
    for (int i = 0; shared && i < grads->parameters; i++)
        grads->valid[i] = grads->valid[i] && part->parameter[i].skipped;
}

/* The update of one registry, whose gradients stay. */
static wf_status update_part(const struct wf_optimizer *opt, struct wf_optimizer_part *part, wf_grads *grads, wf_error *error)
{
    const struct run run = {opt, part, grads, moments_used(opt)};
    int done;
    count_updates(opt, part);
    const wf_status status = update_all(&run, &done, error);
    for (int i = 0; i < grads->parameters; i++) {
        struct wf_optimizer_parameter *p = &part->parameter[i];
        if (is_updated(&run, i) && p->whole && i >= done)
            p->updates--;
        else if (is_updated(&run, i))
            p->averaged = opt->ema > 0;
    }
    if (status == WF_OK)
        wf_registry_change_buffers(part->registry);
    grads->updates++;
    return status;
}

wf_status wf_optimizer_step(struct wf_optimizer *opt, wf_error *error)
{
    if (wf_needs(error, "opt", opt))
        return WF_ERR_ARGUMENT;
    if (!opt->rule)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_optimizer_step: the optimiser is not initialised");
    if (is_shared(opt))
        return wf_error_set(error, WF_ERR_STATE, "wf_optimizer_step: " SHARED);
    wf_status status = check_settings(opt, error);
    if (status == WF_OK)
        status = check_gradients(opt, error);
    if (status == WF_OK)
        status = make_moments(opt, error);
    if (status != WF_OK)
        return status;
    opt->step++;
    refresh_groups(opt);
    for (int64_t k = 0; k < opt->parts; k++) {
        wf_grads *grads = wf_registry_grads(opt->part[k].registry);
        if (status == WF_OK)
            status = update_part(opt, &opt->part[k], grads, error);
        zero_gradients(&opt->part[k], grads); /* also after an error in a registry before */
    }
    return status;
}
