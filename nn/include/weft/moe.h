/* SPDX-License-Identifier: MIT */
/* Mixture of experts: for each row, a router chooses some of several feed-forward networks, the experts (Shazeer et al. 2017; Switch, Fedus
 * et al. 2021; Mixtral, Jiang et al. 2024). */
#ifndef WEFT_MOE_H
#define WEFT_MOE_H

#include <weft/nn.h>

WF_BEGIN_DECLS

/* x [..., d] -> [..., d]. With the probabilities p = softmax(router x), a row goes to the `chosen` experts with the greatest p; of two
 * experts with equal p, the one with the lower index comes first. The result is the sum of weight times expert(x) over these experts. The
 * weight of an expert is its p, divided by the sum of p over these experts unless .raw_weights is set. No row is dropped, even if all rows
 * choose the same expert. Experts are computed one after the other, each on the rows that chose it, so the cost is the fraction `chosen` /
 * `experts` of what all experts on all rows would cost. In WF_INFER the bits of a row do not depend on the other rows. With dropout in the
 * experts, the masks of a row depend on the other rows, because they depend on the row's place among the rows of an expert. */
struct wf_moe {
    struct wf_linear router; /* weight [experts, d], no bias */
    struct wf_ffn *expert;   /* [experts], named "experts.0", "experts.1", ...; the registry owns the memory */
    int experts;             /* number of experts */
    int chosen;              /* number of experts that each row goes to */
    bool raw_weights;
    double residual_dropout;
};
struct wf_moe_options {
    int chosen;       /* number of experts that each row goes to, 1 .. experts; 0: 2, or 1 if there is one expert */
    bool raw_weights; /* the weights are p, not divided by their sum; with .chosen = 1 this is the Switch Transformer */
    enum wf_activation activation;
    bool no_bias;            /* the experts have no biases */
    double dropout;          /* dropout in the experts, after the activation */
    double residual_dropout; /* dropout of the result, before .residual is added */
};
WF_API void wf_moe_init_with(wf_scope scope, struct wf_moe *m, int64_t d, int64_t d_ff, int experts, const struct wf_moe_options *options);

/* The choices of one call, as tensors on its tape. */
struct wf_moe_routing {
    wf_tensor *probabilities; /* [N, experts]: p of the N rows */
    wf_tensor *chosen;        /* ids [N, chosen]: the experts of each row, in descending order of p */
};
struct wf_moe_call {
    wf_tensor *residual;            /* added to the result, as by wf_add(residual, result). NULL: nothing is added */
    struct wf_moe_routing *routing; /* receives the choices, for wf_moe_balance; may be NULL */
};
WF_API wf_tensor *wf_moe_forward_with(const struct wf_moe *m, wf_tensor *x, const struct wf_moe_call *call);
/* The balancing loss [] of one or several layers with the same number of experts, from routing[0 .. layers-1]: experts * sum over e of f_e
 * P_e. With the rows of all layers counted together, f_e is the number of rows that chose expert e, divided by the number of rows, and P_e
 * is the mean of p_e over the rows. If all experts get equally many rows, the loss is `chosen`. The gradient of the loss goes through P
 * alone. Hugging Face's library transformers has the same loss in load_balancing_loss_func. Call wf_moe_balance in the same pass as the
 * forwards of these layers, before the backward. */
WF_API wf_tensor *wf_moe_balance(const struct wf_moe_routing *routing, int layers);

#ifndef __cplusplus
#define wf_moe_init(scope, m, d, d_ff, experts, ...) wf_moe_init_with(scope, m, d, d_ff, experts, &(struct wf_moe_options){__VA_ARGS__})
#define wf_moe_forward(m, x, ...) wf_moe_forward_with(m, x, &(struct wf_moe_call){__VA_ARGS__})
#endif

WF_END_DECLS

#endif
