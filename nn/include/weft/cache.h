/* SPDX-License-Identifier: MIT */
/* Caches for generation: keys and values, one slot per attention, a length per row; or the states of a recurrent model.
 *
 *   struct wf_cache cache;
 *   wf_cache_init(&cache, layers, rows, capacity, kv_heads * d_key, kv_heads * d_value, &error);
 *   for each token: forward of the new tokens with .cache = &cache.layer[i], then wf_cache_advance(&cache, T)
 *
 * Caches work in WF_INFER only. */
#ifndef WEFT_CACHE_H
#define WEFT_CACHE_H

#include <weft/error.h>
#include <weft/tape.h>

WF_BEGIN_DECLS

struct wf_cache;
struct wf_kv {
    wf_real *keys, *values; /* [most_rows, capacity, width], and a row for wf_cache_select if there are several; states: keys alone, without
                               the dimension of capacity */
    const struct wf_cache *cache;
    bool written; /* by wf_kv_set_state */
};
struct wf_cache {
    struct wf_kv *layer;
    int layers;
    int64_t rows, capacity, key_width, value_width;
    int32_t *length; /* [rows]: tokens held by each row */
    void *memory;
    int64_t most_rows; /* rows at wf_cache_init; `rows` never exceeds it */
    int32_t *scratch;  /* of wf_cache_select, which does not allocate */
    bool states;       /* of wf_cache_init_states: rows hold a state each, of key_width */
    wf_error error; /* the first wrong call of wf_cache_advance or wf_cache_rewind, which changed nothing: what uses the cache later fails
                       with it, until wf_cache_free */
};

/* Makes empty rows, zero-filled. Free it with wf_cache_free. *cache must not be moved before that: its layers point to it. */
WF_API wf_status wf_cache_init(struct wf_cache *cache, int layers, int64_t rows, int64_t capacity, int64_t key_width, int64_t value_width,
                               wf_error *error) WF_CHECKED;
/* The same for a recurrent model: each row of a layer holds a state of `width` numbers, zeros at first, for any number of tokens; `length`
 * counts these, without a limit. The model's context still limits its callers: when a text reaches it, wf_generate_next drops the oldest
 * quarter and computes the state of the rest anew, from zeros. Crops of a training and windows of an evaluation begin with zeros, too.
 * Layers read and write it with wf_kv_state and wf_kv_set_state (below). */
WF_API wf_status wf_cache_init_states(struct wf_cache *cache, int layers, int64_t rows, int64_t width, wf_error *error) WF_CHECKED;
WF_API void wf_cache_free(struct wf_cache *cache); /* a zeroed struct is allowed */
/* Call it after all layers have processed `tokens` new tokens of each row. The attention reports an exceeded capacity before; tokens that
 * no row has room for are cache->error. */
WF_API void wf_cache_advance(struct wf_cache *cache, int64_t tokens);
/* Truncates a row, 0 .. rows-1, to its first `length` tokens; one with fewer stays as it is. A state can go back to 0 only: it has zeros
 * then. */
WF_API void wf_cache_rewind(struct wf_cache *cache, int64_t row, int32_t length);
/* Row i becomes a copy of the former row from[i], i = 0 .. rows-1; further rows are dropped. rows may exceed the present number, up to
 * most_rows. A row with from[i] == i is not copied. Nothing is allocated. */
WF_API wf_status wf_cache_select(struct wf_cache *cache, const int32_t *from, int64_t rows, wf_error *error) WF_CHECKED;

/* --- for other attentions than wf_mha -------------------------------------------------------------------------- */
/* Contents of the rows, new tokens included: keys [R,S,key_width], values [R,S,value_width], on the tape of the new ones; S of the longest
 * row. If rows differ, `lengths` and `starts` [R] go to wf_attention as .key_lengths and .starts; else both are NULL. The tensors show
 * the cache's memory: use them before it changes. */
struct wf_kv_held {
    wf_tensor *keys, *values;
    const int32_t *lengths, *starts;
};
/* Puts keys [R,T,key_width] and values [R,T,value_width] behind what each row of a layer holds; wf_cache_advance then counts them, once for
 * all layers. wf_mha does it with .cache. A wrong shape, a full cache, another mode than WF_INFER are errors of the tape; both tensors
 * are poison then. */
WF_API struct wf_kv_held wf_kv_append(struct wf_kv *kv, wf_tensor *keys, wf_tensor *values);

/* --- for recurrent layers: wf_cache_init_states ----------------------------------------------------------------------- */
/* The states of the rows of x [R,...] before its tokens, [R,width]: a copy, on the tape of x. kv NULL, without a cache: zeros. */
WF_API wf_tensor *wf_kv_state(const struct wf_kv *kv, wf_tensor *x, int64_t width);
/* Keeps the states [R,width] after the tokens; wf_cache_advance then counts these, once for all layers. kv NULL: nothing. Errors, as in
 * wf_kv_append, go to the tape. */
WF_API void wf_kv_set_state(struct wf_kv *kv, wf_tensor *state);

WF_END_DECLS

#endif
