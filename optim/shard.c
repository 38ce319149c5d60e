/* SPDX-License-Identifier: MIT */
/* Moments in shards: each process holds the moments of the blocks that it updates. */
#include <string.h>

#include <weft/internal/minmax.h>

#include "internal.h"

static int64_t count_of(const struct wf_optimizer_part *part, int i)
{
    return wf_array_count(&wf_parameter_info(wf_registry_at(part->registry, i))->value);
}

wf_real *wf_optimizer_moment(const struct wf_optimizer_place *p, int64_t at)
{
    const struct wf_optimizer_part *part = &p->opt->part[p->part];
    const struct wf_shard *shard = wf_registry_grads(part->registry)->shard;
    if (part->parameter[p->parameter].place < 0 || !part->moment[p->moment] || !wf_shard_owns(shard, p->parameter, at))
        return NULL;
    return moment_at(part, shard, p->parameter, count_of(part, p->parameter), at, p->moment);
}

bool wf_optimizer_average(const struct wf_optimizer *opt, const wf_registry *registry, int i, struct wf_optimizer_place *out)
{
    for (int64_t j = 0; opt->ema > 0 && j < opt->parts; j++)
        if (opt->part[j].registry == registry && opt->part[j].parameter[i].averaged && !opt->part[j].parameter[i].skipped) {
            *out = (struct wf_optimizer_place){opt, j, i, AVERAGE};
            return true;
        }
    return false;
}

/* Copies the blocks of a moment that this process owns both in shard `was` and in shard `shard`. */
static void keep(const struct wf_optimizer_part *from, const struct wf_shard *was, const struct wf_optimizer_part *to,
                 const struct wf_shard *shard, int i, int k)
{
    const int64_t count = count_of(from, i);
    for (int64_t at = 0; at < count; at += WF_GRADS_BLOCK)
        if (wf_shard_owns(was, i, at) && wf_shard_owns(shard, i, at))
            memcpy(moment_at(to, shard, i, count, at, k), moment_at(from, was, i, count, at, k),
                   (size_t)WF_MIN(count - at, WF_GRADS_BLOCK) * sizeof(wf_real));
}

static wf_status shard_part(struct wf_optimizer_part *part, const struct wf_shard *shard, wf_error *error)
{
    const struct wf_shard *was = wf_registry_grads(part->registry)->shard;
    const int parameters = wf_registry_count(part->registry);
    struct wf_optimizer_part fresh = *part;
    fresh.size = 0;
    fresh.parameter = wf_alloc_zero((size_t)parameters + 1, sizeof *fresh.parameter);
    bool ready = fresh.parameter != NULL;
    for (int i = 0; ready && i < parameters; i++) {
        fresh.parameter[i] = part->parameter[i];
        if (part->parameter[i].place < 0)
            continue;
        fresh.parameter[i].place = fresh.size;
        fresh.size += (wf_shard_elements(shard, i, count_of(part, i), count_of(part, i)) + 15) / 16 * 16;
    }
    for (int k = 0; k < SLABS; k++) {
        fresh.moment[k] = ready && part->moment[k] ? wf_alloc_zero((size_t)fresh.size + 1, sizeof(wf_real)) : NULL;
        ready = ready && !part->moment[k] == !fresh.moment[k];
        for (int i = 0; fresh.moment[k] && i < parameters; i++)
            if (part->parameter[i].place >= 0)
                keep(part, was, &fresh, shard, i, k);
    }
    struct wf_optimizer_part *left = ready ? part : &fresh;
    for (int k = 0; k < SLABS; k++)
        wf_free(left->moment[k]);
    wf_free(left->parameter);
    if (!ready && !shard)
        drop_moments(part);
    if (!ready)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the moments of %lld values", (long long)fresh.size);
    *part = fresh;
    return WF_OK;
}

wf_status wf_optimizer_shard(struct wf_optimizer *opt, const wf_registry *registry, const struct wf_shard *shard, wf_error *error)
{
    for (int64_t j = 0; j < opt->parts; j++)
        if (opt->part[j].registry == registry)
            return shard && refuse_shards(opt, error) ? WF_ERR_ARGUMENT : shard_part(&opt->part[j], shard, error);
    return WF_OK;
}
