/* SPDX-License-Identifier: MIT */
/* Mixture of experts: a router chooses some of several feed-forward networks for each row (Shazeer et al. 2017; Switch, Fedus et al. 2021;
 * Mixtral, Jiang et al. 2024). */
#ifndef WEFT_MOE_H
#define WEFT_MOE_H

#include <weft/nn.h>

WF_BEGIN_DECLS

/* x [..., d] -> [..., d]: p = softmax(router x) over the experts; the `chosen` greatest of them, of equal ones the first, with weights
 * p / their sum; y = sum of weight times expert(x). No row is dropped under any load: experts are computed one after the other, each
 * over the rows that chose it, so that the cost is chosen / experts of all of them. In WF_INFER a row's bits do not depend on the other
 * rows. With dropout the masks of a row depend on the rows beside it. */
struct wf_moe {
    struct wf_linear router; /* weight [experts, d], no bias */
    struct wf_ffn *expert;   /* [experts], "experts.0", "experts.1", ...; memory of the registry */
    int experts, chosen;
    bool raw_weights;
    double residual_dropout;
};
struct wf_moe_options {
    int chosen;       /* experts of a row, 1 .. experts; 0: 2, or 1 of one */
    bool raw_weights; /* weights p, not divided by their sum over the chosen: as Switch with .chosen = 1 */
    enum wf_activation activation;
    bool no_bias;            /* of the experts */
    double dropout;          /* in the experts, after the activation */
    double residual_dropout; /* of the result, before .residual is added */
};
WF_API void wf_moe_init_with(wf_scope scope, struct wf_moe *m, int64_t d, int64_t d_ff, int experts, const struct wf_moe_options *options);

/* The experts of each row in one call: tensors of its tape. */
struct wf_moe_routing {
    wf_tensor *probabilities; /* p [N, experts] of the N rows */
    wf_tensor *chosen;        /* ids [N, chosen], the greatest p first */
};
struct wf_moe_call {
    wf_tensor *residual;            /* added to the result, as by wf_add(residual, result); NULL: none */
    struct wf_moe_routing *routing; /* if not NULL: is filled, for wf_moe_balance */
};
WF_API wf_tensor *wf_moe_forward_with(const struct wf_moe *m, wf_tensor *x, const struct wf_moe_call *call);
/* The balancing loss [] of one or several layers with as many experts: experts * sum over e of f_e P_e, where f_e is the number of choices
 * of expert e over all rows and layers divided by the rows, and P_e the mean of p_e over them; `chosen` where the load is even. The
 * gradient goes through P. As load_balancing_loss_func in transformers. Call it in the pass of the forwards, before its backward. */
WF_API wf_tensor *wf_moe_balance(const struct wf_moe_routing *routing, int layers);

#ifndef __cplusplus
#define wf_moe_init(scope, m, d, d_ff, experts, ...) wf_moe_init_with(scope, m, d, d_ff, experts, &(struct wf_moe_options){__VA_ARGS__})
#define wf_moe_forward(m, x, ...) wf_moe_forward_with(m, x, &(struct wf_moe_call){__VA_ARGS__})
#endif

WF_END_DECLS

#endif
