/* SPDX-License-Identifier: MIT */
/* Moments in shards: each process holds the moments of the blocks that it updates. */
#include <string.h>

#include <weft/internal/minmax.h>

#include "internal.h"

wf_real *wf_optimizer_moment(const struct wf_optimizer_place *p, int64_t at)
{
    const struct wf_optimizer_part *part = &p->opt->part[p->part];
    const struct wf_optimizer_parameter *q = &part->parameter[p->parameter];
    const struct wf_shard *shard = wf_registry_grads(part->registry)->shard;
    const int64_t of = wf_shard_is_whole(shard, p->parameter) ? 0 : at;
    if (!q->placed || q->place[p->moment] < 0 || !part->moment[p->moment] || !wf_shard_owns(shard, p->parameter, of))
        return NULL;
    return moment_at(part, shard, p->parameter, count_of(part, p->parameter), at, p->moment);
}

int64_t wf_optimizer_moment_count(const struct wf_optimizer_place *p)
{
    wf_shape shape;
    return has_slab(p->opt, &p->opt->part[p->part], p->parameter, p->moment, &shape) ? wf_shape_count(&shape) : 0;
}

bool wf_optimizer_is_whole(const struct wf_optimizer *opt, const wf_registry *registry, int i)
{
    for (int64_t j = 0; j < opt->parts; j++)
        if (opt->part[j].registry == registry)
            return opt->part[j].parameter[i].whole && !opt->part[j].parameter[i].skipped;
    return false;
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
static void keep(const struct wf_optimizer *opt, const struct wf_optimizer_part *from, const struct wf_shard *was,
                 const struct wf_optimizer_part *to, const struct wf_shard *shard, int i, int k)
{
    const int64_t count = count_of(from, i);
    if (from->parameter[i].whole && count > 0 && wf_shard_owns(was, i, 0) && wf_shard_owns(shard, i, 0))
        memcpy(moment_at(to, shard, i, count, 0, k), moment_at(from, was, i, count, 0, k),
               (size_t)room_of(opt, to, shard, i, k) * sizeof(wf_real));
    for (int64_t at = 0; !from->parameter[i].whole && at < count; at += WF_GRADS_BLOCK)
        if (wf_shard_owns(was, i, at) && wf_shard_owns(shard, i, at))
            memcpy(moment_at(to, shard, i, count, at, k), moment_at(from, was, i, count, at, k),
                   (size_t)WF_MIN(count - at, WF_GRADS_BLOCK) * sizeof(wf_real));
}

static wf_status shard_part(const struct wf_optimizer *opt, struct wf_optimizer_part *part, const struct wf_shard *shard, wf_error *error)
{
    const struct wf_shard *was = wf_registry_grads(part->registry)->shard;
    const int parameters = wf_registry_count(part->registry);
    struct wf_optimizer_part fresh = *part;
    memset(fresh.size, 0, sizeof fresh.size);
    fresh.parameter = wf_alloc_zero((size_t)parameters + 1, sizeof *fresh.parameter);
    bool ready = fresh.parameter != NULL;
    for (int i = 0; ready && i < parameters; i++) {
        fresh.parameter[i] = part->parameter[i];
        if (part->parameter[i].placed)
            place_moments(opt, &fresh, shard, i);
    }
    for (int k = 0; k < SLABS; k++) {
        fresh.moment[k] = ready && part->moment[k] ? wf_alloc_zero((size_t)fresh.size[k] + 1, sizeof(wf_real)) : NULL;
        ready = ready && !part->moment[k] == !fresh.moment[k];
        for (int i = 0; fresh.moment[k] && i < parameters; i++)
            if (part->parameter[i].placed && part->parameter[i].place[k] >= 0)
                keep(opt, part, was, &fresh, shard, i, k);
    }
    struct wf_optimizer_part *left = ready ? part : &fresh;
    for (int k = 0; k < SLABS; k++)
        wf_free(left->moment[k]);
    wf_free(left->parameter);
    if (!ready && !shard)
        drop_moments(part);
    if (!ready)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the moments of %lld values", (long long)fresh.size[0]);
    *part = fresh;
    return WF_OK;
}

wf_status wf_optimizer_shard(struct wf_optimizer *opt, const wf_registry *registry, const struct wf_shard *shard, wf_error *error)
{
    for (int64_t j = 0; j < opt->parts; j++)
        if (opt->part[j].registry == registry)
            return check_shard(opt, &opt->part[j], shard, error) ? WF_ERR_ARGUMENT : shard_part(opt, &opt->part[j], shard, error);
    return WF_OK;
}
