/* SPDX-License-Identifier: MIT */
/* Positions as a bias of attention's scores: .bias of wf_attention and wf_mha_forward. */
#ifndef WEFT_RELATIVE_H
#define WEFT_RELATIVE_H

#include <weft/nn.h>

WF_BEGIN_DECLS

/* T5's relative positions (Raffel et al. 2020): a number for each head and bucket of distances, weight [buckets, heads]. Layers may share
 * one module, as T5's do: call it once, and pass its result to each. */
struct wf_relative_bias {
    wf_tensor *weight;
    int heads, buckets;
    int64_t max_distance;
    bool bidirectional;
};
struct wf_relative_bias_options {
    int buckets;          /* 0: 32; at least 2, and if bidirectional a multiple of 2 from 4 on */
    int64_t max_distance; /* from where on all distances share a bucket; 0: 128 */
    bool bidirectional;   /* half of the buckets are for keys later than the query, as in an encoder; else these share that of distance 0 */
    struct wf_initializer init; /* default: the scope's rule for embeddings, or N(0, 0.02^2) */
};
WF_API void wf_relative_bias_init_with(wf_scope scope, struct wf_relative_bias *m, int heads,
                                       const struct wf_relative_bias_options *options);
/* -> [heads, T, S] for T queries and S keys. The last T keys are at the queries' positions: query t is at S - T + t. With a cache S is the
 * number of tokens that it holds plus the new ones. */
WF_API wf_tensor *wf_relative_bias_forward(const struct wf_relative_bias *m, wf_tape *tape, int64_t queries, int64_t keys);
/* The same for self-attention over x (or its ids), from a call's options: [heads, T, T] for x [B,T,...]; [heads, L, L] for packed rows x
 * [N, ...] with L of the longest sequence; with a cache, for T new tokens x [R,T,...] of its rows, [heads, T, S], or [R, heads, T, S] where
 * rows hold different numbers of tokens, S of the longest row and T. It is what .bias takes with the same .packed and .cache. */
struct wf_relative_call {
    struct wf_packed packed;
    const struct wf_cache *cache; /* NULL: none */
};
WF_API wf_tensor *wf_relative_bias_self_with(const struct wf_relative_bias *m, wf_tensor *x, const struct wf_relative_call *call);
/* The bucket of a distance, key minus query; positive: the key comes later. As relative_position_bucket of mesh-tensorflow: half of the
 * buckets for one distance each, the others up to max_distance growing with its logarithm. */
WF_API int wf_relative_bucket(int64_t distance, int buckets, int64_t max_distance, bool bidirectional);

/* ALiBi (Press et al. 2022): -slope |distance| -> [heads, T, S], a constant; positions as above. */
WF_API wf_tensor *wf_alibi(wf_tape *tape, int heads, int64_t queries, int64_t keys);
WF_API wf_tensor *wf_alibi_self_with(int heads, wf_tensor *x, const struct wf_relative_call *call); /* as wf_relative_bias_self_with */
/* slopes[i], i < heads: 2^(-8 (i + 1) / heads) for a power of 2; else those of the power of 2 below, then every second one of twice that.
 */
WF_API void wf_alibi_slopes(int heads, double *slopes);

#ifndef __cplusplus
#define wf_relative_bias_init(scope, m, heads, ...)                                                                                        \
    wf_relative_bias_init_with(scope, m, heads, &(struct wf_relative_bias_options){__VA_ARGS__})
#define wf_relative_bias_self(m, x, ...) wf_relative_bias_self_with(m, x, &(struct wf_relative_call){__VA_ARGS__})
#define wf_alibi_self(heads, x, ...) wf_alibi_self_with(heads, x, &(struct wf_relative_call){__VA_ARGS__})
#endif

WF_END_DECLS

#endif
