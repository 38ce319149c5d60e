/* SPDX-License-Identifier: MIT */
/* Keys and values of earlier tokens. */
#include <weft/cache.h>

#include <string.h>

#include <weft/memory.h>

wf_status wf_cache_init(struct wf_cache *cache, int layers, int64_t rows, int64_t capacity, int64_t key_width, int64_t value_width,
                        wf_error *error)
{
    *cache = (struct wf_cache){.layers = layers, .rows = rows, .capacity = capacity, .key_width = key_width, .value_width = value_width};
    int64_t tokens, width, each, all;
    if (layers < 1 || rows < 1 || capacity < 1 || key_width < 1 || value_width < 1 || __builtin_mul_overflow(rows, capacity, &tokens) ||
        __builtin_add_overflow(key_width, value_width, &width) || __builtin_mul_overflow(tokens, width, &each) ||
        __builtin_mul_overflow(each, (int64_t)layers, &all))
        return wf_error_set(error, WF_ERR_ARGUMENT, "a cache of %d layers, %lld rows and %lld tokens is not possible", layers,
                            (long long)rows, (long long)capacity);
    cache->layer = wf_alloc_zero((size_t)layers, sizeof *cache->layer);
    cache->length = wf_alloc_zero((size_t)rows, sizeof *cache->length);
    cache->memory = wf_alloc_zero((size_t)all, sizeof(wf_real));
    if (!cache->layer || !cache->length || !cache->memory) {
        wf_cache_free(cache);
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a cache of %lld rows and %lld tokens", (long long)rows, (long long)capacity);
    }
    wf_real *at = cache->memory;
    for (int i = 0; i < layers; i++) {
        cache->layer[i] = (struct wf_kv){.keys = at, .values = at + rows * capacity * key_width, .cache = cache};
        at += each;
    }
    return WF_OK;
}

void wf_cache_free(struct wf_cache *cache)
{
    wf_free(cache->layer);
    wf_free(cache->length);
    wf_free(cache->memory);
    *cache = (struct wf_cache){0};
}

void wf_cache_advance(struct wf_cache *cache, int64_t tokens)
{
    for (int64_t b = 0; b < cache->rows; b++)
        cache->length[b] += (int32_t)tokens;
}

void wf_cache_rewind(struct wf_cache *cache, int64_t row, int32_t length)
{
    if (length < cache->length[row])
        cache->length[row] = length < 0 ? 0 : length;
}

wf_status wf_cache_select(struct wf_cache *cache, const int32_t *from, int64_t rows, wf_error *error)
{
    if (rows < 0 || rows > cache->rows)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%lld rows can't be chosen from %lld", (long long)rows, (long long)cache->rows);
    for (int64_t i = 0; i < rows; i++)
        if (from[i] < 0 || from[i] >= cache->rows)
            return wf_error_set(error, WF_ERR_ARGUMENT, "row %d is not in a cache of %lld rows", from[i], (long long)cache->rows);
    /* A row may be wanted several times and overwritten before it is read: one layer at a time goes by a copy. */
    int64_t width = cache->key_width > cache->value_width ? cache->key_width : cache->value_width;
    wf_real *copy = wf_alloc((size_t)(cache->rows * cache->capacity * width) * sizeof *copy);
    int32_t *length = wf_alloc((size_t)cache->rows * sizeof *length);
    if (!copy || !length) {
        wf_free(copy);
        wf_free(length);
        return wf_error_set(error, WF_ERR_MEMORY, "no memory to reorder a cache");
    }
    memcpy(length, cache->length, (size_t)cache->rows * sizeof *length);
    for (int l = 0; l < cache->layers; l++)
        for (int side = 0; side < 2; side++) {
            wf_real *data = side ? cache->layer[l].values : cache->layer[l].keys;
            int64_t w = side ? cache->value_width : cache->key_width, step = cache->capacity * w;
            for (int64_t b = 0; b < cache->rows; b++)
                memcpy(copy + b * step, data + b * step, (size_t)(length[b] * w) * sizeof *copy);
            for (int64_t i = 0; i < rows; i++)
                memcpy(data + i * step, copy + from[i] * step, (size_t)(length[from[i]] * w) * sizeof *copy);
        }
    for (int64_t i = 0; i < rows; i++)
        cache->length[i] = length[from[i]];
    cache->rows = rows;
    wf_free(copy);
    wf_free(length);
    return WF_OK;
}
