/* SPDX-License-Identifier: MIT */
/* Caches of keys and values for generation: one slot per attention, a length per row.
 *
 *   struct wf_cache cache;
 *   wf_cache_init(&cache, layers, rows, capacity, kv_heads * d_key, kv_heads * d_value, &error);
 *   for each token: forward of the new tokens with .cache = &cache.layer[i], then wf_cache_advance(&cache, T)
 *
 * Caches work in WF_INFER only. */
#ifndef WEFT_CACHE_H
#define WEFT_CACHE_H

#include <weft/error.h>

WF_BEGIN_DECLS

struct wf_cache;
struct wf_kv {
    wf_real *keys, *values;       /* [most_rows + 1, capacity, width]; the last row is for wf_cache_select */
    const struct wf_cache *cache;
};
struct wf_cache {
    struct wf_kv *layer;
    int layers;
    int64_t rows, capacity, key_width, value_width;
    int32_t *length;              /* [rows]: tokens that are in */
    void *memory;
    int64_t most_rows;            /* those that were asked for at first: rows may come back to it */
    int32_t *scratch;             /* for wf_cache_select, so that it need not allocate */
};

/* Zero-filled, empty rows. Freed with wf_cache_free; until then *cache stays where it is, for its layers point back to it. */
WF_API wf_status wf_cache_init(struct wf_cache *cache, int layers, int64_t rows, int64_t capacity, int64_t key_width, int64_t value_width,
                               wf_error *error) WF_CHECKED;
WF_API void wf_cache_free(struct wf_cache *cache); /* of zeros: fine */
/* After all layers saw `tokens` new tokens of each row. Never past the capacity: the attention has reported that. */
WF_API void wf_cache_advance(struct wf_cache *cache, int64_t tokens);
/* Forgets what lies behind `length` tokens of a row. */
WF_API void wf_cache_rewind(struct wf_cache *cache, int64_t row, int32_t length);
/* Row i becomes what row from[i] was, i = 0 .. rows-1; the rows after that are dropped. rows may be more than there are now, up to
 * most_rows. Rows that stay where they are cost nothing, and nothing is allocated. */
WF_API wf_status wf_cache_select(struct wf_cache *cache, const int32_t *from, int64_t rows, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
