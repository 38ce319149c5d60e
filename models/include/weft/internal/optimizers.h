/* SPDX-License-Identifier: MIT */
/* The optimiser of a configuration, for the room that trains. */
#ifndef WEFT_INTERNAL_OPTIMIZERS_H
#define WEFT_INTERNAL_OPTIMIZERS_H

#include <weft/optimizers.h>

/* The registered optimiser of a configuration, whose rule has config->optimizer.values as ctx; NULL: one that is built in. */
const struct wf_optimizer_kind *wf_config_optimizer(const struct wf_config *config);
struct wf_sgd_settings { /* config->optimizer.values of WF_OPTIMIZER_SGD */
    double momentum;
    bool nesterov;
};

#endif
