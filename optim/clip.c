/* SPDX-License-Identifier: MIT */
/* Norms of gradients, and gradient clipping. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include <weft/compute.h>
#include <weft/internal/needs.h>

#include "internal.h"

static void sum_block(void *ctx, int64_t i)
{
    const wf_grads *grads = ctx;
    const struct wf_grads_block *b = &grads->block[i];
    if (grads->shard && grads->shard->active && !wf_shard_owns(grads->shard, b->parameter, b->at))
        return;
    grads->partial[i] = grads->valid[b->parameter] ? wf_kernel->sum_squares(b->count, wf_grads_block_data(grads, b)) : 0;
}

wf_status add_squares(wf_grads *grads, double *sum, wf_error *error)
{
    wf_parallel(grads->blocks, 0.06 * (double)grads->count, sum_block, grads);
    wf_status status = grads->shard && grads->shard->active ? grads->shard->share(grads->shard->ctx, grads, error) : WF_OK;
    if (status != WF_OK)
        return status;
    for (int64_t i = 0; i < grads->blocks; i++)
        *sum += grads->partial[i];
    grads->finite = isfinite(*sum);
    return WF_OK;
}

static wf_status norm_of(wf_grads *const *grads, int count, double *norm, wf_error *error)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        wf_grads_settle(grads[i]);
        wf_status status = add_squares(grads[i], &sum, error);
        if (status != WF_OK)
            return status;
    }
    *norm = sqrt(sum);
    return WF_OK;
}

double wf_grad_norm_of(wf_grads *const *grads, int count)
{
    wf_error failure = {0};
    double norm = NAN;
    for (int i = 0; i < count; i++)
        if (!grads || !grads[i])
            return NAN;
    return norm_of(grads, count, &norm, &failure) == WF_OK ? norm : NAN;
}

double wf_grad_norm(wf_grads *grads)
{
    return wf_grad_norm_of(&grads, 1);
}

bool first_nonfinite(const wf_grads *grads, int *parameter, double *value)
{
    for (int i = 0; i < grads->parameters; i++) {
        const wf_real *g = grads->slab + grads->place[i].offset;
        const int64_t at = grads->valid[i] ? wf_kernel->find_nonfinite(grads->place[i].count, g) : -1;
        if (at < 0)
            continue;
        *parameter = i;
        *value = (double)g[at];
        return true;
    }
    return false;
}

/* Names the first value of a gradient that is not finite. Another process may own it: then only the norm tells. */
static wf_status not_finite(wf_grads *const *grads, int count, double norm, wf_error *error)
{
    for (int k = 0; k < count; k++) {
        char which[32] = "";
        int parameter;
        double value;
        if (!first_nonfinite(grads[k], &parameter, &value))
            continue;
        if (count > 1)
            snprintf(which, sizeof which, " of grads[%d]", k);
        return wf_error_set(error, WF_ERR_NUMERIC,
                            "the gradient norm is %g: the gradient of wf_registry_at(registry, %d)%s has the value %g", norm, parameter,
                            which, value);
    }
    return wf_error_set(error, WF_ERR_NUMERIC, "the gradient norm is %g: a value of a gradient is not finite, or too large", norm);
}

/* `what` is "norm" or "value". */
static wf_status check(wf_grads *const *grads, int count, const char *what, double max, wf_error *error)
{
    if (!(max >= 0))
        return wf_error_set(error, WF_ERR_ARGUMENT, "max_%s = %g is not a maximum %s: give 0 to disable clipping", what, max, what);
    for (int i = 0; i < count; i++) {
        if (!grads[i])
            return wf_error_set(error, WF_ERR_STATE,
                                "wf_clip_%s: the gradients are NULL: call wf_registry_build or wf_registry_gradients first", what);
        if (grads[i]->broken)
            return wf_error_set(error, WF_ERR_STATE, "the last backward failed, and its gradients are invalid: see wf_tape_error");
        for (int k = 0; k < i; k++)
            if (grads[k] == grads[i])
                return wf_error_set(error, WF_ERR_ARGUMENT, "wf_clip_norm_of: gradients %d and %d are the same", k, i);
    }
    return WF_OK;
}

wf_status wf_clip_norm_of(wf_grads *const *grads, int count, double max_norm, double *norm, wf_error *error)
{
    if (wf_needs(error, "grads", wf_some(grads, count)))
        return WF_ERR_ARGUMENT;
    wf_status status = check(grads, count, "norm", max_norm, error);
    if (status != WF_OK)
        return status;
    wf_error failure = {0};
    double now = NAN;
    if (norm_of(grads, count, &now, &failure) != WF_OK)
        return wf_error_set(error, failure.code, "%s", failure.message);
    if (norm)
        *norm = now;
    if (!isfinite(now))
        return not_finite(grads, count, now, error);
    double scale = max_norm > 0 ? fmin(1, max_norm / (now + 1e-6)) : 1;
    for (int i = 0; i < count && scale < 1; i++)
        grads[i]->factor = fmax(scale, DBL_MIN); /* not 0, because a factor of 0 means that there is no factor */
    return WF_OK;
}

wf_status wf_clip_norm(wf_grads *grads, double max_norm, double *norm, wf_error *error)
{
    return wf_clip_norm_of(&grads, 1, max_norm, norm, error);
}

/* --- by value ------------------------------------------------------------------------------------------------------- */

struct clamping {
    const wf_grads *grads;
    wf_real bound[2]; /* low, high */
};

static void clamp_block(void *ctx, int64_t i)
{
    const struct clamping *c = ctx;
    const struct wf_grads_block *b = &c->grads->block[i];
    wf_real *g = wf_grads_block_data(c->grads, b);
    if (c->grads->valid[b->parameter] && wf_shard_owns(c->grads->shard, b->parameter, b->at))
        wf_kernel->internal->clamp(c->bound, b->count, (const wf_real *const[]){g}, g);
}

wf_status wf_clip_value(wf_grads *grads, double max_value, wf_error *error)
{
    const wf_status status = check(&grads, 1, "value", max_value, error);
    if (status != WF_OK || max_value == 0)
        return status;
    struct clamping c = {grads, {(wf_real)-max_value, (wf_real)max_value}};
    wf_grads_settle(grads);
    wf_parallel(grads->blocks, 0.1 * (double)grads->count, clamp_block, &c);
    return WF_OK;
}
