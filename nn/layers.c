/* SPDX-License-Identifier: MIT */
/* Linear maps, embeddings, norms and dropout; helpers for other modules. */
#include <math.h>

#include <weft/internal/minmax.h>

#include "internal.h"

struct wf_initializer init_or(const struct wf_initializer *first, const struct wf_initializer *second, enum wf_init_kind kind, double a)
{
    if (first && first->kind != WF_INIT_DEFAULT)
        return *first;
    if (second && second->kind != WF_INIT_DEFAULT)
        return *second;
    return (struct wf_initializer){.kind = kind, .a = a};
}

void wf_linear_init_with(wf_scope scope, struct wf_linear *m, int64_t in, int64_t out, const struct wf_linear_options *o)
{
    o = o ? o : &(struct wf_linear_options){0};
    const struct wf_init_rules *rules = scope.rules;
    const struct wf_initializer *rule = rules ? &rules->weight : NULL;
    if (rules && o->residual && rules->residual.kind != WF_INIT_DEFAULT)
        rule = &rules->residual;
    struct wf_initializer weight = init_or(&o->init, rule, WF_INIT_FAN_IN, 0);
    weight.parts = o->parts;
    struct wf_initializer bias = init_or(rules ? &rules->bias : NULL, NULL, WF_INIT_FAN_IN, 0);
    fan_in_or(&bias, in);
    *m = (struct wf_linear){
        .weight = o->tied ? o->tied : wf_parameter(scope, "weight", &((wf_shape){2, {out, in}}), .init = weight, .storable = true),
        .bias = o->no_bias ? NULL : wf_parameter(scope, "bias", &((wf_shape){1, {out}}), .init = bias),
    };
    lora_init(scope, m, in, out, &o->lora);
    if (o->tied && (wf_ndim(o->tied) != 2 || wf_dim(o->tied, 0) != out || wf_dim(o->tied, 1) != in))
        wf_scope_fail(scope, WF_ERR_SHAPE, "the tied weight is not [%lld,%lld]", (long long)out, (long long)in);
}

wf_tensor *wf_linear_forward(const struct wf_linear *m, wf_tensor *x)
{
    wf_tensor *y = wf_linear(x, m->weight, m->bias);
    return m->lora_a ? lora_forward(m, x, y) : y;
}

void wf_embedding_init_with(wf_scope scope, struct wf_embedding *m, int64_t count, int64_t d, const struct wf_embedding_options *o)
{
    o = o ? o : &(struct wf_embedding_options){0};
    struct wf_initializer init = init_or(&o->init, scope.rules ? &scope.rules->embedding : NULL, WF_INIT_NORMAL, 1);
    m->weight = o->tied
                    ? o->tied
                    : wf_parameter(scope, "weight", &((wf_shape){2, {count, d}}), .init = init, .storable = !o->real_only, .table = true);
    m->scale = o->scale != 0 ? o->scale : 1;
    if (o->tied && (wf_ndim(o->tied) != 2 || wf_dim(o->tied, 0) != count || wf_dim(o->tied, 1) != d))
        wf_scope_fail(scope, WF_ERR_SHAPE, "the tied weight is not [%lld,%lld]", (long long)count, (long long)d);
}

wf_tensor *wf_embedding_forward(const struct wf_embedding *m, wf_tensor *ids)
{
    wf_tensor *x = wf_embedding(m->weight, ids);
    if (m->scale == 1)
        return x;
    wf_tensor *y = wf_scale(x, m->scale);
    wf_release(x);
    return y;
}

/* eps, or `otherwise` if eps is 0. */
static double norm_eps(wf_scope scope, double eps, double otherwise)
{
    if (!(eps >= 0) || isinf(eps))
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "eps = %g must be a number of at least 0; 0 stands for %g", eps, otherwise);
    return eps > 0 ? eps : otherwise;
}

static wf_tensor *gain(wf_scope scope, int64_t d, double start)
{
    return wf_parameter(scope, "weight", &((wf_shape){1, {d}}), .init = {.kind = WF_INIT_CONSTANT, .a = start});
}

void wf_layer_norm_init_with(wf_scope scope, struct wf_layer_norm *m, int64_t d, const struct wf_norm_options *o)
{
    o = o ? o : &(struct wf_norm_options){0};
    if (o->from_one)
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "from_one is for RMSNorm, not for LayerNorm");
    m->weight = gain(scope, d, 1);
    m->bias = o->no_bias ? NULL : wf_parameter(scope, "bias", &((wf_shape){1, {d}}), .init = {.kind = WF_INIT_CONSTANT});
    m->eps = norm_eps(scope, o->eps, 1e-5);
}

wf_tensor *wf_layer_norm_forward(const struct wf_layer_norm *m, wf_tensor *x)
{
    return wf_layer_norm(x, m->weight, m->bias, m->eps);
}

void wf_rms_norm_init_with(wf_scope scope, struct wf_rms_norm *m, int64_t d, const struct wf_norm_options *o)
{
    m->from_one = o && o->from_one;
    m->weight = gain(scope, d, m->from_one ? 0 : 1);
    m->eps = norm_eps(scope, o ? o->eps : 0, 1.1920928955078125e-7);
}

wf_tensor *wf_rms_norm_forward(const struct wf_rms_norm *m, wf_tensor *x)
{
    return (m->from_one ? wf_rms_norm_from_one : wf_rms_norm)(x, m->weight, m->eps);
}

void wf_group_norm_init_with(wf_scope scope, struct wf_group_norm *m, int64_t groups, int64_t channels, const struct wf_norm_options *o)
{
    o = o ? o : &(struct wf_norm_options){0};
    if (groups < 1 || channels % groups != 0)
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "group norm: %lld groups do not divide %lld channels", (long long)groups,
                      (long long)channels);
    if (o->from_one)
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "from_one is for RMSNorm, not for a norm of groups");
    m->weight = gain(scope, channels, 1);
    m->bias = o->no_bias ? NULL : wf_parameter(scope, "bias", &((wf_shape){1, {channels}}), .init = {.kind = WF_INIT_CONSTANT});
    m->groups = groups;
    m->eps = norm_eps(scope, o->eps, 1e-5);
}

wf_tensor *wf_group_norm_forward(const struct wf_group_norm *m, wf_tensor *x)
{
    wf_tape *tape = wf_tape_of(x);
    if (wf_is_poison(x) || !tape)
        return x;
    const wf_shape shape = wf_shape_of(x);
    const int64_t channels = wf_dim(m->weight, 0);
    if (shape.ndim < 2 || shape.ndim > 4 || shape.dim[1] != channels)
        return wf_tape_fail(tape, WF_ERR_SHAPE, "group norm: '%s' is not [N,%lld], [B,%lld,T] or [B,%lld,H,W]", wf_name_of(x),
                            (long long)channels, (long long)channels, (long long)channels);
    return wf_group_norm(x, m->groups, m->weight, m->bias, m->eps);
}

bool dropout_valid(wf_scope scope, double p)
{
    if (p >= 0 && p < 1)
        return true;
    wf_scope_fail(scope, WF_ERR_ARGUMENT, "dropout %g is not in 0 <= p < 1", p);
    return false;
}

void wf_dropout_init(wf_scope scope, struct wf_dropout *m, double p)
{
    const bool valid = p >= 0 && p <= 1;
    if (!valid)
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "dropout %g is not in 0 <= p <= 1", p);
    m->p = valid ? p : 0;
}

wf_tensor *end_branch(wf_tensor *y, double dropout, wf_tensor *residual)
{
    wf_tensor *end = residual ? wf_dropout_add(y, residual, dropout) : wf_dropout(y, dropout);
    if (end != y) /* without dropout and residual, end is y */
        wf_release(y);
    return end;
}

wf_tensor *wf_dropout_forward(const struct wf_dropout *m, wf_tensor *x)
{
    return m->p > 0 ? wf_dropout(x, m->p) : x;
}
