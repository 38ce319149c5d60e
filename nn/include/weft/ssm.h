/* SPDX-License-Identifier: MIT */
/* The block of a selective state-space model: Mamba (Gu and Dao 2023), with a cache for generation.
 *
 *   struct wf_ssm m;
 *   wf_ssm_init(wf_sub(s, "mixer"), &m, d);
 *   x = wf_ssm_forward(&m, wf_rms_norm_forward(&norm, x), .residual = x, .cache = cache ? &cache->layer[i] : NULL);
 *
 * Parameters have the names and shapes of MambaMixer in transformers, so its weights load without rules. wf_selective_scan in weft/ops.h
 * is the recurrence alone. */
#ifndef WEFT_SSM_H
#define WEFT_SSM_H

#include <weft/nn.h>

WF_BEGIN_DECLS

/* With E channels, N states of each, K taps and a rank R, for each token of x [B,T,d]:
 *
 *   u, z = in_proj(x)                        [B,T,E] each
 *   u = silu(conv1d(u))                      each channel alone, over the token and the K - 1 tokens before it
 *   r, b, c = x_proj(u)                      [B,T,R], [B,T,N], [B,T,N]
 *   dt = softplus(dt_proj(r))                [B,T,E]
 *   h_t = exp(dt_t A) h_(t-1) + dt_t b_t u_t,   y_t = c_t h_t + D u_t,   with A = -exp(A_log)
 *   out_proj(silu(z) y)                      [B,T,d] */
struct wf_ssm {
    struct wf_linear in_proj;     /* [2*E, d] */
    struct wf_convolution conv1d; /* weight [E,1,K], bias [E] */
    struct wf_linear x_proj;      /* [R + 2*N, E] */
    struct wf_linear dt_proj;     /* [E, R], bias [E] */
    struct wf_linear out_proj;    /* [d, E] */
    wf_tensor *a_log;             /* "A_log" [E,N] */
    wf_tensor *d;                 /* "D" [E] */
    int64_t channels, states, taps, rank;
};
/* Numbers that are 0 have the defaults of Mamba. */
struct wf_ssm_options {
    int64_t states;    /* N; 0: 16 */
    int64_t taps;      /* K; 0: 4 */
    int64_t expand;    /* E / d; 0: 2 */
    int64_t rank;      /* R; 0: d / 16, rounded up */
    bool bias;         /* in_proj and out_proj have biases */
    bool no_conv_bias; /* conv1d has none */
};
/* Initial values are those of Mamba: A_log = log(1 .. N) in each channel, D = 1, the weight of dt_proj U(+-1/sqrt(R)), and its bias such
 * that dt at a result of 0 is distributed as 10^U(-3,-1). The other maps have the scope's rules; out_proj ends a residual branch. */
WF_API void wf_ssm_init_with(wf_scope scope, struct wf_ssm *m, int64_t d, const struct wf_ssm_options *options);

struct wf_ssm_call {
    wf_tensor *residual; /* [B,T,d], added to the result; NULL: nothing is added */
    /* A layer of a cache of states (wf_cache_init_states) with the width wf_ssm_width(m). The call begins with the last inputs of the
     * convolution and the states h in the cache, and leaves the new ones there. NULL: it begins with zeros. After all layers
     * count the tokens once with wf_cache_advance; in a family (weft/family.h) Weft does that. */
    struct wf_kv *cache;
};
/* x [B,T,d] -> [B,T,d]. Shorter rows are padded at their end with finite numbers, such as 0: later tokens do not change
 * earlier ones. In WF_INFER a row has the same bits alone, with others, and in any division of its tokens into calls with a cache. */
WF_API wf_tensor *wf_ssm_forward_with(const struct wf_ssm *m, wf_tensor *x, const struct wf_ssm_call *call);
/* The numbers of a row's state in a cache: E (K - 1 + N). */
WF_API int64_t wf_ssm_width(const struct wf_ssm *m);

#ifndef __cplusplus
#define wf_ssm_init(scope, m, d, ...) wf_ssm_init_with(scope, m, d, &(struct wf_ssm_options){__VA_ARGS__})
#define wf_ssm_forward(m, x, ...) wf_ssm_forward_with(m, x, &(struct wf_ssm_call){__VA_ARGS__})
#endif

WF_END_DECLS

#endif
