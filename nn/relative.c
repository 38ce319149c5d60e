/* SPDX-License-Identifier: MIT */
/* Positions as a bias of scores: T5's buckets, ALiBi. */
#include <math.h>
#include <stdlib.h>

#include <weft/memory.h>
#include <weft/relative.h>

#include "internal.h"

void wf_relative_bias_init_with(wf_scope scope, struct wf_relative_bias *m, int heads, const struct wf_relative_bias_options *o)
{
    o = o ? o : &(struct wf_relative_bias_options){0};
    *m = (struct wf_relative_bias){.heads = heads,
                                   .buckets = o->buckets ? o->buckets : 32,
                                   .max_distance = o->max_distance ? o->max_distance : 128,
                                   .bidirectional = o->bidirectional};
    const int each = m->bidirectional ? m->buckets / 2 : m->buckets;
    if (heads < 1)
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "heads = %d must be at least 1", heads);
    else if (each < 2 || (m->bidirectional && m->buckets % 2 != 0))
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "buckets = %d must be %s", m->buckets,
                      m->bidirectional ? "a multiple of 2 and at least 4" : "at least 2");
    else if (m->max_distance <= each / 2)
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "max_distance = %lld must be above %d, the distances with a bucket each",
                      (long long)m->max_distance, each / 2);
    if (heads < 1 || each < 2)
        m->heads = 1, m->buckets = 4;
    struct wf_initializer init = init_or(&o->init, scope.rules ? &scope.rules->embedding : NULL, WF_INIT_NORMAL, 0.02);
    m->weight = wf_parameter(scope, "weight", &((wf_shape){2, {m->buckets, m->heads}}), .init = init);
}

int wf_relative_bucket(int64_t distance, int buckets, int64_t max_distance, bool bidirectional)
{
    int first = 0;
    if (bidirectional) {
        buckets /= 2;
        first = distance > 0 ? buckets : 0;
    }
    const int64_t far = distance < 0 ? -distance : bidirectional ? distance : 0;
    const int exact = buckets / 2;
    if (far < exact || exact == 0)
        return first + (int)(far < exact ? far : 0);
    /* In float, as the models were trained. */
    const float growth = logf((float)far / (float)exact) / (float)log((double)max_distance / exact) * (float)(buckets - exact);
    return first + (growth < (float)(buckets - 1 - exact) ? exact + (int)growth : buckets - 1);
}

/* Fails unless both are sizes of a bias. */
static bool sizes_fit(wf_tape *tape, const char *what, int64_t queries, int64_t keys)
{
    const int64_t most = INT32_MAX;
    if (queries >= 0 && keys >= 0 && queries <= most && keys <= most)
        return true;
    wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: %lld queries and %lld keys: both must be in 0 .. %lld", what, (long long)queries,
                 (long long)keys, (long long)most);
    return false;
}

wf_tensor *wf_relative_bias_forward(const struct wf_relative_bias *m, wf_tape *tape, int64_t queries, int64_t keys)
{
    if (!sizes_fit(tape, "wf_relative_bias_forward", queries, keys))
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_relative_bias_forward");
    int32_t *ids = wf_alloc(((size_t)queries * (size_t)keys + 1) * sizeof *ids);
    if (!ids)
        return wf_tape_fail(tape, WF_ERR_MEMORY, "wf_relative_bias_forward: no memory for buckets of %lld queries and %lld keys",
                            (long long)queries, (long long)keys);
    for (int64_t t = 0; t < queries; t++)
        for (int64_t s = 0; s < keys; s++) /* the distance alone matters: the row above has it one key before */
            ids[t * keys + s] = t > 0 && s > 0
                                    ? ids[(t - 1) * keys + s - 1]
                                    : wf_relative_bucket(s - (keys - queries + t), m->buckets, m->max_distance, m->bidirectional);
    wf_tensor *places = wf_ids_of(tape, ids, &(wf_shape){2, {queries, keys}}), *each = wf_embedding(m->weight, places); /* [T,S,H] */
    wf_free(ids);
    wf_tensor *bias = wf_permute(each, 2, 0, 1), *rows = wf_contiguous(bias); /* [H,T,S], a head's rows side by side */
    if (rows != bias)
        wf_release(each);
    return rows;
}

void wf_alibi_slopes(int heads, double *slopes)
{
    int power = 1;
    while (power <= heads / 2)
        power *= 2;
    for (int i = 0; i < heads; i++)
        slopes[i] = i < power ? exp2(-8.0 * (i + 1) / power) : exp2(-8.0 * (2 * (i - power) + 1) / (2.0 * power));
}

wf_tensor *wf_alibi(wf_tape *tape, int heads, int64_t queries, int64_t keys)
{
    if (heads < 1)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_alibi: heads = %d must be at least 1", heads);
    if (!sizes_fit(tape, "wf_alibi", queries, keys))
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_alibi");
    double *slopes = wf_alloc((size_t)heads * sizeof *slopes);
    wf_real *bias = wf_alloc_zero((size_t)queries * (size_t)keys + 1, (size_t)heads * sizeof *bias);
    wf_tensor *y = NULL;
    if (slopes && bias) {
        wf_alibi_slopes(heads, slopes);
        wf_real *to = bias;
        for (int h = 0; h < heads; h++)
            for (int64_t t = 0; t < queries; t++)
                for (int64_t s = 0; s < keys; s++)
                    *to++ = (wf_real)(-slopes[h] * (double)llabs(s - (keys - queries + t)));
        y = wf_input(tape, bias, &(wf_shape){3, {heads, queries, keys}}, false);
    }
    wf_free(slopes);
    wf_free(bias);
    return y ? y
             : wf_tape_fail(tape, WF_ERR_MEMORY, "wf_alibi: no memory for %d heads, %lld queries and %lld keys", heads, (long long)queries,
                            (long long)keys);
}
