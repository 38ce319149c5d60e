/* SPDX-License-Identifier: MIT */
/* Makes the optimiser that a configuration names; for code that trains. */
#ifndef WEFT_INTERNAL_OPTIMIZERS_H
#define WEFT_INTERNAL_OPTIMIZERS_H

#include <weft/optim.h>
#include <weft/optimizers.h>

/* The registered optimiser of a configuration, whose rule has config->optimizer.values as ctx; NULL: one that is built in. */
const struct wf_optimizer_kind *wf_config_optimizer(const struct wf_config *config);
/* The optimiser of a configuration that wf_config_check takes, for a registry with gradients. *config must outlive it. */
wf_status wf_config_optimizer_init(struct wf_config *config, wf_registry *registry, struct wf_optimizer *optimizer,
                                   wf_error *error) WF_CHECKED;
struct wf_sgd_settings { /* config->optimizer.values of WF_OPTIMIZER_SGD */
    double momentum;
    bool nesterov;
};

#endif
