/* SPDX-License-Identifier: MIT */
/* LSTM and GRU over whole sequences: several layers, one or both directions, sequences of several lengths, states carried from call to
 * call, and a cache for generation.
 *
 *   struct wf_recurrent m;
 *   wf_lstm_init(wf_sub(s, "lstm"), &m, in, hidden, .layers = 2, .bidirectional = true);
 *   y = wf_recurrent_forward(&m, x, .lengths = lengths);
 *
 * Parameters have the names and shapes of PyTorch's nn.LSTM and nn.GRU, so weights of PyTorch load without rules. wf_lstm and wf_gru in
 * weft/ops.h compute one layer in one direction. */
#ifndef WEFT_LSTM_H
#define WEFT_LSTM_H

#include <weft/nn.h>

WF_BEGIN_DECLS

/* One layer in one direction: "weight_ih_l0", "weight_hh_l0", "bias_ih_l0" and "bias_hh_l0" of layer 0, and the same with "_reverse" at the
 * end for the other direction. G is 4 in an LSTM and 3 in a GRU. */
struct wf_recurrent_layer {
    wf_tensor *weight_ih; /* [G*H, in]; in the layers after the first, `in` is the width of y */
    wf_tensor *weight_hh; /* [G*H, H] */
    wf_tensor *bias_ih;   /* [G*H]; NULL: no bias */
    wf_tensor *bias_hh;   /* [G*H]; NULL: no bias */
};
struct wf_recurrent {
    struct wf_recurrent_layer *layer; /* [layers * directions], the forward direction of a layer first; the registry owns the memory */
    int layers, directions;
    bool gru;
    int64_t hidden; /* H */
    double dropout;
};
struct wf_recurrent_module_options {
    int layers; /* 0: 1 */
    bool bidirectional;
    bool no_bias;
    double dropout;             /* on the results of all layers but the last, as in PyTorch */
    struct wf_initializer init; /* of all weights. Default: the scope's rule for weights; without a rule U(+-1/sqrt(H)), also for biases */
};
/* An LSTM or a GRU with rows x of `in` numbers and a state of `hidden` numbers. */
WF_API void wf_lstm_init_with(wf_scope scope, struct wf_recurrent *m, int64_t in, int64_t hidden,
                              const struct wf_recurrent_module_options *options);
WF_API void wf_gru_init_with(wf_scope scope, struct wf_recurrent *m, int64_t in, int64_t hidden,
                             const struct wf_recurrent_module_options *options);

struct wf_recurrent_call {
    /* [B]: row b of x has only the steps t < lengths[b], 0 .. T. The other steps of y are zeros, and change no state; the reverse direction
     * begins at step lengths[b] - 1. x may hold anything there. Copied. */
    const int32_t *lengths;
    struct wf_packed packed; /* the sequences of x [N, in]; then y is [N, ...]. Not with .lengths */
    /* The initial states [layers * directions, B, H], in the order of m->layer; NULL: zeros. c is for the LSTM. */
    wf_tensor *h, *c;
    /* If not NULL, set to the last states [layers * directions, B, H]; those of the reverse direction are its states after step 0. */
    wf_tensor **last_h, **last_c;
    /* The first of m->layers consecutive layers of a cache of states (wf_cache_init_states) with the width wf_recurrent_width(m). The call
     * begins with the states in the cache and leaves the last states there. For one direction; not with the options above. After all
     * layers, count the steps once with wf_cache_advance; in a family (weft/family.h) Weft does that. */
    struct wf_kv *cache;
};
/* x [B,T,in] -> y [B,T,H], the states h of the last layer after each step; with both directions [B,T,2*H], the forward direction first. */
WF_API wf_tensor *wf_recurrent_forward_with(const struct wf_recurrent *m, wf_tensor *x, const struct wf_recurrent_call *call);
/* The numbers of one layer's state in a cache: h, and in an LSTM c. */
WF_API int64_t wf_recurrent_width(const struct wf_recurrent *m);

#ifndef __cplusplus
#define wf_lstm_init(scope, m, in, hidden, ...) wf_lstm_init_with(scope, m, in, hidden, &(struct wf_recurrent_module_options){__VA_ARGS__})
#define wf_gru_init(scope, m, in, hidden, ...) wf_gru_init_with(scope, m, in, hidden, &(struct wf_recurrent_module_options){__VA_ARGS__})
#define wf_recurrent_forward(m, x, ...) wf_recurrent_forward_with(m, x, &(struct wf_recurrent_call){__VA_ARGS__})
#endif

WF_END_DECLS

#endif
