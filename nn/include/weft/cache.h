/* SPDX-License-Identifier: MIT */
/* Caches for generation. For each attention layer a cache holds the keys and values of all earlier tokens; for each layer of a recurrent
 * model it holds states. A row of the cache is one text, and each row has its own length. In the comments below, "states:" stands for "in a
 * cache of states".
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
/* The contents of one layer. If most_rows of the cache is above 1, `keys` and `values` have one row more than most_rows; wf_cache_select
 * needs this row while it moves rows. */
struct wf_kv {
    wf_real *keys;   /* [most_rows, capacity, key_width]; states: [most_rows, key_width] */
    wf_real *values; /* [most_rows, capacity, value_width]; states: unused */
    const struct wf_cache *cache;
    bool written; /* set by wf_kv_set_state, so that Weft can refuse a family that ignores its cache */
};
struct wf_cache {
    struct wf_kv *layer; /* [layers] */
    int layers;
    int64_t rows;        /* number of rows in use */
    int64_t capacity;    /* number of tokens for which each row has room */
    int64_t key_width;   /* elements of a token's keys in a layer; states: elements of a state */
    int64_t value_width; /* elements of a token's values in a layer */
    int32_t *length;     /* [rows]: the number of tokens that each row holds */
    void *memory;        /* the memory of all layers */
    int64_t most_rows;   /* rows at wf_cache_init; `rows` never exceeds it */
    int32_t *scratch;    /* memory that wf_cache_select uses, so that it need not allocate */
    bool states;         /* the cache was made with wf_cache_init_states */
    wf_error error; /* the error of the first invalid call of wf_cache_advance or wf_cache_rewind. That call changed nothing. Forwards with
                       the cache, and wf_cache_select, fail with this error from then on, until wf_cache_free */
    bool view;      /* made by wf_cache_view: the memory is that of another cache */
};

/* Makes a cache of empty rows, filled with zeros. Free it with wf_cache_free. Do not move *cache before that, because its layers point to
 * it. */
WF_API wf_status wf_cache_init(struct wf_cache *cache, int layers, int64_t rows, int64_t capacity, int64_t key_width, int64_t value_width,
                               wf_error *error) WF_CHECKED;
/* Makes a cache for a recurrent model: each row of a layer holds a state of `width` numbers, which are zeros at first. Layers read and
 * write states with wf_kv_state and wf_kv_set_state (below). `length` counts the tokens of a row, without a limit. Generation still has the
 * limit of the model's context: when a text reaches it, wf_generate_next drops the oldest quarter of the text and computes the state of the
 * remaining text anew, from zeros. Every row of a training batch and every window of an evaluation begins with zeros, too. */
WF_API wf_status wf_cache_init_states(struct wf_cache *cache, int layers, int64_t rows, int64_t width, wf_error *error) WF_CHECKED;
WF_API void wf_cache_free(struct wf_cache *cache); /* frees the memory and zeroes *cache; a zeroed struct is allowed */
/* Call this function after all layers have processed `tokens` new tokens of each row: it adds this number to the lengths. The attention of
 * the layers has already refused tokens for which there is no room, and this call checks again: if a row has no room for the tokens, or if
 * `tokens` is negative, the lengths stay the same, and cache->error is set. */
WF_API void wf_cache_advance(struct wf_cache *cache, int64_t tokens);
/* Truncates row `row`, 0 .. rows-1, to its first `length` tokens. A row that holds fewer tokens stays as it is. A row of states can be
 * truncated to length 0 only, because the cache keeps no earlier state; its state is then zeros. An invalid call sets cache->error. */
WF_API void wf_cache_rewind(struct wf_cache *cache, int64_t row, int32_t length);
/* Row i becomes a copy of the former row from[i], for i = 0 .. rows-1, and all other rows are dropped. `rows` may exceed the present number
 * of rows, up to most_rows. A row with from[i] == i is not copied. Nothing is allocated. WF_ERR_ARGUMENT: a row from[i] does not exist, or
 * `rows` is out of range. */
WF_API wf_status wf_cache_select(struct wf_cache *cache, const int32_t *from, int64_t rows, wf_error *error) WF_CHECKED;

/* Makes *view a cache of the rows first .. first + rows - 1 of `cache`, with which a forward processes these rows alone. Keys, values,
 * states and lengths are those of `cache`; nothing is copied. *view is zeroed, or a view of the same cache: then nothing is allocated. Do
 * not move *view. It is valid until rows of the cache are selected or the cache is freed; free it with wf_cache_free, before or after the
 * cache. WF_ERR_ARGUMENT: the rows do not exist, or `cache` is a view. */
WF_API wf_status wf_cache_view(struct wf_cache *view, const struct wf_cache *cache, int64_t first, int64_t rows,
                               wf_error *error) WF_CHECKED;
/* Copies all rows of `from` to the first rows of `to`, which has the same layers and widths, and may have more rows and a larger capacity:
 * this is how a cache grows. The other rows of `to` stay as they are. WF_ERR_ARGUMENT: the caches are of different models, or `to` is too
 * small. */
WF_API wf_status wf_cache_copy(struct wf_cache *to, const struct wf_cache *from, wf_error *error) WF_CHECKED;
/* Row `to` becomes a copy of the first `length` tokens of row `from`, of which it holds at least as many. For a cache of keys and values.
 * WF_ERR_ARGUMENT: a row does not exist or holds fewer tokens, or the cache is a view or holds states. */
WF_API wf_status wf_cache_copy_row(struct wf_cache *cache, int64_t to, int64_t from, int32_t length, wf_error *error) WF_CHECKED;

/* --- for attention other than wf_mha --------------------------------------------------------------------------------- */
/* The contents of a layer's R rows, new tokens included: keys [R,S,key_width] and values [R,S,value_width], on the tape of the new tokens.
 * S is the length of the longest row. If rows have different lengths, pass `lengths` and `starts` [R] to wf_attention as .key_lengths and
 * .starts; otherwise both are NULL. The tensors show the cache's memory, so use them before the cache changes. */
struct wf_kv_held {
    wf_tensor *keys, *values;
    const int32_t *lengths, *starts;
};
/* Appends keys [R,T,key_width] and values [R,T,value_width] to the rows of a layer. After all layers have done so, call wf_cache_advance
 * once, to count the tokens; in a family (weft/family.h) Weft does that. wf_mha_forward calls wf_kv_append if .cache is given. A wrong
 * shape, a full cache and a mode other than WF_INFER are errors of the tape; then both tensors are poison. */
WF_API struct wf_kv_held wf_kv_append(struct wf_kv *kv, wf_tensor *keys, wf_tensor *values);

/* --- for recurrent layers, with wf_cache_init_states ------------------------------------------------------------------ */
/* The states of the cache's R rows before the new tokens x [R,...]: a copy [R,width] on the tape of x. If kv is NULL (there is no cache),
 * zeros. */
WF_API wf_tensor *wf_kv_state(const struct wf_kv *kv, wf_tensor *x, int64_t width);
/* Keeps `state` [R,width] as the states after the new tokens. After all layers have done so, call wf_cache_advance once, to count the
 * tokens; in a family Weft does that. If kv is NULL, nothing happens. Errors go to the tape, as in wf_kv_append. */
WF_API void wf_kv_set_state(struct wf_kv *kv, wf_tensor *state);

WF_END_DECLS

#endif
