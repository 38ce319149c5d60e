/* SPDX-License-Identifier: MIT */
/* Positions as a bias that attention adds to its scores: .bias of wf_attention and wf_mha_forward. */
#ifndef WEFT_RELATIVE_H
#define WEFT_RELATIVE_H

#include <weft/nn.h>

WF_BEGIN_DECLS

/* T5's relative positions (Raffel et al. 2020): the bias is a trained number for each head and each bucket of distances. `weight` [buckets,
 * heads] holds these numbers. Several layers may share one module, as T5's layers do: call the module once, and pass its result to each
 * layer. */
struct wf_relative_bias {
    wf_tensor *weight;
    int heads, buckets;
    int64_t max_distance;
    bool bidirectional;
};
struct wf_relative_bias_options {
    int buckets;          /* 0: 32; at least 2; if bidirectional, an even number of at least 4 */
    int64_t max_distance; /* all distances from this one on belong to the last bucket; 0: 128 */
    bool bidirectional; /* half of the buckets are for keys after the query, as in an encoder; false: keys after the query are in the bucket
                           of distance 0 */
    struct wf_initializer init; /* default: the scope's rule for embeddings; without a rule N(0, 0.02^2) */
};
WF_API void wf_relative_bias_init_with(wf_scope scope, struct wf_relative_bias *m, int heads,
                                       const struct wf_relative_bias_options *options);
/* The bias [heads, T, S] of T queries and S keys. The queries are at the positions of the last T keys: query t is at S - T + t. With a
 * cache, S is the number of tokens that the cache holds plus the number of new tokens. */
WF_API wf_tensor *wf_relative_bias_forward(const struct wf_relative_bias *m, wf_tape *tape, int64_t queries, int64_t keys);
/* The bias for self-attention over x (or over its ids): pass it as .bias to attention with the same .packed and .cache. For x [B,T,...] it
 * is [heads, T, T]. For packed rows x [N, ...] it is [heads, L, L], where L is the length of the longest sequence. With a cache and T new
 * tokens x [R,T,...] it is [heads, T, S], where S is T plus the number of tokens that the longest row of the cache holds; if rows hold
 * different numbers of tokens, it is [R, heads, T, S]. */
struct wf_relative_call {
    struct wf_packed packed;
    const struct wf_cache *cache; /* NULL: no cache */
};
WF_API wf_tensor *wf_relative_bias_self_with(const struct wf_relative_bias *m, wf_tensor *x, const struct wf_relative_call *call);
/* The bucket of a distance. The distance is the key's position minus the query's, so it is positive if the key comes later. As in
 * relative_position_bucket of mesh-tensorflow, the library of T5, half of the buckets hold one distance each, and in the other half the
 * index of the bucket grows with the logarithm of the distance, up to max_distance. If bidirectional, this holds for each direction. */
WF_API int wf_relative_bucket(int64_t distance, int buckets, int64_t max_distance, bool bidirectional);

/* ALiBi (Press et al. 2022): the constant bias -slope |distance|, [heads, T, S]. Query t is at position S - T + t, as in
 * wf_relative_bias_forward. */
WF_API wf_tensor *wf_alibi(wf_tape *tape, int heads, int64_t queries, int64_t keys);
/* The same for self-attention: options and shapes are those of wf_relative_bias_self_with. */
WF_API wf_tensor *wf_alibi_self_with(int heads, wf_tensor *x, const struct wf_relative_call *call);
/* slopes[i] for i < heads. If heads is a power of 2: 2^(-8 (i + 1) / heads). Otherwise let P be the greatest power of 2 below heads: first
 * come the slopes for P heads, then the first, third, fifth ... slope for 2 P heads. */
WF_API void wf_alibi_slopes(int heads, double *slopes);

#ifndef __cplusplus
#define wf_relative_bias_init(scope, m, heads, ...)                                                                                        \
    wf_relative_bias_init_with(scope, m, heads, &(struct wf_relative_bias_options){__VA_ARGS__})
#define wf_relative_bias_self(m, x, ...) wf_relative_bias_self_with(m, x, &(struct wf_relative_call){__VA_ARGS__})
#define wf_alibi_self(heads, x, ...) wf_alibi_self_with(heads, x, &(struct wf_relative_call){__VA_ARGS__})
#endif

WF_END_DECLS

#endif
