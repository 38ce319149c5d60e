/* SPDX-License-Identifier: MIT */
/* Relative positions as a bias that attention adds to its scores: T5's buckets, and ALiBi. */
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
    m->weight = wf_parameter(scope, "weight", &((wf_shape){2, {m->buckets, m->heads}}), .init = init, .table = true);
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
    /* In float, as in the training of T5's models, because the rounding decides some buckets. */
    const float growth = logf((float)far / (float)exact) / (float)log((double)max_distance / exact) * (float)(buckets - exact);
    return first + (growth < (float)(buckets - 1 - exact) ? exact + (int)growth : buckets - 1);
}

/* The positions of queries among keys. Each of `rows` rows has T queries and S keys. */
struct places {
    const char *what; /* name of the function, for messages */
    int64_t rows, T, S;
    int64_t start;         /* query t is at start + t, if starts is NULL */
    const int32_t *starts; /* [rows]: query t of a row is at starts[row] + t. NULL: rows is 1, and the result has no dimension for rows */
};

static struct places at_end(const char *what, int64_t queries, int64_t keys)
{
    return (struct places){.what = what, .rows = 1, .T = queries, .S = keys, .start = keys - queries};
}

static int64_t start_of(const struct places *p, int64_t row)
{
    return p->starts ? p->starts[row] : p->start;
}

/* Fails unless T and S are valid sizes of a bias. */
static bool sizes_fit(wf_tape *tape, const struct places *p)
{
    const int64_t most = INT32_MAX;
    if (p->T >= 0 && p->S >= 0 && p->T <= most && p->S <= most && (double)p->rows * (double)p->T * (double)p->S < 0x1p62)
        return true;
    wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: %lld queries and %lld keys: both must be in 0 .. %lld", p->what, (long long)p->T,
                 (long long)p->S, (long long)most);
    return false;
}

/* Sets *p for self-attention over x with the options of `call`. */
static wf_status places_of(wf_tensor *x, const struct wf_relative_call *call, struct places *p, wf_error *error)
{
    const struct wf_cache *cache = call->cache;
    if (wf_is_packed(call->packed)) {
        if (cache)
            return wf_error_set(error, WF_ERR_ARGUMENT, "packed rows cannot be combined with a cache");
        p->T = p->S = wf_packed_longest(call->packed);
        return wf_packed_check(call->packed, wf_dim(x, 0), "packed", error);
    }
    if (wf_ndim(x) < 2)
        return wf_error_set(error, WF_ERR_SHAPE, "'%s' is not [B,T,...]", wf_name_of(x));
    p->S = p->T = wf_dim(x, 1);
    if (!cache)
        return WF_OK;
    if (cache->error.code != WF_OK)
        return wf_error_set(error, cache->error.code, "%s", cache->error.message);
    if (cache->rows != wf_dim(x, 0))
        return wf_error_set(error, WF_ERR_SHAPE, "'%s' has %lld rows, but the cache has %lld", wf_name_of(x), (long long)wf_dim(x, 0),
                            (long long)cache->rows);
    p->start = cache_longest(cache);
    p->S += p->start;
    if (cache_common_length(cache) < 0) {
        p->rows = cache->rows;
        p->starts = cache->length;
    }
    return WF_OK;
}

/* As places_of, but errors go to the tape. False: the tape has the error, or x is poison. */
static bool find_places(wf_tensor *x, const struct wf_relative_call *call, struct places *p)
{
    static const struct wf_relative_call whole_rows;
    wf_tape *tape = wf_tape_of(x);
    wf_error error = {0};
    if (!x)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: x is NULL", p->what);
    if (!tape || wf_is_poison(x))
        return false;
    p->rows = 1;
    if (places_of(x, call ? call : &whole_rows, p, &error) == WF_OK)
        return true;
    wf_tape_fail(tape, error.code, "%s: %s", p->what, error.message);
    return false;
}

static wf_tensor *relative_bias(const struct wf_relative_bias *m, wf_tape *tape, const struct places *p)
{
    if (!sizes_fit(tape, p))
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s", p->what);
    const int64_t T = p->T, S = p->S;
    int32_t *ids = wf_alloc(((size_t)p->rows * (size_t)T * (size_t)S + 1) * sizeof *ids), *row = ids;
    if (!ids)
        return wf_tape_fail(tape, WF_ERR_MEMORY, "%s: no memory for buckets of %lld queries and %lld keys", p->what, (long long)T,
                            (long long)S);
    for (int64_t b = 0; b < p->rows; b++, row += T * S)
        for (int64_t t = 0; t < T; t++)
            for (int64_t s = 0; s < S; s++) /* query t - 1 is as far from key s - 1 as t from s, so the bucket is the same */
                row[t * S + s] = t > 0 && s > 0
                                     ? row[(t - 1) * S + s - 1]
                                     : wf_relative_bucket(s - (start_of(p, b) + t), m->buckets, m->max_distance, m->bidirectional);
    wf_tensor *places = wf_ids_of(tape, ids, p->starts ? WF_SHAPE(p->rows, T, S) : WF_SHAPE(T, S));
    wf_tensor *each = wf_embedding(m->weight, places); /* [T,S,H] or [R,T,S,H] */
    wf_free(ids);
    wf_tensor *bias = p->starts ? wf_permute(each, 0, 3, 1, 2) : wf_permute(each, 2, 0, 1);
    wf_tensor *rows = wf_contiguous(bias); /* [H,T,S] or [R,H,T,S], contiguous */
    if (rows != bias)
        wf_release(each);
    return rows;
}

wf_tensor *wf_relative_bias_forward(const struct wf_relative_bias *m, wf_tape *tape, int64_t queries, int64_t keys)
{
    const struct places p = at_end("wf_relative_bias_forward", queries, keys);
    return relative_bias(m, tape, &p);
}

wf_tensor *wf_relative_bias_self_with(const struct wf_relative_bias *m, wf_tensor *x, const struct wf_relative_call *call)
{
    struct places p = {.what = "wf_relative_bias_self"};
    return find_places(x, call, &p) ? relative_bias(m, wf_tape_of(x), &p) : wf_tape_fail(wf_tape_of(x), WF_ERR_STATE, "%s", p.what);
}

void wf_alibi_slopes(int heads, double *slopes)
{
    int power = 1;
    while (power <= heads / 2)
        power *= 2;
    for (int i = 0; i < heads; i++)
        slopes[i] = i < power ? exp2(-8.0 * (i + 1) / power) : exp2(-8.0 * (2 * (i - power) + 1) / (2.0 * power));
}

static wf_tensor *alibi(wf_tape *tape, int heads, const struct places *p)
{
    if (heads < 1)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: heads = %d must be at least 1", p->what, heads);
    if (!sizes_fit(tape, p))
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s", p->what);
    double *slopes = wf_alloc((size_t)heads * sizeof *slopes);
    wf_real *bias = wf_alloc_zero((size_t)p->rows * (size_t)p->T * (size_t)p->S + 1, (size_t)heads * sizeof *bias);
    wf_tensor *y = NULL;
    if (slopes && bias) {
        wf_alibi_slopes(heads, slopes);
        wf_real *to = bias;
        for (int64_t b = 0; b < p->rows; b++)
            for (int h = 0; h < heads; h++)
                for (int64_t t = 0; t < p->T; t++)
                    for (int64_t s = 0; s < p->S; s++)
                        *to++ = (wf_real)(-slopes[h] * (double)llabs(s - (start_of(p, b) + t)));
        y = wf_input(tape, bias, p->starts ? WF_SHAPE(p->rows, heads, p->T, p->S) : WF_SHAPE(heads, p->T, p->S), false);
    }
    wf_free(slopes);
    wf_free(bias);
    return y ? y
             : wf_tape_fail(tape, WF_ERR_MEMORY, "%s: no memory for %d heads, %lld queries and %lld keys", p->what, heads, (long long)p->T,
                            (long long)p->S);
}

wf_tensor *wf_alibi(wf_tape *tape, int heads, int64_t queries, int64_t keys)
{
    const struct places p = at_end("wf_alibi", queries, keys);
    return alibi(tape, heads, &p);
}

wf_tensor *wf_alibi_self_with(int heads, wf_tensor *x, const struct wf_relative_call *call)
{
    struct places p = {.what = "wf_alibi_self"};
    return find_places(x, call, &p) ? alibi(wf_tape_of(x), heads, &p) : wf_tape_fail(wf_tape_of(x), WF_ERR_STATE, "%s", p.what);
}
