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
/* The rule of a configuration's optimiser; *ctx becomes the argument of its functions. */
const struct wf_optimizer_rule *wf_config_optimizer_rule(struct wf_config *config, void **ctx);

/* The structs in config->optimizer.values for Weft's own optimisers. */
struct wf_sgd_settings {
    double momentum;
    bool nesterov;
};
struct wf_lion_settings {
    double beta1, beta2;
};
struct wf_adafactor_settings {
    double beta2_decay, eps1, eps2, threshold;
};
struct wf_muon_settings {
    double momentum, beta1, beta2, eps, adam_lr_scale;
    int64_t iterations;
    int adjust; /* enum wf_muon_adjust */
    bool nesterov;
};

#endif
