/* SPDX-License-Identifier: MIT */
/* Caches: keys and values of earlier tokens, or states of recurrent models. */
#include <weft/cache.h>

#include <string.h>

#include <weft/compute.h>
#include <weft/internal/needs.h>
#include <weft/internal/runtime.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

enum { LARGE = 1 << 26 }; /* bytes above which a cache is compared with the memory that is free */

/* Makes a cache with room for `capacity` tokens in each row, or with capacity 1 for states. */
static wf_status make(struct wf_cache *cache, int layers, int64_t rows, int64_t capacity, int64_t key_width, int64_t value_width,
                      wf_error *error)
{
    *cache = (struct wf_cache){
        .layers = layers, .rows = rows, .capacity = capacity, .key_width = key_width, .value_width = value_width, .most_rows = rows};
    int64_t tokens, width, each, all, kept = rows > 1 && rows < INT32_MAX ? rows + 1 : rows; /* + 1: the spare row of plan() */
    if (layers < 1 || rows < 1 || rows > INT32_MAX / 16 || capacity < 1 || capacity > INT32_MAX || key_width < 1 || value_width < 0 ||
        __builtin_mul_overflow(kept, capacity, &tokens) || __builtin_add_overflow(key_width, value_width, &width) ||
        __builtin_mul_overflow(tokens, width, &each) || __builtin_mul_overflow(each, (int64_t)layers, &all)) {
        *cache = (struct wf_cache){0};
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "a cache of %d layers, %lld rows and %lld tokens is invalid: a size is not positive or too large", layers,
                            (long long)rows, (long long)capacity);
    }
    const int64_t room = (uint64_t)all > LARGE / sizeof(wf_real) ? wf_memory_free("") : INT64_MAX;
    if (all > room / (int64_t)sizeof(wf_real)) {
        char need[WF_NUMBER_SIZE], have[WF_NUMBER_SIZE];
        *cache = (struct wf_cache){0};
        return wf_error_set(error, WF_ERR_MEMORY,
                            "a cache of %lld row%s and %lld tokens needs %s, and %s of memory are free: use fewer rows or tokens",
                            (long long)rows, rows == 1 ? "" : "s", (long long)capacity, wf_text_bytes(all * (int64_t)sizeof(wf_real), need),
                            wf_text_bytes(room, have));
    }
    cache->layer = wf_alloc_zero((size_t)layers, sizeof *cache->layer);
    cache->length = wf_alloc_zero((size_t)rows + 1, sizeof *cache->length);
    cache->scratch = wf_alloc((size_t)(8 * (rows + 1)) * sizeof *cache->scratch);
    cache->memory = wf_alloc_zero((size_t)all, sizeof(wf_real));
    if (!cache->layer || !cache->length || !cache->scratch || !cache->memory) {
        wf_cache_free(cache);
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a cache of %lld rows and %lld tokens", (long long)rows,
                            (long long)capacity);
    }
    wf_real *at = cache->memory;
    for (int i = 0; i < layers; i++) {
        cache->layer[i] = (struct wf_kv){.keys = at, .values = at + kept * capacity * key_width, .cache = cache};
        at += each;
    }
    return WF_OK;
}

wf_status wf_cache_init(struct wf_cache *cache, int layers, int64_t rows, int64_t capacity, int64_t key_width, int64_t value_width,
                        wf_error *error)
{
    return make(cache, layers, rows, capacity, key_width, value_width > 0 ? value_width : -1, error);
}

wf_status wf_cache_init_states(struct wf_cache *cache, int layers, int64_t rows, int64_t width, wf_error *error)
{
    wf_status status = make(cache, layers, rows, 1, width, 0, error);
    if (status == WF_OK) {
        cache->states = true;
        cache->capacity = INT32_MAX;
    }
    return status;
}

void wf_cache_free(struct wf_cache *cache)
{
    wf_free(cache->layer);
    if (!cache->view) {
        wf_free(cache->length);
        wf_free(cache->scratch);
        wf_free(cache->memory);
    }
    *cache = (struct wf_cache){0};
}

void wf_cache_advance(struct wf_cache *cache, int64_t tokens)
{
    for (int64_t b = 0; b < cache->rows; b++)
        if (tokens < 0 || tokens > cache->capacity - cache->length[b]) {
            wf_error_set(&cache->error, WF_ERR_ARGUMENT,
                         "wf_cache_advance: %lld tokens is out of range: row %lld of the cache holds %d of at most %lld", (long long)tokens,
                         (long long)b, cache->length[b], (long long)cache->capacity);
            return;
        }
    for (int64_t b = 0; b < cache->rows; b++)
        cache->length[b] += (int32_t)tokens;
}

void wf_cache_rewind(struct wf_cache *cache, int64_t row, int32_t length)
{
    if (row < 0 || row >= cache->rows || length < 0)
        wf_error_set(&cache->error, WF_ERR_ARGUMENT, "wf_cache_rewind: row %lld to %d tokens is out of range: the cache has %lld rows",
                     (long long)row, length, (long long)cache->rows);
    else if (cache->states && length > 0 && length < cache->length[row])
        wf_error_set(&cache->error, WF_ERR_ARGUMENT,
                     "wf_cache_rewind: row %lld to %d tokens: the state of its %d tokens can only go back to 0", (long long)row, length,
                     cache->length[row]);
    else if (length < cache->length[row]) {
        cache->length[row] = length;
        for (int i = 0; cache->states && i < cache->layers; i++)
            memset(cache->layer[i].keys + row * cache->key_width, 0, (size_t)cache->key_width * sizeof *cache->layer[i].keys);
    }
}

/* Plans the moves that put the former row from[i] into row i, for all i < rows: move k copies row of[k] to row to[k]. A row is overwritten
 * only when no pending move reads it. If each pending move writes a row that another one reads, only cycles remain, and each is broken with
 * the spare row. Returns the number of moves, at most 3/2 rows. */
static int64_t plan(struct wf_cache *cache, const int32_t *from, int64_t rows, int32_t *to, int32_t *of)
{
    int32_t *readers = cache->scratch, *ready = readers + cache->most_rows + 1, spare = (int32_t)cache->most_rows;
    int64_t waiting = 0, moves = 0;
    memset(readers, 0, (size_t)(cache->most_rows + 1) * sizeof *readers);
    for (int64_t i = 0; i < rows; i++)
        readers[from[i]] += from[i] != i;
    for (int64_t i = 0; i < rows; i++)
        if (from[i] != i && readers[i] == 0)
            ready[waiting++] = (int32_t)i;
    while (waiting > 0) {
        int32_t i = ready[--waiting];
        to[moves] = i;
        of[moves++] = from[i];
        readers[i] = -1; /* row i is done */
        if (--readers[from[i]] == 0 && from[i] < rows && from[from[i]] != from[i])
            ready[waiting++] = from[i];
    }
    for (int64_t first = 0; first < rows; first++) {
        if (from[first] == first || readers[first] < 0)
            continue;
        to[moves] = spare;
        of[moves++] = (int32_t)first;
        for (int32_t i = (int32_t)first;; i = from[i]) {
            readers[i] = -1;
            to[moves] = i;
            of[moves++] = from[i] == first ? spare : from[i];
            if (from[i] == first)
                break;
        }
    }
    return moves;
}

struct moving {
    const struct wf_cache *cache;
    const int32_t *to;     /* [moves]: the target row */
    const int32_t *of;     /* [moves]: the source row */
    const int32_t *length; /* [moves]: the number of tokens in the source row */
    int64_t moves;
};

/* Does all moves in the keys of layer block / 2, or in its values if `block` is odd. */
static void move_rows(void *ctx, int64_t block)
{
    const struct moving *m = ctx;
    const struct wf_kv *kv = &m->cache->layer[block / 2];
    wf_real *data = block % 2 ? kv->values : kv->keys;
    const bool states = m->cache->states;
    int64_t width = block % 2 ? m->cache->value_width : m->cache->key_width, step = states ? width : m->cache->capacity * width;
    for (int64_t k = 0; k < m->moves; k++)
        memcpy(data + m->to[k] * step, data + m->of[k] * step, (size_t)(states ? width : m->length[k] * width) * sizeof *data);
}

wf_status wf_cache_select(struct wf_cache *cache, const int32_t *from, int64_t rows, wf_error *error)
{
    if (cache->error.code != WF_OK)
        return wf_error_set(error, cache->error.code, "%s", cache->error.message);
    if (cache->view)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_cache_select: this is a view: select rows of the cache that it shows");
    if (rows > 0 && !from)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_cache_select: the list of %lld rows is NULL", (long long)rows);
    if (rows < 0 || rows > cache->most_rows)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%lld rows is out of range, 0 to %lld, the rows that the cache was initialised with",
                            (long long)rows, (long long)cache->most_rows);
    for (int64_t i = 0; i < rows; i++)
        if (from[i] < 0 || from[i] >= cache->rows)
            return wf_error_set(error, WF_ERR_ARGUMENT, "row %d does not exist: the cache has %lld rows", from[i], (long long)cache->rows);
    const int64_t list = 2 * (cache->most_rows + 1);
    int32_t *to = cache->scratch + list, *of = to + list, *length = of + list;
    struct moving m = {.cache = cache, .to = to, .of = of, .length = length, .moves = plan(cache, from, rows, to, of)};
    double tokens = 0;
    for (int64_t k = 0; k < m.moves; k++) { /* the lengths move with the rows */
        length[k] = cache->length[to[k]] = cache->length[of[k]];
        tokens += cache->states ? 1 : length[k];
    }
    wf_parallel(2 * cache->layers, tokens * (double)cache->layers * (double)(cache->key_width + cache->value_width) * 0.2, move_rows, &m);
    cache->rows = rows;
    return WF_OK;
}

wf_status wf_cache_view(struct wf_cache *view, const struct wf_cache *cache, int64_t first, int64_t rows, wf_error *error)
{
    if (wf_needs(error, "view, cache", view, cache))
        return WF_ERR_ARGUMENT;
    if (cache->view || first < 0 || rows < 1 || first + rows > cache->rows || (view->layer && view->layers != cache->layers))
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_cache_view: rows %lld to %lld: the cache %s %lld rows", (long long)first,
                            (long long)(first + rows - 1), cache->view ? "is itself a view, of" : "has", (long long)cache->rows);
    struct wf_kv *layer = view->layer ? view->layer : wf_alloc_zero((size_t)cache->layers, sizeof *layer);
    if (!layer)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a view of a cache");
    const int64_t tokens = cache->states ? 1 : cache->capacity;
    for (int i = 0; i < cache->layers; i++)
        layer[i] = (struct wf_kv){.keys = cache->layer[i].keys + first * tokens * cache->key_width,
                                  .values = cache->layer[i].values + first * tokens * cache->value_width,
                                  .cache = view};
    *view = *cache;
    view->view = true;
    view->layer = layer;
    view->length = cache->length + first;
    view->scratch = NULL;
    view->memory = NULL;
    view->rows = view->most_rows = rows;
    return WF_OK;
}

wf_status wf_cache_copy(struct wf_cache *to, const struct wf_cache *from, wf_error *error)
{
    if (wf_needs(error, "to, from", to, from))
        return WF_ERR_ARGUMENT;
    int64_t most = 0;
    for (int64_t b = 0; b < from->rows; b++)
        most = from->length[b] > most ? from->length[b] : most;
    if (to->layers != from->layers || to->key_width != from->key_width || to->value_width != from->value_width ||
        to->states != from->states || to->rows < from->rows || to->capacity < most)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_cache_copy: the caches are of different models, or the target is too small");
    const int64_t step[2] = {from->states ? 1 : from->capacity, to->states ? 1 : to->capacity};
    for (int64_t b = 0; b < from->rows; b++) {
        const size_t tokens = from->states ? 1 : (size_t)from->length[b];
        for (int i = 0; i < from->layers; i++) {
            const struct wf_kv *of = &from->layer[i], *in = &to->layer[i];
            memcpy(in->keys + b * step[1] * to->key_width, of->keys + b * step[0] * to->key_width,
                   tokens * (size_t)to->key_width * sizeof *in->keys);
            memcpy(in->values + b * step[1] * to->value_width, of->values + b * step[0] * to->value_width,
                   (from->states ? 0 : tokens) * (size_t)to->value_width * sizeof *in->values);
        }
        to->length[b] = from->length[b];
    }
    return WF_OK;
}

wf_status wf_cache_copy_row(struct wf_cache *cache, int64_t to, int64_t from, int32_t length, wf_error *error)
{
    if (wf_needs(error, "cache", cache))
        return WF_ERR_ARGUMENT;
    if (cache->view || cache->states || to < 0 || to >= cache->rows || from < 0 || from >= cache->rows || length < 0 ||
        length > cache->length[from])
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_cache_copy_row: %d tokens of row %lld to row %lld is out of range", length,
                            (long long)from, (long long)to);
    const int64_t step[2] = {cache->capacity * cache->key_width, cache->capacity * cache->value_width};
    const size_t size[2] = {(size_t)length * (size_t)cache->key_width * sizeof(wf_real),
                            (size_t)length * (size_t)cache->value_width * sizeof(wf_real)};
    for (int i = 0; to != from && i < cache->layers; i++) {
        struct wf_kv *kv = &cache->layer[i];
        memcpy(kv->keys + to * step[0], kv->keys + from * step[0], size[0]);
        memcpy(kv->values + to * step[1], kv->values + from * step[1], size[1]);
    }
    cache->length[to] = length;
    return WF_OK;
}
