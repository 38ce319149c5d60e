/* SPDX-License-Identifier: MIT */
/* Makes the optimiser that a configuration names; for code that trains. */
#ifndef WEFT_INTERNAL_OPTIMIZERS_H
#define WEFT_INTERNAL_OPTIMIZERS_H

#include <weft/optim.h>
#include <weft/optimizers.h>

/* The registered optimiser of a configuration. Its rule takes config->optimizer.values as ctx. NULL: the optimiser is built in. */
const struct wf_optimizer_kind *wf_config_optimizer(const struct wf_config *config);
/* Initialises *optimizer as a checked configuration says, for a registry with gradients. *config must outlive *optimizer. */
wf_status wf_config_optimizer_init(struct wf_config *config, wf_registry *registry, struct wf_optimizer *optimizer,
                                   wf_error *error) WF_CHECKED;
/* The struct in config->optimizer.values for WF_OPTIMIZER_SGD. */
struct wf_sgd_settings {
    double momentum;
    bool nesterov;
};

#endif
