/* SPDX-License-Identifier: MIT */
/* A model with the weights of the golden files. */
#ifndef TESTS_GOLDEN_MODEL_H
#define TESTS_GOLDEN_MODEL_H

#include <weft/models.h>

#include "../golden/golden.h"
#include "config_test.h"
#include "tape_values.h"

/* A model's weights by the formula, in streams NAME/PARAMETER: matrices in +-1/sqrt(columns), gains 1 +- 1/4, biases +-1/4. As the scripts
 * make_torch.py, make_encoder.py and make_seq2seq.py fill theirs. */
static inline void golden_fill(wf_registry *registry, const char *name)
{
    for (int i = 0; i < wf_registry_count(registry); i++) {
        const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(registry, i));
        wf_real *value = wf_registry_values(registry) + info->offset;
        char key[256];
        snprintf(key, sizeof key, "%s/%s", name, info->name);
        uint64_t stream = formula_name(key, NULL);
        double scale = info->value.ndim == 2 ? 1 / sqrt((double)info->value.dim[1]) : 0.25;
        double shift = info->value.ndim == 1 && strstr(info->name, "norm") && strstr(info->name, "weight") ? 1 : 0;
        for (int64_t k = 0; !wf_registry_is_buffer(registry, i) && k < wf_array_count(&info->value); k++)
            value[k] = (wf_real)(float)(shift + formula_real(stream, k, scale));
    }
}

/* Sets the model of the configuration, its registry and a tape. */
static inline void golden_model(const struct wf_config *config, const char *name, wf_model **model, wf_registry **registry, wf_tape **tape)
{
    wf_error e = {0};
    *model = wf_model_new(config, &e);
    ck_assert_msg(*model != NULL, "%s", e.message);
    *registry = wf_model_registry(*model);
    ck_ok(wf_registry_build(*registry, 1, error));
    golden_fill(*registry, name);
    *tape = new_tape();
}

#endif
