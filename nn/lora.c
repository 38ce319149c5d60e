/* SPDX-License-Identifier: MIT */
/* Low-rank adapters of linear maps (Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models"). */
#include <string.h>

#include <weft/internal/pattern.h>

#include "internal.h"

static bool in_range(const struct wf_lora *lora)
{
    return lora->rank >= 1 && lora->rank <= INT32_MAX && lora->alpha >= 0 && lora->dropout >= 0 && lora->dropout < 1;
}

wf_status wf_registry_lora_with(wf_registry *registry, const char *pattern, const struct wf_lora *lora, wf_error *error)
{
    if (!registry || !pattern || !lora)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_registry_lora: the %s is NULL",
                            !registry  ? "registry"
                            : !pattern ? "pattern"
                                       : "adapter");
    if (!in_range(lora))
        return wf_error_set(
            error, WF_ERR_ARGUMENT,
            "wf_registry_lora: rank = %lld, alpha = %g or dropout = %g is out of range: at least 1, at least 0, 0 to below 1",
            (long long)lora->rank, lora->alpha, lora->dropout);
    struct lora_rule *rule = wf_arena_get(registry->arena, sizeof *rule), **end = &registry->lora;
    char *copy = wf_arena_get(registry->arena, strlen(pattern) + 1);
    if (!rule || !copy)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for adapters");
    *rule = (struct lora_rule){.pattern = strcpy(copy, pattern), .lora = *lora};
    while (*end)
        end = &(*end)->next;
    *end = rule;
    return WF_OK;
}

/* The first rule whose pattern matches the path of a module, such as "blocks.0.attn.qkv" (without the dot that ends scope.path). Every rule
 * that matches counts as used. */
static const struct wf_lora *find(wf_scope scope)
{
    const struct wf_lora *found = NULL;
    char path[256];
    size_t length = strlen(scope.path);
    if (!scope.registry || length > sizeof path || !scope.registry->lora)
        return NULL;
    memcpy(path, scope.path, length);
    path[length > 0 ? length - 1 : 0] = 0;
    for (struct lora_rule *rule = scope.registry->lora; rule; rule = rule->next)
        if (wf_pattern_matches(rule->pattern, path)) {
            rule->used = true;
            found = found ? found : &rule->lora;
        }
    return found;
}

void lora_init(wf_scope scope, struct wf_linear *m, int64_t in, int64_t out, const struct wf_lora *given)
{
    const struct wf_lora *rule = find(scope), *lora = given->rank != 0 ? given : rule;
    if (!lora)
        return;
    if (!in_range(lora)) {
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "lora: rank = %lld, alpha = %g or dropout = %g is out of range", (long long)lora->rank,
                      lora->alpha, lora->dropout);
        return;
    }
    m->lora_a = wf_parameter(scope, "lora_a", &((wf_shape){2, {lora->rank, in}}), .init = {.kind = WF_INIT_FAN_IN});
    m->lora_b = wf_parameter(scope, "lora_b", &((wf_shape){2, {out, lora->rank}}));
    m->lora_scale = lora->alpha > 0 ? lora->alpha / (double)lora->rank : 1;
    m->lora_dropout = lora->dropout;
}

wf_tensor *lora_forward(const struct wf_linear *m, wf_tensor *x, wf_tensor *y)
{
    wf_tensor *in = m->lora_dropout > 0 ? wf_dropout(x, m->lora_dropout) : x; /* [..., in] */
    wf_tensor *low = wf_linear(in, m->lora_a, NULL);                          /* [..., rank] */
    wf_tensor *scaled = m->lora_scale == 1 ? low : wf_scale(low, m->lora_scale);
    wf_tensor *high = wf_linear(scaled, m->lora_b, NULL), *sum = wf_add(y, high); /* [..., out] */
    wf_tensor *const made[] = {in, low, scaled, high, y};
    for (int i = 0; i < 5; i++)
        if (made[i] != x && (i == 0 || made[i] != made[i - 1]))
            wf_release(made[i]);
    return sum;
}

wf_status lora_check(const wf_registry *registry, wf_error *error)
{
    for (const struct lora_rule *rule = registry->lora; rule; rule = rule->next)
        if (!rule->used)
            return wf_error_set(
                error, WF_ERR_ARGUMENT,
                "wf_registry_lora: no linear map was declared under a path that fits \"%s\" since: give the pattern before the "
                "modules, and for all \"*\"",
                rule->pattern);
    return WF_OK;
}

wf_status wf_linear_merge(const struct wf_linear *m, wf_tape *tape, wf_error *error)
{
    wf_status status = WF_OK;
    if (!m || !tape)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_linear_merge: the %s is NULL", m ? "tape" : "linear map");
    if (!m->lora_a)
        return WF_OK;
    if (wf_dtype_of(m->weight) != WF_REAL)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_linear_merge: the weight '%s' is stored as %s: load the model without .stored",
                            wf_name_of(m->weight), wf_dtype_name(wf_dtype_of(m->weight)));
    const int64_t out = wf_dim(m->weight, 0), in = wf_dim(m->weight, 1), rank = wf_dim(m->lora_a, 0);
    wf_real *weight = wf_alloc((size_t)(out * in) * sizeof *weight), *zero = wf_alloc_zero((size_t)(out * rank), sizeof *zero);
    if (!weight || !zero)
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory to merge adapters");
    if (status == WF_OK) {
        wf_tape_reset(tape, WF_INFER);
        wf_tape_use(tape);
        wf_tensor *sum = wf_add(m->weight, wf_scale(wf_matmul(m->lora_b, m->lora_a), m->lora_scale)); /* [out, in] */
        if (wf_read(sum, weight, out * in) != WF_OK)
            status = wf_tape_status(tape, error);
        wf_tape_reset(tape, WF_INFER);
    }
    if (status == WF_OK)
        status = parameters_set("wf_linear_merge", 2,
                                (const struct parameter_values[]){{m->weight, weight, out * in}, {m->lora_b, zero, out * rank}}, error);
    wf_free(weight);
    wf_free(zero);
    return status;
}
