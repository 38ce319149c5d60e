/* SPDX-License-Identifier: MIT */
/* Attention's use of a cache: appends new keys and values, and returns all keys and values that the rows hold. */
#include "internal.h"

int64_t cache_longest(const struct wf_cache *cache)
{
    int64_t most = 0;
    for (int64_t b = 0; b < cache->rows; b++)
        most = cache->length[b] > most ? cache->length[b] : most;
    return most;
}

int64_t cache_common_length(const struct wf_cache *cache)
{
    for (int64_t b = 1; b < cache->rows; b++)
        if (cache->length[b] != cache->length[0])
            return -1;
    return cache->rows > 0 ? cache->length[0] : 0;
}

bool cache_fits(wf_tape *tape, const struct wf_kv *kv, const wf_tensor *k, const wf_tensor *v)
{
    const struct wf_cache *cache = kv ? kv->cache : NULL;
    if (!cache || cache->error.code != WF_OK)
        wf_tape_fail(tape, cache ? cache->error.code : WF_ERR_ARGUMENT, "attention: %s",
                     cache ? cache->error.message : "the cache was not made with wf_cache_init");
    else if (cache->states)
        wf_tape_fail(tape, WF_ERR_STATE, "attention: the cache holds states of a recurrent model: make it with wf_cache_init");
    if (wf_tape_error(tape)->code != WF_OK)
        return false;
    const int64_t most = cache_longest(cache), T = wf_dim(k, 1);
    if (wf_tape_mode(tape) != WF_INFER)
        wf_tape_fail(tape, WF_ERR_STATE, "attention: a cache works in WF_INFER only");
    else if (wf_ndim(k) != 3 || wf_ndim(v) != 3 || wf_dim(k, 0) != cache->rows || wf_dim(v, 0) != cache->rows || wf_dim(v, 1) != T ||
             wf_dim(k, 2) != cache->key_width || wf_dim(v, 2) != cache->value_width)
        wf_tape_fail(
            tape, WF_ERR_SHAPE,
            "attention: the cache has %lld rows of key width %lld and value width %lld, but the call has %lld rows of %lld and %lld",
            (long long)cache->rows, (long long)cache->key_width, (long long)cache->value_width, (long long)wf_dim(k, 0),
            (long long)wf_dim(k, -1), (long long)wf_dim(v, -1));
    else if (most + T > cache->capacity)
        wf_tape_fail(tape, WF_ERR_STATE, "attention: the cache is full: it holds %lld of at most %lld tokens, and %lld more were given",
                     (long long)most, (long long)cache->capacity, (long long)T);
    return wf_tape_error(tape)->code == WF_OK;
}

/* Appends new tokens [B,T,width] to `side`, the keys or the values of a layer, after the tokens that each row holds. */
static void append(struct wf_kv *kv, wf_real *side, int64_t width, const wf_array *new)
{
    const struct wf_cache *cache = kv->cache;
    int64_t step = cache->capacity * width;
    for (int64_t b = 0; b < new->dim[0]; b++) {
        wf_array from = wf_array_slice(*new, 0, b, 1), to = from;
        to.data = side + b * step + cache->length[b] * width;
        to.stride[0] = step;
        to.stride[1] = width;
        to.stride[2] = 1;
        wf_array_copy(&to, &from);
    }
}

/* The first `length` tokens of every row of `side`, as a tensor [B,length,width] in the cache's memory, not a copy. */
static wf_tensor *cached(wf_tape *tape, const struct wf_cache *cache, wf_real *side, int64_t width, int64_t length)
{
    wf_array a = {
        .data = side, .dtype = WF_REAL, .ndim = 3, .dim = {cache->rows, length, width}, .stride = {cache->capacity * width, width, 1}};
    return wf_borrow(tape, &a);
}

/* The number of tokens in each row after T more are appended. */
static int32_t *grown(wf_tape *tape, const struct wf_cache *cache, int64_t T)
{
    int32_t *lengths = wf_tape_memory(tape, (size_t)cache->rows * sizeof *lengths);
    for (int64_t b = 0; lengths && b < cache->rows; b++)
        lengths[b] = cache->length[b] + (int32_t)T;
    return lengths;
}

struct wf_kv_held wf_kv_append(struct wf_kv *kv, wf_tensor *keys, wf_tensor *values)
{
    wf_tape *tape = wf_tape_of_operands(2, (wf_tensor *[]){keys, values});
    wf_array k, v;
    if (!tape || !cache_fits(tape, kv, keys, values) || wf_view(keys, &k) != WF_OK || wf_view(values, &v) != WF_OK) {
        wf_tensor *poison = wf_tape_fail(tape, WF_ERR_STATE, "attention: the cache cannot be used");
        return (struct wf_kv_held){.keys = poison, .values = poison};
    }
    const struct wf_cache *cache = kv->cache;
    const int64_t T = k.dim[1], all = cache_longest(cache) + T;
    append(kv, kv->keys, cache->key_width, &k);
    append(kv, kv->values, cache->value_width, &v);
    struct wf_kv_held held = {.keys = cached(tape, cache, kv->keys, cache->key_width, all),
                              .values = cached(tape, cache, kv->values, cache->value_width, all)};
    if (cache_common_length(cache) < 0) {
        held.lengths = grown(tape, cache, T);
        held.starts = cache->length;
        if (!held.lengths)
            held.keys = held.values = wf_tape_fail(tape, WF_ERR_MEMORY, "attention: no memory for lengths");
    }
    return held;
}
